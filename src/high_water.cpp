#include "high_water.hpp"

#include "args.hpp"
#include "in_flight.hpp"
#include "low_water.hpp"

namespace pg_doorbell {

static int64 lowest_in_flight(Relation event, text *stream, Snapshot snapshot)
{
	int64 lowest = no_seq;
	InFlightRows rows = InFlightRows::of(event, snapshot);
	while (rows.next()) {
		bool isnull;
		const text *of = DatumGetTextPP(slot_getattr(rows.slot(), event_stream, &isnull));
		if (view_of(of) == view_of(stream))
			lowest = Min(lowest, DatumGetInt64(slot_getattr(rows.slot(), event_seq, &isnull)));
	}
	rows.end();
	return lowest;
}

int64 largest_visible_below(Walk &visible, text *stream, int64 limit)
{
	ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, stream), seq_key(2, BTLessStrategyNumber, limit)};
	visible.seek(keys, 2);
	return visible.next(BackwardScanDirection) ? visible.seq() : 0;
}

int64 high_water(text *stream, Snapshot snapshot)
{
	Relation event = table_open(find_tables_to_follow().event, AccessShareLock);
	LowWaterTable low_waters = LowWaterTable::open();
	const int64 limit = lowest_in_flight(event, stream, snapshot);
	Walk visible = Walk::over(event, find_tables().event_pkey, snapshot, 2);
	const int64 seq = Max(largest_visible_below(visible, stream, limit), low_waters.read(stream, snapshot));
	visible.end();
	low_waters.close();
	table_close(event, NoLock);
	return seq;
}

DOORBELL_SQL_FUNCTION(doorbell_high_water)
{
	PG_RETURN_INT64(high_water(stream_argument(fcinfo, 0), GetActiveSnapshot()));
}

} // namespace pg_doorbell
