// Waiting times between attempts: each about twice the one before, up to a limit, with jitter.
//
// The n-th delay is drawn evenly from [d/2, d), at least 1 ms, d = min(first * 2^n, limit): never close to zero, and a
// crowd that was cut at one moment comes back spread out. The random source is injected, so that a test knows every
// delay.
//
// Threading: one owner.
#pragma once

#include <doorbell/export.hpp>

#include <chrono>
#include <functional>

namespace doorbell {

class DOORBELL_API Backoff {
public:
	using Random = std::function<double()>; // evenly from [0, 1)

	// 0 < first <= limit, else Error. Without `random`, a generator of its own with an unpredictable seed.
	Backoff(std::chrono::milliseconds first, std::chrono::milliseconds limit, Random random = {});

	std::chrono::milliseconds next();
	void reset() noexcept { step_ = first_; } // after success

private:
	std::chrono::milliseconds first_;
	std::chrono::milliseconds limit_;
	std::chrono::milliseconds step_;
	Random random_;
};

} // namespace doorbell
