// Marks that the database no longer knows: trimmed away (gap), or of another history (reset).
#include "follower.hpp"

namespace live {
namespace {

using doorbell::Mark;
using doorbell::milliseconds;
using doorbell::Start;
using Seqs = std::vector<std::int64_t>;

struct HistoryTest : LiveTest {};

TEST_F(HistoryTest, S3_a_start_older_than_low_water_is_a_gap_and_goes_on_from_there)
{
	append_to("s", 10);
	trim("s", 7);
	Follower follower(database);
	follower.subscriber.follow("s", Start::after({3, 0}));
	follower.until_events(3);
	ASSERT_EQ(follower.gaps.size(), 1u);
	EXPECT_EQ(follower.gaps[0].stream, "s");
	EXPECT_EQ(follower.gaps[0].asked, 3);
	EXPECT_EQ(follower.gaps[0].low_water, 7);
	EXPECT_EQ(follower.seqs("s"), one_to(10, 8));
	EXPECT_TRUE(follower.resets.empty());
}

TEST_F(HistoryTest, C6_a_stream_that_was_trimmed_to_its_end_is_a_gap_too)
{
	append_to("s", 5);
	trim("s", 5);
	Follower follower(database);
	follower.subscriber.follow("s", Start::after({2, 0}));
	follower.until("a gap", [&] { return follower.gaps.size() == 1; });
	EXPECT_EQ(follower.subscriber.mark("s"), (Mark{5, 0}));
	append("s");
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), Seqs{6});
}

TEST_F(HistoryTest, C6_what_is_trimmed_behind_the_mark_is_no_gap)
{
	append_to("s", 5);
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(5);
	trim("s", 5);
	ASSERT_EQ(database.kill("reader"), 1); // marks are verified
	append("s");
	follower.until_events(6);
	EXPECT_TRUE(follower.gaps.empty());
	EXPECT_TRUE(follower.resets.empty());

	Follower late(database);
	late.subscriber.follow("s", Start::beginning());
	late.until_events(1);
	EXPECT_EQ(late.seqs("s"), Seqs{6});
	EXPECT_TRUE(late.gaps.empty()) << "the beginning is the oldest event that there is";
}

TEST_F(HistoryTest, C6_events_trimmed_away_in_front_of_a_reader_are_a_gap_before_what_follows)
{
	append_to("s", 10);
	doorbell::SubscriberOptions options = options_for(database);
	options.batch = 2;
	Follower follower(options);
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.seq == 2)
			trim("s", 6);
	};
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(6);
	ASSERT_EQ(follower.gaps.size(), 1u);
	EXPECT_EQ(follower.gaps[0].asked, 2);
	EXPECT_EQ(follower.gaps[0].low_water, 6);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 7, 8, 9, 10}));
}

TEST_F(HistoryTest, S4_a_start_beyond_high_water_is_a_reset_from_low_water)
{
	append_to("s", 5);
	trim("s", 2);
	Follower follower(database);
	follower.subscriber.follow("s", Start::after({6, 0}));
	follower.subscriber.follow("empty", Start::after({1, 0x12345678}));
	follower.until_events(3);
	follower.until("both resets", [&] { return follower.resets.size() == 2; });
	EXPECT_EQ(follower.seqs("s"), one_to(5, 3));
	for (const doorbell::Reset &reset : follower.resets) {
		EXPECT_EQ(reset.asked, reset.stream == "s" ? (Mark{6, 0}) : (Mark{1, 0x12345678}));
		EXPECT_EQ(reset.low_water, reset.stream == "s" ? 2 : 0);
	}
}

TEST_F(HistoryTest, S4_a_start_at_high_water_or_at_a_void_seq_is_none)
{
	append_to("s", 5);
	sql("BEGIN; SELECT doorbell.append('void', 't', '{}')");
	Session(database.dsn())("SELECT doorbell.append('void', 't', '{}')");
	sql("ROLLBACK");
	Follower follower(database);
	follower.subscriber.follow("s", Start::after({5, 0}));
	follower.subscriber.follow("void", Start::after({1, 0}));
	follower.until_events(1);
	append("s");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("void"), Seqs{2});
	EXPECT_EQ(follower.seqs("s"), Seqs{6});
	EXPECT_TRUE(follower.resets.empty());
}

