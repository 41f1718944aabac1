#include "facts.hpp"

#include <doorbell/doorbell.hpp>

#include <libpq-fe.h>

#include <memory>

namespace command {
namespace {

// Privileges are looked up in the catalogs, because resolving a name takes privileges on its schema.
constexpr const char *facts_sql =
	"WITH f AS (SELECT p.proname, pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
	"  AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AS callable"
	"  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'doorbell')"
	"SELECT (SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = 'pg_doorbell'),"
	" current_user,"
	" coalesce((SELECT pg_catalog.bool_or(callable) FROM f WHERE proname = 'append'), false),"
	" coalesce((SELECT pg_catalog.bool_and(callable) FROM f"
	"  WHERE proname IN ('replay', 'replay_many', 'replay_all', 'high_water', 'high_water_all', 'low_water', "
	"'streams')), false),"
	" pg_catalog.current_setting('fsync')::boolean,"
	" EXISTS (SELECT FROM pg_catalog.pg_subscription_rel s JOIN pg_catalog.pg_class c ON c.oid = s.srrelid"
	"  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'doorbell' AND c.relname = 'event'),"
	" w.pid, w.seconds, p.gid, p.seconds,"
	" coalesce((SELECT pg_catalog.bool_and(pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
	"  AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))"
	"  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
	"  WHERE n.nspname = 'doorbell' AND c.relname IN ('retention', 'consumers')), false)"
	" FROM (SELECT) one"
	" LEFT JOIN LATERAL (SELECT pid, extract(epoch FROM pg_catalog.clock_timestamp() - xact_start) AS seconds"
	"  FROM pg_catalog.pg_stat_activity"
	"  WHERE backend_type = 'client backend' AND backend_xid IS NOT NULL AND datname = pg_catalog.current_database()"
	"  ORDER BY xact_start LIMIT 1) w ON true"
	" LEFT JOIN LATERAL (SELECT gid, extract(epoch FROM pg_catalog.clock_timestamp() - prepared) AS seconds"
	"  FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database()"
	"  ORDER BY prepared LIMIT 1) p ON true";

constexpr const char *watching_sql =
	"SELECT EXISTS (SELECT FROM doorbell.retention),"
	" pg_catalog.current_setting('doorbell.retention_interval', true) <> '0', c.consumer, c.lag_seconds"
	" FROM (SELECT) one"
	" LEFT JOIN LATERAL (SELECT consumer, lag_seconds FROM doorbell.consumers WHERE lag_seconds IS NOT NULL"
	"  ORDER BY lag_seconds DESC LIMIT 1) c ON true";

struct Finish {
	void operator()(PGconn *connection) const noexcept { PQfinish(connection); }
};

struct Clear {
	void operator()(PGresult *result) const noexcept { PQclear(result); }
};

} // namespace

Facts ask_facts(const doorbell::ConnectOptions &connect)
{
	Facts facts;
	facts.server = doorbell::Log(connect).status();

	const std::unique_ptr<PGconn, Finish> connection(PQconnectdb(connect.dsn.c_str()));
	std::unique_ptr<PGresult, Clear> result;
	const auto ask = [&](const char *sql) {
		result.reset(PQexec(connection.get(), sql));
		if (PQresultStatus(result.get()) != PGRES_TUPLES_OK)
			throw doorbell::Error(PQerrorMessage(connection.get()));
	};
	ask(facts_sql);
	const auto text = [&](int column) { return std::string(PQgetvalue(result.get(), 0, column)); };
	const auto boolean = [&](int column) { return text(column) == "t"; };
	const auto number = [&](int column) {
		return PQgetisnull(result.get(), 0, column) != 0 ? 0 : std::stod(text(column));
	};
	facts.available_version = text(0);
	facts.role = text(1);
	facts.may_append = boolean(2);
	facts.may_read = boolean(3);
	facts.fsync = boolean(4);
	facts.subscribed = boolean(5);
	facts.writer_pid = static_cast<int>(number(6));
	facts.writer_seconds = number(7);
	facts.prepared = text(8);
	facts.prepared_seconds = number(9);
	if (!boolean(10))
		return facts;
	ask(watching_sql);
	facts.has_retention_rules = boolean(0);
	facts.retention_applied = facts.server.preloaded && boolean(1);
	facts.slow_consumer = text(2);
	facts.slow_consumer_seconds = number(3);
	return facts;
}

// A listener proves the channel: it becomes live when it has heard a ring of its own.
std::string listen(const doorbell::ConnectOptions &connect, double wait_seconds)
{
	doorbell::ListenerOptions options;
	options.connect = connect;
	doorbell::Listener listener(options, [](const doorbell::Pointer &) {});
	const auto deadline =
		doorbell::Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(wait_seconds * 1000));
	while (listener.state() != doorbell::State::live && listener.last_error().empty() &&
		   doorbell::Clock::now() < deadline)
		listener.poll(doorbell::milliseconds(100));
	if (listener.state() == doorbell::State::live)
		return {};
	return listener.last_error().empty() ? "no answer in time" : listener.last_error();
}

void add_wait_option(CLI::App &subcommand, double &wait_seconds)
{
	subcommand.add_option("--wait", wait_seconds, "seconds to wait for a ring to be heard (default: 5)")
		->check(CLI::Range(0.1, 3600.0))
		->option_text("S");
}

void add_report_format(CLI::App &subcommand, bool &json)
{
	subcommand
		.add_option_function<std::string>(
			"--format", [&json](const std::string &format) { json = format == "json"; }, "json or text (default: text)")
		->check(CLI::IsMember({"json", "text"}))
		->option_text("FORMAT");
}

} // namespace command
