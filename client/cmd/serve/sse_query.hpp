// What a request for streams asks for.
//
//   /v1/streams/{key}      one stream, percent-encoded: its payloads
//   /v1/events             ?stream= (any number of times), ?prefix= (the same), or all streams: envelopes
//   ?after=                N, a cursor, 0 (the beginning) or now; Last-Event-ID wins. With prefixes, and for
//                          all streams, the cursor is one of doorbell.replay_all, and there is no N.
//   ?named=0 ?raw=1 ?envelope=1
//
// Threading: pure. Errors: Refusal 400.
#pragma once

#include "head.hpp"
#include "url.hpp"

#include <doorbell/streamer.hpp>

#include <string_view>

namespace command::serve {

constexpr std::string_view stream_path = "/v1/streams/";
constexpr std::string_view events_path = "/v1/events";

doorbell::SseRequest parse_sse_request(const Head &head, const Target &target, std::size_t max_streams);

} // namespace command::serve
