// Where to listen: "127.0.0.1:8080", "[::1]:8080", "localhost:8080".
#pragma once

#include <string>
#include <sys/socket.h>

namespace command::serve {

class Address {
public:
	explicit Address(const std::string &text); // throws std::runtime_error, naming the text

	int listen();			  // a non-blocking socket; a port 0 becomes the one that was chosen
	bool is_loopback() const; // reachable from this machine only
	std::string text() const; // numeric

private:
	const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage_); }

	sockaddr_storage storage_ = {};
	socklen_t size_ = 0;
};

} // namespace command::serve
