// High water: the largest seq of a stream at or below which nothing is in flight.
//
// It is the largest VISIBLE seq below the stream's lowest in-flight row, or low water if there is none. Not simply the
// seq before that row: rows 1..5 committed, 6 rolled back, 7 in flight would give 6; if 7 rolls back too, 6 is assigned
// again, and a reader that began after 6 would never get it. Below a visible row nothing is assigned again, so high
// water never decreases.
#pragma once

#include "tables.hpp"

namespace pg_doorbell {

inline constexpr int64 no_seq = INT64_MAX; // above every seq

// The largest visible seq below `limit`; 0 when there is none.
int64 largest_visible_below(Walk &visible, text *stream, int64 limit);

int64 high_water(text *stream, Snapshot snapshot);

} // namespace pg_doorbell
