#include "sse_parser.hpp"

namespace live {

void SseParser::feed(std::string_view bytes)
{
	for (const char c : bytes) {
		const bool second_half = c == '\n' && after_cr_;
		after_cr_ = c == '\r';
		if (second_half)
			continue;
		if (c == '\n' || c == '\r')
			end_line();
		else
			line_ += c;
	}
}

void SseParser::dispatch()
{
	last_id = id_;
	if (has_data_) {
		data_.pop_back();
		auto &to = type_.compare(0, 9, "doorbell:") == 0 ? controls : messages;
		to.push_back({last_id, type_.empty() ? "message" : type_, data_});
	}
	type_.clear();
	data_.clear();
	has_data_ = false;
}

void SseParser::end_line()
{
	const std::string text = std::move(line_);
	line_.clear();
	if (text.empty()) {
		dispatch();
		return;
	}
	if (text[0] == ':') {
		comments++;
		return;
	}
	const std::size_t colon = text.find(':');
	const std::string field = text.substr(0, colon);
	std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
	if (!value.empty() && value[0] == ' ')
		value.erase(0, 1);
	if (field == "data") {
		data_ += value + '\n';
		has_data_ = true;
	} else if (field == "event") {
		type_ = value;
	} else if (field == "id") {
		if (value.find('\0') == std::string::npos)
			id_ = value;
	} else if (field == "retry") {
		if (!value.empty() && value.find_first_not_of("0123456789") == std::string::npos)
			retry = std::stol(value);
	}
}

} // namespace live
