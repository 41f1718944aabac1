// What a request is answered with, unless it becomes a stream: a short text after which the connection is closed.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace command::serve {

// A request that is refused, and why: becomes an answer with a one-line JSON object.
class Refusal : public std::runtime_error {
public:
	Refusal(int status, const std::string &why) : std::runtime_error(why), status_(status) {}
	int status() const noexcept { return status_; }

private:
	int status_;
};

struct Answer {
	int status = 200;
	std::string type; // content-type; empty: no body
	std::string body;
	std::string headers; // more lines, each ended by CR LF
};

Answer refused(const Refusal &refusal);

// The head of a response. Every response ends with its connection, streams too, so it says so.
std::string format_head(int status, std::string_view type, std::string_view headers);

// Head and body, or the head alone for a HEAD request.
std::string format_answer(const Answer &answer, bool head_only);

} // namespace command::serve
