#include "history.hpp"

#include <algorithm>

namespace doorbell::detail {

// given: the seq asked about, or -1 for "now". At most two events are looked at per stream, and no payload is fetched.
// High water, which costs more, is asked for where the rest leaves a doubt: nothing lies at or behind the mark.
const char *const survey_sql =
	"SELECT u.stream, u.given, u.mark, doorbell.low_water(u.stream),"
	" CASE WHEN u.mark > 0 AND e.type IS NULL AND NOT e.more THEN doorbell.high_water(u.stream) END,"
	" e.type, e.appended_at, e.more, pg_catalog.pg_is_in_recovery()"
	" FROM (SELECT g.stream, g.given,"
	"  CASE WHEN g.given < 0 THEN doorbell.high_water(g.stream) ELSE g.given END AS mark"
	"  FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::bigint[])) AS g(stream, given)"
	"  OFFSET 0) AS u" // so that high_water is computed once
	" CROSS JOIN LATERAL (SELECT pg_catalog.max(r.type) FILTER (WHERE r.seq = u.mark) AS type,"
	"  pg_catalog.max(r.appended_at) FILTER (WHERE r.seq = u.mark) AS appended_at,"
	"  coalesce(pg_catalog.max(r.seq) > u.mark, false) AS more"
	"  FROM doorbell.replay(u.stream, greatest(u.mark - 1, 0), 2) AS r) AS e";

// The rows with a mark are no events: low water, and type and time of the event at the mark, all of the same snapshot.
const char *const read_sql =
	"SELECT stream, seq, type, payload, appended_at, NULL::bigint FROM doorbell.replay_many($1, $2, $3)"
	" UNION ALL SELECT g.stream, doorbell.low_water(g.stream), e.type, NULL, e.appended_at, g.mark"
	" FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS g(stream, mark)"
	" LEFT JOIN LATERAL (SELECT r.type, r.appended_at FROM doorbell.replay(g.stream, greatest(g.mark - 1, 0), 1) AS r"
	"  WHERE r.seq = g.mark) AS e ON true";

const char *const read_all_sql =
	"SELECT stream, seq, type, payload, appended_at, cursor FROM doorbell.replay_all($1, $2, $3)";

const char *const read_groups_sql =
	"SELECT r.stream, r.seq, r.type, r.payload, r.appended_at, r.cursor, g.n"
	" FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) WITH ORDINALITY"
	"  AS g(cursor, prefix, n)"
	" CROSS JOIN LATERAL doorbell.replay_all(NULLIF(g.cursor, ''), $3, g.prefix) AS r";

const char *const high_water_all_sql = "SELECT doorbell.high_water_all()";

Survey::Survey(const Result &result, int row)
	: stream(result.text(row, 0)), given(result.int8(row, 1)), mark(result.int8(row, 2)),
	  low_water(result.int8(row, 3)),
	  is_beyond(!result.is_null(row, 4) && std::max(result.int8(row, 4), low_water) < mark),
	  check(result.is_null(row, 5) ? 0 : check_of(stream, mark, result.text(row, 5), result.time(row, 6))),
	  has_more(result.boolean(row, 7)), standby(result.boolean(row, 8))
{
}

Verdict Survey::judge(Mark asked) const
{
	// The mark's event must be there unless it was trimmed; a standby may not have it yet. A mark without a check may
	// stand for no event, so all that can be said is whether it is beyond high water.
	const bool is_there = check != 0;
	const bool other_event = is_there && asked.check != 0 && check != asked.check;
	const bool lost = !is_there && asked.seq > low_water && (is_beyond ? !standby : asked.check != 0);
	if (low_water > asked.seq)
		return Verdict::gap;
	return other_event || lost ? Verdict::reset : Verdict::same;
}

const std::string &reading_dsn(const SubscriberOptions &options, std::size_t turn)
{
	return options.read_dsns.empty() ? options.connect.dsn : options.read_dsns[turn % options.read_dsns.size()];
}

int next_limit(int limit, int events, std::size_t bytes, const SubscriberOptions &options)
{
	const std::size_t grown = std::min(static_cast<std::size_t>(options.batch), static_cast<std::size_t>(limit) * 2);
	const std::size_t each = events > 0 ? bytes / static_cast<std::size_t>(events) + 1 : 1;
	return static_cast<int>(std::clamp<std::size_t>(options.batch_bytes / each, 1, grown));
}

} // namespace doorbell::detail
