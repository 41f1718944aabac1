// The BEFORE INSERT trigger of doorbell.event, for rows that do not come from append: a restored dump, above all.
//
// Such a row carries the transaction id of another time, or of another cluster, where it may stand for a transaction
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
	const TupleDesc columns = RelationGetDescr(trigger->tg_relation);
	bool isnull;
	const Datum stream = heap_getattr(trigger->tg_trigtuple, event_stream, columns, &isnull);
	if (!isnull)
		distrust_tail(DatumGetTextPP(stream));
	int column = event_xid;
	Datum value = FullTransactionIdGetDatum(GetTopFullTransactionId());
	isnull = false;
	return PointerGetDatum(heap_modify_tuple_by_cols(trigger->tg_trigtuple, columns, 1, &column, &value, &isnull));
}

} // namespace pg_doorbell
