#include "text.hpp"

#include <doorbell/event.hpp>

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

} // namespace doorbell::detail
