#include "interrupt.hpp"

#include <csignal>
#include <cstdint>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <unistd.h>

namespace command {

static int event_fd = -1;

static void on_signal(int)
{
	const std::uint64_t one = 1;
	if (::write(event_fd, &one, sizeof one) < 0) {
		// only when it has been written to very often, and then it is readable
	}
}

Interrupt::Interrupt()
{
	event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (event_fd < 0)
		throw std::runtime_error("could not make an eventfd: out of descriptors or memory");
	struct sigaction action = {};
	action.sa_handler = on_signal;
	sigemptyset(&action.sa_mask);
	for (const int signal : {SIGINT, SIGTERM})
		if (::sigaction(signal, &action, nullptr) != 0)
			throw std::runtime_error("could not handle signals");
}

bool Interrupt::is_pending() const noexcept
{
	pollfd descriptor = {event_fd, POLLIN, 0};
	return ::poll(&descriptor, 1, 0) > 0;
}

unsigned Interrupt::take() noexcept
{
	std::uint64_t signals = 0;
	return ::read(event_fd, &signals, sizeof signals) < 0 ? 0 : static_cast<unsigned>(signals);
}

int Interrupt::fd() const noexcept
{
	return event_fd;
}

Interrupt &interrupt()
{
	static Interrupt the_one;
	return the_one;
}

} // namespace command
