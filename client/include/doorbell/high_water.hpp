// High-water marks by stream: what a subscriber has been given.
//
// 1. Only delivery moves a mark, and only forwards: `deliver` refuses a seq at or below the mark, so that lost,
//    doubled and reordered doorbells or overlapping reads cannot double an event.
// 2. `place` puts a mark somewhere else on purpose: a start, a gap (forwards to low water), a reset (anywhere).
// 3. Ordered by key, so that a sweep can walk it in portions while it changes: `next` continues after a key.
//
// Threading: one owner. Memory: one map node per stream.
#pragma once

#include <doorbell/cursor.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace doorbell {

class HighWater {
public:
	using Marks = std::map<std::string, Mark, std::less<>>;

	// True if the event is new: the mark is now `mark`. False, and nothing changes, for a duplicate or a rewind.
	// A stream without a mark counts as one at 0.
	bool deliver(std::string_view stream, Mark mark)
	{
		const auto found = marks_.find(stream);
		if (mark.seq <= (found == marks_.end() ? 0 : found->second.seq))
			return false;
		if (found == marks_.end())
			marks_.emplace(stream, mark);
		else
			found->second = mark;
		return true;
	}

	void place(std::string_view stream, Mark mark)
	{
		const auto found = marks_.find(stream);
		if (found == marks_.end())
			marks_.emplace(stream, mark);
		else
			found->second = mark;
	}

	void forget(std::string_view stream)
	{
		const auto found = marks_.find(stream);
		if (found != marks_.end())
			marks_.erase(found);
	}

	std::optional<Mark> at(std::string_view stream) const
	{
		const auto found = marks_.find(stream);
		return found == marks_.end() ? std::nullopt : std::optional<Mark>(found->second);
	}

	// The first entry behind `stream` in byte order, or the end.
	Marks::const_iterator next(std::string_view stream) const { return marks_.upper_bound(stream); }
	const Marks &all() const noexcept { return marks_; }
	std::size_t size() const noexcept { return marks_.size(); }

private:
	Marks marks_;
};

} // namespace doorbell
