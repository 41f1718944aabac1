// doorbell status: whether events can be appended, read and heard here, and if not, why.
#include "command.hpp"
#include "facts.hpp"
#include "output.hpp"

#include <doorbell/doorbell.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace command {
namespace {

constexpr std::size_t streams_shown = 20;

struct Findings {
	doorbell::ServerStatus server;
	std::string not_heard; // why; empty: it was
	std::vector<doorbell::StreamInfo> streams;

	bool healthy() const
	{
		return not_heard.empty() && !server.extension_version.empty() && server.ringer_error.empty();
	}

	// What `auto` comes to.
	std::string ring_mode() const
	{
		return server.ring_mode == "auto" ? (server.preloaded ? "worker" : "commit") : server.ring_mode;
	}
};

struct Status {
	std::string prefix;
	double wait_seconds = 5;
	bool json = false;

	int run(const doorbell::ConnectOptions &connect) const;
};

std::string as_json(const Findings &findings)
{
	const doorbell::ServerStatus &server = findings.server;
	nlohmann::ordered_json out;
	out["healthy"] = findings.healthy();
	out["command"] = doorbell::version;
	out["server"] = server.server_version;
	out["standby"] = server.standby;
	out["extension"] = nullptr; // unless it is there
	if (!server.extension_version.empty())
		out["extension"] = server.extension_version;
	out["ring_mode"] = findings.ring_mode();
	out["preloaded"] = server.preloaded;
	out["heard"] = findings.not_heard.empty();
	if (!findings.not_heard.empty())
		out["not_heard"] = findings.not_heard;
	if (!server.ringer_error.empty())
		out["ringer_error"] = server.ringer_error;
	out["notify_queue_usage"] = server.notify_queue_usage;
	if (server.notify_queue_holder != 0)
		out["notify_queue_holder"] = server.notify_queue_holder;
	out["streams"] = nlohmann::ordered_json::array();
	for (const doorbell::StreamInfo &stream : findings.streams)
		out["streams"].push_back(
			{{"stream", stream.stream}, {"low_water", stream.low_water}, {"high_water", stream.high_water}});
	return out.dump() + '\n';
}

// One line of the text.
std::string line(const char *name, const std::string &value)
{
	char start[32];
	std::snprintf(start, sizeof start, "%-14s ", name);
	return start + value + '\n';
}

std::string as_text(const Findings &findings)
{
	const doorbell::ServerStatus &server = findings.server;
	std::string out = line("server", server.server_version + (server.standby ? ", a standby" : ""));
	out += line("extension", server.extension_version.empty() ? "not in this database: CREATE EXTENSION pg_doorbell"
															  : server.extension_version);
	out += line("command", doorbell::version);
	if (!server.extension_version.empty())
		out +=
			line("ring mode", findings.ring_mode() + (server.ring_mode == "auto" ? " (auto)" : "") +
								  (server.preloaded ? "" : "; add pg_doorbell to shared_preload_libraries for worker"));
	out += line("channel", findings.not_heard.empty() ? "heard" : "NOT heard: " + findings.not_heard);
	if (!server.ringer_error.empty())
		out += line("ringer", "CANNOT ring: " + server.ringer_error);

	char usage[32];
	std::snprintf(usage, sizeof usage, "%.1f %% in use", server.notify_queue_usage * 100);
	out += line("NOTIFY queue",
				usage + (server.notify_queue_holder == 0 ? std::string()
														 : "; the oldest transaction is that of process " +
															   std::to_string(server.notify_queue_holder)));

	out += line("streams", std::to_string(findings.streams.size()));
	const std::size_t shown = std::min(findings.streams.size(), streams_shown);
	std::size_t width = 0;
	for (std::size_t i = 0; i < shown; i++)
		width = std::max(width, findings.streams[i].stream.size());
	if (shown > 0)
		out += "\n  " + std::string(width, ' ') + "   low water  high water\n";
	for (std::size_t i = 0; i < shown; i++) {
		const doorbell::StreamInfo &stream = findings.streams[i];
		char waters[64];
		std::snprintf(waters, sizeof waters, "%12lld%12lld\n", static_cast<long long>(stream.low_water),
					  static_cast<long long>(stream.high_water));
		out += "  " + stream.stream + std::string(width - stream.stream.size(), ' ') + waters;
	}
	if (shown < findings.streams.size())
		out += "  and " + std::to_string(findings.streams.size() - shown) +
			   " more; --prefix and --format json show them\n";
	return out;
}

int Status::run(const doorbell::ConnectOptions &connect) const
{
	Findings findings;
	doorbell::Log log(connect);
	findings.server = log.status();
	if (!findings.server.extension_version.empty())
		findings.streams = log.streams(prefix);
	findings.not_heard = listen(connect, wait_seconds);

	Output output;
	output.text() = json ? as_json(findings) : as_text(findings);
	output.flush();
	return findings.healthy() ? succeeded : failed;
}

} // namespace

void add_status(CLI::App &app, Command &command)
{
	const auto status = std::make_shared<Status>();
	CLI::App *sub =
		app.add_subcommand("status", "Say whether events are appended, read and heard here, and if not, why");
	sub->add_option("--prefix", status->prefix, "only streams whose key begins with this")->option_text("P");
	add_wait_option(*sub, status->wait_seconds);
	add_report_format(*sub, status->json);
	sub->callback([status, &command] { command.run = [status, &command] { return status->run(command.connect); }; });
}

} // namespace command
