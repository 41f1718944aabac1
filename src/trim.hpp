// Trimming: old events go, and low water says so, in one transaction.
//
// 1. Never beyond high water, so that nothing in flight is passed over. That is the caller's part.
// 2. A trim holds the stream's trim lock until its transaction ends. It is a heavyweight lock of its own kind, which
//    only trims take: two of one stream take turns, and retention, which tries for it, never waits for another one.
// 3. The stream's low water is raised first, to the seq of the last event that goes. No append waits for its row: appends
//    read low water with a snapshot, and only when the stream has no live row. Beside it stands which transaction
//    appended that event, for readers of all streams (window.hpp).
// 4. Then the events are deleted. Until the commit, appends count them as live, so the seq goes on from them; after it,
//    from low water. Either way no seq is used twice.
//
// What runs SQL here needs a pinned search_path, and the rights of the extension's owner.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

void lock_for_trim(text *stream);
bool try_lock_for_trim(text *stream); // false: another transaction trims it

// Removes the events in (after, through], and raises low water to the last of them. Up to `after` there must be none: a
// scan that begins there does not pass the index entries of those that are gone. Returns how many.
int64 trim_events(text *stream, int64 after, int64 through);

} // namespace pg_doorbell
