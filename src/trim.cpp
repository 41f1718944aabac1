#include "trim.hpp"

#include "args.hpp"
#include "high_water.hpp"
#include "sql.hpp"
#include "tail.hpp"

namespace pg_doorbell {

static constexpr uint16 lock_class = 0xdb02; // beside that of stream_lock.cpp

static LockAcquireResult acquire_lock(text *stream, bool wait)
{
	const uint64 hash = hash_of(stream);
	LOCKTAG tag;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, static_cast<uint32>(hash >> 32), static_cast<uint32>(hash), lock_class);
	return LockAcquire(&tag, ExclusiveLock, false, !wait);
}

void lock_for_trim(text *stream)
{
	(void) acquire_lock(stream, true);
}

bool try_lock_for_trim(text *stream)
{
	return acquire_lock(stream, false) != LOCKACQUIRE_NOT_AVAIL;
}

static Statement make_row = {
	"INSERT INTO doorbell.stream (key) SELECT $1"
	" WHERE EXISTS (SELECT FROM doorbell.event WHERE stream = $1 AND seq > $2 AND seq <= $3) ON CONFLICT DO NOTHING",
	SPI_OK_INSERT,
	{TEXTOID, INT8OID, INT8OID}};

static Statement raise_low_water = {
	"UPDATE doorbell.stream s SET low_water = e.seq, trimmed_xid = e.xid, trim_xid = pg_current_xact_id()"
	" FROM (SELECT seq, xid FROM doorbell.event WHERE stream = $1 AND seq > $2 AND seq <= $3"
	"  ORDER BY seq DESC LIMIT 1) e"
	" WHERE s.key = $1 AND s.low_water < e.seq",
	SPI_OK_UPDATE,
	{TEXTOID, INT8OID, INT8OID}};

static Statement delete_events = {"DELETE FROM doorbell.event WHERE stream = $1 AND seq > $2 AND seq <= $3",
								  SPI_OK_DELETE,
								  {TEXTOID, INT8OID, INT8OID}};

int64 trim_events(text *stream, int64 after, int64 through)
{
	// Statistics are old where events come and go; only the primary key reads no more than what is to be removed.
	const int settings = NewGUCNestLevel();
	for (const char *other : {"enable_seqscan", "enable_bitmapscan"})
		set_config_option(other, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	const auto run_it = [&](Statement &statement) {
		return run(statement, {value_of(stream), value_of(Int64GetDatum(after)), value_of(Int64GetDatum(through))});
	};
	run_it(make_row);
	run_it(raise_low_water);
	const uint64 removed = run_it(delete_events);
	AtEOXact_GUC(false, settings);
	return static_cast<int64>(removed);
}

DOORBELL_SQL_FUNCTION(doorbell_trim)
{
	text *stream = stream_argument(fcinfo, 0);
	const int64 asked = seq_argument(fcinfo, 1, "through_seq");
	const int64 through_seq = Min(asked, high_water(stream, GetActiveSnapshot()));
	if (through_seq == 0)
		PG_RETURN_INT64(0);

	PreventCommandIfReadOnly("doorbell.trim()");
	lock_for_trim(stream);
	SPI_connect();
	const int64 removed = trim_events(stream, 0, through_seq);
	SPI_finish();
	PG_RETURN_INT64(removed);
}

} // namespace pg_doorbell
