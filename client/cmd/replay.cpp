// doorbell replay STREAM: prints the events that are there, and ends.
#include "command.hpp"
#include "format.hpp"
#include "interrupt.hpp"
#include "output.hpp"

#include <doorbell/log.hpp>

#include <algorithm>
#include <memory>

namespace command {
namespace {

// A page is read whole before it is printed: it begins small and then aims at this many bytes.
constexpr std::int64_t first_page = 100;
constexpr std::int64_t largest_page = 1000;
constexpr std::int64_t page_bytes = 8 * 1024 * 1024;

struct Replay {
	std::string stream;
	std::int64_t after = 0;
	std::int64_t count = INT64_MAX;
	Format format = Format::automatic;

	int run(const doorbell::ConnectOptions &connect)
	{
		doorbell::Log log(connect);
		Formatter formatter(format, {stream}, {{after, 0}}, false);
		Output output;
		formatter.greet(output.text());
		const std::int64_t low_water = log.low_water(stream);
		if (after < low_water && after > 0)
			formatter.gap(output.text(), {stream, after, low_water});

		std::int64_t page = first_page;
		while (count > 0 && !output.closed() && !interrupt().is_pending()) {
			const std::int64_t asked = std::min(page, count);
			const std::vector<doorbell::Event> events = log.replay(stream, after, static_cast<int>(asked));
			std::size_t bytes = 1;
			for (const doorbell::Event &event : events) {
				formatter.event(output.text(), event);
				bytes += event.payload.size();
			}
			output.flush();
			const auto number = static_cast<std::int64_t>(events.size());
			if (number < asked) // the end, or an append in flight
				break;
			after = events.back().seq;
			count -= number;
			page = std::clamp(page_bytes * number / static_cast<std::int64_t>(bytes), std::int64_t{1}, largest_page);
		}
		output.flush();
		return succeeded;
	}
};

} // namespace

void add_replay(CLI::App &app, Command &command)
{
	const auto replay = std::make_shared<Replay>();
	CLI::App *sub = app.add_subcommand("replay", "Print the events of a stream, and end");
	sub->add_option("STREAM", replay->stream, "stream key")->required();
	sub->add_option("--after", replay->after, "begin behind this seq (default: 0)")
		->check(CLI::NonNegativeNumber)
		->option_text("N");
	sub->add_option("--count", replay->count, "at most so many events")->check(CLI::PositiveNumber)->option_text("N");
	add_format(*sub, replay->format);
	sub->callback([replay, &command] { command.run = [replay, &command] { return replay->run(command.connect); }; });
}

} // namespace command
