// What the client itself reads in a cursor of doorbell.replay_all.
#pragma once

#include <string_view>

namespace doorbell::detail {

// What the cursor's holder has, if it is at the end of a window; else empty. Those for whom it is the same have the same
// events. It is a part of the cursor.
std::string_view extent_of(std::string_view cursor) noexcept;

} // namespace doorbell::detail
