// Cursors: how far a reader has come, as a value (Mark) and as text (SSE `id:`, `Last-Event-ID`, `--after`).
//
// 1. A mark is the seq of the last event delivered, and that event's check: 32 bits hashed from (stream, seq, type,
//    appended_at), which survive dump and restore. The same seq with another check belongs to another history.
// 2. Check 0 means "unknown": a mark that stands for no event (0, low water, high water, a seq typed by a human).
//    No event has check 0.
// 3. Text: `42-9f3c01ab`, or `42` with an unknown check. Many streams: marks joined by ',' in the order in which the
//    request names the streams.
// 4. Reading is strict: one text per mark, so no signs, spaces, leading zeros or upper case. docs/protocol.md has the
//    hash to the byte; it never changes, because cursors outlive programs.
//
// Threading: pure functions. Errors: Error, which names the text.
#pragma once

#include <doorbell/event.hpp>
#include <doorbell/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell {

struct Mark {
	std::int64_t seq = 0;
	std::uint32_t check = 0; // 0: unknown

	friend bool operator==(const Mark &a, const Mark &b) noexcept { return a.seq == b.seq && a.check == b.check; }
	friend bool operator!=(const Mark &a, const Mark &b) noexcept { return !(a == b); }
};

// The check of an event; never 0.
DOORBELL_API std::uint32_t check_of(std::string_view stream, std::int64_t seq, std::string_view type,
									std::int64_t appended_at) noexcept;

// The mark of a reader that was just given `event`.
DOORBELL_API Mark mark_of(const Event &event) noexcept;

DOORBELL_API std::string format_mark(Mark mark);
DOORBELL_API Mark parse_mark(std::string_view text);

DOORBELL_API std::string format_cursor(const std::vector<Mark> &marks);

// Reads a cursor of exactly `streams` marks.
DOORBELL_API std::vector<Mark> parse_cursor(std::string_view text, std::size_t streams);

// Whether the text has the form of a cursor of doorbell.replay_all, which only the server can read. No cursor of marks
// has.
DOORBELL_API bool is_all_cursor(std::string_view text) noexcept;

} // namespace doorbell
