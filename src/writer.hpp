// The event table opened for one call that appends: puts numbered rows and their index entries into it.
//
// 1. open() takes every relation lock that storing needs, so that nothing waits later, and refuses triggers that could
//    not run outside the stream's lock.
// 2. store() is called with the stream's lock held. Rows go in by batches of a bounded number of slots.
// 3. fire_triggers() is called after the lock is released: AFTER ROW triggers run as the table's owner.
#pragma once

#include "append.hpp"

namespace pg_doorbell {

class EventWriter {
public:
	static EventWriter open(int count);
	void close(); // the locks stay until the transaction ends

	// Numbers and stores events from `first_seq` on.
	void store(text *stream, const NewEvent *events, pg_uuid_t *event_id, int64 first_seq, TimestampTz appended_at);
	void fire_triggers();

	Relation table() const { return table_; }
	Relation index(Oid oid) const; // one of the table's, by oid

private:
	Relation table_;
	EState *estate_;
	ResultRelInfo *result_;
	Datum xid_;
	int count_;
	int slot_count_;
	TupleTableSlot **slots_;
	ItemPointerData *stored_; // where the rows went, for the triggers; null when there is none
};
static_assert(std::is_trivially_destructible_v<EventWriter>);

} // namespace pg_doorbell
