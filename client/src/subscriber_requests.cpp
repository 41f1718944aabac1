// What Subscriber asks the database, and when. See subscriber_impl.hpp.
#include "subscriber_impl.hpp"

#include "failpoint.hpp"
#include "wait.hpp"

#include <algorithm>
#include <utility>

namespace doorbell {

using detail::Params;
using Status = detail::Connection::Status;

namespace {

constexpr std::size_t survey_streams = 1'000;

} // namespace

// See 4 of the model.
bool Subscriber::Impl::may_ask() const
{
	return listener_.state() == State::live || !listener_.last_error().empty() || Clock::now() >= patience_end_;
}

// Sends the next request, if there is any and its time has come.
void Subscriber::Impl::ask()
{
	if (reader_.status() != Status::idle || request_.kind != Request::Kind::none || !may_ask())
		return;
	if (!sweep_.active && follows_anything() && Clock::now() >= sweep_at_) {
		if (detail::fault(detail::place::history_read))
			return;
		begin_sweep();
	}
	try {
		if (!ask_survey_of_starts() && !ask_start_of_prefix())
			ask_in_turn();
	} catch (const Error &error) { // from sending: the connection broke
		reader_failed(error);
	}
}

bool Subscriber::Impl::ask_in_turn()
{
	constexpr unsigned turns = 3;
	for (unsigned tries = 0; tries <= turns; tries++) { // one more, because the end of a sweep lets streams be read
		turn_ = (turn_ + 1) % turns;
		if (turn_ == 0 ? ask_for_sweep() : turn_ == 1 ? ask_read() : ask_read_prefix())
			return true;
	}
	return false;
}

void Subscriber::Impl::begin_sweep()
{
	sweep_ = {};
	sweep_.active = true;
	sweep_.survey = marks_.size() > 0;
	for (auto &[prefix, followed] : prefixes_)
		followed.wanted = true;
}

bool Subscriber::Impl::ask_survey_of_starts()
{
	if (starts_.empty())
		return false;
	std::vector<std::string> streams;
	std::vector<std::int64_t> given;
	for (auto start = starts_.begin(); start != starts_.end() && streams.size() < survey_streams; ++start) {
		streams.push_back(start->first);
		given.push_back(start->second.kind() == Start::Kind::now ? -1 : start->second.mark().seq);
	}
	send_survey(streams, given);
	return true;
}

// The next request of the sweep; false when there is none, and then it is completed.
bool Subscriber::Impl::ask_for_sweep()
{
	if (!sweep_.active)
		return false;
	std::vector<std::string> streams;
	std::vector<std::int64_t> given;
	if (sweep_.survey) {
		for (auto mark = marks_.next(sweep_.surveyed_to); mark != marks_.all().end() && streams.size() < survey_streams;
			 ++mark) {
			streams.push_back(mark->first);
			given.push_back(mark->second.seq);
		}
	}
	if (!streams.empty()) {
		sweep_.surveyed_to = streams.back();
		send_survey(streams, given);
		return true;
	}
	sweep_.active = false;
	sweep_at_ = sweep_.again ? Clock::time_point::min() : detail::deadline_after(options_.sweep_interval);
	verified_ = true;
	stats_.sweeps++;
	return false;
}

bool Subscriber::Impl::ask_read()
{
	if (!verified_)
		return false;
	Request request;
	request.kind = Request::Kind::read;
	request.limit = limit_;
	const auto seq_of = [this](const std::string &stream) -> std::optional<std::int64_t> {
		const std::optional<Mark> mark = marks_.at(stream);
		return mark ? std::optional<std::int64_t>(mark->seq) : std::nullopt;
	};
	const std::size_t most = std::min(survey_streams, static_cast<std::size_t>(limit_));
	request.streams = agenda_.take(most, seq_of, Clock::now());
	if (request.streams.empty())
		return false;

	std::vector<std::string_view> keys(request.streams.begin(), request.streams.end());
	for (const std::string &stream : request.streams)
		request.after.push_back(*seq_of(stream));
	const Params params = Params().text_array(keys).int8_array(request.after).int4(limit_);
	stats_.reads++;
	send(std::move(request), detail::read_sql, params);
	return true;
}

void Subscriber::Impl::send_survey(const std::vector<std::string> &streams, const std::vector<std::int64_t> &given)
{
	Request request;
	request.kind = Request::Kind::survey;
	const std::vector<std::string_view> keys(streams.begin(), streams.end());
	send(std::move(request), detail::survey_sql, Params().text_array(keys).int8_array(given));
}

void Subscriber::Impl::send(Request request, const char *sql, const Params &params)
{
	request_ = std::move(request);
	reader_.send(sql, params);
}

void Subscriber::Impl::request_sweep()
{
	if (sweep_.active)
		sweep_.again = true;
	else
		sweep_at_ = Clock::time_point::min();
}

} // namespace doorbell
