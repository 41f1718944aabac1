// Low water: the largest seq of a stream that was trimmed away, 0 if none. It lives in doorbell.stream, which holds a
// row only for streams that were trimmed or configured, and it never decreases.
#pragma once

#include "tables.hpp"

namespace pg_doorbell {

// The table of low waters, open for reading. Opening can wait for a lock; reading cannot.
struct LowWaterTable {
	Relation table;
	Relation index;

	static LowWaterTable open();
	void close(); // the locks stay until the transaction ends
	int64 read(text *stream, Snapshot snapshot) const;
};
static_assert(std::is_trivially_destructible_v<LowWaterTable>);

} // namespace pg_doorbell
