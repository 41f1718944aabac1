// A run of events, of one stream or as doorbell.replay_all gives them, that was read once and goes to many connections.
//
// 1. A connection's form decides how an event looks. Each form is encoded when the first connection asks for it, the
//    whole run into one text; connections share that text and take a part of it, from one event's end to another's.
// 2. Connections that follow one stream share the `id:` lines too, and so do those of doorbell.replay_all, whose rows
//    bring their cursors. For others the id is a cursor of their own, which they put before the shared rest of each
//    frame.
// 3. A gap (a row of replay_all too) is a control frame.
#pragma once

#include <doorbell/cursor.hpp>
#include <doorbell/event.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::detail {

struct Form {
	bool with_id;  // the event's own mark or cursor
	bool envelope; // else the payload
	bool named;
	bool raw;

	std::size_t index() const noexcept
	{
		return (with_id ? 1u : 0u) | (envelope ? 2u : 0u) | (named ? 4u : 0u) | (raw ? 8u : 0u);
	}
};

struct Frames {
	std::shared_ptr<const std::string> text;
	std::vector<std::size_t> ends; // of each event's frame

	std::size_t begin(std::size_t i) const { return i == 0 ? 0 : ends[i - 1]; }
};

class SseBatch {
public:
	void add(const Event &event, std::string_view cursor = {}); // without a cursor, the mark is the id
	void add_gap(std::string_view stream, std::int64_t low_water, std::string_view cursor);

	bool empty() const noexcept { return rows_.empty(); }
	std::size_t size() const noexcept { return rows_.size(); }
	std::size_t bytes() const noexcept { return bytes_; } // of the events
	const Event &event(std::size_t i) const { return rows_[i].event; }
	Mark mark(std::size_t i) const { return mark_of(rows_[i].event); }
	const std::string &cursor(std::size_t i) const { return rows_[i].cursor; }
	bool is_gap(std::size_t i) const { return rows_[i].is_gap; }
	std::size_t first_after(std::int64_t seq) const; // of one stream; size() when there is none

	const Frames &frames(Form form);

private:
	struct Row {
		Event event; // of a gap: its stream, and as seq its low water
		std::string cursor;
		bool is_gap;
	};

	void add(Row row);

	std::vector<Row> rows_;
	std::size_t bytes_ = 0;
	std::array<Frames, 16> frames_;
};

} // namespace doorbell::detail
