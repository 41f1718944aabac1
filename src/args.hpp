// Checks of what callers give, before any work: each returns the value or raises an error that names it.
// NULL where none is allowed is 22004, any other bad value 22023. Nothing is stored by a call that fails.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

// A key: 1 to 512 bytes, no control characters; `what` is what the error calls it.
text *check_key(const char *what, text *key);
text *check_stream(text *stream);
text *stream_argument(FunctionCallInfo fcinfo, int number);
text *consumer_argument(FunctionCallInfo fcinfo, int number);
// An event type: not empty, no control characters.
text *check_type(text *type);
// A seq, or any other count that is never below `least`; `name` is the argument's name for the error.
int64 check_least(const char *name, int64 value, int64 least);
int64 seq_argument(FunctionCallInfo fcinfo, int number, const char *name);
// An interval of some length.
Interval *interval_argument(FunctionCallInfo fcinfo, int number, const char *name);
int max_events_argument(FunctionCallInfo fcinfo, int number);

void refuse_null_argument(FunctionCallInfo fcinfo, int number, const char *name);

// A one-dimensional array without NULLs, taken apart.
struct ArrayArgument {
	const char *name;
	Datum *values;
	int count;
};
ArrayArgument array_argument(FunctionCallInfo fcinfo, int number, const char *name, Oid element);
void check_same_length(const ArrayArgument &a, const ArrayArgument &b);

} // namespace pg_doorbell
