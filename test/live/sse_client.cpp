#include "sse_client.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace live {

SseClient::SseClient()
{
	const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in address = {};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t size = sizeof address;
	fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (::bind(listener, reinterpret_cast<sockaddr *>(&address), size) != 0 || ::listen(listener, 1) != 0 ||
		::getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0 ||
		::connect(fd_, reinterpret_cast<sockaddr *>(&address), size) != 0)
		throw std::runtime_error("could not make a loopback connection");
	server_fd_ = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
	::close(listener);
	if (server_fd_ < 0)
		throw std::runtime_error("could not accept a loopback connection");
}

SseClient::~SseClient()
{
	::close(fd_);
	if (server_fd_ >= 0)
		::close(server_fd_);
}

int SseClient::take_server_end()
{
	const int fd = server_fd_;
	server_fd_ = -1;
	return fd;
}

void SseClient::shrink_receive_buffer()
{
	const int small = 4096;
	::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	::setsockopt(server_fd_, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
}

bool SseClient::read(std::size_t most)
{
	char chunk[65536];
	while (most > 0) {
		const ssize_t got = ::recv(fd_, chunk, std::min(most, sizeof chunk), MSG_DONTWAIT);
		if (got == 0)
			return false;
		if (got < 0)
			return errno == EAGAIN || errno == EINTR;
		most -= static_cast<std::size_t>(got);
		bytes += static_cast<std::size_t>(got);
		buffer_.append(chunk, static_cast<std::size_t>(got));
		std::size_t begin = 0;
		for (std::size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1)
			line(buffer_.substr(begin, end - begin));
		buffer_.erase(0, begin);
	}
	return true;
}

void SseClient::line(const std::string &text)
{
	if (text.empty()) {
		if (has_data_) {
			data_.pop_back();
			auto &to = type_.compare(0, 9, "doorbell:") == 0 ? controls : messages;
			to.push_back({last_id, type_.empty() ? "message" : type_, data_});
		}
		type_.clear();
		data_.clear();
		has_data_ = false;
		return;
	}
	if (text[0] == ':') {
		comments++;
		return;
	}
	const std::size_t colon = text.find(':');
	const std::string field = text.substr(0, colon);
	std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
	if (!value.empty() && value[0] == ' ')
		value.erase(0, 1);
	if (field == "data") {
		data_ += value + '\n';
		has_data_ = true;
	} else if (field == "event") {
		type_ = value;
	} else if (field == "id") {
		last_id = value;
	} else if (field == "retry") {
		retry = std::stol(value);
	}
}

} // namespace live
