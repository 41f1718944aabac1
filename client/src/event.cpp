#include <doorbell/event.hpp>

#include <cstdio>

namespace doorbell {
namespace {

struct Date {
	std::int64_t year;
	unsigned month;
	unsigned day;
};

// The proleptic Gregorian date of a day counted from 1970-01-01. Years are counted from 1 March, so that the leap day
// is a year's last day, and in eras of 400 years, which all have the same 146,097 days.
Date date_of_day(std::int64_t day)
{
	constexpr std::int64_t days_per_era = 146'097;
	constexpr std::int64_t from_year_0_march = 719'468;

	day += from_year_0_march;
	const std::int64_t era = (day >= 0 ? day : day - (days_per_era - 1)) / days_per_era;
	const auto of_era = static_cast<unsigned>(day - era * days_per_era);
	const unsigned year_of_era = (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
	const unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	const unsigned march_month = (5 * of_year + 2) / 153; // 0: March
	const unsigned month = march_month < 10 ? march_month + 3 : march_month - 9;
	return {era * 400 + year_of_era + (month <= 2 ? 1 : 0), month, of_year - (153 * march_month + 2) / 5 + 1};
}

} // namespace

std::string format_time(std::int64_t microseconds)
{
	constexpr std::int64_t per_second = 1'000'000;
	constexpr std::int64_t per_day = 86'400 * per_second;

	std::int64_t day = microseconds / per_day;
	std::int64_t rest = microseconds % per_day;
	if (rest < 0) { // before 1970: round down, not towards zero
		rest += per_day;
		day--;
	}
	const Date date = date_of_day(day);
	const std::int64_t seconds = rest / per_second;

	char text[80];
	const int length =
		std::snprintf(text, sizeof text, "%04lld-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<long long>(date.year),
					  date.month, date.day, static_cast<int>(seconds / 3600), static_cast<int>(seconds / 60 % 60),
					  static_cast<int>(seconds % 60), static_cast<int>(rest % per_second));
	return std::string(text, static_cast<std::size_t>(length));
}

void append_json_string(std::string &out, std::string_view text)
{
	constexpr char hex[] = "0123456789abcdef";

	out += '"';
	for (const char c : text) {
		const auto byte = static_cast<unsigned char>(c);
		if (c == '"' || c == '\\') {
			out += '\\';
			out += c;
		} else if (byte < 0x20) {
			out += "\\u00";
			out += hex[byte >> 4];
			out += hex[byte & 15];
		} else {
			out += c;
		}
	}
	out += '"';
}

std::string format_envelope(const Event &event)
{
	std::string out;
	out.reserve(event.payload.size() + event.stream.size() + event.type.size() + 100);
	out += "{\"stream\":";
	append_json_string(out, event.stream);
	out += ",\"seq\":";
	out += std::to_string(event.seq);
	out += ",\"type\":";
	append_json_string(out, event.type);
	out += ",\"appended_at\":\"";
	out += format_time(event.appended_at);
	out += "\",\"payload\":";
	out += event.payload;
	out += '}';
	return out;
}

} // namespace doorbell
