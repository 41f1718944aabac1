// Pointers, which everybody who may connect can NOTIFY.
//
// 1. Any text is read or refused; what is read is a valid key and seq, and a view into the text.
// 2. What is written for a valid key and seq is read back as the same.
#include "fuzz.hpp"

#include <doorbell/pointer.hpp>

static void read(std::string_view text)
{
	const auto pointer = doorbell::parse_pointer(text);
	if (!pointer)
		return;
	if (pointer->everything()) {
		fuzz::expect(text == "*", "only * is everything");
		return;
	}
	fuzz::expect(pointer->seq >= 0, "no seq is negative");
	fuzz::expect(pointer->stream.size() <= doorbell::max_stream_bytes, "no key is too long");
	fuzz::expect(text.substr(0, text.rfind(':')) == pointer->stream, "the last colon splits");
}

static void read_back(std::string_view stream, std::int64_t seq)
{
	char out[doorbell::max_pointer_bytes + 1];
	const std::size_t length = doorbell::format_pointer(stream, seq, out);
	fuzz::expect(length < sizeof out && out[length] == '\0', "what is written fits and ends");
	const auto again = doorbell::parse_pointer({out, length});
	fuzz::expect(again && again->stream == stream && again->seq == seq, "what is written is read back");
}

void fuzz::test(FuzzedDataProvider &input)
{
	if (input.ConsumeBool()) {
		read(input.ConsumeRemainingBytesAsString());
	} else {
		const auto seq = input.ConsumeIntegralInRange<std::int64_t>(0, INT64_MAX);
		const std::string stream = input.ConsumeBytesAsString(doorbell::max_stream_bytes);
		if (!stream.empty())
			read_back(stream, seq);
	}
}
