// Server-Sent Events to the byte, after the WHATWG rules for `text/event-stream`. Each function adds one frame to
// `out`.
//
// 1. Only an event carries an `id:` line (its cursor; none when that is empty). Control frames, comments and retry
// never do, so none of them
//    moves a browser's Last-Event-ID.
// 2. `event:` is left out for the type "message" and for an empty one, which mean the same to a browser.
// 3. Data is split at LF, CR and CRLF, one `data:` line each; a browser joins them with LF. Empty data is one empty
//    `data:` line (without it, the browser would drop the event). JSON payloads hold no line ends, so they arrive as
//    they were.
// 4. An id, type or comment with CR, LF or NUL would break the frame: Error, and `out` is unchanged.
//
// Threading: pure functions.
#pragma once

#include <doorbell/event.hpp>
#include <doorbell/export.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace doorbell::sse {

DOORBELL_API void append_event(std::string &out, std::string_view id, std::string_view type, std::string_view data);

// A comment: a greeting, or with an empty text the heartbeat ":".
DOORBELL_API void append_comment(std::string &out, std::string_view text = {});

// How long a browser waits before it reconnects.
DOORBELL_API void append_retry(std::string &out, std::chrono::milliseconds delay);

// Control frames: `doorbell:gap`, `doorbell:reset`, `doorbell:shutdown`, with JSON data and no id.
DOORBELL_API void append_gap(std::string &out, std::string_view stream, std::int64_t asked, std::int64_t low_water);
DOORBELL_API void append_reset(std::string &out, std::string_view stream, std::int64_t asked, std::int64_t low_water);

// The same for connections of prefixes and all streams, who have one cursor for everything.
DOORBELL_API void append_gap(std::string &out, std::string_view stream, std::int64_t low_water);
DOORBELL_API void append_reset(std::string &out, std::string_view asked_cursor);

DOORBELL_API void append_shutdown(std::string &out);

} // namespace doorbell::sse
