// Subscriber: every event of the streams it follows, once and in order, through whatever happens to the connections.
//
// 1. It owns a Listener and one reading connection, whatever the number of streams. Each stream that is followed by
// name
//    has a mark: the last event delivered. Each subscription by prefix has a cursor, which stands for the last event
//    delivered of all its streams. Only delivery moves them.
// 2. Order of things after every (re)connect: LISTEN confirmed → sweep → rings. A sweep compares every followed stream
//    with the database, and happens every sweep_interval anyway. So a lost ring delays an event, it never loses one.
//    When the listener cannot work at all, sweeps alone go on (state `sweeping`).
// 3. Everything that rang is read in one round trip, streams that do not fit take turns. A ring at or below the mark
//    is ignored. When a read did not reach the rung seq (an append in flight, a replica that lags), it asks again
//    soon, with growing delays up to sweep_interval.
// 4. A sweep also verifies the mark against its event's check; a cursor is verified by each read. on_gap: events behind
//    the mark were trimmed away. on_reset: the mark belongs to another history (a restore, a failover that lost
//    commits, a stream made anew). After either, delivery goes on from low water; after the reset of a subscription by
//    prefix from the beginning.
// 5. A handler that throws: the exception comes out of poll(), the mark or cursor stays, and the same event (gap,
// reset)
//    is delivered again by the next poll(). Handlers may call everything but poll() and run().
// 6. What a crash does: nothing is kept here. Save mark(stream) or cursor(prefix) with your own data; start there
// again.
// 7. A subscription by prefix delivers whole transactions, those of a transaction by stream and seq. An append that is
// in
//    flight holds back the transactions that appended to its stream behind it, and no others.
//
// Threading: one owner (see connect.hpp), except wake() and stop(). While a handler runs, the listener is still read
// between events; a handler that blocks for long holds up its own subscriber only.
// Memory: one read holds at most `batch` events, and fewer when payloads are large (see batch_bytes); beside that, one
// map entry per stream followed by name, and some kilobytes per prefix, whatever the number of its streams.
#pragma once

#include <doorbell/connect.hpp>
#include <doorbell/cursor.hpp>
#include <doorbell/event.hpp>
#include <doorbell/export.hpp>
#include <doorbell/pointer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doorbell {

struct SubscriberOptions {
	ConnectOptions connect; // the reading connection; may be a read replica
	std::string listen_dsn; // the listening one, which must reach the primary and no pooler; empty: as connect.dsn

	// Read replicas for the reading connection, instead of connect.dsn. Each new connection takes the next one, so one
	// that is down is passed over; one that lags is waited for. Give processes different orders to spread them.
	std::vector<std::string> read_dsns;

