// The clients of Streamer: delivery, writing, timers. See streamer_impl.hpp.
#include "streamer_impl.hpp"

#include <doorbell/sse.hpp>

#include <algorithm>
#include <sys/epoll.h>
#include <utility>

namespace doorbell {

detail::Form Streamer::Impl::form_of(const Client &client)
{
	const bool one_stream = client.subscriptions.size() == 1;
	const bool shared_ids = client.all != nullptr || one_stream;
	return {shared_ids, !one_stream || client.request.envelope, client.request.named, client.request.raw};
}

std::size_t Streamer::Impl::room(const Client &client) const
{
	const std::size_t waiting = client.socket.waiting();
	return options_.buffer_bytes > waiting ? options_.buffer_bytes - waiting : 0;
}

bool Streamer::Impl::has_drained(const Client &client) const
{
	return client.socket.waiting() <= options_.buffer_bytes / 2;
}

// Gives a subscription what it does not have of a batch, as far as there is room; false if something is left.
bool Streamer::Impl::deliver(Subscription &subscription, detail::SseBatch &batch)
{
	const std::size_t first = batch.first_after(subscription.mark.seq);
	if (first == batch.size())
		return true;
	Client &client = *subscription.client;
	if (!client.is_ready())
		return false;
	const bool shared = form_of(client).with_id;
	const std::size_t end = shared ? give_shared(client, batch, first) : give_with_own_ids(subscription, batch, first);
	if (end > first)
		subscription.mark = batch.mark(end - 1);
	return end == batch.size();
}

// Both give a client what fits of a batch from `first` on, one frame at least when nothing waits, and return where that
// ends.
std::size_t Streamer::Impl::give_shared(Client &client, detail::SseBatch &batch, std::size_t first)
{
	const detail::Frames &frames = batch.frames(form_of(client));
	const std::size_t begin = frames.begin(first);
	const std::size_t most = room(client);
	std::size_t end = first;
	while (end < batch.size() && (frames.ends[end] - begin <= most || (client.socket.waiting() == 0 && end == first)))
		end++;
	client.socket.push(frames.text, begin, frames.begin(end));
	count_given(client, batch, first, end);
	return end;
}

std::size_t Streamer::Impl::give_with_own_ids(Subscription &subscription, detail::SseBatch &batch, std::size_t first)
{
	Client &client = *subscription.client;
	const detail::Frames &frames = batch.frames(form_of(client));
	std::vector<Mark> marks;
	std::size_t own = 0;
	for (const auto &each : client.subscriptions) {
		if (each.get() == &subscription)
			own = marks.size();
		marks.push_back(each->mark);
	}
	const std::size_t most = room(client);
	std::string text;
	std::size_t end = first;
	for (; end < batch.size(); end++) {
		marks[own] = batch.mark(end);
		const std::string id = "id: " + format_cursor(marks) + '\n';
		const std::size_t size = frames.begin(end + 1) - frames.begin(end);
		if (text.size() + id.size() + size > most && (client.socket.waiting() > 0 || end > first))
			break;
		text += id;
		text.append(*frames.text, frames.begin(end), size);
	}
	client.socket.push(std::move(text));
	count_given(client, batch, first, end);
	return end;
}

void Streamer::Impl::count_given(Client &client, const detail::SseBatch &batch, std::size_t first, std::size_t end)
{
	if (end == first)
		return;
	for (std::size_t i = first; i < end; i++)
		(batch.is_gap(i) ? stats_.gaps : stats_.frames)++;
	delivered_ += end - first;
	client.last_event = Clock::now();
	mark_dirty(client);
}

// From now on the subscription has a mark and takes part.
void Streamer::Impl::started(Subscription &subscription, Mark mark, Subscription::State state)
{
	const bool was_starting = subscription.state == Subscription::State::starting;
	subscription.mark = mark;
	subscription.state = state;
	starting_.erase(&subscription);
	if (state == Subscription::State::behind) {
		behind_.insert(&subscription);
		read_at_ = Clock::time_point::min();
	}
	if (was_starting) {
		subscription.client->unstarted--;
		read_at_ = Clock::time_point::min();
	}
}

void Streamer::Impl::tell_gap(Subscription &subscription, std::int64_t low_water)
{
	std::string text;
	sse::append_gap(text, subscription.hub->stream, subscription.mark.seq, low_water);
	push(*subscription.client, std::move(text));
	subscription.mark = {low_water, 0};
	stats_.gaps++;
}

void Streamer::Impl::tell_reset(Subscription &subscription, std::int64_t low_water)
{
	std::string text;
	sse::append_reset(text, subscription.hub->stream, subscription.mark.seq, low_water);
	push(*subscription.client, std::move(text));
	started(subscription, {low_water, 0}, Subscription::State::behind);
	stats_.resets++;
}

void Streamer::Impl::push(Client &client, std::string text)
{
	client.socket.push(std::move(text));
	mark_dirty(client);
}

void Streamer::Impl::mark_dirty(Client &client)
{
	if (client.dirty || client.blocked || client.gone)
		return;
	client.dirty = true;
	dirty_.push_back(&client);
}

void Streamer::Impl::flush_dirty()
{
	for (Client *client : dirty_) {
		client->dirty = false;
		if (!client->gone)
			flush(*client);
	}
	dirty_.clear();
}

void Streamer::Impl::flush(Client &client)
{
	const Clock::time_point now = Clock::now();
	std::size_t bytes = 0;
	const auto outcome = client.socket.flush(bytes);
	stats_.bytes += bytes;
	if (bytes > 0)
		client.last_write = now;
	if (outcome == detail::SseSocket::Outcome::broken) {
		leave(client);
		return;
	}
	if (outcome == detail::SseSocket::Outcome::blocked) {
		client.blocked = true;
		if (bytes > 0 || !client.stalled_since)
			client.stalled_since = now;
		set_timer(client, std::min(client.timer->first, *client.stalled_since + options_.write_deadline));
	} else {
		client.stalled_since.reset();
		if (client.closing)
			leave(client);
	}
	if (has_drained(client)) { // perhaps this one can go on
		drained_ |= resting_.count(&client) > 0;
		if (!behind_.empty())
			read_at_ = Clock::time_point::min();
	}
}

// The client is given up: removed at the end of the step.
void Streamer::Impl::leave(Client &client)
{
	if (client.gone)
		return;
	client.gone = true;
	gone_.push_back(client.id);
}

void Streamer::Impl::close_politely(Client &client)
{
	if (client.gone || client.closing)
		return;
	client.closing = true;
	std::string text;
	sse::append_shutdown(text);
	push(client, std::move(text));
	set_timer(client, Clock::now() + options_.write_deadline);
}

void Streamer::Impl::remove_gone()
{
	for (const std::uint64_t id : gone_) {
		const auto found = clients_.find(id);
		Client &client = *found->second;
		if (client.all != nullptr)
			unfollow_all(client);
		else
			unfollow(client);
		if (client.timer != timers_.end())
			timers_.erase(client.timer);
		::epoll_ctl(epoll_, EPOLL_CTL_DEL, client.socket.fd(), nullptr);
		clients_.erase(found);
	}
	if (!gone_.empty()) {
		gone_.clear();
		connections_ = clients_.size();
		stats_.connections = clients_.size();
	}
}

void Streamer::Impl::unfollow(Client &client)
{
	for (const auto &subscription : client.subscriptions) {
		starting_.erase(subscription.get());
		behind_.erase(subscription.get());
		Hub &hub = *subscription->hub;
		hub.subscriptions.erase(subscription.get());
		if (!hub.subscriptions.empty())
			continue;
		if (subscriber_)
			subscriber_->unfollow(hub.stream);
		unsettled_.erase(&hub);
		live_.erase(&hub);
		hubs_.erase(hubs_.find(hub.stream));
	}
}

// When something is to be done about the client, if nothing else happens.
Clock::time_point Streamer::Impl::due(const Client &client) const
{
	Clock::time_point at = client.request.expires;
	if (client.stalled_since)
		at = std::min(at, *client.stalled_since + options_.write_deadline);
	if (client.closing)
		return at;
	if (!client.blocked)
		at = std::min(at, client.last_write + options_.heartbeat);
	if (options_.idle_timeout.count() > 0)
		at = std::min(at, client.last_event + options_.idle_timeout);
	return at;
}

void Streamer::Impl::set_timer(Client &client, Clock::time_point at)
{
	if (client.timer != timers_.end()) {
		if (client.timer->first == at)
			return;
		timers_.erase(client.timer);
	}
	client.timer = timers_.emplace(at, &client);
}

void Streamer::Impl::run_timers()
{
	const Clock::time_point now = Clock::now();
	while (!timers_.empty() && timers_.begin()->first <= now)
		look_at(*timers_.begin()->second, now);
	flush_dirty();
}

void Streamer::Impl::look_at(Client &client, Clock::time_point now)
{
	if (client.gone) {
		set_timer(client, Clock::time_point::max());
		return;
	}
	if (client.closing || (client.stalled_since && *client.stalled_since + options_.write_deadline <= now)) {
		stats_.cut++;
		leave(client);
	} else if (client.request.expires <= now) {
		stats_.expired++;
		leave(client);
	} else if (options_.idle_timeout.count() > 0 && client.last_event + options_.idle_timeout <= now) {
		stats_.idle++;
		leave(client);
	} else if (!client.blocked && client.last_write + options_.heartbeat <= now) {
		std::string text;
		sse::append_comment(text);
		push(client, std::move(text));
		client.last_write = now;
	}
	set_timer(client, client.gone ? Clock::time_point::max() : std::max(due(client), now + milliseconds(1)));
}

} // namespace doorbell
