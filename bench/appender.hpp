// The writing side of latency.cpp: appends at a fixed rate.
//
// 1. The rate is open-loop: an append is due at its time whatever became of the ones before. Its payload carries that
//    time, on the steady clock.
// 2. One thread drives several connections, because one could not commit more often than the disk flushes. An append
//    that is due while all are busy waits for the first one that is not; its latency counts from its time all the same.
#pragma once

#include "connection.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <poll.h>
#include <string>
#include <string_view>

namespace bench {

using Clock = std::chrono::steady_clock;

inline std::string payload_due(Clock::time_point due) // 200 bytes
{
	std::string text = "{\"due\": " + std::to_string(due.time_since_epoch().count()) + ", \"data\": \"";
	text.resize(198, 'x');
	return text + "\"}";
}

inline Clock::time_point due_of(std::string_view payload)
{
	constexpr std::string_view key = "\"due\": ";
	const std::size_t at = payload.find(key);
	if (at == std::string_view::npos)
		throw std::runtime_error("an event of somebody else");
	Clock::rep due = 0;
	std::from_chars(payload.data() + at + key.size(), payload.data() + payload.size(), due);
	return Clock::time_point(Clock::duration(due));
}

class Appender {
public:
	explicit Appender(const char *statement)
	{
		for (Connection &connection : connections_) {
			connection = connect();
			checked(connection.get(), PQprepare(connection.get(), "append", statement, 1, nullptr));
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
	static constexpr std::size_t size = 16;

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
		pollfd descriptors[size];
		for (std::size_t i = 0; i < size; i++)
			descriptors[i] = {busy_[i] ? PQsocket(connections_[i].get()) : -1, POLLIN, 0};
		timespec left{};
		left.tv_nsec = static_cast<long>(std::clamp<Clock::duration>(until - Clock::now(), std::chrono::nanoseconds(0),
																	 std::chrono::milliseconds(100))
											 .count());
		ppoll(descriptors, size, &left, nullptr);
		for (std::size_t i = 0; i < size; i++) {
			if (descriptors[i].revents != 0)
				take_answers(i);
		}
	}

	void take_answers(std::size_t i)
	{
		PGconn *const connection = connections_[i].get();
		read_input(connection);
		while (PQisBusy(connection) == 0) {
			PGresult *const answer = PQgetResult(connection);
			if (answer == nullptr) {
				busy_[i] = false;
				busy_count_--;
				return;
			}
			checked(connection, answer);
		}
	}

	Connection connections_[size];
	bool busy_[size] = {};
	std::size_t busy_count_ = 0;
};

} // namespace bench
