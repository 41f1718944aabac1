// How Streamer reads the table for those who are behind. See streamer_impl.hpp.
#include "streamer_impl.hpp"

#include "wait.hpp"

#include <algorithm>
#include <utility>

namespace doorbell {

using detail::Params;
using Status = detail::Connection::Status;

namespace {

constexpr std::size_t most_positions = 1'000;
constexpr milliseconds pause_before_page{1};	// that is kept
constexpr milliseconds pause_after_nothing{10}; // when a read did not bring a hub's followers nearer

} // namespace

void Streamer::Impl::advance_catch_up()
{
	try {
		if (reader_.status() == Status::closed) {
			if (!wants_reader() || Clock::now() < retry_at_)
				return;
			reader_.connect_to(detail::reading_dsn(options_.subscriber, reader_turn_++));
		}
		reader_.advance();
		auto result = reader_.take_result();
		if (!result)
			return;
		backoff_.reset();
		const CatchUp request = std::exchange(request_, {});
		switch (request.kind) {
		case CatchUp::Kind::none:
			break;
		case CatchUp::Kind::survey:
			surveyed(*result);
			break;
		case CatchUp::Kind::read:
			read(request, *result);
			break;
		case CatchUp::Kind::high_water:
			high_water_found(*result);
			break;
		case CatchUp::Kind::read_groups:
			groups_read(request, *result);
			break;
		}
	} catch (const Error &error) {
		if (request_.kind == CatchUp::Kind::read_groups && reader_.status() == Status::idle)
			refused(std::exchange(request_, {}), error);
		else
			catch_up_failed(error);
	}
}

void Streamer::Impl::catch_up_failed(const Error &error)
{
	reader_.close();
	request_ = {};
	distrust_cursors();
	retry_at_ = detail::deadline_after(backoff_.next());
	if (error.is_lasting())
		throw error;
}

void Streamer::Impl::ask_catch_up()
{
	if (reader_.status() != Status::idle || request_.kind != CatchUp::Kind::none)
		return;
	try {
		wake_hubs();
		if (ask_survey() || ask_high_water())
			return;
		if (std::exchange(groups_were_read_, !groups_were_read_))
			(void) (ask_read() || ask_groups());
		else
			(void) (ask_groups() || ask_read());
	} catch (const Error &error) { // from sending: the connection broke
		catch_up_failed(error);
	}
}

void Streamer::Impl::send(CatchUp request, const char *sql, const Params &params)
{
	request_ = std::move(request);
	reader_.send(sql, params);
}

bool Streamer::Impl::ask_survey()
{
	std::set<std::pair<std::string_view, std::int64_t>> asked; // the same question is asked once
	for (const Subscription *subscription : starting_) {
		if (!subscription->hub->mark)
			continue;
		asked.emplace(subscription->hub->stream, subscription->start.mark().seq);
		if (asked.size() >= most_positions)
			break;
	}
	if (asked.empty())
		return false;
	CatchUp request;
	request.kind = CatchUp::Kind::survey;
	std::vector<std::string_view> streams;
	std::vector<std::int64_t> seqs;
	for (const auto &[stream, seq] : asked) {
		streams.push_back(stream);
		seqs.push_back(seq);
	}
	send(std::move(request), detail::survey_sql, Params().text_array(streams).int8_array(seqs));
	return true;
}

void Streamer::Impl::surveyed(const detail::Result &result)
{
	for (int i = 0; i < result.rows(); i++) {
		const detail::Survey row(result, i);
		const auto found = hubs_.find(row.stream);
		if (found == hubs_.end())
			continue;
		Hub &hub = found->second;
		for (Subscription *subscription : hub.subscriptions) {
			const Start start = subscription->start;
			if (subscription->state != Subscription::State::starting || start.mark().seq != row.given ||
				start.kind() == Start::Kind::now || !hub.mark)
				continue;
			subscription->mark = start.mark();
			switch (start.kind() == Start::Kind::beginning ? detail::Verdict::same : row.judge(start.mark())) {
			case detail::Verdict::same:
				if (start.kind() == Start::Kind::beginning)
					subscription->mark = {row.low_water, 0};
				else if (row.check != 0)
					subscription->mark.check = row.check;
				break;
			case detail::Verdict::gap:
				tell_gap(*subscription, row.low_water);
				break;
			case detail::Verdict::reset:
				tell_reset(*subscription, row.low_water);
				break;
			}
			if (subscription->state != Subscription::State::starting)
				continue;
			const bool up_to_date = subscription->mark.seq >= hub.mark->seq;
			started(*subscription, subscription->mark,
					up_to_date ? Subscription::State::live : Subscription::State::behind);
		}
	}
}

bool Streamer::Impl::ask_read()
{
	const Clock::time_point now = Clock::now();
	if (behind_.empty() || now < read_at_)
		return false;
	read_at_ = Clock::time_point::max();
	std::map<Hub *, Mark> lowest;
	const std::size_t most = std::min(most_positions, static_cast<std::size_t>(limit_));
	for (Subscription *subscription : behind_) {
		Hub &hub = *subscription->hub;
		if (!can_take_page(*subscription))
			continue;
		if (kept_page(*subscription) != nullptr) { // it drained since the last look
			read_at_ = std::min(read_at_, now + pause_before_page);
			continue;
		}
		if (hub.read_at > now) {
			read_at_ = std::min(read_at_, hub.read_at);
			continue;
		}
		const auto found = lowest.find(&hub);
		if (found == lowest.end() && lowest.size() < most)
			lowest.emplace(&hub, subscription->mark);
		else if (found != lowest.end() && subscription->mark.seq < found->second.seq)
			found->second = subscription->mark;
	}
	if (lowest.empty())
		return false;
	CatchUp request;
	request.kind = CatchUp::Kind::read;
	std::vector<std::string_view> streams;
	std::vector<std::int64_t> seqs;
	for (const auto &[hub, mark] : lowest) {
		request.positions.emplace_back(hub->stream, mark);
		streams.push_back(hub->stream);
		seqs.push_back(mark.seq);
	}
	stats_.catch_ups++;
	send(std::move(request), detail::read_sql, Params().text_array(streams).int8_array(seqs).int4(limit_));
	return true;
}

void Streamer::Impl::read(const CatchUp &request, const detail::Result &result)
{
	struct Answer {
		detail::SseBatch batch;
		std::int64_t low_water = 0;
		std::uint32_t check = 0; // of the event at the mark that was asked from; 0: there is none
	};
	std::map<std::string, Answer, std::less<>> answers;
	Event event;
	std::size_t bytes = 0;
	int events = 0;
	for (int i = 0; i < result.rows(); i++) {
		Answer &page = answers[std::string(result.text(i, 0))];
		if (result.is_null(i, 5)) {
			detail::read_entry(result, i, event);
			page.batch.add(event);
			bytes += event.payload.size();
			events++;
		} else {
			page.low_water = result.int8(i, 1);
			if (!result.is_null(i, 2))
				page.check = check_of(result.text(i, 0), result.int8(i, 5), result.text(i, 2), result.time(i, 4));
		}
	}
	limit_ = detail::next_limit(limit_, events, bytes, options_.subscriber);

	for (const auto &[stream, mark] : request.positions) {
		const auto found = hubs_.find(stream);
		if (found == hubs_.end())
			continue;
		Hub &hub = found->second;
		Answer &page = answers[stream];
		bool moved = false;
		// Another event lies at the mark, or none although there are some behind it.
		const bool lost = page.check == 0 && page.low_water < mark.seq && !page.batch.empty();
		if (mark.check != 0 && (lost || (page.check != 0 && page.check != mark.check))) {
			hub.pages.clear();
			for (Subscription *subscription : hub.subscriptions)
				if (subscription->state == Subscription::State::behind)
					tell_reset(*subscription, page.low_water);
		} else {
			moved = give_page(hub, mark, page.batch, page.low_water);
			const std::size_t size = page.batch.bytes();
			const Mark asked{mark.seq, page.check != 0 ? page.check : mark.check};
			if (mark.seq >= page.low_water && !page.batch.empty())
				keep(hub.pages, std::make_shared<Page>(Page{asked, std::move(page.batch)}), size);
		}
		hub.read_at = moved ? Clock::time_point::min() : detail::deadline_after(pause_after_nothing);
	}
	read_at_ = Clock::time_point::min();
}

// Gives what was read behind `asked` to all who are behind; true if that brought somebody nearer.
bool Streamer::Impl::give_page(Hub &hub, Mark asked, detail::SseBatch &batch, std::int64_t low_water)
{
	bool moved = false;
	for (Subscription *subscription : hub.subscriptions) {
		if (subscription->state != Subscription::State::behind || subscription->mark.seq < asked.seq ||
			!subscription->client->is_ready())
			continue;
		const std::int64_t before = subscription->mark.seq;
		if (before < low_water) {
			if (before == 0 && subscription->start.kind() == Start::Kind::beginning)
				subscription->mark = {low_water, 0};
			else
				tell_gap(*subscription, low_water);
		}
		give(*subscription, batch);
		moved |= subscription->mark.seq > before;
	}
	return moved;
}

// To a subscription that is behind: who then has all that the hub had is live.
void Streamer::Impl::give(Subscription &subscription, detail::SseBatch &batch)
{
	deliver(subscription, batch);
	const std::optional<Mark> &live = subscription.hub->mark;
	if (live && subscription.mark.seq >= live->seq) {
		subscription.state = Subscription::State::live;
		behind_.erase(&subscription);
	}
}

void Streamer::Impl::keep(std::shared_ptr<void> page, std::size_t bytes)
{
	kept_.push_back({std::move(page), bytes, detail::deadline_after(options_.subscriber.sweep_interval)});
	kept_bytes_ += bytes;
	drop_old_pages();
}

void Streamer::Impl::drop_old_pages()
{
	const Clock::time_point now = Clock::now();
	while (!kept_.empty() && (kept_bytes_ > most_kept_bytes || kept_.front().until <= now)) {
		kept_bytes_ -= kept_.front().bytes;
		kept_.pop_front();
	}
}

// What was read lately, to those who are behind and can take more.
void Streamer::Impl::give_kept()
{
	drop_old_pages();
	if (kept_.empty() || Clock::now() < read_at_)
		return;
	const std::vector<Subscription *> all(behind_.begin(), behind_.end());
	for (Subscription *subscription : all)
		while (can_take_page(*subscription)) {
			const std::shared_ptr<Page> page = kept_page(*subscription);
			if (page == nullptr)
				break;
			const std::int64_t before = subscription->mark.seq;
			give(*subscription, page->events);
			if (subscription->mark.seq == before)
				break;
		}
}

bool Streamer::Impl::can_take_page(const Subscription &subscription) const
{
	const Client &client = *subscription.client;
	return subscription.state == Subscription::State::behind && client.is_ready() && subscription.hub->mark &&
		   has_drained(client);
}

// The page that leads on from where the subscription is; null: none does.
std::shared_ptr<Streamer::Impl::Page> Streamer::Impl::kept_page(const Subscription &subscription)
{
	const Mark mark = subscription.mark;
	for (const std::weak_ptr<Page> &kept : subscription.hub->pages) {
		const std::shared_ptr<Page> page = kept.lock();
		if (page == nullptr || mark.seq < page->asked.seq)
			continue;
		const std::size_t first = page->events.first_after(mark.seq);
		if (first == page->events.size())
			continue;
		// A mark of another history is for a read to find out.
		const Mark before = first > 0 ? page->events.mark(first - 1) : page->asked;
		if (mark.check == 0 || (before.seq == mark.seq && (before.check == 0 || before.check == mark.check)))
			return page;
	}
	return nullptr;
}

} // namespace doorbell
