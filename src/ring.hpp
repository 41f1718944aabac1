// The doorbell: what a transaction has to ring, and when.
//
// 1. note_ring() remembers the highest seq per stream, in a list of the current subtransaction. A list is found by
//    its nesting level; a subtransaction that never appends has none.
// 2. A subtransaction that commits hands its list to its parent; one that rolls back drops it. So a ring never points
//    at an event that a savepoint took back.
// 3. Before the top-level commit each stream is queued once with NOTIFY, which PostgreSQL delivers with the commit,
//    after the events are visible. A list that would exceed max_rings streams becomes a single "*".
// 4. An abort forgets everything. PREPARE TRANSACTION is refused while there is something to ring, as NOTIFY does.
//
// The lists live in the top transaction's memory; the callbacks allocate nothing that could fail at commit beyond what
// NOTIFY itself allocates, before the commit is decided.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

inline constexpr int max_rings = 64;

// Rings for event `seq` of `stream` when the transaction commits, unless doorbell.ring_mode is off.
void note_ring(const text *stream, int64 seq);
void define_ring_settings(); // once, when the library is loaded

} // namespace pg_doorbell
