// The lines of a file or of stdin, without an upper limit on their length.
#pragma once

#include <string>

namespace command {

class Lines {
public:
	explicit Lines(const std::string &file); // "-": stdin. Throws std::runtime_error, naming the file.
	~Lines();
	Lines(const Lines &) = delete;
	Lines &operator=(const Lines &) = delete;

	// The next line, without its line feed; false at the end, and once interrupt() is pending.
	bool next(std::string &line);
	std::size_t number() const noexcept { return number_; } // of the line last returned, from 1

private:
	bool fill();

	std::string file_;
	int fd_;
	std::string buffer_;
	std::size_t begin_ = 0; // of what was not returned yet
	std::size_t number_ = 0;
	bool at_end_ = false;
};

} // namespace command
