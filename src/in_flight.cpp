#include "in_flight.hpp"

namespace pg_doorbell {

bool is_in_flight(TupleTableSlot *slot, Snapshot snapshot)
{
	auto *heap_slot = reinterpret_cast<BufferHeapTupleTableSlot *>(slot);
	HeapTupleHeader row = heap_slot->base.tuple->t_data;

	LockBuffer(heap_slot->buffer, BUFFER_LOCK_SHARE);
	const bool decided = HeapTupleHeaderXminInvalid(row) || HeapTupleHeaderXminFrozen(row);
	const TransactionId inserter = HeapTupleHeaderGetRawXmin(row);
	const CommandId command = TransactionIdIsCurrentTransactionId(inserter) ? HeapTupleHeaderGetCmin(row) : 0;
	LockBuffer(heap_slot->buffer, BUFFER_LOCK_UNLOCK);

	if (decided)
		return false;
	if (TransactionIdIsCurrentTransactionId(inserter))
		return command >= snapshot->curcid;
	if (!XidInMVCCSnapshot(inserter, snapshot))
		return false;
	return TransactionIdIsInProgress(inserter) || TransactionIdDidCommit(inserter);
}

bool nothing_in_flight_between(Walk &versions, text *stream, int64 before, int64 after, Snapshot snapshot)
{
	ScanKeyData keys[3] = {text_key(1, BTEqualStrategyNumber, stream), seq_key(2, BTGreaterStrategyNumber, before),
						   seq_key(2, BTLessStrategyNumber, after)};
	versions.seek(keys, 3);
	while (versions.next()) {
		if (is_in_flight(versions.slot, snapshot))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

static int compare_xids(const void *a, const void *b)
{
	const uint64 left = *static_cast<const uint64 *>(a);
	const uint64 right = *static_cast<const uint64 *>(b);
	return (left > right) - (left < right);
}

Unfinished Unfinished::of(Snapshot snapshot)
{
	const bool recovery = snapshot->takenDuringRecovery;
	const uint32 subtransactions = recovery ? static_cast<uint32>(snapshot->subxcnt) : 0;
	Unfinished unfinished;
	unfinished.xmax = with_epoch(snapshot->xmax);
	unfinished.running = static_cast<uint64 *>(palloc(sizeof(uint64) * (snapshot->xcnt + subtransactions + 1)));
	unfinished.count = 0;
	for (uint32 i = 0; i < snapshot->xcnt; i++)
		unfinished.running[unfinished.count++] = with_epoch(snapshot->xip[i]);
	for (uint32 i = 0; i < subtransactions; i++)
		unfinished.running[unfinished.count++] = with_epoch(snapshot->subxip[i]);
	const uint64 own = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
	if (own != 0 && own < unfinished.xmax)
		unfinished.running[unfinished.count++] = own;
	qsort(unfinished.running, unfinished.count, sizeof(uint64), compare_xids);
	return unfinished;
}

bool Unfinished::has(uint64 xid) const
{
	return xid >= xmax || bsearch(&xid, running, count, sizeof(uint64), compare_xids) != nullptr;
}

InFlightRows InFlightRows::of(Relation event, Snapshot snapshot)
{
	InFlightRows rows;
	rows.walk_ = Walk::over(event, find_tables().event_xid_idx, SnapshotAny, 1);
	rows.snapshot_ = snapshot;
	rows.source_ = Source::own;
	rows.position_ = 0;
	rows.at_rows_ = false;
	return rows;
}

void InFlightRows::seek_xid(uint64 xid, StrategyNumber strategy)
{
	ScanKeyData key = xid_key(strategy, xid);
	walk_.seek(&key, 1);
	at_rows_ = true;
}

// Stands at the rows of the next candidate; false when there is none left.
bool InFlightRows::seek_next_source()
{
	for (;;) {
		switch (source_) {
		case Source::own: {
			source_ = Source::running;
			const FullTransactionId own = GetTopFullTransactionIdIfAny();
			if (!FullTransactionIdIsValid(own))
				continue;
			seek_xid(U64FromFullTransactionId(own), BTEqualStrategyNumber);
			return true;
		}
		case Source::running:
			if (position_ < snapshot_->xcnt) {
				seek_xid(with_epoch(snapshot_->xip[position_++]), BTEqualStrategyNumber);
				return true;
			}
			source_ = snapshot_->takenDuringRecovery ? Source::running_subtransactions : Source::later;
			position_ = 0;
			continue;
		case Source::running_subtransactions:
			if (position_ < static_cast<uint32>(snapshot_->subxcnt)) {
				seek_xid(with_epoch(snapshot_->subxip[position_++]), BTEqualStrategyNumber);
				return true;
			}
			source_ = Source::later;
			continue;
		case Source::later:
			source_ = Source::none;
			seek_xid(with_epoch(snapshot_->xmax), BTGreaterEqualStrategyNumber);
			return true;
		case Source::none:
			return false;
		}
	}
}

bool InFlightRows::next()
{
	for (;;) {
		if (!at_rows_ && !seek_next_source())
			return false;
		while (walk_.next())
			if (is_in_flight(walk_.slot, snapshot_))
				return true;
		at_rows_ = false;
		CHECK_FOR_INTERRUPTS();
	}
}

} // namespace pg_doorbell
