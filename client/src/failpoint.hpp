// Faults that tests put where no test could hit by timing. Without a test, a null check and nothing else.
#pragma once

#include <functional>
#include <string_view>

namespace doorbell::detail {

namespace place {
inline constexpr std::string_view history_read = "history_read"; // LISTEN is confirmed, the sweep is about to be sent
inline constexpr std::string_view ring = "ring";				 // a ring was received; true: it gets lost
inline constexpr std::string_view self_ring = "self_ring"; // the listener's own ring was heard; true: it gets lost
} // namespace place

// Called with the place that is reached; true makes the fault happen. Set it before, clear it after using the library.
extern std::function<bool(std::string_view)> failpoint;

inline bool fault(std::string_view at)
{
	return failpoint && failpoint(at);
}

} // namespace doorbell::detail
