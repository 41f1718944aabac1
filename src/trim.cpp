// Trimming: old events go, and low water says so, in one transaction.
//
// 1. Never beyond high water, so that nothing in flight is passed over.
// 2. The stream's low water is raised first, to the seq of the last event that goes; its row lock makes two trims of
//    one stream take turns. No append waits for it: appends read low water with a snapshot, and only when the stream
//    has no live row. Beside it stands which transaction appended that event, for readers of all streams (window.hpp).
// 3. Then the events are deleted. Until the commit, appends count them as live, so the seq goes on from them; after it,
//    from low water. Either way no seq is used twice.
//
// Declared SECURITY DEFINER with a pinned search_path, because it runs SQL.
#include "args.hpp"
#include "high_water.hpp"

namespace pg_doorbell {

static uint64 execute(const char *query, Datum stream, int64 seq, int expected)
{
	Oid types[2] = {TEXTOID, INT8OID};
	Datum values[2] = {stream, Int64GetDatum(seq)};
	const int done = SPI_execute_with_args(query, 2, types, values, nullptr, false, 0);
	if (done != expected)
		elog(ERROR, "SPI_execute_with_args failed: %s", SPI_result_code_string(done));
	return SPI_processed;
}

DOORBELL_SQL_FUNCTION(doorbell_trim)
{
	text *stream = stream_argument(fcinfo, 0);
	const int64 asked = seq_argument(fcinfo, 1, "through_seq");
	const int64 through_seq = Min(asked, high_water(stream, GetActiveSnapshot()));
	if (through_seq == 0)
		PG_RETURN_INT64(0);

	SPI_connect();
	execute("INSERT INTO doorbell.stream (key) SELECT $1"
			" WHERE EXISTS (SELECT FROM doorbell.event e WHERE e.stream = $1 AND e.seq <= $2) ON CONFLICT DO NOTHING",
			PointerGetDatum(stream), through_seq, SPI_OK_INSERT);
	execute("UPDATE doorbell.stream s SET low_water = e.seq, trimmed_xid = e.xid, trim_xid = pg_current_xact_id()"
			" FROM (SELECT e.seq, e.xid FROM doorbell.event e WHERE e.stream = $1 AND e.seq <= $2"
			" ORDER BY e.seq DESC LIMIT 1) e WHERE s.key = $1 AND s.low_water < e.seq",
			PointerGetDatum(stream), through_seq, SPI_OK_UPDATE);
	const uint64 removed = execute("DELETE FROM doorbell.event WHERE stream = $1 AND seq <= $2",
								   PointerGetDatum(stream), through_seq, SPI_OK_DELETE);
	SPI_finish();
	PG_RETURN_INT64(static_cast<int64>(removed));
}

} // namespace pg_doorbell
