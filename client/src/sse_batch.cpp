#include "sse_batch.hpp"

#include <doorbell/sse.hpp>

#include "text.hpp"

#include <algorithm>
#include <utility>

namespace doorbell::detail {

void SseBatch::add(const Event &event, std::string_view cursor)
{
	add(Row{event, std::string(cursor), false});
}

void SseBatch::add_gap(std::string_view stream, std::int64_t low_water, std::string_view cursor)
{
	Row row{{}, std::string(cursor), true};
	row.event.stream = stream;
	row.event.seq = low_water;
	add(std::move(row));
}

void SseBatch::add(Row row)
{
	bytes_ +=
		sizeof row + row.event.stream.size() + row.event.type.size() + row.event.payload.size() + row.cursor.size();
	rows_.push_back(std::move(row));
	frames_ = {};
}

std::size_t SseBatch::first_after(std::int64_t seq) const
{
	const auto found = std::upper_bound(rows_.begin(), rows_.end(), seq,
										[](std::int64_t after, const Row &row) { return after < row.event.seq; });
	return static_cast<std::size_t>(found - rows_.begin());
}

const Frames &SseBatch::frames(Form form)
{
	Frames &frames = frames_[form.index()];
	if (frames.text != nullptr)
		return frames;
	const auto text = std::make_shared<std::string>();
	frames.ends.reserve(rows_.size());
	for (const Row &row : rows_) {
		const Event &event = row.event;
		const std::string id = !form.with_id		? std::string()
							   : row.cursor.empty() ? format_mark(mark_of(event))
													: row.cursor;
		const std::string_view type = form.named ? std::string_view(event.type) : std::string_view();
		std::string data;
		if (row.is_gap)
			sse::append_gap(*text, event.stream, event.seq);
		else if (form.envelope)
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
