// A Subscriber that writes down what it is given.
#pragma once

#include "failpoint.hpp"
#include "server.hpp"
#include "wait_for.hpp"

#include <doorbell/doorbell.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace live {

inline constexpr std::chrono::hours not_in_this_test{1};

// Fast attempts, and no sweep or probe that could help unless a test asks for it.
inline doorbell::SubscriberOptions options_for(const Database &database)
{
	doorbell::SubscriberOptions options;
	options.connect.dsn = database.dsn("reader");
	options.listen_dsn = database.dsn("listener");
	options.retry = {doorbell::milliseconds(10), doorbell::milliseconds(100)};
	options.sweep_interval = not_in_this_test;
	options.probe_interval = not_in_this_test;
	return options;
}

class Follower {
public:
	explicit Follower(const doorbell::SubscriberOptions &options) : subscriber(options, handlers()) {}
	explicit Follower(const Database &database) : Follower(options_for(database)) {}

	// Polls until `reached`; fails the test when that takes too long.
	void until(const std::string &what, const std::function<bool()> &reached) { poll_until(subscriber, what, reached); }

	void until_live()
	{
		until("live and swept",
			  [this] { return subscriber.state() == doorbell::State::live && subscriber.stats().sweeps > 0; });
	}

	void until_events(std::size_t count)
	{
		until(std::to_string(count) + " events", [&] { return events.size() >= count; });
	}

	// A reading round trip to show that nothing more comes: an event of this stream, which is followed, comes last.
	void expect_nothing_more(Session &sql)
	{
		subscriber.follow("last", doorbell::Start::beginning());
		sql("SELECT doorbell.append('last', 'last', '{}')");
		until("the last event", [this] { return !events.empty() && events.back().stream == "last"; });
		events.pop_back();
		subscriber.unfollow("last");
	}

	std::vector<std::int64_t> seqs(const std::string &stream) const
	{
		std::vector<std::int64_t> all;
		for (const doorbell::Event &event : events)
			if (event.stream == stream)
				all.push_back(event.seq);
		return all;
	}

	std::vector<doorbell::Event> events;
	std::vector<doorbell::Gap> gaps;
	std::vector<doorbell::Reset> resets;
	std::vector<doorbell::State> states;
	std::function<void(const doorbell::Event &)> before_event; // may throw
	std::function<void()> before_gap;
	std::function<void()> before_reset;
	doorbell::Subscriber subscriber;

private:
	doorbell::Handlers handlers()
	{
		doorbell::Handlers handlers;
		handlers.on_event = [this](const doorbell::Event &event) {
			if (before_event)
				before_event(event);
			events.push_back(event);
		};
		handlers.on_gap = [this](const doorbell::Gap &gap) {
			if (before_gap)
				before_gap();
			gaps.push_back(gap);
		};
		handlers.on_reset = [this](const doorbell::Reset &reset) {
			if (before_reset)
				before_reset();
			resets.push_back(reset);
		};
		handlers.on_state = [this](doorbell::State state) { states.push_back(state); };
		return handlers;
	}
};

// A handler that throws the first two times, and polling through that.
class Thrower {
public:
	explicit Thrower(Follower &follower) : follower_(follower) {}

	void operator()()
	{
		if (++calls < 3)
			throw std::logic_error("a handler's own");
	}

	void until_events(std::size_t count, const std::function<void()> &after_exception)
	{
		while (follower_.events.size() < count) {
			try {
				follower_.until_events(count);
			} catch (const std::logic_error &) {
				after_exception();
			}
		}
		EXPECT_EQ(calls, 3) << "the same again until it is taken";
	}

	int calls = 0;

private:
	Follower &follower_;
};

inline std::vector<std::int64_t> one_to(std::int64_t last, std::int64_t first = 1)
{
	std::vector<std::int64_t> seqs;
	for (std::int64_t seq = first; seq <= last; seq++)
		seqs.push_back(seq);
	return seqs;
}

// Sets the failpoint for the time of a test.
class Fault {
public:
	explicit Fault(std::function<bool(std::string_view)> fault) { doorbell::detail::failpoint = std::move(fault); }
	~Fault() { doorbell::detail::failpoint = nullptr; }
	Fault(const Fault &) = delete;
	Fault &operator=(const Fault &) = delete;
};

inline std::string literal(const std::string &text)
{
	std::string out = "'";
	for (const char c : text)
		out += c == '\'' ? std::string("''") : std::string(1, c);
	return out + "'";
}

struct LiveTest : testing::Test {
	std::string append(const std::string &stream, const std::string &payload = "{}")
	{
		return sql("SELECT doorbell.append(" + literal(stream) + ", 't', " + literal(payload) + ")");
	}

	void append_to(const std::string &stream, int count)
	{
		sql("SELECT doorbell.append(" + literal(stream) + ", 't', to_jsonb(i)) FROM generate_series(1, " +
			std::to_string(count) + ") i");
	}

	void trim(const std::string &stream, int through)
	{
		sql("SELECT doorbell.trim(" + literal(stream) + ", " + std::to_string(through) + ")");
	}

	// Sessions end, and the database comes back as somebody else's or an older one.
	void replace_by(const std::string &other)
	{
		sql = Session(primary().dsn("postgres"));
		sql("DROP DATABASE " + database.name() + " WITH (FORCE)");
		sql("ALTER DATABASE " + other + " RENAME TO " + database.name());
		sql = Session(database.dsn());
	}

	Database database;
	Session sql{database.dsn()};
};

} // namespace live
