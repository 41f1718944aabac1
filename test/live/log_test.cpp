// Log: appending and reading, synchronously.
#include "follower.hpp"
#include "relay.hpp"

#include <csignal>
#include <functional>
#include <map>

namespace live {
namespace {

using doorbell::Error;
using doorbell::Event;
using doorbell::Log;
using doorbell::milliseconds;
using Seqs = std::vector<std::int64_t>;

struct LogTest : LiveTest {
	static doorbell::ConnectOptions connect(const std::string &dsn)
	{
		doorbell::ConnectOptions options;
		options.dsn = dsn;
		return options;
	}

	// The error of a call that must fail, with the SQLSTATE that it must have.
	static std::string refusal(const std::string &sqlstate, const std::function<void()> &call)
	{
		try {
			call();
		} catch (const Error &error) {
			EXPECT_EQ(error.sqlstate(), sqlstate) << error.what();
			EXPECT_EQ(error.is_conflict(), sqlstate == "DB001");
			EXPECT_EQ(error.is_overtaken(), sqlstate == "DB003");
			return error.what();
		}
		ADD_FAILURE() << "accepted";
		return "";
	}

	static bool names(const std::string &message, const std::string &value)
	{
		return message.find(value) != std::string::npos;
	}

	static Seqs seqs(const std::vector<Event> &events)
	{
		Seqs all;
		for (const Event &event : events)
			all.push_back(event.seq);
		return all;
	}

