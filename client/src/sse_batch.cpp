#include "sse_batch.hpp"

#include <doorbell/sse.hpp>

#include "text.hpp"

#include <algorithm>

namespace doorbell::detail {

std::size_t SseBatch::first_after(std::int64_t seq) const
{
	const auto found = std::upper_bound(events_.begin(), events_.end(), seq,
										[](std::int64_t after, const Event &event) { return after < event.seq; });
	return static_cast<std::size_t>(found - events_.begin());
}

const Frames &SseBatch::frames(Form form)
{
	Frames &frames = frames_[form.index()];
	if (frames.text != nullptr)
		return frames;
	const auto text = std::make_shared<std::string>();
	frames.ends.reserve(events_.size());
	for (const Event &event : events_) {
		const std::string id = form.with_id ? format_mark(mark_of(event)) : std::string();
		const std::string_view type = form.named ? std::string_view(event.type) : std::string_view();
		std::string data;
		if (form.envelope)
			sse::append_event(*text, id, type, format_envelope(event));
		else if (form.raw && unquote_json_string(event.payload, data))
			sse::append_event(*text, id, type, data);
		else
			sse::append_event(*text, id, type, event.payload);
		frames.ends.push_back(text->size());
	}
	frames.text = text;
	return frames;
}

} // namespace doorbell::detail
