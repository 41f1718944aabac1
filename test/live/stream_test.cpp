// The stream handle, and the streamer of the process.
#include "follower.hpp"
#include "sse_client.hpp"

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace live {
namespace {

struct StreamTest : LiveTest {
	StreamTest()
	{
		doorbell::set_process_streamer_factory([this] {
			made++;
			doorbell::StreamerOptions options;
			options.subscriber = options_for(database);
			return std::make_unique<doorbell::Streamer>(options);
		});
	}
	~StreamTest() override
	{
		doorbell::reset_process_streamer();
		doorbell::set_process_streamer_factory({});
	}

	std::atomic<int> made{0};
};

TEST_F(StreamTest, a_handle_appends_reads_and_subscribes)
{
	doorbell::ConnectOptions connect;
	connect.dsn = database.dsn();
	doorbell::Log log(connect);
	const auto streamer = doorbell::process_streamer();
	doorbell::Stream stream("s", log, *streamer);
	EXPECT_EQ(stream.append("t", "1"), 1);
	EXPECT_EQ(stream.high_water(), 1);
	EXPECT_EQ(stream.replay().size(), 1u);
	SseClient client;
	stream.subscribe(client.take_server_end(), doorbell::Start::beginning());
	poll_until(*streamer, "the event", [&] {
		client.read();
		return client.messages.size() == 1;
	});
	EXPECT_EQ(client.messages[0].data, "1");
}

TEST_F(StreamTest, concurrent_first_callers_get_the_same_streamer)
{
	std::vector<std::shared_ptr<doorbell::Streamer>> got(16);
	std::vector<std::thread> threads;
	for (auto &one : got)
		threads.emplace_back([&one] { one = doorbell::process_streamer(); });
	for (std::thread &thread : threads)
		thread.join();
	for (const auto &one : got)
		EXPECT_EQ(one, got[0]);
	EXPECT_EQ(made, 1);
}

TEST_F(StreamTest, reset_shuts_it_down_and_the_next_call_makes_another)
{
	const auto first = doorbell::process_streamer();
	SseClient client;
	doorbell::SseRequest request;
	request.streams = {"s"};
	first->add(client.take_server_end(), request);
	first->poll(doorbell::milliseconds(0));
	doorbell::reset_process_streamer();
	doorbell::reset_process_streamer();
	first->run(); // until it has ended
	EXPECT_TRUE(first->is_shut_down());
	while (client.read())
		;
	EXPECT_EQ(client.controls.size(), 1u);
	EXPECT_NE(doorbell::process_streamer(), first);
	EXPECT_EQ(made, 2);
}

TEST_F(StreamTest, a_forked_child_makes_its_own)
{
	const auto ours = doorbell::process_streamer();
	const pid_t child = ::fork();
	if (child == 0) {
		const auto theirs = doorbell::process_streamer();
		::_exit(theirs != ours && made == 2 ? 0 : 1);
	}
	int status = 0;
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	SseClient client;
	doorbell::SseRequest request;
	request.streams = {"s"};
	ours->add(client.take_server_end(), request);
	append("s");
	poll_until(*ours, "the greeting", [&] {
		client.read();
		return client.retry >= 0;
	});
}

} // namespace
} // namespace live
