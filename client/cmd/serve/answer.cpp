#include "answer.hpp"

#include <nlohmann/json.hpp>

namespace command::serve {

static std::string_view reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 204:
		return "No Content";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Error";
	}
}

Answer refused(const Refusal &refusal)
{
	Answer answer;
	answer.status = refusal.status();
	answer.type = "application/json";
	// What it quotes may be no UTF-8.
	answer.body = nlohmann::json{{"error", refusal.what()}}.dump(-1, ' ', false,
																  nlohmann::json::error_handler_t::replace) +
				  '\n';
	if (answer.status == 401)
		answer.headers = "www-authenticate: Bearer\r\n";
	return answer;
}

std::string format_head(int status, std::string_view type, std::string_view headers)
{
	std::string out = "HTTP/1.1 " + std::to_string(status) + ' ';
	out += reason(status);
	out += "\r\nconnection: close\r\n";
	if (!type.empty()) {
		out += "content-type: ";
		out += type;
		out += "\r\n";
	}
	out += headers;
	out += "\r\n";
	return out;
}

std::string format_answer(const Answer &answer, bool head_only)
{
	std::string headers = answer.headers + "x-content-type-options: nosniff\r\n";
	if (answer.headers.find("cache-control:") == std::string::npos)
		headers += "cache-control: no-store\r\n";
	// A full house is an event stream, which has no length for a reader that came for one.
	if (!answer.type.empty() && answer.type != "text/event-stream")
		headers += "content-length: " + std::to_string(answer.body.size()) + "\r\n";
	return format_head(answer.status, answer.type, headers) + (head_only ? "" : answer.body);
}

} // namespace command::serve
