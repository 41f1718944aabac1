// The loop of Streamer: what comes in, and when what is done. See streamer_impl.hpp.
#include "streamer_impl.hpp"

#include <doorbell/sse.hpp>

#include "text.hpp"
#include "wait.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace doorbell {

void SseRequest::check() const
{
	if (streams.empty() && prefixes.empty())
		throw Error("an SSE request must name a stream or a prefix");
	for (auto stream = streams.begin(); stream != streams.end(); ++stream) {
		detail::check_stream(*stream);
		if (std::find(streams.begin(), stream, *stream) != stream)
			throw Error("an SSE request names stream " + detail::quoted(*stream) + " twice");
	}
	for (const std::string &prefix : prefixes)
		detail::check_prefix(prefix);
	const std::size_t needed = prefixes.empty() ? streams.size() : 0;
	if (!starts.empty() && starts.size() != needed)
		throw Error("an SSE request that needs " + std::to_string(needed) + " starts has " +
					std::to_string(starts.size()));
}

Streamer::Impl::Impl(StreamerOptions options)
	: options_(std::move(options)), epoll_(::epoll_create1(EPOLL_CLOEXEC)), reader_(options_.subscriber.connect),
	  backoff_(options_.subscriber.retry.first, options_.subscriber.retry.limit),
	  limit_(std::min(detail::first_limit, options_.subscriber.batch)), group_limit_(limit_)
{
	if (epoll_ < 0)
		throw Error("could not make an epoll descriptor: " + std::generic_category().message(errno));
	subscriber_.emplace(options_.subscriber, handlers());
}

Streamer::Impl::~Impl()
{
	for (const auto &[fd, request] : inbox_)
		::close(fd);
	::close(epoll_);
}

void Streamer::Impl::add(int fd, SseRequest request)
{
	creator_.check();
	request.check();
	{
		const std::lock_guard<std::mutex> lock(inbox_mutex_);
		if (!inbox_closed_) {
			inbox_.emplace_back(fd, std::move(request));
			fd = -1;
		}
	}
	if (fd >= 0)
		::close(fd);
	waker_.ring();
}

std::size_t Streamer::Impl::poll(milliseconds timeout)
{
	creator_.check();
	delivered_ = 0;
	const Clock::time_point until = detail::deadline_after(timeout);
	while (true) {
		step();
		if (delivered_ > 0 || waker_.take() || is_shut_down() || Clock::now() >= until)
			return delivered_;
		detail::wait(descriptors(), std::min(until, deadline()));
	}
}

// Goes as far as it can without waiting.
void Streamer::Impl::step()
{
	if (shut_down_ && !draining_)
		begin_drain();
	admit_waiting();
	if (!draining_) {
		subscriber_->poll(milliseconds(0));
		settle_hubs();
		broadcast();
		advance_catch_up();
		give_kept();
	}
	watch_sockets();
	flush_dirty();
	run_timers();
	remove_gone();
	if (draining_)
		return;
	give_rested();
	ask_catch_up();
}

void Streamer::Impl::begin_drain()
{
	draining_ = true;
	subscriber_stats_ = subscriber_->stats();
	subscriber_.reset();
	reader_.close();
	{
		const std::lock_guard<std::mutex> lock(inbox_mutex_);
		inbox_closed_ = true;
		for (const auto &[fd, request] : inbox_)
			::close(fd);
		inbox_.clear();
	}
	for (const auto &[id, client] : clients_)
		close_politely(*client);
}

Handlers Streamer::Impl::handlers()
{
	Handlers handlers;
	handlers.on_event = [this](const Event &event) {
		arrived(event);
		const auto hub = hubs_.find(event.stream);
		if (hub == hubs_.end())
			return;
		hub->second.batch.add(event);
		live_.insert(&hub->second);
	};
	handlers.on_gap = [this](const Gap &gap) {
		const auto hub = hubs_.find(gap.stream);
		if (hub == hubs_.end() || !hub->second.mark)
			return;
		hub->second.mark = Mark{gap.low_water, 0};
		for (Subscription *subscription : hub->second.subscriptions)
			if (subscription->state == Subscription::State::live && subscription->mark.seq < gap.low_water)
				tell_gap(*subscription, gap.low_water);
	};
	handlers.on_reset = [this](const Reset &reset) {
		reported_.forget(reset.stream);
		const auto hub = hubs_.find(reset.stream);
		if (hub == hubs_.end() || !hub->second.mark)
			return;
		hub->second.mark = Mark{reset.low_water, 0};
		hub->second.batch = {};
		hub->second.pages.clear();
		for (Subscription *subscription : hub->second.subscriptions)
			if (subscription->state != Subscription::State::starting)
				tell_reset(*subscription, reset.low_water);
	};
	handlers.on_ring = [this](const Pointer &pointer) { on_ring(pointer); };
	return handlers;
}

