// What SSE connections of prefixes and of all streams get: everything once, from an exact cursor, with shared reads.
#include "streamer_fixture.hpp"

#include <doorbell/cursor.hpp>

#include <map>
#include <random>
#include <set>
#include <sstream>

namespace live {
namespace {

using doorbell::AllStart;
using Names = std::vector<std::string>;

struct StreamerAllTest : StreamerTest {
	static SseRequest request_for(Names prefixes, AllStart start)
	{
		SseRequest request;
		request.prefixes = std::move(prefixes);
		request.all_start = std::move(start);
		return request;
	}

	SseClient &all(AllStart start, SseClient *made = nullptr) { return connect(request_for({""}, start), made); }

	// A client of all streams that is known to have begun, which nothing before was given to.
	SseClient &all_from_now()
	{
		SseClient &client = all(AllStart::now());
		until("the listener", [&] { return streamer->state() == doorbell::State::live; });
		append("begun");
		while (client.messages.empty()) { // what is appended before the high water is known does not come
			streamer->poll(milliseconds(20));
			client.read();
			append("begun");
		}
		until_quiet();
		client.messages.clear();
		return client;
	}

	// Until what was rung before has been read.
	void until_quiet()
	{
		const auto quiet_for = milliseconds(100);
		auto last = doorbell::Clock::now();
		while (doorbell::Clock::now() < last + quiet_for) {
			if (streamer->poll(milliseconds(10)) > 0)
				last = doorbell::Clock::now();
			for (SseClient &client : clients)
				client.read();
		}
	}

	static std::string name_of(const SseMessage &message) // as stream:seq
	{
		const std::size_t begin = std::string("{\"stream\":\"").size();
		const std::size_t end = message.data.find("\",\"seq\":");
		const std::size_t seq = end + std::string("\",\"seq\":").size();
		return message.data.substr(begin, end - begin) + ':' +
			   message.data.substr(seq, message.data.find(',', seq) - seq);
	}

	static Names names(const SseClient &client)
	{
		Names all;
		for (const SseMessage &message : client.messages)
			all.push_back(name_of(message));
		return all;
	}

