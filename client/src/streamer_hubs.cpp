// The hubs of Streamer: who follows what, and what is broadcast. See streamer_impl.hpp.
#include "streamer_impl.hpp"

namespace doorbell {

void Streamer::Impl::follow(Client &client, std::string_view stream, Start start)
{
	auto found = hubs_.find(stream);
	if (found == hubs_.end()) {
		found = hubs_.emplace(std::string(stream), Hub{}).first;
		found->second.stream = stream;
		unsettled_.insert(&found->second);
		subscriber_->follow(stream, Start::now());
	}
	Hub &hub = found->second;
	client.subscriptions.push_back(std::make_unique<Subscription>(Subscription{&client, &hub, start.mark(), start}));
	Subscription &subscription = *client.subscriptions.back();
	hub.subscriptions.insert(&subscription);
	client.unstarted++;
	const Mark asked = start.mark();
	if (hub.mark && (start.kind() == Start::Kind::now || (asked.check != 0 && asked == *hub.mark)))
		started(subscription, *hub.mark, Subscription::State::live);
	else if (start.kind() != Start::Kind::now)
		starting_.insert(&subscription);
}

void Streamer::Impl::settle_hubs()
{
	for (auto i = unsettled_.begin(); i != unsettled_.end();) {
		Hub &hub = **i;
		const std::optional<Mark> mark = subscriber_->mark(hub.stream);
		if (!mark) {
			++i;
			continue;
		}
		// What has arrived since it was settled lies in the batch, behind its beginning.
		hub.mark = hub.batch.empty() ? *mark : Mark{hub.batch.mark(0).seq - 1, 0};
		i = unsettled_.erase(i);
		read_at_ = Clock::time_point::min(); // who is behind in it waited for this
		for (Subscription *subscription : hub.subscriptions)
			if (subscription->state == Subscription::State::starting && subscription->start.kind() == Start::Kind::now)
				started(*subscription, *hub.mark, Subscription::State::live);
	}
}

void Streamer::Impl::broadcast()
{
	for (Hub *hub : live_) {
		if (hub->batch.empty() || !hub->mark)
			continue;
		const Mark mark = hub->batch.mark(hub->batch.size() - 1);
		for (Subscription *subscription : hub->subscriptions)
			if (subscription->state == Subscription::State::live && !deliver(*subscription, hub->batch)) {
				subscription->state = Subscription::State::behind;
				behind_.insert(subscription);
				stats_.fell_behind++;
			}
		hub->mark = mark;
		hub->batch = {};
	}
	live_.clear();
}

// Live, from wherever: it is reported once.
void Streamer::Impl::arrived(const Event &event)
{
	if (!all_hubs_.empty() && !reported_.deliver(event.stream, mark_of(event)))
		return;
	stats_.events++;
	if (options_.on_event)
		options_.on_event(event);
}

} // namespace doorbell
