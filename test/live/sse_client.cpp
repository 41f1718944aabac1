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
		feed({chunk, static_cast<std::size_t>(got)});
	}
	return true;
}

} // namespace live
