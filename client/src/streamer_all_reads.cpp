// What is read for clients with prefixes, and when. See 8 to 13 of streamer_impl.hpp.
#include "streamer_impl.hpp"

#include "all_cursor.hpp"
#include "wait.hpp"

#include <algorithm>
#include <utility>

namespace doorbell {

using detail::Params;

namespace {

constexpr int most_groups = 32;				// of one statement
constexpr int rows_each = 16;				// fewer groups than that if these would get less
constexpr std::size_t most_reached = 4'096; // streams; only rings that come late are dropped by it

} // namespace

void Streamer::Impl::on_ring(const Pointer &pointer)
{
	for (const auto &[streams, hub] : all_hubs_) {
		if (pointer.everything()) {
			hub->awake = true;
		} else if (streams.has(pointer.stream)) {
			const auto reached = hub->reached.find(pointer.stream);
			if (reached == hub->reached.end() || pointer.seq > reached->second)
				hub->rings.ring(pointer.stream, pointer.seq, Clock::now());
		}
	}
}

void Streamer::Impl::wake_hubs()
{
	const Clock::time_point now = Clock::now();
	for (const auto &[streams, shared] : all_hubs_) {
		AllHub &hub = *shared;
		const auto reached = [&hub](const std::string &stream) -> std::optional<std::int64_t> {
			const auto found = hub.reached.find(stream);
			return found == hub.reached.end() ? 0 : found->second;
		};
		const std::vector<std::string> rang = hub.rings.take(SIZE_MAX, reached, now);
		for (const std::string &stream : rang)
			hub.asked.emplace(stream, *reached(stream));
		if (!std::exchange(hub.awake, false) && rang.empty() && now < hub.sweep_at)
			continue;
		hub.sweep_at = detail::deadline_after(options_.subscriber.sweep_interval);
		for (auto &[cursor, group] : hub.groups)
			group.due = true;
	}
}

// When wake_hubs() has something to do, if nothing rings.
Clock::time_point Streamer::Impl::wakes_at() const
{
	Clock::time_point earliest = Clock::time_point::max();
	for (const auto &[streams, hub] : all_hubs_)
		earliest = std::min({earliest, hub->sweep_at, hub->rings.next()});
	return earliest;
}

bool Streamer::Impl::ask_high_water()
{
	const auto lacks = [](const auto &each) { return !each.second->live; };
	if (std::none_of(all_hubs_.begin(), all_hubs_.end(), lacks))
		return false;
	CatchUp request;
	request.kind = CatchUp::Kind::high_water;
	send(std::move(request), detail::high_water_all_sql, Params());
	return true;
}

void Streamer::Impl::high_water_found(const detail::Result &result)
{
	const std::string cursor(result.text(0, 0));
	for (const auto &[streams, shared] : all_hubs_) {
		AllHub &hub = *shared;
		if (hub.live)
			continue;
		hub.live = cursor;
		Group &group = hub.groups[cursor];
		group.accepted = true;
		const std::set<Client *> starting = std::exchange(hub.starting, {});
		for (Client *client : starting)
			join(*client, cursor);
	}
}

bool Streamer::Impl::ask_groups()
{
	struct Due {
		std::shared_ptr<AllHub> hub;
		const std::string *cursor;
		Group *group;
	};
	std::vector<Due> live, behind, unknown;
	for (const auto &[streams, hub] : all_hubs_)
		for (auto i = hub->groups.begin(); i != hub->groups.end();) {
			Group &group = i->second;
			const bool is_live = hub->live == i->first;
			if (!is_live && group.clients.empty()) {
				i = hub->groups.erase(i);
				continue;
			}
			if (group.due)
				(!group.accepted ? unknown : is_live ? live : behind).push_back({hub, &i->first, &group});
			++i;
		}

	// One with an unknown cursor alone, or many of the others; those who waited longest, and room for both kinds.
	std::vector<Due> chosen;
	const auto waited_longer = [](const Due &a, const Due &b) { return a.group->last_asked < b.group->last_asked; };
	const bool has_known = !live.empty() || !behind.empty();
	if (!unknown.empty() && !(asked_alone_ && has_known)) {
		chosen.push_back(*std::min_element(unknown.begin(), unknown.end(), waited_longer));
	} else {
		const auto most = static_cast<std::size_t>(std::clamp(group_limit_ / rows_each, 2, most_groups));
		std::sort(live.begin(), live.end(), waited_longer);
		std::sort(behind.begin(), behind.end(), waited_longer);
		const std::size_t from_live = std::min(live.size(), std::max(most / 2, most - std::min(most, behind.size())));
		chosen.assign(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(from_live));
		const std::size_t from_behind = std::min(behind.size(), most - from_live);
		chosen.insert(chosen.end(), behind.begin(), behind.begin() + static_cast<std::ptrdiff_t>(from_behind));
	}
	if (chosen.empty())
		return false;
	asked_alone_ = !chosen.front().group->accepted;

	CatchUp request;
	request.kind = CatchUp::Kind::read_groups;
	request.limit = std::max(1, group_limit_ / static_cast<int>(chosen.size()));
	std::vector<std::string_view> cursors;
	std::vector<std::string_view> prefixes;
	bool catches_up = false;
	group_reads_++;
	for (const Due &due : chosen) {
		due.group->due = false;
		due.group->last_asked = group_reads_;
		catches_up |= due.hub->live != *due.cursor;
		request.groups.emplace_back(due.hub, *due.cursor);
		cursors.push_back(*due.cursor);
		prefixes.push_back(due.hub->prefix);
	}
	(catches_up ? stats_.catch_ups : stats_.reads)++;
	const Params params = Params().text_array(cursors).text_array(prefixes).int4(request.limit);
	send(std::move(request), detail::read_groups_sql, params);
	return true;
}

void Streamer::Impl::groups_read(const CatchUp &request, const detail::Result &result)
{
	struct Answer {
		std::shared_ptr<AllPage> page = std::make_shared<AllPage>();
		int rows = 0;
	};
	std::vector<Answer> answers(request.groups.size());
	for (std::size_t i = 0; i < answers.size(); i++)
		answers[i].page->asked = answers[i].page->end = request.groups[i].second;
	Event event;
	std::size_t bytes = 0;
	for (int row = 0; row < result.rows(); row++) {
		const auto n = static_cast<std::size_t>(result.int8(row, 6) - 1);
		AllPage &page = *answers.at(n).page;
		answers[n].rows++;
		page.end = result.text(row, 5);
		bytes += page.end.size();
		const std::string_view stream = result.text(row, 0);
		if (!request.groups[n].first->streams.has(stream))
			continue;
		if (detail::is_gap(result, row)) {
			page.rows.add_gap(stream, result.int8(row, 1), page.end);
		} else {
			detail::read_entry(result, row, event);
			bytes += event.payload.size();
			page.rows.add(event, page.end);
		}
	}
	group_limit_ = detail::next_limit(group_limit_, result.rows(), bytes, options_.subscriber);

	std::map<std::pair<AllHub *, std::string_view>, std::vector<std::string>> ended; // by what they have now
	std::vector<std::shared_ptr<AllPage>> live;
	for (std::size_t i = 0; i < answers.size(); i++) {
		AllHub &hub = *request.groups[i].first;
		const std::shared_ptr<AllPage> &page = answers[i].page;
		if (hub.live == page->asked)
			live.push_back(page);
		group_read(hub, page, answers[i].rows, request.limit);
		if (const std::string_view all = detail::extent_of(page->end); answers[i].rows > 0 && !all.empty())
			ended[{&hub, all}].push_back(page->end);
	}
	for (auto &[which, cursors] : ended) {
		AllHub *const hub = which.first;
		const auto is_live = std::find(cursors.begin(), cursors.end(), hub->live);
		const std::string to = is_live != cursors.end() ? *is_live : cursors.front();
		for (const std::string &from : cursors)
			if (hub->groups.count(from) > 0)
				move_group(*hub, from, to);
	}
	for (const auto &page : live)
		for (std::size_t i = 0; i < page->rows.size(); i++)
			if (!page->rows.is_gap(i))
				arrived(page->rows.event(i));
}

void Streamer::Impl::group_read(AllHub &hub, const std::shared_ptr<AllPage> &page, int rows, int limit)
{
	const auto found = hub.groups.find(page->asked);
	if (found == hub.groups.end())
		return;
	Group &group = found->second;
	// From within a window it was that window's rest.
	const bool began_whole = page->asked.empty() || !detail::extent_of(page->asked).empty();
	const bool complete = rows == 0 || (began_whole && rows < limit);
	group.accepted = true;
	group.due |= !complete;
	if (hub.live == page->asked)
		live_read(hub, page->rows, complete);
	give_group(hub, group, page);
	move_group(hub, page->asked, page->end);
}

// Which rings have been answered. They wake nobody any more, so who was not asked by this statement is to be.
void Streamer::Impl::live_read(AllHub &hub, const detail::SseBatch &rows, bool complete)
{
	if (hub.reached.size() > most_reached)
		hub.reached.clear();
	for (std::size_t i = 0; i < rows.size(); i++)
		hub.reached[rows.event(i).stream] = rows.event(i).seq;
	if (!rows.empty())
		for (auto &[cursor, group] : hub.groups)
			group.due |= group.last_asked != group_reads_;
	if (!complete)
		return;
	for (const auto &[stream, before] : std::exchange(hub.asked, {})) {
		const auto found = hub.reached.find(stream);
		const std::int64_t seq = found == hub.reached.end() ? 0 : found->second;
		hub.rings.done(stream, seq, seq != before, false, Clock::now());
	}
}

// The server refused a statement, and nothing of it was read.
void Streamer::Impl::refused(const CatchUp &request, const Error &error)
{
	const bool a_cursor = error.is_other_history() || error.sqlstate() == "22023";
	if (a_cursor && request.groups.size() == 1 && !request.groups[0].second.empty()) {
		reset_group(*request.groups[0].first, request.groups[0].second);
	} else if (a_cursor && request.groups.size() > 1) { // which one?
		distrust_cursors();
	} else {
		catch_up_failed(error);
	}
}

// All are to be read alone before they are read with others.
void Streamer::Impl::distrust_cursors()
{
	for (const auto &[streams, hub] : all_hubs_)
		for (auto &[cursor, group] : hub->groups) {
			group.accepted = false;
			group.due = true;
		}
}

} // namespace doorbell
