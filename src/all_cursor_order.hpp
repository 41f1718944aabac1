// The order of cursors over all streams: which of two readers has been given what the other one has.
//
//  1. A Seen includes another one if nothing that the other one has is left out: by its xmax, by an excluded
//  transaction, by
//     a mark. A mark where the smaller one has none leaves out what became visible since that one was taken: then xmax
//     has risen, or a transaction that was excluded has ended. If neither is so, it is the other way round: the mark
//     was there first, and the smaller one has what it leaves out.
//  2. A cursor without `before` has all of `seen`, so it precedes what includes that. One within a window precedes the
//  later
//     places in that window, its end, and everything that includes all of it.
//  3. Cursors of two histories have no order.
//
// Readers whose cursors come one from the other are always in order; two that are not may have none, and then neither
// precedes the other one.
#pragma once

#include "all_cursor.hpp"

namespace pg_doorbell {

bool precedes(const AllCursor &a, const AllCursor &b); // or is the same

// Whether the cursor's holder has been given an event.
bool has_given(const AllCursor &cursor, std::string_view stream, int64 seq, uint64 xid);

} // namespace pg_doorbell
