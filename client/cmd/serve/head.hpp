// Reads the head of a request, by Boost.Beast's parser, however it is cut into packets.
//
// 1. feed() takes bytes until the head is complete; what follows it is not looked at.
// 2. It keeps at most max_head_bytes. A request line beyond max_line_bytes, a head beyond max_head_bytes and whatever
// is
//    no HTTP/1.0 or 1.1 throw Refusal (414, 431, 400, 505).
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace command::serve {

constexpr std::size_t max_line_bytes = 8 * 1024;
constexpr std::size_t max_head_bytes = 16 * 1024;

// What the rest needs to know of a head. Header values are empty when they are not there.
struct Head {
	std::string method;
	std::string target;
	std::string authorization;
	std::string cookie;
	std::string last_event_id;
	std::string origin;
};

class HeadReader {
public:
	HeadReader();
	~HeadReader();
	HeadReader(const HeadReader &) = delete;
	HeadReader &operator=(const HeadReader &) = delete;

	// True once the head is complete; false: more is needed.
	bool feed(std::string_view bytes);
	Head head() const; // once it is complete

private:
	class Parser;
	std::unique_ptr<Parser> parser_;
	std::string bytes_;
	bool line_complete_ = false;
};

} // namespace command::serve
