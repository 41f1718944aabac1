#include "summary.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace command {

static constexpr double base = 1.1;

static std::int64_t now()
{
	using namespace std::chrono;
	return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

void Summary::live()
{
	live_since_ = std::min(live_since_, now());
}

void Summary::event(const doorbell::Event &event)
{
	events_++;
	if (event.appended_at < live_since_)
		return;
	const double took = static_cast<double>(std::max<std::int64_t>(now() - event.appended_at, 1));
	buckets_[static_cast<int>(std::log(took) / std::log(base))]++;
	timed_++;
}

std::string Summary::text() const
{
	char line[128];
	std::snprintf(line, sizeof line, "%-34s %10llu\n", "events received", static_cast<unsigned long long>(events_));
	std::string all = line;
	if (timed_ > 0) {
		std::snprintf(line, sizeof line, "%-34s %7.1f ms\n%-34s %7.1f ms\n", "append to delivery, p50", percentile(0.5),
					  "append to delivery, p99", percentile(0.99));
		all += line;
	}
	return all;
}

double Summary::percentile(double share) const
{
	const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(timed_)));
	std::uint64_t seen = 0;
	for (const auto &[bucket, count] : buckets_) {
		seen += count;
		if (seen >= wanted)
			return std::pow(base, bucket + 0.5) / 1000;
	}
	return 0;
}

} // namespace command
