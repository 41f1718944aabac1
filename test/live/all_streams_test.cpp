// Subscriptions by prefix: one cursor for all their streams, whatever happens to the subscriber and the server.
#include "follower.hpp"

#include <csignal>
#include <map>
#include <memory>
#include <random>

namespace live {
namespace {

namespace place = doorbell::detail::place;
using doorbell::AllStart;
using doorbell::milliseconds;
using doorbell::Start;
using doorbell::State;
using Seqs = std::vector<std::int64_t>;

struct AllStreamsTest : LiveTest {
	std::map<std::string, Seqs> table()
	{
		std::map<std::string, Seqs> seqs;
		const std::string streams = sql("SELECT string_agg(stream || '=' || seq, ',' ORDER BY stream, seq) FROM"
										" doorbell.event");
		for (std::size_t at = 0; at < streams.size();) {
			const std::size_t end = std::min(streams.find(',', at), streams.size());
			const std::size_t sign = streams.find('=', at);
			seqs[streams.substr(at, sign - at)].push_back(std::stoll(streams.substr(sign + 1, end - sign - 1)));
			at = end + 1;
		}
		return seqs;
	}

	static std::map<std::string, Seqs> given_to(const Follower &follower)
	{
		std::map<std::string, Seqs> seqs;
		for (const doorbell::Event &event : follower.events)
			seqs[event.stream].push_back(event.seq);
		return seqs;
	}
};

TEST_F(AllStreamsTest, C3_subscribers_made_anew_from_the_cursor_lose_and_double_nothing_of_writers_in_any_order)
{
	std::mt19937 random(20260301);
	const auto pick = [&](unsigned most) { return random() % most; };
	struct Writer {
		Session session;
		bool open = false;
	};
	std::vector<Writer> writers;
	for (int i = 0; i < 8; i++)
		writers.push_back({Session(database.dsn())});
	const auto end = [&](Writer &writer) {
		writer.session(pick(10) < 7 ? "COMMIT" : "ROLLBACK");
		writer.open = false;
	};

	std::optional<std::string> saved; // as a program would, with what the handler does
	std::map<std::string, Seqs> given;
	std::size_t count = 0;
	std::unique_ptr<Follower> follower;
	int lives = 0;
	const auto live_again = [&] {
		doorbell::SubscriberOptions options = options_for(database);
		options.batch = lives++ % 2 == 0 ? 3 : 1'000;
		follower = std::make_unique<Follower>(options);
		follower->before_event = [&](const doorbell::Event &event) {
			given[event.stream].push_back(event.seq);
			count++;
			saved = follower->subscriber.cursor("s:");
		};
		follower->subscriber.follow_prefix("s:", saved ? AllStart::after(*saved) : AllStart::beginning());
	};
	live_again();
	for (int step = 0; step < 2'000; step++) {
		Writer &writer = writers[pick(8)];
		if (!writer.open)
			writer.session("BEGIN");
		writer.open = true;
		if (pick(4) == 0)
			end(writer);
		else
			writer.session("SELECT doorbell.append('" + std::string(pick(5) == 0 ? "other:" : "s:") +
						   std::to_string(pick(6)) + "', 't', '{}')");
		follower->subscriber.poll(milliseconds(pick(2)));
		if (step % 40 == 39) {
			EXPECT_TRUE(follower->gaps.empty());
			EXPECT_TRUE(follower->resets.empty());
			live_again();
		}
	}
	for (Writer &writer : writers)
		if (writer.open)
			end(writer);

	const std::size_t committed =
		std::stoul(sql("SELECT count(*) FROM doorbell.event WHERE starts_with(stream, 's:')"));
	follower->until("every event", [&] { return count >= committed; });
	follower = nullptr;
	for (const auto &[stream, seqs] : table()) {
		if (stream.compare(0, 2, "s:") == 0) {
			EXPECT_EQ(given[stream], seqs) << stream;
		}
	}
	EXPECT_EQ(given.size(), 6u);
	EXPECT_EQ(count, committed);
}

TEST_F(AllStreamsTest, C3_an_event_handler_that_throws_leaves_the_cursor_and_gets_the_event_again)
{
	append_to("s", 4);
	Follower follower(database);
	Thrower thrower(follower);
	std::vector<std::optional<std::string>> cursors; // behind each event
	follower.before_event = [&](const doorbell::Event &event) {
		const std::optional<std::string> cursor = follower.subscriber.cursor("");
		if (event.seq == 3) {
			EXPECT_NE(cursor, cursors.back()) << "the handler sees the new one";
			thrower();
		}
		cursors.push_back(cursor);
	};
	follower.subscriber.follow_prefix("", AllStart::beginning());
	EXPECT_FALSE(follower.subscriber.cursor("")) << "nothing to go on from";
	thrower.until_events(4, [&] {
		ASSERT_EQ(cursors.size(), 2u);
		EXPECT_EQ(follower.subscriber.cursor(""), cursors.back());
		EXPECT_EQ(follower.subscriber.telling_prefix(), nullptr);
		EXPECT_LE(follower.subscriber.deadline(), doorbell::Clock::now()) << "an event loop must not wait";
	});
	EXPECT_EQ(follower.seqs("s"), one_to(4));
	for (std::size_t i = 0; i < cursors.size(); i++) {
		ASSERT_TRUE(cursors[i]);
		Follower other(database);
		other.subscriber.follow_prefix("", AllStart::after(*cursors[i]));
		append("end:" + std::to_string(i));
		other.until("its end",
					[&] { return !other.events.empty() && other.events.back().stream == "end:" + std::to_string(i); });
		EXPECT_EQ(other.seqs("s"), one_to(4, static_cast<std::int64_t>(i) + 2)) << "behind event " << i + 1;
	}
}

TEST_F(AllStreamsTest, C6_events_trimmed_away_in_front_of_a_reader_are_a_gap_before_what_follows)
{
	append_to("p:s", 10);
	append_to("q", 1);
	doorbell::SubscriberOptions options = options_for(database);
	options.batch = 2;
	Follower follower(options);
	Thrower thrower(follower);
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.seq == 2)
			trim("p:s", 6);
	};
	std::optional<std::string> before;
	follower.before_gap = [&] {
		EXPECT_EQ(*follower.subscriber.telling_prefix(), "p:");
		EXPECT_NE(follower.subscriber.cursor("p:"), before) << "it is behind the gap";
		thrower();
	};
	follower.subscriber.follow_prefix("p:", AllStart::beginning());
	follower.until_events(2);
	before = follower.subscriber.cursor("p:");
	thrower.until_events(6, [&] { EXPECT_EQ(follower.subscriber.cursor("p:"), before) << "it is put back"; });
	ASSERT_EQ(follower.gaps.size(), 1u);
	EXPECT_EQ(follower.gaps[0].stream, "p:s");
	EXPECT_EQ(follower.gaps[0].asked, -1);
	EXPECT_EQ(follower.gaps[0].low_water, 6);
	EXPECT_EQ(follower.seqs("p:s"), (Seqs{1, 2, 7, 8, 9, 10}));
	EXPECT_TRUE(follower.resets.empty());
}

