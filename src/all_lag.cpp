// How far a reader of all streams is behind, for those who watch it.
//
// 1. What its cursor's holder has had for certain is a Seen: `before`, or without it all of `seen`. What is left out of
//    that is of a transaction from its lowest unseen id on, which the index on xid finds, or behind one of its marks,
//    which the primary key finds.
// 2. Of those rows, what was given within the window is not counted.
//
// It reads every visible event that is not given yet, so it takes as long as reading those.
#include "all_cursor_order.hpp"
#include "history.hpp"

namespace pg_doorbell {

namespace {

struct Lag {
	int64 events = 0;
	TimestampTz oldest = 0; // of them

	void count(const AllCursor &cursor, std::string_view stream, Walk &walk)
	{
		CHECK_FOR_INTERRUPTS();
		if (has_given(cursor, stream, walk.seq(), walk.xid()))
			return;
		const TimestampTz appended_at = DatumGetTimestampTz(walk.column(event_appended_at));
		oldest = events == 0 ? appended_at : Min(oldest, appended_at);
		events++;
	}
};

Lag lag_of(const AllCursor &cursor, Relation event, Snapshot snapshot)
{
	Lag lag;
	const Seen &had = cursor.before.has_value() ? *cursor.before : cursor.seen;
	Walk by_xid = Walk::over(event, find_tables().event_xid_idx, snapshot, 1);
	ScanKeyData key = xid_key(BTGreaterEqualStrategyNumber, had.lowest_unseen());
	by_xid.seek(&key, 1);
	while (by_xid.next())
		lag.count(cursor, view_of(DatumGetTextPP(by_xid.column(event_stream))), by_xid);
	by_xid.end();

	Walk by_key = Walk::over(event, find_tables().event_pkey, snapshot, 2);
	for (int i = 0; i < had.mark_count; i++) {
		const Mark &mark = had.marks[i];
		ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, mark.stream),
							   seq_key(2, BTGreaterStrategyNumber, mark.seq - 1)};
		by_key.seek(keys, 2);
		while (by_key.next())
			if (by_key.xid() < had.lowest_unseen()) // else it was counted above
				lag.count(cursor, view_of(mark.stream), by_key);
	}
	by_key.end();
	return lag;
}

} // namespace

DOORBELL_SQL_FUNCTION(doorbell_cursor_lag)
{
	const AllCursor cursor = parse_cursor(PG_GETARG_TEXT_PP(0));
	const Snapshot snapshot = GetActiveSnapshot();
	if (cursor.history != history_id(snapshot))
		PG_RETURN_NULL();
	Relation event = table_open(find_tables().event, AccessShareLock);
	const Lag lag = lag_of(cursor, event, snapshot);
	table_close(event, NoLock);

	TupleDesc description;
	if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	const double seconds = static_cast<double>(GetCurrentTimestamp() - lag.oldest) / USECS_PER_SEC;
	Datum values[2] = {Int64GetDatum(lag.events), Float8GetDatum(lag.events > 0 ? Max(seconds, 0) : 0)};
	bool nulls[2] = {};
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(description), values, nulls)));
}

} // namespace pg_doorbell
