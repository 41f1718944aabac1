// The inside of Subscriber (subscriber.hpp says what it promises).
//
// 1. What is followed: streams by name (named_) and by prefix (patterns_). A stream is either *starting*, in starts_,
//    until a survey has settled where it begins, or *followed*, with a mark in marks_. Only followed streams are read.
// 2. The reader has one request in flight. There are three:
//    - discover: streams(prefix) of one pattern; finds streams that nobody followed yet;
//    - survey: for up to survey_streams streams, in one snapshot: low water, what lies at the mark, whether there is
//      more behind it. It settles starts, verifies marks (gap, reset) and finds what lost rings would have told;
//    - read: events of streams that are due (agenda_), with their low waters and what lies at their marks, in one
//      snapshot: so events of another history are never taken for what follows the mark.
// 3. A sweep is: discover each pattern, then survey all marks in key order, portion by portion. It takes turns with
//    reads, but after a reconnect of the reader no event is read before the first sweep is through: the server may have
//    another history now.
// 4. Nothing is asked before the listener is live or has failed once since it was not (then sweeps alone go on), or
//    sweep_interval has passed. When it becomes live, a sweep begins, after which rings are enough.
// 5. An answer is worked through row by row; the row counts as done when its handler has returned. A handler that
//    throws leaves the answer where it is; the mark, moved before the call so that the handler sees it, is put back.
// 6. When the reader fails, its request, the agenda and the sweep are dropped: the sweep after the reconnect finds all.
#pragma once

#include <doorbell/backoff.hpp>
#include <doorbell/error.hpp>
#include <doorbell/high_water.hpp>
#include <doorbell/listener.hpp>
#include <doorbell/subscriber.hpp>

#include "agenda.hpp"
#include "connection.hpp"
#include "history.hpp"
#include "process.hpp"

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace doorbell {

class Subscriber::Impl {
public:
	Impl(SubscriberOptions options, Handlers handlers);

	void follow(std::string_view stream, Start start);
	void unfollow(std::string_view stream);
	void follow_prefix(std::string_view prefix, Start start);
	void unfollow_prefix(std::string_view prefix);

	std::size_t poll(milliseconds timeout);
	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const;
	State state() const noexcept;
	const std::string &last_error() const noexcept;

	HighWater marks_;
	SubscriberStats stats_;
	std::atomic<bool> stop_{false};
	bool paused_ = false;
	detail::Waker waker_;

private:
	struct Pattern {
		std::string prefix;
		Start start;
		bool discovered = false; // from then on, a stream that is new to us is new altogether
	};

	struct Request {
		enum class Kind { none, discover, survey, read };
		Kind kind = Kind::none;
		std::string prefix;				  // discover
		std::vector<std::string> streams; // survey, read
		std::vector<std::int64_t> after;  // read: the marks asked from
		int limit = 0;					  // read
	};

	struct Answer {
		Request request;
		detail::Result result;
		int row = 0;								 // the next one to be worked on
		bool waters = true;							 // read: the rows about marks come before the events
		std::set<std::string, std::less<>> unsure{}; // read: streams whose mark's event is not there
		std::set<std::string, std::less<>> stale{}; // read: streams whose events here are not what follows the mark now
	};

	struct Sweep {
		bool active = false;
		bool again = false;		  // asked for while active
		std::size_t patterns = 0; // discovered so far
		bool survey = false;	  // there were marks when it began
		std::string surveyed_to;  // in key order
	};

	// The loop (subscriber.cpp)
	void step();
	void advance_reader();
	void reader_failed(const Error &error);
	void report_state();
	bool follows_anything() const { return marks_.size() > 0 || !starts_.empty() || !patterns_.empty(); }

	// Requests (subscriber_requests.cpp)
	bool may_ask() const;
	void ask();
	bool ask_survey_of_starts();
	bool ask_for_sweep();
	bool ask_read();
	void send(Request request, const char *sql, const detail::Params &params);
	void send_survey(const std::vector<std::string> &streams, const std::vector<std::int64_t> &given);
	void request_sweep();

	// Rings and answers (subscriber_answers.cpp)
	void on_ring(const Pointer &pointer);
	const Pattern *pattern_of(std::string_view stream) const;
	void forget(std::string_view stream);
	void work_through_answer();
	void listen_between();
	void discovered(const Answer &answer);
	void surveyed(const Answer &answer);
	void verify(const detail::Survey &row, Mark mark);
	void read_waters(Answer &answer);
	void read_event(Answer &answer);
	void finish_read(const Answer &answer);
	void tell_gap(const std::string &stream, Mark asked, std::int64_t low_water);
	void tell_reset(const std::string &stream, Mark asked, std::int64_t low_water);
	template <typename Tell>
	void move(const std::string &stream, Mark mark, Tell tell);

	detail::Creator creator_;
	SubscriberOptions options_;
	Handlers handlers_;
	Listener listener_;
	detail::Connection reader_;
	Backoff reader_backoff_;
	Clock::time_point reader_retry_at_ = Clock::time_point::min();
	std::string reader_error_;

	std::set<std::string, std::less<>> named_;
	std::vector<Pattern> patterns_;
	std::map<std::string, Start, std::less<>> starts_;
	std::uint64_t changes_ = 0; // by follow and unfollow

	detail::Agenda agenda_;
	Sweep sweep_;
	Clock::time_point sweep_at_ = Clock::time_point::min();
	bool verified_ = false;			 // a sweep was completed on this reader connection
	bool last_was_sweep_ = false;	 // so a read goes first
	Clock::time_point patience_end_; // see 4
	int limit_;						 // of the next read

	Request request_; // in flight
	std::optional<Answer> answer_;
	Event event_; // used again and again
	Clock::time_point listened_at_{};
	std::size_t delivered_ = 0; // in this poll()
	bool polling_ = false;
	State reported_ = State::down;
};

} // namespace doorbell
