// One connection, from accept until it is answered or has become a stream.
//
// 1. reading the head → writing the answer → lingering: the write side is shut and what still comes is dropped, until
//    the client closes, too. (Closing at once could lose the answer: unread bytes make the kernel reset.) A stream's
//    socket is let go instead, with its head written.
// 2. Every step ends at a deadline, and none keeps more than one head or one answer.
//
// Threading: one owner. Never blocks.
#pragma once

#include "head.hpp"
#include "routes.hpp"

#include <doorbell/connect.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace command::serve {

class HttpConnection {
public:
	HttpConnection(int fd, doorbell::Clock::time_point deadline) : fd_(fd), deadline_(deadline) {}
	~HttpConnection(); // closes the socket unless it was let go
	HttpConnection(const HttpConnection &) = delete;
	HttpConnection &operator=(const HttpConnection &) = delete;

	enum class State { reading, replied, writing, lingering, done };

	int fd() const noexcept { return fd_; }
	State state() const noexcept { return state_; }
	std::uint32_t wanted() const noexcept; // epoll events
	doorbell::Clock::time_point deadline() const noexcept { return deadline_; }

	void advance(const Routes &routes);	 // the socket is ready
	void overdue(const Routes &routes);	 // the deadline has passed
	const Reply &reply() const noexcept { return reply_; } // since `replied`
	const std::string &request_line() const noexcept { return request_line_; } // method and path, printable

	// In `replied` only: goes on with the answer, or gives the socket away with the stream's head written to it;
	// -1 when that could not be written at once, which an honest client's socket always can.
	void send();
	int let_go();

private:
	void read(const Routes &routes);
	void set_reply(Reply reply);
	void write();
	void linger();

	int fd_;
	State state_ = State::reading;
	doorbell::Clock::time_point deadline_;
	std::optional<HeadReader> reader_{std::in_place};
	Reply reply_;
	std::size_t written_ = 0;
	std::size_t dropped_ = 0; // bytes, while lingering
	std::string request_line_;
};

} // namespace command::serve
