// Starting, stopping, destroying and forking at any moment.
#include "follower.hpp"
#include "relay.hpp"

#include <filesystem>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace live {
namespace {

using doorbell::milliseconds;
using doorbell::Start;
using doorbell::State;

struct LifetimeTest : LiveTest {
	static std::ptrdiff_t open_descriptors()
	{
		return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
	}

	// Runs `work` in a forked child; its exit status.
	template <typename Work>
	static int in_child(Work work)
	{
		const pid_t child = ::fork();
		if (child == 0)
			::_exit(work()); // not exit(): the server belongs to the parent
		int status = 0;
		::waitpid(child, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
};

TEST_F(LifetimeTest, L7_runs_and_stops_a_thousand_times_from_other_threads)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	bool stops_itself = false;
	follower.before_event = [&](const doorbell::Event &) {
		if (stops_itself)
			follower.subscriber.stop();
	};
	for (int round = 1; round <= 1'000; round++) {
		stops_itself = round % 20 == 0;
		if (stops_itself)
			append("s");
		std::thread owner([&] { follower.subscriber.run(); });
		if (!stops_itself) {
			follower.subscriber.wake();
			follower.subscriber.stop();
		}
		owner.join();
	}
	EXPECT_EQ(follower.seqs("s"), one_to(50));
	EXPECT_EQ(follower.subscriber.stats().listener_connects, 1u);
	EXPECT_EQ(follower.subscriber.stats().reader_connects, 1u);
}

TEST_F(LifetimeTest, L7_a_stop_before_run_counts_and_each_stop_ends_one_run)
{
	Follower follower(database);
	follower.subscriber.stop();
	follower.subscriber.run();
	std::thread owner([&] { follower.subscriber.run(); });
	follower.subscriber.stop();
	owner.join();
	EXPECT_EQ(follower.subscriber.poll(milliseconds(0)), 0u);
}

TEST_F(LifetimeTest, L7_is_destroyed_at_any_moment_and_leaves_nothing_behind)
{
	append("s");
	const std::ptrdiff_t before = open_descriptors();
	for (int round = 0; round < 300; round++) {
		Follower follower(database);
		follower.subscriber.follow("s", Start::beginning());
		for (int step = 0; step < round % 30; step++)
			follower.subscriber.poll(milliseconds(step % 2));
		if (round % 3 == 0) {
			std::thread owner([&] { follower.subscriber.run(); });
			follower.subscriber.stop();
			owner.join();
		}
	}
	EXPECT_EQ(open_descriptors(), before);
	wait_for("the end of all sessions",
			 [&] { return database.sessions("listener") + database.sessions("reader") == 0; });
}

TEST_F(LifetimeTest, L7_is_destroyed_while_connecting_to_a_server_that_never_answers)
{
	Relay relay(primary().port());
	relay.set(Relay::Mode::hold_everything);
	doorbell::SubscriberOptions options = options_for(database);
	options.connect.dsn = options.listen_dsn = database.tcp_dsn(relay.port());
	Follower follower(options);
	follower.subscriber.follow("s");
	follower.until("two attempts", [&] { return relay.connections() == 2; });
	EXPECT_EQ(follower.subscriber.state(), State::down);
	EXPECT_TRUE(follower.states.empty());
}

TEST_F(LifetimeTest, L7_a_forked_child_that_exits_or_destroys_its_copy_leaves_the_connections_of_its_parent_alone)
{
	auto follower = std::make_unique<Follower>(database);
	follower->subscriber.follow("s", Start::beginning());
	follower->until_live();
	doorbell::ConnectOptions options;
	options.dsn = database.dsn("log");
	auto log = std::make_unique<doorbell::Log>(options);
	log->append("s", "t", "{}");
	follower->until_events(1);

	EXPECT_EQ(in_child([] { return 0; }), 0);
	EXPECT_EQ(in_child([&] {
				  follower.reset();
				  log.reset();
				  return 0;
			  }),
			  0);
	log->append("s", "t", "{}");
	follower->until_events(2);
	EXPECT_EQ(follower->seqs("s"), one_to(2));
	EXPECT_EQ(follower->subscriber.stats().listener_connects, 1u);
	EXPECT_EQ(follower->subscriber.stats().reader_connects, 1u);
	EXPECT_EQ(database.sessions("log"), 1);
}

TEST_F(LifetimeTest, L7_a_forked_child_of_a_connecting_parent_may_destroy_its_copy_too)
{
	auto follower = std::make_unique<Follower>(database);
	follower->subscriber.follow("s", Start::beginning());
	append("s");
	while (follower->events.empty()) {
		ASSERT_EQ(in_child([&] {
					  follower.reset();
					  return 0;
				  }),
				  0);
		follower->subscriber.poll(milliseconds(1));
	}
	EXPECT_EQ(follower->subscriber.stats().reader_connects, 1u);
}

TEST_F(LifetimeTest, L7_a_forked_child_that_uses_its_copy_is_refused)
{
	Follower follower(database);
	follower.until("live", [&] { return follower.subscriber.state() == State::live; });
	doorbell::ConnectOptions options;
	options.dsn = database.dsn("log");
	doorbell::Log log(options);
	log.append("s", "t", "{}");
	const int refusals = in_child([&] {
		int refused = 0;
		try {
			follower.subscriber.poll(milliseconds(0));
		} catch (const doorbell::Error &) {
			refused++;
		}
		try {
			log.append("s", "t", "{}");
		} catch (const doorbell::Error &) {
			refused++;
		}
		follower.subscriber.stop(); // its parent's run() must not end by it
		return refused;
	});
	EXPECT_EQ(refusals, 2);
	follower.subscriber.follow("s", Start::beginning());
	follower.until_events(1);
	EXPECT_EQ(log.append("s", "t", "{}"), 2);
}

} // namespace
} // namespace live