void Streamer::Impl::admit_waiting()
{
	std::vector<std::pair<int, SseRequest>> waiting;
	{
		const std::lock_guard<std::mutex> lock(inbox_mutex_);
		waiting.swap(inbox_);
	}
	for (auto &[fd, request] : waiting)
		admit(fd, std::move(request));
}

void Streamer::Impl::admit(int fd, SseRequest request)
{
	const auto now = Clock::now();
	auto made = std::make_unique<Client>(next_id_++, fd);
	epoll_event event = {};
	event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	event.data.u64 = made->id;
	const int flags = ::fcntl(fd, F_GETFL);
	if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
		::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
		return; // not a socket any more; the client's destructor closes it
	Client &client = *made;
	clients_.emplace(client.id, std::move(made));
	connections_ = clients_.size();
	stats_.added++;
	stats_.connections = clients_.size();

	client.request = std::move(request);
	client.last_write = client.last_event = now;
	client.timer = timers_.end();
	std::string greeting;
	const auto half = static_cast<unsigned>(options_.retry.count() / 2);
	sse::append_retry(greeting, milliseconds(half + random_() % (2 * half + 1)));
	sse::append_comment(greeting, "pg_doorbell");
	push(client, std::move(greeting));

	if (!client.request.prefixes.empty())
		follow_all(client);
	else
		for (std::size_t i = 0; i < client.request.streams.size(); i++)
			follow(client, client.request.streams[i],
				   client.request.starts.empty() ? Start::now() : client.request.starts[i]);
	set_timer(client, due(client));
}

void Streamer::Impl::watch_sockets()
{
	epoll_event events[256];
	int count;
	do {
		count = ::epoll_wait(epoll_, events, 256, 0);
		for (int i = 0; i < count; i++) {
			const auto found = clients_.find(events[i].data.u64);
			if (found == clients_.end())
				continue;
			Client &client = *found->second;
			if ((events[i].events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0) {
				leave(client);
			} else if ((events[i].events & EPOLLOUT) != 0 && client.blocked) {
				client.blocked = false;
				mark_dirty(client);
			}
		}
	} while (count == 256);
}

std::vector<Descriptor> Streamer::Impl::descriptors() const
{
	std::vector<Descriptor> all;
	if (subscriber_)
		all = subscriber_->descriptors();
	all.push_back({waker_.fd(), POLLIN});
	all.push_back({epoll_, POLLIN});
	if (!draining_ && reader_.status() != detail::Connection::Status::closed)
		all.push_back(reader_.descriptor());
	return all;
}

Clock::time_point Streamer::Impl::deadline() const
{
	Clock::time_point earliest = timers_.empty() ? Clock::time_point::max() : timers_.begin()->first;
	if (draining_)
		return earliest;
	earliest = std::min({earliest, subscriber_->deadline(), reader_.deadline()});
	if (!dirty_.empty())
		return Clock::time_point::min();
	if (reader_.status() == detail::Connection::Status::closed && wants_reader())
		earliest = std::min(earliest, retry_at_);
	else if (reader_.status() == detail::Connection::Status::idle)
		earliest = std::min({earliest, behind_.empty() ? Clock::time_point::max() : read_at_, wakes_at()});
	return earliest;
}

Streamer::Streamer(StreamerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Streamer::~Streamer() = default;

void Streamer::add(int fd, SseRequest request)
{
	impl_->add(fd, std::move(request));
}

std::size_t Streamer::poll(milliseconds timeout)
{
	return impl_->poll(timeout);
}

void Streamer::run()
{
	while (!impl_->stop_.exchange(false) && !impl_->is_shut_down())
		impl_->poll(milliseconds::max());
}

void Streamer::shutdown() noexcept
{
	impl_->shut_down_ = true;
	impl_->waker_.ring();
}

void Streamer::stop() noexcept
{
	impl_->stop_ = true;
	impl_->waker_.ring();
}

void Streamer::wake() noexcept
{
	impl_->waker_.ring();
}

bool Streamer::is_shut_down() const noexcept
{
	return impl_->is_shut_down();
}

std::size_t Streamer::connections() const noexcept
{
	return impl_->connections_;
}

std::vector<Descriptor> Streamer::descriptors() const
{
	return impl_->descriptors();
}

Clock::time_point Streamer::deadline() const
{
	return impl_->deadline();
}

State Streamer::state() const noexcept
{
	return impl_->subscriber_ ? impl_->subscriber_->state() : State::down;
}

const std::string &Streamer::last_error() const noexcept
{
	return impl_->subscriber_ ? impl_->subscriber_->last_error() : impl_->no_error_;
}

const StreamerStats &Streamer::stats() const noexcept
{
	return impl_->stats_;
}

const SubscriberStats &Streamer::subscriber_stats() const noexcept
{
	return impl_->subscriber_ ? impl_->subscriber_->stats() : impl_->subscriber_stats_;
}

} // namespace doorbell
