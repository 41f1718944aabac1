// The rows of an answer, in PostgreSQL's binary formats. Asking for another type than the column's throws.
#pragma once

#include <doorbell/event.hpp>

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace doorbell::detail {

class Result {
public:
	explicit Result(PGresult *result) : result_(result) {}

	int rows() const noexcept { return PQntuples(result_.get()); }
	bool is_null(int row, int column) const noexcept { return PQgetisnull(result_.get(), row, column) != 0; }
	std::string_view text(int row, int column) const;
	std::string_view json(int row, int column) const; // jsonb
	std::int64_t int8(int row, int column) const;
	bool boolean(int row, int column) const;
	double float8(int row, int column) const;
	std::int64_t time(int row, int column) const; // timestamptz, in microseconds since 1970

	PGresult *get() const noexcept { return result_.get(); }

private:
	struct Clear {
		void operator()(PGresult *result) const noexcept { PQclear(result); }
	};

	std::string_view value(int row, int column, unsigned type) const;

	std::unique_ptr<PGresult, Clear> result_;
};

// Reads the five columns of doorbell.entry into `event`, whose strings are used again.
void read_entry(const Result &result, int row, Event &event);

} // namespace doorbell::detail
