#include "ring.hpp"

#include "args.hpp"
#include "doorbell/pointer.hpp"
#include "ring_table.hpp"
#include "ringer.hpp"
#include "tables.hpp"

namespace pg_doorbell {

enum RingMode { ring_auto, ring_commit, ring_worker, ring_off };

static const config_enum_entry ring_modes[] = {{"auto", ring_auto, false},
											   {"commit", ring_commit, false},
											   {"worker", ring_worker, false},
											   {"off", ring_off, false},
											   {nullptr, 0, false}};
static int ring_mode = ring_auto;

// What one nesting level of the transaction has to ring.
struct RingList {
	RingList *outer;
	int level;
	int count;
	bool everything; // more than max_rings streams: the rings below no longer matter
	Ring rings[max_rings];
};
static_assert(std::is_trivially_destructible_v<RingList>);

static RingList *innermost = nullptr;
static RingList *spare = nullptr;	   // dropped lists, so that a loop of savepoints does not eat memory
static bool mode_is_chosen = false;	   // for this transaction
static std::optional<int> pinned_slot; // of the ringer; nothing: rings at commit
static int64 new_appends = 0;

static RingList *list_of_level(int level)
{
	if (innermost != nullptr && innermost->level == level)
		return innermost;
	RingList *list = spare;
	if (list != nullptr)
		spare = list->outer;
	else
		list = static_cast<RingList *>(MemoryContextAlloc(TopTransactionContext, sizeof(RingList)));
	list->outer = innermost;
	list->level = level;
	list->count = 0;
	list->everything = false;
	innermost = list;
	return list;
}

static void drop_streams(RingList *list)
{
	for (int i = 0; i < list->count; i++)
		pfree(list->rings[i].stream);
	list->count = 0;
}

static void ring_everything(RingList *list)
{
	drop_streams(list);
	list->everything = true;
}

// Raises the stream's ring to `seq`; false when the list has none for it.
static bool raise_ring(RingList *list, std::string_view key, uint32 hash, int64 seq)
{
	for (int i = 0; i < list->count; i++) {
		Ring &ring = list->rings[i];
		if (ring.hash == hash && ring.key() == key) {
			ring.seq = Max(ring.seq, seq);
			return true;
		}
	}
	return false;
}

static void choose_mode()
{
	if (mode_is_chosen)
		return;
	if (ring_mode != ring_commit && ring_table_exists() && ringer_is_on())
		pinned_slot = pin_ring_slot();
	mode_is_chosen = true;
}

static void add_ring(const text *stream, int64 seq)
{
	choose_mode();
	RingList *list = list_of_level(GetCurrentTransactionNestLevel());
	if (list->everything)
		return;

	const std::string_view key = view_of(stream);
	const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char *>(key.data()), static_cast<int>(key.size()));
	if (raise_ring(list, key, hash, seq))
		return;
	if (list->count == max_rings) {
		ring_everything(list);
		return;
	}
	char *copy = static_cast<char *>(MemoryContextAlloc(TopTransactionContext, key.size()));
	std::memcpy(copy, key.data(), key.size());
	list->rings[list->count++] = Ring{copy, static_cast<uint32>(key.size()), hash, seq};
}

void note_ring(const text *stream, int64 seq, int64 appends)
{
	if (ring_mode == ring_off)
		return;
	add_ring(stream, seq);
	new_appends += appends;
}

void note_ring_for_prepared(const text *stream, int64 seq)
{
	add_ring(stream, seq);
}

static void post(const RingList *list)
{
	post_rings(*pinned_slot, list->rings, list->count, list->everything, new_appends);
	new_appends = 0;
}

static RingList *take_innermost()
{
	RingList *list = innermost;
	innermost = list->outer;
	return list;
}

static void keep_spare(RingList *list)
{
	list->outer = spare;
	spare = list;
}

