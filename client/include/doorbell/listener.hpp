// Listener: one LISTEN connection that is kept alive, and tells its owner what it hears.
//
// 1. It owns a connection of its own. Connect → LISTEN, committed → a ring of its own on a private channel, heard back
//    in this session: only then is it `live`. A standby (which cannot LISTEN) or a pooler that gives every transaction
//    another session is found here and named in last_error(); the state is then `sweeping`.
// 2. Rings may have been lost whenever it was not live. So on_state(live) means: look at everything you follow, then
//    trust the rings.
// 3. Before it waits, it has taken every notification that libpq holds. It goes on reading whatever is rung.
// 4. Liveness: after probe_interval without a byte it asks the server a question, with probe_timeout for the answer.
//    So a connection that died silently is noticed within the sum of the two.
// 5. Every failure leads to `down` (or `sweeping`, see 1) and another attempt after a jittered, growing delay. Nothing
//    is logged and nothing is thrown: the owner sees state() and last_error().
//
// Threading: one owner (see connect.hpp); wake() from anywhere. Handlers run inside poll(). An exception from a handler
// comes out of poll(); the ring that was being reported counts as reported.
#pragma once

#include <doorbell/connect.hpp>
#include <doorbell/export.hpp>
#include <doorbell/pointer.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace doorbell {

struct ListenerOptions {
	ConnectOptions connect;
	RetryOptions retry;
	milliseconds probe_interval{15'000};
	milliseconds probe_timeout{5'000}; // also for the confirmation of LISTEN
};

class DOORBELL_API Listener {
public:
	using RingHandler = std::function<void(const Pointer &)>; // the view in it lives as long as the call
	using StateHandler = std::function<void(State)>;		  // after each change

	// Makes the first attempt in the first poll().
	Listener(ListenerOptions options, RingHandler on_ring, StateHandler on_state = {});
	~Listener(); // at any time, also while connecting
	Listener(const Listener &) = delete;
	Listener &operator=(const Listener &) = delete;

	// Works until something was heard, the state changed, wake() was called or `timeout` passed; may return earlier.
	// Returns the number of rings reported. With 0ms it does what can be done without waiting.
	std::size_t poll(milliseconds timeout);

	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const; // when poll() has something to do even if no descriptor is ready

	State state() const noexcept;
	const std::string &last_error() const noexcept; // of the last failed attempt; empty while live

	void wake() noexcept; // thread-safe: makes a poll() that waits, or the next one, return

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace doorbell
