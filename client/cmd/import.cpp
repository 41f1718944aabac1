// doorbell import STREAM --type T [FILE]: appends each line of an NDJSON file as the payload of an event.
//
// 1. Lines are gathered into batches, each appended in one transaction: all of its events or none.
// 2. PostgreSQL alone decides what is JSON. When it refuses a batch, the lines are shown to it one by one to find the
//    one to name; that costs nothing as long as all is well.
// 3. A batch that failed ends the import; those before it stay. The last line on stderr says what was stored.
#include "command.hpp"
#include "interrupt.hpp"
#include "lines.hpp"
#include "output.hpp"

#include <doorbell/error.hpp>
#include <doorbell/log.hpp>

#include <libpq-fe.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace command {
namespace {

constexpr std::size_t max_batch_bytes = 8 * 1024 * 1024;

// Why PostgreSQL does not take `text` as jsonb; empty when it does.
std::string refusal(PGconn *connection, const std::string &text)
{
	const Oid type = 25; // text
	const char *value = text.data();
	const int length = static_cast<int>(text.size());
	const int binary = 1;
	const std::unique_ptr<PGresult, void (*)(PGresult *)> result(
		PQexecParams(connection, "SELECT $1::jsonb", 1, &type, &value, &length, &binary, 0), PQclear);
	if (PQresultStatus(result.get()) == PGRES_TUPLES_OK)
		return {};
	std::string reason = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
	if (const char *detail = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_DETAIL))
		reason += std::string(": ") + detail;
	return reason;
}

class Import {
public:
	std::string stream;
	std::string type;
	std::string file = "-";
	std::size_t batch_lines = 1000;

	int run(const doorbell::ConnectOptions &connect)
	{
		Lines lines(file);
		doorbell::Log log(connect);
		std::string line;
		bool more = true;
		while (more) {
			more = lines.next(line) && !interrupt().is_pending();
			if (more && line.find_first_not_of(" \t\r") != std::string::npos) {
				bytes_ += line.size();
				numbers_.push_back(lines.number());
				batch_.push_back({type, std::move(line)});
			}
			const bool full = batch_.size() >= batch_lines || bytes_ >= max_batch_bytes;
			if (!batch_.empty() && (full || !more) && !interrupt().is_pending())
				store(log, connect);
		}
		clear_progress();
		const bool interrupted = interrupt().is_pending();
		say((interrupted ? "interrupted: " : "") + stored());
		if (last_seq_ > 0) {
			Output output;
			output.text() = std::to_string(last_seq_) + '\n';
			output.flush();
		}
		return interrupted ? failed : succeeded;
	}

private:
	void store(doorbell::Log &log, const doorbell::ConnectOptions &connect)
	{
		try {
			last_seq_ = log.append_batch(stream, batch_);
		} catch (const doorbell::Error &error) {
			clear_progress();
			throw doorbell::Error(culprit(error, connect) + "\nnothing of lines " + std::to_string(numbers_.front()) +
									  " to " + std::to_string(numbers_.back()) + " was stored; before them, " +
									  stored(),
								  error.sqlstate());
		}
		count_ += batch_.size();
		batch_.clear();
		numbers_.clear();
		bytes_ = 0;
		show_progress();
	}

	// The error, with the number of the line that it is about, if it is about a line.
	std::string culprit(const doorbell::Error &error, const doorbell::ConnectOptions &connect) const
	{
		if (error.sqlstate().substr(0, 2) == "22" || error.sqlstate().substr(0, 2) == "54") {
			const std::unique_ptr<PGconn, void (*)(PGconn *)> connection(PQconnectdb(connect.dsn.c_str()), PQfinish);
			for (std::size_t i = 0; PQstatus(connection.get()) == CONNECTION_OK && i < batch_.size(); i++) {
				const std::string reason = refusal(connection.get(), batch_[i].payload);
				if (!reason.empty())
					return "line " + std::to_string(numbers_[i]) + ": " + reason;
			}
		}
		return error.what();
	}

	std::string stored() const
	{
		return std::to_string(count_) + " events appended to " + stream +
			   (count_ > 0 ? ", the last with seq " + std::to_string(last_seq_) : std::string());
	}

	void show_progress()
	{
		using namespace std::chrono;
		if (::isatty(STDERR_FILENO) == 0)
			return;
		const auto now = steady_clock::now();
		if (shown_ && now - shown_at_ < milliseconds(200))
			return;
		const double seconds = duration<double>(now - began_).count();
		std::fprintf(stderr, "\r%zu events, %.0f/s ", count_, static_cast<double>(count_) / seconds);
		shown_at_ = now;
		shown_ = true;
	}

	void clear_progress()
	{
		if (shown_)
			std::fprintf(stderr, "\r%40s\r", "");
		shown_ = false;
	}

	std::vector<doorbell::NewEvent> batch_;
	std::vector<std::size_t> numbers_; // of its lines
	std::size_t bytes_ = 0;
	std::size_t count_ = 0;
	std::int64_t last_seq_ = 0;
	std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
	std::chrono::steady_clock::time_point shown_at_;
	bool shown_ = false;
};

} // namespace

void add_import(CLI::App &app, Command &command)
{
	const auto import = std::make_shared<Import>();
	CLI::App *sub = app.add_subcommand(
		"import", "Append each line of an NDJSON file as an event, in batches that are stored whole or not at all");
	sub->add_option("STREAM", import->stream, "stream key")->required();
	sub->add_option("FILE", import->file, "one JSON value per line (default: stdin)");
	sub->add_option("--type", import->type, "type of all the events")->required()->option_text("TYPE");
	sub->add_option("--batch", import->batch_lines, "lines per transaction, at most (default: 1000)")
		->check(CLI::Range(1, 100'000))
		->option_text("N");
	sub->callback([import, &command] { command.run = [import, &command] { return import->run(command.connect); }; });
}

} // namespace command
