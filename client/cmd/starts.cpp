#include "starts.hpp"

#include <doorbell/cursor.hpp>

namespace command {

std::vector<doorbell::Start> parse_starts(std::string_view after, std::size_t streams)
{
	using doorbell::Start;
	if (after == "now" || after == "0")
		return std::vector<Start>(streams, after == "now" ? Start::now() : Start::beginning());
	std::vector<Start> starts;
	if (after.find_first_of(",-") == std::string_view::npos) {
		starts.assign(streams, Start::after(doorbell::parse_mark(after)));
	} else {
		for (const doorbell::Mark mark : doorbell::parse_cursor(after, streams))
			starts.push_back(Start::after(mark));
	}
	return starts;
}

} // namespace command
