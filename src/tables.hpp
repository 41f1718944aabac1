// The extension's tables, found once per backend and walked by index.
//
// 1. find_tables() resolves the tables and indexes by name and keeps their oids; any change of them that the relation
//    cache hears of (DROP EXTENSION, REINDEX CONCURRENTLY), or of a subscription, makes it look again.
// 2. A Walk is one index scan: begin, next…, end. An error in between needs no end: the transaction's abort frees it.
// 3. The snapshot says what a walk sees: an MVCC snapshot what readers see, SnapshotDirty also what is in flight,
//    SnapshotAny every row version that is still there.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

enum EventColumn : AttrNumber {
	event_stream = 1,
	event_seq,
	event_type,
	event_payload,
	event_appended_at,
	event_xid,
	event_event_id,
	event_columns = event_event_id
};

enum StreamColumn : AttrNumber { stream_key = 1, stream_low_water, stream_trimmed_xid, stream_trim_xid };

enum HistoryColumn : AttrNumber { history_id_column = 1 };

struct Tables {
	Oid event;
	Oid event_pkey;
	Oid event_xid_idx;
	Oid event_id_idx;
	Oid stream;
	Oid stream_pkey;
	Oid stream_trimmed_idx;
	Oid stream_trim_idx;
	Oid history;
	bool is_replicated; // doorbell.event is the target of a subscription
};

const Tables &find_tables(); // raises an error where the extension is not installed

// The same for those who follow: refused where logical replication fills the table, because what is in flight on the
// publisher is not in flight here, so that a hole would be taken for a void.
const Tables &find_tables_to_follow();

bool tables_exist();
void watch_tables(); // once, when the library is loaded

// Scan keys for the index columns. The number is the column's place in the index.
ScanKeyData text_key(AttrNumber number, StrategyNumber strategy, text *value);
ScanKeyData seq_key(AttrNumber number, StrategyNumber strategy, int64 value);
ScanKeyData xid_key(StrategyNumber strategy, uint64 xid); // for the indexes on one xid

// A 32-bit xid of now, none of which is ahead of the next one to be assigned, with its epoch.
uint64 with_epoch(TransactionId xid);

struct Walk {
	Relation table;
	Relation index;
	IndexScanDesc scan;
	TupleTableSlot *slot; // the row that next() found
	bool own_index;

	// Opens an index of an open table. The table's lock covers the rows, the index gets one of its own.
	static Walk over(Relation table, Oid index, Snapshot snapshot, int nkeys);
	// The same on an index that is open already, and stays open.
	static Walk over(Relation table, Relation index, Snapshot snapshot, int nkeys);

	// Starts, or starts again, at the rows that the keys select; always as many keys as were announced.
	void seek(ScanKeyData *keys, int nkeys)
	{
		Assert(nkeys == scan->numberOfKeys);
		index_rescan(scan, keys, nkeys, nullptr, 0);
	}
	bool next(ScanDirection direction = ForwardScanDirection) { return index_getnext_slot(scan, direction, slot); }
	void end();

	Datum column(AttrNumber number)
	{
		bool isnull;
		return slot_getattr(slot, number, &isnull);
	}
	int64 seq() { return DatumGetInt64(column(event_seq)); }
	uint64 xid(AttrNumber number = event_xid)
	{
		return U64FromFullTransactionId(DatumGetFullTransactionId(column(number)));
	}
};
static_assert(std::is_trivially_destructible_v<Walk>);

inline std::string_view view_of(const text *value)
{
	return std::string_view(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
}

inline bool starts_with(std::string_view value, std::string_view prefix)
{
	return value.substr(0, prefix.size()) == prefix;
}

} // namespace pg_doorbell
