// What is in flight for a snapshot: rows that it cannot see, and that are events already or may yet become some.
//
// 1. A row version is in flight if its inserter is unfinished for the snapshot (running when it was taken, or started
//    later) and has not rolled back since. "Committed after our snapshot" is in flight too: later reads will see it.
// 2. Only the inserter counts. A row that was committed AND trimmed after our snapshot was taken is still in flight:
//    to call it void would hide a hole from a reader whose low water is as old as its snapshot. (It cannot have been
//    vacuumed away: our snapshot holds that back.)
// 3. A row that is not in flight and not visible is void or trimmed, for ever.
//
// All this is told by the data and the transaction status alone, so it holds on a hot standby as well.
#pragma once

#include "tables.hpp"

namespace pg_doorbell {

// For the row version that a walk with SnapshotAny is at.
bool is_in_flight(TupleTableSlot *slot, Snapshot snapshot);

// Whether no row of the stream strictly between the two seqs is in flight. `versions` is a walk of the primary key with
// SnapshotAny and room for three keys.
bool nothing_in_flight_between(Walk &versions, text *stream, int64 before, int64 after, Snapshot snapshot);

// The transactions that are unfinished for a snapshot: those that it lists as running, all from its xmax on, and our
// own, whatever of it we see. On a standby the list has subtransactions too, which own no row.
struct Unfinished {
	uint64 xmax;
	uint64 *running; // ascending, below xmax
	int count;

	static Unfinished of(Snapshot snapshot);
	bool has(uint64 xid) const;
};
static_assert(std::is_trivially_destructible_v<Unfinished>);

// Walks, through the index on xid, every row that is in flight for a snapshot, in no useful order.
//
// event.xid is the appending top-level transaction. Candidates are the transactions that the snapshot lists as running,
// all from its xmax on, and our own (a row of the running command is not visible yet). On a standby the running ones
// are in the list of subtransactions; should that list have overflowed, only subtransactions are missing from it. The
// row itself has the last word, so an xid from another cluster, in a restored table, does no harm.
class InFlightRows {
public:
	static InFlightRows of(Relation event, Snapshot snapshot);
	bool next();
	void end() { walk_.end(); }

	TupleTableSlot *slot() const { return walk_.slot; }

private:
	enum class Source { own, running, running_subtransactions, later, none };

	bool seek_next_source();
	void seek_xid(uint64 xid, StrategyNumber strategy);

	Walk walk_;
	Snapshot snapshot_;
	Source source_;
	uint32 position_; // in the source's list
	bool at_rows_;	  // the walk stands at rows of the source
};
static_assert(std::is_trivially_destructible_v<InFlightRows>);

} // namespace pg_doorbell