	Log log{connect(database.dsn("log"))};
};

TEST_F(LogTest, appends_and_gives_back_what_was_appended)
{
	EXPECT_EQ(log.append("s", "made", "{\"b\":1,\"a\":[\"Grüße 🔔\",null]}"), 1);
	EXPECT_EQ(log.append("s", "message", "\"text\\r\\n\""), 2);
	const std::vector<Event> events = log.replay("s");
	ASSERT_EQ(events.size(), 2u);
	EXPECT_EQ(events[0].stream, "s");
	EXPECT_EQ(events[0].seq, 1);
	EXPECT_EQ(events[0].type, "made");
	EXPECT_EQ(events[0].payload, "{\"a\": [\"Grüße 🔔\", null], \"b\": 1}") << "as PostgreSQL writes a jsonb";
	EXPECT_EQ(events[1].type, "message");
	EXPECT_EQ(events[1].payload, "\"text\\r\\n\"");
	EXPECT_GE(events[1].appended_at, events[0].appended_at);
	EXPECT_EQ(sql("SELECT appended_at = to_timestamp(" + std::to_string(events[0].appended_at) +
				  " / 1000000.0) FROM doorbell.replay('s', 0, 1)"),
			  "t");
}

TEST_F(LogTest, O7_an_append_at_another_seq_than_expected_is_a_conflict_that_names_both)
{
	EXPECT_EQ(log.append("s", "t", "{}", 0), 1);
	EXPECT_EQ(log.append("s", "t", "{}", 1), 2);
	const std::string message = refusal("DB001", [&] { log.append("s", "t", "{}", 1); });
	EXPECT_TRUE(names(message, "\"s\"") || names(message, "stream s")) << message;
	EXPECT_TRUE(names(message, "1") && names(message, "2")) << message;
	refusal("DB001", [&] { log.append_batch("s", {{"t", "{}"}}, 0); });
	EXPECT_EQ(log.high_water("s"), 2) << "nothing was stored";
	EXPECT_EQ(log.append_batch("s", {{"t", "{}"}, {"t", "{}"}}, 2), 4);
}

TEST_F(LogTest, O8_the_same_event_id_twice_stores_one_event_and_returns_the_first_seq)
{
	constexpr const char *id = "6f0b6a7e-6f5d-4a39-8f4f-0d7f4f3d3c11";
	EXPECT_EQ(log.append("s", "t", "1", {}, id), 1);
	EXPECT_EQ(log.append("s", "t", "2"), 2);
	EXPECT_EQ(log.append("s", "t", "3", {}, id), 1);
	EXPECT_EQ(log.append("other", "t", "3", {}, id), 1) << "an id counts within its stream";
	EXPECT_EQ(seqs(log.replay("s")), one_to(2));
	EXPECT_TRUE(names(refusal("22P02", [&] { log.append("s", "t", "1", {}, "no uuid"); }), "no uuid"));
}

TEST_F(LogTest, appends_a_batch_whole_or_not_at_all)
{
	std::vector<doorbell::NewEvent> batch;
	for (int i = 1; i <= 1'000; i++)
		batch.push_back({"type, \"with\" {signs}", std::to_string(i)});
	EXPECT_EQ(log.append_batch("s", batch), 1'000);
	const std::vector<Event> events = log.replay("s", 0, 2'000);
	ASSERT_EQ(events.size(), 1'000u);
	EXPECT_EQ(seqs(events), one_to(1'000));
	EXPECT_EQ(events[999].payload, "1000");
	EXPECT_EQ(events[999].type, "type, \"with\" {signs}");

	batch.back().payload = "{nonsense";
	EXPECT_TRUE(names(refusal("22P02", [&] { log.append_batch("s", batch); }), "\"nonsense\""));
	EXPECT_EQ(log.high_water("s"), 1'000);
}

TEST_F(LogTest, replays_behind_a_seq_and_no_more_than_asked_for)
{
	sql("SELECT doorbell.append('s', 't', to_jsonb(i)) FROM generate_series(1, 10) i");
	EXPECT_EQ(seqs(log.replay("s", 3, 4)), one_to(7, 4));
	EXPECT_EQ(seqs(log.replay("s", 8)), one_to(10, 9));
	EXPECT_TRUE(log.replay("s", 10).empty());
	EXPECT_TRUE(log.replay("unknown").empty());
}

TEST_F(LogTest, replays_many_streams_in_one_call_and_shares_it_fairly)
{
	sql("SELECT doorbell.append('long', 't', '{}') FROM generate_series(1, 100)");
	sql("SELECT doorbell.append('it''s: \"short\"', 't', '{}') FROM generate_series(1, 3)");
	std::map<std::string, Seqs> by_stream;
	for (const Event &event : log.replay_many({{"long", 10}, {"it's: \"short\"", 1}, {"unknown", 0}}, 10))
		by_stream[event.stream].push_back(event.seq);
	EXPECT_EQ(by_stream.size(), 2u);
	EXPECT_EQ(by_stream["it's: \"short\""], one_to(3, 2)) << "not starved by the long one";
	EXPECT_EQ(by_stream["long"], one_to(18, 11));
	EXPECT_TRUE(log.replay_many({}).empty());
}

TEST_F(LogTest, replays_all_streams_from_cursor_to_cursor)
{
	EXPECT_TRUE(log.replay_all().empty());
	const std::string nothing = log.high_water_all();
	sql("SELECT doorbell.append('p:' || i % 3, 't', to_jsonb(i)) FROM generate_series(1, 30) i");
	sql("SELECT doorbell.append('q', 't', '{}')");
	const std::string now = log.high_water_all();
	EXPECT_EQ(log.replay_all().size(), 31u);
	EXPECT_EQ(log.replay_all(nothing).size(), 31u);
	EXPECT_TRUE(log.replay_all(now).empty());

	std::map<std::string, Seqs> given;
	std::optional<std::string> cursor;
	for (std::vector<doorbell::AllEvent> page = log.replay_all(cursor, 7, "p:"); !page.empty();
		 page = log.replay_all(cursor, 7, "p:")) {
		EXPECT_LE(page.size(), 7u);
		for (const doorbell::AllEvent &each : page) {
			EXPECT_FALSE(each.is_gap());
			given[each.event.stream].push_back(each.event.seq);
		}
		cursor = page.back().cursor;
	}
	EXPECT_EQ(given, (std::map<std::string, Seqs>{{"p:0", one_to(10)}, {"p:1", one_to(10)}, {"p:2", one_to(10)}}));

	sql("SELECT doorbell.append_batch('p:0', '{a,b}', '{1,2}')");
	sql("SELECT doorbell.trim('p:0', 11)");
	const std::vector<doorbell::AllEvent> rest = log.replay_all(cursor, 100, "p:");
	ASSERT_EQ(rest.size(), 2u);
	EXPECT_TRUE(rest[0].is_gap());
	EXPECT_EQ(rest[0].event.stream, "p:0");
	EXPECT_EQ(rest[0].event.seq, 11);
	EXPECT_EQ(rest[1].event.type, "b");
	EXPECT_EQ(rest[1].event.payload, "2");
	EXPECT_TRUE(log.replay_all(rest[1].cursor, 100, "p:").empty());

	EXPECT_TRUE(names(refusal("22023", [&] { log.replay_all("all1.nonsense"); }), "\"all1.nonsense\""));
	sql("BEGIN; DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell; COMMIT");
	try {
		log.replay_all(cursor);
		ADD_FAILURE() << "accepted";
	} catch (const doorbell::Error &error) {
		EXPECT_TRUE(error.is_other_history()) << error.what();
	}
}

TEST_F(LogTest, tells_the_waters_and_lists_the_streams)
{
	sql("SELECT doorbell.append('p:a', 't', '{}') FROM generate_series(1, 5)");
	sql("SELECT doorbell.append('p:b', 't', '{}'), doorbell.append('q', 't', '{}')");
	sql("SELECT doorbell.trim('p:a', 3)");
	EXPECT_EQ(log.low_water("p:a"), 3);
	EXPECT_EQ(log.high_water("p:a"), 5);
	EXPECT_EQ(log.low_water("unknown"), 0);
	EXPECT_EQ(log.high_water("unknown"), 0);
	const std::vector<doorbell::StreamInfo> streams = log.streams("p:");
	ASSERT_EQ(streams.size(), 2u);
	EXPECT_EQ(streams[0].stream, "p:a");
	EXPECT_EQ(streams[0].low_water, 3);
	EXPECT_EQ(streams[0].high_water, 5);
	EXPECT_EQ(streams[1].stream, "p:b");
	EXPECT_EQ(log.streams().size(), 3u);
}

TEST_F(LogTest, refuses_bad_arguments_with_the_sqlstate_and_the_value)
{
	EXPECT_TRUE(names(refusal("22P02", [&] { log.append("s", "t", "{nonsense"); }), "\"nonsense\""));
	EXPECT_TRUE(names(refusal("22023", [&] { log.append("s", "a\nb", "{}"); }), "type"));
	EXPECT_TRUE(names(refusal("22023", [&] { log.append("", "t", "{}"); }), "stream"));
	EXPECT_TRUE(names(refusal("22023", [&] { log.append(std::string(513, 'k'), "t", "{}"); }), "kkk"));
	EXPECT_TRUE(names(refusal("22023", [&] { log.replay("s", -7); }), "-7"));
	EXPECT_TRUE(names(refusal("22023", [&] { log.replay("s", 0, -8); }), "-8"));
	EXPECT_TRUE(names(refusal("22023", [&] { log.append("s", "t", "{}", -9); }), "-9"));
	refusal("22021", [&] { log.append("s", "bad utf-8 \xff", "{}"); });
	refusal("22021", [&] { log.append(std::string("nul\0", 4), "t", "{}"); });
	EXPECT_EQ(sql("SELECT count(*) FROM doorbell.event"), "0");
	EXPECT_EQ(log.append("s", "t", "{}"), 1) << "the connection goes on after a refusal";
	EXPECT_EQ(database.sessions("log"), 1);
}

TEST_F(LogTest, says_what_is_not_allowed)
{
	sql("CREATE ROLE nobody_of_note LOGIN");
	Log stranger(connect(database.dsn("log") + " user=nobody_of_note"));
	EXPECT_TRUE(names(refusal("42501", [&] { stranger.append("s", "t", "{}"); }), "doorbell"));
	EXPECT_EQ(stranger.status().server_version, log.status().server_version) << "status tells everybody what it can";
	EXPECT_EQ(stranger.status().ring_mode, rings_by_worker() ? "auto" : "") << "known where the library is loaded";
	sql("DROP ROLE nobody_of_note");
}

TEST_F(LogTest, connects_anew_when_its_connection_died_between_two_calls)
{
	for (int round = 1; round <= 20; round++) {
		EXPECT_EQ(log.append("s", "t", "{}"), round);
		ASSERT_EQ(database.kill("log"), 1);
	}
	EXPECT_EQ(seqs(log.replay("s")), one_to(20)) << "each append once";
}

TEST_F(LogTest, connects_anew_after_a_restart_of_the_server)
{
	log.append("s", "t", "{}");
	primary().stop(SIGQUIT);
	refusal("", [&] { log.append("s", "t", "{}"); });
	primary().start();
	primary().await();
	EXPECT_EQ(log.append("s", "t", "{}"), 2);
}

TEST_F(LogTest, L5_a_server_that_went_silent_fails_the_call_and_the_next_one_connects_anew)
{
	Relay relay(primary().port());
	doorbell::ConnectOptions options = connect(database.tcp_dsn(relay.port(), "log"));
	options.query_timeout = milliseconds(500);
	Log distant(options);
	distant.append("s", "t", "{}");
	relay.abandon();
	EXPECT_TRUE(names(refusal("", [&] { distant.append("s", "t", "{}"); }), "500 ms"));
	distant.append("s", "t", "{}");
	EXPECT_EQ(relay.connections(), 2u);
}

TEST_F(LogTest, an_error_never_shows_the_connection_string)
{
	Log nowhere(connect("host=127.0.0.1 port=1 user=somebody password=hidden dbname=x"));
	EXPECT_FALSE(names(refusal("", [&] { nowhere.high_water("s"); }), "hidden"));
	Log malformed(connect("host=127.0.0.1 pasword=hidden"));
	EXPECT_FALSE(names(refusal("", [&] { malformed.high_water("s"); }), "hidden"));
	Log unfinished(connect("host=127.0.0.1 password='hidden"));
	EXPECT_FALSE(names(refusal("", [&] { unfinished.high_water("s"); }), "hidden"));
}

TEST_F(LogTest, L8_status_tells_what_the_server_is)
{
	const doorbell::ServerStatus status = log.status();
	EXPECT_EQ(status.server_version, sql("SHOW server_version"));
	EXPECT_EQ(status.extension_version, sql("SELECT extversion FROM pg_extension WHERE extname = 'pg_doorbell'"));
	EXPECT_EQ(status.ring_mode, "auto");
	EXPECT_FALSE(status.standby);
	EXPECT_GE(status.notify_queue_usage, 0);

	sql("ALTER DATABASE " + database.name() + " SET doorbell.ring_mode = off");
	EXPECT_EQ(Log(connect(database.dsn("log"))).status().ring_mode, "off");
	sql("DROP EXTENSION pg_doorbell");
	Log without(connect(database.dsn("log")));
	EXPECT_EQ(without.status().extension_version, "");
}

TEST_F(LogTest, a_consumer_goes_on_behind_its_cursor_which_never_goes_back_by_itself)
{
	log.append("s", "t", "{}");
	log.append("s", "t", "{}");
	EXPECT_FALSE(log.cursor("c", "s").has_value());
	log.commit_cursor("c", "s", {});
	EXPECT_EQ(log.cursor("c", "s"), doorbell::Mark());
	const std::vector<Event> events = log.replay("s");
	ASSERT_EQ(events.size(), 2u);
	log.commit_cursor("c", "s", mark_of(events[1]));
	EXPECT_EQ(log.cursor("c", "s"), mark_of(events[1])) << "the mark comes back with its check";
	EXPECT_FALSE(log.cursor("c", "other").has_value());
	EXPECT_FALSE(log.cursor("c").has_value()) << "there is no cursor over all streams";

	const std::string message = refusal("DB003", [&] { log.commit_cursor("c", "s", mark_of(events[0])); });
	EXPECT_TRUE(names(message, "\"c\"") && names(message, "seq 2") && names(message, "seq 1")) << message;
	EXPECT_EQ(log.cursor("c", "s"), mark_of(events[1]));
	log.move_cursor("c", "s", mark_of(events[0]));
	EXPECT_EQ(log.cursor("c", "s"), mark_of(events[0]));
	refusal("22023", [&] { log.commit_cursor("", "s", {}); });
}

} // namespace
} // namespace live
