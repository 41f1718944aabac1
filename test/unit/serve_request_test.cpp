// The pure parts of `doorbell serve`: targets, heads, and what they ask for.
#include <serve/answer.hpp>
#include <serve/head.hpp>
#include <serve/sse_query.hpp>
#include <serve/url.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace {

using command::serve::HeadReader;
using command::serve::parse_target;
using command::serve::percent_decoded;
using command::serve::Refusal;

TEST(Url, percent_escapes_are_decoded_once)
{
	EXPECT_EQ(percent_decoded("repo%3Afoo%2fbar", false), "repo:foo/bar");
	EXPECT_EQ(percent_decoded("%2541", false), "%41");
	EXPECT_EQ(percent_decoded("%00%ff", false), std::string("\0\xff", 2));
	EXPECT_EQ(percent_decoded("", false), "");
}

TEST(Url, a_plus_is_a_space_only_in_a_query)
{
	EXPECT_EQ(percent_decoded("a+b%2B", false), "a+b+");
	EXPECT_EQ(percent_decoded("a+b%2B", true), "a b+");
}

TEST(Url, a_percent_sign_without_two_digits_is_refused)
{
	for (const char *text : {"%", "a%", "%4", "%4g", "%g4", "%%41", "%-1", "% 1", "%\xc3\xbc"})
		EXPECT_THROW(percent_decoded(text, false), Refusal) << text;
}

TEST(Url, a_target_has_a_path_that_is_not_decoded_and_a_query_that_is)
{
	const auto target = parse_target("/v1/streams/a%2Fb?after=0&stream=x%26y&flag&=z&&stream=c=d?e");
	EXPECT_EQ(target.path, "/v1/streams/a%2Fb");
	ASSERT_EQ(target.query.size(), 5u);
	EXPECT_EQ(*target.find("after"), "0");
	EXPECT_EQ(*target.find("stream"), "x&y") << "the first";
	EXPECT_EQ(*target.find("flag"), "");
	EXPECT_EQ(*target.find(""), "z");
	EXPECT_EQ(target.query[4].second, "c=d?e");
	EXPECT_EQ(target.find("Flag"), nullptr);
}

TEST(Url, scheme_and_authority_are_left_out)
{
	EXPECT_EQ(parse_target("http://host:80/v1/events?x=1").path, "/v1/events");
	EXPECT_EQ(parse_target("HTTPS://[::1]/").path, "/");
	EXPECT_EQ(parse_target("http://host").path, "/");
	EXPECT_EQ(parse_target("http://host?stream=a").path, "/");
	EXPECT_EQ(*parse_target("http://host?stream=a").find("stream"), "a");
	EXPECT_EQ(parse_target("/a?u=http://host/b").path, "/a");
	EXPECT_EQ(parse_target("/http://host/b").path, "/http://host/b");
}

TEST(HeadReader, a_head_is_the_same_however_it_is_cut)
{
	const std::string text = "GET /a?b HTTP/1.1\r\nHost: x\r\nCookie: a=1\r\nLast-Event-ID:  7 \r\ncookie: b=2\r\n\r\n";
	for (std::size_t size = 1; size <= text.size(); size++) {
		HeadReader reader;
		bool complete = false;
		for (std::size_t at = 0; at < text.size(); at += size) {
			EXPECT_FALSE(complete) << "before its end";
			complete = reader.feed(text.substr(at, size));
		}
		ASSERT_TRUE(complete) << size;
		const auto head = reader.head();
		EXPECT_EQ(head.method, "GET");
		EXPECT_EQ(head.target, "/a?b");
		EXPECT_EQ(head.last_event_id, "7");
		EXPECT_EQ(head.cookie, "a=1; b=2");
		EXPECT_EQ(head.authorization, "");
	}
}

// What the front does with bytes until there is a request for streams, or none.
void handle(const std::string &bytes, std::mt19937 &random)
{
	HeadReader reader;
	try {
		for (std::size_t at = 0; at < bytes.size();) {
			const std::size_t size = 1 + random() % 50;
			if (reader.feed(std::string_view(bytes).substr(at, size))) {
				const auto head = reader.head();
				const auto target = parse_target(head.target);
				if (target.path.compare(0, 4, "/v1/") == 0 &&
					target.path.size() >= command::serve::stream_path.size()) {
					const auto request = command::serve::parse_sse_request(head, target, 10);
					EXPECT_LE(request.streams.size() + request.prefixes.size(), 10u);
					for (const std::string &stream : request.streams)
						EXPECT_TRUE(!stream.empty() && stream.size() <= 512);
				}
				return;
			}
			at += size;
		}
	} catch (const Refusal &refusal) {
		EXPECT_GE(refusal.status(), 400);
	}
}

TEST(HeadReader, mutilated_requests_are_refused_or_understood_and_do_no_harm)
{
	const std::string seeds[] = {
		"GET /v1/streams/repo%3Afoo?after=42-9f3c01ab&named=0 HTTP/1.1\r\nHost: x\r\nLast-Event-ID: "
		"42-9f3c01ab\r\n\r\n",
		"GET http://x/v1/events?stream=a&stream=b%20c&after=1,2 HTTP/1.0\r\nAuthorization: Bearer a.b.c\r\n\r\n",
		"POST /v1/events?prefix=%F0%9F%94%94 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		"chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 99999999999\r\n\r\n"};
	std::mt19937 random(4711);
	for (int round = 0; round < 20'000; round++) {
		std::string bytes = seeds[random() % 4];
		for (unsigned edits = random() % 8; edits > 0 && !bytes.empty(); edits--) {
			const std::size_t at = random() % bytes.size();
			switch (random() % 5) {
			case 0:
				bytes[at] = static_cast<char>(random() % 256);
				break;
			case 1:
				bytes.erase(at, 1 + random() % 9);
				break;
			case 2:
				bytes.insert(at, bytes, random() % bytes.size(), random() % 40);
				break;
			case 3:
				bytes.insert(at, 1 + random() % 3, "%\r\n:&?=\0 /"[random() % 10]);
				break;
			default:
				bytes.insert(at, random() % 300 == 0 ? 20'000 : 3, 'x');
			}
		}
		handle(bytes, random);
	}
}

} // namespace
