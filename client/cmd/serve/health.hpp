// The answer of /healthz: 200 while events arrive, 503 while the database cannot be reached.
#pragma once

#include "answer.hpp"

#include <doorbell/streamer.hpp>

namespace command::serve {

Answer health(const doorbell::Streamer &streamer);

} // namespace command::serve
