// Waiting for descriptors with a deadline, and points in time that may be "never".
#pragma once

#include <doorbell/connect.hpp>

#include <vector>

namespace doorbell::detail {

inline constexpr Clock::time_point never = Clock::time_point::max();

// Now plus `timeout`; never when that is out of range.
inline Clock::time_point deadline_after(milliseconds timeout)
{
	const Clock::time_point now = Clock::now();
	return timeout > std::chrono::duration_cast<milliseconds>(never - now) - milliseconds(1) ? never : now + timeout;
}

// For poll(2): -1 when never, else rounded up, because to wake before the deadline would only mean to wait again.
int poll_timeout(Clock::time_point deadline);

// Waits until a descriptor is ready or `deadline` has passed; returns early on a signal.
void wait(const std::vector<Descriptor> &descriptors, Clock::time_point deadline);

// Whether the descriptor is ready now.
bool is_ready(Descriptor descriptor);

} // namespace doorbell::detail
