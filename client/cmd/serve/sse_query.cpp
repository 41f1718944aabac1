#include "sse_query.hpp"

#include "../starts.hpp"
#include "answer.hpp"

#include <doorbell/error.hpp>

#include <utility>

namespace command::serve {

using doorbell::AllStart;
using doorbell::SseRequest;

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

static AllStart parse_all_start(std::string after)
{
	if (after == "now")
		return AllStart::now();
	return after == "0" ? AllStart::beginning() : AllStart::after(std::move(after));
}

static void parse_start(SseRequest &request, const Head &head, const Target &target)
{
	std::string after = "now";
	if (!head.last_event_id.empty())
		after = head.last_event_id;
	else if (const std::string *value = target.find("after"); value != nullptr && !value->empty())
		after = *value;

	if (request.prefixes.empty())
		request.starts = parse_starts(after, request.streams.size());
	else
		request.all_start = parse_all_start(after);
}

SseRequest parse_sse_request(const Head &head, const Target &target, std::size_t max_streams)
{
	SseRequest request;
	if (target.path == events_path) {
		for (const auto &[name, value] : target.query) {
			if (name == "stream")
				request.streams.push_back(value);
			else if (name == "prefix")
				request.prefixes.push_back(value);
			if (request.streams.size() + request.prefixes.size() > max_streams)
				throw Refusal(400, "a connection may name " + std::to_string(max_streams) + " streams at most");
		}
		if (request.streams.empty() && request.prefixes.empty())
			request.prefixes.emplace_back();
		request.envelope = true;
	} else {
		request.streams.push_back(percent_decoded(std::string_view(target.path).substr(stream_path.size()), false));
		request.envelope = flag(target, "envelope", false);
	}
	request.named = flag(target, "named", true);
	request.raw = flag(target, "raw", false);
	try { // before anybody else's read is made with it
		parse_start(request, head, target);
		request.check();
	} catch (const doorbell::Error &error) {
		throw Refusal(400, error.what());
	}
	return request;
}

} // namespace command::serve
