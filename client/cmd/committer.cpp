#include "committer.hpp"

#include "command.hpp"

#include <algorithm>
#include <utility>

namespace command {

using doorbell::Clock;
using doorbell::Mark;

Committer::Committer(const doorbell::ConnectOptions &connect, std::string consumer)
	: consumer_(std::move(consumer)), log_(impatient(connect))
{
}

// Whoever waits here does not read what rings.
doorbell::ConnectOptions Committer::impatient(doorbell::ConnectOptions connect)
{
	connect.connect_timeout = std::min(connect.connect_timeout, doorbell::milliseconds(2'000));
	connect.query_timeout = std::min(connect.query_timeout, doorbell::milliseconds(5'000));
	return connect;
}

void Committer::note(const std::string &stream, Mark mark, const Output &output, bool moved)
{
	note(stream, {mark, {}, moved}, output);
}

void Committer::note(std::string cursor, const Output &output, bool moved)
{
	note({}, {{}, std::move(cursor), moved}, output);
}

void Committer::note(const std::string &stream, Done done, const Output &output)
{
	if (next_.done.empty())
		next_.since = Clock::now();
	Done &last = next_.done[stream];
	done.moved = done.moved || last.moved;
	last = std::move(done);
	next_.events++;
	next_.end = output.end();
}

Clock::time_point Committer::due_at() const
{
	if (next_.done.empty())
		return Clock::time_point::max();
	return next_.events >= most_events ? next_.since : next_.since + longest;
}

Clock::time_point Committer::deadline(const Output &output) const
{
	if (waiting_.done.empty())
		return due_at();
	return output.written() < waiting_.end ? Clock::time_point::max() : retry_at_;
}

void Committer::advance(const Output &output)
{
	if (waiting_.done.empty() && Clock::now() >= due_at())
		waiting_ = std::exchange(next_, {});
	if (waiting_.done.empty() || output.written() < waiting_.end || Clock::now() < retry_at_)
		return;
	try {
		commit(waiting_);
	} catch (const doorbell::Error &error) {
		if (error.is_lasting() || error.is_overtaken())
			throw;
		retry_at_ = Clock::now() + retry_delay;
		if (++failures_ == 2)
			say(std::string("cannot commit, trying again: ") + error.what());
	}
}

void Committer::finish(const Output &output)
{
	for (Gathered *gathered : {&waiting_, &next_})
		if (output.written() >= gathered->end)
			commit(*gathered);
}

void Committer::commit(Gathered &gathered)
{
	while (!gathered.done.empty()) {
		commit(gathered.done.begin()->first, gathered.done.begin()->second);
		gathered.done.erase(gathered.done.begin());
	}
	gathered = {};
	failures_ = 0;
}

void Committer::commit(const std::string &stream, const Done &done)
{
	if (stream.empty() && done.moved)
		log_.move_cursor(consumer_, done.cursor);
	else if (stream.empty())
		log_.commit_cursor(consumer_, done.cursor);
	else if (done.moved)
		log_.move_cursor(consumer_, stream, done.mark);
	else
		log_.commit_cursor(consumer_, stream, done.mark);
}

} // namespace command
