// Listing streams without reading their events.
//
// 1. The streams that have visible events come from the primary key by a skip scan: after each stream, the scan starts
//    again behind its key. Those that were trimmed or configured come from doorbell.stream. Both are in key order and
//    are merged.
// 2. What is in flight is read once, sorted by key, and merged too, for the high waters.
#include "args.hpp"
#include "high_water.hpp"
#include "in_flight.hpp"
#include "low_water.hpp"

namespace pg_doorbell {

// The lowest seq of a stream that a transaction has in flight.
struct Pending {
	std::string_view stream;
	int64 seq;
};

static int compare_pending(const void *a, const void *b)
{
	const auto *left = static_cast<const Pending *>(a);
	const auto *right = static_cast<const Pending *>(b);
	const int order = left->stream.compare(right->stream);
	return order != 0 ? order : (left->seq > right->seq) - (left->seq < right->seq);
}

// In key order, and by seq within a stream. Rows of one transaction arrive together, so runs are folded.
class PendingList {
public:
	static PendingList read(Relation event, Snapshot snapshot)
	{
		PendingList list{static_cast<Pending *>(palloc(sizeof(Pending) * 64)), 0, 64, 0};
		InFlightRows rows = InFlightRows::of(event, snapshot);
		while (rows.next()) {
			bool isnull;
			const std::string_view stream = view_of(DatumGetTextPP(slot_getattr(rows.slot(), event_stream, &isnull)));
			list.add(stream, DatumGetInt64(slot_getattr(rows.slot(), event_seq, &isnull)));
		}
		rows.end();
		qsort(list.items_, list.count_, sizeof(Pending), compare_pending);
		return list;
	}

	// Streams must be asked for in key order.
	int64 lowest(std::string_view stream)
	{
		while (position_ < count_ && items_[position_].stream.compare(stream) < 0)
			position_++;
		return position_ < count_ && items_[position_].stream == stream ? items_[position_].seq : no_seq;
	}

private:
	PendingList(Pending *items, size_t count, size_t capacity, size_t position)
		: items_(items), count_(count), capacity_(capacity), position_(position)
	{
	}

	void add(std::string_view stream, int64 seq)
	{
		if (count_ > 0 && items_[count_ - 1].stream == stream) {
			items_[count_ - 1].seq = Min(items_[count_ - 1].seq, seq);
			return;
		}
		if (count_ == capacity_) {
			capacity_ *= 2;
			items_ = static_cast<Pending *>(repalloc_huge(items_, sizeof(Pending) * capacity_));
		}
		char *copy = static_cast<char *>(palloc(stream.size()));
		std::memcpy(copy, stream.data(), stream.size());
		items_[count_++] = Pending{std::string_view(copy, stream.size()), seq};
	}

	Pending *items_;
	size_t count_;
	size_t capacity_;
	size_t position_;
};
static_assert(std::is_trivially_destructible_v<PendingList>);

// The key of the next row, if it begins with the prefix.
static text *next_key(Walk &walk, const text *prefix)
{
	if (!walk.next())
		return nullptr;
	text *key = DatumGetTextPCopy(walk.column(1)); // the key is the first column of both tables
	return starts_with(view_of(key), view_of(prefix)) ? key : nullptr;
}

DOORBELL_SQL_FUNCTION(doorbell_streams)
{
	refuse_null_argument(fcinfo, 0, "prefix");
	text *prefix = PG_GETARG_TEXT_PP(0);
	Snapshot snapshot = GetActiveSnapshot();
	InitMaterializedSRF(fcinfo, 0);
	auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);

	Relation event = table_open(find_tables_to_follow().event, AccessShareLock);
	LowWaterTable low_waters = LowWaterTable::open();
	PendingList pending = PendingList::read(event, snapshot);
	Walk skip = Walk::over(event, find_tables().event_pkey, snapshot, 1);
	Walk visible = Walk::over(event, skip.index, snapshot, 2);
	Walk trimmed = Walk::over(low_waters.table, low_waters.index, snapshot, 1);

	ScanKeyData from_prefix = text_key(1, BTGreaterEqualStrategyNumber, prefix);
	skip.seek(&from_prefix, 1);
	trimmed.seek(&from_prefix, 1);
	text *with_events = next_key(skip, prefix);
	text *in_table = next_key(trimmed, prefix);
	while (with_events != nullptr || in_table != nullptr) {
		CHECK_FOR_INTERRUPTS();
		const int order = with_events == nullptr ? 1
						  : in_table == nullptr	 ? -1
												 : view_of(with_events).compare(view_of(in_table));
		text *stream = order <= 0 ? with_events : in_table;
		const int64 low_water = order >= 0 ? DatumGetInt64(trimmed.column(stream_low_water)) : 0;
		const int64 newest = largest_visible_below(visible, stream, pending.lowest(view_of(stream)));

		Datum values[3] = {PointerGetDatum(stream), Int64GetDatum(low_water), Int64GetDatum(Max(newest, low_water))};
		bool nulls[3] = {};
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);

		if (order <= 0) {
			ScanKeyData behind = text_key(1, BTGreaterStrategyNumber, with_events);
			skip.seek(&behind, 1);
			with_events = next_key(skip, prefix);
		}
		if (order >= 0)
			in_table = next_key(trimmed, prefix);
	}

	trimmed.end();
	visible.end();
	skip.end();
	low_waters.close();
	table_close(event, NoLock);
	return Datum(0);
}

} // namespace pg_doorbell
