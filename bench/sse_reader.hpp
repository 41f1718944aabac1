// The receiving end of one SSE connection of sse_load.cpp: counts events and checks their order.
//
// 1. An event is a `data:` line that begins with {"n": COUNTER, "at": MICROSECONDS, as sse_publish.cpp writes it. The
//    counter rises by one in each stream, so a jump means missed events, and a step back or none a doubled one. The
//    time is the wall clock's when the event was due.
// 2. Everything else (head of the answer, ids, comments, chunk sizes) is skipped line by line. A server that cuts a
// line
//    in two by a chunk's end is not understood, and reported as missed events.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct SseCounts {
	bool counting = false; // within the measurement; the order is checked all the time
	std::uint64_t events = 0;
	std::uint64_t bytes = 0;
	std::vector<std::uint32_t> latencies; // in µs
	std::uint64_t missed = 0;
	std::uint64_t doubled = 0;
	std::uint64_t connected = 0; // had the head of their answer, and it was 200
};

class SseReader {
public:
	void take(std::string_view bytes, std::int64_t now, SseCounts &counts)
	{
		if (counts.counting)
			counts.bytes += bytes.size();
		while (!bytes.empty()) {
			const auto *const newline = static_cast<const char *>(std::memchr(bytes.data(), '\n', bytes.size()));
			if (newline == nullptr) {
				rest_ += bytes;
				return;
			}
			const std::string_view line = bytes.substr(0, static_cast<std::size_t>(newline - bytes.data()));
			if (rest_.empty()) {
				take_line(line, now, counts);
			} else {
				rest_ += line;
				take_line(rest_, now, counts);
				rest_.clear();
			}
			bytes.remove_prefix(line.size() + 1);
		}
	}
	bool is_connected() const noexcept { return connected_; }
	std::int64_t last() const noexcept { return last_; } // counter; -1: none came

private:
	void take_line(std::string_view line, std::int64_t now, SseCounts &counts)
	{
		constexpr std::string_view begin = "data: {\"n\": ";
		constexpr std::string_view middle = ", \"at\": ";
		if (!connected_ && line.substr(0, 5) == "HTTP/" && line.find(" 200") != std::string_view::npos) {
			connected_ = true;
			counts.connected++;
		}
		if (line.substr(0, begin.size()) != begin)
			return;
		const char *const end = line.data() + line.size();
		std::int64_t n = 0;
		std::int64_t at = 0;
		const char *const behind = std::from_chars(line.data() + begin.size(), end, n).ptr;
		if (static_cast<std::size_t>(end - behind) <= middle.size())
			return;
		std::from_chars(behind + middle.size(), end, at);
		if (last_ >= 0 && n > last_ + 1)
			counts.missed += static_cast<std::uint64_t>(n - last_ - 1);
		if (n <= last_)
			counts.doubled++;
		else
			last_ = n;
		if (counts.counting) {
			counts.events++;
			counts.latencies.push_back(static_cast<std::uint32_t>(now > at ? now - at : 0));
		}
	}

	std::string rest_; // of a line that is not complete
	std::int64_t last_ = -1;
	bool connected_ = false;
};

} // namespace bench
