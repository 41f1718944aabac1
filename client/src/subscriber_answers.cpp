// What Subscriber follows, and what it makes of rings and answers. See subscriber_impl.hpp.
#include "subscriber_impl.hpp"

#include "failpoint.hpp"
#include "text.hpp"

#include <algorithm>
#include <utility>

namespace doorbell {

using detail::Result;
using detail::Survey;
using detail::Verdict;

namespace {

constexpr milliseconds longest_deaf{10}; // between two looks at the listener while handlers run
constexpr milliseconds lull{1};			 // of rings that flow

} // namespace

void Subscriber::Impl::follow(std::string_view stream, Start start)
{
	detail::check_stream(stream);
	if (start.mark().seq < 0)
		throw Error("invalid start " + std::to_string(start.mark().seq) + ": a seq is not negative");
	changes_++;
	forget(stream);
	named_.emplace(stream);
	starts_.emplace(stream, start);
}

void Subscriber::Impl::unfollow(std::string_view stream)
{
	const auto found = named_.find(stream);
	if (found == named_.end())
		return;
	changes_++;
	forget(stream);
	named_.erase(found);
}

void Subscriber::Impl::forget(std::string_view stream)
{
	marks_.forget(stream);
	agenda_.forget(stream);
	const auto start = starts_.find(stream);
	if (start != starts_.end())
		starts_.erase(start);
}

void Subscriber::Impl::on_ring(const Pointer &pointer)
{
	stats_.rings++;
	if (pointer.everything()) {
		request_sweep();
		return;
	}
	if (named_.find(pointer.stream) == named_.end()) {
		ring_prefixes(pointer);
		return;
	}
	const std::optional<Mark> mark = marks_.at(pointer.stream);
	if (!mark || pointer.seq > mark->seq) // a starting stream is read as soon as its start is settled
		agenda_.ring(pointer.stream, pointer.seq, Clock::now());
}

void Subscriber::Impl::work_through_answer()
{
	Answer &answer = *answer_;
	if (answer.other_history) {
		reset_prefix(answer);
		answer_.reset();
		return;
	}
	const int rows = answer.result.rows();
	while (true) {
		for (; answer.row < rows; answer.row++) {
			switch (answer.request.kind) {
			case Request::Kind::start_prefix:
				prefix_started(answer);
				break;
			case Request::Kind::survey:
				surveyed(answer);
				break;
			case Request::Kind::read_prefix:
				read_prefix_row(answer);
				break;
			default:
				if (answer.waters)
					read_waters(answer);
				else
					read_event(answer);
			}
			if (stop_ || paused_) {
				answer.row++;
				return;
			}
			if (Clock::now() - listened_at_ > longest_deaf)
				listen_between();
		}
		if (answer.request.kind != Request::Kind::read || !std::exchange(answer.waters, false))
			break;
		answer.row = 0;
	}

	if (answer.request.kind == Request::Kind::read)
		finish_read(answer);
	else if (answer.request.kind == Request::Kind::read_prefix)
		finish_read_prefix(answer);
	answer_.reset();
}

// Hears the listener between two events: a backend that cannot send holds back the NOTIFY queue for everybody. One read
// takes no more than the socket holds, so while rings flow it goes on, but not for longer than the handlers had.
void Subscriber::Impl::listen_between()
{
	const Clock::time_point begin = Clock::now();
	const Clock::time_point end = begin + (begin - listened_at_);
	std::size_t heard = listener_.poll(milliseconds(0));
	while (heard > 0 && Clock::now() < end)
		heard = listener_.poll(lull);
	listened_at_ = Clock::now();
}

// One stream of a survey. Skips those that were moved since it was asked for.
void Subscriber::Impl::surveyed(const Answer &answer)
{
	const Survey row(answer.result, answer.row);
	const auto start = starts_.find(row.stream);
	if (start == starts_.end()) {
		const std::optional<Mark> mark = marks_.at(row.stream);
		if (mark && mark->seq == row.given)
			verify(row, *mark);
		return;
	}

	const Start::Kind kind = start->second.kind();
	const Mark asked = start->second.mark();
	if (row.given != (kind == Start::Kind::now ? -1 : asked.seq))
		return;
	if (kind == Start::Kind::after) {
		verify(row, asked);
		return;
	}
	starts_.erase(start);
	marks_.place(row.stream, kind == Start::Kind::now ? Mark{row.mark, row.check} : Mark{row.low_water, 0});
	if (row.has_more)
		agenda_.want(row.stream);
}

// Compares a mark with what lies in the table.
void Subscriber::Impl::verify(const Survey &row, Mark mark)
{
	switch (row.judge(mark)) {
	case Verdict::gap:
		tell_gap(row.stream, mark, row.low_water);
		agenda_.want(row.stream);
		break;
	case Verdict::reset:
		tell_reset(row.stream, mark, row.low_water);
		agenda_.want(row.stream);
		break;
	case Verdict::same:
		move(row.stream, {mark.seq, row.check != 0 ? row.check : mark.check}, [] {});
		if (row.has_more)
			agenda_.want(row.stream);
	}
}

// Moves the mark of a stream and tells a handler; if it throws, the stream is as it was. (But what the handler itself
// did to subscriptions stays.)
template <typename Tell>
void Subscriber::Impl::move(const std::string &stream, Mark mark, Tell tell)
{
	const std::optional<Mark> old_mark = marks_.at(stream);
	const auto found = starts_.find(stream);
	const std::optional<Start> old_start = found == starts_.end() ? std::nullopt : std::optional<Start>(found->second);
	if (found != starts_.end())
		starts_.erase(found);
	marks_.place(stream, mark);

	const std::uint64_t changes = changes_;
	try {
		tell();
	} catch (...) {
		if (changes == changes_) {
			if (old_mark)
				marks_.place(stream, *old_mark);
			else
				marks_.forget(stream);
			if (old_start)
				starts_.emplace(stream, *old_start);
		}
		throw;
	}
}

void Subscriber::Impl::tell_gap(const std::string &stream, Mark asked, std::int64_t low_water)
{
	move(stream, {low_water, 0}, [&] {
		if (handlers_.on_gap)
			handlers_.on_gap({stream, asked.seq, low_water});
	});
}

void Subscriber::Impl::tell_reset(const std::string &stream, Mark asked, std::int64_t low_water)
{
	move(stream, {low_water, 0}, [&] {
		if (handlers_.on_reset)
			handlers_.on_reset({stream, asked, low_water, {}, {}});
	});
}

// Gap and reset, from a read.
void Subscriber::Impl::read_waters(Answer &answer)
{
	const Result &result = answer.result;
	const int row = answer.row;
	if (result.is_null(row, 5))
		return;
	const std::string stream(result.text(row, 0));
	const std::int64_t low_water = result.int8(row, 1);
	const std::optional<Mark> mark = marks_.at(stream);
	if (!mark)
		return;
	const bool verifiable = mark->seq == result.int8(row, 5) && mark->check != 0;

	if (low_water > mark->seq) {
		tell_gap(stream, *mark, low_water);
	} else if (verifiable && result.is_null(row, 2)) {
		if (low_water < mark->seq)
			answer.unsure.insert(stream);
	} else if (verifiable && check_of(stream, mark->seq, result.text(row, 2), result.time(row, 4)) != mark->check) {
		tell_reset(stream, *mark, low_water);
		answer.stale.insert(stream);
		if (marks_.at(stream))
			agenda_.want(stream);
	}
}

void Subscriber::Impl::read_event(Answer &answer)
{
	const std::string_view stream = answer.result.text(answer.row, 0);
	if (!answer.result.is_null(answer.row, 5) || answer.stale.count(stream) > 0)
		return;
	if (answer.unsure.count(stream) > 0) { // what lies behind the mark is there, but not the mark's event
		answer.stale.emplace(stream);
		request_sweep(); // which judges the mark
		return;
	}
	detail::read_entry(answer.result, answer.row, event_);
	const std::optional<Mark> before = marks_.at(event_.stream);
	if (!before || !marks_.deliver(event_.stream, mark_of(event_))) // no longer followed, or moved ahead
		return;

	const std::uint64_t changes = changes_;
	try {
		if (handlers_.on_event)
			handlers_.on_event(event_);
	} catch (...) {
		if (changes == changes_)
			marks_.place(event_.stream, *before);
		throw;
	}
	delivered_++;
	stats_.events++;
}

void Subscriber::Impl::finish_read(const Answer &answer)
{
	// replay_many gives fewer events than it may only if it gave all there are.
	const int events = answer.result.rows() - static_cast<int>(answer.request.streams.size());
	const bool full = events >= answer.request.limit;
	const Clock::time_point now = Clock::now();
	for (std::size_t i = 0; i < answer.request.streams.size(); i++) {
		const std::string &stream = answer.request.streams[i];
		const std::optional<Mark> mark = marks_.at(stream);
		if (!mark)
			continue;
		const bool moved = mark->seq > answer.request.after[i];
		agenda_.done(stream, mark->seq, moved, full && moved, now);
	}
	grow_limit(answer.result, events);
}

// The limit of the next read, from the bytes of this one: payloads, and cursors or marks.
void Subscriber::Impl::grow_limit(const Result &result, int events)
{
	std::size_t bytes = 0;
	for (int row = 0; row < result.rows(); row++)
		for (const int column : {3, 5})
			bytes += static_cast<std::size_t>(PQgetlength(result.get(), row, column));
	limit_ = detail::next_limit(limit_, events, bytes, options_);
}

} // namespace doorbell
