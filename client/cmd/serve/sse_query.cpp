#include "sse_query.hpp"

#include "../starts.hpp"
#include "answer.hpp"

#include <doorbell/error.hpp>
#include <doorbell/pointer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace command::serve {

using doorbell::SseRequest;

// The server would refuse what is no UTF-8, and with it everybody else's read.
static bool is_utf8(const std::string &text)
{
	try {
		(void) nlohmann::json(text).dump();
		return true;
	} catch (const nlohmann::json::exception &) {
		return false;
	}
}

static void check_text(const char *what, const std::string &text)
{
	const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
	if (text.size() > doorbell::max_stream_bytes)
		throw Refusal(400, std::string(what) + " is longer than " + std::to_string(doorbell::max_stream_bytes) + " bytes");
	if (std::any_of(text.begin(), text.end(), is_control))
		throw Refusal(400, std::string(what) + " has a control character");
	if (!is_utf8(text))
		throw Refusal(400, std::string(what) + " is no UTF-8");
}

static void add_stream(SseRequest &request, std::string stream)
{
	if (stream.empty())
		throw Refusal(400, "the stream key is empty");
	check_text("the stream key", stream);
	if (std::find(request.streams.begin(), request.streams.end(), stream) != request.streams.end())
		throw Refusal(400, "stream \"" + stream + "\" is named twice");
	request.streams.push_back(std::move(stream));
}

static bool flag(const Target &target, const char *name, bool otherwise)
{
	const std::string *value = target.find(name);
	if (value == nullptr)
		return otherwise;
	if (value->empty() || *value == "1" || *value == "true")
		return true;
	if (*value == "0" || *value == "false")
		return false;
	throw Refusal(400, std::string(name) + " must be 0 or 1, not \"" + *value + '"');
}

static void parse_start(SseRequest &request, const Head &head, const Target &target)
{
	std::string after = "now";
	if (!head.last_event_id.empty())
		after = head.last_event_id;
	else if (const std::string *value = target.find("after"); value != nullptr && !value->empty())
		after = *value;

	if (!request.prefixes.empty() && after != "now" && after != "0")
		throw Refusal(400, "a prefix and all streams have no cursor: they begin after 0 or now");
	if (after == "0")
		request.prefix_start = doorbell::Start::beginning();
	try {
		request.starts = parse_starts(after, request.streams.size());
	} catch (const doorbell::Error &error) {
		throw Refusal(400, error.what());
	}
}

SseRequest parse_sse_request(const Head &head, const Target &target, std::size_t max_streams)
{
	SseRequest request;
	if (target.path == events_path) {
		for (const auto &[name, value] : target.query) {
			if (name == "stream") {
				add_stream(request, value);
			} else if (name == "prefix") {
				check_text("the prefix", value);
				request.prefixes.push_back(value);
			}
			if (request.streams.size() + request.prefixes.size() > max_streams)
				throw Refusal(400, "a connection may name " + std::to_string(max_streams) + " streams at most");
		}
		if (request.streams.empty() && request.prefixes.empty())
			request.prefixes.emplace_back();
		request.envelope = true;
	} else {
		add_stream(request, percent_decoded(std::string_view(target.path).substr(stream_path.size()), false));
		request.envelope = flag(target, "envelope", false);
	}
	request.named = flag(target, "named", true);
	request.raw = flag(target, "raw", false);
	parse_start(request, head, target);
	return request;
}

} // namespace command::serve
