// Requests to serve: head, URL, query, cursor and token, as a client may send them.
//
// 1. The bytes of a request mean the same however they are cut into packets.
// 2. Every request gets one well-formed answer, or is a stream with valid keys; nothing of it gets into the head of the
//    answer as a line of its own.
// 3. With a key, nothing is a stream without a token that covers it; a token with any claims is taken or refused.
#include "fuzz.hpp"

#include "serve/answer.hpp"
#include "serve/auth.hpp"
#include "serve/head.hpp"
#include "serve/routes.hpp"

#include <doorbell/pointer.hpp>

#include <gnutls/crypto.h>
#include <nlohmann/json.hpp>
#include <orcania.h>

#include <algorithm>
#include <random>

using namespace command::serve;

namespace {

constexpr std::size_t packet = 4096; // what serve reads at once
const std::string secret = "0123456789abcdef0123456789abcdef";

RouteOptions options(bool with_key)
{
	RouteOptions options;
	options.max_streams = 4;
	options.cors = {"https://app.example", "*"};
	if (with_key)
		options.auth = std::make_shared<const Auth>(secret, "HS256");
	options.is_full = [] { return false; };
	options.health = options.metrics = [] { return Answer(); };
	return options;
}

const Routes &routes(bool with_key)
{
	static const Routes open(options(false));
	static const Routes locked(options(true));
	return with_key ? locked : open;
}

// Feeds the packets until the head is there or refused; a reply of status 0 when more is needed.
Reply replied(const Routes &to, const std::vector<std::string_view> &packets)
{
	HeadReader reader;
	try {
		for (const std::string_view bytes : packets)
			if (reader.feed(bytes))
				return to.reply(reader.head());
	} catch (const Refusal &refusal) {
		return to.refuse(refusal);
	}
	Reply none;
	none.status = 0;
	return none;
}

template <typename Size>
std::vector<std::string_view> cut(std::string_view text, Size size)
{
	std::vector<std::string_view> packets;
	while (!text.empty()) {
		packets.push_back(text.substr(0, size(std::min(text.size(), packet))));
		text.remove_prefix(packets.back().size());
	}
	return packets;
}

void check_answer(const Reply &reply)
{
	const std::size_t end = reply.text.find("\r\n\r\n");
	fuzz::expect(end != std::string::npos, "an answer has a head");
	fuzz::expect(reply.text.compare(0, 13, "HTTP/1.1 " + std::to_string(reply.status) + " ") == 0,
				 "it begins with its status");
	const std::string head = reply.text.substr(0, end + 2);
	std::size_t lines = 0;
	for (std::size_t begin = 0; begin < head.size(); lines++) {
		const std::size_t stop = head.find("\r\n", begin);
		const std::string_view line = std::string_view(head).substr(begin, stop - begin);
		fuzz::expect(line.find_first_of("\r\n") == std::string_view::npos, "its lines end with CR LF");
		fuzz::expect(begin == 0 || line.find(": ") != std::string_view::npos, "each has a name and a value");
		begin = stop + 2;
	}
	fuzz::expect(lines <= 16, "it has no lines of the client's");
	const std::string_view body = std::string_view(reply.text).substr(end + 4);
	if (reply.status >= 400 && !body.empty()) {
		fuzz::expect(std::count(body.begin(), body.end(), '\n') <= 1, "an error is one line");
		fuzz::expect(nlohmann::json::accept(body), "an error is JSON");
	}
}

void check_stream(const doorbell::SseRequest &request)
{
	const auto is_key = [](const std::string &key) {
		return key.size() <= doorbell::max_stream_bytes &&
			   std::none_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
	};
	fuzz::expect(!request.streams.empty() || !request.prefixes.empty(), "something is followed");
	fuzz::expect(request.streams.size() + request.prefixes.size() <= 4, "not more than a connection may");
	fuzz::expect(request.starts.empty() || request.starts.size() == request.streams.size(), "each stream has a start");
	for (const std::string &stream : request.streams)
		fuzz::expect(!stream.empty() && is_key(stream), "a stream's key is valid");
	fuzz::expect(std::all_of(request.prefixes.begin(), request.prefixes.end(), is_key), "so is a prefix");
}

std::string base64url(const std::string &text)
{
	std::string out(2 * text.size() + 8, '\0');
	std::size_t size = 0;
	o_base64url_encode(reinterpret_cast<const unsigned char *>(text.data()), text.size(),
					   reinterpret_cast<unsigned char *>(out.data()), &size);
	out.resize(size);
	return out;
}

// A token that is signed as it should be, whatever it says.
std::string signed_token(const std::string &claims)
{
	const std::string text = base64url(R"({"alg":"HS256"})") + '.' + base64url(claims);
	std::string signature(32, '\0');
	gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret.data(), secret.size(), text.data(), text.size(), signature.data());
	return text + '.' + base64url(signature);
}

