// stdout as a buffer that knows whether anybody reads it.
//
// 1. What is to be written is added to text(). advance() writes what can be written without waiting, flush() all of it.
// 2. The descriptor stays in blocking mode, because others may share it (a terminal, a pipe's other writers). So
//    advance() asks poll(2) first and writes no more than a pipe is then sure to take.
// 3. A reader that has gone away (`| head`) is no error: closed() becomes true, and what is written is dropped. Any
//    other failure throws std::runtime_error.
#pragma once

#include <doorbell/connect.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace command {

class Output {
public:
	std::string &text() noexcept { return text_; }
	std::size_t waiting() const noexcept { return text_.size() - written_; }
	std::uint64_t written() const noexcept { return written_before_ + written_; } // bytes, ever
	std::uint64_t end() const noexcept { return written() + waiting(); }
	bool closed() const noexcept { return closed_; }

	void advance(); // also notices a reader that is gone
	void flush();
	doorbell::Descriptor descriptor() const noexcept;

private:
	void write(std::size_t most);
	void drop_written();

	std::string text_;
	std::size_t written_ = 0; // of text_
	std::uint64_t written_before_ = 0;
	bool closed_ = false;
};

} // namespace command