	void backlog(const std::string &stream, int count, std::size_t bytes = 2)
	{
		sql("SELECT doorbell.append_batch(" + literal(stream) + ", array_fill('t'::text, ARRAY[" +
			std::to_string(count) + "]), array_fill('\"" + std::string(bytes, 'x') + "\"'::jsonb, ARRAY[" +
			std::to_string(count) + "]))");
	}
};

TEST_F(StreamerAllTest, replays_everything_and_then_goes_on_live_with_a_cursor_for_each_event)
{
	append("b");
	append("a");
	SseClient &client = all(AllStart::beginning());
	until_messages(client, 2);
	append("c");
	until_messages(client, 3);
	append("a");
	until_messages(client, 4);
	EXPECT_EQ(names(client), (Names{"a:1", "b:1", "c:1", "a:2"}));
	for (const SseMessage &message : client.messages)
		EXPECT_TRUE(doorbell::is_all_cursor(message.id)) << message.id;
}

TEST_F(StreamerAllTest, S2_each_cursor_resumes_behind_its_event_with_nothing_twice)
{
	for (const char *stream : {"a", "b", "a", "c", "b"})
		append(stream);
	SseClient &first = all(AllStart::beginning());
	until_messages(first, 5);
	append("d");
	until_messages(first, 6);
	std::vector<SseClient *> again;
	for (const SseMessage &message : first.messages)
		again.push_back(&all(AllStart::after(message.id)));
	append("e");
	for (std::size_t i = 0; i < again.size(); i++) // what commits at about the same time comes in any order
		until_messages(*again[i], 6 - i);
	append("a");
	for (std::size_t i = 0; i < again.size(); i++) {
		until_messages(*again[i], 7 - i);
		Names expected = names(first);
		expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(i) + 1);
		Names got = names(*again[i]);
		got.resize(expected.size());
		EXPECT_EQ(got, expected) << i;
		EXPECT_TRUE(again[i]->controls.empty());
	}
}

TEST_F(StreamerAllTest, prefixes_and_names_are_one_subscription_with_one_cursor)
{
	SseRequest request = request_for({"p:x", "p:y"}, AllStart::beginning());
	request.streams = {"p:name", "p:x1"};
	for (const char *stream : {"p:x1", "p:name", "p:z", "q", "p:y"})
		append(stream);
	SseClient &client = connect(request);
	until_messages(client, 3);
	for (const char *stream : {"p:z", "p:name2", "p:name", "q", "p:yy"})
		append(stream);
	until_messages(client, 5);
	EXPECT_EQ(names(client), (Names{"p:name:1", "p:x1:1", "p:y:1", "p:name:2", "p:yy:1"}));

	request.all_start = AllStart::after(client.messages[1].id);
	SseClient &again = connect(request);
	until_messages(again, 3);
	EXPECT_EQ(names(again), (Names{"p:y:1", "p:name:2", "p:yy:1"}));
}

TEST_F(StreamerAllTest, O1_what_was_appended_before_and_committed_later_is_not_lost)
{
	SseClient &client = all_from_now();
	Session slow(database.dsn());
	slow("BEGIN");
	slow("SELECT doorbell.append('a', 't', '1')");
	slow("SELECT doorbell.append('b', 't', '1')");
	append("a");
	append("c");
	until_messages(client, 1);
	EXPECT_EQ(names(client), Names{"c:1"}) << "a has to wait";
	SseClient &between = all(AllStart::after(client.last_id));
	slow("COMMIT");
	until_messages(client, 4);
	until_messages(between, 3);
	EXPECT_EQ(names(between), (Names{"a:1", "a:2", "b:1"}));
	EXPECT_EQ(names(client).size(), 4u);
}

TEST_F(StreamerAllTest, what_rang_and_could_not_be_read_yet_is_asked_for_again_without_another_ring)
{
	SseClient &client = all_from_now();
	Session silent(database.dsn());
	silent("BEGIN");
	silent("SET LOCAL doorbell.ring_mode = 'off'");
	silent("SELECT doorbell.append('a', 't', '1')");
	append("a"); // rings, and waits behind the other
	append("b");
	until_messages(client, 1);
	silent("COMMIT");
	until_messages(client, 3);
	EXPECT_EQ(names(client), (Names{"b:1", "a:1", "a:2"}));
}

TEST_F(StreamerAllTest, C4_without_a_ring_the_sweep_finds_it)
{
	auto how = options();
	how.subscriber.sweep_interval = milliseconds(100);
	start(how);
	SseClient &client = all_from_now();
	sql("SET doorbell.ring_mode = 'off'");
	append("silent");
	until_messages(client, 1);
	EXPECT_EQ(names(client), Names{"silent:1"});
}

TEST_F(StreamerAllTest, S3_a_cursor_from_before_a_trim_gets_a_gap_without_a_cursor)
{
	append("other");
	for (int i = 0; i < 5; i++)
		append("s");
	SseClient &first = all(AllStart::beginning());
	until_messages(first, 6);
	sql("SELECT doorbell.trim('s', 3)");
	SseClient &client = all(AllStart::after(first.messages[1].id)); // has s:1
	until_messages(client, 2);
	ASSERT_EQ(client.controls.size(), 1u);
	EXPECT_EQ(client.controls[0].type, "doorbell:gap");
	EXPECT_EQ(client.controls[0].data, "{\"stream\":\"s\",\"low_water\":3}");
	EXPECT_EQ(client.controls[0].id, "");
	EXPECT_EQ(names(client), (Names{"s:4", "s:5"}));
	EXPECT_TRUE(first.controls.empty()) << "it had them all";
	EXPECT_EQ(streamer->stats().gaps, 1u);
}

TEST_F(StreamerAllTest, S4_a_cursor_of_another_history_gets_a_reset_and_then_everything)
{
	append("a");
	append("b");
	SseClient &first = all(AllStart::beginning());
	until_messages(first, 2);
	std::string foreign = first.last_id;
	foreign[5] = foreign[5] == '1' ? '2' : '1'; // in the history
	SseClient &client = all(AllStart::after(foreign));
	SseClient &nonsense = all(AllStart::after("all1.0.0...")); // has the form, but is none
	for (SseClient *reset : {&client, &nonsense}) {
		until_messages(*reset, 2);
		ASSERT_EQ(reset->controls.size(), 1u);
		EXPECT_EQ(reset->controls[0].type, "doorbell:reset");
		EXPECT_EQ(reset->controls[0].id, "");
		EXPECT_EQ(names(*reset), names(first));
	}
	EXPECT_EQ(client.controls[0].data, "{\"asked\":\"" + foreign + "\"}");
	append("c");
	for (SseClient *each : {&first, &client, &nonsense})
		until_messages(*each, 3);
	EXPECT_TRUE(first.controls.empty());
	EXPECT_EQ(streamer->stats().resets, 2u);
}

TEST_F(StreamerAllTest, a_history_that_is_made_anew_under_them_resets_everybody_once)
{
	SseClient &first = all_from_now();
	SseClient &second = connect(request_for({"s"}, AllStart::beginning()));
	append("s");
	append("s");
	until_messages(first, 2);
	until_messages(second, 2);
	sql("DELETE FROM doorbell.event; DELETE FROM doorbell.stream");
	append("s", "\"new\"");
	until_messages(first, 3);
	until_messages(second, 3);
	append("s", "\"new\"");
	until_messages(first, 4);
	until_messages(second, 4);
	for (SseClient *client : {&first, &second}) {
		ASSERT_EQ(client->controls.size(), 1u);
		EXPECT_EQ(client->controls[0].type, "doorbell:reset");
		EXPECT_EQ(names(*client), (Names{"s:1", "s:2", "s:1", "s:2"}));
	}
}

TEST_F(StreamerAllTest, S7_a_backlog_of_many_batches_arrives_without_another_append)
{
	auto how = options();
	how.subscriber.batch = 100;
	start(how);
	for (const char *stream : {"a", "b", "c"})
		backlog(stream, 700);
	SseClient &client = all(AllStart::beginning());
	until_messages(client, 2100);
	const Names got = names(client);
	EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), 2100u);
	EXPECT_EQ(got.size(), 2100u);
}

