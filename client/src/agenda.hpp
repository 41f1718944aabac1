// The agenda of a subscriber's reads: which streams to read next, and which to ask again later.
//
// 1. A stream is queued when it rang above its mark (ring) or when there is known to be more (want). The queue is in
//    the order of asking, and a stream that is read goes to its end: so streams that do not fit into one read take
//    turns.
// 2. When a read did not reach the rung seq, an append below it is in flight or the server lags: the stream is stuck.
//    It is asked again after `first`, and from then on after as long as it has been stuck, so ever more rarely. Once
//    that has reached `limit`, it is dropped and left to the sweep.
// 3. While stuck, a ring at or below the highest one so far may be what was waited for: the stream is read at once. A
//    higher one is probably behind the same hole: the next question only moves up to `first` after the last one.
//
// Pure: no I/O, time is given. One entry for each stream with something pending, none for idle ones.
#pragma once

#include <doorbell/connect.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::detail {

class Agenda {
public:
	using TimePoint = Clock::time_point;
	using SeqOf = std::function<std::optional<std::int64_t>(const std::string &)>; // the mark's; nothing: not followed

	Agenda(milliseconds first, milliseconds limit) : first_(first), limit_(limit) {}

	void ring(std::string_view stream, std::int64_t seq, TimePoint now);
	void want(std::string_view stream);

	// Takes up to `most` streams that are due. Rings that the mark has reached since are dropped.
	std::vector<std::string> take(std::size_t most, const SeqOf &seq_of, TimePoint now);

	// Says how the read of a taken stream ended: its mark now, whether that moved, and whether there is more to read.
	void done(const std::string &stream, std::int64_t mark, bool moved, bool more, TimePoint now);

	void forget(std::string_view stream);
	void clear();

	std::size_t size() const noexcept { return items_.size(); }
	TimePoint next() const; // when take() may have something
	bool is_due(TimePoint now) const { return next() <= now; }

private:
	struct Item {
		std::int64_t rung = 0;
		bool queued = false;
		bool wanted = false; // read it whatever the mark
		TimePoint stuck_since = TimePoint::max();
		TimePoint again = TimePoint::max(); // the entry of retries_ that counts
		TimePoint last_read{};
	};
	using Items = std::map<std::string, Item, std::less<>>;

	Items::iterator item_of(std::string_view stream);
	void enqueue(Items::iterator item, bool wanted);
	void ask_again(Items::iterator item, TimePoint at);

	milliseconds first_;
	milliseconds limit_;
	Items items_;
	std::deque<std::string> queue_;					// may hold forgotten streams, which take() skips
	std::multimap<TimePoint, std::string> retries_; // may hold outdated ones
};

} // namespace doorbell::detail
