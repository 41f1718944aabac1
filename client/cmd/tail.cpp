// doorbell tail: prints what there is and follows.
//
// 1. One loop waits for the subscriber, for a signal and for stdout, in one poll(2).
// 2. When the reader of stdout is slow, the subscriber is paused at high_output bytes and goes on at low_output. It is
//    still polled, so that its listener never holds back the server's NOTIFY queue.
// 3. All streams, or one prefix and nothing else, have a cursor, which is printed with each event.
// 4. With --consumer it starts where that consumer's cursors are, and moves them behind what has been written.
// 5. It ends by a signal, by --count, or when the reader of stdout is gone; each is a success.
#include "command.hpp"
#include "committer.hpp"
#include "format.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "replay_dsns.hpp"
#include "starts.hpp"
#include "state_watch.hpp"
#include "summary.hpp"
#include "wait.hpp"

#include <doorbell/doorbell.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <poll.h>
#include <utility>

namespace command {
namespace {

constexpr std::size_t high_output = 1024 * 1024;
constexpr std::size_t low_output = high_output / 2;

// Where the streams start: `marks` are those of the named ones, in their order.
struct Starts {
	std::vector<doorbell::Start> named;
	std::vector<doorbell::Mark> marks;
	doorbell::AllStart others = doorbell::AllStart::now();
	std::vector<std::string> unsettled; // those whose cursor is yet to be committed
	bool others_unsettled = false;
};

struct Tail {
	std::vector<std::string> streams;
	std::vector<std::string> prefixes;
	std::vector<std::string> replay_dsns;
	bool all = false;
	std::string after; // empty: now or, for a consumer, 0
	std::string consumer;
	std::uint64_t count = UINT64_MAX;
	Format format = Format::automatic;
	bool summary = false;

	bool open_ended() const { return all || !prefixes.empty(); }
	bool has_one_cursor() const { return all || (prefixes.size() == 1 && streams.empty()); } // for all that it follows
	std::string prefix() const { return all ? "" : prefixes.front(); }						 // of that cursor
	void check() const;																		 // throws CLI::ValidationError
	Starts starts() const; // as --after has them
	int run(const doorbell::ConnectOptions &connect) const;
};

void Tail::check() const
{
	if (all && (!streams.empty() || !prefixes.empty()))
		throw CLI::ValidationError("--all: follows every stream, so it excludes streams and --prefix");
	if (!all && streams.empty() && prefixes.empty())
		throw CLI::ValidationError("nothing to follow: give streams, --prefix or --all");
	if (open_ended() && !has_one_cursor() && !consumer.empty())
		throw CLI::ValidationError("--consumer: needs one cursor, so several prefixes, or one and streams, exclude it");
	if (open_ended() && !has_one_cursor() && !after.empty() && after != "now" && after != "0")
		throw CLI::ValidationError("--after: several prefixes, or one and streams, begin at 0 or now, not at \"" +
								   after + '"');
	try {
		starts();
	} catch (const doorbell::Error &error) {
		throw CLI::ValidationError(std::string("--after: ") + error.what());
	}
}

Starts Tail::starts() const
{
	Starts starts;
	const std::string first = !after.empty() ? after : consumer.empty() ? "now" : "0";
	if (first == "0")
		starts.others = doorbell::AllStart::beginning();
	else if (has_one_cursor() && first != "now")
		starts.others = doorbell::AllStart::after(first);
	if (!has_one_cursor())
		starts.named = parse_starts(first, streams.size());
	for (const doorbell::Start start : starts.named)
		starts.marks.push_back(start.mark());
	return starts;
}

// The same, but where the consumer has committed something it goes on there.
Starts consumer_starts(const Tail &tail, Committer &committer)
{
	Starts starts = tail.starts();
	for (std::size_t i = 0; i < tail.streams.size(); i++) {
		if (const std::optional<doorbell::Mark> mark = committer.committed(tail.streams[i])) {
			starts.named[i] = doorbell::Start::after(*mark);
			starts.marks[i] = *mark;
		} else {
			starts.unsettled.push_back(tail.streams[i]);
		}
	}
	if (tail.has_one_cursor()) {
		if (std::optional<std::string> cursor = committer.committed())
			starts.others = doorbell::AllStart::after(std::move(*cursor));
		else
			starts.others_unsettled = true;
	}
	return starts;
}

class Follower {
public:
	// committer: null without a consumer
	Follower(const Tail &tail, Starts starts, Committer *committer, const doorbell::ConnectOptions &connect)
		: committer_(committer), starts_(std::move(starts)), has_cursor_(tail.has_one_cursor()),
		  prefix_(has_cursor_ ? tail.prefix() : ""),
		  formatter_(tail.format, tail.streams, starts_.marks, tail.open_ended()), left_(tail.count),
		  subscriber_(options(tail, connect), handlers())
	{
		for (std::size_t i = 0; i < tail.streams.size(); i++)
			subscriber_.follow(tail.streams[i], starts_.named[i]);
		for (const std::string &prefix : tail.prefixes)
			subscriber_.follow_prefix(prefix, starts_.others);
		if (tail.all)
			subscriber_.follow_prefix("", starts_.others);
		formatter_.greet(output_.text());
	}

	void run()
	{
		try {
			follow();
		} catch (const doorbell::Error &) {
			output_.flush(); // no line ends in its middle
			throw;
		}
		output_.flush();
		if (committer_ != nullptr)
			committer_->finish(output_);
	}

