#include "withheld.hpp"

#include "high_water.hpp"

namespace pg_doorbell {
namespace {

struct Stream {
	std::string_view name; // the hash table's key; it lies in `key`
	text *key;
	int64 mark;	  // the lowest seq known to be withheld
	int64 walked; // from here on, the transactions of the rows have been taken in
	Stream *next_waiting;
	bool waiting;
};

uint32 hash_name(const void *key, Size)
{
	const auto *name = static_cast<const std::string_view *>(key);
	return hash_bytes(reinterpret_cast<const unsigned char *>(name->data()), static_cast<int>(name->size()));
}

int compare_names(const void *a, const void *b, Size)
{
	return *static_cast<const std::string_view *>(a) != *static_cast<const std::string_view *>(b);
}

int compare_marks(const void *a, const void *b)
{
	return view_of(static_cast<const Mark *>(a)->stream).compare(view_of(static_cast<const Mark *>(b)->stream));
}

constexpr size_t probed_streams = 64;
constexpr size_t taken_transactions = 1024;

class Withheld {
public:
	Withheld(Relation event, Snapshot snapshot, const Unfinished &unfinished, const Seen &had)
		: unfinished_(unfinished), had_(had), waiting_(nullptr), characters_(0),
		  probed_(static_cast<Probed *>(palloc0(sizeof(Probed) * probed_streams))),
		  taken_(static_cast<uint64 *>(palloc0(sizeof(uint64) * taken_transactions)))
	{
		HASHCTL control = {};
		control.keysize = sizeof(std::string_view);
		control.entrysize = sizeof(Stream);
		control.hash = hash_name;
		control.match = compare_names;
		control.hcxt = CurrentMemoryContext;
		streams_ = hash_create("doorbell withheld streams", 64, &control,
							   HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
		probe_ = Walk::over(event, find_tables().event_pkey, snapshot, 2);
		rows_ = Walk::over(event, probe_.index, snapshot, 3);
		transaction_ = Walk::over(event, find_tables().event_xid_idx, snapshot, 1);
	}

	void end()
	{
		transaction_.end();
		rows_.end();
		probe_.end();
	}

	bool fits() const { return characters_ <= max_seen_characters; }

	void probe(TupleTableSlot *in_flight);
	void probe_own();
	void spread();
	void set_marks(Seen &seen);

private:
	// The streams that were probed last, so that a long append in flight costs one look.
	struct Probed {
		uint16 bytes;
		char name[512]; // the longest key
		int64 seq;
	};

	bool is_new(Walk &walk)
	{
		const uint64 xid = walk.xid();
		return !unfinished_.has(xid) && !had_.has(view_of(DatumGetTextPP(walk.column(event_stream))), walk.seq(), xid);
	}
	void withhold(text *key, int64 seq);
	void withhold_transaction(uint64 xid);

	const Unfinished &unfinished_;
	const Seen &had_;
	HTAB *streams_;
	Stream *waiting_;
	size_t characters_;
	Walk probe_;
	Walk rows_;
	Walk transaction_;
	Probed *probed_;
	uint64 *taken_; // transactions that were taken in; one that is taken in twice does no harm
};
static_assert(std::is_trivially_destructible_v<Withheld>);

void Withheld::withhold(text *key, int64 seq)
{
	std::string_view name = view_of(key);
	bool found;
	auto *stream = static_cast<Stream *>(hash_search(streams_, &name, HASH_ENTER, &found));
	if (!found) {
		stream->key = cstring_to_text_with_len(name.data(), static_cast<int>(name.size()));
		stream->name = view_of(stream->key);
		stream->mark = stream->walked = no_seq;
		stream->waiting = false;
		characters_ += least_mark_characters(name);
	}
	if (seq >= stream->mark)
		return;
	stream->mark = seq;
	if (!stream->waiting) {
		stream->waiting = true;
		stream->next_waiting = waiting_;
		waiting_ = stream;
	}
}

// Withholds what is visible above a row in flight.
void Withheld::probe(TupleTableSlot *in_flight)
{
	bool isnull;
	text *key = DatumGetTextPP(slot_getattr(in_flight, event_stream, &isnull));
	const int64 seq = DatumGetInt64(slot_getattr(in_flight, event_seq, &isnull));
	const std::string_view name = view_of(key);
	Probed &probed = probed_[hash_name(&name, 0) % probed_streams];
	if (name == std::string_view(probed.name, probed.bytes)) {
		if (seq >= probed.seq)
			return;
	} else {
		probed.bytes = static_cast<uint16>(Min(name.size(), sizeof probed.name));
		std::memcpy(probed.name, name.data(), probed.bytes);
	}
	probed.seq = seq;

	ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, key), seq_key(2, BTGreaterStrategyNumber, seq)};
	probe_.seek(keys, 2);
	while (probe_.next()) {
		if (is_new(probe_)) {
			withhold(key, probe_.seq());
			return;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

// What our own transaction appended waits for its commit like anything else, although we see it.
void Withheld::probe_own()
{
	const uint64 own = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
	if (own == 0)
		return;
	ScanKeyData key = xid_key(BTEqualStrategyNumber, own);
	transaction_.seek(&key, 1);
	while (fits() && transaction_.next()) {
		probe(transaction_.slot);
		CHECK_FOR_INTERRUPTS();
	}
}

void Withheld::withhold_transaction(uint64 xid)
{
	uint64 &taken = taken_[xid % taken_transactions];
	if (taken == xid)
		return;
	taken = xid;
	ScanKeyData key = xid_key(BTEqualStrategyNumber, xid);
	transaction_.seek(&key, 1);
	while (fits() && transaction_.next()) {
		if (is_new(transaction_))
			withhold(DatumGetTextPP(transaction_.column(event_stream)), transaction_.seq());
		CHECK_FOR_INTERRUPTS();
	}
}

// From the marks so far to the fixpoint.
void Withheld::spread()
{
	while (waiting_ != nullptr && fits()) {
		Stream *stream = waiting_;
		waiting_ = stream->next_waiting;
		stream->waiting = false;
		ScanKeyData keys[3] = {text_key(1, BTEqualStrategyNumber, stream->key),
							   seq_key(2, BTGreaterStrategyNumber, stream->mark - 1),
							   seq_key(2, BTLessStrategyNumber, stream->walked)};
		stream->walked = stream->mark;
		rows_.seek(keys, 3);
		while (fits() && rows_.next()) {
			if (is_new(rows_))
				withhold_transaction(rows_.xid());
			CHECK_FOR_INTERRUPTS();
		}
	}
}

void Withheld::set_marks(Seen &seen)
{
	seen.marks = static_cast<Mark *>(palloc(sizeof(Mark) * (hash_get_num_entries(streams_) + 1)));
	seen.mark_count = 0;
	HASH_SEQ_STATUS status;
	hash_seq_init(&status, streams_);
	while (auto *stream = static_cast<Stream *>(hash_seq_search(&status)))
		seen.marks[seen.mark_count++] = Mark{stream->key, stream->mark};
	qsort(seen.marks, seen.mark_count, sizeof(Mark), compare_marks);
}

} // namespace

bool find_withheld(Relation event, Snapshot snapshot, const Unfinished &unfinished, const Seen &had, Seen &seen)
{
	Withheld withheld(event, snapshot, unfinished, had);
	InFlightRows in_flight = InFlightRows::of(event, snapshot);
	while (withheld.fits() && in_flight.next())
		withheld.probe(in_flight.slot());
	in_flight.end();
	withheld.probe_own();
	withheld.spread();
	const bool fits = withheld.fits();
	if (fits)
		withheld.set_marks(seen);
	withheld.end();
	return fits;
}

} // namespace pg_doorbell
