// Subscriptions by prefix: what Subscriber asks for them and makes of the answers. See subscriber_impl.hpp.
#include "subscriber_impl.hpp"

#include "text.hpp"

#include <algorithm>
#include <utility>

namespace doorbell {

using detail::Params;
using detail::Result;

namespace {

constexpr std::size_t most_rung = 1'000; // streams that a subscription remembers to ask for again

bool begins_with(std::string_view text, std::string_view prefix)
{
	return text.substr(0, prefix.size()) == prefix;
}

} // namespace

AllStart AllStart::after(std::string cursor)
{
	if (!is_all_cursor(cursor))
		throw Error("invalid cursor of all streams " + detail::quoted(cursor));
	return AllStart(Start::Kind::after, std::move(cursor));
}

void Subscriber::Impl::follow_prefix(std::string_view prefix, const AllStart &start)
{
	detail::check_prefix(prefix);
	const auto place = prefixes_.try_emplace(std::string(prefix), new_agenda()).first;
	Prefix &followed = place->second;
	followed.forget();
	followed.id = ++changes_;
	followed.cursor = start.cursor();
	followed.starts_now = start.kind() == Start::Kind::now;
	followed.wanted = true;
}

void Subscriber::Impl::unfollow_prefix(std::string_view prefix)
{
	const auto found = prefixes_.find(prefix);
	if (found == prefixes_.end())
		return;
	changes_++;
	prefixes_.erase(found);
}

std::optional<std::string> Subscriber::Impl::cursor(std::string_view prefix) const
{
	const auto found = prefixes_.find(prefix);
	if (found == prefixes_.end() || found->second.cursor.empty())
		return std::nullopt;
	return found->second.cursor;
}

void Subscriber::Impl::Prefix::forget()
{
	wanted = false;
	agenda.clear();
	asked.clear();
	reached.clear();
}

void Subscriber::Impl::ring_prefixes(const Pointer &pointer)
{
	for (auto &[prefix, followed] : prefixes_) {
		if (!begins_with(pointer.stream, prefix) || pointer.seq <= followed.reached.at(pointer.stream))
			continue;
		if (followed.agenda.size() < most_rung)
			followed.agenda.ring(pointer.stream, pointer.seq, Clock::now());
		else
			followed.wanted = true;
	}
}

Clock::time_point Subscriber::Impl::prefixes_due() const
{
	Clock::time_point earliest = Clock::time_point::max();
	for (const auto &[prefix, followed] : prefixes_)
		earliest = std::min(earliest, followed.due());
	return earliest;
}

bool Subscriber::Impl::ask_start_of_prefix()
{
	const auto starting =
		std::find_if(prefixes_.begin(), prefixes_.end(), [](const auto &item) { return item.second.starts_now; });
	if (starting == prefixes_.end())
		return false;
	send(Request::of_prefix(Request::Kind::start_prefix, *starting), detail::high_water_all_sql, {});
	return true;
}

// Reads the next one that is due, in the order of their keys, around and around.
bool Subscriber::Impl::ask_read_prefix()
{
	auto place = prefixes_.upper_bound(last_prefix_);
	for (std::size_t left = prefixes_.size(); left > 0; left--, ++place) {
		if (place == prefixes_.end())
			place = prefixes_.begin();
		Prefix &followed = place->second;
		const auto seq_of = [&](const std::string &stream) { return std::optional(followed.reached.at(stream)); };
		for (std::string &stream : followed.agenda.take(most_rung, seq_of, Clock::now())) {
			const std::int64_t seq = followed.reached.at(stream);
			followed.asked.push_back({std::move(stream), seq});
		}
		const bool to_the_end = std::exchange(followed.wanted, false);
		if (!to_the_end && followed.asked.empty())
			continue;

		last_prefix_ = place->first;
		Request request = Request::of_prefix(Request::Kind::read_prefix, *place);
		request.to_the_end = to_the_end;
		request.limit = limit_;
		const std::string_view cursor = followed.cursor;
		const Params params = Params().text_or_null(cursor.empty() ? nullptr : &cursor).int4(limit_).text(last_prefix_);
		stats_.reads++;
		send(std::move(request), detail::read_all_sql, params);
		return true;
	}
	return false;
}

// Nothing when it was followed anew, or no longer, since that was asked.
Subscriber::Impl::Prefix *Subscriber::Impl::prefix_of(const Request &request)
{
	const auto found = prefixes_.find(request.prefix);
	return found != prefixes_.end() && found->second.id == request.id ? &found->second : nullptr;
}

void Subscriber::Impl::prefix_started(const Answer &answer)
{
	if (Prefix *followed = prefix_of(answer.request)) {
		followed->cursor = answer.result.text(answer.row, 0);
		followed->starts_now = false;
	}
}

void Subscriber::Impl::read_prefix_row(Answer &answer)
{
	Prefix *followed = prefix_of(answer.request);
	if (followed == nullptr)
		return;
	const Result &result = answer.result;
	const int row = answer.row;
	const std::string_view stream = result.text(row, 0);
	const std::int64_t seq = result.int8(row, 1);
	const bool gap = is_gap(result, row);
	const bool by_name = named_.find(stream) != named_.end();
	if (!by_name && !gap)
		detail::read_entry(result, row, event_);

	move_prefix(answer.request, *followed, result.text(row, 5), [&] {
		if (by_name)
			return;
		if (gap && handlers_.on_gap)
			handlers_.on_gap({std::string(stream), -1, seq});
		if (!gap && handlers_.on_event)
			handlers_.on_event(event_);
	});
	if (!by_name && !gap) {
		delivered_++;
		stats_.events++;
	}
	followed = prefix_of(answer.request);
	if (followed != nullptr)
		followed->reached.deliver(stream, seq);
}

void Subscriber::Impl::finish_read_prefix(const Answer &answer)
{
	grow_limit(answer.result, answer.result.rows());
	Prefix *followed = prefix_of(answer.request);
	if (followed == nullptr)
		return;
	const int rows = answer.result.rows();
	const bool more = rows > 0 && (answer.request.to_the_end || rows >= answer.request.limit);
	followed->wanted |= more;
	for (const Prefix::Asked &asked : followed->asked) {
		const std::int64_t seq = followed->reached.at(asked.stream);
		followed->agenda.done(asked.stream, seq, seq > asked.seq, false, Clock::now());
	}
	followed->asked.clear();
}

// The cursor was refused as one of another history.
void Subscriber::Impl::reset_prefix(const Answer &answer)
{
	Prefix *followed = prefix_of(answer.request);
	if (followed == nullptr)
		return;
	Reset reset;
	reset.prefix = answer.request.prefix;
	reset.cursor = followed->cursor;
	move_prefix(answer.request, *followed, {}, [&] {
		if (handlers_.on_reset)
			handlers_.on_reset(reset);
	});
	followed = prefix_of(answer.request);
	if (followed != nullptr) {
		followed->forget();
		followed->wanted = true;
	}
}

// Moves a cursor and tells the handler, who sees it moved. If that throws, the cursor is put back.
template <typename Tell>
void Subscriber::Impl::move_prefix(const Request &request, Prefix &followed, std::string_view cursor, Tell tell)
{
	old_cursor_.swap(followed.cursor);
	followed.cursor = cursor;
	telling_prefix_ = &request.prefix;
	try {
		tell();
	} catch (...) {
		telling_prefix_ = nullptr;
		if (Prefix *still = prefix_of(request))
			still->cursor.swap(old_cursor_);
		throw;
	}
	telling_prefix_ = nullptr;
}

} // namespace doorbell
