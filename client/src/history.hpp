// What is asked of the database to follow streams, and what the answers say: shared by Subscriber and Streamer.
//
// 1. survey ($1 streams, $2 seqs; -1: now): a Survey row for each, all of one snapshot. It fetches no payload.
// 2. read ($1 streams, $2 marks, $3 limit): events behind the marks, shared fairly, in the columns of doorbell.entry;
// and
//    a row for each stream whose sixth column, its mark, is not null: low water in the second one, and type and time of
//    the event at the mark in theirs. All of one snapshot, so events of another history are not taken for what follows.
// 3. read_all ($1 cursor, null for the beginning; $2 limit; $3 prefix): what follows the cursor, in the columns of
//    doorbell.entry, and the cursor behind each row. A row that is_gap has no type, and in seq the stream's low water.
//    It fails with DB002 when the cursor is of another history.
// 4. read_groups ($1 cursors, "" for the beginning; $2 prefixes, one for each; $3 limit for each): the same for many
//    readers in one snapshot; the last column says for which of them, from 1 on.
// 5. high_water_all: the cursor behind all that there is now.
#pragma once

#include <doorbell/cursor.hpp>
#include <doorbell/subscriber.hpp>

#include "result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace doorbell::detail {

extern const char *const survey_sql;
extern const char *const read_sql;
extern const char *const read_all_sql;
extern const char *const read_groups_sql;
extern const char *const high_water_all_sql;

inline constexpr int first_limit = 100; // of a read, until the size of payloads is known

enum class Verdict {
	same,  // of this history, with nothing missing behind it
	gap,   // what follows was trimmed away
	reset, // of another history
};

struct Survey {
	Survey(const Result &result, int row);
	Verdict judge(Mark asked) const; // a mark with this row's seq

	std::string stream;
	std::int64_t given; // the seq asked about; -1: now
	std::int64_t mark;	// the same, or what "now" came to
	std::int64_t low_water;
	bool is_beyond;		 // the mark is beyond high water
	std::uint32_t check; // of the event at the mark; 0: there is none
	bool has_more;		 // events behind the mark
	bool standby;
};

inline bool is_gap(const Result &result, int row) // of read_all
{
	return result.is_null(row, 2);
}

// Where the reading connection number `turn` goes.
const std::string &reading_dsn(const SubscriberOptions &options, std::size_t turn);

// The limit of the next read: grows towards `batch`, but not beyond batch_bytes of payloads of the present size.
int next_limit(int limit, int events, std::size_t bytes, const SubscriberOptions &options);

} // namespace doorbell::detail
