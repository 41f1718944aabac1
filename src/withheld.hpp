// What a reader of all streams must not be given yet, although it is visible.
//
//  1. Rows in flight are the cause: a visible row above one, in the same stream, has to wait for it.
//  2. Transactions are given whole: where one row has to wait, so do all rows of its transaction.
//  3. And in each stream so does what lies above those, with its transactions, and so on to the fixpoint.
//
// Withheld rows are the end of their stream, so one mark per stream, the first withheld seq, says it all. Found from
// the cause: for each stream with rows in flight, what is visible above the lowest; for each transaction there, its
// other rows; each lowers the mark of its stream. While nothing waits this costs one look per stream in flight. Memory
// is bounded by the marks, time by the withheld rows.
//
// What the reader has (`had`) never waits and makes nothing wait: in each stream it is below all that is in flight.
#pragma once

#include "all_cursor.hpp"
#include "in_flight.hpp"

namespace pg_doorbell {

// Sets the marks of `seen`; false if they are certainly too many for the text of a cursor.
bool find_withheld(Relation event, Snapshot snapshot, const Unfinished &unfinished, const Seen &had, Seen &seen);

} // namespace pg_doorbell
