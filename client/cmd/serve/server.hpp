// A running `doorbell serve`: the Streamer, the HTTP front before it, and the one loop of both.
//
// 1. One thread. The loop waits, in one poll(2), for the streamer's descriptors, the front's, and a signal.
// 2. The first SIGTERM or SIGINT begins the end: nothing is accepted any more, every stream gets what waits for it and
//    `doorbell:shutdown`, and the loop goes on until the last one has gone or was cut at its write deadline. A second
//    signal ends at once.
// 3. A database that cannot be reached is no reason to end, or to lose a client. What waiting does not cure, such as a
//    missing privilege, comes out of run() as doorbell::Error.
#pragma once

#include "front.hpp"
#include "metrics.hpp"
#include "routes.hpp"

#include "../state_watch.hpp"

#include <doorbell/streamer.hpp>

namespace command::serve {

struct ServerOptions {
	std::string listen = "127.0.0.1:8080";
	std::size_t max_connections = 10'000;
	bool insecure = false; // listens on any address without authentication
	Front::Options front;
	RouteOptions routes; // what it asks of the streamer is filled in here
	doorbell::StreamerOptions streamer;
};

class Server {
public:
	explicit Server(const ServerOptions &options); // listens; throws std::runtime_error
	bool run();									   // false: ended by a second signal, streams were cut off

private:
	RouteOptions route_options(const ServerOptions &options);
	doorbell::StreamerOptions streamer_options(const ServerOptions &options);
	void wait_for_more();

	Metrics metrics_;
	const std::size_t most_; // connections at a time
	doorbell::Streamer streamer_;
	Routes routes_;
	Front front_;
	StateWatch watch_;
};

} // namespace command::serve
