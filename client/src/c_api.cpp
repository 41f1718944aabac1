// The C interface (doorbell.h): a Subscriber whose events wait in a queue until they are asked for.
//
// 1. Handlers copy what comes into the queue. When it is long enough they pause the subscriber, which then reads no
// more;
//    the next poll that finds the queue empty resumes it.
// 2. No exception leaves a function: it is kept, and told by doorbell_error().
#include <doorbell/doorbell.h>
#include <doorbell/doorbell.hpp>

#include "text.hpp"
#include "wait.hpp"

#include <deque>
#include <string>

namespace {

constexpr std::size_t most_waiting = 1'000;
constexpr std::size_t most_bytes = 1024 * 1024;

struct Notice {
	doorbell_kind kind;
	doorbell::Event event; // of a gap or reset: its stream, and in seq its low water
	std::int64_t asked = 0;
	std::string cursor;
};

} // namespace

struct doorbell_subscriber {
	explicit doorbell_subscriber(doorbell::SubscriberOptions options) : subscriber(std::move(options), handlers()) {}

	doorbell::Handlers handlers()
	{
		doorbell::Handlers handlers;
		handlers.on_event = [this](const doorbell::Event &event) {
			queue({DOORBELL_EVENT, event, 0, format_mark(mark_of(event))});
		};
		handlers.on_gap = [this](const doorbell::Gap &gap) {
			queue({DOORBELL_GAP, control(gap.stream, gap.low_water), gap.asked, std::to_string(gap.low_water)});
		};
		handlers.on_reset = [this](const doorbell::Reset &reset) {
			queue({DOORBELL_RESET, control(reset.stream, reset.low_water), reset.asked.seq,
				   std::to_string(reset.low_water)});
		};
		return handlers;
	}

	static doorbell::Event control(const std::string &stream, std::int64_t low_water)
	{
		doorbell::Event event;
		event.stream = stream;
		event.seq = low_water;
		return event;
	}

	void queue(Notice notice)
	{
		if (notice.kind != DOORBELL_EVENT)
			subscriber.wake(); // poll() ends for events alone
		bytes += notice.event.payload.size();
		waiting.push_back(std::move(notice));
		if (waiting.size() >= most_waiting || bytes >= most_bytes)
			subscriber.pause();
	}

	// Calls `work`, which returns the result; what it throws is kept.
	template <typename Work>
	auto guarded(Work work, decltype(work()) failed) noexcept
	{
		try {
			error.clear();
			sqlstate.clear();
			return work();
		} catch (const doorbell::Error &caught) {
			keep(caught.what(), caught.sqlstate());
		} catch (const std::exception &caught) {
			keep(caught.what(), {});
		}
		return failed;
	}

	void keep(const char *message, std::string_view code) noexcept
	{
		try {
			error = message;
			sqlstate = code;
		} catch (const std::bad_alloc &) { // nothing better can be said
			error.clear();
		}
	}

	std::deque<Notice> waiting;
	std::size_t bytes = 0; // of payloads in it
	Notice taken{};
	doorbell_notice shown{};
	std::string text; // of the last frame
	std::string error;
	std::string sqlstate;
	doorbell::Subscriber subscriber; // the last one: its handlers use the others
};

