#include <doorbell/pointer.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using doorbell::parse_pointer;

std::string formatted(std::string_view stream, std::int64_t seq)
{
	char out[doorbell::max_pointer_bytes + 1];
	const std::size_t length = doorbell::format_pointer(stream, seq, out);
	EXPECT_EQ(out[length], '\0');
	return std::string(out, length);
}

TEST(Pointer, is_split_on_its_last_colon)
{
	const auto pointer = parse_pointer("repo:a:b:42");
	ASSERT_TRUE(pointer);
	EXPECT_EQ(pointer->stream, "repo:a:b");
	EXPECT_EQ(pointer->seq, 42);
	EXPECT_FALSE(pointer->everything());
}

TEST(Pointer, of_a_star_means_everything)
{
	const auto pointer = parse_pointer("*");
	ASSERT_TRUE(pointer);
	EXPECT_TRUE(pointer->everything());
	EXPECT_EQ(parse_pointer("*:1")->stream, "*") << "a stream may be called like that";
}

TEST(Pointer, comes_back_from_its_text_whatever_the_key)
{
	const std::string keys[] = {"a",		  "a:",		 ":a",
								"::",		  "Grüße 🔔", "it's \"quoted\"",
								"with space", "*",		 std::string(doorbell::max_stream_bytes, 'k')};
	const std::int64_t seqs[] = {0, 1, 9, 10, 1'234'567'890'123, INT64_MAX};
	for (const std::string &key : keys)
		for (const std::int64_t seq : seqs) {
			const std::string text = formatted(key, seq);
			const auto pointer = parse_pointer(text);
			ASSERT_TRUE(pointer) << text;
			EXPECT_EQ(pointer->stream, key);
			EXPECT_EQ(pointer->seq, seq);
		}
}

TEST(Pointer, is_refused_when_the_text_is_none)
{
	const std::string texts[] = {"",
								 "a",
								 ":1",
								 "a:",
								 "a:-1",
								 "a:+1",
								 "a: 1",
								 "a:1 ",
								 "a:1x",
								 "**",
								 "a:x",
								 "a:9223372036854775808",
								 "a:99999999999999999999",
								 std::string(doorbell::max_stream_bytes + 1, 'k') + ":1"};
	for (const std::string &text : texts)
		EXPECT_FALSE(parse_pointer(text)) << text;
}

} // namespace