TEST_F(AllStreamsTest, C6_a_cursor_of_another_history_is_a_reset_and_all_follows_from_the_beginning)
{
	append_to("p:s", 3);
	Follower follower(database); // no sweep comes to help
	Thrower thrower(follower);
	follower.before_reset = [&] {
		EXPECT_EQ(*follower.subscriber.telling_prefix(), "p:");
		EXPECT_FALSE(follower.subscriber.cursor("p:"));
		thrower();
	};
	follower.subscriber.follow_prefix("p:", AllStart::beginning());
	follower.until_events(3);
	const std::optional<std::string> asked = follower.subscriber.cursor("p:");
	ASSERT_TRUE(asked);
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; COMMIT");
	append_to("p:s", 5); // 4 and 5 would look like what comes next
	thrower.until_events(8, [&] {
		EXPECT_EQ(follower.subscriber.cursor("p:"), asked);
		EXPECT_EQ(follower.events.size(), 3u);
	});
	ASSERT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.resets[0].stream, "");
	EXPECT_EQ(follower.resets[0].prefix, "p:");
	EXPECT_EQ(follower.resets[0].cursor, *asked);
	EXPECT_EQ(follower.seqs("p:s"), (Seqs{1, 2, 3, 1, 2, 3, 4, 5}));
	EXPECT_EQ(follower.subscriber.stats().reader_connects, 1u) << "that is no failure of the connection";
}

