// One libpq connection that never blocks (but for name resolution) and knows its deadlines.
//
// 1. State: closed → connecting → idle ⇄ busy. One query is in flight at a time; its answer is kept until taken.
// 2. advance() does what can be done without waiting. Between calls, wait for descriptor() or deadline(). Nothing else
//    reads: what send() read would wait for a descriptor that is silent by then.
// 3. Every failure is an Error from advance(). After one from the server alone (a refused query) the connection is idle
//    again; after any other it is closed, and connect() begins anew: names are resolved again, and the hosts of the
//    connection string tried again from the first.
// 4. A statement that is sent again is prepared first, which saves its parsing and planning from then on. Its name is
// made
//    of its text, so that behind a pooler it never stands for another one; where prepared statements get lost there,
//    the connection does without.
// 5. A forked child that destroys its copy closes its descriptors and says nothing to the server.
//
// Owner: one thread. Nothing is printed: notices are dropped, but a server's farewell becomes the reason of a
// failure.
#pragma once

#include "params.hpp"
#include "process.hpp"
#include "result.hpp"

#include <doorbell/connect.hpp>

#include <libpq-fe.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace doorbell::detail {

struct Notification {
	std::string channel;
	std::string payload;
};

class Connection {
public:
	enum class Status { closed, connecting, idle, busy };

	explicit Connection(ConnectOptions options) : options_(std::move(options)) {}
	~Connection() { close(); }
	Connection(const Connection &) = delete;
	Connection &operator=(const Connection &) = delete;

	void connect();
	void connect_to(const std::string &dsn); // from now on
	void close() noexcept;

	void send(const char *sql, Params params); // one statement, when idle; the text must live on
	void send_script(const char *sql);		   // several statements in one transaction, when idle
	void advance();
	std::optional<Result> take_result();			 // of the query that is done
	std::optional<Notification> take_notification(); // of what was read so far

	Status status() const noexcept { return status_; }
	bool is_open() const noexcept { return status_ == Status::idle || status_ == Status::busy; }
	Descriptor descriptor() const; // not when closed
	Clock::time_point deadline() const noexcept { return deadline_; }
	int backend_pid() const { return PQbackendPID(conn_.get()); } // as the peer told it: a pooler may make one up

private:
	struct Finish {
		void operator()(PGconn *conn) const noexcept { PQfinish(conn); }
	};

	void advance_connecting();
	void advance_query();
	bool go_on();
	void execute();
	void execute_unprepared();
	void sent(int accepted);
	bool flush();
	void check_deadline();
	[[noreturn]] void fail(const std::string &message, std::string_view sqlstate = {});
	milliseconds connect_timeout() const;
	static void on_notice(void *self, const PGresult *notice);

	Creator creator_;
	ConnectOptions options_;
	std::unique_ptr<PGconn, Finish> conn_;
	Status status_ = Status::closed;
	short wanted_ = 0;
	Clock::time_point deadline_ = Clock::time_point::max();
	std::optional<Result> answer_; // of the query in flight, or not taken yet
	std::optional<Error> refusal_; // of the query in flight

	enum class Step { plain, preparing, prepared }; // what is in flight
	Step step_ = Step::plain;
	std::string_view sql_; // of the query in flight, and its parameters
	Params params_;
	std::map<std::string_view, bool> statements_; // that were sent: whether they are prepared
	bool may_prepare_ = true;
	std::string farewell_; // the server's last FATAL message
	std::string farewell_state_;
};

} // namespace doorbell::detail
