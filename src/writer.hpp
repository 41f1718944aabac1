// The event table opened for one call that appends: puts numbered rows and their index entries into it.
//
// 1. open() takes every relation lock that storing needs, so that nothing waits later, and refuses triggers that could
//    not run outside the stream's lock. Locks stay until the transaction ends.
// 2. store() is called with the stream's lock held. Rows go in by batches of a bounded number of slots.
// 3. Our three indexes are filled directly: an append costs two index entries, and a third with an event_id. When
//    somebody put another index or a trigger on the table, PostgreSQL's executor does that part.
// 4. fire_triggers() is called after the lock is released: AFTER ROW triggers run as the table's owner.
#pragma once

#include "append.hpp"

namespace pg_doorbell {

class EventWriter {
public:
	static EventWriter open(int count, bool with_ids); // with_ids: the events have an event_id
	void close();

	// Numbers and stores events from `first_seq` on; returns where the last one lies.
	ItemPointerData store(text *stream, const NewEvent *events, pg_uuid_t *event_id, int64 first_seq,
						  TimestampTz appended_at);
	void fire_triggers();

	Relation table() const { return table_; }
	Relation pkey() const { return pkey_; }
	Relation id_index() const { return id_index_; }

private:
	void open_for_executor();
	void insert_index_entries(TupleTableSlot *slot);

	Relation table_;
	Relation pkey_;
	Relation xid_index_;
	Relation id_index_;
	EState *estate_; // null: the table has our indexes and no trigger that fires
	ResultRelInfo *result_;
	Datum xid_;
	int count_;
	int slot_count_;
	TupleTableSlot **slots_;
	ItemPointerData *stored_; // where the rows went, for the triggers; null when there is none
};
static_assert(std::is_trivially_destructible_v<EventWriter>);

} // namespace pg_doorbell
