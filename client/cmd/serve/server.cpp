#include "server.hpp"

#include "../command.hpp"
#include "../interrupt.hpp"
#include "../wait.hpp"
#include "health.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/resource.h>

namespace command::serve {

// Descriptors beside those of streams: waiting connections, the database, the loop's own.
static constexpr std::size_t other_descriptors = 1024 + 64;

// How many connections the limit of open files allows, after it was raised as far as it goes.
static std::size_t allowed_connections(std::size_t wanted)
{
	rlimit limit = {};
	if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return wanted;
	limit.rlim_cur = limit.rlim_max;
	::setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted + other_descriptors)
		return wanted;
	return limit.rlim_cur > 2 * other_descriptors ? limit.rlim_cur - other_descriptors : limit.rlim_cur / 2;
}

static Address checked_address(const ServerOptions &options)
{
	Address address(options.listen);
	if (!address.is_loopback() && !options.routes.auth && !options.insecure)
		throw std::runtime_error(address.text() +
								 " can be reached from other machines: give --jwt-key, or --insecure to "
								 "let everybody follow everything");
	return address;
}

Server::Server(const ServerOptions &options)
	: most_(allowed_connections(options.max_connections)), streamer_(streamer_options(options)),
	  routes_(route_options(options)), front_(checked_address(options), routes_, streamer_, metrics_, options.front)
{
	say("listening on http://" + front_.address().text());
	if (most_ < options.max_connections)
		say("the limit of open files allows " + std::to_string(most_) + " connections, not " +
			std::to_string(options.max_connections));
}

doorbell::StreamerOptions Server::streamer_options(const ServerOptions &options)
{
	doorbell::StreamerOptions streamer = options.streamer;
	streamer.on_event = [this](const doorbell::Event &event) { metrics_.arrived(event); };
	return streamer;
}

RouteOptions Server::route_options(const ServerOptions &options)
{
	RouteOptions routes = options.routes;
	routes.retry = options.streamer.retry;
	routes.health = [this] { return health(streamer_); };
	routes.metrics = [this] {
		Answer answer;
		answer.type = "text/plain; version=0.0.4; charset=utf-8";
		answer.body = metrics_.text(streamer_);
		return answer;
	};
	routes.is_full = [this] {
		const bool full = streamer_.connections() + front_.handed_over() >= most_;
		if (full)
			metrics_.turned_away();
		return full;
	};
	return routes;
}

bool Server::run()
{
	bool ending = false;
	while (true) {
		streamer_.poll(doorbell::milliseconds(0));
		front_.advance();
		if (!ending)
			watch_.look(streamer_.state(), streamer_.last_error());

		const unsigned signals = interrupt().take();
		if (signals > 1 || (signals == 1 && ending))
			return false;
		if (signals == 1) {
			ending = true;
			front_.close();
			streamer_.shutdown();
			continue;
		}
		if (ending && streamer_.is_shut_down() && front_.is_empty())
			return true;
		wait_for_more();
	}
}

void Server::wait_for_more()
{
	std::vector<doorbell::Descriptor> descriptors = streamer_.descriptors();
	descriptors.push_back({front_.fd(), POLLIN});
	descriptors.push_back({interrupt().fd(), POLLIN});
	wait(descriptors, std::min({streamer_.deadline(), front_.deadline(), watch_.deadline()}));
}

} // namespace command::serve
