#include "append.hpp"

#include "args.hpp"
#include "low_water.hpp"
#include "ring.hpp"
#include "stream_lock.hpp"
#include "tables.hpp"
#include "tail.hpp"
#include "writer.hpp"

namespace pg_doorbell {

// Where this backend last saw the end of a stream. A scan of the primary key reads all of the stream that is on the
// index page before it gives its first row; bounded by a recent seq it reads only what was appended since. A hint that
// is wrong (rolled back, trimmed, another stream of the same hash) costs a second scan and nothing else.
struct TailHint {
	uint64 hash;
	int64 seq;
};
static TailHint tail_hints[4096];

static TailHint &tail_hint(uint64 hash)
{
	return tail_hints[hash % lengthof(tail_hints)];
}

// The largest live seq of the stream; nothing when no row is live. Needs the stream's lock.
static std::optional<Tail> find_tail(const EventWriter &writer, text *stream, uint64 hash)
{
	SnapshotData dirty;
	InitDirtySnapshot(dirty);
	const TailHint &hint = tail_hint(hash);
	ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, stream),
						   seq_key(2, BTGreaterStrategyNumber, hint.seq - 1)};
	Walk walk = Walk::over(writer.table(), writer.pkey(), &dirty, 2);
	bool found = false;
	if (hint.hash == hash && hint.seq > 0) {
		walk.seek(keys, 2);
		found = walk.next(BackwardScanDirection);
	}
	if (!found) {
		keys[1] = seq_key(2, BTGreaterStrategyNumber, 0);
		walk.seek(keys, 2);
		found = walk.next(BackwardScanDirection);
	}
	std::optional<Tail> tail;
	if (found)
		tail = Tail{walk.seq(), DatumGetTimestampTz(walk.column(event_appended_at))};
	walk.end();
	return tail;
}

// A live event with the same event_id, and the transaction to wait for while that is somebody's open one.
struct Twin {
	int64 seq;
	TransactionId open_transaction;
};

static std::optional<Twin> find_twin(const EventWriter &writer, text *stream, const pg_uuid_t *event_id)
{
	SnapshotData dirty;
	InitDirtySnapshot(dirty);
	ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, stream)};
	ScanKeyEntryInitialize(&keys[1], 0, 2, BTEqualStrategyNumber, InvalidOid, InvalidOid, F_UUID_EQ,
						   UUIDPGetDatum(event_id));
	Walk walk = Walk::over(writer.table(), writer.id_index(), &dirty, 2);
	walk.seek(keys, 2);
	std::optional<Twin> twin;
	if (walk.next())
		twin = Twin{walk.seq(), dirty.xmin};
	walk.end();
	return twin;
}

static void check_expected_seq(text *stream, std::optional<int64> expected, int64 actual)
{
	if (expected.has_value() && *expected != actual)
		ereport(ERROR, errcode(MAKE_SQLSTATE('D', 'B', '0', '0', '1')),
				errmsg("stream \"%s\" is not at the expected seq", text_to_cstring(stream)),
				errdetail("Stream \"%s\": expected seq %lld, actual seq %lld.", text_to_cstring(stream),
						  static_cast<long long>(*expected), static_cast<long long>(actual)),
				errhint("Replay the stream, decide again, and append with the actual seq."));
}

