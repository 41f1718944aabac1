#include "failpoint.hpp"

namespace doorbell::detail {

std::function<bool(std::string_view)> failpoint;

} // namespace doorbell::detail
