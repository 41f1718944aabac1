#include <doorbell/cursor.hpp>
#include <doorbell/error.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace {

using doorbell::Mark;

std::string refusal_of(const std::string &text, std::size_t streams = 1)
{
	try {
		doorbell::parse_cursor(text, streams);
	} catch (const doorbell::Error &error) {
		EXPECT_TRUE(error.sqlstate().empty());
		return error.what();
	}
	ADD_FAILURE() << "accepted: " << text;
	return "";
}

TEST(Cursor, is_the_seq_and_the_check_in_hexadecimal)
{
	EXPECT_EQ(doorbell::format_mark({42, 0x9f3c01ab}), "42-9f3c01ab");
	EXPECT_EQ(doorbell::format_mark({7, 1}), "7-00000001");
	EXPECT_EQ(doorbell::format_mark({42, 0}), "42") << "an unknown check is left out";
	EXPECT_EQ(doorbell::format_cursor({{1, 0}, {100, 0xabcdef01}}), "1,100-abcdef01");
}

TEST(Cursor, comes_back_from_its_text)
{
	std::mt19937_64 random(1);
	for (int round = 0; round < 10'000; round++) {
		std::vector<Mark> marks(1 + random() % 5);
		for (Mark &mark : marks) {
			mark.seq = static_cast<std::int64_t>(random() >> (1 + random() % 62)) + 1;
			mark.check = random() % 3 == 0 ? 0 : static_cast<std::uint32_t>(random() | 1);
		}
		const std::string text = doorbell::format_cursor(marks);
		EXPECT_EQ(doorbell::parse_cursor(text, marks.size()), marks) << text;
	}
	EXPECT_EQ(doorbell::parse_mark("0"), Mark());
	EXPECT_EQ(doorbell::parse_mark("9223372036854775807-ffffffff"), (Mark{INT64_MAX, 0xffffffff}));
}

TEST(Cursor, that_is_malformed_is_refused_by_name)
{
	const std::string texts[] = {"",
								 "x",
								 "-1",
								 "+1",
								 " 1",
								 "1 ",
								 "01",
								 "1-",
								 "1-abc",
								 "1-ABCDEF01",
								 "1-9f3c01a",
								 "1-9f3c01ab0",
								 "1-9f3c01ag",
								 "1-00000000",
								 "0-9f3c01ab",
								 "1,",
								 ",1",
								 "1,,2",
								 "1-9f3c01ab-9f3c01ab",
								 "9223372036854775808",
								 "1e3",
								 "0x10",
								 "1\n",
								 std::string("1\0", 2)};
	for (const std::string &text : texts)
		EXPECT_NE(refusal_of(text, 2).find("invalid cursor"), std::string::npos);
	EXPECT_NE(refusal_of("12x").find("\"12x\""), std::string::npos);
	EXPECT_NE(refusal_of("1,zwei", 2).find("\"zwei\""), std::string::npos) << "the bad mark is named, not the whole";
	EXPECT_EQ(refusal_of("1\n2").find('\n'), std::string::npos) << "an error message is one line";
	EXPECT_LT(refusal_of(std::string(5'000, '1')).size(), 300u);
}

TEST(Cursor, must_have_one_mark_per_stream)
{
	EXPECT_NE(refusal_of("1,2", 3).find("2 marks for 3 streams"), std::string::npos);
	EXPECT_NE(refusal_of("1,2", 1).find("2 marks for 1 streams"), std::string::npos);
}

// These values are in docs/protocol.md, and in browsers and files out there. A change of them makes every stored cursor
// a reset.
TEST(Check, stays_the_same_for_ever)
{
	EXPECT_EQ(doorbell::format_mark(doorbell::mark_of({"repo:foo", 42, "push", "{}", 1'767'225'600'000'042})),
			  "42-6a35e0e0");
	EXPECT_EQ(doorbell::check_of("repo:foo", 42, "push", 1'767'225'600'000'042), 0x6a35e0e0u);
	EXPECT_EQ(doorbell::check_of("Grüße 🔔", INT64_MAX, "message", -1), 0x7ef20e0au);
}

TEST(Check, depends_on_every_part_of_the_event)
{
	const std::uint32_t check = doorbell::check_of("s", 1, "t", 1);
	EXPECT_NE(check, doorbell::check_of("S", 1, "t", 1));
	EXPECT_NE(check, doorbell::check_of("s", 2, "t", 1));
	EXPECT_NE(check, doorbell::check_of("s", 1, "u", 1));
	EXPECT_NE(check, doorbell::check_of("s", 1, "t", 2));
	EXPECT_NE(doorbell::check_of("ab", 1, "c", 1), doorbell::check_of("a", 1, "bc", 1))
		<< "keys and types are separated";
}

TEST(Check, is_of_the_event_it_was_made_from_and_never_0)
{
	doorbell::Event event{"s", 3, "t", "{}", 99};
	EXPECT_EQ(doorbell::mark_of(event), (Mark{3, doorbell::check_of("s", 3, "t", 99)}));
	event.payload = "{\"other\":1}";
	EXPECT_EQ(doorbell::mark_of(event).check, doorbell::check_of("s", 3, "t", 99)) << "payloads are not hashed";
	for (std::int64_t seq = 1; seq < 100'000; seq++)
		ASSERT_NE(doorbell::check_of("s", seq, "t", 99), 0u);
}

TEST(AllCursor, has_a_form_that_no_cursor_of_marks_has)
{
	for (const char *text :
		 {"all1.bb0ad95d85648fe.2ee...cw:2:a6c83d8", "all1.6e56a6fc56234b2f.2f3.0.Yg:2:84dcf774.YQ:1:ae863d4",
		  "all1.0.2f5..ZA:1:533ef02a.", "all1.1.2f5~1~a!YQ:1!Yg:2.1~1.YQ:2.Yg:1:0", "all1.0.1..."})
		EXPECT_TRUE(doorbell::is_all_cursor(text)) << text;
	for (const char *text : {"",
							 "0",
							 "now",
							 "42-9f3c01ab",
							 "1,100-abcdef01",
							 "all1",
							 "all1.",
							 "all1.0.1..",
							 "all1.0.1....",
							 "all2.0.1...",
							 "all1.0..0..",
							 "all1.01.1...",
							 "all1.g.1...",
							 "all1.0.1 ...",
							 "all1.0.1~...",
							 "all1.0.1!YQ...",
							 "all1.0.1!:1...",
							 "all1.0.1...Y:1",
							 "all1.0.1...YQ",
							 "all1.0.1...YQ:1:",
							 "all1.0.1...YQ:1:1:1",
							 "all1.11111111111111111.1...",
							 "all1.0.1...YQ:1\n",
							 " all1.0.1..."})
		EXPECT_FALSE(doorbell::is_all_cursor(text)) << text;
	const std::string longest(684, 'A'); // of 512 bytes, with two digits that are not needed
	EXPECT_TRUE(doorbell::is_all_cursor("all1.0.1..." + longest.substr(1) + ":1"));
	EXPECT_FALSE(doorbell::is_all_cursor("all1.0.1..." + longest + "A:1"));
	std::string long_one = "all1.0.1";
	while (long_one.size() < 16 * 1024)
		long_one += "~1";
	EXPECT_FALSE(doorbell::is_all_cursor(long_one + "..."));
}

} // namespace
