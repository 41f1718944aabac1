// The page at `/`: page.html, which is built into the program.
#pragma once

#include "answer.hpp"

namespace command::serve {

// With a content security policy that allows nothing but this page's own script and style, by a nonce made for this
// answer, and requests to this server.
Answer page();

} // namespace command::serve
