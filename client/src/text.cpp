#include "text.hpp"

#include <doorbell/error.hpp>
#include <doorbell/event.hpp>
#include <doorbell/pointer.hpp>

#include <charconv>

namespace doorbell::detail {

std::optional<std::int64_t> parse_seq(std::string_view text) noexcept
{
	if (text.empty() || text[0] < '0' || text[0] > '9' || (text[0] == '0' && text.size() > 1))
		return std::nullopt;
	std::int64_t seq = 0;
	const char *end = text.data() + text.size();
	const auto [stop, error] = std::from_chars(text.data(), end, seq);
	if (error != std::errc() || stop != end)
		return std::nullopt;
	return seq;
}

std::string quoted(std::string_view text)
{
	constexpr std::size_t longest = 80;

	std::string out;
	append_json_string(out, text.substr(0, longest));
	if (text.size() > longest)
		out += "...";
	return out;
}

// jsonb holds characters as they are but for these escapes, and no NUL.
bool unquote_json_string(std::string_view json, std::string &out)
{
	if (json.size() < 2 || json.front() != '"' || json.back() != '"')
		return false;
	json = json.substr(1, json.size() - 2);
	out.reserve(out.size() + json.size());
	for (std::size_t i = 0; i < json.size(); i++) {
		if (json[i] != '\\' || i + 1 == json.size()) {
			out += json[i];
			continue;
		}
		const char escaped = json[++i];
		constexpr std::string_view names = "bfnrt";
		constexpr std::string_view characters = "\b\f\n\r\t";
		const std::size_t known = names.find(escaped);
		unsigned code = 0;
		if (known != std::string_view::npos)
			out += characters[known];
		else if (escaped != 'u')
			out += escaped;
		else if (i + 4 < json.size() && std::from_chars(&json[i + 1], &json[i + 5], code, 16).ptr == &json[i + 5]) {
			out += static_cast<char>(code); // a control character
			i += 4;
		}
	}
	return true;
}

namespace {

// As Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Nor NUL, which no text of PostgreSQL
// has.
bool is_utf8(std::string_view text)
{
	for (std::size_t i = 0; i < text.size();) {
		const auto byte = [&](std::size_t at) {
			return at < text.size() ? static_cast<unsigned char>(text[at]) : static_cast<unsigned char>(0);
		};
		const unsigned char first = byte(i);
		const std::size_t length = first < 0x80	  ? 1
								   : first < 0xc2 ? 0
								   : first < 0xe0 ? 2
								   : first < 0xf0 ? 3
								   : first < 0xf5 ? 4
												  : 0;
		if (length == 0)
			return false;
		for (std::size_t next = 1; next < length; next++)
			if ((byte(i + next) & 0xc0) != 0x80)
				return false;
		const unsigned char second = byte(i + 1);
		if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
			(first == 0xf4 && second > 0x8f))
			return false;
		i += length;
	}
	return true;
}

void check_key(const char *what, std::string_view key, std::size_t least)
{
	const auto fail = [&](const std::string &why) {
		throw Error(std::string("invalid ") + what + ' ' + quoted(key) + ": " + why);
	};
	if (key.size() < least || key.size() > max_stream_bytes)
		fail("a key has 1 to " + std::to_string(max_stream_bytes) + " bytes");
	for (const char c : key)
		if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
			fail("a key has no control characters");
	if (!is_utf8(key))
		fail("a key is UTF-8");
}

} // namespace

void check_stream(std::string_view stream)
{
	check_key("stream", stream, 1);
}

void check_prefix(std::string_view prefix)
{
	check_key("prefix", prefix, 0);
}

} // namespace doorbell::detail
