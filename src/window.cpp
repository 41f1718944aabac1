#include "window.hpp"

#include "low_water.hpp"

namespace pg_doorbell {

// Selecting the first rows of many

static int compare_places(std::string_view a, int64 a_seq, std::string_view b, int64 b_seq)
{
	const int order = a.compare(b);
	return order != 0 ? order : (a_seq > b_seq) - (a_seq < b_seq);
}

static int compare_selected(const void *a, const void *b)
{
	const auto *left = static_cast<const Selected *>(a);
	const auto *right = static_cast<const Selected *>(b);
	return compare_places(view_of(left->stream), left->seq, view_of(right->stream), right->seq);
}

Selection Selection::first(size_t count)
{
	Selection selection;
	selection.count_ = 0;
	selection.capacity_ = Min(2 * count, 64);
	selection.limit_ = count;
	selection.bounded_ = false;
	selection.items_ = static_cast<Selected *>(palloc(sizeof(Selected) * selection.capacity_));
	return selection;
}

void Selection::add(text *stream, int64 seq, const ItemPointerData *row)
{
	if (bounded_ &&
		compare_places(view_of(stream), seq, view_of(items_[limit_ - 1].stream), items_[limit_ - 1].seq) > 0)
		return;
	if (count_ == 2 * limit_) {
		sort();
		bounded_ = true;
	}
	if (count_ == capacity_) {
		capacity_ = Min(2 * capacity_, 2 * limit_);
		items_ = static_cast<Selected *>(repalloc_huge(items_, sizeof(Selected) * capacity_));
	}
	Selected &item = items_[count_++];
	const std::string_view key = view_of(stream);
	item.stream = cstring_to_text_with_len(key.data(), static_cast<int>(key.size()));
	item.seq = seq;
	if (row != nullptr)
		item.row = *row;
	else
		ItemPointerSetInvalid(&item.row);
}

void Selection::sort()
{
	qsort(items_, count_, sizeof(Selected), compare_selected);
	while (count_ > limit_)
		pfree(items_[--count_].stream);
}

// What is in the window

static text *stream_of(TupleTableSlot *slot)
{
	bool isnull;
	return DatumGetTextPP(slot_getattr(slot, event_stream, &isnull));
}

static int64 seq_of(TupleTableSlot *slot)
{
	bool isnull;
	return DatumGetInt64(slot_getattr(slot, event_seq, &isnull));
}

static uint64 xid_of(TupleTableSlot *slot)
{
	bool isnull;
	return U64FromFullTransactionId(DatumGetFullTransactionId(slot_getattr(slot, event_xid, &isnull)));
}

bool Window::is_behind_position(std::string_view stream, int64 seq) const
{
	return bounds_.last == nullptr || compare_places(stream, seq, view_of(bounds_.last), bounds_.last_seq) > 0;
}

bool Window::is_in(TupleTableSlot *slot) const
{
	const uint64 xid = xid_of(slot);
	if (!bounds_.seen->has_transaction(xid))
		return false;
	const std::string_view stream = view_of(stream_of(slot));
	const int64 seq = seq_of(slot);
	return bounds_.seen->has(stream, seq, xid) && !bounds_.before->has(stream, seq, xid);
}

// Of the transactions with ids from `first` on, below `end`.
bool Window::select_from(Walk &walk, uint64 first, uint64 end, double &left)
{
	ScanKeyData keys[2] = {xid_key(BTGreaterEqualStrategyNumber, first), xid_key(BTLessStrategyNumber, end)};
	walk.seek(keys, 2);
	while (walk.next()) {
		if (left-- <= 0)
			return false;
		text *stream = stream_of(walk.slot);
		const int64 seq = walk.seq();
		if (starts_with(view_of(stream), view_of(bounds_.prefix)) && is_behind_position(view_of(stream), seq) &&
			is_in(walk.slot))
			selection_.add(stream, seq, &walk.slot->tts_tid);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

// False if there are more rows to look at than `limit`.
bool Window::select_events(double limit)
{
	const Seen &before = *bounds_.before;
	const Seen &seen = *bounds_.seen;
	Walk walk = Walk::over(event_, find_tables().event_xid_idx, snapshot_, 2);
	bool complete = true;
	for (int i = 0; complete && i < before.excluded_count; i++) {
		if (!seen.has_transaction(before.excluded[i]))
			continue;
		complete = select_from(walk, before.excluded[i], before.excluded[i] + 1, limit);
	}
	complete = complete && select_from(walk, before.xmax, seen.xmax, limit);
	walk.end();
	return complete && (before.mark_count == 0 || select_behind_marks(limit));
}

// Of the streams' ends that were withheld, what the transaction ids alone do not tell.
bool Window::select_behind_marks(double limit)
{
	const Seen &before = *bounds_.before;
	Walk walk = Walk::over(event_, find_tables().event_pkey, snapshot_, 2);
	bool complete = true;
	for (int i = 0; complete && i < before.mark_count; i++) {
		const Mark &mark = before.marks[i];
		if (!starts_with(view_of(mark.stream), view_of(bounds_.prefix)))
			continue;
		ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, mark.stream),
							   seq_key(2, BTGreaterStrategyNumber, mark.seq - 1)};
		walk.seek(keys, 2);
		while (walk.next()) {
			if (limit-- <= 0) {
				complete = false;
				break;
			}
			const int64 seq = walk.seq();
			if (before.has_transaction(walk.xid()) && is_behind_position(view_of(mark.stream), seq) && is_in(walk.slot))
				selection_.add(mark.stream, seq, &walk.slot->tts_tid);
			CHECK_FOR_INTERRUPTS();
		}
	}
	walk.end();
	return complete;
}

void Window::consider_gap(Walk &walk)
{
	text *stream = DatumGetTextPP(walk.column(stream_key));
	const int64 low_water = DatumGetInt64(walk.column(stream_low_water));
	const uint64 trimmed = walk.xid(stream_trimmed_xid);
	const bool missed = bounds_.before->is_nothing() ? !bounds_.seen->has_transaction(walk.xid(stream_trim_xid))
													 : !bounds_.before->has(view_of(stream), low_water, trimmed);
	if (missed && bounds_.seen->has(view_of(stream), low_water, trimmed) &&
		starts_with(view_of(stream), view_of(bounds_.prefix)) && is_behind_position(view_of(stream), low_water))
		selection_.add(stream, low_water, nullptr);
}

void Window::select_gaps()
{
	const Tables &tables = find_tables();
	const Seen &before = *bounds_.before;
	const bool first = before.is_nothing();
	const uint64 from = first ? bounds_.seen->lowest_unseen() : before.lowest_unseen();
	LowWaterTable low_waters = LowWaterTable::open();
	Walk walk = Walk::over(low_waters.table, first ? tables.stream_trim_idx : tables.stream_trimmed_idx, snapshot_, 1);
	ScanKeyData key = xid_key(BTGreaterEqualStrategyNumber, from);
	walk.seek(&key, 1);
	while (walk.next()) {
		consider_gap(walk);
		CHECK_FOR_INTERRUPTS();
	}
	walk.end();

	if (before.mark_count > 0) {
		walk = Walk::over(low_waters.table, low_waters.index, snapshot_, 1);
		for (int i = 0; i < before.mark_count; i++) {
			key = text_key(1, BTEqualStrategyNumber, before.marks[i].stream);
			walk.seek(&key, 1);
			if (walk.next() && DatumGetInt64(walk.column(stream_low_water)) >= before.marks[i].seq &&
				walk.xid(stream_trimmed_xid) < from) // else it was found above
				consider_gap(walk);
		}
		walk.end();
	}
	low_waters.close();
}

// Walking the primary key

void Window::begin_walk()
{
	walk_ = Walk::over(event_, find_tables().event_pkey, snapshot_, 2);
	ahead_ = table_slot_create(event_, nullptr);
	within_last_ = bounds_.last != nullptr && starts_with(view_of(bounds_.last), view_of(bounds_.prefix));
	if (within_last_) {
		ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, bounds_.last),
							   seq_key(2, BTGreaterStrategyNumber, bounds_.last_seq)};
		walk_.seek(keys, 2);
	} else {
		walk_streams();
	}
	look_ahead();
}

