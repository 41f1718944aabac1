// Consumers: cursors that live in the database under a name, so that whoever stops anywhere goes on there.
//
// 1. doorbell.consumer_cursor has a row per consumer and stream: the seq, and the check of that event if it was given,
// so
//    that a cursor of another history can be told. A row whose stream is '' holds a cursor over all streams.
// 2. A commit moves a cursor on, never back: the upsert locks the row, so two processes of one name take turns, and the
//    second one is judged by what the first one left there. The lock lasts until the transaction ends.
// 3. Whether the committed event exists is not asked. A consumer that commits in the transaction in which it stores
// what
//    it made of the events processes each of them exactly once.
// 4. doorbell.consumer has a row only for consumers that were configured: required ones hold retention back
//    (retention.hpp).
//
// The functions are SECURITY DEFINER with a pinned search_path, because they run SQL.
#include "args.hpp"
#include "sql.hpp"
#include "tables.hpp"

namespace pg_doorbell {

static Datum all_streams()
{
	return CStringGetTextDatum("");
}

// The check of an event as it stands in a mark (docs/protocol.md); null: unknown.
static text *event_check_argument(FunctionCallInfo fcinfo, int number, int64 seq)
{
	if (PG_ARGISNULL(number))
		return nullptr;
	text *check = PG_GETARG_TEXT_PP(number);
	const std::string_view digits = view_of(check);
	const bool good = digits.size() == 8 && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
					  digits != "00000000";
	if (!good || seq == 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("event_check is not the check of an event: \"%s\"", text_to_cstring(check)),
				errdetail("A check has 8 hexadecimal digits in lower case, not all of them 0; seq 0 has none."));
	return check;
}

static void refuse_stale(text *consumer, const char *of, const char *committed, const char *given)
{
	ereport(ERROR, errcode(MAKE_SQLSTATE('D', 'B', '0', '0', '3')),
			errmsg("the cursor of consumer \"%s\" cannot go on to the given one", text_to_cstring(consumer)),
			errdetail("Consumer \"%s\", %s: committed %s, given %s.", text_to_cstring(consumer), of, committed, given),
			errhint("Another process commits under this name: end this one, or go on from what is committed. "
					"doorbell.move_cursor() moves a cursor back on purpose."));
}

static Statement commit_seq = {
	"INSERT INTO doorbell.consumer_cursor AS c (consumer, stream, seq, event_check, committed_at)"
	" VALUES ($1, $2, $3, $4, clock_timestamp())"
	" ON CONFLICT (consumer, stream) DO UPDATE SET seq = EXCLUDED.seq, committed_at = EXCLUDED.committed_at,"
	"  event_check = CASE WHEN c.seq = EXCLUDED.seq THEN coalesce(EXCLUDED.event_check, c.event_check)"
	"   ELSE EXCLUDED.event_check END"
	" WHERE c.seq <= EXCLUDED.seq",
	SPI_OK_INSERT,
	{TEXTOID, TEXTOID, INT8OID, TEXTOID}};

static Statement move_seq = {
	"INSERT INTO doorbell.consumer_cursor (consumer, stream, seq, event_check, committed_at)"
	" VALUES ($1, $2, $3, $4, clock_timestamp())"
	" ON CONFLICT (consumer, stream) DO UPDATE SET seq = EXCLUDED.seq, committed_at = EXCLUDED.committed_at,"
	"  event_check = EXCLUDED.event_check",
	SPI_OK_INSERT,
	{TEXTOID, TEXTOID, INT8OID, TEXTOID}};

static Statement committed = {
	"SELECT seq, cursor, seq || coalesce('-' || event_check, '') FROM doorbell.consumer_cursor"
	" WHERE consumer = $1 AND stream = $2",
	SPI_OK_SELECT,
	{TEXTOID, TEXTOID}};
enum CommittedColumn { committed_seq = 1, committed_cursor, committed_mark };

static NullableDatum read_committed(text *consumer, Datum stream, CommittedColumn column, bool stable)
{
	if (run(committed, {value_of(consumer), value_of(stream)}, stable) == 0)
		return NullableDatum{Datum(0), true};
	return returned(0, column);
}

DOORBELL_SQL_FUNCTION(doorbell_commit_cursor)
{
	text *consumer = consumer_argument(fcinfo, 0);
	text *stream = stream_argument(fcinfo, 1);
	const int64 seq = seq_argument(fcinfo, 2, "seq");
	text *check = event_check_argument(fcinfo, 3, seq);
	PreventCommandIfReadOnly("doorbell.commit_cursor()");

	SPI_connect();
	if (run(commit_seq, {value_of(consumer), value_of(stream), value_of(Int64GetDatum(seq)), value_of(check)}) == 0) {
		const NullableDatum there = read_committed(consumer, PointerGetDatum(stream), committed_seq, false);
		refuse_stale(consumer, psprintf("stream \"%s\"", text_to_cstring(stream)),
					 psprintf("seq %lld", static_cast<long long>(DatumGetInt64(there.value))),
					 psprintf("seq %lld", static_cast<long long>(seq)));
	}
	SPI_finish();
	PG_RETURN_VOID();
}

DOORBELL_SQL_FUNCTION(doorbell_move_cursor)
{
	text *consumer = consumer_argument(fcinfo, 0);
	text *stream = stream_argument(fcinfo, 1);
	const int64 seq = seq_argument(fcinfo, 2, "seq");
	text *check = event_check_argument(fcinfo, 3, seq);
	PreventCommandIfReadOnly("doorbell.move_cursor()");

	SPI_connect();
	run(move_seq, {value_of(consumer), value_of(stream), value_of(Int64GetDatum(seq)), value_of(check)});
	SPI_finish();
	PG_RETURN_VOID();
}

DOORBELL_SQL_FUNCTION(doorbell_cursor)
{
	text *consumer = consumer_argument(fcinfo, 0);
	text *stream = stream_argument(fcinfo, 1);
	SPI_connect();
	const NullableDatum seq = read_committed(consumer, PointerGetDatum(stream), committed_seq, true);
	SPI_finish();
	if (seq.isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(seq.value);
}

// A text that read_committed() found, or NULL.
static Datum committed_text(FunctionCallInfo fcinfo, Datum stream, CommittedColumn column)
{
	text *consumer = consumer_argument(fcinfo, 0);
	SPI_connect();
	const NullableDatum found = read_committed(consumer, stream, column, true);
	Datum copy = found.isnull ? Datum(0) : SPI_datumTransfer(found.value, false, -1);
	SPI_finish();
	if (found.isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(copy);
}

DOORBELL_SQL_FUNCTION(doorbell_mark)
{
	text *stream = stream_argument(fcinfo, 1);
	return committed_text(fcinfo, PointerGetDatum(stream), committed_mark);
}

DOORBELL_SQL_FUNCTION(doorbell_cursor_all)
{
	return committed_text(fcinfo, all_streams(), committed_cursor);
}

static Statement commit_all = {
	"INSERT INTO doorbell.consumer_cursor AS c (consumer, stream, cursor, committed_at)"
	" SELECT $1, $2, $3, clock_timestamp() WHERE doorbell.cursor_precedes($3, $3)"
	" ON CONFLICT (consumer, stream) DO UPDATE SET cursor = EXCLUDED.cursor, committed_at = EXCLUDED.committed_at"
	" WHERE doorbell.cursor_precedes(c.cursor, EXCLUDED.cursor)",
	SPI_OK_INSERT,
	{TEXTOID, TEXTOID, TEXTOID}};

DOORBELL_SQL_FUNCTION(doorbell_commit_cursor_all)
{
	text *consumer = consumer_argument(fcinfo, 0);
	refuse_null_argument(fcinfo, 1, "cursor");
	text *cursor = PG_GETARG_TEXT_PP(1);
	PreventCommandIfReadOnly("doorbell.commit_cursor()");

	SPI_connect();
	if (run(commit_all, {value_of(consumer), value_of(all_streams()), value_of(cursor)}) == 0) {
		const NullableDatum there = read_committed(consumer, all_streams(), committed_cursor, false);
		refuse_stale(consumer, "all streams", psprintf("\"%s\"", TextDatumGetCString(there.value)),
					 psprintf("\"%s\"", text_to_cstring(cursor)));
	}
	SPI_finish();
	PG_RETURN_VOID();
}

static Statement move_all = {
	"INSERT INTO doorbell.consumer_cursor (consumer, stream, cursor, committed_at)"
	" SELECT $1, $2, $3, clock_timestamp() WHERE doorbell.cursor_precedes($3, $3)"
	" ON CONFLICT (consumer, stream) DO UPDATE SET cursor = EXCLUDED.cursor, committed_at = EXCLUDED.committed_at",
	SPI_OK_INSERT,
	{TEXTOID, TEXTOID, TEXTOID}};

DOORBELL_SQL_FUNCTION(doorbell_move_cursor_all)
{
	text *consumer = consumer_argument(fcinfo, 0);
	refuse_null_argument(fcinfo, 1, "cursor");
	PreventCommandIfReadOnly("doorbell.move_cursor()");

	SPI_connect();
	run(move_all, {value_of(consumer), value_of(all_streams()), value_of(PG_GETARG_DATUM(1))});
	SPI_finish();
	PG_RETURN_VOID();
}

static Statement set_consumer = {
	"INSERT INTO doorbell.consumer (name, required, hold_at_most) VALUES ($1, $2, $3)"
	" ON CONFLICT (name) DO UPDATE SET required = EXCLUDED.required, hold_at_most = EXCLUDED.hold_at_most",
	SPI_OK_INSERT,
	{TEXTOID, BOOLOID, INTERVALOID}};

DOORBELL_SQL_FUNCTION(doorbell_set_consumer)
{
	text *consumer = consumer_argument(fcinfo, 0);
	refuse_null_argument(fcinfo, 1, "required");
	refuse_null_argument(fcinfo, 2, "hold_at_most");
	const Interval *hold_at_most = interval_argument(fcinfo, 2, "hold_at_most");
	PreventCommandIfReadOnly("doorbell.set_consumer()");

	SPI_connect();
	run(set_consumer, {value_of(consumer), value_of(PG_GETARG_DATUM(1)), value_of(hold_at_most)});
	SPI_finish();
	PG_RETURN_VOID();
}

static Statement forget_cursors = {
	"DELETE FROM doorbell.consumer_cursor WHERE consumer = $1", SPI_OK_DELETE, {TEXTOID}};
static Statement forget_settings = {"DELETE FROM doorbell.consumer WHERE name = $1", SPI_OK_DELETE, {TEXTOID}};

DOORBELL_SQL_FUNCTION(doorbell_forget_consumer)
{
	text *consumer = consumer_argument(fcinfo, 0);
	PreventCommandIfReadOnly("doorbell.forget_consumer()");

	SPI_connect();
	run(forget_settings, {value_of(consumer)});
	run(forget_cursors, {value_of(consumer)});
	SPI_finish();
	PG_RETURN_VOID();
}

} // namespace pg_doorbell
