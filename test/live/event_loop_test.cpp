// Subscriber and Listener inside an event loop of their owner's: nothing but descriptors() and deadline() says when to
// call poll().
#include "follower.hpp"
#include "wait.hpp"

#include <algorithm>

namespace live {
namespace {

using doorbell::Clock;
using doorbell::milliseconds;
using doorbell::Start;
using doorbell::State;

struct EventLoopTest : LiveTest {
	// Waits as long as it is told to. What takes longer than any attempt or retry is a missed wake-up.
	template <typename Polled>
	void loop_until(Polled &polled, const std::function<bool()> &reached)
	{
		while (!reached()) {
			const Clock::time_point limit = Clock::now() + patience;
			doorbell::detail::wait(polled.descriptors(), std::min(limit, polled.deadline()));
			ASSERT_LT(Clock::now(), limit) << "nothing woke the loop; last error: " << polled.last_error();
			polled.poll(milliseconds(0));
		}
	}
};

TEST_F(EventLoopTest, C3_delivers_through_the_loss_of_connections)
{
	sql("SELECT doorbell.append('s', 't', '{}') FROM generate_series(1, 2500)");
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	loop_until(follower.subscriber, [&] { return follower.events.size() == 2'500; });
	std::size_t count = 2'500;
	for (const char *killed : {"listener", "reader", "listener", "reader"}) {
		append("s");
		loop_until(follower.subscriber, [&] { return follower.events.size() == count + 1; });
		database.kill(killed);
		append("s");
		loop_until(follower.subscriber, [&] { return follower.events.size() == count + 2; });
		loop_until(follower.subscriber, [&] { return follower.subscriber.state() == State::live; });
		count += 2;
	}
	EXPECT_EQ(follower.seqs("s"), one_to(static_cast<std::int64_t>(count)));
}

TEST_F(EventLoopTest, asks_again_for_an_append_in_flight)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	loop_until(follower.subscriber, [&] { return follower.subscriber.stats().sweeps > 0; });
	Session first(database.dsn());
	first("BEGIN; SELECT doorbell.append('s', 't', '{}')");
	append("s");
	loop_until(follower.subscriber, [&] { return follower.subscriber.stats().reads >= 3; });
	first("ROLLBACK");
	loop_until(follower.subscriber, [&] { return follower.events.size() == 1; });
	EXPECT_EQ(follower.seqs("s"), std::vector<std::int64_t>{2});
}

TEST_F(EventLoopTest, is_not_woken_for_nothing_while_all_is_quiet)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::now());
	follower.until_live();
	follower.expect_nothing_more(sql);
	EXPECT_GT(follower.subscriber.deadline(), Clock::now() + std::chrono::minutes(1));
}

} // namespace
} // namespace live
