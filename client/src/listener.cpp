// The listening connection (see listener.hpp for what it promises).
//
// 1. Phases: waiting (for the time of the next attempt) → connecting → listening (LISTEN sent) → ringing (our own ring
//    sent) → if need be ringing_from_outside (see 3) → settling (the last statement sent) → live ⇄ probing (a question
//    sent). Any failure leads back to waiting.
// 2. LISTEN and our own ring are two transactions: a pooler in transaction mode may run them in two sessions. Our ring
//    has a channel of its own, so that it disturbs no other listener; its payload tells it from those of others.
// 3. Such a pooler may also pass both to the same session by chance, and then a session's own ring comes back through
//    it like an answer. So when the backend's pid is not the one that we were told at connect, something stands in
//    between, and our ring is sent through a second connection, made for this one purpose. A pooler in session mode and
//    a plain proxy pass this, and only what loses rings fails it.
// 4. Handlers run in two places, where notifications are taken and where a new state is reported, and never inside a
//    step: whatever they throw leaves the phase as it is. What was left undone then, such as rings that libpq holds, is
//    due at once (unfinished_), because no descriptor may ever tell of it.
#include <doorbell/backoff.hpp>
#include <doorbell/error.hpp>
#include <doorbell/listener.hpp>

#include "connection.hpp"
#include "failpoint.hpp"
#include "process.hpp"
#include "wait.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

namespace doorbell {

using detail::Connection;

namespace {

constexpr const char *own_channel = "doorbell_hello";
constexpr const char *listen_sql = "LISTEN doorbell; LISTEN doorbell_hello";
constexpr const char *ring_sql = "SELECT pg_catalog.pg_notify($1, $2), pg_catalog.pg_backend_pid()::bigint";
constexpr const char *settled_sql = "UNLISTEN doorbell_hello";
constexpr const char *probe_sql = "SELECT 1";
constexpr std::string_view sqlstate_read_only = "25006";

ConnectOptions patient_for(ConnectOptions connect, milliseconds timeout)
{
	connect.query_timeout = timeout;
	return connect;
}

} // namespace

class Listener::Impl {
public:
	Impl(ListenerOptions options, RingHandler on_ring, StateHandler on_state)
		: connect_(patient_for(std::move(options.connect), options.probe_timeout)),
		  probe_interval_(options.probe_interval), probe_timeout_(options.probe_timeout), on_ring_(std::move(on_ring)),
		  on_state_(std::move(on_state)), backoff_(options.retry.first, options.retry.limit), connection_(connect_)
	{
	}

	std::size_t poll(milliseconds timeout);
	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const;

	State state_ = State::down;
	std::string last_error_;
	detail::Waker waker_;

private:
	enum class Phase { waiting, connecting, listening, ringing, ringing_from_outside, settling, live, probing };

	void advance();
	bool step();
	void read_connections();
	void take_notifications();
	void send_own_ring(Connection &through);
	void enter(Phase phase, Clock::time_point until);
	void fail(const std::string &why, State state);
	void report_state();

