// The listener: what it hears, and what it does when it cannot.
#include "follower.hpp"
#include "relay.hpp"

#include <algorithm>
#include <poll.h>

namespace live {
namespace {

namespace place = doorbell::detail::place;
using doorbell::milliseconds;
using doorbell::Start;
using doorbell::State;
using Texts = std::vector<std::string>;

// A Listener that writes down what it hears.
struct Ears {
	explicit Ears(const doorbell::ListenerOptions &options)
		: listener(options, [this](const doorbell::Pointer &pointer) {
			  rings.push_back(pointer.everything() ? "*"
												   : std::string(pointer.stream) + ":" + std::to_string(pointer.seq));
			  if (after_ring)
				  after_ring();
		  })
	{
	}

	void until_live()
	{
		poll_until(listener, "live", [this] { return listener.state() == State::live; });
	}

	void until_rings(std::size_t count)
	{
		poll_until(listener, std::to_string(count) + " rings", [&] { return rings.size() >= count; });
	}

	Texts rings;
	std::function<void()> after_ring; // may throw
	doorbell::Listener listener;
};

struct ListenerTest : LiveTest {
	doorbell::ListenerOptions options(const std::string &dsn) const
	{
		doorbell::ListenerOptions listener;
		listener.connect.dsn = dsn;
		listener.retry = {milliseconds(10), milliseconds(100)};
		listener.probe_interval = not_in_this_test;
		return listener;
	}

