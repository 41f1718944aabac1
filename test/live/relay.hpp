// A TCP relay to a server on 127.0.0.1 that can go silent without closing anything.
//
// 1. A thread of its own passes bytes both ways; `mode` says what it leaves alone. What it leaves alone stays in the
//    kernel's buffers, so nothing is lost and nobody is told.
// 2. abandon() makes all connections so far half-open: no byte ever passes again, while new ones work.
// 3. Writes wait for the reader. That is enough for the few bytes that tests send.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace live {

class Relay {
public:
	explicit Relay(int target_port);
	~Relay();
	Relay(const Relay &) = delete;
	Relay &operator=(const Relay &) = delete;

	enum class Mode { pass, hold_answers, hold_everything };

	int port() const { return port_; }
	std::size_t connections() const { return connections_; } // so far
	void set(Mode mode);
	void abandon();

private:
	struct Link { // -1 when closed
		int client;
		int server;
	};

	void work();
	void accept();
	bool pass(int from, int to);
	void wake();

	int target_port_;
	int port_;
	int listening_;
	int waker_;
	std::vector<Link> links_; // of the thread
	std::atomic<Mode> mode_{Mode::pass};
	std::atomic<std::size_t> abandoned_{0}; // the first so many links
	std::atomic<std::size_t> connections_{0};
	std::atomic<bool> stop_{false};
	std::thread thread_;
};

} // namespace live
