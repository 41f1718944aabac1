// The table of rings in shared memory: what finished transactions want rung, until the ringer takes it.
//
// It exists when the library is in shared_preload_libraries. All of it is under one LWLock, held for microseconds:
//
//  1. A slot per database: its ringer, a queue of rings, counters. The first append of a database takes one.
//  2. A ring per waiting stream, found by hash: a second one for the same stream only raises its seq. The rings of all
//     databases come from one array; when that is used up, the queue of the database at hand becomes one "*".
//  3. A transaction pins its slot at its first append, so that the ringer stays while it may be needed, and posts its
//     rings after it has become visible or has rolled back. Posting allocates nothing, raises nothing and waits for
//     nothing but the lock.
//  4. The ringer takes rings out in batches. A ring is in the table or with the ringer, so none is swallowed; rings
//     that it could not send go back as a "*".
//
// A crash of the server loses the table: subscribers find the events by their sweep.
#pragma once

#include "pg.hpp"

#include "doorbell/pointer.hpp"

namespace pg_doorbell {

// A ring as a transaction asks for it.
struct Ring {
	char *stream;
	uint32 length;
	uint32 hash;
	int64 seq;

	std::string_view key() const { return std::string_view(stream, length); }
};

// A ring as the ringer takes it.
struct TakenRing {
	char stream[doorbell::max_stream_bytes];
	uint32 length;
	int64 seq;
	TimestampTz asked_at; // by the first transaction that it stands for
};

struct RingCounters {
	int64 appends;	 // events appended by transactions that asked for rings
	int64 asked;	 // rings that transactions asked for
	int64 coalesced; // of those, merged with one that was waiting
	int64 overflows; // times that the table was full
	int64 rung;		 // pointers sent
	int64 batches;	 // NOTIFY transactions
	int64 latency;	 // µs from the first ask to the ring, summed over all pointers sent
	int64 latency_max;
	int64 failures; // NOTIFY transactions that failed
};

struct RingerStatus {
	int pid; // 0: none
	int waiting;
	RingCounters counters;
	char last_error[256]; // of the last batch; empty when it went well
};

void define_ring_table_settings(); // while the library is preloaded
bool ring_table_exists();

// The transactions' side. A pin is a slot's number.
std::optional<int> pin_ring_slot(); // starts the ringer if there is none; nothing when that cannot be
void unpin_ring_slot(int slot);
void post_rings(int slot, const Ring *rings, int count, bool everything, int64 appends);

// The ringer's side. It enters the slot that it was started for, and leaves it at its exit.
void enter_ring_slot(int slot);
struct Batch {
	TakenRing *rings;
	int count;
	bool everything;
	TimestampTz everything_asked_at;
	int64 appends; // that it stands for
};
bool take_rings(int slot, Batch &batch, int limit); // false: nothing waits, and the next post wakes us
bool leave_ring_slot_if_idle(int slot);
void report_batch(int slot, const Batch &batch, TimestampTz done);
void report_failure(int slot, const char *message);
bool ringer_must_stop(int slot);

Oid ring_slot_database(int slot);

// Asks a database's ringer to go away at once. The next append would start it again.
void stop_ringer(Oid database);
std::optional<RingerStatus> ringer_status(Oid database);

} // namespace pg_doorbell