// To the streams behind that of the position.
void Window::walk_streams()
{
	const bool behind = bounds_.last != nullptr && view_of(bounds_.last).compare(view_of(bounds_.prefix)) >= 0;
	ScanKeyData keys[2] = {text_key(1, BTGreaterEqualStrategyNumber, bounds_.prefix),
						   behind ? text_key(1, BTGreaterStrategyNumber, bounds_.last)
								  : text_key(1, BTGreaterEqualStrategyNumber, bounds_.prefix)};
	walk_.seek(keys, 2);
	within_last_ = false;
}

void Window::look_ahead()
{
	has_ahead_ = false;
	for (;;) {
		CHECK_FOR_INTERRUPTS();
		if (!walk_.next()) {
			if (!within_last_)
				return;
			walk_streams();
		} else if (!starts_with(view_of(stream_of(walk_.slot)), view_of(bounds_.prefix))) {
			return;
		} else if (is_in(walk_.slot)) {
			ExecCopySlot(ahead_, walk_.slot);
			has_ahead_ = true;
			return;
		}
	}
}

// The window

// How many rows may be looked at for a page: at least 20 for each that is asked for, and so many that all pages
// together look at no more rows than the table has.
static double affordable(Relation event, int max_events)
{
	constexpr double rows_per_block = 64;
	const double rows = rows_per_block * RelationGetNumberOfBlocks(event);
	double limit = 20.0 * max_events;
	while (limit * limit < rows * max_events)
		limit *= 1.5;
	return limit;
}

