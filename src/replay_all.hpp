// Replaying all streams: every committed event once, whole transactions, in seq order inside each stream.
//
// A sequence or a clock cannot do that, because transactions commit in another order than they append. A snapshot can:
//
//  1. What a reader has been given is a Seen (all_cursor.hpp), a snapshot that can be text. A read by one who has
//     `before` opens a window: from its own snapshot it makes a larger Seen, `seen`, and gives what lies between.
//  2. `seen` has what is visible now, but for what has to wait behind a row in flight (withheld.hpp).
//  3. Inside the window rows are ordered by (stream, seq), and the position is the last one given. The window stays as
//     it is until it is used up, whatever commits meanwhile; then the next one is opened.
//
// Each event once: the windows of a reader are disjoint, and an event is in the first one whose `seen` has it.
//
// In seq order: let n < m be events of one stream, and m be in `seen`. n had its index entry before m was assigned
// (append.hpp), so who sees m finds n. Had it been in flight then, m would have been withheld. It was not rolled back,
// for it is an event. So it was visible; and were it withheld, so were m, being above it. So n is in `seen` too: in
// each stream a Seen is a prefix of the events, and n comes in an earlier window than m, or before it in the same one.
//
// Whole transactions: those that are visible are so as a whole, and are withheld as a whole.
//
// Nothing is lost: an event that is not in `seen` is of a transaction that was unfinished, so it is excluded or has an
// id from xmax on, or is above its stream's mark. A later snapshot sees it, no earlier Seen has it, and it waits only
// for transactions that were open when it was appended, or that wait for such themselves.
//
//  4. xmax is not the snapshot's. It is one above the largest transaction id that a visible event has, or a trimmed one
//     had. Ids between the two are of no event that is visible. To take them as not seen changes nothing, but it makes
//     the cursor true also on a server that lost those transactions and assigns their ids again, as long as that event
//     is there (history.hpp). And it does not grow old while nothing is appended.
//  5. Our own transaction is unfinished, although we see its rows: they come after its commit.
//  6. A snapshot older than the cursor, as on a standby that is behind, gives nothing. It could take a row that is not
//     there yet for one that is not in the window.
//
// Limits. A transaction that stays open costs a reader as long as it holds something back: each read looks at all rows
// that are withheld. When their streams, or the open transactions, are too many for the text of a cursor (3,500
// characters), nothing is given until that has passed. Whoever moves from the primary to a standby waits for
// transactions that are open there with savepoints, because a standby cannot tell their ids from those of top-level
// transactions. And who reads by prefix keeps the cursor while nothing comes of those streams, so each read looks at
// all that came of others.
#pragma once

#include "pg.hpp"
