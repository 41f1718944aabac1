#include "connection.hpp"

#include "wait.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <utility>
#include <vector>

namespace doorbell::detail {
namespace {

// libpq's messages end with a line feed and may have several lines: one line of them.
std::string one_line(const char *message)
{
	std::string out;
	for (const char *c = message; *c != '\0'; c++) {
		if (*c == '\n')
			out += "; ";
		else if (*c != '\t')
			out += *c;
	}
	while (!out.empty() && (out.back() == ' ' || out.back() == ';'))
		out.pop_back();
	return out;
}

std::string field(const PGresult *result, int code)
{
	const char *text = PQresultErrorField(result, code);
	return text == nullptr ? std::string() : std::string(text);
}

Error error_of(const PGresult *result)
{
	std::string message = field(result, PG_DIAG_MESSAGE_PRIMARY);
	if (message.empty()) // made by libpq itself
		message = one_line(PQresultErrorMessage(result));
	for (const char code : {PG_DIAG_MESSAGE_DETAIL, PG_DIAG_MESSAGE_HINT}) {
		const std::string more = field(result, code);
		if (!more.empty())
			message += '\n' + more;
	}
	return Error(message, field(result, PG_DIAG_SQLSTATE));
}

struct FreeOptions {
	void operator()(PQconninfoOption *options) const noexcept { PQconninfoFree(options); }
};

} // namespace

void Connection::connect_to(const std::string &dsn)
{
	options_.dsn = dsn;
	connect();
}

void Connection::connect()
{
	creator_.check();
	close();
	farewell_.clear();
	farewell_state_.clear();

	// Later entries win, and the connection string stands in the middle of them: defaults before it, demands after it.
	const std::string unacknowledged = std::to_string(options_.connect_timeout.count());
	const std::pair<const char *, const char *> settings[] = {
		{"fallback_application_name", "doorbell"},
		{"keepalives_idle", "10"},
		{"keepalives_interval", "5"},
		{"keepalives_count", "3"},
		{"tcp_user_timeout", unacknowledged.c_str()}, // also ends the attempt on a host that drops our packets
		{"dbname", options_.dsn.c_str()},
		{"client_encoding", "UTF8"},
	};
	std::vector<const char *> keywords;
	std::vector<const char *> values;
	for (const auto &[keyword, value] : settings) {
		keywords.push_back(keyword);
		values.push_back(value);
	}
	keywords.push_back(nullptr);
	values.push_back(nullptr);

	conn_.reset(PQconnectStartParams(keywords.data(), values.data(), 1));
	if (!conn_)
		throw std::bad_alloc();
	if (PQstatus(conn_.get()) == CONNECTION_BAD)
		fail(one_line(PQerrorMessage(conn_.get())));
	PQsetNoticeReceiver(conn_.get(), on_notice, this);
	status_ = Status::connecting;
	wanted_ = POLLOUT;
	deadline_ = deadline_after(connect_timeout());
}

// For all hosts together; connect_timeout in the connection string, in seconds, goes before the option.
milliseconds Connection::connect_timeout() const
{
	milliseconds each = options_.connect_timeout;
	int hosts = 1;
	const std::unique_ptr<PQconninfoOption, FreeOptions> options(PQconninfo(conn_.get()));
	for (const PQconninfoOption *option = options.get(); option != nullptr && option->keyword != nullptr; option++) {
		if (option->val == nullptr)
			continue;
		const std::string_view keyword = option->keyword;
		const std::string_view value = option->val;
		if (keyword == "host" || keyword == "hostaddr")
			hosts = std::max(hosts, 1 + static_cast<int>(std::count(value.begin(), value.end(), ',')));
		else if (keyword == "connect_timeout" && std::atoi(option->val) > 0)
			each = std::chrono::seconds(std::atoi(option->val));
	}
	return each * hosts;
}

void Connection::close() noexcept
{
	if (conn_ && !creator_.is_this_process()) {
		// PQfinish says good-bye to the server through a socket that is the parent's: let it speak into the void.
		const int fd = PQsocket(conn_.get());
		const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd >= 0 && nowhere >= 0)
			::dup2(nowhere, fd);
		else if (fd >= 0)
			::close(fd);
		if (nowhere >= 0)
			::close(nowhere);
	}
	conn_.reset();
	status_ = Status::closed;
	deadline_ = never;
	answer_.reset();
	refusal_.reset();
	statements_.clear();
}

