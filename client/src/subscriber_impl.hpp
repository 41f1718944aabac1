// The inside of Subscriber (subscriber.hpp says what it promises).
//
// 1. A stream that is followed by name is either *starting*, in starts_, until a survey has settled where it begins, or
//    *followed*, with a mark in marks_. Only followed streams are read. A subscription by prefix, in prefixes_, has one
//    cursor for all its streams and keeps nothing for each of them, but for a bounded number of rings that it could not
//    follow yet.
// 2. The reader has one request in flight. There are four:
//    - start_prefix: the cursor of a subscription by prefix that begins now;
//    - survey: for up to survey_streams streams, in one snapshot: low water, what lies at the mark, whether there is
//      more behind it. It settles starts, verifies marks (gap, reset) and finds what lost rings would have told;
//    - read: events of streams that are due (agenda_), with their low waters and what lies at their marks, in one
//      snapshot: so events of another history are never taken for what follows the mark;
//    - read_prefix: what follows the cursor of a subscription by prefix. The server verifies the cursor.
// 3. A sweep surveys all marks in key order, portion by portion, and makes every subscription by prefix read until
//    nothing comes. Starts go first; then surveys, reads and reads by prefix take turns. After a reconnect of the
//    reader no stream is read by name before the survey is through: the server may have another history now.
// 4. Nothing is asked before the listener is live or has failed once since it was not (then sweeps alone go on), or
//    sweep_interval has passed. When it becomes live, a sweep begins, after which rings are enough.
// 5. An answer is worked through row by row; the row counts as done when its handler has returned. A handler that
//    throws leaves the answer where it is; the mark or cursor, moved before the call so that the handler sees it, is
//    put back.
// 6. A ring makes a subscription by prefix read once, and go on while pages are full. Its agenda says when to ask again
//    for a rung seq that was not reached. How far a stream has come is only known of those that were delivered last
//    (reached.hpp): an old ring of another one costs some reads in vain.
// 7. When the reader fails, its request, the agendas and the sweep are dropped: the sweep after the reconnect finds
// all.
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
#include "reached.hpp"

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
	void follow_prefix(std::string_view prefix, const AllStart &start);
	void unfollow_prefix(std::string_view prefix);

	std::size_t poll(milliseconds timeout);
	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const;
	State state() const noexcept;
	const std::string &last_error() const noexcept;
	std::optional<std::string> cursor(std::string_view prefix) const;

	HighWater marks_;
	const std::string *telling_prefix_ = nullptr; // while a handler is called
	SubscriberStats stats_;
	std::atomic<bool> stop_{false};
	bool paused_ = false;
	detail::Waker waker_;

private:
	struct Prefix {
		struct Asked {
			std::string stream;
			std::int64_t seq; // reached when it was asked for
		};

		explicit Prefix(detail::Agenda empty) : agenda(std::move(empty)) {}
		void forget(); // all but the cursor
		Clock::time_point due() const { return wanted || starts_now ? Clock::time_point::min() : agenda.next(); }

		std::uint64_t id = 0;	  // of this subscription; one that is followed anew has another
		std::string cursor;		  // behind the last event delivered; empty: at the beginning
		bool starts_now = false;  // the cursor is yet to be asked for
		bool wanted = false;	  // to be read until nothing comes
		detail::Agenda agenda;	  // of rings
		std::vector<Asked> asked; // taken from the agenda and not done
		detail::Reached reached;
	};
	using Prefixes = std::map<std::string, Prefix, std::less<>>;

	struct Request {
		enum class Kind { none, start_prefix, survey, read, read_prefix };
		Kind kind = Kind::none;
		std::string prefix;				  // start_prefix, read_prefix
		std::uint64_t id = 0;			  // the same: of the subscription
		bool to_the_end = false;		  // read_prefix: until nothing comes
		std::vector<std::string> streams; // survey, read
		std::vector<std::int64_t> after;  // read: the marks asked from
		int limit = 0;					  // read, read_prefix

		static Request of_prefix(Kind kind, const Prefixes::value_type &followed)
		{
			Request request;
			request.kind = kind;
			request.prefix = followed.first;
			request.id = followed.second.id;
			return request;
		}
	};

	struct Answer {
		Request request;
		detail::Result result;
		bool other_history = false;					 // read_prefix: the cursor is of one
		int row = 0;								 // the next one to be worked on
		bool waters = true;							 // read: the rows about marks come before the events
		std::set<std::string, std::less<>> unsure{}; // read: streams whose mark's event is not there
		std::set<std::string, std::less<>> stale{}; // read: streams whose events here are not what follows the mark now
	};

	struct Sweep {
		bool active = false;
		bool again = false;		 // asked for while active
		bool survey = false;	 // there were marks when it began
		std::string surveyed_to; // in key order
	};

	// The loop (subscriber.cpp)
	void step();
	void advance_reader();
	void reader_failed(const Error &error);
	void report_state();
	bool follows_anything() const { return marks_.size() > 0 || !starts_.empty() || !prefixes_.empty(); }
	detail::Agenda new_agenda() const;

	// Requests (subscriber_requests.cpp)
	bool may_ask() const;
	void ask();
	void begin_sweep();
	bool ask_survey_of_starts();
	bool ask_for_sweep();
	bool ask_read();
	bool ask_in_turn();
	void send(Request request, const char *sql, const detail::Params &params);
	void send_survey(const std::vector<std::string> &streams, const std::vector<std::int64_t> &given);
	void request_sweep();

	// Rings and answers (subscriber_answers.cpp)
	void on_ring(const Pointer &pointer);
	void forget(std::string_view stream);
	void work_through_answer();
	void listen_between();
	void surveyed(const Answer &answer);
	void verify(const detail::Survey &row, Mark mark);
	void read_waters(Answer &answer);
	void read_event(Answer &answer);
	void finish_read(const Answer &answer);
	void grow_limit(const detail::Result &result, int events);
	void tell_gap(const std::string &stream, Mark asked, std::int64_t low_water);
	void tell_reset(const std::string &stream, Mark asked, std::int64_t low_water);
	template <typename Tell>
	void move(const std::string &stream, Mark mark, Tell tell);

	// Subscriptions by prefix (subscriber_prefixes.cpp)
	void ring_prefixes(const Pointer &pointer);
	Clock::time_point prefixes_due() const;
	bool ask_start_of_prefix();
	bool ask_read_prefix();
	Prefix *prefix_of(const Request &request);
	void prefix_started(const Answer &answer);
	void read_prefix_row(Answer &answer);
	void finish_read_prefix(const Answer &answer);
	void reset_prefix(const Answer &answer);
	template <typename Tell>
	void move_prefix(const Request &request, Prefix &followed, std::string_view cursor, Tell tell);

	detail::Creator creator_;
	SubscriberOptions options_;
	Handlers handlers_;
	Listener listener_;
	detail::Connection reader_;
	Backoff reader_backoff_;
	std::size_t reader_turn_ = 0;
	Clock::time_point reader_retry_at_ = Clock::time_point::min();
	std::string reader_error_;

	std::set<std::string, std::less<>> named_;
	std::map<std::string, Start, std::less<>> starts_;
	std::uint64_t changes_ = 0; // by follow and unfollow
	Prefixes prefixes_;
	std::string last_prefix_; // that was read
	std::string old_cursor_;  // while a handler is called

	detail::Agenda agenda_;
	Sweep sweep_;
	Clock::time_point sweep_at_ = Clock::time_point::min();
	bool verified_ = false;			 // a sweep was completed on this reader connection
	unsigned turn_ = 0;				 // whose it was last; see ask_in_turn
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
