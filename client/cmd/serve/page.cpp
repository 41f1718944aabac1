#include "page.hpp"

#include "page_html.hpp"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <sys/random.h>

namespace command::serve {

static std::string make_nonce()
{
	unsigned char bytes[16];
	while (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		if (errno != EINTR)
			throw std::runtime_error("no random numbers");
	std::string nonce;
	for (const unsigned char byte : bytes) {
		char digits[3];
		std::snprintf(digits, sizeof digits, "%02x", byte);
		nonce += digits;
	}
	return nonce;
}

Answer page()
{
	constexpr std::string_view place = "NONCE";
	const std::string nonce = make_nonce();
	Answer answer;
	answer.type = "text/html; charset=utf-8";
	answer.body = page_html;
	for (std::size_t at = 0; (at = answer.body.find(place, at)) != std::string::npos; at += nonce.size())
		answer.body.replace(at, place.size(), nonce);
	answer.headers = "content-security-policy: default-src 'none'; connect-src 'self'; img-src data:; script-src 'nonce-" +
					 nonce + "'; style-src 'nonce-" + nonce +
					 "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
					 "referrer-policy: no-referrer\r\n";
	return answer;
}

} // namespace command::serve
