#include "agenda.hpp"

#include <algorithm>
#include <utility>

namespace doorbell::detail {

Agenda::Items::iterator Agenda::item_of(std::string_view stream)
{
	const auto found = items_.find(stream);
	return found != items_.end() ? found : items_.emplace(stream, Item()).first;
}

void Agenda::enqueue(Items::iterator item, bool wanted)
{
	item->second.wanted |= wanted;
	item->second.again = TimePoint::max();
	if (!std::exchange(item->second.queued, true))
		queue_.push_back(item->first);
}

void Agenda::ask_again(Items::iterator item, TimePoint at)
{
	if (at < item->second.again) {
		item->second.again = at;
		retries_.emplace(at, item->first);
	}
}

void Agenda::ring(std::string_view stream, std::int64_t seq, TimePoint now)
{
	const auto item = item_of(stream);
	const bool waits = item->second.again != TimePoint::max();
	const bool higher = seq > item->second.rung;
	item->second.rung = std::max(item->second.rung, seq);
	if (waits && higher)
		ask_again(item, std::max(now, item->second.last_read + first_));
	else
		enqueue(item, false);
}

void Agenda::want(std::string_view stream)
{
	enqueue(item_of(stream), true);
}

std::vector<std::string> Agenda::take(std::size_t most, const SeqOf &seq_of, TimePoint now)
{
	while (!retries_.empty() && retries_.begin()->first <= now) {
		const auto item = items_.find(retries_.begin()->second);
		if (item != items_.end() && item->second.again == retries_.begin()->first)
			enqueue(item, true);
		retries_.erase(retries_.begin());
	}

	std::vector<std::string> taken;
	while (taken.size() < most && !queue_.empty()) {
		std::string stream = std::move(queue_.front());
		queue_.pop_front();
		const auto item = items_.find(stream);
		if (item == items_.end() || !item->second.queued)
			continue;
		const std::optional<std::int64_t> mark = seq_of(stream);
		if (!mark || (!item->second.wanted && item->second.rung <= *mark)) {
			items_.erase(item);
			continue;
		}
		item->second.queued = false;
		item->second.wanted = false;
		taken.push_back(std::move(stream));
	}
	return taken;
}

void Agenda::done(const std::string &stream, std::int64_t mark, bool moved, bool more, TimePoint now)
{
	const auto found = items_.find(stream);
	if (found == items_.end())
		return;
	Item &item = found->second;
	item.last_read = now;
	if (moved || item.stuck_since > now)
		item.stuck_since = now;
	if (more)
		enqueue(found, true);
	if (item.queued)
		return;
	const auto stuck = now - item.stuck_since;
	if (mark >= item.rung || stuck >= limit_)
		items_.erase(found);
	else
		ask_again(found, now + std::max<Clock::duration>(first_, stuck));
}

void Agenda::forget(std::string_view stream)
{
	const auto found = items_.find(stream);
	if (found != items_.end())
		items_.erase(found);
}

void Agenda::clear()
{
	items_.clear();
	queue_.clear();
	retries_.clear();
}

Agenda::TimePoint Agenda::next() const
{
	if (!queue_.empty())
		return TimePoint::min();
	return retries_.empty() ? TimePoint::max() : retries_.begin()->first;
}

} // namespace doorbell::detail
