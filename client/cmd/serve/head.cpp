#include "head.hpp"

#include "answer.hpp"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <algorithm>

namespace command::serve {

namespace http = boost::beast::http;

class HeadReader::Parser : public http::request_parser<http::empty_body> {};

HeadReader::HeadReader() : parser_(std::make_unique<Parser>())
{
	parser_->header_limit(max_head_bytes);
	parser_->skip(true); // a body is not read
}

HeadReader::~HeadReader() = default;

bool HeadReader::feed(std::string_view bytes)
{
	bytes_.append(bytes, 0, std::min(bytes.size(), max_head_bytes + 1 - bytes_.size()));
	if (!line_complete_) {
		bytes_.erase(0, bytes_.find_first_not_of("\r\n")); // empty lines before a request are to be ignored
		const std::size_t end = bytes_.find('\n');
		line_complete_ = end != std::string::npos;
		if (std::min(end, bytes_.size()) > max_line_bytes)
			throw Refusal(414, "the request line is longer than " + std::to_string(max_line_bytes) + " bytes");
		if (!line_complete_)
			return false;
	}

	boost::beast::error_code error;
	const std::size_t used = parser_->put(boost::asio::buffer(bytes_), error);
	bytes_.erase(0, used);
	if (parser_->is_header_done()) {
		bytes_ = {};
		return true;
	}
	if (error == http::error::header_limit || bytes_.size() > max_head_bytes)
		throw Refusal(431, "the head is longer than " + std::to_string(max_head_bytes) + " bytes");
	if (error == http::error::bad_version)
		throw Refusal(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	if (error && error != http::error::need_more)
		throw Refusal(400, "malformed request: " + error.message());
	return false;
}

Head HeadReader::head() const
{
	const auto &message = parser_->get();
	const auto text = [](boost::beast::string_view view) { return std::string(view.data(), view.size()); };
	if (message.version() == 11 && message.count(http::field::host) != 1)
		throw Refusal(400, "an HTTP/1.1 request must have one Host header");

	Head head;
	head.method = text(message.method_string());
	head.target = text(message.target());
	head.authorization = text(message[http::field::authorization]);
	head.last_event_id = text(message["Last-Event-ID"]);
	head.origin = text(message[http::field::origin]);
	const auto cookies = message.equal_range(http::field::cookie); // a proxy may have split them
	for (auto i = cookies.first; i != cookies.second; ++i)
		head.cookie += (head.cookie.empty() ? "" : "; ") + text(i->value());
	return head;
}

} // namespace command::serve