extern "C" {

const char *doorbell_version(void)
{
	return doorbell::version;
}

doorbell_subscriber *doorbell_connect(const char *dsn)
{
	try {
		doorbell::SubscriberOptions options;
		options.connect.dsn = dsn == nullptr ? "" : dsn;
		return new doorbell_subscriber(std::move(options));
	} catch (const std::exception &) { // memory or descriptors
		return nullptr;
	}
}

void doorbell_close(doorbell_subscriber *self)
{
	delete self;
}

int doorbell_subscribe(doorbell_subscriber *self, const char *stream, const char *start)
{
	return self->guarded(
		[&] {
			if (stream == nullptr)
				throw doorbell::Error("stream must not be null");
			const std::string_view text = start == nullptr ? "now" : start;
			self->subscriber.follow(stream, text == "now" ? doorbell::Start::now()
											: text == "0" ? doorbell::Start::beginning()
														  : doorbell::Start::after(doorbell::parse_mark(text)));
			return 0;
		},
		-1);
}

int doorbell_unsubscribe(doorbell_subscriber *self, const char *stream)
{
	return self->guarded(
		[&] {
			if (stream == nullptr)
				throw doorbell::Error("stream must not be null");
			self->subscriber.unfollow(stream);
			return 0;
		},
		-1);
}

int doorbell_poll(doorbell_subscriber *self, int timeout_ms)
{
	return self->guarded(
		[&] {
			const bool had_some = !self->waiting.empty();
			if (!had_some)
				self->subscriber.resume();
			self->subscriber.poll(had_some		   ? doorbell::milliseconds(0)
								  : timeout_ms < 0 ? doorbell::milliseconds::max()
												   : doorbell::milliseconds(timeout_ms));
			return self->waiting.empty() ? 0 : 1;
		},
		-1);
}

const doorbell_notice *doorbell_next(doorbell_subscriber *self)
{
	if (self->waiting.empty())
		return nullptr;
	self->taken = std::move(self->waiting.front());
	self->waiting.pop_front();
	const Notice &notice = self->taken;
	self->bytes -= notice.event.payload.size();
	const bool is_event = notice.kind == DOORBELL_EVENT;
	self->shown = {notice.kind,
				   notice.event.stream.c_str(),
				   notice.event.seq,
				   notice.cursor.c_str(),
				   is_event ? notice.event.type.c_str() : nullptr,
				   is_event ? notice.event.payload.c_str() : nullptr,
				   notice.event.appended_at};
	return &self->shown;
}

void doorbell_wake(doorbell_subscriber *self)
{
	self->subscriber.wake();
}

int doorbell_descriptors(doorbell_subscriber *self, doorbell_descriptor *descriptors, int size)
{
	return self->guarded(
		[&] {
			int count = 0;
			for (const doorbell::Descriptor &descriptor : self->subscriber.descriptors()) {
				if (count < size)
					descriptors[count] = {descriptor.fd, descriptor.events};
				count++;
			}
			return count;
		},
		-1);
}

int doorbell_timeout(doorbell_subscriber *self)
{
	if (!self->waiting.empty())
		return 0;
	return doorbell::detail::poll_timeout(self->subscriber.deadline());
}

enum doorbell_state doorbell_get_state(doorbell_subscriber *self)
{
	switch (self->subscriber.state()) {
	case doorbell::State::live:
		return DOORBELL_LIVE;
	case doorbell::State::sweeping:
		return DOORBELL_SWEEPING;
	default:
		return DOORBELL_DOWN;
	}
}

const char *doorbell_state_reason(doorbell_subscriber *self)
{
	return self->subscriber.last_error().c_str();
}

const char *doorbell_error(doorbell_subscriber *self)
{
	return self->error.c_str();
}

const char *doorbell_sqlstate(doorbell_subscriber *self)
{
	return self->sqlstate.c_str();
}

const char *doorbell_sse(doorbell_subscriber *self, const doorbell_notice *notice, int envelope)
{
	return self->guarded(
		[&]() -> const char * {
			self->text.clear();
			const Notice &taken = self->taken;
			if (notice != &self->shown || notice->stream == nullptr)
				throw doorbell::Error("only the notice that doorbell_next() gave last can be written");
			if (taken.kind == DOORBELL_GAP)
				doorbell::sse::append_gap(self->text, taken.event.stream, taken.asked, taken.event.seq);
			else if (taken.kind == DOORBELL_RESET)
				doorbell::sse::append_reset(self->text, taken.event.stream, taken.asked, taken.event.seq);
			else
				doorbell::sse::append_event(self->text, taken.cursor, taken.event.type,
											envelope != 0 ? format_envelope(taken.event) : taken.event.payload);
			return self->text.c_str();
		},
		nullptr);
}

} // extern "C"