void check_claims(const std::string &claims)
{
	static const Auth auth(secret, "HS256");
	try {
		const Grant grant = auth.verify(signed_token(claims));
		fuzz::expect(grant.patterns.empty() || claims.find("subscribe") != std::string::npos ||
						 claims.find('\\') != std::string::npos,
					 "only the claim grants");
	} catch (const Refusal &refusal) {
		fuzz::expect(refusal.status() == 401, "what is refused is unauthorized");
	}
}

// With a token for what begins with "a", nothing else is followed.
void check_grant(const std::string &target)
{
	static const std::string token = signed_token(R"({"doorbell.subscribe":["a*"]})");
	const Reply reply = routes(true).reply({"GET", "/v1/" + target, "Bearer " + token, "", "", ""});
	if (!reply.is_stream)
		return;
	check_stream(reply.request);
	const auto is_covered = [](const std::string &key) { return !key.empty() && key[0] == 'a'; };
	const auto &streams = reply.request.streams;
	const auto &prefixes = reply.request.prefixes;
	fuzz::expect(std::all_of(streams.begin(), streams.end(), is_covered), "a stream is covered by the token");
	fuzz::expect(std::all_of(prefixes.begin(), prefixes.end(), is_covered), "so is a prefix");
}

} // namespace

void fuzz::test(FuzzedDataProvider &input)
{
	const int kind = input.ConsumeIntegralInRange(0, 7);
	if (kind == 0) {
		check_claims(input.ConsumeRemainingBytesAsString());
		return;
	}
	if (kind == 1) {
		check_grant(input.ConsumeRemainingBytesAsString());
		return;
	}
	const bool with_key = input.ConsumeBool();
	const std::string padding(kind == 2 ? input.ConsumeIntegralInRange<std::size_t>(0, 20'000) : 0,
							  'x'); // up to the limits
	const auto seed = input.ConsumeIntegral<std::uint32_t>();
	std::string text = input.ConsumeRemainingBytesAsString();
	if (kind == 2)
		text =
			"GET /v1/" +
			(seed % 2 == 0 ? padding + text + " HTTP/1.1\r\nHost: x" : text + " HTTP/1.1\r\nHost: x\r\nX: " + padding) +
			"\r\n\r\n";
	else if (kind < 6) // most inputs get as far as the target
		text = "GET /v1/" + text + (kind < 5 ? " HTTP/1.1\r\nHost: x\r\n\r\n" : "");

	std::minstd_rand random(seed + 1);
	const std::size_t most = seed % 3 == 0 ? packet : seed % 3 == 1 ? 64 : 3;
	const Reply reply = replied(routes(with_key), cut(text, [](std::size_t left) { return left; }));
	const Reply again =
		replied(routes(with_key),
				cut(text, [&](std::size_t left) { return std::min<std::size_t>(left, 1 + random() % most); }));
	if (reply.status == 0 || again.status == 0) {
		// Of a head that is incomplete as well as wrong, one cut shows the mistake before another does.
		const int status = std::max(reply.status, again.status);
		fuzz::expect(status == 0 || status >= 400, "a request that is complete is so however it is cut");
		return;
	}
	// What is too long as well as wrong is refused for one or for the other.
	const bool refused = text.size() > max_head_bytes && reply.status >= 400 && again.status >= 400;
	fuzz::expect(refused || reply.status == again.status, "a request gets the same status however it is cut");
	fuzz::expect(reply.is_stream == again.is_stream && reply.request.streams == again.request.streams &&
					 reply.request.prefixes == again.request.prefixes,
				 "a request means the same however it is cut");
	check_answer(reply);
	fuzz::expect(!reply.is_stream || !with_key, "nobody follows without a token");
	if (reply.is_stream)
		check_stream(reply.request);
}
