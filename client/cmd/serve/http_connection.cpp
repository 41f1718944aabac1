#include "http_connection.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace command::serve {

using doorbell::Clock;

namespace {

constexpr std::chrono::seconds write_deadline{5};
constexpr std::chrono::seconds linger_deadline{2};
constexpr std::size_t most_dropped = 1024 * 1024;

bool would_block()
{
	return errno == EAGAIN || errno == EWOULDBLOCK;
}

// For the log: the method and the path, without the query, which may hold a token.
std::string loggable(const Head &head)
{
	std::string text = head.method + ' ' + head.target.substr(0, head.target.find('?')).substr(0, 200);
	for (char &c : text)
		if (c < 0x20 || c == 0x7f)
			c = '?';
	return text;
}

} // namespace

HttpConnection::~HttpConnection()
{
	if (fd_ >= 0)
		::close(fd_);
}

std::uint32_t HttpConnection::wanted() const noexcept
{
	return state_ == State::writing ? EPOLLOUT : EPOLLIN;
}

void HttpConnection::advance(const Routes &routes)
{
	if (state_ == State::reading)
		read(routes);
	else if (state_ == State::writing)
		write();
	else if (state_ == State::lingering)
		linger();
}

void HttpConnection::overdue(const Routes &routes)
{
	if (state_ == State::reading)
		set_reply(routes.refuse(Refusal(408, "the request did not come in time")));
	else
		state_ = State::done;
}

void HttpConnection::read(const Routes &routes)
{
	char chunk[4096];
	while (state_ == State::reading) {
		const ssize_t bytes = ::recv(fd_, chunk, sizeof chunk, 0);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && would_block())
			return;
		if (bytes <= 0) {
			state_ = State::done; // nobody is there to be answered
			return;
		}
		try {
			if (reader_->feed({chunk, static_cast<std::size_t>(bytes)})) {
				const Head head = reader_->head();
				request_line_ = loggable(head);
				set_reply(routes.reply(head));
			}
		} catch (const Refusal &refusal) {
			set_reply(routes.refuse(refusal));
		}
	}
}

void HttpConnection::set_reply(Reply reply)
{
	reply_ = std::move(reply);
	reader_.reset();
	state_ = State::replied;
}

void HttpConnection::send()
{
	state_ = State::writing;
	deadline_ = Clock::now() + write_deadline;
	write();
}

int HttpConnection::let_go()
{
	state_ = State::done;
	const ssize_t bytes = ::send(fd_, reply_.text.data(), reply_.text.size(), MSG_NOSIGNAL);
	return bytes == static_cast<ssize_t>(reply_.text.size()) ? std::exchange(fd_, -1) : -1;
}

void HttpConnection::write()
{
	while (written_ < reply_.text.size()) {
		const ssize_t bytes =
			::send(fd_, reply_.text.data() + written_, reply_.text.size() - written_, MSG_NOSIGNAL);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && would_block())
			return;
		if (bytes < 0) {
			state_ = State::done;
			return;
		}
		written_ += static_cast<std::size_t>(bytes);
	}
	reply_.text = {};
	::shutdown(fd_, SHUT_WR);
	state_ = State::lingering;
	deadline_ = Clock::now() + linger_deadline;
	linger();
}

void HttpConnection::linger()
{
	char chunk[16384];
	while (dropped_ < most_dropped) {
		const ssize_t bytes = ::recv(fd_, chunk, sizeof chunk, 0);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && would_block())
			return;
		if (bytes <= 0)
			break;
		dropped_ += static_cast<std::size_t>(bytes);
	}
	state_ = State::done;
}

} // namespace command::serve
