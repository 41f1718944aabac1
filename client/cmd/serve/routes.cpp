#include "routes.hpp"

#include "page.hpp"
#include "sse_query.hpp"

#include <doorbell/sse.hpp>

#include <algorithm>
#include <random>

namespace command::serve {

namespace {

constexpr std::string_view event_stream = "text/event-stream";
constexpr std::string_view allow = "allow: GET, HEAD, OPTIONS\r\n";

enum class Resource { none, page, health, metrics, stream };

Resource find_resource(const std::string &path)
{
	if (path == events_path || path.compare(0, stream_path.size(), stream_path) == 0)
		return Resource::stream;
	if (path == "/")
		return Resource::page;
	if (path == "/healthz")
		return Resource::health;
	return path == "/metrics" ? Resource::metrics : Resource::none;
}

Answer options()
{
	Answer answer;
	answer.status = 204;
	answer.headers = std::string(allow) + "access-control-allow-methods: GET, HEAD, OPTIONS\r\n"
										  "access-control-allow-headers: authorization, cache-control, last-event-id\r\n"
										  "access-control-max-age: 86400\r\n";
	return answer;
}

} // namespace

// `*` is for tokens in headers or addresses; cookies come along only with an origin that is named.
std::string Routes::cors(const Head &head) const
{
	if (options_.cors.empty())
		return {};
	const auto &origins = options_.cors;
	if (!head.origin.empty() && std::find(origins.begin(), origins.end(), head.origin) != origins.end())
		return "access-control-allow-origin: " + head.origin + "\r\naccess-control-allow-credentials: true\r\nvary: origin\r\n";
	if (std::find(origins.begin(), origins.end(), "*") != origins.end())
		return "access-control-allow-origin: *\r\n";
	return "vary: origin\r\n";
}

Answer Routes::full_house() const
{
	static std::minstd_rand random{std::random_device{}()};
	// EventSource never comes back after a 503, but after a stream that ends it does. Everybody waits for another time.
	const auto retry = static_cast<unsigned>(options_.retry.count());
	Answer answer;
	answer.type = event_stream;
	answer.headers = "cache-control: no-cache, no-transform\r\n";
	doorbell::sse::append_retry(answer.body, doorbell::milliseconds(retry + random() % (4 * retry + 1)));
	doorbell::sse::append_comment(answer.body, "full house");
	return answer;
}

void Routes::authorize(const Head &head, const Target &target, doorbell::SseRequest &request) const
{
	const std::string token = find_token(head.authorization, target.find("token"), head.cookie, options_.cookie);
	if (token.empty())
		throw Refusal(401, "a token is needed");
	const Grant grant = options_.auth->verify(token);
	for (const std::string &stream : request.streams)
		if (!grant.covers_stream(stream))
			throw Refusal(403, "the token does not allow stream \"" + stream + '"');
	for (const std::string &prefix : request.prefixes)
		if (!grant.covers_prefix(prefix))
			throw Refusal(403, "the token does not allow all streams that begin with \"" + prefix + '"');
	request.expires = grant.expires;
}

// A short answer, or none: then `request` is to be followed.
std::optional<Answer> Routes::answer(const Head &head, doorbell::SseRequest &request) const
{
	if (head.method == "OPTIONS")
		return options();
	const Target target = parse_target(head.target);
	const Resource resource = find_resource(target.path);
	if (resource == Resource::none)
		throw Refusal(404, "there is nothing at this path");
	if (head.method != "GET" && head.method != "HEAD")
		throw Refusal(405, "only GET, HEAD and OPTIONS are allowed");
	if (resource == Resource::page)
		return page();
	if (resource == Resource::health)
		return options_.health();
	if (resource == Resource::metrics)
		return options_.metrics();

	request = parse_sse_request(head, target, options_.max_streams);
	if (options_.auth)
		authorize(head, target, request);
	if (options_.is_full())
		return full_house();
	return std::nullopt;
}

Reply Routes::reply(const Head &head) const
{
	Reply reply;
	const bool head_only = head.method == "HEAD";
	std::optional<Answer> answer;
	try {
		answer = this->answer(head, reply.request);
	} catch (const Refusal &refusal) {
		answer = refused(refusal);
		if (refusal.status() == 405)
			answer->headers += allow;
	}
	if (answer) {
		answer->headers += cors(head);
		reply.status = answer->status;
		reply.text = format_answer(*answer, head_only);
	} else {
		reply.status = 200;
		reply.is_stream = !head_only;
		reply.text = format_head(200, event_stream,
								 "cache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n" + cors(head));
	}
	return reply;
}

Reply Routes::refuse(const Refusal &refusal) const
{
	Reply reply;
	reply.status = refusal.status();
	reply.text = format_answer(refused(refusal), false);
	return reply;
}

} // namespace command::serve
