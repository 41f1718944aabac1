// Delivery through lost rings and lost connections.
#include "follower.hpp"

#include <csignal>

namespace live {
namespace {

namespace place = doorbell::detail::place;
using doorbell::milliseconds;
using doorbell::Start;
using doorbell::State;
using Seqs = std::vector<std::int64_t>;

struct SubscriberTest : LiveTest {};

TEST_F(SubscriberTest, follows_a_stream_from_its_beginning_and_then_live)
{
	append("s");
	append("s", "{\"a\":1}");
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(2);
	append("s");
	append("other");
	follower.until_events(3);
	follower.expect_nothing_more(sql);
	EXPECT_EQ(follower.seqs("s"), one_to(3));
	EXPECT_EQ(follower.events.size(), 3u);
	EXPECT_EQ(follower.events[1].type, "t");
	EXPECT_EQ(follower.events[1].payload, "{\"a\": 1}");
	EXPECT_EQ(doorbell::format_time(follower.events[1].appended_at),
			  sql("SELECT to_char(appended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
				  " FROM doorbell.replay('s', 1, 1)"));
	EXPECT_EQ(follower.subscriber.mark("s"), doorbell::mark_of(follower.events.back()));
}

TEST_F(SubscriberTest, starts_now_or_after_a_mark)
{
	for (int i = 0; i < 3; i++) {
		append("now");
		append("after");
	}
	Follower follower(database);
	follower.subscriber.follow("now", Start::now());
	follower.subscriber.follow("after", Start::after({2, 0}));
	follower.until("both starts", [&] { return follower.subscriber.mark("now") && follower.events.size() == 1; });
	append("now");
	append("after");
	follower.until_events(3);
	EXPECT_EQ(follower.seqs("now"), Seqs{4});
	EXPECT_EQ(follower.seqs("after"), (Seqs{3, 4}));
}

TEST_F(SubscriberTest, L1_an_event_appended_while_the_listener_is_cut_arrives_after_reconnect)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_live();
	ASSERT_EQ(database.kill("listener"), 1);
	append("s");
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), one_to(1));
	EXPECT_EQ(follower.subscriber.stats().listener_connects, 2u);
	EXPECT_EQ(follower.states.back(), State::live);
}

TEST_F(SubscriberTest, L2_an_event_appended_between_listen_and_the_history_read_is_delivered_once)
{
	append("s");
	Follower follower(database);
	int reached = 0;
	const Fault fault([&](std::string_view at) {
		if (at == place::history_read && reached < 2) {
			reached++;
			EXPECT_EQ(follower.subscriber.stats().listener_connects, static_cast<std::uint64_t>(reached))
				<< "LISTEN is confirmed before history is read";
			append("s");
		}
		return false;
	});
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(2);
	follower.until_live();
	EXPECT_EQ(reached, 1);

	ASSERT_EQ(database.kill("listener"), 1);
	follower.until_events(3);
	EXPECT_EQ(reached, 2);
	follower.expect_nothing_more(sql);
	EXPECT_EQ(follower.seqs("s"), one_to(3));
}

TEST_F(SubscriberTest, L3_an_event_whose_ring_was_lost_is_delivered_by_the_sweep)
{
	doorbell::SubscriberOptions options = options_for(database);
	options.sweep_interval = milliseconds(100);
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_live();
	int lost = 0;
	{
		const Fault fault([&](std::string_view at) { return at == place::ring && ++lost > 0; });
		append("s");
		follower.until_events(1);
	}
	EXPECT_EQ(follower.seqs("s"), one_to(1));
	EXPECT_EQ(follower.subscriber.stats().rings, 0u);
}

