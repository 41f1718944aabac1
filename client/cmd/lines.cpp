#include "lines.hpp"

#include "interrupt.hpp"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace command {

static std::runtime_error cannot_read(const std::string &file)
{
	return std::runtime_error("could not read \"" + file + "\": " + std::generic_category().message(errno));
}

Lines::Lines(const std::string &file)
	: file_(file), fd_(file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC))
{
	if (fd_ < 0)
		throw cannot_read(file_);
}

Lines::~Lines()
{
	if (fd_ != STDIN_FILENO)
		::close(fd_);
}

bool Lines::next(std::string &line)
{
	std::size_t searched = begin_;
	while (true) {
		const std::size_t end = buffer_.find('\n', searched);
		if (end != std::string::npos) {
			line.assign(buffer_, begin_, end - begin_);
			begin_ = end + 1;
			number_++;
			return true;
		}
		const std::size_t known = buffer_.size() - begin_;
		if (!fill())
			break;
		searched = begin_ + known;
	}
	if (!at_end_ || begin_ == buffer_.size()) // interrupted, or the last line was complete
		return false;
	line.assign(buffer_, begin_);
	begin_ = buffer_.size();
	number_++;
	return true;
}

// Reads more; false at the end and when interrupted.
bool Lines::fill()
{
	buffer_.erase(0, begin_);
	begin_ = 0;
	while (!at_end_) {
		pollfd ready[] = {{fd_, POLLIN, 0}, {interrupt().fd(), POLLIN, 0}};
		if (::poll(ready, 2, -1) < 0 && errno != EINTR)
			throw cannot_read(file_);
		if (interrupt().is_pending())
			return false;
		char chunk[65536];
		const ssize_t bytes = ::read(fd_, chunk, sizeof chunk);
		if (bytes > 0) {
			buffer_.append(chunk, static_cast<std::size_t>(bytes));
			return true;
		}
		if (bytes == 0)
			at_end_ = true;
		else if (errno != EINTR)
			throw cannot_read(file_);
	}
	return false;
}

} // namespace command
