#include "wait.hpp"

#include <algorithm>
#include <poll.h>

namespace command {

void wait(const std::vector<doorbell::Descriptor> &descriptors, doorbell::Clock::time_point deadline)
{
	std::vector<pollfd> all;
	all.reserve(descriptors.size());
	for (const doorbell::Descriptor descriptor : descriptors)
		all.push_back({descriptor.fd, descriptor.events, 0});
	const doorbell::Clock::time_point now = doorbell::Clock::now();
	const auto left = std::min<doorbell::Clock::duration>(std::max(deadline, now) - now, std::chrono::minutes(1));
	::poll(all.data(), all.size(), static_cast<int>(std::chrono::ceil<doorbell::milliseconds>(left).count()));
}

} // namespace command
