#include <doorbell/error.hpp>
#include <doorbell/sse.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

namespace sse = doorbell::sse;

// What a browser makes of a stream, written from the standard's parsing rules and sharing nothing with the formatter.
class Browser {
public:
	struct Message {
		std::string id; // the last event id when it was dispatched
		std::string type;
		std::string data;

		bool operator==(const Message &other) const
		{
			return id == other.id && type == other.type && data == other.data;
		}
	};

	void read(const std::string &text)
	{
		for (std::size_t i = 0; i < text.size(); i++) {
			const char c = text[i];
			if (c == '\n' && after_cr_) {
				after_cr_ = false;
				continue;
			}
			after_cr_ = c == '\r';
			if (c == '\n' || c == '\r') {
				line(line_);
				line_.clear();
			} else {
				line_ += c;
			}
		}
	}

	std::vector<Message> messages;
	std::string last_id;
	std::optional<long> retry;
	bool rests() const { return line_.empty() && data_.empty() && type_.empty(); } // nothing half-read

private:
	void line(const std::string &text)
	{
		if (text.empty()) {
			last_id = id_;
			if (!data_.empty())
				messages.push_back({last_id, type_.empty() ? "message" : type_, data_.substr(0, data_.size() - 1)});
			data_.clear();
			type_.clear();
			return;
		}
		const std::size_t colon = text.find(':');
		if (colon == 0)
			return;
		const std::string name = text.substr(0, colon);
		std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
		if (!value.empty() && value[0] == ' ')
			value.erase(0, 1);
		if (name == "event")
			type_ = value;
		else if (name == "data")
			data_ += value + '\n';
		else if (name == "id" && value.find('\0') == std::string::npos)
			id_ = value;
		else if (name == "retry" && !value.empty() && value.find_first_not_of("0123456789") == std::string::npos)
			retry = std::stol(value);
	}

	std::string line_;
	std::string data_;
	std::string type_;
	std::string id_;
	bool after_cr_ = false;
};

std::string event(std::string_view id, std::string_view type, std::string_view data)
{
	std::string out;
	sse::append_event(out, id, type, data);
	return out;
}

TEST(Sse, writes_an_event_to_the_byte)
{
	EXPECT_EQ(event("42-9f3c01ab", "push", "{\"a\": 1}"), "id: 42-9f3c01ab\nevent: push\ndata: {\"a\": 1}\n\n");
}

TEST(Sse, leaves_the_default_type_out)
{
	EXPECT_EQ(event("1", "message", "x"), "id: 1\ndata: x\n\n");
	EXPECT_EQ(event("1", "", "x"), "id: 1\ndata: x\n\n");
}

TEST(Sse, S1_splits_data_at_every_kind_of_line_end)
{
	EXPECT_EQ(event("1", "t", "a\nb"), "id: 1\nevent: t\ndata: a\ndata: b\n\n");
	EXPECT_EQ(event("1", "t", "a\rb"), "id: 1\nevent: t\ndata: a\ndata: b\n\n");
	EXPECT_EQ(event("1", "t", "a\r\nb"), "id: 1\nevent: t\ndata: a\ndata: b\n\n");
	EXPECT_EQ(event("1", "t", "\n\r\n\r"), "id: 1\nevent: t\ndata: \ndata: \ndata: \ndata: \n\n");
	EXPECT_EQ(event("1", "t", "a\n\rb"), "id: 1\nevent: t\ndata: a\ndata: \ndata: b\n\n");
}

TEST(Sse, dispatches_empty_data)
{
	Browser browser;
	browser.read(event("1", "t", ""));
	ASSERT_EQ(browser.messages.size(), 1u);
	EXPECT_EQ(browser.messages[0], (Browser::Message{"1", "t", ""}));
}

TEST(Sse, keeps_leading_spaces_and_what_looks_like_a_field)
{
	Browser browser;
	browser.read(event(" 1", " t", " id: 9\n: comment\ndata: x"));
	ASSERT_EQ(browser.messages.size(), 1u);
	EXPECT_EQ(browser.messages[0], (Browser::Message{" 1", " t", " id: 9\n: comment\ndata: x"}));
}

