#include "wait.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>

namespace doorbell::detail {

int poll_timeout(Clock::time_point deadline)
{
	if (deadline == never)
		return -1;
	const Clock::time_point now = Clock::now();
	// A deadline may be as far back as time_point::min(): the difference would overflow.
	const auto left = deadline <= now ? milliseconds(0) : std::chrono::ceil<milliseconds>(deadline - now);
	return static_cast<int>(std::min<milliseconds::rep>(left.count(), INT_MAX));
}

void wait(const std::vector<Descriptor> &descriptors, Clock::time_point deadline)
{
	std::vector<pollfd> polled;
	polled.reserve(descriptors.size());
	for (const Descriptor &descriptor : descriptors)
		polled.push_back({descriptor.fd, descriptor.events, 0});

	if (::poll(polled.data(), polled.size(), poll_timeout(deadline)) < 0 && errno != EINTR)
		throw Error("could not wait for descriptors: out of memory");
}

bool is_ready(Descriptor descriptor)
{
	pollfd polled{descriptor.fd, descriptor.events, 0};
	return ::poll(&polled, 1, 0) > 0;
}

} // namespace doorbell::detail
