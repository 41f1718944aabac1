#include "output.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace command {

doorbell::Descriptor Output::descriptor() const noexcept
{
	// Errors and hang-ups are reported whatever is asked for.
	return {STDOUT_FILENO, static_cast<short>(waiting() > 0 ? POLLOUT : 0)};
}

void Output::advance()
{
	while (!closed_) {
		pollfd ready = {STDOUT_FILENO, descriptor().events, 0};
		if (::poll(&ready, 1, 0) <= 0)
			break;
		if ((ready.revents & POLLERR) != 0)
			closed_ = true;
		else if ((ready.revents & POLLOUT) != 0)
			write(PIPE_BUF);
		else
			break;
	}
	drop_written();
}

void Output::flush()
{
	while (!closed_ && waiting() > 0)
		write(waiting());
	drop_written();
}

void Output::write(std::size_t most)
{
	const ssize_t bytes = ::write(STDOUT_FILENO, text_.data() + written_, std::min(most, waiting()));
	if (bytes >= 0)
		written_ += static_cast<std::size_t>(bytes);
	else if (errno == EPIPE)
		closed_ = true;
	else if (errno != EINTR && errno != EAGAIN)
		throw std::runtime_error("could not write the output: " + std::generic_category().message(errno));
}

void Output::drop_written()
{
	if (closed_ || waiting() == 0)
		text_.clear();
	else if (written_ > text_.size() / 2)
		text_.erase(0, written_);
	else
		return;
	written_before_ += written_;
	written_ = 0;
}

} // namespace command
