#include "reached.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using doorbell::detail::Reached;

TEST(Reached, knows_how_far_a_stream_has_come)
{
	Reached reached;
	EXPECT_EQ(reached.at("s"), 0);
	reached.deliver("s", 7);
	EXPECT_EQ(reached.at("s"), 7);
	EXPECT_EQ(reached.at("t"), 0);
	reached.deliver("s", 8);
	EXPECT_EQ(reached.at("s"), 8);
}

TEST(Reached, may_forget_but_never_takes_one_stream_for_another)
{
	Reached reached;
	for (std::int64_t i = 1; i <= 100'000; i++) {
		reached.deliver("s:" + std::to_string(i), i);
		EXPECT_EQ(reached.at("s:" + std::to_string(i)), i) << "the last one is always known";
	}
	int known = 0;
	for (std::int64_t i = 1; i <= 100'000; i++) {
		const std::int64_t seq = reached.at("s:" + std::to_string(i));
		EXPECT_TRUE(seq == 0 || seq == i) << i;
		known += seq != 0 ? 1 : 0;
	}
	EXPECT_GT(known, 500);
}

TEST(Reached, forgets_everything_on_demand)
{
	Reached reached;
	reached.deliver("s", 7);
	reached.clear();
	EXPECT_EQ(reached.at("s"), 0);
}

} // namespace
