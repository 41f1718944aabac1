// How long an event takes from its append to its delivery:  latency subscriber 1000 2 'SELECT doorbell.append(…, $1)'
//
// 1. A thread appends at a fixed rate, by the statement given, whose $1 is the payload. The rate is open-loop: an
//    append is due at its time whatever became of the ones before, and its latency counts from then. It has
//    several connections, because one could not commit more often than the disk flushes.
// 2. The main thread reads the stream "latency": by the library's Subscriber (`subscriber`), or as one writes it by
//    hand (`loop`): LISTEN doorbell, and at each notification a SELECT of what has an id above the last one, which
//    is $1, until there is no more.
// 3. The payload carries the time when it was due, on the steady clock that both threads share.
// 4. What has not come two seconds after the last commit is lost. The output: p50 and p99 in µs of what came, and how
//    many were lost.
#include "connection.hpp"

#include <doorbell/doorbell.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t appender_connections = 16;
constexpr int payload_bytes = 200;
constexpr std::string_view due_key = "\"due\": ";

std::string payload_due(Clock::time_point due)
{
	std::string text = "{" + std::string(due_key) + std::to_string(due.time_since_epoch().count()) + ", \"data\": \"";
	text.resize(payload_bytes - 2, 'x');
	return text + "\"}";
}

// Latencies of the events delivered so far.
class Latencies {
public:
	void take(std::string_view payload)
	{
		const Clock::time_point now = Clock::now();
		const std::size_t at = payload.find(due_key);
		if (at == std::string_view::npos)
			throw std::runtime_error("an event of somebody else");
		Clock::rep due = 0;
		std::from_chars(payload.data() + at + due_key.size(), payload.data() + payload.size(), due);
		values_.push_back(now.time_since_epoch() - Clock::duration(due));
	}
	std::size_t count() const noexcept { return values_.size(); }
	void forget() noexcept { values_.clear(); }
	double microseconds(double quantile)
	{
		if (values_.empty())
			throw std::runtime_error("nothing was delivered");
		const auto rank = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(values_.size() - 1));
		std::nth_element(values_.begin(), values_.begin() + rank, values_.end());
		return std::chrono::duration<double, std::micro>(values_[static_cast<std::size_t>(rank)]).count();
	}

private:
	std::vector<Clock::duration> values_;
};

class Appender {
public:
	explicit Appender(const char *statement)
	{
		for (bench::Connection &connection : connections_) {
			connection = bench::connect();
			bench::checked(connection.get(), PQprepare(connection.get(), "append", statement, 1, nullptr));
		}
	}

	// Appends `count` events, one each `period`; returns when all of them have committed.
	void run(std::size_t count, Clock::duration period)
	{
		const Clock::time_point start = Clock::now() + period;
		for (std::size_t sent = 0; sent < count; sent++) {
			const Clock::time_point due = start + period * static_cast<Clock::rep>(sent);
			while (Clock::now() < due || idle() == nullptr)
				wait(idle() == nullptr ? Clock::time_point::max() : due);
			send(due);
		}
		while (busy_count_ > 0)
			wait(Clock::time_point::max());
	}

private:
	bool *idle()
	{
		bool *const found = std::find(std::begin(busy_), std::end(busy_), false);
		return found == std::end(busy_) ? nullptr : found;
	}

	void send(Clock::time_point due)
	{
		bool *const place = idle();
		PGconn *const connection = connections_[place - busy_].get();
		const std::string payload = payload_due(due);
		const char *const values[] = {payload.c_str()};
		if (PQsendQueryPrepared(connection, "append", 1, values, nullptr, nullptr, 0) == 0)
			throw std::runtime_error(PQerrorMessage(connection));
		*place = true;
		busy_count_++;
	}

	void wait(Clock::time_point until) // for an answer, or the time
	{
		pollfd descriptors[appender_connections];
		for (std::size_t i = 0; i < appender_connections; i++)
			descriptors[i] = {busy_[i] ? PQsocket(connections_[i].get()) : -1, POLLIN, 0};
		timespec left{};
		left.tv_nsec = static_cast<long>(std::clamp<Clock::duration>(until - Clock::now(), 0ns, 100ms).count());
		ppoll(descriptors, appender_connections, &left, nullptr);
		for (std::size_t i = 0; i < appender_connections; i++) {
			if (descriptors[i].revents != 0)
				take_answers(i);
		}
	}

