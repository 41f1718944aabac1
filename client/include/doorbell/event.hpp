// An event, as it lies in the table and as it is delivered, and its two texts: RFC 3339 time and JSON envelope.
//
// Threading: plain values and pure functions. Units: microseconds since 1970-01-01 00:00:00 UTC.
#pragma once

#include <doorbell/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace doorbell {

struct Event {
	std::string stream;
	std::int64_t seq = 0;
	std::string type;
	std::string payload; // JSON text, as PostgreSQL writes a jsonb: no line feeds, keys in jsonb's order
	std::int64_t appended_at = 0;
};

// "2026-03-01T12:00:00.000042Z": always UTC and six digits, so that texts sort like times (years 0001 to 9999).
DOORBELL_API std::string format_time(std::int64_t microseconds);

// Adds `text` (UTF-8) to `out` as a JSON string, quotes included. Bytes from 0x80 up are passed on as they are.
DOORBELL_API void append_json_string(std::string &out, std::string_view text);

// {"stream":…,"seq":…,"type":…,"appended_at":"…","payload":…} in this order, without spaces or a line feed of its own.
DOORBELL_API std::string format_envelope(const Event &event);

} // namespace doorbell
