// Parameters of a query, in PostgreSQL's binary formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::detail {

class Params {
public:
	Params &text(std::string_view value);
	Params &text_or_null(const std::string_view *value);
	Params &int4(std::int32_t value);
	Params &int8(std::int64_t value);
	Params &int8_or_null(const std::int64_t *value);
	Params &text_array(const std::vector<std::string_view> &values);
	Params &int8_array(const std::vector<std::int64_t> &values);

	struct Param {
		unsigned type;					  // oid
		std::optional<std::string> bytes; // nothing: NULL
	};

	const std::vector<Param> &all() const noexcept { return all_; }

private:
	Params &add(unsigned type, std::string bytes);
	Params &add_null(unsigned type);

	std::vector<Param> all_;
};

} // namespace doorbell::detail