	void take_answers(std::size_t i)
	{
		PGconn *const connection = connections_[i].get();
		bench::read_input(connection);
		while (PQisBusy(connection) == 0) {
			PGresult *const answer = PQgetResult(connection);
			if (answer == nullptr) {
				busy_[i] = false;
				busy_count_--;
				return;
			}
			bench::checked(connection, answer);
		}
	}

	bench::Connection connections_[appender_connections];
	bool busy_[appender_connections] = {};
	std::size_t busy_count_ = 0;
};

// The two readers: both are at the present when they are made, and poll() delivers what comes until `timeout`.

class SubscriberReader {
public:
	explicit SubscriberReader(Latencies &latencies) : subscriber_({}, handlers(latencies))
	{
		subscriber_.follow("latency");
		while (subscriber_.state() != doorbell::State::live || !subscriber_.mark("latency"))
			subscriber_.poll(100ms);
	}
	void poll(std::chrono::milliseconds timeout) { subscriber_.poll(timeout); }

private:
	static doorbell::Handlers handlers(Latencies &latencies)
	{
		doorbell::Handlers handlers;
		handlers.on_event = [&latencies](const doorbell::Event &event) { latencies.take(event.payload); };
		return handlers;
	}

	doorbell::Subscriber subscriber_;
};

class LoopReader {
public:
	LoopReader(Latencies &latencies, const char *statement) : latencies_(latencies), connection_(bench::connect())
	{
		PGconn *const connection = connection_.get();
		bench::checked(connection, PQexec(connection, "LISTEN doorbell"));
		bench::checked(connection, PQprepare(connection, "read", statement, 1, nullptr));
		read();
		latencies_.forget();
	}

	void poll(std::chrono::milliseconds timeout)
	{
		PGconn *const connection = connection_.get();
		if (bench::take_notifications(connection) == 0) {
			pollfd descriptor{PQsocket(connection), POLLIN, 0};
			::poll(&descriptor, 1, static_cast<int>(timeout.count()));
			bench::read_input(connection);
			if (bench::take_notifications(connection) == 0)
				return;
		}
		read();
	}

private:
	void read()
	{
		int rows = 0;
		do {
			const char *const values[] = {last_.c_str()};
			const bench::Result page = bench::checked(
				connection_.get(), PQexecPrepared(connection_.get(), "read", 1, values, nullptr, nullptr, 0));
			rows = PQntuples(page.get());
			for (int row = 0; row < rows; row++)
				latencies_.take(PQgetvalue(page.get(), row, 1));
			if (rows > 0)
				last_ = PQgetvalue(page.get(), rows - 1, 0);
		} while (rows > 0);
	}

	Latencies &latencies_;
	bench::Connection connection_;
	std::string last_ = "0";
};

template <typename Reader> void measure(Reader reader, Latencies &latencies, char **argv)
{
	const double rate = std::strtod(argv[2], nullptr);
	const auto count = static_cast<std::size_t>(rate * std::strtod(argv[3], nullptr));
	Appender appender(argv[4]);
	auto appending = std::async(std::launch::async, [&] {
		appender.run(count, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate)));
	});
	while (appending.wait_for(0s) != std::future_status::ready)
		reader.poll(50ms);
	appending.get();
	for (const auto end = Clock::now() + 2s; latencies.count() < count && Clock::now() < end;)
		reader.poll(50ms);
	std::printf("p50 = %.1f\np99 = %.1f\nlost = %zu\n", latencies.microseconds(0.5), latencies.microseconds(0.99),
				count - latencies.count());
}

} // namespace

int main(int argc, char **argv)
{
	try {
		Latencies latencies;
		if (argc == 5 && std::string_view(argv[1]) == "subscriber") {
			measure(SubscriberReader(latencies), latencies, argv);
		} else if (argc == 6 && std::string_view(argv[1]) == "loop") {
			measure(LoopReader(latencies, argv[5]), latencies, argv);
		} else {
			std::fputs("usage: latency subscriber RATE SECONDS APPEND | latency loop RATE SECONDS APPEND READ\n", stderr);
			return 2;
		}
	} catch (const std::exception &error) {
		std::fprintf(stderr, "latency: %s\n", error.what());
		return 1;
	}
	return 0;
}
