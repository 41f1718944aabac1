#include <doorbell/event.hpp>

#include <gtest/gtest.h>

#include <ctime>
#include <random>

namespace {

using doorbell::format_time;

TEST(Time, is_rfc_3339_in_utc_with_six_digits)
{
	EXPECT_EQ(format_time(0), "1970-01-01T00:00:00.000000Z");
	EXPECT_EQ(format_time(1), "1970-01-01T00:00:00.000001Z");
	EXPECT_EQ(format_time(-1), "1969-12-31T23:59:59.999999Z");
	EXPECT_EQ(format_time(951'782'400'000'000), "2000-02-29T00:00:00.000000Z");
	EXPECT_EQ(format_time(4'107'542'399'999'999), "2100-02-28T23:59:59.999999Z");
	EXPECT_EQ(format_time(4'107'542'400'000'000), "2100-03-01T00:00:00.000000Z") << "2100 is no leap year";
	EXPECT_EQ(format_time(-62'135'596'800'000'000), "0001-01-01T00:00:00.000000Z");
	EXPECT_EQ(format_time(253'402'300'799'999'999), "9999-12-31T23:59:59.999999Z");
}

TEST(Time, agrees_with_the_c_library)
{
	std::mt19937_64 random(3);
	for (int round = 0; round < 20'000; round++) {
		const auto seconds = static_cast<std::time_t>(random() % 315'537'897'600) - 62'135'596'800; // years 1 to 9999
		std::tm parts{};
		ASSERT_NE(gmtime_r(&seconds, &parts), nullptr);
		char expected[64];
		std::snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02d.123456Z", parts.tm_year + 1900,
					  parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
		EXPECT_EQ(format_time(static_cast<std::int64_t>(seconds) * 1'000'000 + 123'456), expected);
	}
}

TEST(Envelope, has_its_fields_in_order)
{
	EXPECT_EQ(doorbell::format_envelope({"repo:foo", 42, "push", "{\"a\": 1}", 1'767'225'600'000'042}),
			  "{\"stream\":\"repo:foo\",\"seq\":42,\"type\":\"push\",\"appended_at\":\"2026-01-01T00:00:00.000042Z\","
			  "\"payload\":{\"a\": 1}}");
}

TEST(JsonString, escapes_what_must_be_escaped_and_nothing_else)
{
	std::string out = "x";
	doorbell::append_json_string(out, std::string("a\"b\\c/\n\r\t") + '\0' + "\x1f Grüße 🔔");
	EXPECT_EQ(out, "x\"a\\\"b\\\\c/\\u000a\\u000d\\u0009\\u0000\\u001f Grüße 🔔\"");
}

} // namespace