	RetryOptions retry;
	milliseconds sweep_interval{5'000};
	milliseconds probe_interval{15'000}; // see listener.hpp
	milliseconds probe_timeout{5'000};
	int batch = 1'000;							// events per read at most
	std::size_t batch_bytes = 16 * 1024 * 1024; // payload bytes per read aimed at
};

// Where a subscription begins.
class Start {
public:
	static Start now() { return Start(Kind::now, {}); }				// behind the high water found at the first sweep
	static Start beginning() { return Start(Kind::beginning, {}); } // with the oldest event that there is
	static Start after(Mark mark) { return Start(Kind::after, mark); }

	enum class Kind { now, beginning, after };
	Kind kind() const noexcept { return kind_; }
	Mark mark() const noexcept { return mark_; }

private:
	Start(Kind kind, Mark mark) : kind_(kind), mark_(mark) {}
	Kind kind_;
	Mark mark_;
};

// Where a subscription by prefix begins. A cursor is what doorbell.replay_all gives with each event; it goes on with
// the prefix that it was given for.
class DOORBELL_API AllStart {
public:
	static AllStart now() { return AllStart(Start::Kind::now, {}); }
	static AllStart beginning() { return AllStart(Start::Kind::beginning, {}); }
	static AllStart after(std::string cursor); // Error if it cannot be one

	Start::Kind kind() const noexcept { return kind_; }
	const std::string &cursor() const noexcept { return cursor_; } // empty unless `after`

private:
	AllStart(Start::Kind kind, std::string cursor) : kind_(kind), cursor_(std::move(cursor)) {}
	Start::Kind kind_;
	std::string cursor_;
};

struct Gap { // events in (asked, low_water] were trimmed away before they could be delivered
	std::string stream;
	std::int64_t asked = 0; // -1, from a subscription by prefix: some seq below low_water
	std::int64_t low_water = 0;
};

// What was asked is not of this history. A stream followed by name: everything behind low_water follows. A subscription
// by prefix: all that there is follows, from the beginning.
struct Reset {
	std::string stream; // empty: of a subscription by prefix
	Mark asked;
	std::int64_t low_water = 0;
	std::string prefix; // of a subscription by prefix, as is its cursor
	std::string cursor;
};

struct Handlers {
	std::function<void(const Event &)> on_event; // the event lives as long as the call
	std::function<void(const Gap &)> on_gap;
	std::function<void(const Reset &)> on_reset;
	std::function<void(State)> on_state; // after each change
	// Each ring heard, of any stream; and `*` when the listener has become live, for what it may have missed.
	std::function<void(const Pointer &)> on_ring;
};

struct SubscriberStats { // since the start
	std::uint64_t events = 0;
	std::uint64_t rings = 0;
	std::uint64_t reads = 0; // round trips that asked for events
	std::uint64_t sweeps = 0;
	std::uint64_t listener_connects = 0; // times the listener became live
	std::uint64_t reader_connects = 0;
};

class DOORBELL_API Subscriber {
public:
	Subscriber(SubscriberOptions options, Handlers handlers);
	~Subscriber(); // at any time, also while connecting
	Subscriber(const Subscriber &) = delete;
	Subscriber &operator=(const Subscriber &) = delete;

	// Following the same stream again moves it to the new start. The key must be valid (pointer.hpp), else Error.
	void follow(std::string_view stream, Start start = Start::now());
	void unfollow(std::string_view stream);

	// All streams whose key begins with `prefix` (empty: all streams), also those that do not exist yet. Following the
	// same prefix again moves it to the new start. Of a stream that is followed by name, nothing is delivered here: it
	// has its own mark. Prefixes know nothing of each other: an event that belongs to two is delivered twice.
	void follow_prefix(std::string_view prefix, const AllStart &start = AllStart::now());
	void unfollow_prefix(std::string_view prefix);

	// Works until events were delivered, wake() or stop() was called, or `timeout` passed; may return earlier. Returns
	// the number of events delivered. With 0ms it does what can be done without waiting.
	std::size_t poll(milliseconds timeout);

	// Polls until stop(). A stop() that came before run() makes it return at once; each stop() ends one run().
	void run();

	void stop() noexcept; // thread-safe, also from handlers and signal handlers
	void wake() noexcept; // thread-safe, also from signal handlers: makes poll() return early

	// Back-pressure. After pause() no event is delivered and nothing more is read, from the next row on when a handler
	// calls it; memory stays at the read that is in progress, and the listener is still read. Nothing is lost.
	void pause() noexcept;
	void resume() noexcept;

	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const; // when poll() has something to do even if no descriptor is ready

	std::optional<Mark> mark(std::string_view stream) const; // empty: not followed, or its start is not settled yet

	// The cursor to start after; empty: not followed, or its start is not settled, or nothing was delivered from the
	// beginning yet.
	std::optional<std::string> cursor(std::string_view prefix) const;

	// While a handler is called for a subscription by prefix: that prefix. Else nullptr.
	const std::string *telling_prefix() const noexcept;

	State state() const noexcept;
	const std::string &last_error() const noexcept; // why the state is not `live`; empty while it is
	const SubscriberStats &stats() const noexcept;

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace doorbell
