// The target of a request line, taken apart: "/v1/streams/repo%3Afoo?after=0" or the same with "http://host" before it.
//
// 1. Percent-escapes are two hexadecimal digits, else Refusal. In the query '+' is a space, in the path it is itself.
// 2. The path is decoded by whoever knows what it means, so that an escaped slash is no separator.
//
// Threading: pure functions. No limits of its own: the head that it comes from has one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command::serve {

std::string percent_decoded(std::string_view text, bool plus_is_space);

struct Target {
	std::string path; // as it came, from the first slash
	std::vector<std::pair<std::string, std::string>> query;

	// The first value of a parameter; null when it is not there.
	const std::string *find(std::string_view name) const;
};

Target parse_target(std::string_view text);

} // namespace command::serve
