#include "ring_table.hpp"

#include "ringer.hpp"

namespace pg_doorbell {

static constexpr int max_databases = 64;
static constexpr int none = -1;
static constexpr int starting_timeout_ms = 10000; // after which a ringer that never came is started again

enum class Ringer { absent, starting, present };

struct WaitingRing {
	Oid database;
	uint32 hash;
	uint32 length;
	int next_in_bucket;
	int next_in_queue; // or in the list of free ones
	int64 seq;
	TimestampTz asked_at;
	char stream[doorbell::max_stream_bytes];
};

struct Slot {
	Oid database; // InvalidOid: free
	Ringer ringer;
	TimestampTz starting_since;
	int pid;
	Latch *latch;
	bool asleep; // the next post must wake it
	bool stop;
	int pins;
	int first;
	int last;
	int waiting;
	bool everything;
	TimestampTz everything_asked_at;
	RingCounters counters;
	int64 appends_taken; // of those counted, rung or with the ringer
	char last_error[sizeof(RingerStatus::last_error)];
};

struct RingTable {
	LWLock *lock;
	int first_free;
	Slot slots[max_databases];
	// behind it: the rings, then the buckets
};
static_assert(std::is_trivially_destructible_v<RingTable>);

static int table_size = 4096;
static RingTable *table = nullptr;
static WaitingRing *rings = nullptr;
static int *buckets = nullptr;
static int entered_slot = none;

static shmem_request_hook_type previous_request_hook = nullptr;
static shmem_startup_hook_type previous_startup_hook = nullptr;
static constexpr const char *tranche = "pg_doorbell";

static int bucket_count()
{
	return static_cast<int>(pg_nextpower2_32(static_cast<uint32>(table_size)));
}

static Size rings_offset()
{
	return MAXALIGN(sizeof(RingTable));
}

static Size buckets_offset()
{
	return rings_offset() + MAXALIGN(sizeof(WaitingRing) * static_cast<Size>(table_size));
}

static Size total_size()
{
	return buckets_offset() + sizeof(int) * static_cast<Size>(bucket_count());
}

static void request_memory()
{
	if (previous_request_hook != nullptr)
		previous_request_hook();
	RequestAddinShmemSpace(total_size());
	RequestNamedLWLockTranche(tranche, 1);
}

static void set_up_memory()
{
	if (previous_startup_hook != nullptr)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	bool found;
	table = static_cast<RingTable *>(ShmemInitStruct("pg_doorbell rings", total_size(), &found));
	rings = reinterpret_cast<WaitingRing *>(reinterpret_cast<char *>(table) + rings_offset());
	buckets = reinterpret_cast<int *>(reinterpret_cast<char *>(table) + buckets_offset());
	if (!found) {
		std::memset(table, 0, sizeof(RingTable));
		table->lock = &GetNamedLWLockTranche(tranche)->lock;
		for (int i = 0; i < table_size; i++)
			rings[i].next_in_queue = i + 1 < table_size ? i + 1 : none;
		for (int i = 0; i < bucket_count(); i++)
			buckets[i] = none;
	}
	LWLockRelease(AddinShmemInitLock);
}

void define_ring_table_settings()
{
	DefineCustomIntVariable("doorbell.ring_table_size", "Streams that can wait to be rung at the same time.",
							"Shared by all databases; each takes about 600 bytes of shared memory. When more wait, "
							"subscribers are told to look at everything they follow.",
							&table_size, 4096, 64, 1 << 20, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = set_up_memory;
}

bool ring_table_exists()
{
	return table != nullptr;
}

static int find_slot(Oid database)
{
	for (int i = 0; i < max_databases; i++)
		if (table->slots[i].database == database)
			return i;
	return none;
}

static int take_slot(Oid database)
{
	int slot = find_slot(database);
	for (int i = 0; slot == none && i < max_databases; i++) {
		Slot &old = table->slots[i];
		const bool unused = old.database == InvalidOid ||
							(old.ringer == Ringer::absent && old.pins == 0 && old.waiting == 0 && !old.everything);
		if (!unused)
			continue;
		old = Slot{};
		old.database = database;
		old.first = old.last = none;
		slot = i;
	}
	return slot;
}

std::optional<int> pin_ring_slot()
{
	const TimestampTz now = GetCurrentStatementStartTimestamp();
	bool start = false;
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	const int number = take_slot(MyDatabaseId);
	if (number != none) {
		Slot &slot = table->slots[number];
		start = slot.ringer == Ringer::absent ||
				(slot.ringer == Ringer::starting &&
				 TimestampDifferenceExceeds(slot.starting_since, now, starting_timeout_ms));
		if (start) {
			slot.ringer = Ringer::starting;
			slot.starting_since = now;
		}
		slot.pins++;
	}
	LWLockRelease(table->lock);
	if (number == none)
		return std::nullopt;

	if (start && !start_ringer(number)) {
		LWLockAcquire(table->lock, LW_EXCLUSIVE);
		if (table->slots[number].ringer == Ringer::starting)
			table->slots[number].ringer = Ringer::absent;
		table->slots[number].pins--;
		LWLockRelease(table->lock);
		return std::nullopt;
	}
	return number;
}

void unpin_ring_slot(int number)
{
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	table->slots[number].pins--;
	LWLockRelease(table->lock);
}

static int *bucket_of(uint32 hash)
{
	return &buckets[hash & static_cast<uint32>(bucket_count() - 1)];
}

static void free_ring(int number)
{
	WaitingRing &ring = rings[number];
	int *link = bucket_of(ring.hash);
	while (*link != number)
		link = &rings[*link].next_in_bucket;
	*link = ring.next_in_bucket;
	ring.next_in_queue = table->first_free;
	table->first_free = number;
}

static void queue_everything(Slot &slot, TimestampTz asked_at)
{
	while (slot.first != none) {
		const int number = slot.first;
		slot.first = rings[number].next_in_queue;
		asked_at = Min(asked_at, rings[number].asked_at);
		free_ring(number);
	}
	slot.last = none;
	slot.waiting = 0;
	slot.everything = true;
	slot.everything_asked_at = asked_at;
}

static WaitingRing *find_waiting(Oid database, const Ring &ring)
{
	for (int i = *bucket_of(ring.hash); i != none; i = rings[i].next_in_bucket) {
		WaitingRing &waiting = rings[i];
		if (waiting.hash == ring.hash && waiting.database == database && waiting.length == ring.length &&
			std::memcmp(waiting.stream, ring.stream, ring.length) == 0)
			return &waiting;
	}
	return nullptr;
}

static void post_ring(Slot &slot, const Ring &ring, TimestampTz now)
{
	slot.counters.asked++;
	WaitingRing *waiting = slot.everything ? nullptr : find_waiting(slot.database, ring);
	if (waiting != nullptr)
		waiting->seq = Max(waiting->seq, ring.seq);
	if (waiting != nullptr || slot.everything) {
		slot.counters.coalesced++;
		return;
	}
	if (table->first_free == none) {
		slot.counters.overflows++;
		queue_everything(slot, now);
		return;
	}
	const int number = table->first_free;
	WaitingRing &added = rings[number];
	table->first_free = added.next_in_queue;
	added.database = slot.database;
	added.hash = ring.hash;
	added.length = ring.length;
	added.seq = ring.seq;
	added.asked_at = now;
	std::memcpy(added.stream, ring.stream, ring.length);
	added.next_in_bucket = *bucket_of(ring.hash);
	*bucket_of(ring.hash) = number;
	added.next_in_queue = none;
	(slot.last == none ? slot.first : rings[slot.last].next_in_queue) = number;
	slot.last = number;
	slot.waiting++;
}

void post_rings(int number, const Ring *asked, int count, bool everything, int64 appends)
{
	const TimestampTz now = GetCurrentTimestamp();
	Latch *wake = nullptr;
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[number];
	slot.counters.appends += appends;
	if (everything) {
		slot.counters.asked++;
		if (slot.everything)
			slot.counters.coalesced++;
		else
			queue_everything(slot, now);
	}
	for (int i = 0; i < count; i++)
		post_ring(slot, asked[i], now);
	if (slot.asleep) {
		slot.asleep = false;
		wake = slot.latch;
	}
	LWLockRelease(table->lock);
	if (wake != nullptr)
		SetLatch(wake);
}

static void forget_ringer(Slot &slot)
{
	slot.ringer = Ringer::absent;
	slot.pid = 0;
	slot.latch = nullptr;
	slot.asleep = slot.stop = false;
}

static void leave_ring_slot(int, Datum)
{
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[entered_slot];
	if (slot.pid == MyProcPid)
		forget_ringer(slot);
	LWLockRelease(table->lock);
}

void enter_ring_slot(int number)
{
	entered_slot = number;
	before_shmem_exit(leave_ring_slot, Datum(0));
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[number];
	const bool taken = slot.ringer == Ringer::present;
	if (!taken) {
		slot.ringer = Ringer::present;
		slot.pid = MyProcPid;
		slot.latch = MyLatch;
	}
	LWLockRelease(table->lock);
	if (taken)
		proc_exit(0); // two were started; the other one was quicker
}

Oid ring_slot_database(int number)
{
	LWLockAcquire(table->lock, LW_SHARED);
	const Oid database = table->slots[number].database;
	LWLockRelease(table->lock);
	return database;
}

bool take_rings(int number, Batch &batch, int limit)
{
	batch.count = 0;
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[number];
	batch.everything = slot.everything;
	batch.everything_asked_at = slot.everything_asked_at;
	slot.everything = false;
	batch.appends = slot.counters.appends - slot.appends_taken;
	slot.appends_taken = slot.counters.appends;
	while (batch.count < limit && slot.first != none) {
		const int taken = slot.first;
		const WaitingRing &ring = rings[taken];
		TakenRing &out = batch.rings[batch.count++];
		std::memcpy(out.stream, ring.stream, ring.length);
		out.length = ring.length;
		out.seq = ring.seq;
		out.asked_at = ring.asked_at;
		slot.first = ring.next_in_queue;
		slot.waiting--;
		free_ring(taken);
	}
	if (slot.first == none)
		slot.last = none;
	const bool some = batch.everything || batch.count > 0;
	slot.asleep = !some;
	LWLockRelease(table->lock);
	return some;
}

bool leave_ring_slot_if_idle(int number)
{
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[number];
	const bool idle = slot.pins == 0 && slot.first == none && !slot.everything;
	if (idle)
		forget_ringer(slot); // from here on, an append starts a new one
	LWLockRelease(table->lock);
	return idle;
}

void report_batch(int number, const Batch &batch, TimestampTz done)
{
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[number];
	RingCounters &counters = slot.counters;
	const auto count = [&counters, done](TimestampTz asked_at) {
		counters.rung++;
		counters.latency += done - asked_at;
		counters.latency_max = Max(counters.latency_max, done - asked_at);
	};
	counters.batches++;
	if (batch.everything)
		count(batch.everything_asked_at);
	for (int i = 0; i < batch.count; i++)
		count(batch.rings[i].asked_at);
	slot.last_error[0] = '\0';
	LWLockRelease(table->lock);
}

void report_failure(int number, const char *message)
{
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	Slot &slot = table->slots[number];
	slot.counters.failures++;
	strlcpy(slot.last_error, message, sizeof(slot.last_error));
	queue_everything(slot, GetCurrentTimestamp());
	LWLockRelease(table->lock);
}

bool ringer_must_stop(int number)
{
	LWLockAcquire(table->lock, LW_SHARED);
	const bool stop = table->slots[number].stop;
	LWLockRelease(table->lock);
	return stop;
}

void stop_ringer(Oid database)
{
	if (table == nullptr)
		return;
	Latch *wake = nullptr;
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	const int number = find_slot(database);
	if (number != none && table->slots[number].ringer != Ringer::absent) {
		table->slots[number].stop = true;
		wake = table->slots[number].latch;
	}
	LWLockRelease(table->lock);
	if (wake != nullptr)
		SetLatch(wake);
}

std::optional<RingerStatus> ringer_status(Oid database)
{
	if (table == nullptr)
		return std::nullopt;
	RingerStatus status = {};
	LWLockAcquire(table->lock, LW_SHARED);
	const int number = find_slot(database);
	if (number != none) {
		const Slot &slot = table->slots[number];
		status.pid = slot.pid;
		status.waiting = slot.waiting + (slot.everything ? 1 : 0);
		status.counters = slot.counters;
		strlcpy(status.last_error, slot.last_error, sizeof(status.last_error));
	}
	LWLockRelease(table->lock);
	return status;
}

} // namespace pg_doorbell
