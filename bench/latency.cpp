// How long an event takes from its append to its delivery:  latency subscriber 1000 2 'SELECT doorbell.append(…, $1)'
//
// 1. A thread appends at a fixed rate (appender.hpp), by the statement given, whose $1 is the payload.
// 2. The main thread reads the stream "latency": by the library's Subscriber (`subscriber`), from `doorbell serve`
//    (`sse`, with HOST:PORT and a path instead of the last statement), or as one writes it by hand (`loop`): LISTEN
//    doorbell, and at each notification a SELECT of what has an id above the last one, which is $1, until there is no
//    more.
// 3. A latency is from the time when an append was due, which its payload carries, to the delivery.
// 4. What has not come two seconds after the last commit is lost. The output: p50 and p99 in µs of what came, and how
//    many were lost.
#include "appender.hpp"
#include "connection.hpp"
#include "tcp.hpp"

#include <doorbell/doorbell.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace {

using bench::Clock;
using namespace std::chrono_literals;

// Latencies of the events delivered so far.
class Latencies {
public:
	void take(std::string_view payload)
	{
		const Clock::time_point now = Clock::now();
		values_.push_back(now - bench::due_of(payload));
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

// The readers: all are at the present when they are made, and poll() delivers what comes until `timeout`.

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

class HttpReader {
public:
	HttpReader(Latencies &latencies, const char *address, const char *path)
		: latencies_(latencies), address_(address), socket_(address_.make_socket())
	{
		address_.connect(socket_);
		socket_.send(address_.sse_request(path));
		while (!at_present_)
			poll(100ms);
	}

	void poll(std::chrono::milliseconds timeout)
	{
		pollfd descriptor{socket_.fd(), POLLIN, 0};
		if (::poll(&descriptor, 1, static_cast<int>(timeout.count())) <= 0)
			return;
		char chunk[65536];
		const ssize_t got = recv(socket_.fd(), chunk, sizeof chunk, 0);
		if (got <= 0)
			throw std::runtime_error("the server closed the connection");
		text_.append(chunk, static_cast<std::size_t>(got));
		std::size_t begin = 0;
		for (std::size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
			take_line(std::string_view(text_).substr(begin, end - begin));
		text_.erase(0, begin);
	}

private:
	void take_line(std::string_view line)
	{
		constexpr std::string_view data = "data: ";
		if (line.substr(0, data.size()) == data)
			latencies_.take(line.substr(data.size()));
		at_present_ |= line.substr(0, 1) == ":"; // the greeting
	}

	Latencies &latencies_;
	bench::Address address_;
	bench::Socket socket_;
	std::string text_;
	bool at_present_ = false;
};

template <typename Reader>
void measure(Reader &&reader, Latencies &latencies, char **argv)
{
	const double rate = std::strtod(argv[2], nullptr);
	const auto count = static_cast<std::size_t>(rate * std::strtod(argv[3], nullptr));
	bench::Appender appender(argv[4]);
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
		} else if (argc == 7 && std::string_view(argv[1]) == "sse") {
			measure(HttpReader(latencies, argv[5], argv[6]), latencies, argv);
		} else {
			std::fputs("usage: latency subscriber RATE SECONDS APPEND | latency loop RATE SECONDS APPEND READ |"
					   " latency sse RATE SECONDS APPEND HOST:PORT PATH\n",
					   stderr);
			return 2;
		}
	} catch (const std::exception &error) {
		std::fprintf(stderr, "latency: %s\n", error.what());
		return 1;
	}
	return 0;
}
