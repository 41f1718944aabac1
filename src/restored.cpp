// The BEFORE INSERT trigger of doorbell.event, for rows that do not come from append: a restored dump, above all.
//
// Such a row carries the transaction id of another time, or of another cluster, where it may stand for a transaction
// that this cluster is running now or has yet to run. It gets the id of the transaction that brings it. Appends write
// the table directly and do not pass here.
#include "tables.hpp"

namespace pg_doorbell {

DOORBELL_SQL_FUNCTION(doorbell_restored)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("doorbell.restored() can only be called as a trigger"));
	const auto *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);
	int column = event_xid;
	Datum value = FullTransactionIdGetDatum(GetTopFullTransactionId());
	bool isnull = false;
	return PointerGetDatum(heap_modify_tuple_by_cols(trigger->tg_trigtuple, RelationGetDescr(trigger->tg_relation), 1,
													 &column, &value, &isnull));
}

} // namespace pg_doorbell
