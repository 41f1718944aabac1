// The hubs of Streamer: who follows what, and what is broadcast. See streamer_impl.hpp.
#include "streamer_impl.hpp"

#include <utility>

namespace doorbell {

Streamer::Impl::Subscription &Streamer::Impl::subscribe(Client &client, Hub &hub, Start start)
{
	client.subscriptions.push_back(std::make_unique<Subscription>(Subscription{&client, &hub, start.mark(), start}));
	Subscription &subscription = *client.subscriptions.back();
	hub.subscriptions.insert(&subscription);
	if (!client.request.prefixes.empty())
		client.hubs.insert(&hub);
	return subscription;
}

// Adds a subscription of a stream that the request names.
void Streamer::Impl::follow_named(Client &client, std::string_view stream, Start start)
{
	auto found = hubs_.find(stream);
	if (found == hubs_.end())
		found = hubs_.emplace(std::string(stream), Hub{}).first;
	Hub &hub = found->second;
	hub.stream = stream;
	if (!std::exchange(hub.named, true)) {
		// A stream that is followed by a prefix goes on from where it is.
		const std::optional<Mark> mark = subscriber_->mark(stream);
		subscriber_->follow(stream, mark ? Start::after(*mark) : Start::now());
		if (!hub.mark && mark)
			hub.mark = mark;
		if (!hub.mark)
			unsettled_.insert(&hub);
	}

	Subscription &subscription = subscribe(client, hub, start);
	subscription.counted = true;
	client.unstarted++;
	const Mark asked = start.mark();
	if (hub.mark && (start.kind() == Start::Kind::now || (asked.check != 0 && asked == *hub.mark)))
		started(subscription, *hub.mark, Subscription::State::live);
	else if (start.kind() != Start::Kind::now)
		starting_.insert(&subscription);
}

// Adds a subscription of a stream that belongs to a prefix, unless the client has one. `live`: the Subscriber's mark.
void Streamer::Impl::follow_found(Client &client, std::string_view stream, Start start, std::optional<Mark> live)
{
	auto found = hubs_.find(stream);
	if (found != hubs_.end() && client.hubs.count(&found->second) > 0)
		return;
	if (found == hubs_.end()) {
		found = hubs_.emplace(std::string(stream), Hub{}).first;
		found->second.stream = stream;
		found->second.mark = live;
		if (!live)
			unsettled_.insert(&found->second); // until the Subscriber has discovered it
	}
	Hub &hub = found->second;
	Subscription &subscription = subscribe(client, hub, start);
	const bool up_to_date = start.kind() == Start::Kind::after && hub.mark && start.mark().seq >= hub.mark->seq;
	started(subscription, start.mark(), up_to_date ? Subscription::State::live : Subscription::State::behind);
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

} // namespace doorbell
