// The numbers of a running `doorbell serve`, as Prometheus reads them. What each means is in docs/operations.md.
//
// Threading: one owner.
#pragma once

#include <doorbell/event.hpp>
#include <doorbell/streamer.hpp>

#include <prometheus/histogram.h>

#include <cstdint>
#include <map>
#include <string>

namespace command::serve {

class Metrics {
public:
	Metrics();

	void arrived(const doorbell::Event &event); // live
	void answered(int status) { answers_[status]++; }
	void turned_away() { turned_away_++; }

	std::string text(const doorbell::Streamer &streamer) const;

private:
	prometheus::Histogram age_;
	std::map<int, std::uint64_t> answers_; // by status
	std::uint64_t turned_away_ = 0;
};

} // namespace command::serve
