// The form of the cursors of doorbell.replay_all; see docs/protocol.md.
#include "all_cursor.hpp"

#include <doorbell/cursor.hpp>
#include <doorbell/pointer.hpp>

namespace doorbell {
namespace {

constexpr std::size_t longest = 16 * 1024;
constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view key_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

class Form {
public:
	explicit Form(std::string_view text) : rest_(text) {}

	bool take(std::string_view text)
	{
		if (rest_.substr(0, text.size()) != text)
			return false;
		rest_.remove_prefix(text.size());
		return true;
	}
	bool hex()
	{
		const std::string_view digits = take_all(hex_digits);
		return !digits.empty() && digits.size() <= 16 && (digits[0] != '0' || digits.size() == 1);
	}
	bool key()
	{
		const std::string_view digits = take_all(key_digits);
		return !digits.empty() && digits.size() % 4 != 1 && digits.size() * 3 / 4 <= max_stream_bytes;
	}
	bool seen()
	{
		bool valid = hex();
		while (valid && take("~"))
			valid = hex();
		while (valid && take("!"))
			valid = key() && take(":") && hex();
		return valid;
	}
	bool witness() { return key() && take(":") && hex() && (!take(":") || hex()); }
	bool at_end() const { return rest_.empty(); }
	bool at_dot() const { return !rest_.empty() && rest_[0] == '.'; }

private:
	std::string_view take_all(std::string_view digits)
	{
		const std::string_view taken = rest_.substr(0, rest_.find_first_not_of(digits));
		rest_.remove_prefix(taken.size());
		return taken;
	}

	std::string_view rest_;
};

} // namespace

bool is_all_cursor(std::string_view text) noexcept
{
	Form form(text);
	return text.size() <= longest && form.take("all1.") && form.hex() && form.take(".") && form.seen() &&
		   form.take(".") && (form.at_dot() || form.seen()) && form.take(".") && (form.at_dot() || form.witness()) &&
		   form.take(".") && (form.at_end() || form.witness()) && form.at_end();
}

std::string_view detail::extent_of(std::string_view cursor) noexcept
{
	std::size_t end = 0; // "all1.HISTORY.SEEN.": behind the third full stop is what was seen before, of a window
	for (int fields = 0; fields < 3; fields++) {
		end = cursor.find('.', end);
		if (end++ == std::string_view::npos)
			return {};
	}
	return end < cursor.size() && cursor[end] == '.' ? cursor.substr(0, end) : std::string_view();
}

} // namespace doorbell
