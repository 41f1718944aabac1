// Waiting for descriptors, for those whose loop has more than one thing in it.
#pragma once

#include <doorbell/connect.hpp>

#include <vector>

namespace command {

// Returns when a descriptor is ready, the deadline has passed, a signal came, or a minute is over.
void wait(const std::vector<doorbell::Descriptor> &descriptors, doorbell::Clock::time_point deadline);

} // namespace command