TEST_F(HistoryTest, S4_a_start_whose_check_is_of_another_event_is_a_reset)
{
	append_to("s", 3);
	Follower first(database);
	first.subscriber.follow("s", Start::beginning());
	first.until_events(3);
	const Mark second = doorbell::mark_of(first.events[1]);

	Follower follower(database);
	follower.subscriber.follow("s", Start::after(second));
	follower.until_events(1);
	EXPECT_EQ(follower.seqs("s"), Seqs{3}) << "its own check is fine";
	follower.subscriber.follow("s", Start::after({second.seq, second.check ^ 1}));
	follower.until_events(4);
	EXPECT_EQ(follower.seqs("s"), (Seqs{3, 1, 2, 3}));
	ASSERT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.resets[0].asked.check, second.check ^ 1);
}

TEST_F(HistoryTest, C6_a_stream_made_anew_is_a_reset)
{
	append_to("s", 3);
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(3);
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; SELECT doorbell.append('s', 'new', '{}');"
		" COMMIT");
	ASSERT_EQ(database.kill("reader"), 1);
	follower.until_events(4);
	ASSERT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.resets[0].asked.seq, 3);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 3, 1}));
	EXPECT_EQ(follower.events.back().type, "new");
}

TEST_F(HistoryTest, C6_a_stream_made_anew_on_a_living_connection_is_a_reset_at_the_next_sweep)
{
	append_to("s", 3);
	doorbell::SubscriberOptions options = options_for(database);
	options.sweep_interval = milliseconds(50);
	Follower follower(options);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(3);
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; SELECT doorbell.append('s', 'new', '{}');"
		" COMMIT");
	follower.until_events(4);
	EXPECT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 3, 1}));
	EXPECT_EQ(follower.subscriber.stats().reader_connects, 1u);
}

TEST_F(HistoryTest, C6_a_stream_made_anew_with_a_void_seq_at_the_mark_is_a_reset)
{
	append_to("s", 3);
	Follower follower(database); // no sweep comes to help
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(3);
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell;"
		" SELECT doorbell.append_batch('s', '{t,t}', '{1,2}'); COMMIT");
	Session other(database.dsn());
	other("BEGIN; SELECT doorbell.append('s', 't', '3')");
	append_to("s", 1);
	other("ROLLBACK");
	follower.until_events(6);
	EXPECT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 3, 1, 2, 4}));
}

TEST_F(HistoryTest, C6_a_restored_backup_resets_the_streams_that_went_on_since_and_no_others)
{
	append_to("same", 2);
	append_to("longer", 2);
	append_to("shorter", 2);
	append_to("equal", 2);
	const std::string backup = database.name() + "_backup";
	sql = Session(primary().dsn("postgres")); // a template has no sessions
	sql("CREATE DATABASE " + backup + " TEMPLATE " + database.name());
	sql = Session(database.dsn());

	Follower follower(database);
	for (const char *stream : {"same", "longer", "shorter", "equal"})
		follower.subscriber.follow(stream, Start::beginning());
	append_to("longer", 3);
	append_to("shorter", 3);
	append_to("equal", 3);
	follower.until_events(17);
	replace_by(backup);
	append_to("same", 1);
	append_to("longer", 9); // passes the marks: 5 is another event now
	append_to("shorter", 1);
	append_to("equal", 3);
	follower.until("all resets", [&] { return follower.resets.size() == 3; });
	follower.until_events(17 + 1 + 11 + 3 + 5);
	EXPECT_EQ(follower.resets.size(), 3u);
	EXPECT_EQ(follower.seqs("same"), one_to(3));
	EXPECT_EQ(follower.seqs("longer").size(), 5u + 11u);
	EXPECT_EQ(follower.seqs("shorter"), (Seqs{1, 2, 3, 4, 5, 1, 2, 3}));
	EXPECT_EQ(follower.seqs("equal"), (Seqs{1, 2, 3, 4, 5, 1, 2, 3, 4, 5}));
	EXPECT_TRUE(follower.gaps.empty());
}

