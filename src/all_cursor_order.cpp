#include "all_cursor_order.hpp"

namespace pg_doorbell {

static const Mark *mark_of(const Seen &seen, std::string_view stream)
{
	for (int i = 0; i < seen.mark_count; i++)
		if (view_of(seen.marks[i].stream) == stream)
			return &seen.marks[i];
	return nullptr;
}

static bool includes(const Seen &larger, const Seen &smaller)
{
	if (smaller.xmax > larger.xmax)
		return false;
	for (int i = 0; i < larger.excluded_count; i++)
		if (smaller.has_transaction(larger.excluded[i]))
			return false;
	const bool is_later = larger.xmax > smaller.xmax || larger.excluded_count < smaller.excluded_count;
	for (int i = 0; i < larger.mark_count; i++) {
		const Mark *before = mark_of(smaller, view_of(larger.marks[i].stream));
		if (before == nullptr ? !is_later : before->seq > larger.marks[i].seq)
			return false;
	}
	return true;
}

static bool is_behind(const Witness &last, std::string_view stream, int64 seq)
{
	if (last.stream == nullptr)
		return true;
	const int order = stream.compare(view_of(last.stream));
	return order != 0 ? order > 0 : seq > last.seq;
}

bool has_given(const AllCursor &cursor, std::string_view stream, int64 seq, uint64 xid)
{
	if (cursor.before.has_value() && cursor.before->has(stream, seq, xid))
		return true;
	return cursor.seen.has(stream, seq, xid) && (!cursor.before.has_value() || !is_behind(cursor.last, stream, seq));
}

bool precedes(const AllCursor &a, const AllCursor &b)
{
	if (a.history != b.history)
		return false;
	if (!b.before.has_value())
		return includes(b.seen, a.seen);
	if (includes(*b.before, a.seen))
		return true;
	const bool same_window = a.before.has_value() && includes(b.seen, a.seen) && includes(a.seen, b.seen) &&
							 includes(*b.before, *a.before) && includes(*a.before, *b.before);
	return same_window && (a.last.stream == nullptr || !is_behind(b.last, view_of(a.last.stream), a.last.seq));
}

DOORBELL_SQL_FUNCTION(doorbell_cursor_precedes)
{
	PG_RETURN_BOOL(precedes(parse_cursor(PG_GETARG_TEXT_PP(0)), parse_cursor(PG_GETARG_TEXT_PP(1))));
}

} // namespace pg_doorbell
