// The one exception type of this library.
//
// 1. what() is one line, lower case, and names the bad value; it never holds a connection string or a password.
// 2. sqlstate() is the server's five characters when the server refused something, else empty (a bad argument, a
//    broken connection, a deadline). The server's detail and hint follow the message, each after a line feed.
// 3. Exceptions that a handler of yours throws are never wrapped: they come out as they were thrown.
#pragma once

#include <doorbell/export.hpp>

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace doorbell {

inline constexpr std::string_view sqlstate_conflict = "DB001";		// expected_seq was not the stream's last seq
inline constexpr std::string_view sqlstate_other_history = "DB002"; // a cursor of all streams, from another history
inline constexpr std::string_view sqlstate_overtaken = "DB003";		// the consumer's cursor is further on

class DOORBELL_API Error : public std::runtime_error {
public:
	explicit Error(const std::string &message, std::string_view sqlstate = {}) : std::runtime_error(message)
	{
		const std::size_t length = sqlstate.size() < 5 ? sqlstate.size() : 5;
		if (length > 0)
			std::memcpy(sqlstate_, sqlstate.data(), length);
	}

	std::string_view sqlstate() const noexcept { return sqlstate_; }
	bool is_conflict() const noexcept { return sqlstate() == sqlstate_conflict; }
	bool is_other_history() const noexcept { return sqlstate() == sqlstate_other_history; }
	bool is_overtaken() const noexcept { return sqlstate() == sqlstate_overtaken; }

	// Whether the server refused what will be no better later: a missing privilege or object, a bad argument.
	bool is_lasting() const noexcept
	{
		const std::string_view kind = sqlstate().substr(0, 2);
		return kind == "42" || kind == "3F" || kind == "0A" || kind == "22";
	}

private:
	char sqlstate_[6] = {}; // an array, so that copying the exception cannot throw
};

} // namespace doorbell
