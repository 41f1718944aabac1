// The SSE formatter: what it writes, an independent parser reads as the same fields, however the bytes are cut.
//
// 1. A frame is written whole, or refused with `out` unchanged.
// 2. Each event gives one message with its id (the one before when it has none), type and data, lines joined by LF.
// 3. Control frames are control events with the key as JSON; none of them, and no comment or retry, moves the id.
#include "fuzz.hpp"

#include "../live/sse_parser.hpp"

#include <doorbell/error.hpp>
#include <doorbell/sse.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

using live::SseMessage;

namespace {

struct Expected {
	std::vector<SseMessage> messages;
	std::vector<SseMessage> controls;
	std::string last_id;
	std::size_t comments = 0;
	long retry = -1;
};

bool breaks_frames(const std::string &text)
{
	return text.find_first_of(std::string("\r\n\0", 3)) != std::string::npos;
}

std::string with_lf(const std::string &text)
{
	std::string out;
	for (std::size_t i = 0; i < text.size(); i++) {
		if (text[i] != '\r')
			out += text[i];
		else if (i + 1 == text.size() || text[i + 1] != '\n')
			out += '\n';
	}
	return out;
}

void add_event(FuzzedDataProvider &input, std::string &out, Expected &expected)
{
	const std::string id = input.ConsumeRandomLengthString(64);
	const std::string type = input.ConsumeRandomLengthString(64);
	const std::string data = input.ConsumeRandomLengthString(1024);
	doorbell::sse::append_event(out, id, type, data);
	fuzz::expect(!breaks_frames(id) && !breaks_frames(type), "what would break a frame is refused");
	if (!id.empty())
		expected.last_id = id;
	auto &to = type.compare(0, 9, "doorbell:") == 0 ? expected.controls : expected.messages;
	to.push_back({expected.last_id, type.empty() ? "message" : type, with_lf(data)});
}

void add_control(FuzzedDataProvider &input, std::string &out, Expected &expected)
{
	const bool gap = input.ConsumeBool();
	const auto asked = input.ConsumeIntegral<std::int64_t>();
	const auto low_water = input.ConsumeIntegral<std::int64_t>();
	const std::string stream = input.ConsumeRandomLengthString(512);
	std::string frame;
	if (gap)
		doorbell::sse::append_gap(frame, stream, asked, low_water);
	else
		doorbell::sse::append_reset(frame, stream, asked, low_water);
	out += frame;

	live::SseParser alone;
	alone.feed(frame);
	fuzz::expect(alone.controls.size() == 1 && alone.messages.empty() && alone.last_id.empty(),
				 "it is one control frame");
	const SseMessage &control = alone.controls[0];
	fuzz::expect(control.type == (gap ? "doorbell:gap" : "doorbell:reset"), "its type is its name");
	const auto json = nlohmann::json::parse(control.data, nullptr, false); // discarded when the key is no UTF-8
	if (!json.is_discarded())
		fuzz::expect(json == nlohmann::json{{"stream", stream}, {"asked", asked}, {"low_water", low_water}},
					 "its data is the key and the seqs");
	else
		fuzz::expect(std::any_of(stream.begin(), stream.end(), [](char c) { return c < 0; }), "its data is JSON");
	expected.controls.push_back({expected.last_id, control.type, control.data});
}

void add(FuzzedDataProvider &input, std::string &out, Expected &expected)
{
	switch (input.ConsumeIntegralInRange(0, 4)) {
	case 0:
		add_control(input, out, expected);
		break;
	case 1: {
		const std::string text = input.ConsumeRandomLengthString(64);
		doorbell::sse::append_comment(out, text);
		fuzz::expect(!breaks_frames(text), "what would break a comment is refused");
		expected.comments++;
		break;
	}
	case 2: {
		const auto delay = input.ConsumeIntegral<std::int64_t>();
		doorbell::sse::append_retry(out, std::chrono::milliseconds(delay));
		expected.retry = delay;
		break;
	}
	default:
		add_event(input, out, expected);
	}
}

bool same(const SseMessage &a, const SseMessage &b)
{
	return a.id == b.id && a.type == b.type && a.data == b.data;
}

} // namespace

void fuzz::test(FuzzedDataProvider &input)
{
	std::string out;
	Expected expected;
	for (int frames = input.ConsumeIntegralInRange(1, 8); frames > 0; frames--) {
		const std::string before = out;
		try {
			add(input, out, expected);
		} catch (const doorbell::Error &) {
			fuzz::expect(out == before, "a frame that is refused leaves nothing behind");
		}
	}

	live::SseParser parser;
	for (std::string_view rest = out; !rest.empty();) {
		const auto piece = input.ConsumeIntegralInRange<std::size_t>(1, rest.size());
		parser.feed(rest.substr(0, piece));
		rest.remove_prefix(piece);
	}
	fuzz::expect(std::equal(parser.messages.begin(), parser.messages.end(), expected.messages.begin(),
							expected.messages.end(), same),
				 "events are read as they were written");
	fuzz::expect(std::equal(parser.controls.begin(), parser.controls.end(), expected.controls.begin(),
							expected.controls.end(), same),
				 "so are control frames");
	fuzz::expect(parser.last_id == expected.last_id, "only events move the id");
	fuzz::expect(parser.comments == expected.comments && parser.retry == expected.retry, "comments and retry count");
}
