#include <doorbell/backoff.hpp>
#include <doorbell/error.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace doorbell {

Backoff::Backoff(std::chrono::milliseconds first, std::chrono::milliseconds limit, Random random)
	: first_(first), limit_(limit), step_(first), random_(std::move(random))
{
	if (first.count() <= 0 || limit < first)
		throw Error("invalid delays: first " + std::to_string(first.count()) + " ms, limit " +
					std::to_string(limit.count()) + " ms");
	if (!random_)
		random_ = [engine = std::minstd_rand(std::random_device()())]() mutable {
			return std::uniform_real_distribution<double>(0, 1)(engine);
		};
}

std::chrono::milliseconds Backoff::next()
{
	const double step = static_cast<double>(step_.count());
	const auto delay = static_cast<std::chrono::milliseconds::rep>(step / 2 + step / 2 * random_());
	step_ = step_ > limit_ / 2 ? limit_ : step_ * 2;
	return std::chrono::milliseconds(std::max<std::chrono::milliseconds::rep>(delay, 1));
}

} // namespace doorbell
