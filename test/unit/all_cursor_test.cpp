// Tests of what can be told from a cursor of all streams without asking the server.
#include "all_cursor.hpp"

#include <gtest/gtest.h>

namespace {

using doorbell::detail::extent_of;

TEST(Extent, at_the_end_of_a_window_is_what_was_seen_whatever_was_given_last)
{
	EXPECT_EQ(extent_of("all1.8a6.332b~4!YTox:4bb..Yjoy:b9e:f7292736.YToz:238:920a984"), "all1.8a6.332b~4!YTox:4bb.");
	EXPECT_EQ(extent_of("all1.8a6.332b~4!YTox:4bb...YToz:1:1"), "all1.8a6.332b~4!YTox:4bb.");
	EXPECT_NE(extent_of("all1.8a6.332b~4...YToz:1:1"), extent_of("all1.8a6.332b~4!YTox:4bb...YToz:1:1"));
	EXPECT_NE(extent_of("all1.8a6.332b...YToz:1:1"), extent_of("all1.8a7.332b...YToz:1:1")) << "another history";
}

TEST(Extent, within_a_window_or_of_what_is_no_cursor_is_not_known)
{
	EXPECT_EQ(extent_of("all1.8a6.332b.3320.YToz:1:1.YToz:1:1"), "");
	for (const char *text : {"", "all1", "all1.8a6.332b", "all1.8a6.332b.", "..."})
		EXPECT_EQ(extent_of(text), "") << text;
}

} // namespace
