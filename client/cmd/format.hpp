// What `replay` and `tail` print: events and control messages as NDJSON, SSE or text for people.
//
// - json: the envelope of an event, one line each; control messages as {"control":"gap",...}. Events of all streams, or
// of
//   one prefix, have their cursor as the last field.
// - sse: the frames that a browser would get. One stream: its payloads; several: envelopes. The id is the cursor of the
//   named streams, of all streams or of the prefix; a mixture has none.
// - text: time, stream, seq, type and payload; control messages go to stderr.
#pragma once

#include <doorbell/doorbell.hpp>

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace command {

enum class Format { automatic, json, sse, text }; // automatic: text on a terminal, else json

// Adds --format.
void add_format(CLI::App &app, Format &format);

class Formatter {
public:
	// `streams` are the named ones, with the marks they start from; `open_ended`: there may be others.
	Formatter(Format format, std::vector<std::string> streams, std::vector<doorbell::Mark> marks, bool open_ended);

	void greet(std::string &out) const;
	// `cursor`: of all streams, behind the event; empty: there is none.
	void event(std::string &out, const doorbell::Event &event, std::string_view cursor = {});
	void gap(std::string &out, const doorbell::Gap &gap) const;
	void reset(std::string &out, const doorbell::Reset &reset) const;

private:
	void reset_prefix(std::string &out, const doorbell::Reset &reset) const;

	Format format_;
	std::vector<std::string> streams_;
	std::vector<doorbell::Mark> marks_;
	bool open_ended_;
};

} // namespace command
