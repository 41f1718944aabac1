// Standbys: a listener that is pointed at one, reading from one, and failover to one.
#include "follower.hpp"

#include <csignal>

namespace live {
namespace {

using doorbell::AllStart;
using doorbell::milliseconds;
using doorbell::Start;
using doorbell::State;

struct ReplicaTest : LiveTest {
	std::string on_standby(const std::string &application) const
	{
		return standby.dsn(database.name()) + " application_name=" + application;
	}

	// Until the standby has everything that was committed so far.
	void catch_up()
	{
		const std::string end = sql("SELECT pg_current_wal_flush_lsn()");
		Session there(on_standby("test"));
		wait_for("the standby", [&] { return there("SELECT pg_last_wal_replay_lsn() >= '" + end + "'") == "t"; });
	}

	// Nothing new gets there until pg_wal_replay_resume().
	void pause(Session &there)
	{
		there("SELECT pg_wal_replay_pause()");
		wait_for("the pause", [&] { return there("SELECT pg_get_wal_replay_pause_state()") == "paused"; });
	}

	doorbell::SubscriberOptions reading_there() const
	{
		doorbell::SubscriberOptions options = options_for(database);
		options.connect.dsn = on_standby("reader");
		return options;
	}

	Server standby{primary().dsn("postgres")};
};

TEST_F(ReplicaTest, L8_a_listener_on_a_standby_is_named_and_events_arrive_by_sweep)
{
	doorbell::SubscriberOptions options = options_for(database);
	options.listen_dsn = on_standby("listener");
	options.sweep_interval = milliseconds(50);
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	append("s");
	follower.until_events(1);
	append("s");
	follower.until_events(2);
	EXPECT_EQ(follower.subscriber.state(), State::sweeping);
	EXPECT_NE(follower.subscriber.last_error().find("standby"), std::string::npos) << follower.subscriber.last_error();
	EXPECT_EQ(follower.states, std::vector<State>{State::sweeping}) << "it does not flicker while it tries again";
}

TEST_F(ReplicaTest, events_rung_by_the_primary_are_read_from_a_replica_as_soon_as_it_has_them)
{
	catch_up();
	Follower follower(reading_there());
	follower.subscriber.follow("s", Start::beginning());
	follower.subscriber.follow_prefix("p:");
	follower.until_live();
	Session there(on_standby("test"));
	pause(there);
	append("p:s");
	append("s");
	follower.until("reads in vain", [&] { return follower.subscriber.stats().reads >= 3; });
	EXPECT_EQ(follower.events.size(), 0u);
	there("SELECT pg_wal_replay_resume()");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("s"), one_to(1));
	EXPECT_EQ(follower.seqs("p:s"), one_to(1));
	EXPECT_TRUE(follower.resets.empty());
}

TEST_F(ReplicaTest, C3_a_reader_that_moves_to_a_replica_which_lags_waits_for_it_without_a_reset)
{
	catch_up();
	Session there(on_standby("test"));
	pause(there);
	append("s");
	append("s");
	Follower follower(reading_there());
	doorbell::ConnectOptions on_primary;
	on_primary.dsn = database.dsn();
	const doorbell::Mark mark = doorbell::mark_of(doorbell::Log(on_primary).replay("s", 1).at(0));
	follower.subscriber.follow("s", Start::after(mark));
	follower.until("a start", [&] { return follower.subscriber.mark("s").has_value(); });
	EXPECT_EQ(follower.subscriber.mark("s"), mark);
	EXPECT_TRUE(follower.resets.empty());

	there("SELECT pg_wal_replay_resume()");
	append("s");
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), std::vector<std::int64_t>{3});
}

TEST_F(ReplicaTest, C3_a_cursor_of_the_primary_waits_on_a_replica_which_lags_without_a_reset)
{
	append("s");
	catch_up();
	Session there(on_standby("test"));
	pause(there);
	append("s");
	append("t");
	Follower before(database);
	before.subscriber.follow_prefix("", AllStart::beginning());
	before.until_events(3);
	append("s");
	const std::string cursor = before.subscriber.cursor("").value();

	Follower follower(reading_there());
	follower.subscriber.follow_prefix("", AllStart::after(cursor));
	follower.until("reads in vain", [&] { return follower.subscriber.stats().reads >= 1; });
	append("u");
	follower.until("more of them", [&] { return follower.subscriber.stats().reads >= 4; });
	EXPECT_TRUE(follower.events.empty());
	EXPECT_EQ(follower.subscriber.cursor(""), cursor);
	there("SELECT pg_wal_replay_resume()");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("s"), std::vector<std::int64_t>{3});
	EXPECT_EQ(follower.seqs("u"), one_to(1));
	EXPECT_TRUE(follower.resets.empty());
	EXPECT_TRUE(follower.gaps.empty());
}

