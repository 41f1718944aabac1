#include "relay.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace live {
namespace {

sockaddr_in loopback(int port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(static_cast<in_port_t>(port));
	return address;
}

} // namespace

Relay::Relay(int target_port)
	: target_port_(target_port), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
	  waker_(::eventfd(0, EFD_CLOEXEC))
{
	sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	if (::bind(listening_, reinterpret_cast<sockaddr *>(&address), length) != 0 || ::listen(listening_, 100) != 0 ||
		::getsockname(listening_, reinterpret_cast<sockaddr *>(&address), &length) != 0)
		throw std::runtime_error("the relay cannot listen");
	port_ = ntohs(address.sin_port);
	thread_ = std::thread([this] { work(); });
}

Relay::~Relay()
{
	stop_ = true;
	wake();
	thread_.join();
	for (const Link &link : links_) {
		::close(link.client);
		::close(link.server);
	}
	::close(listening_);
	::close(waker_);
}

void Relay::set(Mode mode)
{
	mode_ = mode;
	wake();
}

void Relay::abandon()
{
	abandoned_ = connections_.load();
	wake();
}

void Relay::wake()
{
	::eventfd_write(waker_, 1);
}

void Relay::work()
{
	while (!stop_) {
		std::vector<pollfd> polled{{waker_, POLLIN, 0}, {listening_, POLLIN, 0}};
		for (std::size_t i = 0; i < links_.size(); i++) {
			const bool held = links_[i].client < 0 || i < abandoned_ || mode_ == Mode::hold_everything;
			polled.push_back({held ? -1 : links_[i].client, POLLIN, 0});
			polled.push_back({held || mode_ == Mode::hold_answers ? -1 : links_[i].server, POLLIN, 0});
		}
		::poll(polled.data(), polled.size(), -1);

		if (polled[0].revents != 0) {
			eventfd_t count;
			::eventfd_read(waker_, &count);
			continue; // the mode may be another one
		}
		for (std::size_t i = 2; i < polled.size(); i++) {
			Link &link = links_[i / 2 - 1];
			const bool from_client = i % 2 == 0;
			if (polled[i].revents != 0 && link.client >= 0 &&
				!(from_client ? pass(link.client, link.server) : pass(link.server, link.client))) {
				::close(link.client);
				::close(link.server);
				link = {-1, -1};
			}
		}
		if (polled[1].revents != 0)
			accept();
	}
}

void Relay::accept()
{
	const int client = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
	const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const sockaddr_in address = loopback(target_port_);
	if (::connect(server, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
		::close(client);
		::close(server);
		return;
	}
	links_.push_back({client, server});
	connections_++;
}

bool Relay::pass(int from, int to)
{
	char bytes[65536];
	const ssize_t count = ::recv(from, bytes, sizeof bytes, 0);
	for (ssize_t sent = 0; sent < count;) {
		const ssize_t more = ::send(to, bytes + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
		if (more < 0)
			return false;
		sent += more;
	}
	return count > 0;
}

} // namespace live
