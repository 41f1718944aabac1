#include "url.hpp"

#include "answer.hpp"

#include <algorithm>

namespace command::serve {

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

std::string percent_decoded(std::string_view text, bool plus_is_space)
{
	std::string out;
	out.reserve(text.size());
	for (std::size_t i = 0; i < text.size(); i++) {
		if (text[i] == '+' && plus_is_space) {
			out += ' ';
		} else if (text[i] != '%') {
			out += text[i];
		} else {
			const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
			const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
			if (high < 0 || low < 0)
				throw Refusal(400, "a percent sign must be followed by two hexadecimal digits");
			out += static_cast<char>(high * 16 + low);
			i += 2;
		}
	}
	return out;
}

const std::string *Target::find(std::string_view name) const
{
	const auto found =
		std::find_if(query.begin(), query.end(), [name](const auto &parameter) { return parameter.first == name; });
	return found == query.end() ? nullptr : &found->second;
}

// Without scheme and authority, which only proxies need.
static std::string_view origin_form(std::string_view text)
{
	const std::size_t scheme = text.find("://");
	if (text.empty() || text[0] == '/' || scheme == std::string_view::npos || scheme > text.find_first_of("/?"))
		return text;
	const std::size_t end = text.find_first_of("/?", scheme + 3);
	return end == std::string_view::npos ? std::string_view() : text.substr(end);
}

Target parse_target(std::string_view text)
{
	text = origin_form(text);
	const std::size_t mark = text.find('?');
	Target target;
	target.path = text.substr(0, mark);
	if (target.path.empty())
		target.path = "/";
	std::string_view rest = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
	while (!rest.empty()) {
		const std::size_t end = std::min(rest.find('&'), rest.size());
		const std::string_view parameter = rest.substr(0, end);
		rest.remove_prefix(std::min(end + 1, rest.size()));
		if (parameter.empty())
			continue;
		const std::size_t equals = std::min(parameter.find('='), parameter.size());
		target.query.emplace_back(percent_decoded(parameter.substr(0, equals), true),
								  percent_decoded(parameter.substr(std::min(equals + 1, parameter.size())), true));
	}
	return target;
}

} // namespace command::serve
