// Clients with prefixes: where each of them is, and what it is given. See 8 to 13 of streamer_impl.hpp.
#include "streamer_impl.hpp"

#include <doorbell/sse.hpp>

#include <algorithm>
#include <utility>

namespace doorbell {

namespace {

constexpr milliseconds first_retry{10};

} // namespace

Streamer::Impl::AllHub::AllHub(detail::StreamSet set, milliseconds sweep_interval)
	: streams(std::move(set)), prefix(streams.common_prefix()),
	  rings(first_retry, std::max(sweep_interval, first_retry))
{
}

void Streamer::Impl::follow_all(Client &client)
{
	const AllStart &start = client.request.all_start;
	detail::StreamSet streams(client.request.prefixes, client.request.streams);
	auto found = all_hubs_.find(streams);
	if (found == all_hubs_.end()) {
		const auto hub = std::make_shared<AllHub>(streams, options_.subscriber.sweep_interval);
		found = all_hubs_.emplace(std::move(streams), hub).first;
	}
	client.all = found->second;
	AllHub &hub = *client.all;
	hub.clients++;
	if (start.kind() != Start::Kind::now)
		rest(client, start.cursor());
	else if (hub.live)
		join(client, *hub.live);
	else
		hub.starting.insert(&client);
}

void Streamer::Impl::unfollow_all(Client &client)
{
	AllHub &hub = *client.all;
	resting_.erase(&client);
	hub.starting.erase(&client);
	if (client.group != nullptr)
		client.group->clients.erase(&client);
	if (--hub.clients > 0)
		return;
	all_hubs_.erase(hub.streams);
	if (all_hubs_.empty())
		reported_ = {};
}

void Streamer::Impl::join(Client &client, const std::string &cursor)
{
	Group &group = client.all->groups[cursor];
	group.clients.insert(&client);
	client.group = &group;
	client.page.reset();
	resting_.erase(&client);
}

void Streamer::Impl::rest(Client &client, std::string cursor)
{
	client.group = nullptr;
	client.cursor = std::move(cursor);
	client.page.reset();
	resting_.insert(&client);
	drained_ = true;
}

// To all of a group, which is where the page begins: who cannot take all of it leaves.
void Streamer::Impl::give_group(AllHub &hub, Group &group, const std::shared_ptr<AllPage> &page)
{
	if (page->rows.empty())
		return;
	bool keeps = hub.live != page->asked;
	for (auto i = group.clients.begin(); i != group.clients.end();) {
		Client &client = **i;
		const std::size_t given = client.is_ready() ? give_shared(client, page->rows, 0) : page->rows.size();
		if (given == page->rows.size()) {
			++i;
			continue;
		}
		i = group.clients.erase(i);
		rest(client, page->cursor(given));
		client.page = page;
		client.given = given;
		stats_.fell_behind++;
		keeps = true;
	}
	if (keeps)
		keep(hub.pages, page, page->rows.bytes());
}

void Streamer::Impl::give_rested()
{
	if (!std::exchange(drained_, false))
		return;
	drop_old_pages();
	const std::vector<Client *> all(resting_.begin(), resting_.end());
	for (Client *client : all)
		if (client->is_ready())
			go_on(*client);
}

// Gives a resting client what is kept of what follows; where that ends it joins the group that is there.
void Streamer::Impl::go_on(Client &client)
{
	while (has_drained(client)) {
		std::shared_ptr<AllPage> page = client.page.lock();
		if (page == nullptr) {
			for (const std::weak_ptr<AllPage> &kept : client.all->pages)
				if (const auto found = kept.lock(); found != nullptr && found->asked == client.cursor)
					page = found;
			client.page = page;
			client.given = 0;
		}
		if (page == nullptr) {
			join(client, client.cursor);
			return;
		}
		const std::size_t given = give_shared(client, page->rows, client.given);
		if (given == client.given) // the next frame is larger than the room
			return;
		client.given = given;
		client.cursor = page->cursor(given);
		if (given == page->rows.size())
			client.page.reset();
	}
}

// A group has come to another cursor; with the group that is there already it becomes one.
void Streamer::Impl::move_group(AllHub &hub, const std::string &from, const std::string &to)
{
	if (from == to)
		return;
	if (hub.live == from)
		hub.live = to;
	auto node = hub.groups.extract(from);
	node.key() = to;
	auto inserted = hub.groups.insert(std::move(node));
	if (inserted.inserted)
		return;
	Group &there = inserted.position->second;
	Group &come = inserted.node.mapped();
	for (Client *client : come.clients)
		client->group = &there;
	there.clients.merge(come.clients);
	there.due |= come.due;
	there.accepted |= come.accepted;
}

// The cursor of a group was refused: it is told, and goes on from the beginning.
void Streamer::Impl::reset_group(AllHub &hub, const std::string &cursor)
{
	const auto found = hub.groups.find(cursor);
	if (found == hub.groups.end())
		return;
	std::string text;
	sse::append_reset(text, cursor);
	const auto shared = std::make_shared<const std::string>(std::move(text));
	for (Client *client : found->second.clients) {
		rest(*client, {});
		if (!client->is_ready())
			continue;
		client->socket.push(shared, 0, shared->size());
		mark_dirty(*client);
		stats_.resets++;
	}
	if (hub.live == cursor) {
		hub.live.reset();
		hub.reached.clear();
		reported_ = {};
	}
	hub.pages.clear(); // they may be of that other history
	for (Client *client : resting_)
		if (client->all.get() == &hub)
			client->page.reset();
	hub.groups.erase(found);
}

} // namespace doorbell
