// Cursors, which come from browsers: any text, for any number of streams.
//
// 1. It is read or refused with an Error of one line; there is one text per cursor, so what is read is written as it
// was.
// 2. Marks that are written are read back as the same.
// 3. The check of an event is never 0.
#include "fuzz.hpp"

#include <doorbell/cursor.hpp>
#include <doorbell/error.hpp>

#include <cstring>

using doorbell::Mark;

static void read_back(FuzzedDataProvider &input)
{
	std::vector<Mark> marks(input.ConsumeIntegralInRange<std::size_t>(1, 8));
	for (Mark &mark : marks) {
		mark.seq = input.ConsumeIntegralInRange<std::int64_t>(0, INT64_MAX);
		mark.check = mark.seq == 0 ? 0 : input.ConsumeIntegral<std::uint32_t>(); // 0 stands for no event
	}
	fuzz::expect(doorbell::parse_cursor(doorbell::format_cursor(marks), marks.size()) == marks,
				 "a cursor that is written is read back");

	const std::string stream = input.ConsumeRandomLengthString(600);
	const std::string type = input.ConsumeRandomLengthString(600);
	fuzz::expect(doorbell::check_of(stream, input.ConsumeIntegral<std::int64_t>(), type,
									input.ConsumeIntegral<std::int64_t>()) != 0,
				 "no event has check 0");
}

void fuzz::test(FuzzedDataProvider &input)
{
	if (input.ConsumeBool()) {
		read_back(input);
		return;
	}
	const auto streams = input.ConsumeIntegralInRange<std::size_t>(0, 8);
	const std::string text = input.ConsumeRemainingBytesAsString();
	const bool for_all = doorbell::is_all_cursor(text);
	try {
		const std::vector<Mark> marks = doorbell::parse_cursor(text, streams);
		fuzz::expect(marks.size() == streams, "there is a mark for each stream");
		fuzz::expect(doorbell::format_cursor(marks) == text, "there is one text per cursor");
		fuzz::expect(!for_all, "a cursor of marks is none of all streams");
	} catch (const doorbell::Error &error) {
		fuzz::expect(std::strpbrk(error.what(), "\r\n") == nullptr, "an error is one line");
	}
}
