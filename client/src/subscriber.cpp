// The loop of Subscriber: connections and waiting. See subscriber_impl.hpp.
#include "subscriber_impl.hpp"

#include "wait.hpp"

#include <algorithm>
#include <utility>

namespace doorbell {

using detail::Connection;
using detail::Result;
using Status = Connection::Status;

namespace {

constexpr milliseconds first_retry{10};

ListenerOptions listener_options(const SubscriberOptions &options)
{
	ListenerOptions listener;
	listener.connect = options.connect;
	if (!options.listen_dsn.empty())
		listener.connect.dsn = options.listen_dsn;
	listener.retry = options.retry;
	listener.probe_interval = options.probe_interval;
	listener.probe_timeout = options.probe_timeout;
	return listener;
}

} // namespace

Subscriber::Impl::Impl(SubscriberOptions options, Handlers handlers)
	: options_(std::move(options)), handlers_(std::move(handlers)),
	  listener_(
		  listener_options(options_),
		  [this](const Pointer &pointer) {
			  on_ring(pointer);
			  if (handlers_.on_ring)
				  handlers_.on_ring(pointer);
		  },
		  [this](State state) {
			  if (state == State::live) {
				  stats_.listener_connects++;
				  request_sweep();
				  if (handlers_.on_ring)
					  handlers_.on_ring(Pointer{});
			  }
		  }),
	  reader_(options_.connect), reader_backoff_(options_.retry.first, options_.retry.limit), agenda_(new_agenda()),
	  patience_end_(detail::deadline_after(options_.sweep_interval)),
	  limit_(std::min(detail::first_limit, options_.batch))
{
	if (options_.batch < 1)
		throw Error("invalid batch " + std::to_string(options_.batch) + ": must be at least 1");
	if (options_.sweep_interval.count() < 1)
		throw Error("invalid sweep_interval: must be at least 1 ms");
}

detail::Agenda Subscriber::Impl::new_agenda() const
{
	return detail::Agenda(first_retry, std::max(options_.sweep_interval, first_retry));
}

std::size_t Subscriber::Impl::poll(milliseconds timeout)
{
	creator_.check();
	if (polling_)
		throw Error("poll() was called by a handler of the same subscriber");
	const struct Polling {
		bool &flag;
		explicit Polling(bool &f) : flag(f) { flag = true; }
		~Polling() { flag = false; }
	} polling(polling_);

	delivered_ = 0;
	const Clock::time_point until = detail::deadline_after(timeout);
	while (true) {
		step();
		if (delivered_ > 0 || waker_.take() || Clock::now() >= until)
			return delivered_;
		detail::wait(descriptors(), std::min(until, deadline()));
	}
}

// Goes as far as it can without waiting.
void Subscriber::Impl::step()
{
	listened_at_ = Clock::now();
	listener_.poll(milliseconds(0));
	if (!answer_)
		advance_reader();
	if (answer_ && !paused_)
		work_through_answer();
	if (!answer_ && !paused_)
		ask();
	report_state();
}

void Subscriber::Impl::advance_reader()
{
	try {
		if (reader_.status() == Status::closed) {
			if (Clock::now() < reader_retry_at_)
				return;
			reader_.connect_to(detail::reading_dsn(options_, reader_turn_++));
		}
		const bool was_connecting = reader_.status() == Status::connecting;
		reader_.advance();
		if (was_connecting && reader_.is_open())
			stats_.reader_connects++;
		if (auto result = reader_.take_result()) {
			reader_backoff_.reset();
			reader_error_.clear();
			answer_.emplace(Answer{std::exchange(request_, {}), std::move(*result)});
		}
	} catch (const Error &error) {
		if (error.is_other_history() && request_.kind == Request::Kind::read_prefix)
			answer_.emplace(Answer{std::exchange(request_, {}), Result(nullptr), true});
		else
			reader_failed(error);
	}
}

void Subscriber::Impl::reader_failed(const Error &error)
{
	reader_.close();
	reader_error_ = std::string("cannot read: ") + error.what();
	reader_retry_at_ = detail::deadline_after(reader_backoff_.next());
	request_ = {};
	agenda_.clear();
	for (auto &[prefix, followed] : prefixes_)
		followed.forget();
	sweep_ = {};
	sweep_at_ = Clock::time_point::min();
	verified_ = false;
	if (error.is_lasting()) {
		report_state();
		throw error;
	}
}

State Subscriber::Impl::state() const noexcept
{
	if (!reader_.is_open())
		return State::down;
	return listener_.state() == State::live ? State::live : State::sweeping;
}

const std::string &Subscriber::Impl::last_error() const noexcept
{
	return !reader_error_.empty() ? reader_error_ : listener_.last_error();
}

void Subscriber::Impl::report_state()
{
	const State now = state();
	if (now == reported_)
		return;
	reported_ = now;
	if (handlers_.on_state)
		handlers_.on_state(now);
}

std::vector<Descriptor> Subscriber::Impl::descriptors() const
{
	std::vector<Descriptor> all = listener_.descriptors();
	all.push_back({waker_.fd(), POLLIN});
	if (reader_.status() != Status::closed && !answer_)
		all.push_back(reader_.descriptor());
	return all;
}

Clock::time_point Subscriber::Impl::deadline() const
{
	Clock::time_point earliest = std::min(listener_.deadline(), reader_.deadline());
	if (answer_)
		return paused_ ? earliest : Clock::time_point::min();
	if (reader_.status() == Status::closed)
		return std::min(earliest, reader_retry_at_);
	if (reader_.status() != Status::idle || paused_)
		return earliest;
	if (!may_ask())
		return std::min(earliest, patience_end_);
	if (!starts_.empty())
		return Clock::time_point::min();
	return follows_anything() ? std::min({earliest, sweep_at_, agenda_.next(), prefixes_due()}) : earliest;
}

Subscriber::Subscriber(SubscriberOptions options, Handlers handlers)
	: impl_(std::make_unique<Impl>(std::move(options), std::move(handlers)))
{
}

Subscriber::~Subscriber() = default;

void Subscriber::follow(std::string_view stream, Start start)
{
	impl_->follow(stream, start);
}

void Subscriber::unfollow(std::string_view stream)
{
	impl_->unfollow(stream);
}

void Subscriber::follow_prefix(std::string_view prefix, const AllStart &start)
{
	impl_->follow_prefix(prefix, start);
}

void Subscriber::unfollow_prefix(std::string_view prefix)
{
	impl_->unfollow_prefix(prefix);
}

std::size_t Subscriber::poll(milliseconds timeout)
{
	return impl_->poll(timeout);
}

void Subscriber::run()
{
	while (!impl_->stop_.exchange(false))
		impl_->poll(milliseconds::max());
}

void Subscriber::stop() noexcept
{
	impl_->stop_ = true;
	impl_->waker_.ring();
}

void Subscriber::wake() noexcept
{
	impl_->waker_.ring();
}

void Subscriber::pause() noexcept
{
	impl_->paused_ = true;
}

void Subscriber::resume() noexcept
{
	impl_->paused_ = false;
}

std::vector<Descriptor> Subscriber::descriptors() const
{
	return impl_->descriptors();
}

Clock::time_point Subscriber::deadline() const
{
	return impl_->deadline();
}

std::optional<Mark> Subscriber::mark(std::string_view stream) const
{
	return impl_->marks_.at(stream);
}

std::optional<std::string> Subscriber::cursor(std::string_view prefix) const
{
	return impl_->cursor(prefix);
}

const std::string *Subscriber::telling_prefix() const noexcept
{
	return impl_->telling_prefix_;
}

State Subscriber::state() const noexcept
{
	return impl_->state();
}

const std::string &Subscriber::last_error() const noexcept
{
	return impl_->last_error();
}

const SubscriberStats &Subscriber::stats() const noexcept
{
	return impl_->stats_;
}

} // namespace doorbell
