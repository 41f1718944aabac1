// Commits, under a consumer's name, what has been written to stdout.
//
// 1. A cursor is noted with the place in the output behind its event. It is committed once the output is written up to
//    there, so what was not written comes again after a crash, and only that.
// 2. Cursors are gathered: a commit is due when most_events were noted since the last one, or `longest` after the first
//    of them. What is noted while it waits for the output belongs to the next one.
// 3. It has a connection of its own, which blocks for a moment. When the server cannot be reached, it is tried again
//    with what was written meanwhile; it says so if that fails, too. What the server refuses for good is thrown; DB003:
//    another process is further on.
#pragma once

#include "output.hpp"

#include <doorbell/doorbell.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace command {

class Committer {
public:
	Committer(const doorbell::ConnectOptions &connect, std::string consumer);

	std::optional<doorbell::Mark> committed(const std::string &stream) { return log_.cursor(consumer_, stream); }
	std::optional<std::string> committed() { return log_.cursor(consumer_); } // over all streams

	// What is up to there is done when the output is written to its present end. moved: the stream, or all, is of
	// another history, so the cursor may go back.
	void note(const std::string &stream, doorbell::Mark mark, const Output &output, bool moved = false);
	void note(std::string cursor, const Output &output, bool moved = false);

	void advance(const Output &output); // commits what is due and can be
	void finish(const Output &output);	// commits all that was written; throws when it cannot
	doorbell::Clock::time_point deadline(const Output &output) const; // of advance(), unless the output goes on before

private:
	struct Done {
		doorbell::Mark mark;
		std::string cursor; // over all streams
		bool moved = false;
	};
	struct Gathered {
		std::map<std::string, Done> done; // by stream; empty: all
		std::uint64_t events = 0;
		std::uint64_t end = 0; // in the output
		doorbell::Clock::time_point since;
	};

	static constexpr std::uint64_t most_events = 1000;
	static constexpr doorbell::milliseconds longest{500};
	static constexpr doorbell::milliseconds retry_delay{1000};

	static doorbell::ConnectOptions impatient(doorbell::ConnectOptions connect);
	void note(const std::string &stream, Done done, const Output &output);
	doorbell::Clock::time_point due_at() const;
	void commit(Gathered &gathered);
	void commit(const std::string &stream, const Done &done);

	std::string consumer_;
	doorbell::Log log_;
	Gathered next_;
	Gathered waiting_; // for the output
	doorbell::Clock::time_point retry_at_ = doorbell::Clock::time_point::min();
	int failures_ = 0; // since the last commit
};

} // namespace command
