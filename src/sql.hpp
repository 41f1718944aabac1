// SQL on the extension's own tables, for what is not worth writing by hand: a statement is planned once per backend.
//
// Tables in it are schema-qualified; the rest is found in pg_catalog, because the caller has pinned the search_path:
// the SQL function by SECURITY DEFINER SET search_path, the ringer when it starts.
#pragma once

#include "pg.hpp"

#include <initializer_list>

namespace pg_doorbell {

inline constexpr std::size_t max_values = 6;

struct Statement {
	const char *sql;
	int expected;		   // SPI_OK_…
	Oid types[max_values]; // of its parameters
	SPIPlanPtr plan;	   // null until it is first run
};
static_assert(std::is_trivially_destructible_v<Statement>);

inline NullableDatum value_of(Datum value)
{
	return NullableDatum{value, false};
}
inline NullableDatum value_of(const void *pointer) // null stands for NULL
{
	return NullableDatum{PointerGetDatum(pointer), pointer == nullptr};
}

// Runs it between SPI_connect() and SPI_finish(); returns the number of rows. Each sees what was committed before it,
// as the caller's isolation level has it, or with `stable` what the calling statement sees.
uint64 run(Statement &statement, std::initializer_list<NullableDatum> values, bool stable = false);

// A column of a row that the last statement returned; it lives until SPI_finish().
NullableDatum returned(uint64 row, int column);

} // namespace pg_doorbell