void Connection::fail(const std::string &message, std::string_view sqlstate)
{
	const std::string state(sqlstate);
	close();
	throw Error(message, state);
}

void Connection::on_notice(void *self, const PGresult *notice)
{
	auto *connection = static_cast<Connection *>(self);
	const std::string severity = field(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
	if (severity == "FATAL" || severity == "PANIC") {
		connection->farewell_ = field(notice, PG_DIAG_MESSAGE_PRIMARY);
		connection->farewell_state_ = field(notice, PG_DIAG_SQLSTATE);
	}
}

namespace {

// The parameters as libpq takes them.
struct Arguments {
	explicit Arguments(const Params &params) : formats(params.all().size(), 1)
	{
		for (const Params::Param &param : params.all()) {
			types.push_back(param.type);
			values.push_back(param.bytes ? param.bytes->data() : nullptr);
			lengths.push_back(param.bytes ? static_cast<int>(param.bytes->size()) : 0);
		}
	}
	int count() const { return static_cast<int>(values.size()); }

	std::vector<Oid> types;
	std::vector<const char *> values;
	std::vector<int> lengths;
	std::vector<int> formats;
};

std::string statement_name(std::string_view sql) // by FNV-1a
{
	std::uint64_t hash = 0xcbf29ce484222325;
	for (const char c : sql)
		hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
	char name[32];
	std::snprintf(name, sizeof name, "doorbell_%016llx", static_cast<unsigned long long>(hash));
	return name;
}

} // namespace

void Connection::send(const char *sql, Params params)
{
	creator_.check();
	sql_ = sql;
	params_ = std::move(params);
	const auto [statement, is_new] = statements_.emplace(sql_, false);
	if (is_new || !may_prepare_) {
		execute_unprepared();
	} else if (statement->second) {
		execute();
	} else {
		step_ = Step::preparing;
		const Arguments arguments(params_);
		sent(PQsendPrepare(conn_.get(), statement_name(sql_).c_str(), sql, arguments.count(), arguments.types.data()));
	}
}

void Connection::execute()
{
	step_ = Step::prepared;
	const Arguments arguments(params_);
	sent(PQsendQueryPrepared(conn_.get(), statement_name(sql_).c_str(), arguments.count(), arguments.values.data(),
							 arguments.lengths.data(), arguments.formats.data(), 1));
}

void Connection::execute_unprepared()
{
	step_ = Step::plain;
	const Arguments arguments(params_);
	sent(PQsendQueryParams(conn_.get(), sql_.data(), arguments.count(), arguments.types.data(), arguments.values.data(),
						   arguments.lengths.data(), arguments.formats.data(), 1));
}

// What is in flight has ended. True if that was only a step, and the next one is in flight.
bool Connection::go_on()
{
	if (step_ == Step::plain)
		return false;
	if (step_ == Step::preparing && !refusal_) {
		statements_[sql_] = true;
		execute();
		return true;
	}
	// No such statement, or one of this name exists: a pooler. A plan that the extension's update made useless.
	const std::string_view state = refusal_ ? refusal_->sqlstate() : std::string_view();
	const bool lost = state == "26000" || state == "42P05";
	if (!lost && state != "0A000")
		return false;
	may_prepare_ &= !lost;
	statements_.erase(sql_);
	execute_unprepared();
	return true;
}

void Connection::send_script(const char *sql)
{
	creator_.check();
	step_ = Step::plain;
	sent(PQsendQuery(conn_.get(), sql));
}

void Connection::sent(int accepted)
{
	answer_.reset();
	refusal_.reset();
	if (accepted == 0)
		fail(one_line(PQerrorMessage(conn_.get())));
	status_ = Status::busy;
	deadline_ = deadline_after(options_.query_timeout);
	if (!flush())
		fail(one_line(PQerrorMessage(conn_.get())));
}

// Sends what can be sent without waiting; false when the connection broke.
bool Connection::flush()
{
	const int unsent = PQflush(conn_.get());
	wanted_ = unsent == 1 ? POLLIN | POLLOUT : POLLIN;
	return unsent >= 0;
}

void Connection::advance()
{
	creator_.check();
	if (status_ == Status::connecting)
		advance_connecting();
	if (is_open())
		advance_query();
	check_deadline();
}

void Connection::advance_connecting()
{
	// libpq must not be asked to go on before its socket is ready.
	while (is_ready({PQsocket(conn_.get()), wanted_})) {
		switch (PQconnectPoll(conn_.get())) {
		case PGRES_POLLING_OK:
			if (PQsetnonblocking(conn_.get(), 1) != 0)
				fail(one_line(PQerrorMessage(conn_.get())));
			status_ = Status::idle;
			deadline_ = never;
			return;
		case PGRES_POLLING_READING:
			wanted_ = POLLIN;
			break;
		case PGRES_POLLING_WRITING:
			wanted_ = POLLOUT;
			break;
		default:
			fail(one_line(PQerrorMessage(conn_.get())));
		}
	}
}

// Sends what is left to be sent and reads what there is, also when no query is in flight: notifications arrive, and a
// connection that broke is noticed.
void Connection::advance_query()
{
	PGconn *conn = conn_.get();
	const bool writable = flush();
	const bool readable = PQconsumeInput(conn) != 0;

	while (status_ == Status::busy && PQisBusy(conn) == 0) {
		PGresult *next = PQgetResult(conn);
		if (next == nullptr) {
			if (go_on())
				continue;
			status_ = Status::idle;
			deadline_ = never;
			break;
		}
		Result result(next);
		const ExecStatusType kind = PQresultStatus(result.get());
		if (kind == PGRES_TUPLES_OK || kind == PGRES_COMMAND_OK)
			answer_.emplace(std::move(result));
		else if (!refusal_)
			refusal_.emplace(error_of(result.get()));
	}

	if (!readable || !writable || PQstatus(conn) == CONNECTION_BAD) {
		(void) PQisBusy(conn); // has libpq look at what it read, which may be the server's farewell
		if (refusal_)
			fail(refusal_->what(), refusal_->sqlstate());
		if (!farewell_.empty())
			fail(farewell_, farewell_state_);
		fail(one_line(PQerrorMessage(conn)));
	}
	if (status_ == Status::idle && refusal_) {
		const Error refusal = *std::exchange(refusal_, std::nullopt);
		answer_.reset();
		throw refusal;
	}
}

void Connection::check_deadline()
{
	if (deadline_ > Clock::now())
		return;
	if (status_ == Status::connecting)
		fail("could not connect within " + std::to_string(connect_timeout().count()) + " ms");
	fail("the server gave no answer within " + std::to_string(options_.query_timeout.count()) + " ms");
}

std::optional<Result> Connection::take_result()
{
	return status_ == Status::idle ? std::exchange(answer_, std::nullopt) : std::nullopt;
}

std::optional<Notification> Connection::take_notification()
{
	struct Free {
		void operator()(PGnotify *notification) const noexcept { PQfreemem(notification); }
	};

	if (!is_open())
		return std::nullopt;
	const std::unique_ptr<PGnotify, Free> notification(PQnotifies(conn_.get()));
	if (!notification)
		return std::nullopt;
	return Notification{notification->relname, notification->extra};
}

Descriptor Connection::descriptor() const
{
	return {PQsocket(conn_.get()), wanted_};
}

} // namespace doorbell::detail
