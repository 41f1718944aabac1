// What a request means: a stream to be followed, or a short answer.
//
// 1. The paths are those of docs/operations.md. Whatever is wrong with a request becomes an answer with a one-line JSON
//    error; nothing that a client sends gets further unless it is a valid stream key (1 to 512 bytes of UTF-8 without
//    control characters) or a valid cursor.
// 2. Only streams need a token. HEAD is answered as GET would be, without the body, and follows nothing.
//
// Threading: one owner. Keeps nothing between two requests.
#pragma once

#include "answer.hpp"
#include "auth.hpp"
#include "head.hpp"
#include "url.hpp"

#include <doorbell/streamer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace command::serve {

struct RouteOptions {
	std::size_t max_streams = 100;	// of one connection
	std::vector<std::string> cors;	// origins, or "*"
	std::shared_ptr<const Auth> auth; // none: everybody may follow everything
	std::string cookie = "doorbell";
	std::function<bool()> is_full;	  // no room for another stream
	std::function<Answer()> health;
	std::function<Answer()> metrics;
	doorbell::milliseconds retry{2'000};
};

struct Reply {
	std::string text;						 // what is sent, or the head of the stream
	int status = 0;
	bool is_stream = false;
	doorbell::SseRequest request; // of the stream
};

class Routes {
public:
	explicit Routes(RouteOptions options) : options_(std::move(options)) {}

	Reply reply(const Head &head) const;
	Reply refuse(const Refusal &refusal) const; // of a request whose head could not be read

private:
	std::optional<Answer> answer(const Head &head, doorbell::SseRequest &request) const;
	void authorize(const Head &head, const Target &target, doorbell::SseRequest &request) const;
	Answer full_house() const;
	std::string cors(const Head &head) const;

	RouteOptions options_;
};

} // namespace command::serve
