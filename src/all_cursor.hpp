// The cursor of replay_all: what its holder has been given, as a value and as text.
//
// 1. A Seen is a set of events. An event of transaction x is in it if x < xmax and x is not excluded, unless its stream
//    has a mark at or below its seq. So a mark leaves out the end of a stream, whatever transactions it is of.
// 2. In every stream a Seen is a prefix of the committed events, and it has whole transactions (see replay_all.hpp).
// 3. A cursor is a position in the window between two of them: its holder has all of `before` and, of the rest of
//    `seen`, what is not behind `last` in the order of (stream, seq). Without `before` it has all of `seen`.
// 4. `newest` and `last` are events that the history must have, by which another history is recognised.
//
// The text is described in docs/protocol.md. It is safe in HTTP headers, URLs and SSE ids.
#pragma once

#include "tables.hpp"

namespace pg_doorbell {

struct Mark {
	text *stream;
	int64 seq;
};

struct Seen {
	uint64 xmax;
	uint64 *excluded; // ascending
	int excluded_count;
	Mark *marks; // by stream
	int mark_count;

	bool is_nothing() const { return xmax == 0; } // as a reader from the beginning has

	bool has_transaction(uint64 xid) const; // but for what the marks leave out
	bool has(std::string_view stream, int64 seq, uint64 xid) const;
	uint64 lowest_unseen() const { return excluded_count > 0 ? excluded[0] : xmax; }
};
static_assert(std::is_trivially_destructible_v<Seen>);

// An event, or with neither stream nor seq none. Without a check it is known to be trimmed away.
struct Witness {
	text *stream;
	int64 seq;
	std::optional<uint32> check;
};

// Which event it is of those that ever had this stream and seq.
uint32 check_of(std::string_view stream, int64 seq, std::string_view type, TimestampTz appended_at);

struct AllCursor {
	uint64 history;
	Seen seen;
	std::optional<Seen> before;
	Witness newest; // of the largest transaction id in `seen`
	Witness last;	// of those given
};
static_assert(std::is_trivially_destructible_v<AllCursor>);

AllCursor parse_cursor(text *value); // raises 22023

// A cursor has up to two Seens and shall fit into a header line of HTTP, so their text is kept below a limit.
inline constexpr size_t max_seen_characters = 3500;
size_t characters_of(const Seen &seen);
size_t least_mark_characters(std::string_view stream); // that one more mark adds

// Writes the cursors of one window: they differ in `last` alone, and the final one is without `before`.
class CursorWriter {
public:
	explicit CursorWriter(const AllCursor &cursor);
	text *write(std::string_view stream, int64 seq, std::optional<uint32> check, bool final);
	text *write(); // with the cursor's own `last`

private:
	void put_last(std::string_view stream, int64 seq, std::optional<uint32> check);
	text *finish();

	StringInfoData within_; // all that comes before `last`
	StringInfoData final_;
	StringInfoData newest_;
	StringInfoData key_; // the encoded key of the stream below
	char stream_[512];	 // the longest key
	size_t stream_bytes_;
	StringInfoData out_;
	Witness last_;
};
static_assert(std::is_trivially_destructible_v<CursorWriter>);

} // namespace pg_doorbell
