// Connections to a server that is named as HOST:PORT.
#pragma once

#include <cerrno>
#include <memory>
#include <netdb.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace bench {

class Socket {
public:
	explicit Socket(int fd) : fd_(fd)
	{
		if (fd < 0)
			throw std::system_error(errno, std::generic_category(), "socket");
	}
	~Socket() { close(fd_); }
	Socket(const Socket &) = delete;
	Socket &operator=(const Socket &) = delete;

	int fd() const noexcept { return fd_; }

	void send(const std::string &text) const
	{
		if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
			throw std::system_error(errno, std::generic_category(), "send");
	}

private:
	int fd_;
};

class Address {
public:
	explicit Address(std::string text) : text_(std::move(text))
	{
		const std::size_t colon = text_.rfind(':');
		if (colon == std::string::npos)
			throw std::runtime_error("not HOST:PORT: " + text_);
		addrinfo hints = {};
		hints.ai_socktype = SOCK_STREAM;
		addrinfo *found = nullptr;
		const int error = getaddrinfo(text_.substr(0, colon).c_str(), text_.substr(colon + 1).c_str(), &hints, &found);
		if (error != 0)
			throw std::runtime_error(text_ + ": " + gai_strerror(error));
		found_.reset(found);
	}

	const std::string &text() const noexcept { return text_; }

	int make_socket() const { return socket(found_->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0); }

	void connect(const Socket &socket) const
	{
		if (::connect(socket.fd(), found_->ai_addr, found_->ai_addrlen) != 0)
			throw std::system_error(errno, std::generic_category(), text_);
	}

	// The head of a GET for an event stream.
	std::string sse_request(const std::string &path) const
	{
		return "GET " + path + " HTTP/1.1\r\nHost: " + text_ + "\r\nAccept: text/event-stream\r\n\r\n";
	}

private:
	struct Free {
		void operator()(addrinfo *list) const noexcept { freeaddrinfo(list); }
	};

	std::string text_;
	std::unique_ptr<addrinfo, Free> found_;
};

// A path with the number of a stream in the place of {n}, if there is one.
inline std::string path_of(std::string path, std::size_t stream)
{
	const std::size_t at = path.find("{n}");
	return at == std::string::npos ? path : path.replace(at, 3, std::to_string(stream));
}

} // namespace bench
