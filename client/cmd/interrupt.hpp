// SIGINT and SIGTERM as a state to look at and a descriptor to wait for.
//
// Threading: the handler only writes to a descriptor; everything else belongs to the main thread.
#pragma once

namespace command {

class Interrupt {
public:
	Interrupt(); // installs the handlers; a system call that waits is interrupted (no SA_RESTART)
	Interrupt(const Interrupt &) = delete;
	Interrupt &operator=(const Interrupt &) = delete;

	bool is_pending() const noexcept;
	unsigned take() noexcept; // the signals that have come since the last call; none is pending then
	int fd() const noexcept;  // readable while a signal is pending
};

Interrupt &interrupt(); // the one of this process, made by the first call

} // namespace command