TEST_F(SubscriberTest, L6_a_huge_transaction_and_one_over_many_streams_lose_nothing)
{
	Follower follower(database);
	for (int i = 0; i < 1'000; i++)
		follower.subscriber.follow("many:" + std::to_string(i), Start::beginning());
	follower.subscriber.follow("hot", Start::beginning());
	follower.until_live();

	sql("SELECT doorbell.append('hot', 't', '{}') FROM generate_series(1, 10000)");
	follower.until_events(10'000);
	EXPECT_EQ(follower.seqs("hot"), one_to(10'000));
	EXPECT_EQ(follower.subscriber.stats().rings, 1u) << "one ring per stream and transaction";

	sql("SELECT doorbell.append('many:' || i, 't', '{}') FROM generate_series(0, 999) i");
	follower.until_events(11'000);
	for (int i = 0; i < 1'000; i++)
		EXPECT_EQ(follower.seqs("many:" + std::to_string(i)), one_to(1));
	EXPECT_EQ(follower.subscriber.stats().rings, 2u) << "a single one for everything above the limit";
}

TEST_F(SubscriberTest, L9_comes_back_when_the_server_does_not_accept_connections_for_a_while)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	append("s");
	follower.until_events(1);

	sql = Session(database.dsn()); // the one session may end with the server
	primary().stop(SIGINT);
	primary().become_standby();
	primary().start({"hot_standby=off"});
	follower.until("the refusal", [&] {
		return follower.subscriber.last_error().find("not yet accepting connections") != std::string::npos ||
			   follower.subscriber.last_error().find("not accepting connections") != std::string::npos ||
			   follower.subscriber.last_error().find("starting up") != std::string::npos;
	});
	EXPECT_EQ(follower.subscriber.state(), State::down);
	primary().promote();
	primary().await();
	sql = Session(database.dsn());
	append("s");
	follower.until_events(2);
	follower.until("live", [&] { return follower.subscriber.state() == State::live; });
	EXPECT_EQ(follower.seqs("s"), one_to(2));
	EXPECT_EQ(follower.subscriber.last_error(), "");
}

TEST_F(SubscriberTest, L11_a_thousand_subscriptions_need_two_connections)
{
	Follower follower(database);
	for (int i = 0; i < 1'000; i++)
		follower.subscriber.follow("s:" + std::to_string(i), Start::now());
	follower.subscriber.follow_prefix("t:");
	follower.until_live();
	EXPECT_EQ(database.sessions("listener"), 1);
	EXPECT_EQ(database.sessions("reader"), 1);
	append("s:7");
	append("s:993");
	append("t:new");
	follower.until_events(3);
	EXPECT_EQ(database.sessions("listener") + database.sessions("reader"), 2);
}

TEST_F(SubscriberTest, S7_a_backlog_of_ten_batches_is_delivered_without_another_append)
{
	sql("SELECT doorbell.append('s', 't', to_jsonb(i)) FROM generate_series(1, 1000) i");
	sql("SELECT doorbell.append('t', 't', to_jsonb(i)) FROM generate_series(1, 55) i");
	doorbell::SubscriberOptions options = options_for(database);
	options.batch = 100;
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	follower.subscriber.follow("t", Start::beginning());
	follower.until_events(1'055);
	EXPECT_EQ(follower.seqs("s"), one_to(1'000));
	EXPECT_EQ(follower.seqs("t"), one_to(55));
	EXPECT_GE(follower.subscriber.stats().reads, 10u);
}

TEST_F(SubscriberTest, S7_more_streams_than_a_batch_holds_take_turns)
{
	sql("SELECT doorbell.append('s:' || i % 50, 't', '{}') FROM generate_series(0, 999) i");
	doorbell::SubscriberOptions options = options_for(database);
	options.batch = 7;
	Follower follower(options);
	for (int i = 0; i < 50; i++)
		follower.subscriber.follow("s:" + std::to_string(i), Start::beginning());
	follower.until_events(1'000);
	for (int i = 0; i < 50; i++)
		EXPECT_EQ(follower.seqs("s:" + std::to_string(i)), one_to(20));
}

TEST_F(SubscriberTest, large_payloads_are_read_in_smaller_portions)
{
	sql("SELECT doorbell.append('s', 't', to_jsonb(repeat('x', 100000))) FROM generate_series(1, 200)");
	doorbell::SubscriberOptions options = options_for(database);
	options.batch_bytes = 1'000'000;
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(200);
	EXPECT_EQ(follower.seqs("s"), one_to(200));
	EXPECT_GE(follower.subscriber.stats().reads, 10u) << "a first one of 100, then about ten events each";
}

TEST_F(SubscriberTest, an_append_in_flight_holds_back_what_follows_it_until_it_ends)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_live();
	Session first(database.dsn());
	first("BEGIN; SELECT doorbell.append('s', 't', '{}')");
	append("s");
	follower.until("the read that stops before the hole", [&] { return follower.subscriber.stats().reads >= 2; });
	EXPECT_EQ(follower.seqs("s"), Seqs());
	first("COMMIT");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("s"), one_to(2));
}

TEST_F(SubscriberTest, O2_a_rollback_below_a_visible_event_is_noticed_without_a_ring_or_a_sweep)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_live();
	Session first(database.dsn());
	first("BEGIN; SELECT doorbell.append('s', 't', '{}')");
	append("s");
	follower.until("the read that stops before the hole", [&] { return follower.subscriber.stats().reads >= 1; });
	first("ROLLBACK");
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), Seqs{2});
}

TEST_F(SubscriberTest, survives_the_loss_of_its_reading_connection)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	append("s");
	follower.until_events(1);
	for (int round = 2; round <= 6; round++) {
		ASSERT_EQ(database.kill("reader"), 1);
		append("s");
		follower.until_events(static_cast<std::size_t>(round));
		follower.until("the reader", [&] { return database.sessions("reader") == 1; });
	}
	EXPECT_EQ(follower.seqs("s"), one_to(6));
	EXPECT_TRUE(follower.resets.empty());
}

TEST_F(SubscriberTest, C3_a_restart_of_the_server_loses_and_doubles_nothing)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	std::size_t count = 0;
	for (const int signal : {SIGINT, SIGQUIT}) {
		append("s");
		follower.until_events(++count);
		primary().stop(signal);
		follower.until("the loss", [&] { return follower.subscriber.state() == State::down; });
		primary().start();
		primary().await();
		sql = Session(database.dsn());
		append("s");
		follower.until_events(++count);
	}
	EXPECT_EQ(follower.seqs("s"), one_to(4));
	EXPECT_TRUE(follower.resets.empty());
	EXPECT_TRUE(follower.gaps.empty());
}

TEST_F(SubscriberTest, tries_every_host_of_its_connection_string)
{
	doorbell::SubscriberOptions options = options_for(database);
	options.connect.dsn = "host=127.0.0.1,127.0.0.1 port=1," + std::to_string(primary().port()) +
						  " user=postgres dbname=" + database.name() + " target_session_attrs=read-write";
	options.listen_dsn = options.connect.dsn;
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	append("s");
	follower.until_events(1);
}

TEST_F(SubscriberTest, what_waiting_cannot_cure_comes_out_of_poll)
{
	sql("CREATE ROLE stranger LOGIN");
	doorbell::SubscriberOptions options = options_for(database);
	options.connect.dsn += " user=stranger";
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	std::string sqlstate;
	try {
		follower.until_events(1);
	} catch (const doorbell::Error &error) {
		sqlstate = error.sqlstate();
	}
	EXPECT_EQ(sqlstate, "42501");
	EXPECT_NE(follower.subscriber.last_error().find("permission denied"), std::string::npos);

	sql("GRANT USAGE ON SCHEMA doorbell TO stranger; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA doorbell TO stranger");
	append("s");
	follower.until_events(1);
	sql("DROP OWNED BY stranger; DROP ROLE stranger");
}

} // namespace
} // namespace live