TEST_F(AllStreamsTest, C6_a_restored_backup_is_a_reset)
{
	append_to("s", 2);
	const std::string backup = database.name() + "_backup";
	sql = Session(primary().dsn("postgres")); // a template has no sessions
	sql("CREATE DATABASE " + backup + " TEMPLATE " + database.name());
	sql = Session(database.dsn());

	Follower follower(database);
	follower.subscriber.follow_prefix("", AllStart::beginning());
	append_to("s", 3);
	follower.until_events(5);
	replace_by(backup);
	append_to("s", 9); // passes what was delivered: 5 is another event now
	follower.until_events(5 + 11);
	EXPECT_EQ(follower.resets.size(), 1u);
	Seqs expected = one_to(5);
	for (const std::int64_t seq : one_to(11))
		expected.push_back(seq);
	EXPECT_EQ(follower.seqs("s"), expected) << "from the beginning";
}

TEST_F(AllStreamsTest, two_thousand_streams_cost_a_few_reads_and_no_more_when_the_subscriber_is_made_anew)
{
	sql("SELECT doorbell.append('s:' || i, 't', '{}') FROM generate_series(1, 2000) i");
	std::optional<std::string> cursor;
	{
		Follower follower(database);
		follower.subscriber.follow_prefix("s:", AllStart::beginning());
		follower.until_events(2'000);
		follower.until_live();
		EXPECT_LE(follower.subscriber.stats().reads, 100u);
		cursor = follower.subscriber.cursor("s:");
	}
	append("s:77");
	append("s:new");
	Follower follower(database);
	follower.subscriber.follow_prefix("s:", AllStart::after(cursor.value()));
	follower.until_events(2);
	follower.until_live();
	append("s:78");
	follower.until_events(3);
	EXPECT_EQ(follower.seqs("s:77"), Seqs{2});
	EXPECT_EQ(follower.seqs("s:new"), Seqs{1});
	EXPECT_EQ(follower.seqs("s:78"), Seqs{2});
	EXPECT_LE(follower.subscriber.stats().reads, 100u);
}

TEST_F(AllStreamsTest, a_ring_that_is_answered_costs_one_read)
{
	Follower follower(database);
	follower.subscriber.follow_prefix("s:");
	follower.until_live();
	append("s:1");
	follower.until_events(1);
	const std::uint64_t reads = follower.subscriber.stats().reads;
	for (int i = 0; i < 20; i++) {
		append("s:" + std::to_string(i));
		follower.until_events(static_cast<std::size_t>(i) + 2);
	}
	EXPECT_LE(follower.subscriber.stats().reads, reads + 22);
	sql("SELECT doorbell.ring('s:1', 1), doorbell.ring('other', 7)"); // old, and of nobody
	append("s:1");
	follower.until_events(22);
	EXPECT_LE(follower.subscriber.stats().reads, reads + 24);
}

TEST_F(AllStreamsTest, O9_an_open_transaction_delays_only_what_was_appended_behind_it_to_its_streams)
{
	Session open(database.dsn());
	open("BEGIN; SELECT doorbell.append('p:held', 't', '1'), txid_current()");
	Follower follower(database);
	follower.subscriber.follow_prefix("p:", AllStart::beginning());
	follower.until_live();
	append("p:held");
	append("p:free");
	append("p:free");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("p:free"), one_to(2));
	EXPECT_EQ(follower.seqs("p:held"), Seqs());
	open("COMMIT");
	follower.until_events(4);
	EXPECT_EQ(follower.seqs("p:held"), one_to(2));
}

TEST_F(AllStreamsTest, O2_a_rollback_below_a_visible_event_is_noticed_without_a_ring_or_a_sweep)
{
	Follower follower(database);
	follower.subscriber.follow_prefix("s");
	follower.until_live();
	const std::uint64_t reads = follower.subscriber.stats().reads;
	Session first(database.dsn());
	first("BEGIN; SELECT doorbell.append('s', 't', '{}')");
	append("s");
	follower.until("reads that stop before the hole", [&] { return follower.subscriber.stats().reads >= reads + 3; });
	EXPECT_EQ(follower.seqs("s"), Seqs());
	first("ROLLBACK");
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), Seqs{2});
}

TEST_F(AllStreamsTest, L1_an_event_appended_while_the_listener_is_cut_arrives_after_reconnect)
{
	Follower follower(database);
	follower.subscriber.follow_prefix("s");
	follower.until_live();
	ASSERT_EQ(database.kill("listener"), 1);
	append("s");
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), one_to(1));
}

TEST_F(AllStreamsTest, L2_an_event_appended_between_listen_and_the_history_read_is_delivered_once)
{
	Follower follower(database);
	int reached = 0;
	const Fault fault([&](std::string_view at) {
		if (at == place::history_read && reached == 0) {
			reached++;
			EXPECT_EQ(follower.subscriber.stats().listener_connects, 1u) << "LISTEN is confirmed first";
			append("s");
		}
		return false;
	});
	follower.subscriber.follow_prefix("", AllStart::beginning());
	follower.until_events(1);
	append("s");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("s"), one_to(2));
	EXPECT_EQ(reached, 1);
}

