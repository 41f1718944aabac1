// What a reader of the soak has been given, and what it is compared with.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

namespace soak {

inline constexpr const char *trimmed = "trimmed"; // the stream that is trimmed all the time

// Payloads are unique; their hash is kept, so that a long run fits into memory.
inline std::uint64_t identity(std::string_view payload)
{
	return std::hash<std::string_view>()(payload);
}

struct Stored {
	std::int64_t seq;
	std::uint64_t payload;
	bool operator==(const Stored &other) const { return seq == other.seq && payload == other.payload; }
	bool operator<(const Stored &other) const { return std::tie(seq, payload) < std::tie(other.seq, other.payload); }
};
using Events = std::map<std::string, std::vector<Stored>>; // by stream

// Filled by its reader's thread, watched by others.
class Collection {
public:
	Collection(std::string the_name, bool of_all) : name(std::move(the_name)), of_all_(of_all) {}

	// appended_at: microseconds since 1970, to measure the delay; 0: do not.
	void add(const std::string &stream, std::int64_t seq, std::string_view payload, std::int64_t appended_at = 0);
	void gap(const std::string &stream, std::int64_t asked, std::int64_t low_water);
	void fault(const std::string &what);

	bool has_arrived(const Events &truth, const std::vector<std::string> &some) const;
	std::size_t count() const;
	std::int64_t longest_delay() const; // in microseconds

	const std::string name;
	std::atomic<int> reconnects{0};

private:
	friend class Comparison;
	mutable std::mutex mutex_;
	bool of_all_;
	Events events_;
	std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> gaps_; // (asked, low water]
	std::vector<std::string> faults_;
	std::size_t count_ = 0;
	std::int64_t longest_delay_ = 0;
};

struct Reader {
	std::shared_ptr<Collection> collection;
	std::thread thread;
};

// What failed; thread-safe.
class Checks {
public:
	void fail(const std::string &what);
	void expect(bool is_so, const std::string &what);
	int report(std::ostream &out) const; // the exit status

private:
	mutable std::mutex mutex_;
	std::vector<std::string> failed_;
	std::size_t made_ = 0;
};

// What the writers know: events whose commit was acknowledged, those that may be stored, those with an event id.
struct Known {
	Events committed;
	std::set<std::uint64_t> unknown;
	std::set<std::uint64_t> once;
};

// C2
void check_stored(Checks &checks, const Events &truth, const Known &known);
// C1, C3, C6: `some` are the streams of readers that do not follow all.
void check_given(Checks &checks, const Events &truth, const Known &known, const Collection &collection,
				 const std::vector<std::string> &some);

} // namespace soak
