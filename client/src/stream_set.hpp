// Which streams a connection with prefixes follows: those that begin with one of them, and those that it names besides.
//
// Two requests that follow the same streams have equal sets, however they put it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace doorbell::detail {

class StreamSet {
public:
	StreamSet(std::vector<std::string> prefixes, std::vector<std::string> streams);

	bool has(std::string_view stream) const;
	std::string common_prefix() const; // of all that it has: the longest one, in whole characters

	friend bool operator<(const StreamSet &a, const StreamSet &b)
	{
		return std::tie(a.prefixes_, a.streams_) < std::tie(b.prefixes_, b.streams_);
	}

private:
	bool has_prefix_of(std::string_view stream) const;

	std::vector<std::string> prefixes_; // sorted; none begins with another
	std::vector<std::string> streams_;	// sorted; none begins with a prefix
};

} // namespace doorbell::detail
