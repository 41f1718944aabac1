// Waiting for a state, with a deadline that only a failure reaches.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace live {

inline constexpr std::chrono::seconds patience{60};

// Looks again and again until `reached` is true; an exception after `patience`.
template <typename Reached>
void wait_for(const std::string &what, Reached reached)
{
	const auto deadline = std::chrono::steady_clock::now() + patience;
	while (!reached()) {
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error("waited in vain for " + what);
		std::this_thread::sleep_for(std::chrono::milliseconds(5)); // between two looks
	}
}

// The same for a Listener or Subscriber, which works meanwhile.
template <typename Polled, typename Reached>
void poll_until(Polled &polled, const std::string &what, Reached reached)
{
	const auto deadline = std::chrono::steady_clock::now() + patience;
	while (!reached()) {
		if (std::chrono::steady_clock::now() > deadline)
			throw std::runtime_error("waited in vain for " + what + "; last error: " + polled.last_error());
		polled.poll(std::chrono::milliseconds(20));
	}
}

} // namespace live
