// The BEFORE INSERT trigger of doorbell.event and doorbell.stream, for rows that do not come from append or trim: a
// restored dump, above all.
//
// Such a row carries transaction ids of another time, or of another cluster, where they may stand for transactions
// that this cluster is running now or has yet to run. It gets the id of the transaction that brings it, and what is
// known of the end of its stream is forgotten (tail.hpp). Appends write the table directly and do not pass here.
#include "tables.hpp"
#include "tail.hpp"

namespace pg_doorbell {

DOORBELL_SQL_FUNCTION(doorbell_restored)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("doorbell.restored() can only be called as a trigger"));
	const auto *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);
	const TupleDesc description = RelationGetDescr(trigger->tg_relation);
	bool isnull;
	const Datum stream = heap_getattr(trigger->tg_trigtuple, 1, description, &isnull); // in both tables
	if (!isnull)
		distrust_tail(DatumGetTextPP(stream));
	const bool is_event = RelationGetRelid(trigger->tg_relation) == find_tables().event;
	int columns[2] = {is_event ? int{event_xid} : int{stream_trimmed_xid}, stream_trim_xid};
	const Datum xid = FullTransactionIdGetDatum(GetTopFullTransactionId());
	Datum values[2] = {xid, xid};
	bool nulls[2] = {};
	return PointerGetDatum(
		heap_modify_tuple_by_cols(trigger->tg_trigtuple, description, is_event ? 1 : 2, columns, values, nulls));
}

} // namespace pg_doorbell
