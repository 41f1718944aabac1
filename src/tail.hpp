// The end of a stream, as the last append left it in shared memory: so that the next one need not search the index.
//
// State: with the library preloaded, a fixed array of slots, chosen by the hash of the key. A slot is read and written
// under the stream's lock alone (stream_lock.hpp): equal slots have equal locks.
//
//  1. remember() is called when an append has stored its rows: the slot says where the last one lies.
//  2. recall() takes the slot's content OUT, so that an append that fails leaves nothing behind. It believes it only
//     after a look at that row, in a buffer that still holds its page: is it live, and of that stream and seq?
//  3. If anything is different, the caller searches the primary key.
//
// Why it is right: all appends of the server write the slot, or take it out, under the lock. So while the slot has a
// stream's row, no append to that stream came after that row, and if the row is live it is the largest live one.
// If it is not (rolled back, trimmed) or is another one by now (vacuumed, rewritten), the index has the truth.
//
// Rows that do not come from append (a restored dump) call distrust() before they go in: until a transaction that did
// so is known to have ended, the index is searched for all streams of that slot.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

// The next event gets seq + 1 and is stamped no earlier than `appended_at`.
struct Tail {
	int64 seq;
	TimestampTz appended_at;
};

uint64 hash_of(const text *stream);

void request_tails(); // while the library is preloaded

// Both with the stream's lock held; without preload they do nothing.
std::optional<Tail> recall_tail(Relation event, const text *stream, uint64 hash);
void remember_tail(Relation event, uint64 hash, const Tail &tail, const ItemPointerData &row);

void distrust_tail(const text *stream); // takes the stream's lock itself

} // namespace pg_doorbell
