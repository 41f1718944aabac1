// Follows all streams beside a command that appends, in two ways, and says what each costs:
// follow_all pgbench --client=32 …
//
// 1. One way is doorbell.replay_all. The other is a plain SELECT of the same columns and rows, by transaction id from
//    where it was up to the oldest transaction that is still open: no order, no check of the history, and an open
//    transaction stops it.
// 2. Every 20 ms both read all that there is for them, one after the other, the first one in turn. The time of a read
//    is that from the query until its rows have arrived.
// 3. When the command has ended they read on until both have had every event; each must have had each one once.
//
// Prints lines "NAME = microseconds per 1,000 events"; the exit status is the command's.
#include "child.hpp"
#include "connection.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds pause{20};

class Reader {
public:
	// The query has one parameter, where to begin, and `next` is the column that says where to go on.
	Reader(const char *name, const char *query, std::string begin, int next)
		: name_(name), place_(std::move(begin)), next_(next), connection_(bench::connect())
	{
		bench::checked(connection_.get(), PQprepare(connection_.get(), "read", query, 1, nullptr));
	}

	void catch_up()
	{
		while (read() > 0)
			;
	}

	long events() const noexcept { return events_; }
	void report() const
	{
		const double microseconds = std::chrono::duration<double, std::micro>(time_).count();
		std::printf("%s = %.1f\n", name_, microseconds / static_cast<double>(events_) * 1000);
	}

private:
	int read()
	{
		const char *const parameter = place_.c_str();
		const Clock::time_point begin = Clock::now();
		const bench::Result result = bench::checked(
			connection_.get(), PQexecPrepared(connection_.get(), "read", 1, &parameter, nullptr, nullptr, 0));
		time_ += Clock::now() - begin;
		const int rows = PQntuples(result.get());
		if (rows > 0)
			place_ = PQgetvalue(result.get(), rows - 1, next_);
		events_ += rows;
		return rows;
	}

	const char *name_;
	std::string place_;
	int next_;
	bench::Connection connection_;
	Clock::duration time_{};
	long events_ = 0;
};

int follow_beside(char **command)
{
	const bench::Connection watch = bench::connect();
	const auto value = [&watch](const char *query) {
		const bench::Result result = bench::checked(watch.get(), PQexec(watch.get(), query));
		return std::string(PQgetvalue(result.get(), 0, 0));
	};
	const std::string horizon = value("SELECT pg_snapshot_xmin(pg_current_snapshot())");
	Reader doorbell("doorbell", "SELECT * FROM doorbell.replay_all($1, 1000)",
					value("SELECT doorbell.high_water_all()"), 5);
	Reader select("select",
				  "SELECT stream, seq, type, payload, appended_at, h.xmin FROM doorbell.event,"
				  " (SELECT pg_snapshot_xmin(pg_current_snapshot())) h (xmin) WHERE xid >= $1::xid8 AND xid < h.xmin",
				  horizon, 5);
	const std::string before = value("SELECT count(*) FROM doorbell.event");

	const bench::ChildSignal ended;
	bench::Child child(command, ended.mask_before());
	pollfd descriptor{ended.descriptor(), POLLIN, 0};
	for (bool odd = false; descriptor.revents == 0; odd = !odd) {
		(odd ? doorbell : select).catch_up();
		(odd ? select : doorbell).catch_up();
		if (poll(&descriptor, 1, static_cast<int>(pause.count())) < 0 && errno != EINTR)
			bench::fail(errno, "poll");
	}
	const int status = child.wait();
	const long appended = std::strtol(value("SELECT count(*) FROM doorbell.event").c_str(), nullptr, 10) -
						  std::strtol(before.c_str(), nullptr, 10);
	const Clock::time_point give_up = Clock::now() + std::chrono::seconds(30);
	while ((doorbell.events() < appended || select.events() < appended) && Clock::now() < give_up) {
		doorbell.catch_up();
		select.catch_up();
		std::this_thread::sleep_for(pause);
	}
	for (const Reader *reader : {&doorbell, &select})
		if (reader->events() != appended)
			throw std::runtime_error(std::to_string(appended) + " events were appended, " +
									 std::to_string(reader->events()) + " were read");
	doorbell.report();
	select.report();
	return status;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 2) {
		std::fputs("usage: follow_all COMMAND...\n", stderr);
		return 2;
	}
	try {
		return follow_beside(argv + 1);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "follow_all: %s\n", error.what());
		return 1;
	}
}
