#include "format.hpp"

#include "command.hpp"

#include <algorithm>
#include <map>
#include <unistd.h>

namespace command {

void add_format(CLI::App &app, Format &format)
{
	static const std::map<std::string, Format> formats = {
		{"json", Format::json}, {"sse", Format::sse}, {"text", Format::text}};
	app.add_option("--format", format, "json, sse or text (default: text on a terminal, else json)")
		->transform(CLI::CheckedTransformer(formats))
		->option_text("FORMAT");
}

Formatter::Formatter(Format format, std::vector<std::string> streams, std::vector<doorbell::Mark> marks,
					 bool open_ended)
	: format_(format), streams_(std::move(streams)), marks_(std::move(marks)), open_ended_(open_ended)
{
	if (format_ == Format::automatic)
		format_ = ::isatty(STDOUT_FILENO) != 0 ? Format::text : Format::json;
}

void Formatter::greet(std::string &out) const
{
	if (format_ == Format::sse)
		doorbell::sse::append_comment(out, "pg_doorbell");
}

void Formatter::event(std::string &out, const doorbell::Event &event, std::string_view cursor)
{
	switch (format_) {
	case Format::sse: {
		const auto found = std::find(streams_.begin(), streams_.end(), event.stream);
		if (found != streams_.end())
			marks_[static_cast<std::size_t>(found - streams_.begin())] = doorbell::mark_of(event);
		if (open_ended_)
			doorbell::sse::append_event(out, cursor, event.type, format_envelope(event));
		else
			doorbell::sse::append_event(out, doorbell::format_cursor(marks_), event.type,
										streams_.size() == 1 ? event.payload : format_envelope(event));
		break;
	}
	case Format::text:
		out += doorbell::format_time(event.appended_at) + "  " + event.stream + ' ' + std::to_string(event.seq) + "  " +
			   event.type + "  " + event.payload + '\n';
		break;
	default:
		out += format_envelope(event);
		if (!cursor.empty()) {
			out.back() = ',';
			out.append("\"cursor\":\"").append(cursor).append("\"}");
		}
		out += '\n';
	}
}

void Formatter::gap(std::string &out, const doorbell::Gap &gap) const
{
	if (format_ == Format::sse && gap.asked < 0) {
		doorbell::sse::append_gap(out, gap.stream, gap.low_water);
	} else if (format_ == Format::sse) {
		doorbell::sse::append_gap(out, gap.stream, gap.asked, gap.low_water);
	} else if (format_ == Format::text) {
		const std::string which = gap.asked < 0 ? "up to " : std::to_string(gap.asked + 1) + " to ";
		say("gap in " + gap.stream + ": events " + which + std::to_string(gap.low_water) + " were trimmed away");
	} else {
		out += R"({"control":"gap","stream":)";
		doorbell::append_json_string(out, gap.stream);
		if (gap.asked >= 0)
			out += ",\"asked\":" + std::to_string(gap.asked);
		out += ",\"low_water\":" + std::to_string(gap.low_water) + "}\n";
	}
}

void Formatter::reset(std::string &out, const doorbell::Reset &reset) const
{
	if (reset.stream.empty()) {
		reset_prefix(out, reset);
		return;
	}
	if (format_ == Format::sse) {
		doorbell::sse::append_reset(out, reset.stream, reset.asked.seq, reset.low_water);
	} else if (format_ == Format::text) {
		say("reset of " + reset.stream + ": cursor " + doorbell::format_mark(reset.asked) +
			" is not of this history; starting again after " + std::to_string(reset.low_water));
	} else {
		out += R"({"control":"reset","stream":)";
		doorbell::append_json_string(out, reset.stream);
		out += ",\"asked\":" + std::to_string(reset.asked.seq) + ",\"low_water\":" + std::to_string(reset.low_water) +
			   "}\n";
	}
}

void Formatter::reset_prefix(std::string &out, const doorbell::Reset &reset) const
{
	if (format_ == Format::sse) {
		doorbell::sse::append_reset(out, reset.cursor);
	} else if (format_ == Format::text) {
		say("reset: cursor " + reset.cursor + " is not of this history; starting again from the beginning");
	} else {
		out += R"({"control":"reset","prefix":)";
		doorbell::append_json_string(out, reset.prefix);
		out += ",\"asked\":\"" + reset.cursor + "\"}\n";
	}
}

} // namespace command
