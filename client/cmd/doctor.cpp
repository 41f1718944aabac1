// doorbell doctor: what to change here, and why.
//
// 1. It asks the server a few things (facts.hpp), and tries whether a ring is heard.
// 2. Each check makes of that a remark, or says that all is well. A remark is a problem when events are lost to sight,
//    cannot be appended or cannot be followed; else advice.
// 3. What is visible depends on the role: a member of pg_monitor sees other sessions.
#include "command.hpp"
#include "facts.hpp"
#include "output.hpp"

#include <doorbell/doorbell.hpp>

#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

namespace command {
namespace {

enum class Level { well, advice, problem };

struct Remark {
	Level level = Level::well;
	std::string about;
	std::string found;
	std::string why;
	std::string change;
};

using Remarks = std::vector<Remark>;

constexpr double full_queue = 0.5;
constexpr double slow_consumer = 3600; // seconds

void check_server(const Facts &facts, Remarks &remarks)
{
	remarks.push_back({Level::well, "server", "PostgreSQL " + facts.server.server_version, "", ""});
	if (!facts.fsync)
		remarks.push_back({Level::problem, "server", "fsync is off",
						   "a crash of the machine can lose or damage everything, events among it", "set fsync = on"});
	if (facts.server.standby)
		remarks.push_back({Level::problem, "server", "this is a standby",
						   "nothing can be appended here, and PostgreSQL lets nobody LISTEN on a standby",
						   "give the primary as --dsn, this server as --replay-dsn of tail and serve"});
	if (facts.subscribed)
		remarks.push_back({Level::problem, "server", "doorbell.event is filled by logical replication",
						   "what is in flight on the publisher cannot be seen here, so a hole in a stream says nothing",
						   "follow the publisher, or a physical standby of it"});
}

void check_extension(const Facts &facts, Remarks &remarks)
{
	const std::string &version = facts.server.extension_version;
	if (version.empty()) {
		if (facts.available_version.empty())
			remarks.push_back({Level::problem, "extension", "pg_doorbell is not installed on the server's machine",
							   "the functions of schema doorbell are not there",
							   "install it there (make install), then CREATE EXTENSION pg_doorbell"});
		else
			remarks.push_back({Level::problem, "extension", "not in this database",
							   "the functions of schema doorbell are not there", "CREATE EXTENSION pg_doorbell"});
		return;
	}
	remarks.push_back({Level::well, "extension", "pg_doorbell " + version, "", ""});
	if (!facts.available_version.empty() && facts.available_version != version)
		remarks.push_back({Level::advice, "extension",
						   "version " + facts.available_version + " is installed on the server's machine",
						   "the database still has the functions of " + version, "ALTER EXTENSION pg_doorbell UPDATE"});
	if (version.compare(0, version.size(), doorbell::version,
						std::min(version.size(), std::string(doorbell::version).size())) != 0)
		remarks.push_back({Level::advice, "extension", std::string("this command is version ") + doorbell::version,
						   "they are made for each other only within a version", "install the same version of both"});
	if (!facts.may_append)
		remarks.push_back({Level::advice, "privileges", "role \"" + facts.role + "\" may not append",
						   "it lacks EXECUTE on doorbell.append, or USAGE on the schema",
						   "see the two GRANT lines for a writer in the README, if it shall"});
	if (!facts.may_read)
		remarks.push_back({Level::problem, "privileges", "role \"" + facts.role + "\" may not read",
						   "it lacks EXECUTE on doorbell.replay and the other readers, or USAGE on the schema",
						   "see the two GRANT lines for a reader in the README"});
}

void check_rings(const Facts &facts, Remarks &remarks)
{
	const doorbell::ServerStatus &server = facts.server;
	if (server.extension_version.empty() || server.standby)
		return;
	if (server.ring_mode == "off")
		remarks.push_back({Level::problem, "rings", "doorbell.ring_mode is off",
						   "appends are found by the sweeps of who follows, seconds later",
						   "set doorbell.ring_mode = auto"});
	else if (!server.preloaded)
		remarks.push_back(
			{Level::advice, "rings", "pg_doorbell is not in shared_preload_libraries",
			 "every commit that appends then takes the one lock of NOTIFY, so such commits wait for each other",
			 "shared_preload_libraries = 'pg_doorbell' (behind what is there already), then restart the server"});
	else if (server.ring_mode == "commit")
		remarks.push_back({Level::advice, "rings", "doorbell.ring_mode is commit although the library is preloaded",
						   "commits that append take the one lock of NOTIFY, so they wait for each other",
						   "set doorbell.ring_mode = auto"});
	else
		remarks.push_back({Level::well, "rings", "by the ringer, after the commit", "", ""});
	if (!server.ringer_error.empty())
		remarks.push_back({Level::problem, "rings", "the ringer cannot ring: " + server.ringer_error,
						   "who follows finds new events by sweep only, seconds later", "end what its error names"});
	if (server.notify_queue_usage > full_queue)
		remarks.push_back(
			{Level::problem, "NOTIFY queue",
			 std::to_string(static_cast<int>(server.notify_queue_usage * 100)) + " % in use",
			 "a listening session in an open transaction holds it back; when it is full, nothing is rung" +
				 std::string(server.preloaded ? "" : " and commits that append fail"),
			 server.notify_queue_holder == 0
				 ? "end the oldest transaction of a session that listens"
				 : "end the transaction of process " + std::to_string(server.notify_queue_holder) +
					   ", as by SELECT pg_terminate_backend(" + std::to_string(server.notify_queue_holder) + ")"});
}

void check_channel(const Facts &facts, const std::string &not_heard, Remarks &remarks)
{
	if (facts.server.standby)
		return; // said already
	if (not_heard.empty())
		remarks.push_back({Level::well, "channel", "a ring of our own was heard", "", ""});
	else
		remarks.push_back({Level::problem, "channel", "a ring of our own was not heard: " + not_heard,
						   "who follows finds new events by sweep only, seconds later",
						   "connect to the primary itself, not through a pooler in transaction mode"});
}

std::string seconds(double value)
{
	return std::to_string(static_cast<long long>(value)) + " s";
}

void check_transactions(const Facts &facts, double long_transaction, Remarks &remarks)
{
	if (facts.writer_pid != 0 && facts.writer_seconds > long_transaction)
		remarks.push_back({Level::advice, "transactions",
						   "process " + std::to_string(facts.writer_pid) + " has written in a transaction open for " +
							   seconds(facts.writer_seconds),
						   "if it appended, whoever reads those streams waits for its end",
						   "commit sooner; idle_in_transaction_session_timeout ends forgotten ones"});
	if (!facts.prepared.empty() && facts.prepared_seconds > long_transaction)
		remarks.push_back({Level::advice, "transactions",
						   "\"" + facts.prepared + "\" has been prepared for " + seconds(facts.prepared_seconds),
						   "if it appended, whoever reads those streams waits for its end",
						   "COMMIT PREPARED or ROLLBACK PREPARED"});
}

void check_retention(const Facts &facts, Remarks &remarks)
{
	if (facts.has_retention_rules && !facts.retention_applied)
		remarks.push_back({Level::advice, "retention", "there are rules, and no ringer that applies them",
						   facts.server.preloaded ? "doorbell.retention_interval is 0"
												  : "pg_doorbell is not in shared_preload_libraries",
						   "change that, or call doorbell.apply_retention() regularly, as by cron"});
	if (facts.slow_consumer_seconds > slow_consumer)
		remarks.push_back(
			{Level::advice, "consumers",
			 '"' + facts.slow_consumer + "\" is " + seconds(facts.slow_consumer_seconds) + " behind",
			 "it may miss events that retention removes or, if it is required, keeps them from being removed",
			 "start it again, or forget it: SELECT doorbell.forget_consumer(...)"});
}

std::string as_json(const Remark &remark)
{
	static const char *const levels[] = {"well", "advice", "problem"};
	nlohmann::ordered_json out;
	out["level"] = levels[static_cast<int>(remark.level)];
	out["about"] = remark.about;
	out["found"] = remark.found;
	if (remark.level != Level::well) {
		out["why"] = remark.why;
		out["change"] = remark.change;
	}
	return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string as_text(const Remark &remark)
{
	static const char *const levels[] = {"well    ", "advice  ", "PROBLEM "};
	const std::string indent(8, ' ');
	std::string out = levels[static_cast<int>(remark.level)] + remark.about + ": " + remark.found + '\n';
	if (remark.level != Level::well)
		out += indent + "why: " + remark.why + '\n' + indent + "change: " + remark.change + '\n';
	return out;
}

struct Doctor {
	double wait_seconds = 5;
	double long_transaction = 60; // seconds
	bool json = false;

	int run(const doorbell::ConnectOptions &connect) const
	{
		const Facts facts = ask_facts(connect);
		Remarks remarks;
		check_server(facts, remarks);
		check_extension(facts, remarks);
		check_rings(facts, remarks);
		check_channel(facts, facts.server.standby ? std::string() : listen(connect, wait_seconds), remarks);
		check_transactions(facts, long_transaction, remarks);
		check_retention(facts, remarks);

		Output output;
		Level worst = Level::well;
		for (const Remark &remark : remarks) {
			output.text() += json ? as_json(remark) : as_text(remark);
			worst = std::max(worst, remark.level);
		}
		output.flush();
		return worst == Level::problem ? failed : succeeded;
	}
};

} // namespace

void add_doctor(CLI::App &app, Command &command)
{
	const auto doctor = std::make_shared<Doctor>();
	CLI::App *sub = app.add_subcommand("doctor", "Say what to change on this server, and why");
	add_wait_option(*sub, doctor->wait_seconds);
	sub->add_option("--long-transaction", doctor->long_transaction,
					"seconds after which an open transaction is worth a remark (default: 60)")
		->check(CLI::NonNegativeNumber)
		->option_text("S");
	add_report_format(*sub, doctor->json);
	sub->callback([doctor, &command] { command.run = [doctor, &command] { return doctor->run(command.connect); }; });
}

} // namespace command
