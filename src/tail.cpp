#include "tail.hpp"

#include "stream_lock.hpp"
#include "tables.hpp"

namespace pg_doorbell {

static constexpr int slot_count = 16384;
static_assert(slot_count % StreamLock::count == 0, "two streams of one slot must have the same lock");

struct TailSlot {
	pg::Storage storage; // of the event table, which tells databases apart, too
	uint64 hash;
	Tail tail;
	ItemPointerData row;
	Buffer buffer;	// where the row's page was; invalid: the slot is empty, as it stays while `foreign` is set
	uint64 foreign; // the youngest transaction that stored rows without append, if one may be open; else 0
};

static TailSlot *slots = nullptr;
static shmem_request_hook_type previous_request_hook = nullptr;
static shmem_startup_hook_type previous_startup_hook = nullptr;

static void request_memory()
{
	if (previous_request_hook != nullptr)
		previous_request_hook();
	RequestAddinShmemSpace(sizeof(TailSlot) * slot_count);
}

static void set_up_memory()
{
	if (previous_startup_hook != nullptr)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	bool found;
	slots = static_cast<TailSlot *>(ShmemInitStruct("pg_doorbell tails", sizeof(TailSlot) * slot_count, &found));
	if (!found)
		std::memset(slots, 0, sizeof(TailSlot) * slot_count);
	LWLockRelease(AddinShmemInitLock);
}

void request_tails()
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = set_up_memory;
}

uint64 hash_of(const text *stream)
{
	const std::string_view key = view_of(stream);
	return hash_bytes_extended(reinterpret_cast<const unsigned char *>(key.data()), static_cast<int>(key.size()), 0);
}

static TailSlot &slot_of(uint64 hash)
{
	return slots[hash % slot_count];
}

// Whether a transaction that stored rows without append may still be open.
static bool is_distrusted(TailSlot &slot)
{
	if (slot.foreign == 0)
		return false;
	if (!ActiveSnapshotSet() || with_epoch(GetActiveSnapshot()->xmin) <= slot.foreign)
		return true;
	slot.foreign = 0;
	return false;
}

static bool is_live_row(Relation event, Buffer buffer, const ItemPointerData &tid, const text *stream, int64 seq)
{
	SnapshotData dirty;
	InitDirtySnapshot(dirty);
	const Page page = BufferGetPage(buffer);
	const OffsetNumber number = ItemPointerGetOffsetNumber(&tid);
	if (number > PageGetMaxOffsetNumber(page) || !ItemIdIsNormal(PageGetItemId(page, number)))
		return false;
	const ItemId item = PageGetItemId(page, number);
	HeapTupleData row;
	row.t_tableOid = RelationGetRelid(event);
	row.t_self = tid;
	row.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
	row.t_len = ItemIdGetLength(item);
	if (!HeapTupleSatisfiesVisibility(&row, &dirty, buffer))
		return false;
	bool isnull;
	const TupleDesc columns = RelationGetDescr(event);
	const auto *key =
		reinterpret_cast<const text *>(DatumGetPointer(heap_getattr(&row, event_stream, columns, &isnull)));
	return !VARATT_IS_EXTERNAL(key) && !VARATT_IS_COMPRESSED(key) && view_of(key) == view_of(stream) &&
		   DatumGetInt64(heap_getattr(&row, event_seq, columns, &isnull)) == seq;
}

std::optional<Tail> recall_tail(Relation event, const text *stream, uint64 hash)
{
	if (slots == nullptr)
		return std::nullopt;
	TailSlot &slot = slot_of(hash);
	if (is_distrusted(slot) || slot.buffer == InvalidBuffer || slot.hash != hash)
		return std::nullopt;
	const Buffer buffer = slot.buffer;
	slot.buffer = InvalidBuffer;
	if (!pg::is_same_storage(slot.storage, event) ||
		!pg::pin_if_there(slot.storage, ItemPointerGetBlockNumber(&slot.row), buffer))
		return std::nullopt;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	const bool live = is_live_row(event, buffer, slot.row, stream, slot.tail.seq);
	UnlockReleaseBuffer(buffer);
	if (!live)
		return std::nullopt;
	return slot.tail;
}

void remember_tail(Relation event, uint64 hash, const Tail &tail, const ItemPointerData &row)
{
	if (slots == nullptr)
		return;
	TailSlot &slot = slot_of(hash);
	if (slot.foreign != 0)
		return;
	slot.storage = pg::storage_of(event);
	slot.hash = hash;
	slot.tail = tail;
	slot.row = row;
	slot.buffer = PrefetchBuffer(event, MAIN_FORKNUM, ItemPointerGetBlockNumber(&row)).recent_buffer;
}

void distrust_tail(const text *stream)
{
	if (slots == nullptr)
		return;
	const uint64 hash = hash_of(stream);
	const uint64 xid = U64FromFullTransactionId(GetTopFullTransactionId());
	StreamLock lock(hash);
	lock.acquire();
	TailSlot &slot = slot_of(hash);
	slot.buffer = InvalidBuffer;
	slot.foreign = Max(slot.foreign, xid);
	lock.release();
}

} // namespace pg_doorbell
