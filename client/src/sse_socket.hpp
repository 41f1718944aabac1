// The socket of one SSE connection, and what waits to be written to it.
//
// Texts are shared with other connections; what waits is slices of them. Writes never block.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace doorbell::detail {

class SseSocket {
public:
	explicit SseSocket(int fd) noexcept : fd_(fd) {}
	~SseSocket();
	SseSocket(const SseSocket &) = delete;
	SseSocket &operator=(const SseSocket &) = delete;

	int fd() const noexcept { return fd_; }
	std::size_t waiting() const noexcept { return waiting_; }

	void push(std::shared_ptr<const std::string> text, std::size_t begin, std::size_t end);
	void push(std::string text);

	enum class Outcome { written, blocked, broken }; // all of it; until it is writable again; the client is gone
	Outcome flush(std::size_t &bytes);				 // adds how much was written

private:
	struct Slice {
		std::shared_ptr<const std::string> text;
		std::size_t begin;
		std::size_t end;
	};

	void drop(std::size_t bytes);

	int fd_;
	std::size_t waiting_ = 0;
	std::size_t first_ = 0; // of slices_ that is not written
	std::vector<Slice> slices_;
};

} // namespace doorbell::detail
