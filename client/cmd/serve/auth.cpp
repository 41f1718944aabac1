#include "auth.hpp"

#include "answer.hpp"

#include <gnutls/crypto.h>
#include <nlohmann/json.hpp>
#include <orcania.h>
#include <rhonabwy.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <strings.h>

namespace command::serve {

using nlohmann::json;

namespace {

constexpr std::size_t least_secret_bytes = 32; // RFC 7518, 3.2
constexpr unsigned least_rsa_bits = 2048;	   // RFC 7518, 3.3

struct Library {
	Library()
	{
		if (r_global_init() != RHN_OK)
			throw std::runtime_error("could not initialise librhonabwy");
	}
	~Library() { r_global_close(); }
};

struct FreeJwk {
	void operator()(jwk_t *jwk) const { r_jwk_free(jwk); }
};
struct FreeJws {
	void operator()(jws_t *jws) const { r_jws_free(jws); }
};

[[noreturn]] void refuse(const char *why)
{
	throw Refusal(401, why);
}

bool begins_with(std::string_view text, std::string_view start)
{
	return text.substr(0, start.size()) == start;
}

// The first part of a token as JSON; discarded when it is none.
json token_header(std::string_view part)
{
	std::string text(part.size() + 4, '\0'); // the decoder may write a little more than it says
	std::size_t size = 0;
	if (!o_base64url_decode(reinterpret_cast<const unsigned char *>(part.data()), part.size(),
											reinterpret_cast<unsigned char *>(text.data()), &size))
		return json(json::value_t::discarded);
	text.resize(std::min(size, text.size()));
	return json::parse(text, nullptr, false);
}

// A time claim in seconds since 1970; empty when it is not there.
std::optional<double> time_claim(const json &claims, const char *name)
{
	const auto found = claims.find(name);
	if (found == claims.end())
		return std::nullopt;
	if (!found->is_number())
		refuse("the token's times must be numbers");
	return found->get<double>();
}

// The claim that lists what may be followed; null when it is not there.
const json *find_patterns(const json &claims)
{
	const auto flat = claims.find("doorbell.subscribe");
	if (flat != claims.end())
		return &*flat;
	const auto outer = claims.find("doorbell");
	if (outer == claims.end() || !outer->is_object())
		return nullptr;
	const auto inner = outer->find("subscribe");
	return inner == outer->end() ? nullptr : &*inner;
}

} // namespace

bool Grant::covers_stream(std::string_view stream) const
{
	return std::find(patterns.begin(), patterns.end(), stream) != patterns.end() || covers_prefix(stream);
}

bool Grant::covers_prefix(std::string_view prefix) const
{
	return std::any_of(patterns.begin(), patterns.end(), [prefix](std::string_view pattern) {
		return !pattern.empty() && pattern.back() == '*' && begins_with(prefix, pattern.substr(0, pattern.size() - 1));
	});
}

struct Auth::Key {
	Library library;
	std::unique_ptr<jwk_t, FreeJwk> jwk;
	std::string secret; // of HS256
	std::string name;	// the algorithm, as tokens write it
	jwa_alg algorithm = R_JWA_ALG_UNKNOWN;

	bool fits(const std::string &signed_part, const std::string &signature) const;
};

// Compares an HMAC in constant time, which the library does not: it stops at the first byte that differs.
bool Auth::Key::fits(const std::string &signed_part, const std::string &signature) const
{
	unsigned char expected[32];
	unsigned char given[64];
	std::size_t size = 0;
	return signature.size() == 43 && // 32 bytes in base64url
		   o_base64url_decode(reinterpret_cast<const unsigned char *>(signature.data()), signature.size(), given,
							  &size) &&
		   size == sizeof expected &&
		   gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret.data(), secret.size(), signed_part.data(), signed_part.size(),
							expected) == 0 &&
		   gnutls_memcmp(expected, given, sizeof expected) == 0;
}

