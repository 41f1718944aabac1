// A Streamer and its clients, in one loop.
#pragma once

#include "follower.hpp"
#include "sse_client.hpp"

#include <list>
#include <optional>

namespace live {

using doorbell::milliseconds;
using doorbell::SseRequest;
using doorbell::Start;
using Seqs = std::vector<std::int64_t>;

struct StreamerTest : LiveTest {
	doorbell::StreamerOptions options()
	{
		doorbell::StreamerOptions options;
		options.subscriber = options_for(database);
		options.heartbeat = not_in_this_test;
		return options;
	}

	void start(const doorbell::StreamerOptions &how) { streamer.emplace(how); }

	SseClient &connect(const SseRequest &request, SseClient *made = nullptr)
	{
		if (!streamer)
			start(options());
		if (made == nullptr)
			made = &clients.emplace_back();
		streamer->add(made->take_server_end(), request);
		return *made;
	}

	SseClient &follow(const std::string &stream, Start from = Start::beginning())
	{
		SseRequest request;
		request.streams = {stream};
		request.starts = {from};
		return connect(request);
	}

	// Polls, and reads from all clients but the `unread` ones, until `reached`.
	template <typename Reached>
	void until(const std::string &what, Reached reached)
	{
		const auto deadline = doorbell::Clock::now() + patience;
		while (!reached()) {
			if (doorbell::Clock::now() > deadline)
				throw std::runtime_error("waited in vain for " + what + "; last error: " + streamer->last_error());
			streamer->poll(milliseconds(5));
			for (SseClient &client : clients)
				if (&client != unread)
					client.read();
		}
	}

	void until_messages(const SseClient &client, std::size_t count)
	{
		until(std::to_string(count) + " messages", [&] { return client.messages.size() >= count; });
	}

	void until_live()
	{
		until("live",
			  [&] { return streamer->state() == doorbell::State::live && streamer->subscriber_stats().sweeps > 0; });
	}

	static Seqs seqs(const SseClient &client)
	{
		Seqs all;
		for (const SseMessage &message : client.messages)
			all.push_back(doorbell::parse_mark(message.id).seq);
		return all;
	}

	std::optional<doorbell::Streamer> streamer;
	std::list<SseClient> clients;
	const SseClient *unread = nullptr;
};

} // namespace live
