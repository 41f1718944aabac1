// The pointer that a doorbell carries, as text: "<stream>:<seq>", or "*" for "look at everything you follow".
//
// 1. A pointer names an event, it never holds one: it may be lost, doubled or reordered without harm.
// 2. A stream key may hold ':', so the text is split on its LAST colon. "*" has no colon and is no stream.
// 3. This is the one header that the extension and the client share. It allocates nothing, throws nothing and needs
//    nothing from the C++ run-time library, so that it can live inside the server.
//
// Threading: pure functions. Limits: a key has at most max_stream_bytes bytes, a seq at most 19 digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace doorbell {

inline constexpr const char *channel = "doorbell";
inline constexpr std::string_view pointer_to_everything = "*";
inline constexpr std::size_t max_stream_bytes = 512;
inline constexpr std::size_t max_seq_digits = 19;
inline constexpr std::size_t max_pointer_bytes = max_stream_bytes + 1 + max_seq_digits;

struct Pointer {
	std::string_view stream; // empty: everything
	std::int64_t seq = 0;

	constexpr bool everything() const noexcept { return stream.empty(); }
};

// Reads a pointer; nothing for a text that is none. The stream is a view into `text`.
constexpr std::optional<Pointer> parse_pointer(std::string_view text) noexcept
{
	if (text == pointer_to_everything)
		return Pointer{};

	const std::size_t colon = text.rfind(':');
	if (colon == std::string_view::npos || colon == 0 || colon > max_stream_bytes)
		return std::nullopt;
	const std::size_t digits = text.size() - colon - 1;
	if (digits == 0 || digits > max_seq_digits)
		return std::nullopt;

	std::uint64_t seq = 0; // 19 digits always fit
	for (std::size_t i = colon + 1; i < text.size(); i++) {
		if (text[i] < '0' || text[i] > '9')
			return std::nullopt;
		seq = seq * 10 + static_cast<std::uint64_t>(text[i] - '0');
	}
	if (seq > static_cast<std::uint64_t>(INT64_MAX))
		return std::nullopt;
	return Pointer{std::string_view(text.data(), colon), static_cast<std::int64_t>(seq)};
}

// Writes the pointer to event `seq` of `stream` and a closing NUL into `out`; returns its length without the NUL.
// The stream must be a valid key (1 to max_stream_bytes bytes) and seq not negative.
inline std::size_t format_pointer(std::string_view stream, std::int64_t seq,
								  char (&out)[max_pointer_bytes + 1]) noexcept
{
	char digits[max_seq_digits];
	std::size_t count = 0;
	auto rest = static_cast<std::uint64_t>(seq);
	do {
		digits[count++] = static_cast<char>('0' + rest % 10);
		rest /= 10;
	} while (rest != 0);

	std::memcpy(out, stream.data(), stream.size());
	std::size_t length = stream.size();
	out[length++] = ':';
	while (count > 0)
		out[length++] = digits[--count];
	out[length] = '\0';
	return length;
}

} // namespace doorbell
