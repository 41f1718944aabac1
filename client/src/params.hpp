// Parameters of a query, in PostgreSQL's binary formats.
#pragma once

#include <cstdint>
#include <deque>
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

	int count() const noexcept { return static_cast<int>(values_.size()); }
	const unsigned *types() const noexcept { return types_.data(); }
	const char *const *values() const noexcept { return values_.data(); }
	const int *lengths() const noexcept { return lengths_.data(); }
	const int *formats() const noexcept { return formats_.data(); }

private:
	Params &add(unsigned type, std::string bytes);
	Params &add_null(unsigned type);

	std::deque<std::string> bytes_; // a deque, because values_ points into its elements
	std::vector<unsigned> types_;
	std::vector<const char *> values_;
	std::vector<int> lengths_;
	std::vector<int> formats_;
};

} // namespace doorbell::detail