int64 append_events(text *stream, const NewEvent *events, int count, const AppendOptions &options)
{
	PreventCommandIfReadOnly("doorbell.append()");
	PreventCommandIfParallelMode("doorbell.append()");

	EventWriter writer = EventWriter::open(count, options.event_id != nullptr);
	std::optional<LowWaterTable> low_waters; // opened when it is needed, and never under the lock
	const uint64 hash = hash_of(stream);
	StreamLock lock(hash);
	int64 last_seq = 0;
	for (;;) {
		lock.acquire();
		if (options.event_id != nullptr) {
			const std::optional<Twin> twin = find_twin(writer, stream, options.event_id);
			if (twin.has_value()) {
				lock.release();
				if (TransactionIdIsValid(twin->open_transaction)) {
					XactLockTableWait(twin->open_transaction, nullptr, nullptr, XLTW_None);
					continue;
				}
				last_seq = twin->seq;
				break;
			}
		}

		std::optional<Tail> tail = recall_tail(writer.table(), stream, hash);
		if (!tail.has_value())
			tail = find_tail(writer, stream, hash);
		if (!tail.has_value()) {
			if (!low_waters.has_value()) {
				lock.release();
				low_waters = LowWaterTable::open();
				continue;
			}
			// The snapshot is younger than the scan: it sees the low water of a trim that emptied the stream.
			Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
			tail = Tail{low_waters->read(stream, snapshot), 0};
			UnregisterSnapshot(snapshot);
		}
		check_expected_seq(stream, options.expected_seq, tail->seq);
		const TimestampTz appended_at = Max(GetCurrentTimestamp(), tail->appended_at);
		const ItemPointerData row = writer.store(stream, events, options.event_id, tail->seq + 1, appended_at);
		last_seq = tail->seq + count;
		remember_tail(writer.table(), hash, Tail{last_seq, appended_at}, row);
		lock.release();

		tail_hint(hash) = TailHint{hash, last_seq};
		writer.fire_triggers();
		note_ring(stream, last_seq, count);
		break;
	}
	if (low_waters.has_value())
		low_waters->close();
	writer.close();
	return last_seq;
}

// A payload as it can be stored: never a pointer into another table's TOAST.
static Datum payload_argument(Datum payload)
{
	auto *value = reinterpret_cast<struct varlena *>(DatumGetPointer(payload));
	if (VARATT_IS_EXTERNAL(value))
		value = detoast_external_attr(value);
	return PointerGetDatum(value);
}

static std::optional<int64> expected_seq_argument(FunctionCallInfo fcinfo, int number)
{
	if (PG_ARGISNULL(number))
		return std::nullopt;
	return seq_argument(fcinfo, number, "expected_seq");
}

DOORBELL_SQL_FUNCTION(doorbell_append)
{
	text *stream = stream_argument(fcinfo, 0);
	refuse_null_argument(fcinfo, 1, "type");
	refuse_null_argument(fcinfo, 2, "payload");
	const NewEvent event{check_type(PG_GETARG_TEXT_PP(1)), payload_argument(PG_GETARG_DATUM(2))};
	AppendOptions options;
	options.expected_seq = expected_seq_argument(fcinfo, 3);
	options.event_id = PG_ARGISNULL(4) ? nullptr : PG_GETARG_UUID_P(4);
	PG_RETURN_INT64(append_events(stream, &event, 1, options));
}

static NewEvent *event_arguments(const ArrayArgument &types, const ArrayArgument &payloads)
{
	check_same_length(types, payloads);
	auto *events = static_cast<NewEvent *>(palloc(sizeof(NewEvent) * Max(types.count, 1)));
	for (int i = 0; i < types.count; i++)
		events[i] = NewEvent{check_type(DatumGetTextPP(types.values[i])), payload_argument(payloads.values[i])};
	return events;
}

DOORBELL_SQL_FUNCTION(doorbell_append_batch)
{
	text *stream = stream_argument(fcinfo, 0);
	const ArrayArgument types = array_argument(fcinfo, 1, "types", TEXTOID);
	const ArrayArgument payloads = array_argument(fcinfo, 2, "payloads", JSONBOID);
	const NewEvent *events = event_arguments(types, payloads);
	if (types.count == 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("types must not be empty"));
	AppendOptions options;
	options.expected_seq = expected_seq_argument(fcinfo, 3);
	PG_RETURN_INT64(append_events(stream, events, types.count, options));
}

DOORBELL_SQL_FUNCTION(doorbell_append_many)
{
	const ArrayArgument streams = array_argument(fcinfo, 0, "streams", TEXTOID);
	const ArrayArgument types = array_argument(fcinfo, 1, "types", TEXTOID);
	const ArrayArgument payloads = array_argument(fcinfo, 2, "payloads", JSONBOID);
	check_same_length(streams, types);
	const NewEvent *events = event_arguments(types, payloads);
	for (int i = 0; i < streams.count; i++)
		check_stream(DatumGetTextPP(streams.values[i]));

	InitMaterializedSRF(fcinfo, 0);
	auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	for (int i = 0; i < streams.count; i++) {
		text *stream = DatumGetTextPP(streams.values[i]);
		Datum values[2] = {PointerGetDatum(stream), Int64GetDatum(append_events(stream, &events[i], 1))};
		bool nulls[2] = {};
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return Datum(0);
}

} // namespace pg_doorbell
