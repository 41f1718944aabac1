// doorbell replay: prints the events that are there, of one stream or of all, and ends.
#include "command.hpp"
#include "format.hpp"
#include "interrupt.hpp"
#include "output.hpp"

#include <doorbell/doorbell.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace command {
namespace {

// A page is read whole before it is printed: it begins small and then aims at this many bytes.
constexpr std::int64_t first_page = 100;
constexpr std::int64_t largest_page = 1000;
constexpr std::int64_t page_bytes = 8 * 1024 * 1024;

// What is left to read, and in which portions.
struct Pages {
	std::int64_t left; // --count
	std::int64_t size = first_page;

	std::int64_t next() const { return std::min(size, left); }
	void read(std::int64_t events, std::size_t bytes)
	{
		left -= events;
		if (events > 0)
			size =
				std::clamp(page_bytes * events / static_cast<std::int64_t>(bytes + 1), std::int64_t{1}, largest_page);
	}
};

struct Replay {
	std::string stream;
	std::optional<std::string> prefix;
	bool all = false;
	std::string after = "0";
	std::int64_t count = INT64_MAX;
	Format format = Format::automatic;

	bool of_all() const { return all || prefix.has_value(); }
	void check() const; // throws CLI::ValidationError
	std::int64_t seq() const { return doorbell::parse_mark(after).seq; }
	int run(const doorbell::ConnectOptions &connect) const;
	void run_stream(doorbell::Log &log, Output &output) const;
	void run_all(doorbell::Log &log, Output &output) const;
};

void Replay::check() const
{
	if (stream.empty() != of_all())
		throw CLI::ValidationError("give one stream, or --all or --prefix");
	try {
		if (!of_all() && after != std::to_string(seq()))
			throw doorbell::Error("invalid seq \"" + after + '"');
		if (of_all() && after != "0")
			doorbell::AllStart::after(after);
	} catch (const doorbell::Error &error) {
		throw CLI::ValidationError(std::string("--after: ") + error.what());
	}
}

int Replay::run(const doorbell::ConnectOptions &connect) const
{
	doorbell::Log log(connect);
	Output output;
	if (of_all())
		run_all(log, output);
	else
		run_stream(log, output);
	output.flush();
	return succeeded;
}

bool may_go_on(const Output &output, const Pages &pages)
{
	return pages.left > 0 && !output.closed() && !interrupt().is_pending();
}

void Replay::run_stream(doorbell::Log &log, Output &output) const
{
	std::int64_t from = seq();
	Formatter formatter(format, {stream}, {{from, 0}}, false);
	formatter.greet(output.text());
	const std::int64_t low_water = log.low_water(stream);
	if (from < low_water && from > 0)
		formatter.gap(output.text(), {stream, from, low_water});

	Pages pages{count};
	while (may_go_on(output, pages)) {
		const std::int64_t asked = pages.next();
		const std::vector<doorbell::Event> events = log.replay(stream, from, static_cast<int>(asked));
		std::size_t bytes = 0;
		for (const doorbell::Event &event : events) {
			formatter.event(output.text(), event);
			bytes += event.payload.size();
		}
		output.flush();
		const auto number = static_cast<std::int64_t>(events.size());
		pages.read(number, bytes);
		if (number < asked) // the end, or an append in flight
			break;
		from = events.back().seq;
	}
}

// A page that is not full uses up what there was when an earlier one began. The next one has what there is by then: if
// it is not full either, that is the end, although appends may go on.
void Replay::run_all(doorbell::Log &log, Output &output) const
{
	std::optional<std::string> cursor;
	if (after != "0")
		cursor = after;
	Formatter formatter(format, {}, {}, true);
	formatter.greet(output.text());

	Pages pages{count};
	bool was_full = cursor.has_value();
	while (may_go_on(output, pages)) {
		const std::int64_t asked = pages.next();
		std::vector<doorbell::AllEvent> events = log.replay_all(cursor, static_cast<int>(asked), prefix.value_or(""));
		std::size_t bytes = 0;
		std::int64_t gaps = 0;
		for (const doorbell::AllEvent &each : events) {
			if (each.is_gap()) {
				formatter.gap(output.text(), {each.event.stream, -1, each.event.seq});
				gaps++;
			} else {
				formatter.event(output.text(), each.event, each.cursor);
			}
			bytes += each.event.payload.size() + each.cursor.size();
		}
		output.flush();
		const auto number = static_cast<std::int64_t>(events.size());
		pages.read(number - gaps, bytes);
		if (number == 0 || (number < asked && !was_full))
			break;
		was_full = number == asked;
		cursor = std::move(events.back().cursor);
	}
}

} // namespace

void add_replay(CLI::App &app, Command &command)
{
	const auto replay = std::make_shared<Replay>();
	CLI::App *sub = app.add_subcommand("replay", "Print the events of a stream, or of all, and end");
	sub->add_option("STREAM", replay->stream, "stream key");
	sub->add_flag("--all", replay->all, "all streams");
	sub->add_option("--prefix", replay->prefix, "all streams whose key begins with this")->option_text("P");
	sub->add_option("--after", replay->after, "begin behind this seq, or cursor of --all or --prefix (default: 0)")
		->option_text("N|CURSOR");
	sub->add_option("--count", replay->count, "at most so many events")->check(CLI::PositiveNumber)->option_text("N");
	add_format(*sub, replay->format);
	sub->callback([replay, &command] {
		replay->check();
		command.run = [replay, &command] { return replay->run(command.connect); };
	});
}

} // namespace command
