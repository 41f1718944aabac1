#include "wait.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>

namespace doorbell::detail {

void wait(const std::vector<Descriptor> &descriptors, Clock::time_point deadline)
{
	std::vector<pollfd> polled;
	polled.reserve(descriptors.size());
	for (const Descriptor &descriptor : descriptors)
		polled.push_back({descriptor.fd, descriptor.events, 0});

	int timeout = -1;
	if (deadline != never) { // rounded up: waking before the deadline would only mean waiting again
		const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
		timeout = static_cast<int>(std::clamp<milliseconds::rep>(left, 0, INT_MAX));
	}
	if (::poll(polled.data(), polled.size(), timeout) < 0 && errno != EINTR)
		throw Error("could not wait for descriptors: out of memory");
}

bool is_ready(Descriptor descriptor)
{
	pollfd polled{descriptor.fd, descriptor.events, 0};
	return ::poll(&polled, 1, 0) > 0;
}

} // namespace doorbell::detail
