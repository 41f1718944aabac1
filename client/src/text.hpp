// Text helpers shared by the pure parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace doorbell::detail {

// A seq as this library writes it: 1 to 19 digits, no leading zero but in "0", at most INT64_MAX.
std::optional<std::int64_t> parse_seq(std::string_view text) noexcept;

// `text` in quotes for an error message, one line: control characters escaped, shortened when long.
std::string quoted(std::string_view text);

// What the server would refuse, and with it whatever else is asked in the same request: a key is 1 to max_stream_bytes
// bytes of UTF-8 without control characters, a prefix may be empty. Error, naming the value.
void check_stream(std::string_view stream);
void check_prefix(std::string_view prefix);

// The text of a JSON string, as PostgreSQL writes it in a jsonb, added to `out`; false when `json` is no string.
bool unquote_json_string(std::string_view json, std::string &out);

} // namespace doorbell::detail
