// Where the streams that a request names begin, from the text of --after, ?after= or Last-Event-ID.
#pragma once

#include <doorbell/subscriber.hpp>

#include <string_view>
#include <vector>

namespace command {

// "now"; "0", the beginning; a seq, for each of them; or a cursor of as many marks as there are streams. Throws
// doorbell::Error, which names the text.
std::vector<doorbell::Start> parse_starts(std::string_view after, std::size_t streams);

} // namespace command