TEST_F(StreamerAllTest, S8_a_thousand_clients_at_one_cursor_share_the_reads)
{
	backlog("s", 300);
	SseClient &first = all(AllStart::beginning());
	until_messages(first, 300);
	backlog("t", 200);
	until_messages(first, 500);
	const std::string cursor = first.messages[299].id;
	const std::uint64_t before = streamer->stats().catch_ups;
	std::vector<SseClient *> crowd;
	for (int i = 0; i < 1000; i++)
		crowd.push_back(&all(AllStart::after(cursor)));
	until("all of them", [&] {
		return std::all_of(crowd.begin(), crowd.end(), [](const SseClient *c) { return c->messages.size() >= 200; });
	});
	for (const SseClient *client : crowd) {
		EXPECT_EQ(client->messages.size(), 200u);
		EXPECT_EQ(client->last_id, first.last_id);
	}
	EXPECT_LE(streamer->stats().catch_ups - before, 5u);
}

TEST_F(StreamerAllTest, five_hundred_clients_that_began_everywhere_come_to_share_one_read_for_each_wake_up)
{
	SseClient &first = all_from_now();
	for (int i = 0; i < 50; i++)
		append("s" + std::to_string(i % 7));
	until_messages(first, 50);
	for (int i = 0; i < 500; i++)
		all(i % 3 == 0 ? AllStart::now() : AllStart::after(first.messages[static_cast<std::size_t>(i % 50)].id));
	until_quiet();
	append("joins");
	until("all", [&] {
		return std::all_of(clients.begin(), clients.end(), [&](const SseClient &client) {
			return !client.messages.empty() && name_of(client.messages.back()) == "joins:1";
		});
	});
	until_quiet();
	const auto before = streamer->stats();
	constexpr std::size_t wakes = 40;
	for (std::size_t i = 1; i <= wakes; i++) {
		append("one");
		until("everybody has it", [&] {
			return std::all_of(clients.begin(), clients.end(), [&](const SseClient &client) {
				return name_of(client.messages.back()) == "one:" + std::to_string(i);
			});
		});
	}
	EXPECT_EQ(streamer->stats().frames - before.frames, wakes * 501);
	EXPECT_EQ(streamer->stats().catch_ups, before.catch_ups) << "they have become one";
	EXPECT_LE(streamer->stats().reads - before.reads, wakes + wakes / 4);
}

