#include <doorbell/backoff.hpp>
#include <doorbell/error.hpp>

#include <gtest/gtest.h>

#include <set>

namespace {

using doorbell::Backoff;
using std::chrono::milliseconds;

TEST(Backoff, doubles_up_to_its_limit)
{
	Backoff longest(milliseconds(100), milliseconds(1'000), [] { return 0.999999999; });
	for (const int expected : {99, 199, 399, 799, 999, 999, 999})
		EXPECT_EQ(longest.next().count(), expected);
	Backoff shortest(milliseconds(100), milliseconds(1'000), [] { return 0.0; });
	for (const int expected : {50, 100, 200, 400, 500, 500})
		EXPECT_EQ(shortest.next().count(), expected);
}

TEST(Backoff, begins_anew_after_success)
{
	Backoff backoff(milliseconds(100), milliseconds(1'000), [] { return 0.0; });
	backoff.next();
	backoff.next();
	backoff.reset();
	EXPECT_EQ(backoff.next().count(), 50);
}

TEST(Backoff, stays_in_its_range_and_spreads)
{
	Backoff backoff(milliseconds(1'000), milliseconds(1'000));
	std::set<milliseconds::rep> seen;
	for (int i = 0; i < 1'000; i++) {
		const auto delay = backoff.next().count();
		EXPECT_GE(delay, 500);
		EXPECT_LE(delay, 1'000);
		seen.insert(delay);
	}
	EXPECT_GT(seen.size(), 100u);
}

TEST(Backoff, of_two_objects_differs)
{
	Backoff one(milliseconds(1'000'000), milliseconds(1'000'000));
	Backoff other(milliseconds(1'000'000), milliseconds(1'000'000));
	int same = 0;
	for (int i = 0; i < 10; i++)
		same += one.next() == other.next();
	EXPECT_LT(same, 10);
}

TEST(Backoff, never_waits_for_nothing_and_does_not_overflow)
{
	Backoff tiny(milliseconds(1), milliseconds(1), [] { return 0.0; });
	EXPECT_EQ(tiny.next().count(), 1);
	const milliseconds huge(std::int64_t{1} << 60);
	Backoff long_one(milliseconds(1), huge, [] { return 0.5; });
	for (int i = 0; i < 200; i++) {
		const milliseconds delay = long_one.next();
		EXPECT_GT(delay.count(), 0);
		EXPECT_LE(delay, huge);
	}
}

TEST(Backoff, refuses_delays_that_make_no_sense)
{
	EXPECT_THROW(Backoff(milliseconds(0), milliseconds(1)), doorbell::Error);
	EXPECT_THROW(Backoff(milliseconds(-1), milliseconds(1)), doorbell::Error);
	EXPECT_THROW(Backoff(milliseconds(2), milliseconds(1)), doorbell::Error);
}

} // namespace
