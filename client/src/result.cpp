#include "result.hpp"

#include <doorbell/error.hpp>

#include "oids.hpp"

#include <cstring>
#include <string>

namespace doorbell::detail {
namespace {

constexpr std::int64_t postgres_epoch = 946'684'800'000'000; // 2000-01-01, in microseconds since 1970-01-01

std::uint64_t big_endian(std::string_view bytes)
{
	std::uint64_t value = 0;
	for (const char c : bytes)
		value = value << 8 | static_cast<unsigned char>(c);
	return value;
}

} // namespace

std::string_view Result::value(int row, int column, unsigned type) const
{
	if (PQftype(result_.get(), column) != type || PQfformat(result_.get(), column) != 1)
		throw Error("the server answered with an unexpected type in column " + std::to_string(column + 1));
	return std::string_view(PQgetvalue(result_.get(), row, column),
							static_cast<std::size_t>(PQgetlength(result_.get(), row, column)));
}

std::string_view Result::text(int row, int column) const
{
	return value(row, column, oid::text);
}

std::string_view Result::json(int row, int column) const
{
	const std::string_view bytes = value(row, column, oid::jsonb);
	if (bytes.empty() || bytes[0] != 1) // the one version of the binary format there is: 1, then the text
		throw Error("the server answered with an unknown version of jsonb");
	return bytes.substr(1);
}

std::int64_t Result::int8(int row, int column) const
{
	return static_cast<std::int64_t>(big_endian(value(row, column, oid::int8)));
}

bool Result::boolean(int row, int column) const
{
	return big_endian(value(row, column, oid::boolean)) != 0;
}

double Result::float8(int row, int column) const
{
	const std::uint64_t bits = big_endian(value(row, column, oid::float8));
	double number;
	static_assert(sizeof number == sizeof bits);
	std::memcpy(&number, &bits, sizeof number);
	return number;
}

std::int64_t Result::time(int row, int column) const
{
	return static_cast<std::int64_t>(big_endian(value(row, column, oid::timestamptz))) + postgres_epoch;
}

void read_entry(const Result &result, int row, Event &event)
{
	event.stream = result.text(row, 0);
	event.seq = result.int8(row, 1);
	event.type = result.text(row, 2);
	event.payload = result.json(row, 3);
	event.appended_at = result.time(row, 4);
}

} // namespace doorbell::detail