TEST_F(StreamerAllTest, each_live_event_is_reported_once_however_many_follow_it)
{
	auto how = options();
	std::map<std::string, int> reported;
	how.on_event = [&](const doorbell::Event &event) { reported[event.stream + ':' + std::to_string(event.seq)]++; };
	start(how);
	append("p:old");
	SseClient &first = all_from_now();
	SseClient &prefix = connect(request_for({"p:"}, AllStart::beginning()));
	SseClient &named = follow("p:1");
	until_messages(prefix, 1);
	until_live();
	until_quiet();
	const std::uint64_t before = streamer->stats().events;
	reported.clear();
	for (int i = 0; i < 5; i++) {
		append("p:1");
		append("p:2");
		append("q");
	}
	until_messages(first, 15);
	until_messages(prefix, 11);
	until_messages(named, 5);
	EXPECT_EQ(reported.size(), 15u);
	for (const auto &[event, times] : reported)
		EXPECT_EQ(times, 1) << event;
	EXPECT_EQ(streamer->stats().events - before, 15u);
}

TEST_F(StreamerAllTest, S6_a_slow_reader_among_fast_ones_misses_nothing_and_delays_nobody)
{
	auto how = options();
	how.buffer_bytes = 64 * 1024;
	start(how);
	SseClient &fast = all_from_now();
	SseClient &slow = clients.emplace_back();
	slow.shrink_receive_buffer();
	unread = &slow;
	all(AllStart::after(fast.last_id), &slow);
	for (int i = 0; i < 60; i++)
		append("s" + std::to_string(i % 4), "\"" + std::string(5'000, 'x') + "\"");
	until_messages(fast, 60);
	EXPECT_LT(slow.messages.size(), 60u);
	until("the slow one", [&] {
		slow.read(2'000);
		return slow.messages.size() >= 60;
	});
	Names expected = names(fast);
	Names got = names(slow);
	std::sort(expected.begin(), expected.end());
	std::sort(got.begin(), got.end());
	EXPECT_EQ(got, expected);
	EXPECT_GE(streamer->stats().fell_behind, 1u);
}

TEST_F(StreamerAllTest, S6_one_event_larger_than_the_buffer_is_delivered)
{
	auto how = options();
	how.buffer_bytes = 4096;
	start(how);
	SseClient &client = all(AllStart::beginning());
	append("s", "\"" + std::string(3'000'000, 'y') + "\"");
	append("t");
	until_messages(client, 2);
	EXPECT_EQ(names(client), (Names{"s:1", "t:1"}));
}

TEST_F(StreamerAllTest, an_idle_streamer_sleeps)
{
	all_from_now();
	int looks = 0;
	while (streamer->deadline() < doorbell::Clock::now() + milliseconds(50) && looks < 1000) {
		streamer->poll(milliseconds(1));
		looks++;
	}
	EXPECT_LT(looks, 1000) << "it is always due";
}

TEST_F(StreamerAllTest, a_text_that_cannot_be_a_cursor_is_refused)
{
	start(options());
	EXPECT_THROW(AllStart::after("7"), doorbell::Error);
	SseRequest request = request_for({""}, AllStart::now());
	EXPECT_NO_THROW(request.check());
	request.streams = {"s"};
	request.starts = {Start::now()};
	EXPECT_THROW(request.check(), doorbell::Error) << "there is one start for all";
}

// Writers whose transactions overlap, commit in another order than they append, and roll back.
class Writers {
public:
	Writers(const Database &database, unsigned seed) : random_(seed)
	{
		for (int i = 0; i < 5; i++)
			sessions_.push_back({std::make_unique<Session>(database.dsn()), false});
	}

	void work()
	{
		auto &[session, open] = sessions_[random_() % sessions_.size()];
		switch (open ? random_() % 6 : 6) {
		case 0:
			(*session)("ROLLBACK");
			open = false;
			break;
		case 1:
		case 2:
			(*session)("COMMIT");
			open = false;
			break;
		default:
			if (!open && random_() % 2 == 0) {
				(*session)("BEGIN");
				open = true;
			}
			append(*session);
		}
	}

	void finish()
	{
		for (auto &[session, open] : sessions_)
			if (std::exchange(open, false))
				(*session)("COMMIT");
	}

private:
	void append(Session &session)
	{
		session("SELECT doorbell.append('s" + std::to_string(random_() % 8) + "', 't', '\"" +
				std::string(random_() % 300, 'z') + "\"')");
	}

	std::mt19937 random_;
	std::vector<std::pair<std::unique_ptr<Session>, bool>> sessions_; // and whether a transaction is open
};

TEST_F(StreamerAllTest, C3_clients_that_come_and_go_get_everything_once_in_order_through_faults)
{
	auto how = options();
	how.buffer_bytes = 8 * 1024;
	how.subscriber.batch = 50;
	how.subscriber.sweep_interval = milliseconds(300);
	start(how);
	std::mt19937 random(7);
	Writers writers(database, 11);
	struct Reader {
		std::unique_ptr<SseClient> client;
		std::string cursor;
		std::vector<std::string> prefixes;
		std::map<std::string, Seqs> got;
		std::size_t count = 0;
	};
	std::vector<Reader> readers(12);
	for (std::size_t i = 0; i < readers.size(); i++)
		readers[i].prefixes = i % 3 == 2 ? Names{"s1", "s5"} : Names{""};
	const auto take = [](Reader &reader) {
		for (const SseMessage &message : reader.client->messages) {
			const std::string name = name_of(message);
			const std::size_t colon = name.rfind(':');
			reader.got[name.substr(0, colon)].push_back(std::stoll(name.substr(colon + 1)));
			reader.count++;
			reader.cursor = message.id;
		}
		reader.client->messages.clear();
	};
	const auto deadline = doorbell::Clock::now() + 3 * patience;
	int steps = 0;
	std::size_t total = 0;
	std::size_t some = 0;
	const auto done = [&] {
		return total > 0 && std::all_of(readers.begin(), readers.end(), [&](const Reader &r) {
				   return r.count >= (r.prefixes.size() == 1 ? total : some);
			   });
	};
	while (!done()) {
		ASSERT_LT(doorbell::Clock::now(), deadline);
		steps++;
		if (steps < 2'500) {
			writers.work();
		} else if (steps == 2'500) {
			writers.finish();
			total = std::stoul(sql("SELECT count(*) FROM doorbell.event"));
			some = std::stoul(sql("SELECT count(*) FROM doorbell.event WHERE stream IN ('s1', 's5')"));
		}
		if (steps % 200 == 0)
			database.kill(steps % 400 == 0 ? "listener" : "reader");
		for (Reader &reader : readers) {
			if (reader.client == nullptr) {
				reader.client = std::make_unique<SseClient>();
				connect(request_for(reader.prefixes,
									reader.cursor.empty() ? AllStart::beginning() : AllStart::after(reader.cursor)),
						reader.client.get());
			}
			if (random() % 3 == 0)
				reader.client->read(random() % 20'000);
			take(reader);
			EXPECT_TRUE(reader.client->controls.empty());
			if (random() % 40 == 0)
				reader.client.reset();
		}
		streamer->poll(milliseconds(1));
	}
	for (int i = 0; i < 8; i++) {
		const std::string stream = "s" + std::to_string(i);
		Seqs expected;
		std::istringstream seqs(
			sql("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM doorbell.event WHERE stream = '" + stream + "'"));
		for (std::int64_t seq = 0; seqs >> seq;)
			expected.push_back(seq);
		for (Reader &reader : readers) {
			const bool follows = reader.prefixes.size() == 1 || i == 1 || i == 5;
			EXPECT_EQ(reader.got[stream], follows ? expected : Seqs{}) << stream;
		}
	}
}

} // namespace
} // namespace live
