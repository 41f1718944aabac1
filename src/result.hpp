// The result of a set-returning function that gives a page of events.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

// As InitMaterializedSRF, but in memory that the backend keeps.
ReturnSetInfo *begin_result(FunctionCallInfo fcinfo);

} // namespace pg_doorbell
