// Retention: rules say how long events stay; applying them trims streams, batch by batch.
//
//  1. A rule is for an exact key or, with a pattern that ends in '*', for all keys that begin so. The most specific one
//     counts: the exact key, else the longest prefix. Streams without a rule keep everything, and are skipped: the scan
//     over the keys jumps to the next one that a rule can match.
//  2. An event is due when it is older than max_age, or when max_events seqs follow it. appended_at never decreases
//     within a stream, so both are a line in the stream, and what is due is in front of it.
//  3. A stream is read from low water on, in seq order, and no further than what goes now: its first event tells
//  whether
//     there is anything to do. Missing seqs are judged as in replay.hpp, so what is in flight is never passed.
//  4. A required consumer (doorbell.consumer) holds back what it has not committed, in the streams in which it has a
//     cursor, until the event has been due for hold_at_most: that line is the rule, applied to a time so long ago.
//  5. A cursor over all streams lets go, in every stream, what its holder has been given; it tells exactly
//     (all_cursor_order.hpp). One of another history lets nothing go.
//  6. Removing is a trim (trim.hpp). A stream that another transaction is trimming is skipped, not waited for, and
//     appends wait for nothing here. So it can run anywhere, beside anything.
//
// A pass goes over all streams once, in steps: one transaction each. What a step may remove is limited, so that it is
// short whatever the backlog is; a stream with a larger one gets its turn in each pass.
#pragma once

#include "pg.hpp"

#include "doorbell/pointer.hpp"

namespace pg_doorbell {

struct RetentionPass {
	char position[doorbell::max_stream_bytes]; // the last stream that was looked at
	uint32 length;							   // 0: at the start
	bool any_rules;
	bool more; // some stream had more to remove than its step could

	bool at_start() const { return length == 0; }
};
static_assert(std::is_trivially_destructible_v<RetentionPass>);

// Goes on with a pass until the limit or the deadline is reached, or it is through and at the start again. Needs an
// active snapshot, the rights of the extension's owner and a pinned search_path. Returns how many events it removed.
int64 apply_retention(RetentionPass &pass, int max_events, TimestampTz deadline);

} // namespace pg_doorbell