// The rings of a committed subtransaction become its parent's.
static void merge_into_parent()
{
	RingList *child = innermost;
	if (child->outer == nullptr || child->outer->level < child->level - 1) {
		child->level--;
		return;
	}
	take_innermost();
	RingList *parent = innermost;
	if (child->everything)
		ring_everything(parent);
	for (int i = 0; i < child->count; i++) {
		const Ring &ring = child->rings[i];
		if (parent->everything || raise_ring(parent, ring.key(), ring.hash, ring.seq))
			pfree(ring.stream);
		else if (parent->count < max_rings)
			parent->rings[parent->count++] = ring;
		else {
			pfree(ring.stream);
			ring_everything(parent);
		}
	}
	keep_spare(child);
}

static void on_subtransaction(SubXactEvent event, SubTransactionId, SubTransactionId, void *)
{
	if (innermost == nullptr || innermost->level != GetCurrentTransactionNestLevel())
		return;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		merge_into_parent();
	else if (event == SUBXACT_EVENT_ABORT_SUB) {
		RingList *list = take_innermost();
		if (pinned_slot.has_value())
			post(list);
		drop_streams(list);
		keep_spare(list);
	}
}

static void queue_rings()
{
	if (innermost->everything)
		Async_Notify(doorbell::channel, doorbell::pointer_to_everything.data());
	for (int i = 0; i < innermost->count; i++) {
		const Ring &ring = innermost->rings[i];
		char pointer[doorbell::max_pointer_bytes + 1];
		doorbell::format_pointer(ring.key(), ring.seq, pointer);
		Async_Notify(doorbell::channel, pointer);
	}
}

static void forget_transaction()
{
	if (pinned_slot.has_value())
		unpin_ring_slot(*pinned_slot);
	pinned_slot.reset();
	mode_is_chosen = false;
	new_appends = 0;
	innermost = spare = nullptr; // the memory goes with the transaction
}

static void on_transaction(XactEvent event, void *)
{
	switch (event) {
	case XACT_EVENT_PRE_COMMIT:
		if (innermost != nullptr && !pinned_slot.has_value())
			queue_rings();
		break;
	case XACT_EVENT_PRE_PREPARE:
		if (innermost != nullptr && !pinned_slot.has_value())
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot PREPARE a transaction that rings the doorbell at commit"),
					errhint("Add pg_doorbell to shared_preload_libraries, or append with doorbell.ring_mode = off; "
							"subscribers then find the events by their sweep."));
		break;
	case XACT_EVENT_COMMIT:
	case XACT_EVENT_ABORT:
		if (innermost != nullptr && pinned_slot.has_value())
			post(innermost);
		forget_transaction();
		break;
	case XACT_EVENT_PREPARE: // whoever ends it rings: utility.cpp
		forget_transaction();
		break;
	default:
		break;
	}
}

// Without the table in shared memory there is no ringer to choose.
static bool check_ring_mode(int *mode, void **, GucSource)
{
	if (*mode != ring_worker || ring_table_exists() || process_shared_preload_libraries_in_progress)
		return true;
	GUC_check_errdetail("The ringer needs shared memory, which is given out at server start.");
	GUC_check_errhint("Add pg_doorbell to shared_preload_libraries and restart the server.");
	return false;
}

void define_ring_settings()
{
	DefineCustomEnumVariable(
		"doorbell.ring_mode", "How appended events ring the doorbell.",
		"worker: after the commit, by a background worker. commit: one NOTIFY per stream, delivered "
		"with the commit. off: no ring, for bulk loads; subscribers find the events by their "
		"sweep. auto: worker where the library is preloaded, else commit.",
		&ring_mode, ring_auto, ring_modes, PGC_USERSET, 0, check_ring_mode, nullptr, nullptr);
	RegisterXactCallback(on_transaction, nullptr);
	RegisterSubXactCallback(on_subtransaction, nullptr);
}

DOORBELL_SQL_FUNCTION(doorbell_ring)
{
	const text *stream = stream_argument(fcinfo, 0);
	const int64 seq = seq_argument(fcinfo, 1, "seq");
	PreventCommandDuringRecovery("doorbell.ring()");
	note_ring(stream, seq, 0);
	PG_RETURN_VOID();
}

} // namespace pg_doorbell
