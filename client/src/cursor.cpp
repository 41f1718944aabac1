#include <doorbell/cursor.hpp>
#include <doorbell/error.hpp>

#include "text.hpp"

#include <optional>

namespace doorbell {
namespace {

constexpr std::size_t check_digits = 8;

// FNV-1a, 64 bits, one byte at a time.
class Hash {
public:
	void add(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3; }

	void add(std::string_view text) noexcept
	{
		for (const char c : text)
			add(static_cast<unsigned char>(c));
		add(static_cast<unsigned char>(0)); // keys and types hold no NUL, so it separates them
	}

	void add(std::int64_t number) noexcept // little-endian
	{
		for (int shift = 0; shift < 64; shift += 8)
			add(static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> shift & 0xff));
	}

	std::uint32_t folded() const noexcept { return static_cast<std::uint32_t>(value_ ^ value_ >> 32); }

private:
	std::uint64_t value_ = 0xcbf29ce484222325;
};

std::optional<std::uint32_t> parse_check(std::string_view text) noexcept
{
	if (text.size() != check_digits)
		return std::nullopt;
	std::uint32_t check = 0;
	for (const char c : text) {
		if (c >= '0' && c <= '9')
			check = check << 4 | static_cast<std::uint32_t>(c - '0');
		else if (c >= 'a' && c <= 'f')
			check = check << 4 | static_cast<std::uint32_t>(c - 'a' + 10);
		else
			return std::nullopt;
	}
	if (check == 0) // no event has it
		return std::nullopt;
	return check;
}

} // namespace

std::uint32_t check_of(std::string_view stream, std::int64_t seq, std::string_view type,
					   std::int64_t appended_at) noexcept
{
	Hash hash;
	hash.add(stream);
	hash.add(type);
	hash.add(seq);
	hash.add(appended_at);
	const std::uint32_t check = hash.folded();
	return check == 0 ? 1 : check;
}

Mark mark_of(const Event &event) noexcept
{
	return {event.seq, check_of(event.stream, event.seq, event.type, event.appended_at)};
}

std::string format_mark(Mark mark)
{
	std::string out = std::to_string(mark.seq);
	if (mark.check != 0) {
		out += '-';
		for (int shift = 28; shift >= 0; shift -= 4)
			out += "0123456789abcdef"[mark.check >> shift & 15];
	}
	return out;
}

Mark parse_mark(std::string_view text)
{
	const std::size_t dash = text.find('-');
	const std::optional<std::int64_t> seq = detail::parse_seq(text.substr(0, dash));
	if (!seq)
		throw Error("invalid cursor " + detail::quoted(text) + ": expected a seq such as 42, or 42-9f3c01ab");
	if (dash == std::string_view::npos)
		return {*seq, 0};

	const std::optional<std::uint32_t> check = parse_check(text.substr(dash + 1));
	if (!check || *seq == 0) // seq 0 stands before the first event, so it has no check
		throw Error("invalid cursor " + detail::quoted(text) + ": the check after \"-\" is not one of an event");
	return {*seq, *check};
}

std::string format_cursor(const std::vector<Mark> &marks)
{
	std::string out;
	for (const Mark &mark : marks) {
		if (!out.empty())
			out += ',';
		out += format_mark(mark);
	}
	return out;
}

std::vector<Mark> parse_cursor(std::string_view text, std::size_t streams)
{
	std::vector<Mark> marks;
	std::string_view rest = text;
	while (true) {
		const std::size_t comma = rest.find(',');
		marks.push_back(parse_mark(rest.substr(0, comma)));
		if (comma == std::string_view::npos)
			break;
		rest.remove_prefix(comma + 1);
	}
	if (marks.size() != streams)
		throw Error("invalid cursor " + detail::quoted(text) + ": it has " + std::to_string(marks.size()) +
					" marks for " + std::to_string(streams) + " streams");
	return marks;
}

} // namespace doorbell
