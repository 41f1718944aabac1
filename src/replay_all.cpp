#include "replay_all.hpp"

#include "args.hpp"
#include "history.hpp"
#include "result.hpp"
#include "window.hpp"
#include "withheld.hpp"

namespace pg_doorbell {
namespace {

// What one call reads with.
struct Reading {
	Snapshot snapshot;
	Unfinished unfinished;
	Relation event;
	LowWaterTable low_waters;

	static Reading begin()
	{
		Snapshot snapshot = GetActiveSnapshot();
		Relation event = table_open(find_tables_to_follow().event, AccessShareLock);
		return Reading{snapshot, Unfinished::of(snapshot), event, LowWaterTable::open()};
	}
	void end()
	{
		low_waters.close();
		table_close(event, NoLock); // what was read may still point into the table's TOAST
	}
};
static_assert(std::is_trivially_destructible_v<Reading>);

// To the visible row with the largest transaction id, by an index on it; only of transactions that are finished.
bool seek_newest(Walk &walk, AttrNumber column, const Unfinished &unfinished)
{
	uint64 below = unfinished.xmax;
	for (;;) {
		ScanKeyData key = xid_key(BTLessStrategyNumber, below);
		walk.seek(&key, 1);
		if (!walk.next(BackwardScanDirection))
			return false;
		below = walk.xid(column);
		if (!unfinished.has(below))
			return true;
	}
}

// Sets xmax of `seen`, and its witness. False when there was never an event.
bool find_newest(const Reading &reading, AllCursor &cursor)
{
	cursor.seen.xmax = 0;
	Walk events = Walk::over(reading.event, find_tables().event_xid_idx, reading.snapshot, 1);
	if (seek_newest(events, event_xid, reading.unfinished)) {
		text *stream = DatumGetTextPCopy(events.column(event_stream));
		const int64 seq = events.seq();
		cursor.seen.xmax = events.xid() + 1;
		cursor.newest = Witness{stream, seq,
								check_of(view_of(stream), seq, view_of(DatumGetTextPP(events.column(event_type))),
										 DatumGetTimestampTz(events.column(event_appended_at)))};
	}
	events.end();

	Walk trimmed = Walk::over(reading.low_waters.table, find_tables().stream_trimmed_idx, reading.snapshot, 1);
	if (seek_newest(trimmed, stream_trimmed_xid, reading.unfinished) &&
		trimmed.xid(stream_trimmed_xid) >= cursor.seen.xmax) {
		cursor.seen.xmax = trimmed.xid(stream_trimmed_xid) + 1;
		cursor.newest = Witness{DatumGetTextPCopy(trimmed.column(stream_key)),
								DatumGetInt64(trimmed.column(stream_low_water)), std::nullopt};
	}
	trimmed.end();
	return cursor.seen.xmax > 0;
}

enum class Opened { yes, nothing_new, too_long };

// The window from what `after` has to now.
Opened open_window(const Reading &reading, const AllCursor &after, AllCursor &cursor)
{
	const Seen &before = after.seen;
	cursor = {};
	cursor.history = after.history;
	if (!find_newest(reading, cursor))
		return Opened::nothing_new;
	Seen &seen = cursor.seen;
	if (seen.xmax < before.xmax) { // what was the newest is trimmed away
		seen.xmax = before.xmax;
		cursor.newest = after.newest;
	}
	seen.excluded = reading.unfinished.running;
	while (seen.excluded_count < reading.unfinished.count && seen.excluded[seen.excluded_count] < seen.xmax)
		seen.excluded_count++;

	bool is_new = seen.xmax > before.xmax || before.mark_count > 0;
	for (int i = 0; !is_new && i < before.excluded_count; i++)
		is_new = seen.has_transaction(before.excluded[i]);
	if (!is_new)
		return Opened::nothing_new;
	if (!find_withheld(reading.event, reading.snapshot, reading.unfinished, before, seen) ||
		characters_of(seen) > max_seen_characters)
		return Opened::too_long;
	cursor.before = before;
	return Opened::yes;
}

// Whether the snapshot knows of everything that the cursor's holder knows of.
bool is_older_than(const Reading &reading, const Seen &seen)
{
	bool older = reading.unfinished.xmax < seen.xmax;
	for (int i = 0; !older && i < reading.unfinished.count; i++)
		older = seen.has_transaction(reading.unfinished.running[i]);
	return older;
}

// Gives up to max_events rows of the window behind the cursor's position; returns how many.
int give(const Reading &reading, const AllCursor &cursor, text *prefix, int max_events, ReturnSetInfo *result)
{
	const WindowBounds bounds{&*cursor.before, &cursor.seen, cursor.last.stream, cursor.last.seq, prefix};
	Window window = Window::open(reading.event, reading.snapshot, bounds, max_events);
	CursorWriter writer(cursor);
	int given = 0;
	while (given < max_events && window.next()) {
		Datum values[6] = {PointerGetDatum(window.stream()), Int64GetDatum(window.seq())};
		bool nulls[6] = {};
		std::optional<uint32> check;
		if (TupleTableSlot *slot = window.slot()) {
			slot_getsomeattrs(slot, event_appended_at);
			for (int column = event_type; column <= event_appended_at; column++)
				values[column - 1] = slot->tts_values[column - 1];
			check = check_of(view_of(window.stream()), window.seq(), view_of(DatumGetTextPP(values[event_type - 1])),
							 DatumGetTimestampTz(values[event_appended_at - 1]));
		} else {
			nulls[event_type - 1] = nulls[event_payload - 1] = nulls[event_appended_at - 1] = true;
		}
		values[5] = PointerGetDatum(writer.write(view_of(window.stream()), window.seq(), check, !window.has_more()));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		given++;
	}
	window.close();
	return given;
}

} // namespace

DOORBELL_SQL_FUNCTION(doorbell_replay_all)
{
	const int max_events = max_events_argument(fcinfo, 1);
	refuse_null_argument(fcinfo, 2, "prefix");
	text *prefix = PG_GETARG_TEXT_PP(2);
	AllCursor after = {}; // from the beginning
	if (!PG_ARGISNULL(0))
		after = parse_cursor(PG_GETARG_TEXT_PP(0));

	ReturnSetInfo *result = begin_result(fcinfo);
	Reading reading = Reading::begin();
	if (PG_ARGISNULL(0))
		after.history = history_id(reading.snapshot);
	else
		check_history(after, reading.event, reading.low_waters, reading.snapshot, reading.unfinished);
	if (!is_older_than(reading, after.seen)) {
		int given = 0;
		if (after.before.has_value())
			given = give(reading, after, prefix, max_events, result);
		AllCursor next;
		if (given == 0 && open_window(reading, after, next) == Opened::yes)
			give(reading, next, prefix, max_events, result);
	}
	reading.end();
	return Datum(0);
}

DOORBELL_SQL_FUNCTION(doorbell_high_water_all)
{
	Reading reading = Reading::begin();
	AllCursor beginning = {};
	beginning.history = history_id(reading.snapshot);
	AllCursor cursor;
	const Opened opened = open_window(reading, beginning, cursor);
	reading.end();
	if (opened == Opened::too_long)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("too much waits for open transactions to fit into a cursor"),
				errhint("Try again when those transactions have ended."));
	cursor.before = std::nullopt;
	if (opened == Opened::nothing_new)
		cursor.seen.xmax = 1; // no transaction has an id below 3
	PG_RETURN_TEXT_P(CursorWriter(cursor).write());
}

} // namespace pg_doorbell
