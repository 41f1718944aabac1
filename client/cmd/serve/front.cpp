#include "front.hpp"

#include "../command.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace command::serve {

using doorbell::Clock;
using doorbell::milliseconds;

namespace {

constexpr std::size_t most_waiting = 1024;
constexpr std::size_t crowded = most_waiting / 2;
constexpr milliseconds crowded_header_time{1'000};
constexpr milliseconds pause_without_descriptors{100};
constexpr int accepted_at_a_time = 64; // then the streams have their turn

} // namespace

Front::Front(const Address &address, const Routes &routes, doorbell::Streamer &streamer, Metrics &metrics, Options options)
	: address_(address), routes_(routes), streamer_(streamer), metrics_(metrics), options_(options),
	  epoll_(::epoll_create1(EPOLL_CLOEXEC))
{
	if (epoll_ < 0)
		throw std::runtime_error("could not make an epoll descriptor: " + std::generic_category().message(errno));
	try {
		listener_ = address_.listen();
	} catch (...) {
		::close(epoll_);
		throw;
	}
	resume();
}

Front::~Front()
{
	connections_.clear();
	if (listener_ >= 0)
		::close(listener_);
	::close(epoll_);
}

Clock::time_point Front::deadline() const
{
	return std::min(resume_at_, deadlines_.empty() ? Clock::time_point::max() : deadlines_.begin()->first);
}

void Front::advance()
{
	handed_over_ = 0;
	epoll_event events[256];
	const int count = ::epoll_wait(epoll_, events, 256, 0);
	for (int i = 0; i < count; i++) {
		const int fd = events[i].data.fd;
		if (fd == listener_) {
			accept();
		} else if (const auto found = connections_.find(fd); found != connections_.end()) {
			deadlines_.erase({found->second->deadline(), fd});
			found->second->advance(routes_);
			handle(*found->second);
		}
	}
	run_deadlines();
}

void Front::run_deadlines()
{
	const Clock::time_point now = Clock::now();
	while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
		HttpConnection &connection = *connections_.at(deadlines_.begin()->second);
		deadlines_.erase(deadlines_.begin());
		connection.overdue(routes_);
		handle(connection);
	}
	if (resume_at_ <= now)
		resume();
}

void Front::accept()
{
	for (int i = 0; i < accepted_at_a_time; i++) {
		if (connections_.size() >= most_waiting) {
			pause(milliseconds::max());
			return;
		}
		const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			add(fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			pause(pause_without_descriptors);
			return;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		}
		// Anything else belongs to the connection that is not there any more.
	}
}

void Front::add(int fd)
{
	const milliseconds time = connections_.size() < crowded ? options_.header_time : std::min(options_.header_time, crowded_header_time);
	auto made = std::make_unique<HttpConnection>(fd, Clock::now() + time);
	HttpConnection &connection = *made;
	epoll_event event = {};
	event.events = connection.wanted();
	event.data.fd = fd;
	if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
		return; // out of memory; the connection is closed
	connections_.emplace(fd, std::move(made));
	connection.advance(routes_); // the head has often come already
	handle(connection);
}

// After a step of the connection, which has no entry in deadlines_: does what it has come to.
void Front::handle(HttpConnection &connection)
{
	using State = HttpConnection::State;
	const int fd = connection.fd();
	int stream = -1;
	if (connection.state() == State::replied) {
		metrics_.answered(connection.reply().status);
		if (options_.verbose)
			say(std::to_string(connection.reply().status) + ' ' + connection.request_line());
		if (connection.reply().is_stream)
			stream = connection.let_go();
		else
			connection.send();
	}
	if (connection.state() != State::done) {
		deadlines_.emplace(connection.deadline(), fd);
		watch(connection);
		return;
	}
	::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
	if (stream >= 0) {
		streamer_.add(stream, connection.reply().request);
		handed_over_++;
	}
	connections_.erase(fd);
	if (!listening_ && resume_at_ == Clock::time_point::max())
		resume();
}

void Front::watch(HttpConnection &connection)
{
	epoll_event event = {};
	event.events = connection.wanted();
	event.data.fd = connection.fd();
	::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd(), &event);
}

// Accepts nothing for that time, or until a connection is done.
void Front::pause(milliseconds time)
{
	::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
	listening_ = false;
	resume_at_ = time == milliseconds::max() ? Clock::time_point::max() : Clock::now() + time;
}

void Front::resume()
{
	resume_at_ = Clock::time_point::max();
	if (listener_ < 0 || listening_)
		return;
	epoll_event event = {};
	event.events = EPOLLIN;
	event.data.fd = listener_;
	if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event) == 0)
		listening_ = true;
	else
		resume_at_ = Clock::now() + pause_without_descriptors;
}

void Front::close()
{
	if (listener_ < 0)
		return;
	::close(listener_);
	listener_ = -1;
	listening_ = false;
	for (auto i = connections_.begin(); i != connections_.end();) {
		if (i->second->state() == HttpConnection::State::reading) {
			deadlines_.erase({i->second->deadline(), i->first});
			i = connections_.erase(i);
		} else {
			++i;
		}
	}
}

} // namespace command::serve
