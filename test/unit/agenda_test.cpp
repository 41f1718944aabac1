#include "agenda.hpp"

#include <gtest/gtest.h>

namespace {

using doorbell::milliseconds;
using doorbell::detail::Agenda;
using Streams = std::vector<std::string>;

// An agenda whose marks and clock are the test's.
struct AgendaTest : testing::Test {
	Streams take(std::size_t most = 100)
	{
		return agenda.take(
			most,
			[this](const std::string &stream) -> std::optional<std::int64_t> {
				const auto found = marks.find(stream);
				return found == marks.end() ? std::nullopt : std::optional<std::int64_t>(found->second);
			},
			now);
	}

	void pass(int ms) { now += milliseconds(ms); }

	Agenda agenda{milliseconds(10), milliseconds(100)};
	std::map<std::string, std::int64_t> marks{{"a", 0}, {"b", 0}, {"c", 0}};
	Agenda::TimePoint now{std::chrono::hours(1)};
};

TEST_F(AgendaTest, is_empty_at_first)
{
	EXPECT_EQ(take(), Streams());
	EXPECT_FALSE(agenda.is_due(now));
}

TEST_F(AgendaTest, reads_a_stream_that_rang_once_however_often_it_rang)
{
	agenda.ring("a", 1, now);
	agenda.ring("a", 2, now);
	EXPECT_EQ(agenda.size(), 1u);
	EXPECT_TRUE(agenda.is_due(now));
	EXPECT_EQ(take(), Streams{"a"});
	EXPECT_EQ(take(), Streams());
	agenda.done("a", 2, true, false, now);
	EXPECT_EQ(take(), Streams());
	EXPECT_EQ(agenda.next(), Agenda::TimePoint::max());
	EXPECT_EQ(agenda.size(), 0u);
}

TEST_F(AgendaTest, drops_rings_that_the_mark_has_reached_and_streams_nobody_follows)
{
	agenda.ring("a", 5, now);
	agenda.ring("x", 5, now);
	marks["a"] = 5;
	EXPECT_EQ(take(), Streams());
}

TEST_F(AgendaTest, reads_what_is_wanted_whatever_the_mark)
{
	marks["a"] = 5;
	agenda.want("a");
	EXPECT_EQ(take(), Streams{"a"});
}

TEST_F(AgendaTest, lets_streams_that_do_not_fit_take_turns)
{
	for (const char *stream : {"a", "b", "c"})
		agenda.ring(stream, 1'000, now);
	EXPECT_EQ(take(2), (Streams{"a", "b"}));
	agenda.done("a", 10, true, true, now);
	agenda.done("b", 10, true, true, now);
	EXPECT_EQ(take(2), (Streams{"c", "a"}));
	agenda.done("c", 10, true, true, now);
	agenda.done("a", 20, true, true, now);
	EXPECT_EQ(take(2), (Streams{"b", "c"}));
}

TEST_F(AgendaTest, asks_a_stuck_stream_again_with_growing_delays_and_then_leaves_it_to_the_sweep)
{
	agenda.ring("a", 2, now);
	take();
	for (const int delay : {10, 10, 20, 40, 80}) {
		agenda.done("a", 0, false, false, now);
		pass(delay - 1);
		EXPECT_EQ(take(), Streams());
		pass(1);
		EXPECT_EQ(take(), Streams{"a"}) << delay;
	}
	agenda.done("a", 0, false, false, now);
	EXPECT_EQ(agenda.next(), Agenda::TimePoint::max());
}

TEST_F(AgendaTest, begins_with_short_delays_again_after_progress)
{
	agenda.ring("a", 9, now);
	take();
	agenda.done("a", 0, false, false, now);
	pass(10);
	take();
	agenda.done("a", 0, false, false, now);
	pass(20);
	take();
	agenda.done("a", 4, true, false, now);
	pass(10);
	EXPECT_EQ(take(), Streams{"a"});
}

TEST_F(AgendaTest, reads_a_stuck_stream_at_once_when_a_lower_seq_rings)
{
	agenda.ring("a", 2, now);
	take();
	agenda.done("a", 0, false, false, now);
	agenda.ring("a", 1, now);
	EXPECT_EQ(take(), Streams{"a"});
	agenda.done("a", 2, true, false, now);
	pass(1'000);
	EXPECT_EQ(take(), Streams()) << "the delayed question is obsolete";
}

TEST_F(AgendaTest, is_not_driven_by_rings_beyond_a_hole)
{
	agenda.ring("a", 2, now);
	int reads = 0;
	for (int ms = 0; ms < 1'000; ms++) { // a busy stream behind an append that stays open
		agenda.ring("a", 3 + ms, now);
		for (const std::string &stream : take()) {
			agenda.done(stream, 0, false, false, now);
			reads++;
		}
		pass(1);
	}
	EXPECT_GT(reads, 50) << "but a hole that was rolled back is noticed soon";
	EXPECT_LE(reads, 115);
}

TEST_F(AgendaTest, keeps_a_ring_that_came_during_the_read)
{
	agenda.ring("a", 1, now);
	take();
	agenda.ring("a", 2, now);
	agenda.done("a", 1, true, false, now);
	marks["a"] = 1;
	EXPECT_EQ(take(), Streams{"a"});
}

TEST_F(AgendaTest, forgets)
{
	agenda.ring("a", 1, now);
	agenda.ring("b", 1, now);
	agenda.forget("a");
	EXPECT_EQ(take(), Streams{"b"});
	agenda.done("b", 0, false, false, now);
	agenda.clear();
	pass(1'000);
	EXPECT_EQ(take(), Streams());
	EXPECT_EQ(agenda.next(), Agenda::TimePoint::max());
}

} // namespace
