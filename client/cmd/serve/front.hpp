// The HTTP front: accepts connections, answers the short requests, hands the others to the Streamer.
//
// 1. One epoll descriptor watches the listening socket and every connection that is not a stream yet. Wait until fd() is
//    readable or deadline() has passed, then call advance(). Nothing blocks.
// 2. Bounded: at most most_waiting connections are here at a time; then no more are accepted. A client has header_time to
//    send its head, and much less while the front is crowded, so slow senders cannot hold it for long.
// 3. close() is the beginning of the end: nothing more is accepted, who has not asked yet is dropped, answers that are
//    under way are finished.
//
// Threading: one owner.
#pragma once

#include "address.hpp"
#include "http_connection.hpp"
#include "metrics.hpp"
#include "routes.hpp"

#include <doorbell/streamer.hpp>

#include <memory>
#include <set>
#include <unordered_map>

namespace command::serve {

class Front {
public:
	struct Options {
		doorbell::milliseconds header_time{10'000};
		bool verbose = false; // a line for each request
	};

	Front(const Address &address, const Routes &routes, doorbell::Streamer &streamer, Metrics &metrics, Options options);
	~Front();
	Front(const Front &) = delete;
	Front &operator=(const Front &) = delete;

	int fd() const noexcept { return epoll_; }
	doorbell::Clock::time_point deadline() const;
	void advance(); // after the streamer's poll()
	void close();
	bool is_empty() const noexcept { return connections_.empty(); }
	std::size_t handed_over() const noexcept { return handed_over_; } // since the last advance() began
	const Address &address() const noexcept { return address_; }	   // with the port that it got

private:
	void accept();
	void add(int fd);
	void handle(HttpConnection &connection);
	void watch(HttpConnection &connection);
	void run_deadlines();
	void pause(doorbell::milliseconds time);
	void resume();

	Address address_;
	const Routes &routes_;
	doorbell::Streamer &streamer_;
	Metrics &metrics_;
	Options options_;
	int epoll_;
	int listener_ = -1;
	bool listening_ = false; // the listener is watched
	doorbell::Clock::time_point resume_at_ = doorbell::Clock::time_point::max();
	std::unordered_map<int, std::unique_ptr<HttpConnection>> connections_;
	std::set<std::pair<doorbell::Clock::time_point, int>> deadlines_;
	std::size_t handed_over_ = 0;
};

} // namespace command::serve
