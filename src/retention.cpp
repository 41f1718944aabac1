#include "retention.hpp"

#include "all_cursor_order.hpp"
#include "args.hpp"
#include "high_water.hpp"
#include "history.hpp"
#include "in_flight.hpp"
#include "low_water.hpp"
#include "ring_table.hpp"
#include "ringer.hpp"
#include "sql.hpp"
#include "trim.hpp"

namespace pg_doorbell {

static constexpr int max_locks = 256; // one for each stream that is trimmed, until the transaction ends

// What is in front of a line in a stream.
struct Line {
	TimestampTz appended_before = DT_NOBEGIN;
	int64 through_seq = 0;
	const AllCursor *given = nullptr;

	bool is_behind(text *stream, Walk &row) const
	{
		return row.seq() <= through_seq || DatumGetTimestampTz(row.column(event_appended_at)) < appended_before ||
			   (given != nullptr && has_given(*given, view_of(stream), row.seq(), row.xid()));
	}
};
static_assert(std::is_trivially_destructible_v<Line>);

struct Rule {
	std::string_view key; // without the '*'
	bool is_prefix;
	NullableDatum max_age;
	NullableDatum appended_before; // now - max_age
	NullableDatum max_events;

	bool matches(std::string_view stream) const
	{
		return is_prefix ? stream.substr(0, key.size()) == key : stream == key;
	}
};

static Statement read_rules = {
	"SELECT pattern, max_age, statement_timestamp() - max_age, max_events FROM doorbell.retention", SPI_OK_SELECT, {}};

class Rules {
public:
	static Rules read()
	{
		Rules rules;
		rules.count_ = run(read_rules, {});
		rules.items_ = static_cast<Rule *>(palloc(sizeof(Rule) * Max(rules.count_, 1)));
		for (uint64 i = 0; i < rules.count_; i++) {
			std::string_view pattern = view_of(DatumGetTextPP(returned(i, 1).value));
			const bool is_prefix = pattern.back() == '*';
			if (is_prefix)
				pattern.remove_suffix(1);
			rules.items_[i] = Rule{pattern, is_prefix, returned(i, 2), returned(i, 3), returned(i, 4)};
		}
		return rules;
	}

	bool empty() const { return count_ == 0; }

	// The most specific rule; null when there is none.
	const Rule *of(std::string_view stream) const
	{
		const Rule *best = nullptr;
		for (const Rule *rule = items_; rule != items_ + count_; rule++)
			if (rule->matches(stream) &&
				(best == nullptr || !rule->is_prefix || (best->is_prefix && rule->key.size() > best->key.size())))
				best = rule;
		return best;
	}

	// Where a scan for streams that a rule may match goes on behind `stream`: behind it or, when no rule can match
	// there, at a key that is further on. Nothing: nowhere.
	std::optional<std::string_view> next_start(std::string_view stream) const
	{
		std::optional<std::string_view> start;
		for (const Rule *rule = items_; rule != items_ + count_; rule++) {
			if (rule->is_prefix && rule->matches(stream))
				return stream;
			if (rule->key > stream && (!start.has_value() || rule->key < *start))
				start = rule->key;
		}
		return start;
	}

private:
	Rule *items_;
	uint64 count_;
};
static_assert(std::is_trivially_destructible_v<Rules>);

static Statement read_holds = {
	"SELECT k.seq, k.cursor, statement_timestamp() - c.hold_at_most, statement_timestamp() - c.hold_at_most - $2"
	" FROM doorbell.consumer c JOIN doorbell.consumer_cursor k ON k.consumer = c.name"
	" WHERE c.required AND k.stream IN ($1, '')",
	SPI_OK_SELECT,
	{TEXTOID, INTERVALOID}};

// Streams in key order, and for each what is to go.
class Retention {
public:
	static Retention begin(const Rules &rules, Snapshot snapshot)
	{
		Retention retention;
		retention.rules_ = &rules;
		retention.snapshot_ = snapshot;
		retention.event_ = table_open(find_tables().event, AccessShareLock);
		retention.low_waters_ = LowWaterTable::open();
		retention.streams_ = Walk::over(retention.event_, find_tables().event_pkey, snapshot, 1);
		// Keys are read from the index alone, be their rows dead or not: what was removed and not yet vacuumed is many
		// rows.
		retention.streams_.scan->xs_want_itup = true;
		retention.streams_.scan->ignore_killed_tuples = false;
		retention.rows_ = Walk::over(retention.event_, retention.streams_.index, snapshot, 2);
		retention.versions_ = Walk::over(retention.event_, retention.streams_.index, SnapshotAny, 3);
		retention.locks_ = 0;
		return retention;
	}

