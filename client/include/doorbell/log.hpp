// Log: appends to and reads from streams, synchronously, over one connection.
//
// 1. The connection is opened by the first call that needs it. A connection found dead before a call is opened anew.
// 2. A call that fails on the way throws and is not repeated: whether an append was stored is then unknown. Give it an
//    event_id to be able to repeat it safely.
// 3. `append` is a transaction of its own. To append inside your own transaction, call doorbell.append in SQL there.
// 4. May point at a read replica for reading.
//
// Threading: one owner (see connect.hpp). Errors: Error with the server's SQLSTATE (22023 and 22004: bad argument,
// DB001: conflict, DB002: cursor of another history, DB003: overtaken, 22P02: not JSON, 42501: not allowed), without
// one when the connection failed.
#pragma once

#include <doorbell/connect.hpp>
#include <doorbell/cursor.hpp>
#include <doorbell/event.hpp>
#include <doorbell/export.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell {

struct NewEvent {
	std::string type;
	std::string payload; // JSON text
};

struct Position {
	std::string stream;
	std::int64_t after = 0;
};

struct StreamInfo {
	std::string stream;
	std::int64_t low_water = 0;
	std::int64_t high_water = 0;
};

struct AllEvent {
	Event event;
	std::string cursor; // to go on behind it

	// A gap: events of event.stream up to event.seq were trimmed away. There is no type and no payload.
	bool is_gap() const noexcept { return event.type.empty(); }
};

struct ServerStatus {
	std::string server_version;	   // "15.5 (Debian 15.5-1)"
	std::string extension_version; // empty: the extension is not in this database
	std::string ring_mode;		   // doorbell.ring_mode here: auto, worker, commit or off; empty: no extension
	bool preloaded = false;		   // so `auto` means worker, else commit
	bool standby = false;
	double notify_queue_usage = 0; // 0 to 1; 0 on a standby

	// From doorbell.stats, for roles that may read it (pg_monitor); else as if there were nothing to say.
	std::string ringer_error;	 // why the ringer could not send its last batch; empty: it could
	int notify_queue_holder = 0; // while the queue is in use: pid of the session with the oldest transaction
};

class DOORBELL_API Log {
public:
	explicit Log(ConnectOptions options);
	~Log();
	Log(Log &&) noexcept;
	Log &operator=(Log &&) noexcept;

	// Appends one event and returns its seq. expected_seq: only if the stream's last seq equals it (0: no event yet),
	// else DB001. event_id (a UUID): the same id again in this stream stores nothing and returns the first seq.
	std::int64_t append(std::string_view stream, std::string_view type, std::string_view payload,
						std::optional<std::int64_t> expected_seq = {}, std::optional<std::string_view> event_id = {});

	// Appends all or nothing, contiguously; returns the last seq.
	std::int64_t append_batch(std::string_view stream, const std::vector<NewEvent> &events,
							  std::optional<std::int64_t> expected_seq = {});

	// The events behind `after`, in order. Fewer than `max_events` does not mean the end: an append may be in flight.
	std::vector<Event> replay(std::string_view stream, std::int64_t after = 0, int max_events = 1000);

	// The same for many streams in one round trip: in order within each stream, max_events shared fairly.
	std::vector<Event> replay_many(const std::vector<Position> &positions, int max_events = 1000);

	// The events of all streams whose key begins with `prefix` behind a cursor (nothing: from the beginning), each
	// once, whole transactions, in order within each stream. No events: there is nothing now, keep the cursor. Fewer
	// than `max_events` do not mean that. A cursor goes on with the prefix that it was given for; Error DB002: it is of
	// another history.
	std::vector<AllEvent> replay_all(std::optional<std::string_view> cursor = {}, int max_events = 1000,
									 std::string_view prefix = {});
	std::string high_water_all(); // the cursor behind all that there is now

	std::int64_t high_water(std::string_view stream); // 0 when unknown
	std::int64_t low_water(std::string_view stream);  // 0 when unknown
	std::vector<StreamInfo> streams(std::string_view prefix = {});

	// Consumers: cursors kept in the database under a name. Commit what is done; start again behind cursor(). A seq
	// before the committed one is DB003 (Error::is_overtaken): another process commits under this name. To commit in
	// the transaction that stores your work, call doorbell.commit_cursor in SQL there. move_cursor also goes back.
	void commit_cursor(std::string_view consumer, std::string_view stream, Mark mark);
	void move_cursor(std::string_view consumer, std::string_view stream, Mark mark);
	std::optional<Mark> cursor(std::string_view consumer, std::string_view stream); // empty: none is committed
	// The same for a cursor over all streams.
	void commit_cursor(std::string_view consumer, std::string_view cursor);
	void move_cursor(std::string_view consumer, std::string_view cursor);
	std::optional<std::string> cursor(std::string_view consumer);

	ServerStatus status();

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace doorbell
