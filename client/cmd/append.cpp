// doorbell append STREAM TYPE [JSON|-]: appends one event and prints its seq.
#include "command.hpp"
#include "output.hpp"

#include <doorbell/log.hpp>

#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

namespace command {
namespace {

struct Append {
	std::string stream;
	std::string type;
	std::string payload = "{}";
	std::optional<std::int64_t> expected_seq;
	std::optional<std::string> event_id;

	int run(const doorbell::ConnectOptions &connect)
	{
		if (payload == "-")
			payload.assign(std::istreambuf_iterator<char>(std::cin), {});
		doorbell::Log log(connect);
		const std::int64_t seq = log.append(stream, type, payload, expected_seq, event_id);
		Output output;
		output.text() = std::to_string(seq) + '\n';
		output.flush();
		return succeeded;
	}
};

} // namespace

void add_append(CLI::App &app, Command &command)
{
	const auto append = std::make_shared<Append>();
	CLI::App *sub = app.add_subcommand("append", "Append one event and print its seq");
	sub->add_option("STREAM", append->stream, "stream key, such as orders:7")->required();
	sub->add_option("TYPE", append->type, "type of the event")->required();
	sub->add_option("JSON", append->payload, "payload; - reads it from stdin (default: {})");
	sub->add_option("--expected-seq", append->expected_seq,
					"append only if this is the stream's last seq (0: it has none), else exit with 3")
		->option_text("N");
	sub->add_option("--event-id", append->event_id, "append only if the stream has no event of this id yet")
		->option_text("UUID");
	sub->callback([append, &command] { command.run = [append, &command] { return append->run(command.connect); }; });
}

} // namespace command
