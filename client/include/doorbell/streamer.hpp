// Streamer: writes streams as Server-Sent Events to many sockets, from one thread, over three database connections.
//
// 1. It takes over sockets whose HTTP head has been answered, from whatever server accepted them. From then on it
// writes
//    the frames (sse.hpp), and closes the socket in the end. What the client still sends is not read.
// 2. Each connection gets replay, then live, without a gap or a double: streams that anybody follows are followed by
// one
//    Subscriber (LISTEN confirmed → sweep → rings); a connection that starts further back, or fell behind, reads the
//    table up to where the others are, and joins them. Connections that need the same past share one read of it,
//    which is kept for a sweep_interval for those who come a little later (8 MiB of events at most).
// 3. A frame is encoded once for all connections of the same form, and goes out with whatever else waits, in one write.
// 4. A slow connection costs at most buffer_bytes (or one frame, if that is larger). When they are full, nothing more
// is
//    kept for it: it falls behind and catches up from the table once they have drained to half. When no byte could be
//    written for write_deadline, it is cut: its cursor says where to go on.
// 5. Connections with prefixes are given whole transactions, as doorbell.replay_all gives them, and with each event a
//    cursor to go on from. All that follow the same share each read and each frame, however far back they began, from
//    the moment on when they have caught up. While there are any, one map entry is kept for each stream with live
//    events.
// 6. A cursor older than low water gets `doorbell:gap`, one of another history `doorbell:reset`; then it goes on.
// 7. shutdown(): no more reading, `doorbell:shutdown` to every connection, and each is closed once all has been written
//    to it, or at its write deadline. Go on with poll() until connections() is 0.
//
// It makes its own database connections from a DSN; there is no way to give it one that others use.
//
// Threading: one owner, no threads of its own (see connect.hpp), except add(), shutdown(), stop() and wake(), which are
// thread-safe. Units: bytes of frames; time in milliseconds. A forked child may only destroy its copy.
#pragma once

#include <doorbell/cursor.hpp>
#include <doorbell/export.hpp>
#include <doorbell/subscriber.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace doorbell {

struct StreamerOptions {
	SubscriberOptions subscriber; // how to reach the database; catching up begins with the second of read_dsns

	std::size_t buffer_bytes = 256 * 1024; // per connection, waiting to be written
	milliseconds write_deadline{5'000};
	milliseconds heartbeat{15'000}; // a comment after so long without a write
	milliseconds idle_timeout{0};	// closes a connection that got no event for so long; 0: never
	milliseconds retry{2'000};		// browsers wait between half of this and one and a half before they reconnect
	std::function<void(const Event &)> on_event; // each event once, when it arrives live; for metrics
};

// What one connection follows, and in which form.
struct SseRequest {
	std::vector<std::string> streams; // by name; the cursor has their marks in this order
	std::vector<Start> starts;		  // one for each, or empty: all of them now

	// Besides, every stream that begins with one of these ("": all streams). With prefixes there is one cursor for
	// everything that the request follows, that of doorbell.replay_all, and one start.
	std::vector<std::string> prefixes;
	AllStart all_start = AllStart::now();

	bool envelope = false; // data is the event's envelope, not its payload; always so for more than one stream
	bool named = true;	   // `event:` lines
	bool raw = false;	   // a payload that is a JSON string goes out as its text

	Clock::time_point expires = Clock::time_point::max(); // when the connection is to be closed

	// Throws Error for a request without streams, an invalid key or one that is named twice, starts that do not match,
	// a text that cannot be a cursor. Whether a cursor is one, and of this history, shows when it is read with.
	DOORBELL_API void check() const;
};

struct StreamerStats {			   // since the start
	std::uint64_t connections = 0; // now
	std::uint64_t added = 0;
	std::uint64_t frames = 0;	 // events written or waiting to be
	std::uint64_t bytes = 0;	 // written
	std::uint64_t events = 0;	 // that arrived live, each counted once
	std::uint64_t reads = 0;	 // of the table for connections with prefixes, to go on live
	std::uint64_t catch_ups = 0; // for connections that were behind
	std::uint64_t fell_behind = 0;
	std::uint64_t cut = 0; // at their write deadline
	std::uint64_t expired = 0;
	std::uint64_t idle = 0; // closed at idle_timeout
	std::uint64_t gaps = 0;
	std::uint64_t resets = 0;
};

class DOORBELL_API Streamer {
public:
	explicit Streamer(StreamerOptions options);
	~Streamer(); // closes every socket at once; shutdown() first to be polite
	Streamer(const Streamer &) = delete;
	Streamer &operator=(const Streamer &) = delete;

	// Takes over a connected socket and makes it non-blocking. While shutting down it only closes it. Errors: those of
	// request.check(); the socket is then still the caller's.
	void add(int fd, SseRequest request); // thread-safe

	// Works until something was delivered, wake() or stop() was called, or `timeout` passed; may return earlier.
	// Returns the number of frames that connections were given. Throws Error for a refusal that waiting does not cure,
	// such as a missing privilege.
	std::size_t poll(milliseconds timeout);

	void run(); // polls until stop(), or until a shutdown has ended

	void shutdown() noexcept; // thread-safe, also from signal handlers; twice is as once
	void stop() noexcept;	  // the same; the sockets stay open
	void wake() noexcept;	  // the same

	bool is_shut_down() const noexcept; // shutdown() was called and the last connection has gone
	std::size_t connections() const noexcept;
	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const; // when poll() has something to do even if no descriptor is ready

	State state() const noexcept; // of the subscriber
	const std::string &last_error() const noexcept;
	const StreamerStats &stats() const noexcept;
	const SubscriberStats &subscriber_stats() const noexcept;

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace doorbell