Auth::Auth(std::string key, const std::string &algorithm) : key_(std::make_unique<Key>())
{
	jwk_t *jwk = nullptr;
	if (r_jwk_init(&jwk) != RHN_OK)
		throw std::bad_alloc();
	key_->jwk.reset(jwk);
	if (key.find("PRIVATE KEY-----") != std::string::npos)
		throw std::runtime_error("the JWT key is a private key: give its public key, which is all that is needed");

	const auto *bytes = reinterpret_cast<const unsigned char *>(key.data());
	if (key.find("-----BEGIN ") != std::string::npos) {
		if (r_jwk_import_from_pem_der(jwk, R_X509_TYPE_PUBKEY, R_FORMAT_PEM, bytes, key.size()) != RHN_OK)
			throw std::runtime_error("the JWT key is no public key in PEM that can be read");
		unsigned bits = 0;
		const int type = r_jwk_key_type(jwk, &bits, R_FLAG_IGNORE_REMOTE);
		if ((type & R_KEY_TYPE_RSA) != 0)
			key_->name = "RS256";
		else if ((type & R_KEY_TYPE_EDDSA) != 0)
			key_->name = "EdDSA";
		else
			throw std::runtime_error("the JWT key is neither an RSA nor an Ed25519 key");
		if (key_->name == "RS256" && bits < least_rsa_bits)
			throw std::runtime_error("the JWT key is too short: an RSA key must have at least " +
									 std::to_string(least_rsa_bits) + " bits");
		if (!algorithm.empty() && algorithm != key_->name)
			throw std::runtime_error("the JWT key is for " + key_->name + ", not for " + algorithm);
	} else {
		if (algorithm != "HS256")
			throw std::runtime_error("the JWT key is no public key in PEM; if it is a secret, say so by --jwt-alg HS256");
		while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) // an editor's
			key.pop_back();
		if (key.size() < least_secret_bytes)
			throw std::runtime_error("the JWT secret is too short: it must have at least " +
									 std::to_string(least_secret_bytes) + " bytes");
		if (r_jwk_import_from_symmetric_key(jwk, bytes, key.size()) != RHN_OK)
			throw std::runtime_error("the JWT secret cannot be used");
		key_->name = algorithm;
		key_->secret = std::move(key);
	}
	key_->algorithm = r_str_to_jwa_alg(key_->name.c_str());
}

Auth::~Auth() = default;

Grant Auth::verify(const std::string &token, std::chrono::system_clock::time_point now) const
{
	const std::size_t first = token.find('.');
	const std::size_t last = token.rfind('.');
	const bool three_parts = first != std::string::npos && first > 0 && last > first + 1 && last + 1 < token.size() &&
							 token.find('.', first + 1) == last;
	if (!three_parts ||
		token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") !=
			std::string::npos)
		refuse("the token is no JWT");
	const json header = token_header(std::string_view(token).substr(0, first));
	if (!header.is_object())
		refuse("the token is no JWT");
	if (header.value("alg", json()) != key_->name)
		refuse("the token's algorithm is not that of the key");
	if (header.contains("zip") || header.contains("crit"))
		refuse("the token is compressed or has critical extensions");
	if (!key_->secret.empty() && !key_->fits(token.substr(0, last), token.substr(last + 1)))
		refuse("the token's signature is wrong");

	jws_t *jws = nullptr;
	if (r_jws_init(&jws) != RHN_OK)
		throw std::bad_alloc();
	const std::unique_ptr<jws_t, FreeJws> owner(jws);
	if (r_jws_advanced_compact_parsen(jws, token.data(), token.size(), R_PARSE_NONE, R_FLAG_IGNORE_REMOTE) != RHN_OK)
		refuse("the token is no JWT");
	if (r_jws_get_alg(jws) != key_->algorithm ||
		r_jws_verify_signature(jws, key_->jwk.get(), R_FLAG_IGNORE_REMOTE) != RHN_OK)
		refuse("the token's signature is wrong");

	std::size_t size = 0;
	const unsigned char *payload = r_jws_get_payload(jws, &size);
	const json claims = json::parse(payload, payload + size, nullptr, false);
	if (!claims.is_object())
		refuse("the token holds no claims");

	Grant grant;
	const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
	if (const auto not_before = time_claim(claims, "nbf"); not_before && !(*not_before <= seconds))
		refuse("the token is not valid yet");
	if (const auto expires = time_claim(claims, "exp")) {
		const double left = *expires - seconds;
		if (!(left > 0))
			refuse("the token has expired");
		constexpr double century = 100 * 365.25 * 86400;
		if (left < century)
			grant.expires = doorbell::Clock::now() + doorbell::milliseconds(static_cast<std::int64_t>(left * 1000));
	}
	const json *patterns = find_patterns(claims);
	if (patterns == nullptr)
		return grant; // of nothing
	if (!patterns->is_array())
		refuse("the token's claim doorbell.subscribe is no array");
	for (const json &pattern : *patterns)
		if (pattern.is_string())
			grant.patterns.push_back(pattern.get<std::string>());
	return grant;
}

std::string find_token(std::string_view authorization, const std::string *parameter, std::string_view cookies,
					   std::string_view cookie_name)
{
	constexpr std::string_view scheme = "Bearer ";
	if (authorization.size() > scheme.size() && ::strncasecmp(authorization.data(), scheme.data(), scheme.size()) == 0) {
		authorization.remove_prefix(scheme.size());
		authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
		return std::string(authorization);
	}
	if (parameter != nullptr)
		return *parameter;
	while (!cookies.empty()) {
		const std::size_t end = std::min(cookies.find(';'), cookies.size());
		std::string_view cookie = cookies.substr(0, end);
		cookies.remove_prefix(std::min(end + 1, cookies.size()));
		cookie.remove_prefix(std::min(cookie.find_first_not_of(' '), cookie.size()));
		const std::size_t equals = cookie.find('=');
		if (equals != std::string_view::npos && cookie.substr(0, equals) == cookie_name)
			return std::string(cookie.substr(equals + 1));
	}
	return {};
}

} // namespace command::serve
