// What everything that talks to a server has in common: how to connect, and how to wait from an event loop of yours.
//
// 1. No hidden threads. An object does its work inside poll(); from a loop of your own, wait until one of descriptors()
//    is ready or deadline() has passed, then call poll(0ms). Ask for both again after every call: they change.
// 2. One owner: all calls come from one thread at a time, except those that say otherwise.
// 3. Only name resolution blocks (libpq resolves names inside its non-blocking connect): give addresses, or names that
//    resolve quickly, where that matters.
// 4. An object belongs to the process that made it. A forked child may destroy its copy, which leaves the parent's
//    connection alone, but not use it: Error.
#pragma once

#include <chrono>
#include <string>

namespace doorbell {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct ConnectOptions {
	// A libpq connection string or URI; what it leaves out comes from the PG* variables. Several hosts and
	// target_session_attrs work, and names are resolved again for every attempt. Where it does not set them, TCP
	// keepalives and tcp_user_timeout are derived from query_timeout.
	std::string dsn;

	milliseconds connect_timeout{10'000}; // for each host
	milliseconds query_timeout{30'000};	  // from sending to the last row; after it, the connection is given up
};

struct RetryOptions {
	milliseconds first{100}; // delays between attempts: see backoff.hpp
	milliseconds limit{10'000};
};

struct Descriptor {
	int fd;
	short events; // POLLIN, POLLOUT as for poll(2)
};

enum class State {
	down,	  // no connection: nothing arrives
	sweeping, // the server answers but cannot ring us (a standby, a pooler): events arrive by sweep
	live,	  // rings are heard
};

} // namespace doorbell
