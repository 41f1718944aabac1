#include <doorbell/error.hpp>
#include <doorbell/sse.hpp>

#include "text.hpp"

namespace doorbell::sse {
namespace {

void check_field(const char *name, std::string_view value)
{
	constexpr std::string_view forbidden("\r\n\0", 3);
	if (value.find_first_of(forbidden) != std::string_view::npos)
		throw Error(std::string("invalid SSE ") + name + " " + detail::quoted(value) +
					": CR, LF and NUL cannot be sent");
}

// One `data:` line per line of `data`. The space after the colon is dropped by the reader, so that a line of ours may
// begin with one.
void append_data(std::string &out, std::string_view data)
{
	while (true) {
		const std::size_t end = data.find_first_of("\r\n");
		out += "data: ";
		out += data.substr(0, end);
		out += '\n';
		if (end == std::string_view::npos)
			return;
		const bool crlf = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
		data.remove_prefix(end + (crlf ? 2 : 1));
	}
}

void append_control(std::string &out, std::string_view name, std::string_view json)
{
	out += "event: doorbell:";
	out += name;
	out += '\n';
	append_data(out, json);
	out += '\n';
}

std::string seqs_as_json(std::string_view stream, std::int64_t asked, std::int64_t low_water)
{
	std::string json = "{\"stream\":";
	append_json_string(json, stream);
	json += ",\"asked\":" + std::to_string(asked) + ",\"low_water\":" + std::to_string(low_water) + "}";
	return json;
}

} // namespace

void append_event(std::string &out, std::string_view id, std::string_view type, std::string_view data)
{
	check_field("id", id);
	check_field("event", type);
	if (!id.empty()) {
		out += "id: ";
		out += id;
		out += '\n';
	}
	if (!type.empty() && type != "message") {
		out += "event: ";
		out += type;
		out += '\n';
	}
	append_data(out, data);
	out += '\n';
}

void append_comment(std::string &out, std::string_view text)
{
	check_field("comment", text);
	out += ':';
	if (!text.empty()) {
		out += ' ';
		out += text;
	}
	out += "\n\n";
}

void append_retry(std::string &out, std::chrono::milliseconds delay)
{
	if (delay.count() < 0)
		throw Error("invalid SSE retry " + std::to_string(delay.count()) + ": must not be negative");
	out += "retry: " + std::to_string(delay.count()) + "\n\n";
}

void append_gap(std::string &out, std::string_view stream, std::int64_t asked, std::int64_t low_water)
{
	append_control(out, "gap", seqs_as_json(stream, asked, low_water));
}

void append_reset(std::string &out, std::string_view stream, std::int64_t asked, std::int64_t low_water)
{
	append_control(out, "reset", seqs_as_json(stream, asked, low_water));
}

void append_gap(std::string &out, std::string_view stream, std::int64_t low_water)
{
	std::string json = "{\"stream\":";
	append_json_string(json, stream);
	append_control(out, "gap", json + ",\"low_water\":" + std::to_string(low_water) + '}');
}

void append_reset(std::string &out, std::string_view asked_cursor)
{
	std::string json = "{\"asked\":";
	append_json_string(json, asked_cursor);
	append_control(out, "reset", json + '}');
}

void append_shutdown(std::string &out)
{
	append_control(out, "shutdown", "{}");
}

} // namespace doorbell::sse
