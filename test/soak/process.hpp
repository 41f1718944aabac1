// What the soak runs and talks to: programs with their output in a pipe, HTTP streams, memory of processes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace soak {

using std::chrono::milliseconds;

// A program that runs until this object ends; it dies with the thread that started it, too. What it says on stderr is
// added to the file soak.stderr.
class Process {
public:
	explicit Process(const std::vector<std::string> &command);
	~Process();
	Process(const Process &) = delete;
	Process &operator=(const Process &) = delete;

	pid_t pid() const noexcept { return pid_; }
	std::string read(milliseconds timeout); // from its stdout; empty: nothing came
	void end(int signal);					// and waits

private:
	pid_t pid_ = -1;
	int out_ = -1;
};

// The body of a GET from 127.0.0.1, as it comes.
class HttpStream {
public:
	// With a small receive buffer, the sender notices soon that the reader is slow. Nobody there: the stream is at its
	// end.
	HttpStream(int port, const std::string &path, const std::string &last_event_id, bool small_buffer);
	~HttpStream();
	HttpStream(const HttpStream &) = delete;
	HttpStream &operator=(const HttpStream &) = delete;

	// nullopt: it has ended. Throws std::runtime_error for an answer that is not 200.
	std::optional<std::string> read(std::size_t most, milliseconds timeout);

private:
	int fd_;
	std::string head_;
	bool in_body_ = false;
};

long memory_of(pid_t pid, const std::string &field); // a line of /proc/PID/status, in kB; 0: no such process

} // namespace soak