TEST_F(AllStreamsTest, L3_the_sweep_finds_what_was_not_rung_from_now_on_and_nothing_older)
{
	append_to("s", 3);
	doorbell::SubscriberOptions options = options_for(database);
	options.sweep_interval = milliseconds(50);
	Follower follower(options);
	follower.subscriber.follow_prefix("");
	follower.until_live();
	const Fault fault([](std::string_view at) { return at == place::ring; });
	append("s");
	append("new");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("s"), Seqs{4});
	EXPECT_EQ(follower.seqs("new"), Seqs{1});
}

TEST_F(AllStreamsTest, C3_lost_connections_and_restarts_of_the_server_lose_and_double_nothing)
{
	Follower follower(database);
	follower.subscriber.follow_prefix("", AllStart::beginning());
	std::size_t count = 0;
	for (int i = 0; i < 3; i++) {
		append("s");
		follower.until_events(++count);
		ASSERT_EQ(database.kill("reader"), 1);
		append("s");
		follower.until_events(++count);
		follower.until("the reader", [&] { return database.sessions("reader") == 1; });
	}
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
	EXPECT_EQ(follower.seqs("s"), one_to(static_cast<std::int64_t>(count)));
	EXPECT_TRUE(follower.resets.empty());
	EXPECT_TRUE(follower.gaps.empty());
}

TEST_F(AllStreamsTest, S7_a_backlog_of_ten_batches_is_delivered_in_portions_without_another_append)
{
	sql("SELECT doorbell.append('s:' || i % 7, 't', to_jsonb(repeat('x', 10000))) FROM generate_series(0, 999) i");
	doorbell::SubscriberOptions options = options_for(database);
	options.batch = 100;
	options.batch_bytes = 200'000;
	Follower follower(options);
	follower.subscriber.follow_prefix("s:", AllStart::beginning());
	follower.until_events(1'000);
	EXPECT_EQ(given_to(follower), table());
	EXPECT_GE(follower.subscriber.stats().reads, 45u) << "a first one of 100, then about twenty events each";
}

TEST_F(AllStreamsTest, a_pause_stops_delivery_and_nothing_is_lost)
{
	append_to("s", 5);
	Follower follower(database);
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.seq == 2)
			follower.subscriber.pause();
	};
	follower.subscriber.follow_prefix("", AllStart::beginning());
	follower.until_events(2);
	append("s");
	follower.until("a ring", [&] { return follower.subscriber.stats().rings > 0; });
	EXPECT_EQ(follower.seqs("s"), one_to(2));
	follower.subscriber.resume();
	follower.until_events(6);
	EXPECT_EQ(follower.seqs("s"), one_to(6));
}

TEST_F(AllStreamsTest, following_again_moves_to_the_new_start_and_a_handler_may_do_it)
{
	append_to("s", 3);
	Follower follower(database);
	bool again = true;
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.seq == 2 && std::exchange(again, false))
			follower.subscriber.follow_prefix("s", AllStart::beginning());
		if (follower.events.size() == 4)
			follower.subscriber.unfollow_prefix("s");
	};
	follower.subscriber.follow_prefix("s", AllStart::beginning());
	follower.until_events(5);
	append("s");
	follower.expect_nothing_more(sql);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 1, 2, 3}));
	EXPECT_FALSE(follower.subscriber.cursor("s"));
}

TEST_F(AllStreamsTest, a_text_that_is_no_cursor_is_named)
{
	append("s");
	try {
		AllStart::after("42-9f3c01ab");
		ADD_FAILURE() << "accepted";
	} catch (const doorbell::Error &error) {
		EXPECT_NE(std::string(error.what()).find("\"42-9f3c01ab\""), std::string::npos) << error.what();
	}

	Follower follower(database);
	follower.subscriber.follow_prefix("", AllStart::beginning());
	follower.until_events(1);
	follower.subscriber.follow_prefix("", AllStart::after("all1.1.0...")); // well formed, but of nothing
	std::string what;
	try {
		follower.until_events(2);
	} catch (const doorbell::Error &error) {
		EXPECT_EQ(error.sqlstate(), "22023");
		what = error.what();
	}
	EXPECT_NE(what.find("\"all1.1.0...\""), std::string::npos) << what;
}

} // namespace
} // namespace live
