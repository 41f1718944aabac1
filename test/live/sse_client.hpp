// An SSE client over a loopback TCP connection, and the server's end of that connection for a Streamer.
// What it read is what the parser has.
#pragma once

#include "sse_parser.hpp"

#include <cstdint>

namespace live {

class SseClient : public SseParser {
public:
	SseClient(); // connected
	~SseClient();
	SseClient(const SseClient &) = delete;
	SseClient &operator=(const SseClient &) = delete;

	int take_server_end();					// the descriptor, once
	bool read(std::size_t most = SIZE_MAX); // what is there now; false once the server has closed
	void shrink_receive_buffer();

	std::size_t bytes = 0;

private:
	int fd_ = -1;
	int server_fd_ = -1;
};

} // namespace live
