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

} // namespace doorbell::detail
