#include "stream_set.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace doorbell::detail {

StreamSet::StreamSet(std::vector<std::string> prefixes, std::vector<std::string> streams)
{
	std::sort(prefixes.begin(), prefixes.end());
	for (std::string &prefix : prefixes)
		if (!has_prefix_of(prefix))
			prefixes_.push_back(std::move(prefix));
	std::sort(streams.begin(), streams.end());
	streams.erase(std::unique(streams.begin(), streams.end()), streams.end());
	for (std::string &stream : streams)
		if (!has_prefix_of(stream))
			streams_.push_back(std::move(stream));
}

// The prefixes that sort before a text and could begin it are those that it has; of these there is one at most, the
// last in order.
bool StreamSet::has_prefix_of(std::string_view stream) const
{
	const auto behind = std::upper_bound(prefixes_.begin(), prefixes_.end(), stream);
	return behind != prefixes_.begin() && stream.substr(0, std::prev(behind)->size()) == *std::prev(behind);
}

bool StreamSet::has(std::string_view stream) const
{
	return has_prefix_of(stream) || std::binary_search(streams_.begin(), streams_.end(), stream);
}

std::string StreamSet::common_prefix() const
{
	std::vector<std::string_view> ends; // in each of the two sorted lists, the first and the last differ most
	for (const auto *list : {&prefixes_, &streams_})
		if (!list->empty()) {
			ends.push_back(list->front());
			ends.push_back(list->back());
		}
	if (ends.empty())
		return {};
	const std::string_view first = ends.front();
	std::size_t length = first.size();
	for (const std::string_view end : ends) {
		const std::size_t most = std::min(length, end.size());
		const auto differ =
			std::mismatch(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(most), end.begin());
		length = static_cast<std::size_t>(differ.first - first.begin());
	}
	while (length > 0 && length < first.size() && (static_cast<unsigned char>(first[length]) & 0xc0) == 0x80)
		length--;
	return std::string(first.substr(0, length));
}

} // namespace doorbell::detail
