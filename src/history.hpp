// Whether a cursor of all streams belongs to this history.
//
//  1. doorbell.history has one random id, made by CREATE EXTENSION and not dumped: a restored dump is another history.
//  2. A server that lost its newest commits (a lossy failover, a recovery to a point in time, a crash without
//     synchronous commits) has the same id, but will use their transaction ids and seqs again. So a cursor names two
//     events.
//  3. `newest` has the largest transaction id x that the cursor's holder knows of, and xmax is x + 1. While that event
//     is there, x was never assigned again, and neither was any id below: what `seen` says of ids is true.
//  4. `last` is the event given last. It finds the loss of one that was given, whose id is not the largest.
//  5. An event that was trimmed away proves nothing, and that is not held against it. Nor is what this snapshot cannot
//     know yet: on a standby that is behind, or in a snapshot older than the cursor.
#pragma once

#include "all_cursor.hpp"
#include "in_flight.hpp"
#include "low_water.hpp"

namespace pg_doorbell {

uint64 history_id(Snapshot snapshot);

// Raises DB002 if the cursor is of another history.
void check_history(const AllCursor &cursor, Relation event, const LowWaterTable &low_waters, Snapshot snapshot,
				   const Unfinished &unfinished);

} // namespace pg_doorbell
