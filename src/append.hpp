// Appending: the primary key is the counter.
//
// State: doorbell.event alone. There is no counter row, no sequence and no lock that outlives the call.
//
//  1. An append takes the stream's lock (heavyweight, of the advisory class with a tag that no user lock can have,
//     named by a 64-bit hash of the key: two streams that collide only wait for each other a little).
//  2. Under it, it reads the stream's largest LIVE seq from the primary key backwards with a dirty snapshot: committed
//     and in-flight rows count, aborted and deleted ones do not. The new event gets the next seq.
//  3. When nothing is live, the next seq follows low water, read with a snapshot taken AFTER the scan: if a trim took
//     the last row away, its low water is visible by then.
//  4. The row and its index entries are inserted, and the lock is released at once, before the commit.
//
// Why no seq is used twice: whoever holds the lock next starts its scan after our index entry is in place. It sees our
// row as live until we abort; then the row is dead for everybody, for ever.
//
// Why readers can trust it (see replay.hpp): row n + 1 is only inserted once row n is in the index, or was never live
// at the same time. So whoever sees n + 1 finds n in the index if n is, or may yet become, an event.
//
// What follows: writers never wait for another's transaction or disk flush; a transaction holds at most one stream's
// lock at a time and waits for nothing while it does, so appends in any order cannot deadlock; no snapshot of the
// transaction takes part, so REPEATABLE READ and SERIALIZABLE appends do not fail because others append.
//
// Waits are kept out of the lock: the tables are locked before it; and when another open transaction appended the same
// event_id, the lock is released, that transaction waited for, and the append tried again.
//
// The table belongs to the extension and is written directly. AFTER ROW triggers that somebody puts on it fire, after
// the lock is released, as the table's owner with a pinned search_path; other triggers are refused.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

struct NewEvent {
	text *type;
	Datum payload; // jsonb
};
static_assert(std::is_trivially_destructible_v<NewEvent>);

struct AppendOptions {
	std::optional<int64> expected_seq;
	pg_uuid_t *event_id = nullptr; // only with a single event
};

// Appends checked events to a checked stream, contiguously, and notes the ring. Returns the last one's seq.
int64 append_events(text *stream, const NewEvent *events, int count, const AppendOptions &options = {});

} // namespace pg_doorbell