	void end()
	{
		versions_.end();
		rows_.end();
		streams_.end();
		low_waters_.close();
		table_close(event_, NoLock);
	}

	// The next stream behind `after` (empty: the first one) that has a rule, or null. It may have no event any more.
	text *next_stream(std::string_view after, const Rule *&rule)
	{
		for (;;) {
			CHECK_FOR_INTERRUPTS();
			const std::optional<std::string_view> start = rules_->next_start(after);
			if (!start.has_value())
				return nullptr;
			text *key = cstring_to_text_with_len(start->data(), static_cast<int>(start->size()));
			ScanKeyData from =
				text_key(1, *start == after ? BTGreaterStrategyNumber : BTGreaterEqualStrategyNumber, key);
			streams_.seek(&from, 1);
			const bool found = index_getnext_tid(streams_.scan, ForwardScanDirection) != nullptr;
			pfree(key);
			if (!found)
				return nullptr;
			bool isnull;
			text *stream = DatumGetTextPCopy(
				index_getattr(streams_.scan->xs_itup, event_stream, streams_.scan->xs_itupdesc, &isnull));
			after = view_of(stream);
			rule = rules_->of(after);
			if (rule != nullptr)
				return stream;
		}
	}

	// Removes up to `limit` events of the stream; `more`: others are due.
	int64 apply(text *stream, const Rule &rule, int limit, bool &more)
	{
		const int64 low_water = low_waters_.read(stream, snapshot_);
		Line due;
		if (!rule.appended_before.isnull)
			due.appended_before = DatumGetTimestampTz(rule.appended_before.value);
		seek(stream, low_water);
		if (!rows_.next())
			return 0;
		if (!rule.max_events.isnull) {
			due.through_seq = largest_visible_below(rows_, stream, no_seq) - DatumGetInt64(rule.max_events.value);
			seek(stream, low_water);
			(void) rows_.next();
		}
		if (!due.is_behind(stream, rows_))
			return 0;

		const Line *holds = nullptr;
		const uint64 hold_count = find_holds(stream, rule, low_water, holds);
		seek(stream, low_water);
		int64 through = low_water;
		int count = 0;
		for (; rows_.next(); count++) {
			CHECK_FOR_INTERRUPTS();
			const int64 seq = rows_.seq();
			bool goes = due.is_behind(stream, rows_);
			for (uint64 i = 0; goes && i < hold_count; i++)
				goes = holds[i].is_behind(stream, rows_);
			if (!goes || (seq != through + 1 && !nothing_in_flight_between(versions_, stream, through, seq, snapshot_)))
				break;
			if (count == limit) {
				more = true;
				break;
			}
			through = seq;
		}
		if (count == 0 || !try_lock_for_trim(stream))
			return 0;
		locks_++;
		return trim_events(stream, low_water, through);
	}

	bool has_many_locks() const { return locks_ >= max_locks; }

private:
	void seek(text *stream, int64 after)
	{
		ScanKeyData keys[2] = {text_key(1, BTEqualStrategyNumber, stream), seq_key(2, BTGreaterStrategyNumber, after)};
		rows_.seek(keys, 2);
	}

	// For each required consumer the line up to which it lets events go.
	uint64 find_holds(text *stream, const Rule &rule, int64 low_water, const Line *&lines)
	{
		const uint64 count = run(read_holds, {value_of(stream), rule.max_age});
		auto *holds = static_cast<Line *>(palloc(sizeof(Line) * Max(count, 1)));
		for (uint64 i = 0; i < count; i++) {
			Line hold;
			const NullableDatum seq = returned(i, 1);
			const NullableDatum cursor = returned(i, 2);
			if (!seq.isnull)
				hold.through_seq = DatumGetInt64(seq.value);
			if (!cursor.isnull)
				hold.given = given_by(DatumGetTextPP(cursor.value));
			const NullableDatum long_due = returned(i, 4);
			if (!long_due.isnull)
				hold.appended_before = DatumGetTimestampTz(long_due.value);
			if (!rule.max_events.isnull) {
				const TimestampTz at = DatumGetTimestampTz(returned(i, 3).value);
				hold.through_seq =
					Max(hold.through_seq, last_seq_at(stream, low_water, at) - DatumGetInt64(rule.max_events.value));
			}
			holds[i] = hold;
		}
		lines = holds;
		return count;
	}

	// The cursor, unless it is of another history, which says nothing of this one.
	const AllCursor *given_by(text *text_of_cursor)
	{
		auto *cursor = static_cast<AllCursor *>(palloc(sizeof(AllCursor)));
		*cursor = parse_cursor(text_of_cursor);
		return cursor->history == history_id(snapshot_) ? cursor : nullptr;
	}

