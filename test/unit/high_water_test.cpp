#include <doorbell/high_water.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace {

using doorbell::HighWater;
using doorbell::Mark;

TEST(HighWater, is_moved_forwards_by_delivery_only)
{
	HighWater marks;
	EXPECT_FALSE(marks.at("s"));
	EXPECT_TRUE(marks.deliver("s", {3, 30}));
	EXPECT_FALSE(marks.deliver("s", {3, 31})) << "a duplicate";
	EXPECT_FALSE(marks.deliver("s", {2, 20})) << "a rewind";
	EXPECT_EQ(marks.at("s"), (Mark{3, 30}));
	EXPECT_TRUE(marks.deliver("s", {10, 100})) << "seqs may be void";
}

TEST(HighWater, refuses_what_lies_at_or_below_nothing)
{
	HighWater marks;
	EXPECT_FALSE(marks.deliver("s", {0, 0}));
	EXPECT_EQ(marks.size(), 0u);
}

TEST(HighWater, is_kept_by_stream)
{
	HighWater marks;
	marks.deliver("a", {5, 1});
	EXPECT_TRUE(marks.deliver("b", {1, 1}));
	EXPECT_TRUE(marks.deliver("A", {1, 1})) << "keys are bytes";
	marks.forget("a");
	marks.forget("never seen");
	EXPECT_FALSE(marks.at("a"));
	EXPECT_TRUE(marks.deliver("a", {1, 1}));
}

TEST(HighWater, can_be_placed_anywhere)
{
	HighWater marks;
	marks.deliver("s", {5, 50});
	marks.place("s", {2, 0});
	EXPECT_EQ(marks.at("s"), (Mark{2, 0}));
	EXPECT_TRUE(marks.deliver("s", {3, 30}));
}

TEST(HighWater, is_walked_in_key_order_while_it_changes)
{
	HighWater marks;
	for (const char *key : {"c", "a", "b"})
		marks.place(key, {1, 0});
	EXPECT_EQ(marks.next("")->first, "a");
	marks.forget("b");
	marks.place("aa", {1, 0});
	EXPECT_EQ(marks.next("a")->first, "aa");
	EXPECT_EQ(marks.next("aa")->first, "c");
	EXPECT_TRUE(marks.next("c") == marks.all().end());
}

TEST(HighWater, lets_each_event_through_once_in_order_whatever_arrives)
{
	std::mt19937 random(7);
	for (int round = 0; round < 200; round++) {
		HighWater marks;
		std::vector<std::int64_t> delivered;
		for (int i = 0; i < 300; i++) {
			const auto seq = static_cast<std::int64_t>(random() % 50);
			if (marks.deliver("s", {seq, 0}))
				delivered.push_back(seq);
		}
		EXPECT_TRUE(std::is_sorted(delivered.begin(), delivered.end()));
		EXPECT_TRUE(std::adjacent_find(delivered.begin(), delivered.end()) == delivered.end());
	}
}

} // namespace
