// What SSE connections get from a Streamer: everything once, in order, through whatever happens.
#include "streamer_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

namespace live {
namespace {

TEST_F(StreamerTest, replays_and_then_goes_on_live)
{
	append("s", "{\"a\": 1}");
	append("s", "\"x\"");
	SseClient &client = follow("s");
	until_messages(client, 2);
	append("s");
	append("other");
	until_messages(client, 3);
	EXPECT_EQ(seqs(client), one_to(3));
	EXPECT_EQ(client.messages[0].data, "{\"a\": 1}");
	EXPECT_EQ(client.messages[1].data, "\"x\"");
	EXPECT_EQ(client.messages[2].type, "t");
	EXPECT_GE(client.retry, 1000);
	EXPECT_LE(client.retry, 3000);
}

TEST_F(StreamerTest, starts_now_unless_told_otherwise)
{
	append("s");
	SseRequest request;
	request.streams = {"s"};
	SseClient &first = connect(request);
	until_live();
	append("s");
	until_messages(first, 1);
	SseClient &second = connect(request); // the stream is being followed already
	streamer->poll(milliseconds(0));
	append("s");
	until_messages(second, 1);
	until_messages(first, 2);
	EXPECT_EQ(seqs(first), (Seqs{2, 3}));
	EXPECT_EQ(seqs(second), Seqs{3});
}

TEST_F(StreamerTest, resumes_behind_a_cursor_with_nothing_twice)
{
	for (int i = 0; i < 5; i++)
		append("s");
	SseClient &first = follow("s");
	until_messages(first, 5);
	SseClient &again = follow("s", Start::after(doorbell::parse_mark(first.messages[2].id)));
	until_messages(again, 2);
	append("s");
	until_messages(again, 3);
	EXPECT_EQ(seqs(again), (Seqs{4, 5, 6}));
	EXPECT_TRUE(again.controls.empty());
}

TEST_F(StreamerTest, S5_each_of_many_streams_resumes_at_its_own_mark)
{
	append("a");
	sql("SELECT doorbell.append_batch('b', array_fill('t'::text, ARRAY[100]), array_fill('{}'::jsonb, ARRAY[100]))");
	SseRequest request;
	request.streams = {"a", "b"};
	request.starts = {Start::beginning(), Start::after({99, 0})};
	SseClient &client = connect(request);
	until_messages(client, 2);
	const std::vector<doorbell::Mark> marks = doorbell::parse_cursor(client.last_id, 2);
	EXPECT_EQ(marks[0].seq, 1);
	EXPECT_EQ(marks[1].seq, 100);
	EXPECT_NE(client.messages[0].data.find("{\"stream\":"), std::string::npos);

	append("a");
	append("b");
	request.starts = {Start::after(marks[0]), Start::after(marks[1])};
	SseClient &again = connect(request);
	until_messages(again, 2);
	EXPECT_EQ(doorbell::parse_cursor(again.last_id, 2)[0].seq, 2);
	EXPECT_EQ(doorbell::parse_cursor(again.last_id, 2)[1].seq, 101);
	EXPECT_TRUE(again.controls.empty());
}

TEST_F(StreamerTest, S3_a_cursor_older_than_low_water_gets_a_gap_and_then_the_rest)
{
	for (int i = 0; i < 5; i++)
		append("s");
	sql("SELECT doorbell.trim('s', 3)");
	SseClient &client = follow("s", Start::after({1, 0}));
	until_messages(client, 2);
	ASSERT_EQ(client.controls.size(), 1u);
	EXPECT_EQ(client.controls[0].type, "doorbell:gap");
	EXPECT_EQ(client.controls[0].data, "{\"stream\":\"s\",\"asked\":1,\"low_water\":3}");
	EXPECT_EQ(client.controls[0].id, ""); // S2: it moves no cursor
	EXPECT_EQ(seqs(client), (Seqs{4, 5}));
}

TEST_F(StreamerTest, S4_a_cursor_beyond_high_water_or_of_another_history_gets_a_reset)
{
	for (int i = 0; i < 3; i++)
		append("s");
	SseClient &beyond = follow("s", Start::after({7, 0}));
	SseClient &other = follow("s", Start::after({2, 1}));
	until_messages(beyond, 3);
	until_messages(other, 3);
	for (const SseClient *client : {&beyond, &other}) {
		ASSERT_EQ(client->controls.size(), 1u);
		EXPECT_EQ(client->controls[0].type, "doorbell:reset");
		EXPECT_EQ(client->controls[0].id, "");
		EXPECT_EQ(seqs(*client), one_to(3));
	}
}

TEST_F(StreamerTest, a_stream_that_is_made_anew_resets_who_follows_it)
{
	append("s");
	append("s");
	SseClient &client = follow("s");
	until_messages(client, 2);
	sql("DELETE FROM doorbell.event; DELETE FROM doorbell.stream");
	append("s", "\"new\"");
	append("s", "\"new\"");
	append("s", "\"new\"");
	until_messages(client, 5);
	ASSERT_EQ(client.controls.size(), 1u);
	EXPECT_EQ(client.controls[0].type, "doorbell:reset");
	EXPECT_EQ(seqs(client), (Seqs{1, 2, 1, 2, 3}));
}

TEST_F(StreamerTest, S7_a_backlog_of_many_batches_arrives_without_another_append)
{
	auto how = options();
	how.subscriber.batch = 100;
	start(how);
	sql("SELECT doorbell.append_batch('s', array_fill('t'::text, ARRAY[1000]), array_fill('{}'::jsonb, ARRAY[1000]))");
	SseClient &client = follow("s");
	until_messages(client, 1000);
	EXPECT_EQ(seqs(client), one_to(1000));
}

TEST_F(StreamerTest, S8_a_thousand_clients_at_one_cursor_share_the_reads)
{
	sql("SELECT doorbell.append_batch('s', array_fill('t'::text, ARRAY[500]), array_fill('{}'::jsonb, ARRAY[500]))");
	SseRequest request;
	request.streams = {"s"};
	SseClient &first = connect(request);
	until_live();
	std::vector<SseClient *> crowd;
	for (int i = 0; i < 1000; i++)
		crowd.push_back(&follow("s", Start::after({300, 0})));
	until("all of them", [&] {
		return std::all_of(crowd.begin(), crowd.end(), [](const SseClient *c) { return c->messages.size() >= 200; });
	});
	for (const SseClient *client : crowd)
		EXPECT_EQ(seqs(*client), one_to(500, 301));
	EXPECT_TRUE(first.messages.empty());
	EXPECT_LE(streamer->stats().catch_ups, 5u);
}

TEST_F(StreamerTest, S6_who_does_not_read_is_bounded_and_cut_while_others_get_everything)
{
	auto how = options();
	how.buffer_bytes = 64 * 1024;
	how.write_deadline = milliseconds(500);
	start(how);
	SseClient &good = follow("s");
	SseClient &bad = clients.emplace_back();
	bad.shrink_receive_buffer();
	unread = &bad;
	SseRequest request;
	request.streams = {"s"};
	connect(request, &bad);
	until_live();
	const std::string payload(10'000, 'x');
	for (int i = 0; i < 100; i++)
		append("s", "\"" + payload + "\"");
	until_messages(good, 100);
	EXPECT_EQ(seqs(good), one_to(100));
	until("the cut", [&] { return streamer->stats().cut == 1; });
	EXPECT_EQ(streamer->connections(), 1u);
	EXPECT_GE(streamer->stats().fell_behind, 1u);
	unread = nullptr;
	until("the end of the bad one", [&] { return !bad.read(); });
	EXPECT_LT(bad.bytes, 64u * 1024 + 200'000); // what its sockets and one buffer hold
}

TEST_F(StreamerTest, S6_who_reads_slowly_falls_behind_and_catches_up_with_nothing_missing)
{
	auto how = options();
	how.buffer_bytes = 64 * 1024;
	start(how);
	SseClient &slow = clients.emplace_back();
	slow.shrink_receive_buffer();
	unread = &slow;
	SseRequest request;
	request.streams = {"s"};
	connect(request, &slow);
	SseClient &fast = follow("s");
	until_live();
	const std::string payload(5'000, 'x');
	for (int i = 0; i < 50; i++)
		append("s", "\"" + payload + "\"");
	until_messages(fast, 50);
	EXPECT_LT(slow.messages.size(), 50u);
	until("the slow one", [&] {
		slow.read(2'000);
		return slow.messages.size() >= 50;
	});
	EXPECT_EQ(seqs(slow), one_to(50));
	EXPECT_GE(streamer->stats().fell_behind, 1u);
}

TEST_F(StreamerTest, S6_one_event_larger_than_the_buffer_is_delivered)
{
	auto how = options();
	how.buffer_bytes = 4096;
	start(how);
	SseClient &client = follow("s");
	append("s", "\"" + std::string(3'000'000, 'y') + "\"");
	append("s");
	until_messages(client, 2);
	EXPECT_EQ(client.messages[0].data.size(), 3'000'002u);
	EXPECT_EQ(seqs(client), one_to(2));
}

TEST_F(StreamerTest, S2_heartbeats_go_out_and_move_no_cursor)
{
	auto how = options();
	how.heartbeat = milliseconds(20);
	start(how);
	append("s");
	SseClient &client = follow("s");
	until_messages(client, 1);
	const std::string id = client.last_id;
	const std::size_t before = client.comments;
	until("three heartbeats", [&] { return client.comments >= before + 3; });
	EXPECT_EQ(client.last_id, id);
}

TEST_F(StreamerTest, the_idle_timeout_counts_events_not_heartbeats)
{
	auto how = options();
	how.heartbeat = milliseconds(20);
	how.idle_timeout = milliseconds(300);
	start(how);
	SseClient &client = follow("s");
	until("the end", [&] { return !client.read(); });
	EXPECT_GE(client.comments, 2u);
	EXPECT_EQ(streamer->stats().idle, 1u);
}

TEST_F(StreamerTest, a_connection_ends_when_it_expires)
{
	SseRequest request;
	request.streams = {"s"};
	request.expires = doorbell::Clock::now() + milliseconds(100);
	SseClient &client = connect(request);
	until("the end", [&] { return !client.read(); });
	EXPECT_EQ(streamer->stats().expired, 1u);
}

TEST_F(StreamerTest, shutdown_tells_everybody_and_closes_and_twice_is_as_once)
{
	append("s");
	SseClient &client = follow("s");
	until_messages(client, 1);
	SseClient &bad = clients.emplace_back();
	bad.shrink_receive_buffer();
	streamer->shutdown();
	streamer->shutdown();
	until("the end", [&] { return !client.read(); });
	ASSERT_EQ(client.controls.size(), 1u);
	EXPECT_EQ(client.controls[0].type, "doorbell:shutdown");
	EXPECT_EQ(client.controls[0].id, client.messages[0].id);
	until("all", [&] { return streamer->is_shut_down(); });

	SseRequest request;
	request.streams = {"s"};
	SseClient &late = clients.emplace_back();
	connect(request, &late);
	EXPECT_FALSE(late.read());
	streamer->run(); // returns at once
}

TEST_F(StreamerTest, the_form_is_as_asked)
{
	append("s", "\"<b>\\n\\u00e9\\t\\\"</b>\"");
	SseRequest request;
	request.streams = {"s"};
	request.starts = {Start::beginning()};
	request.raw = true;
	request.named = false;
	SseClient &raw = connect(request);
	request.raw = false;
	request.named = true;
	request.envelope = true;
	SseClient &envelope = connect(request);
	until_messages(raw, 1);
	until_messages(envelope, 1);
	EXPECT_EQ(raw.messages[0].type, "message");
	EXPECT_EQ(raw.messages[0].data, "<b>\n\u00e9\t\"</b>");
	EXPECT_EQ(envelope.messages[0].type, "t");
	EXPECT_EQ(envelope.messages[0].data.find("{\"stream\":\"s\",\"seq\":1,"), 0u);
}

TEST_F(StreamerTest, a_prefix_includes_streams_that_are_yet_to_be_made)
{
	append("p:1");
	append("q:1");
	SseRequest request;
	request.prefixes = {"p:"};
	SseClient &now = connect(request);
	request.all_start = doorbell::AllStart::beginning();
	SseClient &all = connect(request);
	until_messages(all, 1);
	until("now has begun", [&] {
		append("p:0");
		return !now.messages.empty();
	});
	append("p:1");
	append("p:2");
	append("q:2");
	append("p:2");
	const auto news_of = [](const SseClient &client) {
		std::vector<std::string> news;
		for (const SseMessage &message : client.messages)
			if (message.data.find("\"p:0\"") == std::string::npos)
				news.push_back(message.data.substr(0, 24));
		std::sort(news.begin(), news.end());
		return news;
	};
	const std::vector<std::string> expected = {"{\"stream\":\"p:1\",\"seq\":2,", "{\"stream\":\"p:2\",\"seq\":1,",
											   "{\"stream\":\"p:2\",\"seq\":2,"};
	until("the news", [&] { return news_of(all).size() >= 4 && news_of(now).size() >= 3; });
	EXPECT_EQ(news_of(now), expected);
	EXPECT_EQ(news_of(all)[0], "{\"stream\":\"p:1\",\"seq\":1,");
	EXPECT_TRUE(doorbell::is_all_cursor(now.last_id)) << now.last_id;
}

TEST_F(StreamerTest, an_idle_streamer_sleeps)
{
	append("s");
	SseClient &client = follow("s");
	until_messages(client, 1);
	until_live();
	streamer->poll(milliseconds(0));
	int looks = 0; // what is still on its way may wake it a few times
	const auto quiet_for = milliseconds(50);
	while (streamer->deadline() < doorbell::Clock::now() + quiet_for && looks < 1000) {
		streamer->poll(milliseconds(1));
		looks++;
	}
	EXPECT_LT(looks, 1000) << "it is always due";
}

TEST_F(StreamerTest, bad_requests_are_refused_and_the_socket_stays_the_callers)
{
	start(options());
	SseClient &client = clients.emplace_back();
	const int fd = client.take_server_end();
	SseRequest request;
	EXPECT_THROW(streamer->add(fd, request), doorbell::Error);
	request.streams = {std::string(513, 'x')};
	EXPECT_THROW(streamer->add(fd, request), doorbell::Error);
	for (const char *key : {"a\nb", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
		request.streams = {key};
		EXPECT_THROW(streamer->add(fd, request), doorbell::Error);
	}
	request.streams = {"a", "b", "a"};
	EXPECT_THROW(streamer->add(fd, request), doorbell::Error);
	request.streams = {"a", "b"};
	request.starts = {Start::now()};
	EXPECT_THROW(streamer->add(fd, request), doorbell::Error);
	request = {};
	request.prefixes = {"\x80"};
	EXPECT_THROW(streamer->add(fd, request), doorbell::Error);
	EXPECT_GE(::fcntl(fd, F_GETFD), 0);
	::close(fd);
}

TEST_F(StreamerTest, C3_clients_that_come_and_go_get_everything_once_in_order_through_faults)
{
	auto how = options();
	how.buffer_bytes = 16 * 1024;
	how.subscriber.batch = 50;
	how.subscriber.sweep_interval = milliseconds(500);
	start(how);
	std::mt19937 random(7);
	constexpr std::int64_t events = 3000;
	struct Reader {
		std::unique_ptr<SseClient> client;
		std::string cursor;
		Seqs got;
	};
	std::vector<Reader> readers(12);
	std::int64_t appended = 0;
	int steps = 0;
	const auto deadline = doorbell::Clock::now() + 3 * patience;
	const auto done = [&] {
		return std::all_of(readers.begin(), readers.end(),
						   [&](const Reader &r) { return static_cast<std::int64_t>(r.got.size()) == events; });
	};
	while (!done()) {
		ASSERT_LT(doorbell::Clock::now(), deadline);
		if (appended < events) {
			const std::int64_t count = std::min(events - appended, static_cast<std::int64_t>(1 + random() % 40));
			sql("SELECT doorbell.append_batch('s', array_fill('t'::text, ARRAY[" + std::to_string(count) +
				"]), array_fill('\"" + std::string(random() % 300, 'z') + "\"'::jsonb, ARRAY[" + std::to_string(count) +
				"]))");
			appended += count;
		}
		if (++steps % 50 == 0)
			database.kill(steps % 100 == 0 ? "listener" : "reader");
		for (Reader &reader : readers) {
			if (reader.client == nullptr) {
				reader.client = std::make_unique<SseClient>();
				SseRequest request;
				request.streams = {"s"};
				request.starts = {reader.cursor.empty() ? Start::beginning()
														: Start::after(doorbell::parse_mark(reader.cursor))};
				connect(request, reader.client.get());
			}
			if (random() % 3 == 0)
				reader.client->read(random() % 20'000);
			for (const SseMessage &message : reader.client->messages) {
				reader.got.push_back(doorbell::parse_mark(message.id).seq);
				reader.cursor = message.id;
			}
			reader.client->messages.clear();
			EXPECT_TRUE(reader.client->controls.empty());
			if (random() % 40 == 0)
				reader.client.reset();
		}
		streamer->poll(milliseconds(1));
	}
	for (const Reader &reader : readers)
		EXPECT_EQ(reader.got, one_to(events));
}

} // namespace
} // namespace live