TEST(Sse, S1_refuses_line_ends_and_nul_in_id_and_type_and_leaves_the_output_alone)
{
	std::string out = "before";
	for (const char c : {'\r', '\n', '\0'}) {
		const std::string bad = std::string("a") + c + "b";
		EXPECT_THROW(sse::append_event(out, bad, "t", "d"), doorbell::Error);
		EXPECT_THROW(sse::append_event(out, "1", bad, "d"), doorbell::Error);
		EXPECT_THROW(sse::append_comment(out, bad), doorbell::Error);
	}
	EXPECT_THROW(sse::append_retry(out, std::chrono::milliseconds(-1)), doorbell::Error);
	EXPECT_EQ(out, "before");
}

TEST(Sse, S2_nothing_but_an_event_moves_the_cursor)
{
	std::string out;
	sse::append_retry(out, std::chrono::milliseconds(1'500));
	sse::append_comment(out, "hello");
	sse::append_event(out, "7", "t", "d");
	sse::append_comment(out);
	sse::append_gap(out, "a\"b", 1, 5);
	sse::append_reset(out, "s", 9, 0);
	sse::append_gap(out, "a\"b", 6);
	sse::append_reset(out, "all1.0.1...");
	sse::append_shutdown(out);
	EXPECT_EQ(out, "retry: 1500\n\n: hello\n\nid: 7\nevent: t\ndata: d\n\n:\n\n"
				   "event: doorbell:gap\ndata: {\"stream\":\"a\\\"b\",\"asked\":1,\"low_water\":5}\n\n"
				   "event: doorbell:reset\ndata: {\"stream\":\"s\",\"asked\":9,\"low_water\":0}\n\n"
				   "event: doorbell:gap\ndata: {\"stream\":\"a\\\"b\",\"low_water\":6}\n\n"
				   "event: doorbell:reset\ndata: {\"asked\":\"all1.0.1...\"}\n\n"
				   "event: doorbell:shutdown\ndata: {}\n\n");

	Browser browser;
	browser.read(out);
	EXPECT_EQ(browser.last_id, "7");
	EXPECT_EQ(browser.retry, 1'500);
	ASSERT_EQ(browser.messages.size(), 6u);
	EXPECT_EQ(browser.messages[1].type, "doorbell:gap");
	EXPECT_EQ(browser.messages[5].id, "7");
}

// Joins lines as a browser does: every line end becomes LF.
std::string with_lf(const std::string &text)
{
	std::string out;
	for (std::size_t i = 0; i < text.size(); i++) {
		if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n')
			continue;
		out += text[i] == '\r' ? '\n' : text[i];
	}
	return out;
}

TEST(Sse, gives_a_browser_back_what_was_written)
{
	const std::string alphabet("ab :{}\"\\\t\r\n\xc3\xbc\0", 14);
	std::mt19937 random(11);
	const auto some_text = [&](bool line_ends) {
		std::string text(random() % 12, ' ');
		for (char &c : text)
			do
				c = alphabet[random() % alphabet.size()];
			while (!line_ends && (c == '\r' || c == '\n' || c == '\0'));
		return text;
	};

	std::string out;
	std::string last_id; // an event without an id leaves the browser's alone
	std::vector<Browser::Message> expected;
	for (int round = 0; round < 20'000; round++) {
		const std::string id = some_text(false);
		const std::string type = some_text(false);
		const std::string data = some_text(true);
		sse::append_event(out, id, type, data);
		last_id = id.empty() ? last_id : id;
		expected.push_back({last_id, type.empty() ? "message" : type, with_lf(data)});
		if (random() % 4 == 0)
			sse::append_comment(out, some_text(false));
	}
	Browser browser;
	browser.read(out);
	EXPECT_TRUE(browser.rests());
	EXPECT_EQ(browser.messages.size(), expected.size());
	EXPECT_TRUE(browser.messages == expected);
}

} // namespace
