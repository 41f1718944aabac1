#include "all_cursor.hpp"

#include "doorbell/pointer.hpp"

namespace pg_doorbell {

static constexpr std::string_view magic = "all1";
static constexpr size_t max_text = 16 * 1024;
static constexpr char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool Seen::has_transaction(uint64 xid) const
{
	if (xid >= xmax)
		return false;
	int low = 0;
	int high = excluded_count;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (excluded[middle] < xid)
			low = middle + 1;
		else
			high = middle;
	}
	return low == excluded_count || excluded[low] != xid;
}

bool Seen::has(std::string_view stream, int64 seq, uint64 xid) const
{
	if (!has_transaction(xid))
		return false;
	int low = 0;
	int high = mark_count;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (view_of(marks[middle].stream).compare(stream) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low == mark_count || seq < marks[low].seq || view_of(marks[low].stream) != stream;
}

uint32 check_of(std::string_view stream, int64 seq, std::string_view type, TimestampTz appended_at)
{
	const auto hash = [](std::string_view bytes, uint64 seed) {
		return hash_bytes_extended(reinterpret_cast<const unsigned char *>(bytes.data()),
								   static_cast<int>(bytes.size()), seed);
	};
	return static_cast<uint32>(hash(type, hash(stream, static_cast<uint64>(seq)) ^ static_cast<uint64>(appended_at)));
}

// Writing

static void put_hex(StringInfo out, uint64 value)
{
	char buffer[16];
	int start = 16;
	do {
		buffer[--start] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value != 0);
	appendBinaryStringInfo(out, buffer + start, 16 - start);
}

static void put_key(StringInfo out, std::string_view key)
{
	for (size_t i = 0; i < key.size(); i += 3) {
		const size_t count = Min(key.size() - i, 3);
		uint32 bits = 0;
		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (j < count ? static_cast<unsigned char>(key[i + j]) : 0);
		for (size_t j = 0; j <= count; j++)
			appendStringInfoCharMacro(out, digits64[bits >> (18 - 6 * j) & 63]);
	}
}

static void put_seen(StringInfo out, const Seen &seen)
{
	put_hex(out, seen.xmax);
	uint64 previous = seen.xmax;
	for (int i = seen.excluded_count - 1; i >= 0; i--) {
		appendStringInfoChar(out, '~');
		put_hex(out, previous - seen.excluded[i]);
		previous = seen.excluded[i];
	}
	for (int i = 0; i < seen.mark_count; i++) {
		appendStringInfoChar(out, '!');
		put_key(out, view_of(seen.marks[i].stream));
		appendStringInfoChar(out, ':');
		put_hex(out, static_cast<uint64>(seen.marks[i].seq));
	}
}

static void put_rest(StringInfo out, int64 seq, std::optional<uint32> check)
{
	appendStringInfoCharMacro(out, ':');
	put_hex(out, static_cast<uint64>(seq));
	if (check.has_value()) {
		appendStringInfoCharMacro(out, ':');
		put_hex(out, *check);
	}
}

size_t characters_of(const Seen &seen)
{
	StringInfoData text;
	initStringInfo(&text);
	put_seen(&text, seen);
	const int length = text.len;
	pfree(text.data);
	return static_cast<size_t>(length);
}

size_t least_mark_characters(std::string_view stream)
{
	return (stream.size() * 4 + 2) / 3 + 3;
}

CursorWriter::CursorWriter(const AllCursor &cursor) : stream_bytes_(0)
{
	initStringInfo(&final_);
	appendBinaryStringInfo(&final_, magic.data(), static_cast<int>(magic.size()));
	appendStringInfoChar(&final_, '.');
	put_hex(&final_, cursor.history);
	appendStringInfoChar(&final_, '.');
	put_seen(&final_, cursor.seen);
	appendStringInfoChar(&final_, '.');

	initStringInfo(&within_);
	appendBinaryStringInfo(&within_, final_.data, final_.len);
	if (cursor.before.has_value())
		put_seen(&within_, *cursor.before);
	appendStringInfoChar(&within_, '.');
	appendStringInfoChar(&final_, '.');

	initStringInfo(&newest_);
	if (cursor.newest.stream != nullptr) {
		put_key(&newest_, view_of(cursor.newest.stream));
		put_rest(&newest_, cursor.newest.seq, cursor.newest.check);
	}
	initStringInfo(&key_);
	initStringInfo(&out_);
	last_ = cursor.last;
}

text *CursorWriter::write(std::string_view stream, int64 seq, std::optional<uint32> check, bool final)
{
	if (key_.len == 0 || stream != std::string_view(stream_, stream_bytes_)) {
		resetStringInfo(&key_);
		put_key(&key_, stream);
		stream_bytes_ = Min(stream.size(), sizeof stream_);
		std::memcpy(stream_, stream.data(), stream_bytes_);
	}
	const StringInfoData &fixed = final ? final_ : within_;
	resetStringInfo(&out_);
	appendStringInfoSpaces(&out_, VARHDRSZ);
	appendBinaryStringInfo(&out_, fixed.data, fixed.len);
	const int newest = out_.len;
	appendBinaryStringInfo(&out_, newest_.data, newest_.len);
	appendStringInfoCharMacro(&out_, '.');
	const int last = out_.len;
	appendBinaryStringInfo(&out_, key_.data, key_.len);
	put_rest(&out_, seq, check);
	if (last - 1 - newest == out_.len - last && std::memcmp(out_.data + newest, out_.data + last, newest_.len) == 0) {
		std::memmove(out_.data + newest, out_.data + last - 1, out_.len - last + 1);
		out_.len -= newest_.len;
	}
	return finish();
}

text *CursorWriter::write()
{
	if (last_.stream != nullptr)
		return write(view_of(last_.stream), last_.seq, last_.check, false);
	resetStringInfo(&out_);
	appendStringInfoSpaces(&out_, VARHDRSZ);
	appendBinaryStringInfo(&out_, within_.data, within_.len);
	appendBinaryStringInfo(&out_, newest_.data, newest_.len);
	appendStringInfoCharMacro(&out_, '.');
	return finish();
}

// The text lives until the next one is written.
text *CursorWriter::finish()
{
	SET_VARSIZE(out_.data, out_.len);
	return reinterpret_cast<text *>(out_.data);
}

// Reading

namespace {

class Parser {
public:
	explicit Parser(text *whole) : whole_(whole), rest_(view_of(whole)) {}

	[[noreturn]] void refuse() const
	{
		const std::string_view value = view_of(whole_);
		const int shown = pg_mbcliplen(value.data(), static_cast<int>(value.size()), 128);
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("cursor is malformed: \"%.*s%s\"", shown, value.data(),
					   static_cast<size_t>(shown) < value.size() ? "…" : ""),
				errhint("Use a cursor as it was returned by doorbell.replay_all or doorbell.high_water_all."));
		pg_unreachable();
	}
	bool take(char wanted)
	{
		if (rest_.empty() || rest_[0] != wanted)
			return false;
		rest_.remove_prefix(1);
		return true;
	}
	void expect(char wanted)
	{
		if (!take(wanted))
			refuse();
	}
	void expect(std::string_view wanted)
	{
		if (!starts_with(rest_, wanted))
			refuse();
		rest_.remove_prefix(wanted.size());
	}
	bool at(char wanted) const { return !rest_.empty() && rest_[0] == wanted; }
	bool at_end() const { return rest_.empty(); }
	size_t left() const { return rest_.size(); }

	uint64 hex(uint64 least, uint64 most)
	{
		uint64 value = 0;
		size_t length = 0;
		for (; length < rest_.size(); length++) {
			const char c = rest_[length];
			const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
			if (digit < 0)
				break;
			value = value << 4 | static_cast<uint64>(digit);
		}
		if (length == 0 || length > 16 || (length > 1 && rest_[0] == '0') || value < least || value > most)
			refuse();
		rest_.remove_prefix(length);
		return value;
	}
	int64 seq() { return static_cast<int64>(hex(1, PG_INT64_MAX)); }
	text *key();
	Seen seen();
	Witness witness();

private:
	text *whole_;
	std::string_view rest_;
};

text *Parser::key()
{
	char bytes[doorbell::max_stream_bytes + 3];
	size_t count = 0;
	uint32 bits = 0;
	int held = 0;
	size_t length = 0;
	for (; length < rest_.size() && count <= doorbell::max_stream_bytes; length++) {
		const char *digit = rest_[length] == '\0' ? nullptr : std::strchr(digits64, rest_[length]);
		if (digit == nullptr)
			break;
		bits = bits << 6 | static_cast<uint32>(digit - digits64);
		held += 6;
		if (held >= 8) {
			held -= 8;
			bytes[count++] = static_cast<char>(bits >> held & 255);
			bits &= (1U << held) - 1;
		}
	}
	if (count == 0 || count > doorbell::max_stream_bytes || bits != 0 || held >= 6 ||
		!pg_verifymbstr(bytes, static_cast<int>(count), true))
		refuse();
	rest_.remove_prefix(length);
	return cstring_to_text_with_len(bytes, static_cast<int>(count));
}

Seen Parser::seen()
{
	Seen seen = {};
	seen.xmax = hex(0, PG_UINT64_MAX);
	seen.excluded = static_cast<uint64 *>(palloc(sizeof(uint64) * (left() / 2 + 1)));
	uint64 previous = seen.xmax;
	while (take('~')) {
		previous -= hex(1, previous > 0 ? previous - 1 : 0);
		seen.excluded[seen.excluded_count++] = previous;
	}
	for (int low = 0, high = seen.excluded_count - 1; low < high; low++, high--) {
		const uint64 swapped = seen.excluded[low];
		seen.excluded[low] = seen.excluded[high];
		seen.excluded[high] = swapped;
	}
	seen.marks = static_cast<Mark *>(palloc(sizeof(Mark) * (left() / 5 + 1)));
	while (take('!')) {
		text *stream = key();
		expect(':');
		if (seen.mark_count > 0 && view_of(seen.marks[seen.mark_count - 1].stream).compare(view_of(stream)) >= 0)
			refuse();
		seen.marks[seen.mark_count++] = Mark{stream, seq()};
	}
	return seen;
}

Witness Parser::witness()
{
	Witness witness = {};
	witness.stream = key();
	expect(':');
	witness.seq = seq();
	if (take(':'))
		witness.check = static_cast<uint32>(hex(0, PG_UINT32_MAX));
	return witness;
}

} // namespace

AllCursor parse_cursor(text *value)
{
	Parser parser(value);
	if (parser.left() > max_text)
		parser.refuse();
	AllCursor cursor = {};
	parser.expect(magic);
	parser.expect('.');
	cursor.history = parser.hex(0, PG_UINT64_MAX);
	parser.expect('.');
	cursor.seen = parser.seen();
	parser.expect('.');
	if (!parser.at('.'))
		cursor.before = parser.seen();
	parser.expect('.');
	const bool same = parser.at('.');
	if (!same)
		cursor.newest = parser.witness();
	parser.expect('.');
	if (!parser.at_end())
		cursor.last = parser.witness();
	if (same)
		cursor.newest = cursor.last;
	const bool nothing = cursor.seen.is_nothing();
	if (!parser.at_end() || nothing || (cursor.before.has_value() && cursor.last.stream == nullptr))
		parser.refuse();
	return cursor;
}

} // namespace pg_doorbell
