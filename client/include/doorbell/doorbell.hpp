// Everything in libdoorbell. See subscriber.hpp for following streams, log.hpp for appending and reading.
#pragma once

#include <doorbell/backoff.hpp>
#include <doorbell/connect.hpp>
#include <doorbell/cursor.hpp>
#include <doorbell/error.hpp>
#include <doorbell/event.hpp>
#include <doorbell/high_water.hpp>
#include <doorbell/listener.hpp>
#include <doorbell/log.hpp>
#include <doorbell/pointer.hpp>
#include <doorbell/sse.hpp>
#include <doorbell/stream.hpp>
#include <doorbell/streamer.hpp>
#include <doorbell/subscriber.hpp>

namespace doorbell {

inline constexpr const char *version = "0.1.0";

} // namespace doorbell