Window Window::open(Relation event, Snapshot snapshot, const WindowBounds &bounds, int max_events)
{
	Window window;
	window.event_ = event;
	window.snapshot_ = snapshot;
	window.bounds_ = bounds;
	window.selection_ = Selection::first(static_cast<size_t>(max_events) + 1);
	window.position_ = 0;
	window.has_ahead_ = false;
	window.current_ = table_slot_create(event, nullptr);
	window.walking_ = bounds.before->is_nothing() || !window.select_events(affordable(event, max_events));
	if (window.walking_) {
		window.selection_ = Selection::first(static_cast<size_t>(max_events) + 1);
		window.begin_walk();
	}
	if (!bounds.before->is_nothing() || bounds.last != nullptr) // nobody misses what was trimmed before the first page
		window.select_gaps();
	window.selection_.sort();
	return window;
}

void Window::close()
{
	if (walking_) {
		ExecDropSingleTupleTableSlot(ahead_);
		walk_.end();
	}
	ExecDropSingleTupleTableSlot(current_);
}

bool Window::next()
{
	if (!has_more())
		return false;
	if (position_ < selection_.count()) {
		const Selected &selected = selection_[position_];
		if (!has_ahead_ ||
			compare_places(view_of(selected.stream), selected.seq, view_of(stream_of(ahead_)), seq_of(ahead_)) < 0) {
			position_++;
			stream_ = selected.stream;
			seq_ = selected.seq;
			gap_ = !ItemPointerIsValid(&selected.row);
			ItemPointerData row = selected.row;
			if (!gap_ && !table_tuple_fetch_row_version(event_, &row, snapshot_, current_))
				elog(ERROR, "could not fetch an event that was just found");
			return true;
		}
	}
	TupleTableSlot *const next = ahead_;
	ahead_ = current_;
	current_ = next;
	stream_ = stream_of(current_);
	seq_ = seq_of(current_);
	gap_ = false;
	look_ahead();
	return true;
}

} // namespace pg_doorbell
