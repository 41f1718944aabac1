// Which process made an object, and how to wake its owner.
#pragma once

#include <doorbell/error.hpp>

#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace doorbell::detail {

// A forked child inherits descriptors that still belong to its parent: it may drop its copies, nothing else.
class Creator {
public:
	bool is_this_process() const noexcept { return ::getpid() == pid_; }

	void check() const
	{
		if (!is_this_process())
			throw Error("this object belongs to the process that made it, not to a forked child");
	}

private:
	pid_t pid_ = ::getpid();
};

// Wakes a thread that waits in poll(2) on fd(). ring() is thread-safe and async-signal-safe; the rest is the owner's.
class Waker {
public:
	Waker() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
	{
		if (fd_ < 0)
			throw Error("could not make an eventfd: out of descriptors or memory");
	}
	~Waker() { ::close(fd_); }
	Waker(const Waker &) = delete;
	Waker &operator=(const Waker &) = delete;

	int fd() const noexcept { return fd_; }

	void ring() noexcept
	{
		const std::uint64_t one = 1;
		if (creator_.is_this_process() && ::write(fd_, &one, sizeof one) < 0) {
			// only when the counter is full, and then the owner is being woken already
		}
	}

	bool take() noexcept // whether it was rung since the last time
	{
		std::uint64_t count;
		return ::read(fd_, &count, sizeof count) == sizeof count;
	}

private:
	Creator creator_;
	int fd_;
};

} // namespace doorbell::detail
