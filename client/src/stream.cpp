#include <doorbell/stream.hpp>

#include "process.hpp"

#include <mutex>
#include <optional>

namespace doorbell {
namespace {

struct Shared {
	std::mutex mutex;
	StreamerFactory factory;
	std::shared_ptr<Streamer> streamer;
	std::optional<detail::Creator> maker; // of the streamer
};

// Never destroyed, so that threads that still run while the process exits find it.
Shared &shared()
{
	static Shared *const the_one = new Shared;
	return *the_one;
}

} // namespace

std::shared_ptr<Streamer> process_streamer()
{
	Shared &all = shared();
	const std::lock_guard<std::mutex> lock(all.mutex);
	if (all.streamer != nullptr && !all.maker->is_this_process())
		all.streamer.reset(); // the parent's: dropping a copy leaves its connections alone
	if (all.streamer == nullptr) {
		all.streamer = all.factory ? all.factory() : std::make_unique<Streamer>(StreamerOptions{});
		all.maker.emplace();
	}
	return all.streamer;
}

void set_process_streamer_factory(StreamerFactory factory)
{
	Shared &all = shared();
	const std::lock_guard<std::mutex> lock(all.mutex);
	all.factory = std::move(factory);
}

void reset_process_streamer()
{
	Shared &all = shared();
	std::shared_ptr<Streamer> dropped;
	{
		const std::lock_guard<std::mutex> lock(all.mutex);
		dropped = std::move(all.streamer);
		all.streamer.reset();
		if (dropped != nullptr && all.maker->is_this_process())
			dropped->shutdown();
	}
}

} // namespace doorbell