	detail::Creator creator_;
	ConnectOptions connect_;
	milliseconds probe_interval_;
	milliseconds probe_timeout_;
	RingHandler on_ring_;
	StateHandler on_state_;
	Backoff backoff_;
	Connection connection_;
	std::optional<Connection> ringer_; // see 3
	Phase phase_ = Phase::waiting;
	Clock::time_point until_ = Clock::time_point::min(); // when this phase ends by itself; queries have deadlines too
	std::string own_ring_;								 // the payload that tells our own ring
	bool own_ring_heard_ = false;
	std::size_t rings_ = 0; // reported in this poll()
	State reported_ = State::down;
	bool state_changed_ = false; // in this poll()
	bool unfinished_ = false;	 // see 4
};

std::size_t Listener::Impl::poll(milliseconds timeout)
{
	creator_.check();
	rings_ = 0;
	state_changed_ = false;
	const Clock::time_point until = detail::deadline_after(timeout);
	while (true) {
		advance();
		if (rings_ > 0 || state_changed_ || waker_.take() || Clock::now() >= until)
			return rings_;
		detail::wait(descriptors(), std::min(until, deadline()));
	}
}

std::vector<Descriptor> Listener::Impl::descriptors() const
{
	std::vector<Descriptor> all{{waker_.fd(), POLLIN}};
	if (connection_.status() != Connection::Status::closed)
		all.push_back(connection_.descriptor());
	if (ringer_ && ringer_->status() != Connection::Status::closed)
		all.push_back(ringer_->descriptor());
	return all;
}

Clock::time_point Listener::Impl::deadline() const
{
	if (unfinished_)
		return Clock::time_point::min();
	const Clock::time_point earliest = std::min(until_, connection_.deadline());
	return ringer_ ? std::min(earliest, ringer_->deadline()) : earliest;
}

// Goes as far as it can without waiting. What a connection fails with ends here; what a handler throws does not.
void Listener::Impl::advance()
{
	unfinished_ = true;
	bool moved = true;
	while (moved) {
		try {
			read_connections();
		} catch (const Error &error) {
			fail(error.what(), State::down);
		}
		take_notifications();
		try {
			moved = step();
		} catch (const Error &error) {
			fail(error.what(), State::down);
			moved = false;
		}
		report_state();
	}
	unfinished_ = false;
}

void Listener::Impl::read_connections()
{
	try {
		if (connection_.status() != Connection::Status::closed)
			connection_.advance();
		if (ringer_ && ringer_->status() != Connection::Status::closed)
			ringer_->advance();
	} catch (const Error &error) {
		if (error.sqlstate() != sqlstate_read_only)
			throw;
		fail("the server is a standby, and LISTEN needs the primary", State::sweeping);
	}
}

// Does what the phase is waiting for, if its time has come; true if that led to another phase.
bool Listener::Impl::step()
{
	const bool idle = connection_.status() == Connection::Status::idle;
	const bool due = Clock::now() >= until_;
	switch (phase_) {
	case Phase::waiting:
		if (!due)
			return false;
		enter(Phase::connecting, detail::never);
		connection_.connect();
		return true;

	case Phase::connecting:
		if (!idle)
			return false;
		enter(Phase::listening, detail::never);
		connection_.send_script(listen_sql);
		return true;

	case Phase::listening:
		if (!idle)
			return false;
		enter(Phase::ringing, detail::deadline_after(probe_timeout_));
		send_own_ring(connection_);
		return true;

	case Phase::ringing:
		if (const auto answer = connection_.take_result(); answer && answer->int8(0, 1) != connection_.backend_pid()) {
			enter(Phase::ringing_from_outside, detail::deadline_after(probe_timeout_));
			ringer_.emplace(connect_);
			ringer_->connect();
			own_ring_.clear(); // the one from inside proves nothing
			own_ring_heard_ = false;
			return true;
		}
		break;

	case Phase::ringing_from_outside:
		if (ringer_->status() == Connection::Status::idle && own_ring_.empty())
			send_own_ring(*ringer_);
		break;

	case Phase::live:
		if (!due)
			return false;
		enter(Phase::probing, detail::never);
		connection_.send(probe_sql, {});
		return true;

	case Phase::settling:
	case Phase::probing:
		if (!idle)
			return false;
		enter(Phase::live, detail::deadline_after(probe_interval_));
		state_ = State::live;
		last_error_.clear();
		backoff_.reset();
		return true;
	}

	// Both ways of ringing end here.
	if (idle && own_ring_heard_) {
		ringer_.reset();
		enter(Phase::settling, detail::never);
		connection_.send_script(settled_sql);
		return true;
	}
	if (due)
		fail(phase_ == Phase::ringing ? "rings do not come back"
									  : "rings do not come back: a pooler gives every transaction another session; "
										"listen on the server itself",
			 State::sweeping);
	return false;
}

void Listener::Impl::take_notifications()
{
	while (const auto notification = connection_.take_notification()) {
		if (phase_ == Phase::live)
			until_ = detail::deadline_after(probe_interval_); // the connection shows that it lives
		if (notification->channel == channel) {
			const auto pointer = parse_pointer(notification->payload);
			if (!pointer || detail::fault(detail::place::ring))
				continue;
			rings_++;
			on_ring_(*pointer);
		} else if (notification->channel == own_channel && notification->payload == own_ring_ &&
				   !detail::fault(detail::place::self_ring)) {
			own_ring_heard_ = true;
		}
	}
}

void Listener::Impl::send_own_ring(Connection &through)
{
	std::random_device random;
	own_ring_ = std::to_string(random()) + "-" + std::to_string(random());
	own_ring_heard_ = false;
	through.send(ring_sql, detail::Params().text(own_channel).text(own_ring_));
}

void Listener::Impl::enter(Phase phase, Clock::time_point until)
{
	phase_ = phase;
	until_ = until;
}

void Listener::Impl::fail(const std::string &why, State state)
{
	connection_.close();
	ringer_.reset();
	state_ = state;
	last_error_ = "cannot listen: " + why;
	enter(Phase::waiting, detail::deadline_after(backoff_.next()));
}

void Listener::Impl::report_state()
{
	if (state_ == reported_)
		return;
	reported_ = state_;
	state_changed_ = true;
	if (on_state_)
		on_state_(state_);
}

Listener::Listener(ListenerOptions options, RingHandler on_ring, StateHandler on_state)
	: impl_(std::make_unique<Impl>(std::move(options), std::move(on_ring), std::move(on_state)))
{
}

Listener::~Listener() = default;

std::size_t Listener::poll(milliseconds timeout)
{
	return impl_->poll(timeout);
}

std::vector<Descriptor> Listener::descriptors() const
{
	return impl_->descriptors();
}

Clock::time_point Listener::deadline() const
{
	return impl_->deadline();
}

State Listener::state() const noexcept
{
	return impl_->state_;
}

const std::string &Listener::last_error() const noexcept
{
	return impl_->last_error_;
}

void Listener::wake() noexcept
{
	impl_->waker_.ring();
}

} // namespace doorbell
