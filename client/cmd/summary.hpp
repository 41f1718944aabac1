// What `tail --summary` says at its end: how many events, and how long they took from append to delivery.
//
// 1. Only events that were appended after the tail was live count for the time: the others waited for us, not we for
// them.
// 2. The time is this machine's clock at delivery minus appended_at, which is the server's clock when append was
// called.
//    So it holds the rest of the appending transaction, and on two machines the difference of their clocks.
// 3. Times are counted in buckets a tenth wide, so memory is bounded and a percentile is exact to about 5 %.
#pragma once

#include <doorbell/event.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace command {

class Summary {
public:
	void live();
	void event(const doorbell::Event &event);
	std::string text() const;

private:
	double percentile(double share) const; // milliseconds

	std::int64_t live_since_ = INT64_MAX; // microseconds since 1970
	std::uint64_t events_ = 0;
	std::uint64_t timed_ = 0;
	std::map<int, std::uint64_t> buckets_; // by the logarithm to the base 1.1 of microseconds
};

} // namespace command
