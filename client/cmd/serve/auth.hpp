// Who may follow what: JSON Web Tokens, read and verified by librhonabwy.
//
// 1. There is one key, and it decides the algorithm: an RSA public key RS256, an Ed25519 one EdDSA, a secret HS256. A
//    token that names another algorithm is refused before anything is done with it; so is a compressed one, and one
//    with critical extensions. Keys that a token brings along or points to are never used.
// 2. The claim "doorbell.subscribe" (or "subscribe" in an object "doorbell") lists names of streams and patterns: what
//    ends with '*' stands for all that begin so. A prefix can only be followed under a pattern that covers it.
// 3. "exp" and "nbf" are honoured, without leeway; a token without "exp" does not expire.
// 4. Nothing here is ever logged, and no message quotes a token.
//
// Threading: one owner.
#pragma once

#include <doorbell/connect.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace command::serve {

struct Grant {
	std::vector<std::string> patterns;
	doorbell::Clock::time_point expires = doorbell::Clock::time_point::max();

	bool covers_stream(std::string_view stream) const;
	bool covers_prefix(std::string_view prefix) const;
};

class Auth {
public:
	// `key`: a public key in PEM, or a secret of at least 32 bytes. `algorithm`: HS256, RS256, EdDSA, or empty for what
	// a public key says; a secret needs it. Throws std::runtime_error when the two do not fit.
	Auth(std::string key, const std::string &algorithm);
	~Auth();
	Auth(const Auth &) = delete;
	Auth &operator=(const Auth &) = delete;

	// What the token allows at that time. Throws Refusal 401.
	Grant verify(const std::string &token,
				 std::chrono::system_clock::time_point now = std::chrono::system_clock::now()) const;

private:
	struct Key;
	std::unique_ptr<Key> key_;
};

// The token of a request: from "Authorization: Bearer", else `parameter`, else the cookie of that name; or empty.
std::string find_token(std::string_view authorization, const std::string *parameter, std::string_view cookies,
					   std::string_view cookie_name);

} // namespace command::serve
