// A run of events of one stream that was read once and goes to many connections.
//
// 1. A connection's form decides how an event looks. Each form is encoded when the first connection asks for it, the
//    whole run into one text; connections share that text and take a part of it, from one event's end to another's.
// 2. Connections that follow one stream share the `id:` lines too. For the others the id is a cursor of their own,
// which
//    they put before the shared rest of each frame.
#pragma once

#include <doorbell/cursor.hpp>
#include <doorbell/event.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace doorbell::detail {

struct Form {
	bool with_id;  // the event's own mark
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
};

class SseBatch {
public:
	void add(const Event &event)
	{
		events_.push_back(event);
		bytes_ += sizeof event + event.stream.size() + event.type.size() + event.payload.size();
		frames_ = {};
	}
	bool empty() const noexcept { return events_.empty(); }
	std::size_t size() const noexcept { return events_.size(); }
	std::size_t bytes() const noexcept { return bytes_; } // of the events
	Mark mark(std::size_t i) const { return mark_of(events_[i]); }
	std::size_t first_after(std::int64_t seq) const; // size() when there is none

	const Frames &frames(Form form);

private:
	std::vector<Event> events_;
	std::size_t bytes_ = 0;
	std::array<Frames, 16> frames_;
};

} // namespace doorbell::detail