TEST_F(ReplicaTest, C3_a_replica_that_is_down_or_goes_down_is_passed_over)
{
	catch_up();
	doorbell::SubscriberOptions options = options_for(database);
	options.read_dsns = {"host=/nonexistent", on_standby("reader"), database.dsn("reader")};
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	append("s");
	follower.until_events(1);
	EXPECT_EQ(database.sessions("reader"), 0) << "it reads from the standby";
	standby.stop(SIGQUIT);
	append("s");
	follower.until_events(2);
	EXPECT_EQ(database.sessions("reader"), 1) << "it reads from the next one, the primary";
	EXPECT_EQ(follower.seqs("s"), one_to(2));
	EXPECT_TRUE(follower.resets.empty());
}

// The reader and the listener go to whichever of the two takes writes.
struct FailoverTest : ReplicaTest {
	FailoverTest() : follower(options()) {}

	~FailoverTest() override
	{
		primary().start();
		primary().await();
	}

	doorbell::SubscriberOptions options() const
	{
		doorbell::SubscriberOptions options = options_for(database);
		options.connect.dsn = options.listen_dsn =
			"host=127.0.0.1,127.0.0.1 port=" + std::to_string(primary().port()) + "," + std::to_string(standby.port()) +
			" user=postgres dbname=" + database.name() + " target_session_attrs=read-write";
		return options;
	}

	void fail_over()
	{
		standby.promote();
		wait_for("the promotion",
				 [&] { return Session(standby.dsn("postgres"))("SELECT pg_is_in_recovery()") == "f"; });
		sql = Session(on_standby("test"));
	}

	Follower follower;
};

TEST_F(FailoverTest, C3_to_a_standby_that_has_everything_loses_and_doubles_nothing)
{
	follower.subscriber.follow("s", Start::beginning());
	follower.subscriber.follow_prefix("p", AllStart::beginning());
	const auto append_both = [&] {
		append("s");
		append("p");
	};
	append_both();
	append_both();
	follower.until_events(4);
	catch_up();
	primary().stop(SIGQUIT);
	fail_over();
	append_both();
	follower.until_events(6);
	follower.until("live", [&] { return follower.subscriber.state() == State::live; });
	append_both();
	follower.until_events(8);
	EXPECT_EQ(follower.seqs("s"), one_to(4));
	EXPECT_EQ(follower.seqs("p"), one_to(4));
	EXPECT_TRUE(follower.resets.empty());
	EXPECT_TRUE(follower.gaps.empty());
}

TEST_F(FailoverTest, C6_to_a_standby_that_lacks_events_is_a_reset_of_their_streams)
{
	follower.subscriber.follow("lost", Start::beginning());
	follower.subscriber.follow("kept", Start::beginning());
	append("lost");
	append("kept");
	follower.until_events(2);
	catch_up();
	standby.stop(SIGINT);
	append("lost"); // never gets there
	follower.until_events(3);
	primary().stop(SIGQUIT);
	standby.start();
	standby.await();
	fail_over();
	append("lost", "{\"other\": true}");
	append("kept");
	follower.until_events(6);
	ASSERT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.resets[0].stream, "lost");
	EXPECT_EQ(follower.resets[0].asked.seq, 2);
	EXPECT_EQ(follower.resets[0].low_water, 0);
	EXPECT_EQ(follower.seqs("lost"), (std::vector<std::int64_t>{1, 2, 1, 2})) << "from low water";
	EXPECT_EQ(follower.seqs("kept"), one_to(2));
}

TEST_F(FailoverTest, C6_to_a_standby_that_lacks_events_is_a_reset_of_a_subscription_by_prefix)
{
	follower.subscriber.follow_prefix("", AllStart::beginning());
	append("lost");
	append("kept");
	follower.until_events(2);
	catch_up();
	standby.stop(SIGINT);
	append("lost"); // never gets there
	follower.until_events(3);
	const std::optional<std::string> asked = follower.subscriber.cursor("");
	primary().stop(SIGQUIT);
	standby.start();
	standby.await();
	fail_over();
	append("lost", "{\"other\": true}");
	append("kept");
	follower.until_events(7);
	ASSERT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.resets[0].stream, "");
	EXPECT_EQ(follower.resets[0].cursor, asked);
	EXPECT_EQ(follower.seqs("lost"), (std::vector<std::int64_t>{1, 2, 1, 2})) << "from the beginning";
	EXPECT_EQ(follower.seqs("kept"), (std::vector<std::int64_t>{1, 1, 2}));
}

} // namespace
} // namespace live
