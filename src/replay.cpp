#include "replay.hpp"

#include "args.hpp"
#include "in_flight.hpp"
#include "result.hpp"

namespace pg_doorbell {

static constexpr int entry_columns = 5;

Replayer Replayer::begin(FunctionCallInfo fcinfo, Snapshot snapshot)
{
	Replayer replayer;
	replayer.result_ = begin_result(fcinfo);
	replayer.snapshot_ = snapshot;
	replayer.event_ = table_open(find_tables_to_follow().event, AccessShareLock);
	replayer.visible_ = Walk::over(replayer.event_, find_tables().event_pkey, snapshot, 2);
	replayer.has_holes_ = false;
	replayer.row_ = static_cast<HeapTupleHeader>(palloc(MaxHeapTupleSize));
	return replayer;
}

void Replayer::end()
{
	if (has_holes_)
		holes_.end();
	visible_.end();
	table_close(event_, NoLock); // what was read may still point into the table's TOAST
}

bool Replayer::hole_is_settled(text *stream, int64 before, int64 after)
{
	if (!has_holes_) {
		holes_ = Walk::over(event_, visible_.index, SnapshotAny, 3);
		has_holes_ = true;
	}
	return nothing_in_flight_between(holes_, stream, before, after, snapshot_);
}

// doorbell.entry is the first columns of doorbell.event: so the row is copied as it lies there, and only its number of
// columns is changed. To take it apart and put it together again would cost a tenth of the whole.
void Replayer::give(TupleTableSlot *slot)
{
	HeapTupleData row = *reinterpret_cast<HeapTupleTableSlot *>(slot)->tuple;
	std::memcpy(row_, row.t_data, row.t_len);
	row.t_data = row_;
	HeapTupleHeaderSetNatts(row.t_data, entry_columns);
	tuplestore_puttuple(result_->setResult, &row);
}

int Replayer::replay(text *stream, int64 &after, int limit)
{
	ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, stream), seq_key(2, BTGreaterStrategyNumber, after)};
	visible_.seek(keys, 2);
	int given = 0;
	while (given < limit && visible_.next()) {
		const int64 seq = visible_.seq();
		if (seq != after + 1 && !hole_is_settled(stream, after, seq))
			break;
		give(visible_.slot);
		after = seq;
		given++;
		CHECK_FOR_INTERRUPTS();
	}
	return given;
}

DOORBELL_SQL_FUNCTION(doorbell_replay)
{
	text *stream = stream_argument(fcinfo, 0);
	int64 after = seq_argument(fcinfo, 1, "after_seq");
	const int max_events = max_events_argument(fcinfo, 2);
	Replayer replayer = Replayer::begin(fcinfo, GetActiveSnapshot());
	replayer.replay(stream, after, max_events);
	replayer.end();
	return Datum(0);
}

// Shares max_events by rounds: each stream that still has events gets an equal part of what is left.
DOORBELL_SQL_FUNCTION(doorbell_replay_many)
{
	const ArrayArgument streams = array_argument(fcinfo, 0, "streams", TEXTOID);
	const ArrayArgument after_seqs = array_argument(fcinfo, 1, "after_seqs", INT8OID);
	int left = max_events_argument(fcinfo, 2);
	check_same_length(streams, after_seqs);

	struct Reader {
		text *stream;
		int64 after;
	};
	auto *readers = static_cast<Reader *>(palloc(sizeof(Reader) * Max(streams.count, 1)));
	for (int i = 0; i < streams.count; i++)
		readers[i] = Reader{check_stream(DatumGetTextPP(streams.values[i])),
							check_least("after_seqs", DatumGetInt64(after_seqs.values[i]), 0)};

	Replayer replayer = Replayer::begin(fcinfo, GetActiveSnapshot());
	for (int count = streams.count; count > 0 && left > 0;) {
		const int part = Max(left / count, 1);
		int unfinished = 0;
		for (int i = 0; i < count && left > 0; i++) {
			const int limit = Min(part, left);
			const int given = replayer.replay(readers[i].stream, readers[i].after, limit);
			left -= given;
			if (given == limit)
				readers[unfinished++] = readers[i];
		}
		count = unfinished;
	}
	replayer.end();
	return Datum(0);
}

} // namespace pg_doorbell
