#include "params.hpp"

#include <doorbell/error.hpp>

#include "oids.hpp"

#include <climits>
#include <utility>

namespace doorbell::detail {
namespace {

void put(std::string &out, std::uint64_t value, int bytes) // big-endian
{
	for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
		out += static_cast<char>(value >> shift & 0xff);
}

// An array of one dimension without nulls, ready for its elements.
std::string begin_array(unsigned element, std::size_t count)
{
	std::string out;
	put(out, count == 0 ? 0 : 1, 4); // dimensions
	put(out, 0, 4);					 // no nulls
	put(out, element, 4);
	if (count > 0) {
		put(out, count, 4);
		put(out, 1, 4); // lower bound
	}
	return out;
}

} // namespace

Params &Params::add(unsigned type, std::string bytes)
{
	if (bytes.size() > INT_MAX)
		throw Error("a parameter of " + std::to_string(bytes.size()) + " bytes is too long to be sent");
	all_.push_back({type, std::move(bytes)});
	return *this;
}

Params &Params::add_null(unsigned type)
{
	all_.push_back({type, std::nullopt});
	return *this;
}

Params &Params::text(std::string_view value)
{
	return add(oid::text, std::string(value));
}

Params &Params::text_or_null(const std::string_view *value)
{
	return value == nullptr ? add_null(oid::text) : text(*value);
}

Params &Params::int4(std::int32_t value)
{
	std::string bytes;
	put(bytes, static_cast<std::uint32_t>(value), 4);
	return add(oid::int4, std::move(bytes));
}

Params &Params::int8(std::int64_t value)
{
	std::string bytes;
	put(bytes, static_cast<std::uint64_t>(value), 8);
	return add(oid::int8, std::move(bytes));
}

Params &Params::int8_or_null(const std::int64_t *value)
{
	return value == nullptr ? add_null(oid::int8) : int8(*value);
}

Params &Params::text_array(const std::vector<std::string_view> &values)
{
	std::string bytes = begin_array(oid::text, values.size());
	for (const std::string_view value : values) {
		put(bytes, value.size(), 4);
		bytes += value;
	}
	return add(oid::text_array, std::move(bytes));
}

Params &Params::int8_array(const std::vector<std::int64_t> &values)
{
	std::string bytes = begin_array(oid::int8, values.size());
	for (const std::int64_t value : values) {
		put(bytes, 8, 4);
		put(bytes, static_cast<std::uint64_t>(value), 8);
	}
	return add(oid::int8_array, std::move(bytes));
}

} // namespace doorbell::detail
