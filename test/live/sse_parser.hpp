// Parses `text/event-stream` by the WHATWG rules, independently of the formatter: lines end with LF, CR or CRLF,
// however the bytes are cut; an event is dispatched at the blank line and dropped when it has no data; an id that was
// seen stays.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace live {

struct SseMessage {
	std::string id; // Last-Event-ID after it
	std::string type;
	std::string data;
};

class SseParser {
public:
	explicit SseParser(const std::string &cursor = {}) : last_id(cursor), id_(cursor) {} // to go on from there

	void feed(std::string_view bytes);

	std::vector<SseMessage> messages; // without control events
	std::vector<SseMessage> controls; // doorbell:*
	std::string last_id;			  // of the last frame that was complete
	std::size_t comments = 0;
	long retry = -1;

private:
	void end_line();
	void dispatch();

	std::string line_;
	std::string id_;
	bool after_cr_ = false; // an LF belongs to it
	std::string type_;
	std::string data_;
	bool has_data_ = false;
};

} // namespace live