	// The largest seq that the stream had at a time; `low` when that is gone. By bisection.
	int64 last_seq_at(text *stream, int64 low, TimestampTz time)
	{
		int64 high = largest_visible_below(rows_, stream, no_seq);
		while (low < high) {
			const int64 middle = low + (high - low) / 2;
			seek(stream, middle);
			if (rows_.next() && DatumGetTimestampTz(rows_.column(event_appended_at)) <= time)
				low = rows_.seq();
			else
				high = middle;
		}
		return low;
	}

	const Rules *rules_;
	Snapshot snapshot_;
	Relation event_;
	LowWaterTable low_waters_;
	Walk streams_;
	Walk rows_;
	Walk versions_;
	int locks_;
};
static_assert(std::is_trivially_destructible_v<Retention>);

int64 apply_retention(RetentionPass &pass, int max_events, TimestampTz deadline)
{
	SPI_connect();
	const Rules rules = Rules::read();
	pass.any_rules = !rules.empty();
	if (pass.at_start())
		pass.more = false;

	Retention retention = Retention::begin(rules, GetActiveSnapshot());
	int64 removed = 0;
	const Rule *rule = nullptr;
	while (removed < max_events && !retention.has_many_locks() && GetCurrentTimestamp() < deadline) {
		text *stream = retention.next_stream(std::string_view(pass.position, pass.length), rule);
		if (stream == nullptr) {
			pass.length = 0;
			break;
		}
		const std::string_view key = view_of(stream);
		std::memcpy(pass.position, key.data(), key.size());
		pass.length = static_cast<uint32>(key.size());
		removed += retention.apply(stream, *rule, static_cast<int>(max_events - removed), pass.more);
		pfree(stream);
	}
	retention.end();
	SPI_finish();
	return removed;
}

DOORBELL_SQL_FUNCTION(doorbell_apply_retention)
{
	static RetentionPass pass = {}; // of this session: its calls go on where the last one ended
	const int max_events = max_events_argument(fcinfo, 0);
	PreventCommandIfReadOnly("doorbell.apply_retention()");

	const bool whole = pass.at_start();
	int64 removed = apply_retention(pass, max_events, DT_NOEND);
	if (removed == 0 && pass.at_start() && !whole)
		removed = apply_retention(pass, max_events, DT_NOEND);
	PG_RETURN_INT64(removed);
}

// An exact key, or a prefix and '*'.
static text *pattern_argument(FunctionCallInfo fcinfo, int number)
{
	refuse_null_argument(fcinfo, number, "pattern");
	text *pattern = check_key("pattern", PG_GETARG_TEXT_PP(number));
	const std::string_view bytes = view_of(pattern);
	if (bytes.find('*') < bytes.size() - 1)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("pattern has a * that is not its end: \"%s\"", text_to_cstring(pattern)),
				errhint("A pattern is the key of a stream, or the beginning of keys and a *."));
	return pattern;
}

static Statement set_rule = {
	"INSERT INTO doorbell.retention (pattern, max_age, max_events) VALUES ($1, $2, $3)"
	" ON CONFLICT (pattern) DO UPDATE SET max_age = EXCLUDED.max_age, max_events = EXCLUDED.max_events",
	SPI_OK_INSERT,
	{TEXTOID, INTERVALOID, INT8OID}};
static Statement remove_rule = {"DELETE FROM doorbell.retention WHERE pattern = $1", SPI_OK_DELETE, {TEXTOID}};

DOORBELL_SQL_FUNCTION(doorbell_set_retention)
{
	text *pattern = pattern_argument(fcinfo, 0);
	const Interval *max_age = PG_ARGISNULL(1) ? nullptr : interval_argument(fcinfo, 1, "max_age");
	NullableDatum max_events = {Datum(0), true};
	if (!PG_ARGISNULL(2))
		max_events = value_of(Int64GetDatum(check_least("max_events", PG_GETARG_INT64(2), 1)));
	PreventCommandIfReadOnly("doorbell.set_retention()");

	SPI_connect();
	if (max_age == nullptr && max_events.isnull)
		run(remove_rule, {value_of(pattern)});
	else
		run(set_rule, {value_of(pattern), value_of(max_age), max_events});
	SPI_finish();

	// Who keeps the rules where there is a ringer; it need not wait for the next append to come.
	if (ring_table_exists() && ringer_is_on()) {
		const std::optional<int> slot = pin_ring_slot();
		if (slot.has_value())
			unpin_ring_slot(*slot);
	}
	PG_RETURN_VOID();
}

} // namespace pg_doorbell
