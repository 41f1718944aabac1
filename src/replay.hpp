// Replaying: the events of a stream in seq order, and never one too early.
//
// Transactions commit out of seq order: event 11 may be visible while 10 is in flight. To deliver 11 then would be to
// lose 10, because a reader only ever asks for what follows its mark. So:
//
//  1. Walk the primary key forwards in our own snapshot. While seqs are contiguous there is nothing to ask.
//  2. Wherever seqs are missing, look at every row version in the missing range, once.
//  3. A row there is in flight (see in_flight.hpp): stop before the hole. Its events and ours come with a later replay.
//  4. None is: the missing seqs are void (rolled back) or trimmed, for ever. Step over them.
//
// Why it is right. Let 11 be visible to our snapshot, and 10 an event now or later.
//  a. 10 was stored, with its index entry, before 11 was assigned: both happen under the stream's lock (append.hpp),
//     and a seq below a live one is never assigned again. 11 committed before our snapshot, so the entry of 10 was in
//     the index before we began to walk: the look at the hole, which comes later still, finds it.
//  b. What it finds is decided by the inserter of 10 alone. If that was finished before our snapshot, 10 is visible or
//     rolled back; else it is in flight or rolled back since. Rolled back is for ever.
// So a reader that is given n has been given every untrimmed event below n. No clock, no timeout, no lock takes part.
//
// A hole costs a look each time that it is walked over, by each reader; that is what rollbacks cost here.
// On a physical standby (a) holds because the entry of 10 is earlier in the WAL than the commit of 11.
// On a logical subscriber it does not: in-flight rows never get there, so a hole says nothing.
#pragma once

#include "tables.hpp"

namespace pg_doorbell {

// Replays any number of streams, one after another, into the result of a set-returning function.
class Replayer {
public:
	static Replayer begin(FunctionCallInfo fcinfo, Snapshot snapshot);
	void end();

	// Gives up to `limit` events after `after`; returns how many, and moves `after` to the last of them.
	int replay(text *stream, int64 &after, int limit);

private:
	bool hole_is_settled(text *stream, int64 before, int64 after);
	void give(TupleTableSlot *slot);

	Snapshot snapshot_;
	Relation event_;
	Walk visible_;
	Walk holes_; // every row version; opened when the first hole is met
	bool has_holes_;
	HeapTupleHeader row_; // a buffer for one row
	ReturnSetInfo *result_;
};
static_assert(std::is_trivially_destructible_v<Replayer>);

} // namespace pg_doorbell
