// The doorbell: what a transaction has to ring, and when.
//
// 1. note_ring() remembers the highest seq per stream, in a list of the current subtransaction. A list is found by
//    its nesting level; a subtransaction that never appends has none. A list that would exceed max_rings streams
//    becomes a single "*".
// 2. A subtransaction that commits hands its list to its parent; one that rolls back drops it. So a ring never points
//    at an event that a savepoint took back.
// 3. Ring mode `worker`: after the end of the transaction, when its events are visible, the list is posted to the
//    ringer (ring_table.hpp). What rolled back is posted too, at once: readers stopped at its hole can go on.
// 4. Ring mode `commit`: before the commit each stream is queued once with NOTIFY, which PostgreSQL delivers with the
//    commit. What rolled back is not rung. PREPARE TRANSACTION is refused, as NOTIFY does.
// 5. A transaction chooses at its first append: worker if there is a ringer or one can be started, else commit.
//
// The lists live in the top transaction's memory. What happens after the commit allocates nothing and cannot fail.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

inline constexpr int max_rings = 64;

// Rings for event `seq` of `stream`, the last of `appends` new ones, unless doorbell.ring_mode is off.
void note_ring(const text *stream, int64 seq, int64 appends);
// The same whatever the mode is, for what another session appended and this one commits or rolls back.
void note_ring_for_prepared(const text *stream, int64 seq);
void define_ring_settings(); // once, when the library is loaded

} // namespace pg_doorbell
