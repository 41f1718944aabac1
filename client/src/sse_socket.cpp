#include "sse_socket.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace doorbell::detail {

SseSocket::~SseSocket()
{
	::close(fd_);
}

void SseSocket::push(std::shared_ptr<const std::string> text, std::size_t begin, std::size_t end)
{
	if (begin == end)
		return;
	waiting_ += end - begin;
	slices_.push_back({std::move(text), begin, end});
}

void SseSocket::push(std::string text)
{
	const std::size_t size = text.size();
	push(std::make_shared<const std::string>(std::move(text)), 0, size);
}

SseSocket::Outcome SseSocket::flush(std::size_t &bytes)
{
	constexpr std::size_t most = 64;
	while (waiting_ > 0) {
		iovec parts[most];
		std::size_t count = 0;
		for (std::size_t i = first_; i < slices_.size() && count < most; i++, count++) {
			const Slice &slice = slices_[i];
			parts[count].iov_base = const_cast<char *>(slice.text->data() + slice.begin);
			parts[count].iov_len = slice.end - slice.begin;
		}
		msghdr message = {};
		message.msg_iov = parts;
		message.msg_iovlen = count;
		const ssize_t written = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (written < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::blocked : Outcome::broken;
		}
		bytes += static_cast<std::size_t>(written);
		drop(static_cast<std::size_t>(written));
	}
	return Outcome::written;
}

void SseSocket::drop(std::size_t bytes)
{
	waiting_ -= bytes;
	while (bytes > 0) {
		Slice &slice = slices_[first_];
		const std::size_t size = slice.end - slice.begin;
		if (bytes < size) {
			slice.begin += bytes;
			break;
		}
		bytes -= size;
		slice.text.reset();
		first_++;
	}
	if (first_ == slices_.size()) {
		slices_.clear();
		if (slices_.capacity() > 16) // an idle connection keeps next to nothing
			slices_.shrink_to_fit();
		first_ = 0;
	} else if (first_ >= 64) {
		slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(first_));
		first_ = 0;
	}
}

} // namespace doorbell::detail
