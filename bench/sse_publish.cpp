// Publishes events for sse_load.cpp until it is ended, durably by pg_doorbell or by HTTP:
//   sse_publish --rate=25 doorbell        sse_publish --streams=5000 http 127.0.0.1:8080 '/publish/{n}'
//
// 1. Streams are named 1 to --streams. An event is {"n": COUNTER, "at": MICROSECONDS, "data": "xx…"} of --bytes bytes.
//    The counter rises by one in each stream; streams come in turn.
// 2. With --rate, that many events per second are due at fixed times whatever became of the ones before, and `at` is
//    that time. Without, it goes on as fast as it can, and `at` is the present.
// 3. doorbell: with --rate, one append per transaction; without, --batch events of one stream per transaction by
//    append_batch, or one of each of many streams by append_many. Commits are as durable as the server makes them. PG*
//    variables lead there.
// 4. http: POST, over one connection; for more streams, over --publishers connections, each with its own share of them.
// 5. Either has up to --ahead requests on the way in each connection, which take effect one after another, so one
//    stream's events cannot overtake each other.
#include "connection.hpp"
#include "tcp.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::system_clock;

struct Options {
	std::int64_t streams = 1;
	double rate = 0;
	std::size_t bytes = 100;
	int batch = 100;
	std::size_t ahead = 8;
	std::int64_t publishers = 4;
	std::string address;
	std::string path;
};

std::int64_t microseconds(Clock::time_point time)
{
	return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

std::string payload(std::int64_t n, Clock::time_point at, std::size_t bytes)
{
	std::string text =
		"{\"n\": " + std::to_string(n) + ", \"at\": " + std::to_string(microseconds(at)) + ", \"data\": \"";
	if (text.size() + 2 < bytes)
		text.append(bytes - text.size() - 2, 'x');
	return text + "\"}";
}

// When events are due.
class Schedule {
public:
	explicit Schedule(double rate) : period_(rate > 0 ? 1 / rate : 0) {}

	Clock::time_point wait_for_next()
	{
		if (period_.count() <= 0)
			return Clock::now();
		const auto due = start_ + std::chrono::duration_cast<Clock::duration>(period_ * static_cast<double>(++count_));
		std::this_thread::sleep_until(due);
		return due;
	}

private:
	std::chrono::duration<double> period_;
	Clock::time_point start_ = Clock::now();
	std::int64_t count_ = 0;
};

// The statements make their payloads themselves, which costs this process nothing. jsonb keeps keys in the order of
// their lengths, so they look like payload().
constexpr const char *batch_sql =
	"SELECT doorbell.append_batch('1', array_fill('message'::text, ARRAY[$2::int]), array_agg(jsonb_build_object("
	" 'n', n, 'at', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'data', repeat('x', $3::int)) ORDER BY "
	"n))"
	" FROM generate_series($1::bigint, $1::bigint + $2::int - 1) n";
constexpr const char *many_sql = "SELECT count(*) FROM doorbell.append_many("
								 " (SELECT array_agg(s::text ORDER BY s) FROM generate_series(1, $2::int) s), "
								 "array_fill('message'::text, ARRAY[$2::int]),"
								 " (SELECT array_agg(jsonb_build_object('n', $1::bigint, 'at', (extract(epoch FROM "
								 "clock_timestamp()) * 1000000)::bigint,"
								 "  'data', repeat('x', $3::int))) FROM generate_series(1, $2::int)))";
constexpr std::size_t around_data = 49; // bytes of a payload beside its data, with a short counter

// Statements on the way, each a transaction of its own.
class Pipeline {
public:
	Pipeline(PGconn *connection, std::size_t most) : connection_(connection), most_(most)
	{
		if (PQenterPipelineMode(connection_) == 0)
			throw std::runtime_error(PQerrorMessage(connection_));
	}

	void run(const char *const *values, int count) // the prepared statement "append"
	{
		while (waiting_ >= most_)
			take_answer();
		if (PQsendQueryPrepared(connection_, "append", count, values, nullptr, nullptr, 0) == 0 ||
			PQpipelineSync(connection_) == 0)
			throw std::runtime_error(PQerrorMessage(connection_));
		waiting_++;
	}

private:
	void take_answer()
	{
		bench::checked(connection_, PQgetResult(connection_));
		while (const bench::Result end{PQgetResult(connection_)}) // the end of the results is null, too
			;
		const bench::Result sync(PQgetResult(connection_));
		if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC)
			throw std::runtime_error(PQerrorMessage(connection_));
		waiting_--;
	}

	PGconn *connection_;
	std::size_t most_;
	std::size_t waiting_ = 0;
};

