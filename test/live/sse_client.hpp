// An SSE client over a loopback TCP connection, and the server's end of that connection for a Streamer.
//
// It parses by the WHATWG rules, independently of the formatter: fields by line, dispatch at the blank line, an event
// without data is dropped, an id that was seen stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace live {

struct SseMessage {
	std::string id; // Last-Event-ID after it
	std::string type;
	std::string data;
};

class SseClient {
public:
	SseClient(); // connected
	~SseClient();
	SseClient(const SseClient &) = delete;
	SseClient &operator=(const SseClient &) = delete;

	int take_server_end();					// the descriptor, once
	bool read(std::size_t most = SIZE_MAX); // what is there now; false once the server has closed
	void shrink_receive_buffer();

	std::vector<SseMessage> messages; // without control events
	std::vector<SseMessage> controls; // doorbell:*
	std::string last_id;
	std::size_t comments = 0;
	std::size_t bytes = 0;
	long retry = -1;

private:
	void line(const std::string &text);

	int fd_ = -1;
	int server_fd_ = -1;
	std::string buffer_;
	std::string type_;
	std::string data_;
	bool has_data_ = false;
};

} // namespace live
