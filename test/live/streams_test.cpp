// What is followed: keys of every kind, prefixes, streams that appear later.
#include "follower.hpp"

#include <map>

namespace live {
namespace {

namespace place = doorbell::detail::place;
using doorbell::AllStart;
using doorbell::milliseconds;
using doorbell::Start;
using Seqs = std::vector<std::int64_t>;

struct StreamsTest : LiveTest {};

TEST_F(StreamsTest, L12_a_key_of_512_bytes_and_a_payload_of_3_megabytes_arrive_intact)
{
	const std::string key(512, 'k');
	const std::string payload = '"' + std::string(3'000'000, 'x') + '"';
	Follower follower(database);
	follower.subscriber.follow(key, Start::beginning());
	follower.until_live();
	append(key, payload);
	follower.until_events(1);
	EXPECT_EQ(follower.events[0].stream, key);
	EXPECT_EQ(follower.events[0].payload, payload);
}

TEST_F(StreamsTest, L12_a_longer_key_is_refused_by_name_and_nothing_is_stored)
{
	const std::string key(513, 'k');
	Follower follower(database);
	try {
		follower.subscriber.follow(key);
		ADD_FAILURE() << "accepted";
	} catch (const doorbell::Error &error) {
		EXPECT_NE(std::string(error.what()).find("kkk"), std::string::npos) << error.what();
		EXPECT_NE(std::string(error.what()).find("512"), std::string::npos) << error.what();
	}
	for (const std::string &too_long : {key, std::string(8'192, 'k')})
		EXPECT_THROW(append(too_long), std::exception);
	EXPECT_EQ(sql("SELECT count(*) FROM doorbell.event"), "0");
	EXPECT_THROW(follower.subscriber.follow(""), doorbell::Error);
}

TEST_F(StreamsTest, L12_keys_of_every_kind_arrive_by_ring_by_sweep_and_by_prefix)
{
	const std::vector<std::string> keys = {"a:b:1:", "it's \"quoted\"", " two  spaces ",	"UPPER", "upper", "Grüße 🔔",
										   "*",		 "\\back;slash--",	"{braces,\"and\"}", "NULL",	 "%_",	  "12"};
	doorbell::SubscriberOptions options = options_for(database);
	Follower by_name(options);
	Follower by_prefix(options);
	by_prefix.subscriber.follow_prefix("");
	by_prefix.until_live();
	for (const std::string &key : keys) {
		append(key);
		by_name.subscriber.follow(key, Start::beginning());
	}
	by_name.until_events(keys.size());	 // by its first sweep
	by_prefix.until_events(keys.size()); // by rings of streams that are new to it
	for (const std::string &key : keys)
		append(key);
	by_name.until_events(2 * keys.size()); // by rings
	by_prefix.until_events(2 * keys.size());
	for (const std::string &key : keys) {
		EXPECT_EQ(by_name.seqs(key), one_to(2)) << key;
		EXPECT_EQ(by_prefix.seqs(key), one_to(2)) << key;
	}
}

TEST_F(StreamsTest, a_prefix_follows_its_streams_and_no_others)
{
	append("repo:a");
	append("repo:b");
	append("repo");
	append("Repo:a");
	append("repos:a");
	Follower follower(database);
	follower.subscriber.follow_prefix("repo:", AllStart::beginning());
	follower.until_events(2);
	append("repo:a");
	append("repo");
	append("repo:c");
	follower.until_events(4);
	append("repo:last"); // comes behind whatever else might
	follower.until_events(5);
	EXPECT_EQ(follower.seqs("repo:a"), one_to(2));
	EXPECT_EQ(follower.seqs("repo:b"), one_to(1));
	EXPECT_EQ(follower.seqs("repo:c"), one_to(1));
	EXPECT_EQ(follower.seqs("repo:last"), one_to(1));
}

TEST_F(StreamsTest, a_prefix_from_now_skips_history_but_not_the_beginning_of_later_streams)
{
	append("p:old");
	append("p:old");
	Follower follower(database);
	follower.subscriber.follow_prefix("p:", AllStart::now());
	follower.until_live();
	append("p:old");
	append("p:new");
	follower.until_events(2);
	EXPECT_EQ(follower.seqs("p:old"), Seqs{3});
	EXPECT_EQ(follower.seqs("p:new"), Seqs{1});
}

TEST_F(StreamsTest, L3_new_streams_of_a_prefix_are_found_by_the_sweep_when_their_rings_are_lost)
{
	append("p:old");
	doorbell::SubscriberOptions options = options_for(database);
	options.sweep_interval = milliseconds(50);
	Follower follower(options);
	follower.subscriber.follow_prefix("p:", AllStart::now());
	follower.until_live();
	const std::uint64_t rings = follower.subscriber.stats().rings; // one for what is old may come that late
	{
		const Fault fault([](std::string_view at) { return at == place::ring; });
		append("p:new");
		append("p:new");
		follower.until_events(2);
	}
	EXPECT_EQ(follower.seqs("p:new"), one_to(2));
	EXPECT_EQ(follower.seqs("p:old"), Seqs());
	EXPECT_EQ(follower.subscriber.stats().rings, rings);
}

TEST_F(StreamsTest, a_stream_that_is_also_followed_by_name_keeps_its_own_start)
{
	for (int i = 0; i < 3; i++)
		append("p:named");
	append("p:other");
	Follower follower(database);
	follower.subscriber.follow_prefix("p:", AllStart::beginning());
	follower.subscriber.follow("p:named", Start::after({2, 0}));
	follower.until_events(2);
	append("p:named");
	append("p:other");
	follower.until_events(4);
	follower.expect_nothing_more(sql);
	EXPECT_EQ(follower.seqs("p:named"), (Seqs{3, 4}));
	EXPECT_EQ(follower.seqs("p:other"), one_to(2));
}

TEST_F(StreamsTest, overlapping_prefixes_deliver_an_event_once_each_and_tell_which_they_are)
{
	const std::vector<std::string> prefixes{"", "a", "a:b"};
	Follower follower(database);
	std::map<std::string, Seqs> given;
	follower.before_event = [&](const doorbell::Event &event) {
		const std::string *prefix = follower.subscriber.telling_prefix();
		given[prefix == nullptr ? "by name" : *prefix].push_back(event.seq);
	};
	for (const std::string &prefix : prefixes)
		follower.subscriber.follow_prefix(prefix, AllStart::beginning());
	follower.subscriber.follow("s", Start::beginning());
	append("a:b:c");
	follower.until_events(3);
	append("s");
	follower.until_events(4);
	append("a:b:c");
	follower.until_events(7);
	append("a:b:c");
	follower.until_events(10);
	for (const std::string &prefix : prefixes)
		EXPECT_EQ(given[prefix], one_to(3)) << prefix;
	EXPECT_EQ(given["by name"], one_to(1));
	EXPECT_EQ(follower.subscriber.telling_prefix(), nullptr);
}

TEST_F(StreamsTest, what_is_no_longer_followed_is_not_delivered)
{
	Follower follower(database);
	follower.subscriber.follow("s", Start::beginning());
	follower.subscriber.follow_prefix("p:", AllStart::beginning());
	follower.until_live();
	append("s");
	append("p:1");
	follower.until_events(2);
	follower.subscriber.unfollow("s");
	follower.subscriber.unfollow_prefix("p:");
	EXPECT_FALSE(follower.subscriber.mark("s"));
	EXPECT_FALSE(follower.subscriber.mark("p:1"));
	append("s");
	append("p:1");
	append("p:2");
	follower.expect_nothing_more(sql);
	EXPECT_EQ(follower.events.size(), 2u);

	follower.subscriber.follow("s", Start::after({1, 0}));
	follower.until_events(3);
	EXPECT_EQ(follower.seqs("s"), one_to(2));
}

TEST_F(StreamsTest, a_handler_may_follow_and_unfollow)
{
	sql("SELECT doorbell.append('list', 'add', to_jsonb('s:' || i)) FROM generate_series(1, 50) i");
	sql("SELECT doorbell.append('s:' || i, 't', '{}') FROM generate_series(1, 50) i");
	sql("SELECT doorbell.append('list', 'end', '{}') FROM generate_series(1, 2)");
	Follower follower(database);
	follower.before_event = [&](const doorbell::Event &event) {
		if (event.type == "add")
			follower.subscriber.follow(event.payload.substr(1, event.payload.size() - 2), Start::beginning());
		if (event.type == "end")
			follower.subscriber.unfollow("list");
	};
	follower.subscriber.follow("list", Start::beginning());
	follower.until_events(101);
	follower.expect_nothing_more(sql);
	EXPECT_EQ(follower.seqs("list"), one_to(51)) << "the second end came after it was unfollowed";
	for (int i = 1; i <= 50; i++)
		EXPECT_EQ(follower.seqs("s:" + std::to_string(i)), one_to(1));
}

} // namespace
} // namespace live