	const Summary &summary() const { return summary_; }

private:
	void follow()
	{
		while (true) {
			subscriber_.poll(doorbell::milliseconds(0));
			output_.advance();
			commit();
			if (output_.closed() || left_ == 0 || interrupt().is_pending())
				break;
			if (output_.waiting() <= low_output)
				subscriber_.resume();
			watch_.look(subscriber_.state(), subscriber_.last_error());
			wait_for_more();
		}
	}

	void commit()
	{
		if (committer_ == nullptr)
			return;
		// Where it starts is committed, too: whoever begins at "now" and gets no event begins there the next time.
		const auto settled = [this](const std::string &stream) {
			const std::optional<doorbell::Mark> mark = subscriber_.mark(stream);
			if (mark)
				committer_->note(stream, *mark, output_);
			return mark.has_value();
		};
		starts_.unsettled.erase(std::remove_if(starts_.unsettled.begin(), starts_.unsettled.end(), settled),
								starts_.unsettled.end());
		if (starts_.others_unsettled) {
			if (std::optional<std::string> cursor = subscriber_.cursor(prefix_)) {
				committer_->note(std::move(*cursor), output_);
				starts_.others_unsettled = false;
			}
		}
		committer_->advance(output_);
	}

	static doorbell::SubscriberOptions options(const Tail &tail, const doorbell::ConnectOptions &connect)
	{
		doorbell::SubscriberOptions options;
		options.connect = connect;
		options.read_dsns = shuffled(tail.replay_dsns);
		return options;
	}

	doorbell::Handlers handlers()
	{
		doorbell::Handlers handlers;
		handlers.on_event = [this](const doorbell::Event &event) {
			std::string cursor = has_cursor_ ? *subscriber_.cursor(prefix_) : "";
			formatter_.event(output_.text(), event, cursor);
			summary_.event(event);
			if (committer_ != nullptr && has_cursor_)
				committer_->note(std::move(cursor), output_, std::exchange(was_reset_, false));
			else if (committer_ != nullptr)
				committer_->note(event.stream, mark_of(event), output_);
			left_--;
			pause_if_full();
		};
		handlers.on_gap = [this](const doorbell::Gap &gap) { formatter_.gap(output_.text(), gap); };
		handlers.on_reset = [this](const doorbell::Reset &reset) {
			formatter_.reset(output_.text(), reset);
			if (has_cursor_)
				was_reset_ = true;
			else if (committer_ != nullptr)
				committer_->note(reset.stream, {reset.low_water, 0}, output_, true);
		};
		handlers.on_state = [this](doorbell::State state) {
			if (state == doorbell::State::live)
				summary_.live();
		};
		return handlers;
	}

	void pause_if_full()
	{
		if (left_ == 0 || output_.waiting() >= high_output)
			subscriber_.pause();
	}

	void wait_for_more()
	{
		std::vector<doorbell::Descriptor> descriptors = subscriber_.descriptors();
		descriptors.push_back(output_.descriptor());
		descriptors.push_back({interrupt().fd(), POLLIN});
		doorbell::Clock::time_point deadline = std::min(subscriber_.deadline(), watch_.deadline());
		if (committer_ != nullptr)
			deadline = std::min(deadline, committer_->deadline(output_));
		wait(descriptors, deadline);
	}

	Committer *committer_;
	Starts starts_;
	bool has_cursor_;
	std::string prefix_; // of that cursor
	bool was_reset_ = false; // so the next cursor is of another history than what the consumer committed
	Formatter formatter_;
	Output output_;
	Summary summary_;
	std::uint64_t left_;
	StateWatch watch_;
	doorbell::Subscriber subscriber_; // last: its handlers use the others
};

int Tail::run(const doorbell::ConnectOptions &connect) const
{
	std::optional<Committer> committer;
	if (!consumer.empty())
		committer.emplace(connect, consumer);
	Follower follower(*this, committer ? consumer_starts(*this, *committer) : starts(),
					  committer ? &*committer : nullptr, connect);
	follower.run();
	if (summary)
		std::cerr << follower.summary().text();
	return succeeded;
}

} // namespace

void add_tail(CLI::App &app, Command &command)
{
	const auto tail = std::make_shared<Tail>();
	CLI::App *sub = app.add_subcommand("tail", "Print the events of streams as they come, until interrupted");
	sub->add_option("STREAM", tail->streams, "stream keys");
	sub->add_option("--prefix", tail->prefixes,
					"all streams whose key begins with this, also new ones; may be repeated")
		->option_text("P")
		->allow_extra_args(false);
	sub->add_flag("--all", tail->all, "all streams, also new ones");
	sub->add_option("--after", tail->after,
					"begin behind a seq, behind a cursor (one mark for each stream, or that of --all or --prefix), at "
					"0 or now (default: now; with --consumer, where it has no cursor: 0)")
		->option_text("N|CURSOR|now");
	sub->add_option(
		   "--consumer", tail->consumer,
		   "go on behind the cursor that is kept in the database under this name, and move it behind what was written")
		->check([](const std::string &name) { return name.empty() ? "is empty" : ""; })
		->option_text("NAME");
	sub->add_option("--count", tail->count, "end after so many events")->check(CLI::PositiveNumber)->option_text("N");
	sub->add_flag("--summary", tail->summary, "at the end, say how long events took from append to delivery");
	add_replay_dsns(*sub, tail->replay_dsns);
	add_format(*sub, tail->format);
	sub->callback([tail, &command] {
		tail->check();
		command.run = [tail, &command] { return tail->run(command.connect); };
	});
}

} // namespace command
