// The rows of a window: what a reader of all streams is given between two Seens, ordered by (stream, seq).
//
//  1. An event is in the window if it is in `seen` and not in `before`. While a window is being paged nothing joins it;
//     rows may leave it, by trim. So a position in it is a key, (stream, seq), never a count.
//  2. A gap is in the window, as (stream, low water), if events that the reader was to be given were trimmed away. What
//     a reader has of a stream is a prefix of it, so that is so if it has not had the LAST event trimmed:
//     doorbell.stream knows which transaction appended that. In a first window, whose reader comes without a past, it
//     is so if the trim is younger than the window.
//  3. A small window is found through the index on xid, the marks of `before` through the primary key; of what is found
//     the first rows behind the position are kept, and sorted. Each page looks at the whole window again.
//  4. So that this does not cost more than one walk over the table in all, a large window, and always a first one, is
//     read by walking the primary key from the position on: all pages together read the table once.
//
// Memory is bounded by the page. The two ways find the same rows, so each call chooses as it likes.
#pragma once

#include "all_cursor.hpp"

namespace pg_doorbell {

struct WindowBounds {
	const Seen *before;
	const Seen *seen;
	text *last; // the position: behind (last, seq), or from the beginning if null
	int64 last_seq;
	text *prefix;
};

// An event that was selected, or a gap if its row is not valid.
struct Selected {
	text *stream;
	int64 seq;
	ItemPointerData row;
};

// The first so many of any number, in order.
class Selection {
public:
	static Selection first(size_t count);
	void add(text *stream, int64 seq, const ItemPointerData *row);
	void sort();

	size_t count() const { return count_; }
	const Selected &operator[](size_t i) const { return items_[i]; }

private:
	Selected *items_;
	size_t count_;
	size_t capacity_;
	size_t limit_;
	bool bounded_; // the first limit_ are sorted, and nothing behind them is wanted
};
static_assert(std::is_trivially_destructible_v<Selection>);

class Window {
public:
	static Window open(Relation event, Snapshot snapshot, const WindowBounds &bounds, int max_events);
	void close();

	bool next(); // to the next row; ends behind max_events, or one more
	bool has_more() const { return has_ahead_ || position_ < selection_.count(); }
	text *stream() const { return stream_; }
	int64 seq() const { return seq_; }
	TupleTableSlot *slot() const { return gap_ ? nullptr : current_; } // null: a gap

private:
	bool is_behind_position(std::string_view stream, int64 seq) const;
	bool is_in(TupleTableSlot *slot) const;
	bool select_events(double limit);
	bool select_from(Walk &walk, uint64 first, uint64 end, double &left);
	bool select_behind_marks(double limit);
	void select_gaps();
	void consider_gap(Walk &walk);
	void begin_walk();
	void walk_streams();
	void look_ahead();

	Relation event_;
	Snapshot snapshot_;
	WindowBounds bounds_;

	Selection selection_; // of gaps alone while walking
	size_t position_;	  // in it

	bool walking_;
	Walk walk_;
	bool within_last_; // the walk is in the stream of the position
	TupleTableSlot *ahead_;
	bool has_ahead_;

	TupleTableSlot *current_;
	text *stream_;
	int64 seq_;
	bool gap_;
};
static_assert(std::is_trivially_destructible_v<Window>);

} // namespace pg_doorbell