	doorbell::ListenerOptions options() const { return options(database.dsn("listener")); }
};

TEST_F(ListenerTest, L12_hears_pointers_to_any_key_and_ignores_what_is_no_pointer)
{
	Ears ears(options());
	ears.until_live();
	Texts expected;
	for (const char *key : {"a:b:1:", "it's \"quoted\"", " two  spaces ", "UPPER", "Grüße 🔔", "*", "\\back;slash--"}) {
		for (const char *garbage : {"", "no colon", ":7", "s:", "s:x", "s:-1", "s:99999999999999999999"})
			sql(std::string("NOTIFY doorbell, '") + garbage + "'");
		sql("SELECT doorbell.ring(" + literal(key) + ", 9223372036854775807)");
		expected.push_back(std::string(key) + ":9223372036854775807");
		ears.until_rings(expected.size());
	}
	sql("NOTIFY doorbell, '*'");
	expected.push_back("*");
	ears.until_rings(expected.size());
	EXPECT_EQ(ears.rings, expected);
}

TEST_F(ListenerTest, L4_a_ring_that_libpq_holds_since_a_handler_threw_is_reported_without_another_packet)
{
	Ears ears(options());
	ears.until_live();
	ears.after_ring = [] { throw std::logic_error("a handler's own"); };
	sql("SELECT pg_notify('doorbell', 'a:1'), pg_notify('doorbell', 'b:1')"); // one transaction: one packet
	EXPECT_THROW(ears.until_rings(2), std::logic_error);
	EXPECT_EQ(ears.rings, Texts{"a:1"});

	ears.after_ring = nullptr;
	EXPECT_LE(ears.listener.deadline(), doorbell::Clock::now()) << "an event loop must not wait for the descriptor";
	EXPECT_EQ(ears.listener.poll(milliseconds(0)), 1u);
	EXPECT_EQ(ears.rings, (Texts{"a:1", "b:1"})) << "the ring that was being reported counts as reported";
	EXPECT_GT(ears.listener.deadline(), doorbell::Clock::now());
}

TEST_F(ListenerTest, L4_a_ring_that_arrives_together_with_the_answer_to_a_query_is_reported_at_once)
{
	Relay relay(primary().port());
	doorbell::ListenerOptions impatient = options(database.tcp_dsn(relay.port(), "listener"));
	impatient.probe_interval = milliseconds(20);
	impatient.probe_timeout = patience;
	Ears ears(impatient);
	ears.until_live();

	relay.set(Relay::Mode::hold_answers);
	sql("NOTIFY doorbell, 's:1'");
	Session look(database.dsn());
	poll_until(ears.listener, "the answer to a probe after the ring", [&] {
		return look("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
					" application_name = 'listener' AND query = 'SELECT 1' AND state = 'idle'") == "1";
	});
	ASSERT_EQ(ears.rings, Texts());
	relay.set(Relay::Mode::pass);
	std::vector<pollfd> polled;
	for (const doorbell::Descriptor &descriptor : ears.listener.descriptors())
		polled.push_back({descriptor.fd, POLLIN, 0});
	ASSERT_GT(::poll(polled.data(), polled.size(), static_cast<int>(milliseconds(patience).count())), 0);
	EXPECT_EQ(ears.listener.poll(milliseconds(0)), 1u);
}

TEST_F(ListenerTest, L5_a_connection_that_went_silent_is_noticed_and_replaced)
{
	Relay relay(primary().port());
	doorbell::SubscriberOptions options = options_for(database);
	options.listen_dsn = database.tcp_dsn(relay.port(), "listener");
	options.probe_interval = milliseconds(50);
	options.probe_timeout = milliseconds(500);
	options.connect.connect_timeout = milliseconds(500);
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_live();

	relay.set(Relay::Mode::hold_everything);
	append("s");
	follower.until("the loss", [&] { return follower.subscriber.state() == State::sweeping; });
	EXPECT_NE(follower.subscriber.last_error().find("no answer within 500 ms"), std::string::npos)
		<< follower.subscriber.last_error();
	EXPECT_EQ(follower.events.size(), 0u);

	relay.abandon(); // what is half-open stays so
	relay.set(Relay::Mode::pass);
	follower.until_events(1);
	follower.until("live", [&] { return follower.subscriber.state() == State::live; });
	append("s");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("s"), one_to(2));
}

TEST_F(ListenerTest, L5_a_reading_connection_that_went_silent_is_noticed_and_replaced)
{
	Relay relay(primary().port());
	doorbell::SubscriberOptions options = options_for(database);
	options.connect.dsn = database.tcp_dsn(relay.port(), "reader");
	options.connect.query_timeout = milliseconds(500);
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_live();
	append("s");
	follower.until_events(1);
	follower.states.clear();

	relay.abandon();
	append("s");
	follower.until_events(2);
	EXPECT_EQ(follower.states, (std::vector<State>{State::down, State::live}));
	EXPECT_EQ(follower.seqs("s"), one_to(2));
}

TEST_F(ListenerTest, L8_a_listener_that_does_not_hear_itself_says_so_and_sweeps_until_it_does)
{
	doorbell::SubscriberOptions options = options_for(database);
	options.sweep_interval = milliseconds(50);
	options.probe_timeout = milliseconds(100);
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	{
		const Fault deaf([](std::string_view at) { return at == place::self_ring; });
		follower.until("the refusal", [&] {
			return follower.subscriber.last_error().find("rings do not come back") != std::string::npos;
		});
		append("s");
		follower.until_events(1);
		EXPECT_EQ(follower.subscriber.state(), State::sweeping);
		EXPECT_EQ(follower.subscriber.stats().listener_connects, 0u);
	}
	follower.until_live();
	EXPECT_EQ(follower.subscriber.last_error(), "");
}

// A megabyte of rings, all of one stream that nobody follows.
constexpr const char *flood_sql =
	"DO $$BEGIN FOR i IN 1..2000 LOOP PERFORM pg_notify('doorbell', repeat('k', 500) || ':' || i); END LOOP; END$$";

TEST_F(ListenerTest, L10_handlers_with_much_to_do_do_not_hold_back_the_notify_queue)
{
	constexpr int events = 40;
	sql("SELECT doorbell.append('s', 't', '{}') FROM generate_series(1, " + std::to_string(events) + ")");
	Session flood(database.dsn());
	const auto queue_usage = [&] { return std::stod(flood("SELECT pg_notification_queue_usage()")); };

	Follower follower(database);
	follower.until("live", [&] { return follower.subscriber.state() == State::live; });
	double most = 0;
	follower.before_event = [&](const doorbell::Event &) {
		flood(flood_sql);
		flood("SELECT pg_sleep(0.05)"); // much to do
		most = std::max(most, queue_usage());
	};
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(events);
	follower.until("an empty queue", [&] { return queue_usage() == 0; });
	EXPECT_GE(follower.subscriber.stats().rings, 2'000u * events) << "none is lost";

	Session deaf(database.dsn());
	deaf("LISTEN doorbell");
	for (int i = 0; i < events; i++)
		flood(flood_sql);
	EXPECT_LT(most, queue_usage() / 4) << "what a listener that reads nothing holds back";
}

} // namespace
} // namespace live