[[noreturn]] void publish_to_doorbell(const Options &options)
{
	const bench::Connection connection = bench::connect();
	PGconn *const to = connection.get();
	const bool paced = options.rate > 0;
	const bool many = options.streams > 1;
	bench::checked(to, PQprepare(to, "append",
								 paced	? "SELECT doorbell.append($1, 'message', $2::jsonb)"
								 : many ? many_sql
										: batch_sql,
								 0, nullptr));
	Pipeline pipeline(to, paced ? 1 : options.ahead);
	Schedule schedule(options.rate);
	const std::string batch = std::to_string(many ? options.streams : options.batch);
	const std::string data = std::to_string(options.bytes > around_data ? options.bytes - around_data : 0);
	for (std::int64_t i = 0;; i++) {
		const auto due = schedule.wait_for_next();
		std::string values[3];
		if (paced) {
			values[0] = std::to_string(i % options.streams + 1);
			values[1] = payload(i / options.streams, due, options.bytes);
		} else {
			values[0] = std::to_string(many ? i : i * options.batch);
			values[1] = batch;
			values[2] = data;
		}
		const char *const parameters[] = {values[0].c_str(), values[1].c_str(), values[2].c_str()};
		pipeline.run(parameters, paced ? 2 : 3);
	}
}

// One keep-alive connection; answers come in the order of requests, and only their status matters.
class HttpConnection {
public:
	explicit HttpConnection(const Options &options)
		: options_(options), address_(options.address), socket_(address_.make_socket())
	{
		address_.connect(socket_);
	}

	void post(std::int64_t stream, const std::string &body)
	{
		while (unanswered_ >= options_.ahead)
			read_answers();
		socket_.send("POST " + bench::path_of(options_.path, static_cast<std::size_t>(stream)) +
					 " HTTP/1.1\r\nHost: " + address_.text() +
					 "\r\nAccept: text/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
		unanswered_++;
	}

private:
	void read_answers()
	{
		constexpr std::string_view start = "HTTP/1.1 ";
		char chunk[16384];
		const ssize_t got = recv(socket_.fd(), chunk, sizeof chunk, 0);
		if (got <= 0)
			throw std::runtime_error("the server closed the publisher's connection");
		text_.append(chunk, static_cast<std::size_t>(got));
		std::size_t at = 0;
		while ((at = text_.find(start)) != std::string::npos && text_.size() > at + start.size()) {
			if (text_[at + start.size()] != '2')
				throw std::runtime_error("refused: " + text_.substr(at, 60));
			text_.erase(0, at + start.size() + 1);
			unanswered_--;
		}
		if (at == std::string::npos && text_.size() > start.size()) // the rest of a body
			text_.erase(0, text_.size() - start.size());
	}

	const Options &options_;
	bench::Address address_;
	bench::Socket socket_;
	std::string text_;
	std::size_t unanswered_ = 0;
};

// Every step-th stream, beginning with the first.
[[noreturn]] void publish_share(const Options &options, std::int64_t first, std::int64_t step)
{
	HttpConnection connection(options);
	Schedule schedule(options.rate / static_cast<double>(step));
	for (std::int64_t n = 0;; n++)
		for (std::int64_t stream = first; stream <= options.streams; stream += step) {
			const auto due = schedule.wait_for_next();
			connection.post(stream, payload(n, due, options.bytes));
		}
}

// Publishes until it fails, in as many threads as there are connections.
void publish_by_http(const Options &options)
{
	const std::int64_t step = std::min(options.publishers, options.streams);
	std::vector<std::future<void>> publishers;
	for (std::int64_t first = 1; first <= step; first++)
		publishers.push_back(std::async(std::launch::async, [&options, first, step] {
			try {
				publish_share(options, first, step);
			} catch (const std::exception &error) { // the others never end
				std::fprintf(stderr, "sse_publish: %s\n", error.what());
				std::_Exit(1);
			}
		}));
	for (std::future<void> &publisher : publishers)
		publisher.get();
}

} // namespace

int main(int argc, char **argv)
{
	try {
		Options options;
		CLI::App app("Publishes events for sse_load until it is ended.");
		app.add_option("--streams", options.streams);
		app.add_option("--rate", options.rate, "events per second of all streams; 0: as fast as it can");
		app.add_option("--bytes", options.bytes, "of a payload");
		app.add_option("--batch", options.batch);
		app.add_option("--ahead", options.ahead);
		app.add_option("--publishers", options.publishers);
		const CLI::App *const doorbell = app.add_subcommand("doorbell");
		CLI::App *const http = app.add_subcommand("http");
		http->add_option("address", options.address)->required();
		http->add_option("path", options.path)->required();
		app.require_subcommand(1);
		CLI11_PARSE(app, argc, argv);
		if (doorbell->parsed())
			publish_to_doorbell(options);
		publish_by_http(options);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "sse_publish: %s\n", error.what());
		return 1;
	}
	return 0;
}