TEST_F(HistoryTest, C6_no_event_of_another_history_is_delivered_before_the_reset)
{
	append_to("s", 3);
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(3);
	std::size_t events_before_reset = 0;
	follower.before_reset = [&] { events_before_reset = follower.events.size(); };
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; COMMIT");
	ASSERT_EQ(database.kill("reader"), 1);
	append_to("s", 6); // 4 to 6 would look like what comes next
	follower.until_events(9);
	EXPECT_EQ(events_before_reset, 3u);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 3, 1, 2, 3, 4, 5, 6}));
}

TEST_F(HistoryTest, C6_nor_on_a_connection_that_lives_through_the_change)
{
	append_to("s", 3);
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(3);
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; COMMIT");
	append_to("s", 6); // one ring, and no sweep in this test
	follower.until_events(9);
	EXPECT_EQ(follower.resets.size(), 1u);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 2, 3, 1, 2, 3, 4, 5, 6}));
	EXPECT_EQ(follower.subscriber.stats().reader_connects, 1u);
}

TEST_F(HistoryTest, C3_an_event_handler_that_throws_leaves_the_mark_and_gets_the_event_again)
{
	append_to("s", 4);
	Follower follower(database);
	Thrower thrower(follower);
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.seq == 3) {
			EXPECT_EQ(follower.subscriber.mark("s"), doorbell::mark_of(event)) << "the handler sees the new mark";
			thrower();
		}
	};
	follower.subscriber.follow("s", Start::beginning());
	thrower.until_events(4, [&] {
		ASSERT_EQ(follower.events.size(), 2u);
		EXPECT_EQ(follower.subscriber.mark("s"), doorbell::mark_of(follower.events[1]));
		EXPECT_LE(follower.subscriber.deadline(), doorbell::Clock::now()) << "an event loop must not wait";
	});
	EXPECT_EQ(follower.seqs("s"), one_to(4));
}

TEST_F(HistoryTest, C6_a_gap_handler_that_throws_at_the_start_gets_the_gap_again)
{
	append_to("s", 3);
	trim("s", 2);
	Follower follower(database);
	Thrower thrower(follower);
	follower.before_gap = [&] { thrower(); };
	follower.subscriber.follow("s", Start::after({1, 0}));
	thrower.until_events(1, [&] { EXPECT_FALSE(follower.subscriber.mark("s")) << "the start is not settled"; });
	EXPECT_EQ(follower.gaps.size(), 1u);
	EXPECT_EQ(follower.seqs("s"), Seqs{3});
}

TEST_F(HistoryTest, C6_a_gap_handler_that_throws_between_events_gets_the_gap_again_before_them)
{
	append_to("s", 4);
	doorbell::SubscriberOptions options = options_for(database);
	options.batch = 1;
	Follower follower(options);
	Thrower thrower(follower);
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.seq == 1)
			trim("s", 3);
	};
	follower.before_gap = [&] { thrower(); };
	follower.subscriber.follow("s", Start::beginning());
	thrower.until_events(2, [&] {
		ASSERT_EQ(follower.events.size(), 1u);
		EXPECT_EQ(follower.subscriber.mark("s"), doorbell::mark_of(follower.events[0]));
	});
	EXPECT_EQ(follower.gaps.size(), 1u);
	EXPECT_EQ(follower.seqs("s"), (Seqs{1, 4}));
}

TEST_F(HistoryTest, C6_a_reset_handler_that_throws_gets_the_reset_again)
{
	append_to("s", 3);
	Follower follower(database);
	Thrower thrower(follower);
	follower.before_reset = [&] { thrower(); };
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(3);
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; SELECT doorbell.append('s', 'new', '{}');"
		" COMMIT");
	ASSERT_EQ(database.kill("reader"), 1);
	thrower.until_events(4, [&] {
		EXPECT_EQ(follower.subscriber.mark("s"), doorbell::mark_of(follower.events[2]));
		EXPECT_EQ(follower.events.size(), 3u);
	});
	EXPECT_EQ(follower.resets.size(), 1u);
}

} // namespace
} // namespace live
