#include "address.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace command::serve {

Address::Address(const std::string &text)
{
	const std::size_t colon = text.rfind(':');
	std::string host = text.substr(0, colon);
	if (host.size() > 2 && host.front() == '[' && host.back() == ']')
		host = host.substr(1, host.size() - 2);
	else if (host.find(':') != std::string::npos)
		host.clear();
	if (colon == std::string::npos || host.empty() || colon + 1 == text.size())
		throw std::runtime_error("\"" + text + "\" is no address to listen on: give ADDRESS:PORT or [ADDRESS]:PORT");

	addrinfo hints = {};
	hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
	hints.ai_socktype = SOCK_STREAM;
	addrinfo *found = nullptr;
	const int error = ::getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found);
	const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
	if (error != 0)
		throw std::runtime_error("\"" + text + "\" is no address to listen on: " + ::gai_strerror(error));
	std::memcpy(&storage_, found->ai_addr, found->ai_addrlen);
	size_ = found->ai_addrlen;
}

int Address::listen()
{
	const int fd = ::socket(storage_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int yes = 1;
	if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
		::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 || // connections inherit it
		::bind(fd, get(), size_) != 0 || ::listen(fd, SOMAXCONN) != 0 ||
		::getsockname(fd, reinterpret_cast<sockaddr *>(&storage_), &size_) != 0) {
		const int error = errno;
		if (fd >= 0)
			::close(fd);
		throw std::runtime_error("could not listen on " + text() + ": " + std::generic_category().message(error));
	}
	return fd;
}

bool Address::is_loopback() const
{
	if (storage_.ss_family == AF_INET) {
		sockaddr_in address;
		std::memcpy(&address, &storage_, sizeof address);
		return ntohl(address.sin_addr.s_addr) >> 24 == 127;
	}
	sockaddr_in6 address;
	std::memcpy(&address, &storage_, sizeof address);
	return IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
}

std::string Address::text() const
{
	char host[NI_MAXHOST];
	char port[NI_MAXSERV];
	if (::getnameinfo(get(), size_, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return "?";
	return storage_.ss_family == AF_INET6 ? '[' + std::string(host) + "]:" + port : std::string(host) + ':' + port;
}

} // namespace command::serve
