#include "args.hpp"

#include "doorbell/pointer.hpp"
#include "tables.hpp"

namespace pg_doorbell {

static void check_no_control_characters(const char *what, const text *value)
{
	const std::string_view bytes = view_of(value);
	for (std::size_t i = 0; i < bytes.size(); i++) {
		const auto byte = static_cast<unsigned char>(bytes[i]);
		if (byte < 0x20 || byte == 0x7f)
			ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("%s must not contain control characters: \"%s\"", what, text_to_cstring(value)),
					errdetail("Byte %d is 0x%02x.", static_cast<int>(i) + 1, byte));
	}
}

text *check_key(const char *what, text *key)
{
	const std::size_t bytes = VARSIZE_ANY_EXHDR(key);
	if (bytes == 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be empty", what));
	if (bytes > doorbell::max_stream_bytes) {
		const char *start = VARDATA_ANY(key);
		const int shown = pg_mbcliplen(start, static_cast<int>(bytes), 64);
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s is too long: \"%.*s…\"", what, shown, start),
				errdetail("It has %zu bytes; the limit is %zu bytes.", bytes, doorbell::max_stream_bytes));
	}
	check_no_control_characters(what, key);
	return key;
}

text *check_stream(text *stream)
{
	return check_key("stream key", stream);
}

text *check_type(text *type)
{
	if (VARSIZE_ANY_EXHDR(type) == 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("event type must not be empty"));
	check_no_control_characters("event type", type);
	return type;
}

void refuse_null_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name));
}

text *stream_argument(FunctionCallInfo fcinfo, int number)
{
	refuse_null_argument(fcinfo, number, "stream");
	return check_stream(PG_GETARG_TEXT_PP(number));
}

text *consumer_argument(FunctionCallInfo fcinfo, int number)
{
	refuse_null_argument(fcinfo, number, "consumer");
	return check_key("consumer name", PG_GETARG_TEXT_PP(number));
}

int64 check_least(const char *name, int64 value, int64 least)
{
	if (value < least)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s must be at least %lld: %lld", name, static_cast<long long>(least),
					   static_cast<long long>(value)));
	return value;
}

int64 seq_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	refuse_null_argument(fcinfo, number, name);
	return check_least(name, PG_GETARG_INT64(number), 0);
}

Interval *interval_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	Interval zero = {};
	Interval *value = PG_GETARG_INTERVAL_P(number);
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp, IntervalPGetDatum(value), IntervalPGetDatum(&zero))) <= 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s must be more than 0: %s", name,
					   DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(value)))));
	return value;
}

int max_events_argument(FunctionCallInfo fcinfo, int number)
{
	refuse_null_argument(fcinfo, number, "max_events");
	return static_cast<int>(check_least("max_events", PG_GETARG_INT32(number), 1));
}

ArrayArgument array_argument(FunctionCallInfo fcinfo, int number, const char *name, Oid element)
{
	refuse_null_argument(fcinfo, number, name);
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(number);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s must be a one-dimensional array: it has %d dimensions", name, ARR_NDIM(array)));

	int16 length;
	bool by_value;
	char align;
	get_typlenbyvalalign(element, &length, &by_value, &align);
	ArrayArgument argument{name, nullptr, 0};
	bool *nulls;
	deconstruct_array(array, element, length, by_value, align, &argument.values, &nulls, &argument.count);
	for (int i = 0; i < argument.count; i++)
		if (nulls[i])
			ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not contain nulls", name),
					errdetail("Element %d is null.", i + 1));
	return argument;
}

void check_same_length(const ArrayArgument &a, const ArrayArgument &b)
{
	if (a.count != b.count)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s and %s must have the same length: %d and %d", a.name, b.name, a.count, b.count));
}

} // namespace pg_doorbell
