// Stream: a handle for one stream, cheap enough to make for every call; and the streamer of a process that wants just
// one.
//
// A handle is a key and two references. It opens nothing and owns nothing: the Log and the Streamer must outlive it.
//
// Threading: append, high_water and replay are calls of the Log's owner; subscribe() may come from any thread.
#pragma once

#include <doorbell/export.hpp>
#include <doorbell/log.hpp>
#include <doorbell/streamer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doorbell {

class Stream {
public:
	Stream(std::string key, Log &log, Streamer &streamer) : key_(std::move(key)), log_(&log), streamer_(&streamer) {}

	const std::string &key() const noexcept { return key_; }

	std::int64_t append(std::string_view type, std::string_view payload) { return log_->append(key_, type, payload); }
	std::int64_t high_water() { return log_->high_water(key_); }
	std::vector<Event> replay(std::int64_t after = 0, int max_events = 1000)
	{
		return log_->replay(key_, after, max_events);
	}

	// Hands a socket whose HTTP head has been answered to the streamer; see Streamer::add.
	void subscribe(int fd, Start start = Start::now())
	{
		SseRequest request;
		request.streams = {key_};
		request.starts = {start};
		streamer_->add(fd, std::move(request));
	}

private:
	std::string key_;
	Log *log_;
	Streamer *streamer_;
};

// The streamer of this process, made by the first call, however many threads make it at once. Without a factory of
// yours it connects by the PG* variables. Who made it does not matter: one thread of yours has to run() it.
// A forked child does not inherit it: there, the first call makes another one. Thread-safe.
DOORBELL_API std::shared_ptr<Streamer> process_streamer();

// How the next one is made; takes effect when there is none, at first or after reset_process_streamer(). Thread-safe.
using StreamerFactory = std::function<std::unique_ptr<Streamer>()>;
DOORBELL_API void set_process_streamer_factory(StreamerFactory factory);

// Lets go of it: it is shut down, and gone once the last pointer to it is. Without one, nothing happens. Thread-safe.
DOORBELL_API void reset_process_streamer();

} // namespace doorbell
