#include "history.hpp"

namespace pg_doorbell {

uint64 history_id(Snapshot snapshot)
{
	Relation history = table_open(find_tables().history, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(history, nullptr);
	TableScanDesc scan = table_beginscan(history, snapshot, 0, nullptr);
	if (!table_scan_getnextslot(scan, ForwardScanDirection, slot))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("table doorbell.history is empty"),
				errhint("Its row is made by CREATE EXTENSION pg_doorbell; insert one with gen_random_uuid()."));
	bool isnull;
	const pg_uuid_t *uuid = DatumGetUUIDP(slot_getattr(slot, history_id_column, &isnull));
	uint64 id = 0;
	for (int i = 0; i < 8; i++)
		id = id << 8 | uuid->data[i];
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(history, AccessShareLock);
	return id;
}

[[noreturn]] static void refuse(const char *detail)
{
	ereport(ERROR, errcode(MAKE_SQLSTATE('D', 'B', '0', '0', '2')), errmsg("cursor belongs to another history"),
			errdetail_internal("%s", detail), errhint("Start again without a cursor."));
	pg_unreachable();
}

enum class Found { there, missing, another };

static Found find_witness(const Witness &witness, Relation event, const LowWaterTable &low_waters, Snapshot snapshot)
{
	const auto is_it = [&](Walk &walk) {
		return check_of(view_of(witness.stream), witness.seq, view_of(DatumGetTextPP(walk.column(event_type))),
						DatumGetTimestampTz(walk.column(event_appended_at))) == *witness.check;
	};
	Found found = Found::missing;
	if (witness.check.has_value()) {
		ScanKeyData keys[3] = {text_key(1, BTEqualStrategyNumber, witness.stream),
							   seq_key(2, BTGreaterStrategyNumber, witness.seq - 1),
							   seq_key(2, BTLessStrategyNumber, witness.seq + 1)};
		Walk visible = Walk::over(event, find_tables().event_pkey, snapshot, 3);
		visible.seek(keys, 3);
		if (visible.next())
			found = is_it(visible) ? Found::there : Found::another;
		visible.end();
		if (found == Found::missing) { // committed after this snapshot was taken?
			Walk any = Walk::over(event, find_tables().event_pkey, SnapshotAny, 3);
			any.seek(keys, 3);
			while (found == Found::missing && any.next())
				if (is_in_flight(any.slot, snapshot) && is_it(any))
					found = Found::there;
			any.end();
		}
	}
	if (found == Found::missing && (low_waters.read(witness.stream, snapshot) >= witness.seq ||
									low_waters.read(witness.stream, SnapshotSelf) >= witness.seq))
		found = Found::there; // trimmed, perhaps after this snapshot was taken
	return found;
}

void check_history(const AllCursor &cursor, Relation event, const LowWaterTable &low_waters, Snapshot snapshot,
				   const Unfinished &unfinished)
{
	const uint64 here = history_id(snapshot);
	if (cursor.history != here)
		refuse(psprintf("The cursor is of history %llx, this is history %llx.",
						static_cast<unsigned long long>(cursor.history), static_cast<unsigned long long>(here)));
	const uint64 newest = cursor.seen.xmax - 1;
	const bool recovery = RecoveryInProgress();
	if (!recovery && newest >= U64FromFullTransactionId(ReadNextFullTransactionId()))
		refuse(psprintf("Transaction %llu has not been yet.", static_cast<unsigned long long>(newest)));

	const auto check = [&](const Witness &witness, bool may_be_late) {
		if (witness.stream == nullptr)
			return;
		const Found found = find_witness(witness, event, low_waters, snapshot);
		if (found == Found::there || (found == Found::missing && may_be_late))
			return;
		refuse(psprintf(found == Found::another ? "Event %lld of stream \"%s\" is another one."
												: "Event %lld of stream \"%s\" does not exist.",
						static_cast<long long>(witness.seq), text_to_cstring(witness.stream)));
	};
	check(cursor.newest, recovery && (!cursor.newest.check.has_value() || unfinished.has(newest)));
	check(cursor.last, recovery);
}

} // namespace pg_doorbell
