#include "collection.hpp"

#include <algorithm>
#include <chrono>

namespace soak {

void Collection::add(const std::string &stream, std::int64_t seq, std::string_view payload, std::int64_t appended_at)
{
	const auto now =
		std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
	const std::lock_guard<std::mutex> guard(mutex_);
	events_[stream].push_back({seq, identity(payload)});
	count_++;
	if (appended_at != 0)
		longest_delay_ = std::max<std::int64_t>(longest_delay_, now.count() - appended_at);
}

void Collection::gap(const std::string &stream, std::int64_t asked, std::int64_t low_water)
{
	const std::lock_guard<std::mutex> guard(mutex_);
	gaps_[stream].emplace_back(asked, low_water);
}

void Collection::fault(const std::string &what)
{
	const std::lock_guard<std::mutex> guard(mutex_);
	faults_.push_back(what);
}

static bool is_in_scope(const std::string &stream, bool of_all, const std::vector<std::string> &some)
{
	return of_all || std::find(some.begin(), some.end(), stream) != some.end();
}

bool Collection::has_arrived(const Events &truth, const std::vector<std::string> &some) const
{
	const std::lock_guard<std::mutex> guard(mutex_);
	for (const auto &[stream, stored] : truth) {
		const auto found = events_.find(stream);
		if (is_in_scope(stream, of_all_, some) && !stored.empty() &&
			(found == events_.end() || found->second.back().seq < stored.back().seq))
			return false;
	}
	return true;
}

std::size_t Collection::count() const
{
	const std::lock_guard<std::mutex> guard(mutex_);
	return count_;
}

std::int64_t Collection::longest_delay() const
{
	const std::lock_guard<std::mutex> guard(mutex_);
	return longest_delay_;
}

void Checks::fail(const std::string &what)
{
	const std::lock_guard<std::mutex> guard(mutex_);
	made_++;
	failed_.push_back(what);
}

void Checks::expect(bool is_so, const std::string &what)
{
	if (!is_so) {
		fail("not true: " + what);
		return;
	}
	const std::lock_guard<std::mutex> guard(mutex_);
	made_++;
}

int Checks::report(std::ostream &out) const
{
	const std::lock_guard<std::mutex> guard(mutex_);
	for (const std::string &what : failed_)
		out << "FAILED: " << what << '\n';
	out << made_ - failed_.size() << " passed, " << failed_.size() << " failed" << std::endl;
	return failed_.empty() ? 0 : 1;
}

void check_stored(Checks &checks, const Events &truth, const Known &known)
{
	std::map<std::uint64_t, int> times;
	for (const auto &[stream, stored] : truth) {
		const auto found = known.committed.find(stream);
		std::vector<Stored> committed = found == known.committed.end() ? std::vector<Stored>() : found->second;
		std::sort(committed.begin(), committed.end());
		bool all_committed = true;
		for (const Stored &event : stored) {
			times[event.payload]++;
			all_committed &= std::binary_search(committed.begin(), committed.end(), event) ||
							 known.unknown.count(event.payload) > 0 || known.once.count(event.payload) > 0;
		}
		checks.expect(all_committed, "C2: what is stored in " + stream + " was committed");
		if (stream != trimmed)
			checks.expect(std::includes(stored.begin(), stored.end(), committed.begin(), committed.end()),
						  "C2: what was committed to " + stream + " is stored, with the seq that its writer was given");
	}
	bool is_once = true;
	for (const std::uint64_t payload : known.once)
		is_once &= times[payload] == 1;
	checks.expect(is_once, "C2: what has an event id is stored once, however often it was repeated");
}

// One reader's part of one stream.
class Comparison {
public:
	static void of(Checks &checks, const Events &truth, const Known &known, const Collection &collection,
				   const std::vector<std::string> &some);

private:
	static bool covered(const std::vector<std::pair<std::int64_t, std::int64_t>> &gaps, std::int64_t seq)
	{
		return std::any_of(gaps.begin(), gaps.end(),
						   [seq](const auto &gap) { return seq > gap.first && seq <= gap.second; });
	}
};

void Comparison::of(Checks &checks, const Events &truth, const Known &known, const Collection &collection,
					const std::vector<std::string> &some)
{
	const std::lock_guard<std::mutex> guard(collection.mutex_);
	const std::string &name = collection.name;
	for (const std::string &fault : collection.faults_)
		checks.fail(name + ": " + fault);
	for (const auto &[stream, gaps] : collection.gaps_)
		checks.expect(stream == trimmed,
					  "C6: " + name + " was told of gaps in no stream but the trimmed one: " + stream);
	for (const auto &[stream, stored] : truth) {
		if (!is_in_scope(stream, collection.of_all_, some))
			continue;
		const auto found = collection.events_.find(stream);
		const std::vector<Stored> given = found == collection.events_.end() ? std::vector<Stored>() : found->second;
		const std::string what = name + " was given each event of " + stream;
		if (stream != trimmed) {
			const auto [a, b] = std::mismatch(stored.begin(), stored.end(), given.begin(), given.end());
			checks.expect(a == stored.end() && b == given.end(),
						  "C3: " + what + " once, in order: " + std::to_string(given.size()) + " of " +
							  std::to_string(stored.size()) + ", the first difference is number " +
							  std::to_string(a - stored.begin() + 1) + ", seq " +
							  (b == given.end() ? "none" : std::to_string(b->seq)) + " instead of " +
							  (a == stored.end() ? "none" : std::to_string(a->seq)));
			continue;
		}
		const auto not_rising = std::adjacent_find(given.begin(), given.end(),
												   [](const Stored &a, const Stored &b) { return a.seq >= b.seq; });
		checks.expect(not_rising == given.end(), "C3: " + what + " once, in order");
		std::vector<Stored> expected = stored;
		const auto committed = known.committed.find(stream);
		if (committed != known.committed.end())
			expected.insert(expected.end(), committed->second.begin(), committed->second.end());
		const auto gaps = collection.gaps_.find(stream);
		std::size_t missing = 0;
		for (const Stored &event : expected)
			if (!std::binary_search(given.begin(), given.end(), event) &&
				(gaps == collection.gaps_.end() || !covered(gaps->second, event.seq)))
				missing++;
		checks.expect(missing == 0, "C6: " + what + " or was told a gap; missing: " + std::to_string(missing));
	}
}

void check_given(Checks &checks, const Events &truth, const Known &known, const Collection &collection,
				 const std::vector<std::string> &some)
{
	Comparison::of(checks, truth, known, collection, some);
}

} // namespace soak
