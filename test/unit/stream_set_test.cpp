// Which streams a connection with prefixes follows.
#include "stream_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace {

using doorbell::detail::StreamSet;
using Names = std::vector<std::string>;

bool are_equal(const StreamSet &a, const StreamSet &b)
{
	return !(a < b) && !(b < a);
}

TEST(StreamSet, has_what_begins_with_a_prefix_and_what_is_named)
{
	const StreamSet set({"b:", "d"}, {"a", "c:1"});
	for (const char *stream : {"a", "b:", "b:1", "c:1", "d", "dd"})
		EXPECT_TRUE(set.has(stream)) << stream;
	for (const char *stream : {"", "aa", "b", "c:", "c:11", "e"})
		EXPECT_FALSE(set.has(stream)) << stream;
	EXPECT_TRUE(StreamSet({""}, {}).has("anything"));
}

TEST(StreamSet, is_the_same_however_it_is_put)
{
	EXPECT_TRUE(are_equal(StreamSet({"b", "a"}, {"d", "c"}), StreamSet({"a", "b", "a"}, {"c", "d"})));
	EXPECT_TRUE(are_equal(StreamSet({"a", "a:b", "a:b:c"}, {"a:x", "a"}), StreamSet({"a"}, {})));
	EXPECT_TRUE(are_equal(StreamSet({"", "z"}, {"q"}), StreamSet({""}, {})));
	EXPECT_FALSE(are_equal(StreamSet({"a"}, {}), StreamSet({"a"}, {"b"})));
	EXPECT_FALSE(are_equal(StreamSet({"a"}, {}), StreamSet({}, {"a"})));
}

TEST(StreamSet, the_common_prefix_is_the_longest_of_whole_characters)
{
	EXPECT_EQ(StreamSet({"orders:"}, {}).common_prefix(), "orders:");
	EXPECT_EQ(StreamSet({"orders:1", "orders:2"}, {"orders:"}).common_prefix(), "orders:");
	EXPECT_EQ(StreamSet({"orders:1"}, {"order"}).common_prefix(), "order");
	EXPECT_EQ(StreamSet({"a"}, {"b"}).common_prefix(), "");
	EXPECT_EQ(StreamSet({""}, {}).common_prefix(), "");
	EXPECT_EQ(StreamSet({"x\u00e4", "x\u00f6"}, {}).common_prefix(), "x") << "they share the first byte of two";
	EXPECT_EQ(StreamSet({"x\u00e4a", "x\u00e4b"}, {}).common_prefix(), "x\u00e4");
	EXPECT_EQ(StreamSet({"\U0001f514", "\U0001f515"}, {}).common_prefix(), "");
}

TEST(StreamSet, agrees_with_its_definition)
{
	std::mt19937 random(5);
	const auto word = [&](std::size_t least) {
		std::string made;
		for (std::size_t length = least + random() % 4; made.size() < length;)
			made += static_cast<char>('a' + random() % 2);
		return made;
	};
	for (int round = 0; round < 3'000; round++) {
		Names prefixes{word(0)};
		Names streams;
		while (random() % 3 != 0)
			prefixes.push_back(word(1));
		while (random() % 2 != 0)
			streams.push_back(word(1));
		const StreamSet set(prefixes, streams);
		const std::string common = set.common_prefix();
		for (int i = 0; i < 20; i++) {
			const std::string stream = word(1);
			bool expected = false;
			for (const std::string &prefix : prefixes)
				expected |= stream.compare(0, prefix.size(), prefix) == 0;
			for (const std::string &named : streams)
				expected |= stream == named;
			ASSERT_EQ(set.has(stream), expected) << stream;
			EXPECT_TRUE(!expected || stream.compare(0, common.size(), common) == 0)
				<< "it begins with the common prefix";
		}
	}
}

} // namespace
