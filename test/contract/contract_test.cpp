// The delivery contract (C1 to C4, C7) under concurrency and faults.
//
//  1. 32 writers append to one hot stream and 100 others, in transactions with random delays, savepoints that roll
//     back, and rollbacks (30 %). A writer remembers what its commits stored.
//  2. Meanwhile readers collect, per stream, what they are given: by replay and by Subscriber, from the start and
//     attached in the middle, following by name, by prefix and everything, some in small pages, two that are thrown
//     away and made anew from their marks or their cursor all the time.
//  3. Every second all listening backends are terminated.
//  4. CONTRACT_SECONDS (20) later the writers end. The truth is then what plain SELECT finds in the table. Every reader
//     must arrive at it, without further appends, and must hold it exactly: each event once, in seq order.
#include "../live/server.hpp"
#include "../live/wait_for.hpp"

#include <doorbell/doorbell.hpp>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Events = std::map<std::string, std::vector<std::pair<std::int64_t, std::string>>>; // stream → (seq, payload)
using Random = std::mt19937;

constexpr int writer_count = 32;
constexpr int quiet_streams = 100;

std::chrono::seconds duration()
{
	const char *seconds = std::getenv("CONTRACT_SECONDS");
	return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 20);
}

std::string stream_name(int number)
{
	return number == 0 ? "hot" : "quiet:" + std::to_string(number);
}

int pick(Random &random, int least, int most)
{
	return std::uniform_int_distribution<int>(least, most)(random);
}

// A plain connection, so that writing and counting do not depend on the library under test.
class Session {
public:
	explicit Session(const std::string &dsn) : connection_(PQconnectdb(dsn.c_str()), &PQfinish)
	{
		if (PQstatus(connection_.get()) != CONNECTION_OK)
			throw std::runtime_error(PQerrorMessage(connection_.get()));
	}

	using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;
	Result query(const std::string &sql)
	{
		Result result(PQexec(connection_.get(), sql.c_str()), &PQclear);
		const ExecStatusType status = PQresultStatus(result.get());
		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
			throw std::runtime_error(sql + ": " + PQerrorMessage(connection_.get()));
		return result;
	}
	std::string value(const std::string &sql)
	{
		const Result result = query(sql);
		return PQntuples(result.get()) == 0 ? "" : PQgetvalue(result.get(), 0, 0);
	}

private:
	std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

// Appends until told to stop, and returns what it committed, in no order.
Events write(const std::string &dsn, int number, const std::atomic<bool> &stop)
{
	Random random(static_cast<unsigned>(number));
	Session session(dsn);
	Events committed;
	int count = 0;
	while (!stop) {
		struct Appended {
			std::string stream;
			std::int64_t seq;
			std::string payload;
		};
		std::vector<Appended> appended;
		const auto append = [&] {
			const std::string stream = stream_name(pick(random, 0, 3) == 0 ? pick(random, 1, quiet_streams) : 0);
			const std::string payload = "\"" + std::to_string(number) + ":" + std::to_string(count++) + "\"";
			const std::string seq =
				session.value("SELECT doorbell.append('" + stream + "', 'test', '" + payload + "')");
			appended.push_back({stream, std::stoll(seq), payload});
		};

		session.query("BEGIN");
		for (int appends = pick(random, 1, 4); appends > 0; appends--) {
			append();
			if (pick(random, 0, 4) == 0)
				std::this_thread::sleep_for(std::chrono::milliseconds(pick(random, 0, 20)));
			if (pick(random, 0, 4) > 0)
				continue;
			const std::size_t kept = appended.size();
			const bool back = pick(random, 0, 1) == 0;
			session.query("SAVEPOINT s");
			append();
			append();
			session.query(back ? "ROLLBACK TO s" : "RELEASE s");
			if (back)
				appended.resize(kept);
		}
		const bool commit = pick(random, 0, 9) >= 3;
		session.query(commit ? "COMMIT" : "ROLLBACK");
		for (const Appended &event : appended)
			if (commit)
				committed[event.stream].emplace_back(event.seq, event.payload);
	}
	return committed;
}

// What a reader has been given, watched by the main thread.
class Collection {
public:
	void add(const doorbell::Event &event)
	{
		const std::lock_guard<std::mutex> guard(mutex_);
		events_[event.stream].emplace_back(event.seq, event.payload);
		count_++;
	}
	std::size_t count() const
	{
		const std::lock_guard<std::mutex> guard(mutex_);
		return count_;
	}
	Events take()
	{
		const std::lock_guard<std::mutex> guard(mutex_);
		return std::move(events_);
	}

private:
	mutable std::mutex mutex_;
	Events events_;
	std::size_t count_ = 0;
};

// A reader: a name for failures, what it was given, and the thread that reads until told to stop.
struct Reader {
	std::string name;
	std::shared_ptr<Collection> collection;
	std::thread thread;
};

using Work = std::function<void(Collection &, const std::atomic<bool> &stop)>;

// Reads by replay_many over all streams, `page` events at a time.
Work replay(const std::string &dsn, int page)
{
	return [dsn, page](Collection &collection, const std::atomic<bool> &stop) {
		doorbell::ConnectOptions options;
		options.dsn = dsn;
		doorbell::Log log(options);
		std::vector<doorbell::Position> positions;
		std::map<std::string, std::size_t> place;
		for (int i = 0; i <= quiet_streams; i++) {
			positions.push_back({stream_name(i), 0});
			place[stream_name(i)] = static_cast<std::size_t>(i);
		}
		while (!stop) {
			const std::vector<doorbell::Event> events = log.replay_many(positions, page);
			for (const doorbell::Event &event : events) {
				collection.add(event);
				positions[place[event.stream]].after = event.seq;
			}
			if (events.empty())
				std::this_thread::sleep_for(5ms);
		}
	};
}

doorbell::SubscriberOptions subscriber_options(const std::string &dsn)
{
	doorbell::SubscriberOptions options;
	options.connect.dsn = dsn;
	options.listen_dsn = dsn + " application_name=contract_listener";
	options.retry.first = 20ms;
	options.retry.limit = 200ms;
	return options;
}

using Follow = std::function<void(doorbell::Subscriber &)>;

void follow_by_name(doorbell::Subscriber &subscriber)
{
	for (int i = 0; i <= quiet_streams; i++)
		subscriber.follow(stream_name(i), doorbell::Start::beginning());
}

Work subscribe(const std::string &dsn, const Follow &follow, int batch = 1000)
{
	return [=](Collection &collection, const std::atomic<bool> &stop) {
		doorbell::SubscriberOptions options = subscriber_options(dsn);
		options.batch = batch;
		doorbell::Handlers handlers;
		handlers.on_event = [&](const doorbell::Event &event) { collection.add(event); };
		handlers.on_gap = [](const doorbell::Gap &gap) { ADD_FAILURE() << "gap in " << gap.stream; };
		handlers.on_reset = [](const doorbell::Reset &reset) { ADD_FAILURE() << "reset of " << reset.stream; };
		doorbell::Subscriber subscriber(options, handlers);
		follow(subscriber);
		while (!stop)
			subscriber.poll(100ms);
	};
}

// Every half second another Subscriber takes over from the marks, or from the cursor, of the one before.
Work subscribe_in_turns(const std::string &dsn, bool by_name)
{
	return [=](Collection &collection, const std::atomic<bool> &stop) {
		std::map<std::string, doorbell::Mark> marks;
		std::optional<std::string> cursor;
		while (!stop) {
			doorbell::Subscriber *current = nullptr;
			doorbell::Handlers handlers;
			handlers.on_event = [&](const doorbell::Event &event) {
				collection.add(event);
				marks[event.stream] = doorbell::mark_of(event);
				cursor = current->cursor("");
			};
			handlers.on_gap = [](const doorbell::Gap &gap) { ADD_FAILURE() << "gap in " << gap.stream; };
			handlers.on_reset = [](const doorbell::Reset &reset) { ADD_FAILURE() << "reset of " << reset.stream; };
			doorbell::Subscriber subscriber(subscriber_options(dsn), handlers);
			current = &subscriber;
			if (!by_name)
				subscriber.follow_prefix("",
										 cursor ? doorbell::AllStart::after(*cursor) : doorbell::AllStart::beginning());
			for (int i = 0; by_name && i <= quiet_streams; i++)
				subscriber.follow(stream_name(i), doorbell::Start::after(marks[stream_name(i)]));
			const auto end = std::chrono::steady_clock::now() + 500ms;
			while (!stop && std::chrono::steady_clock::now() < end)
				subscriber.poll(50ms);
		}
	};
}

// Empty if `given` is exactly the truth, else the first difference.
std::string difference(const Events &truth, const Events &given)
{
	for (const auto &[stream, events] : truth) {
		const auto found = given.find(stream);
		const std::size_t count = found == given.end() ? 0 : found->second.size();
		for (std::size_t i = 0; i < std::max(count, events.size()); i++)
			if (i >= count || i >= events.size() || found->second[i] != events[i])
				return stream + ": given " + std::to_string(count) + " of " + std::to_string(events.size()) +
					   " events; the first difference is number " + std::to_string(i + 1) + ", seq " +
					   (i < count ? std::to_string(found->second[i].first) : "none") + " instead of " +
					   (i < events.size() ? std::to_string(events[i].first) : "none");
	}
	for (const auto &[stream, events] : given)
		if (truth.count(stream) == 0)
			return stream + ": does not exist";
	return "";
}

Events read_table(Session &session)
{
	Events truth;
	const auto rows = session.query("SELECT stream, seq, payload FROM doorbell.event ORDER BY stream, seq");
	for (int i = 0; i < PQntuples(rows.get()); i++)
		truth[PQgetvalue(rows.get(), i, 0)].emplace_back(std::stoll(PQgetvalue(rows.get(), i, 1)),
														 PQgetvalue(rows.get(), i, 2));
	return truth;
}

void run_contract(const std::vector<std::string> &settings)
{
	live::Server server;
	server.stop(SIGINT);
	server.start(settings);
	server.await();
	const std::string dsn = server.dsn("postgres");
	Session session(dsn);
	session.query("CREATE EXTENSION pg_doorbell");

	std::atomic<bool> stop_writing{false};
	std::atomic<bool> stop_reading{false};
	std::vector<Reader> readers;
	const auto start = [&](const std::string &name, const Work &work) {
		auto collection = std::make_shared<Collection>();
		readers.push_back({name, collection, std::thread([=, &stop_reading] {
							   try {
								   work(*collection, stop_reading);
							   } catch (const std::exception &error) {
								   ADD_FAILURE() << name << ": " << error.what();
							   }
						   })});
	};
	const Follow all = [](doorbell::Subscriber &s) { s.follow_prefix("", doorbell::AllStart::beginning()); };
	const Follow by_prefix = [](doorbell::Subscriber &s) {
		s.follow_prefix("quiet:", doorbell::AllStart::beginning());
		s.follow("hot", doorbell::Start::beginning());
	};

	std::vector<Events> committed(writer_count);
	std::vector<std::thread> writers;
	start("replay", replay(dsn, 1000));
	start("subscriber by name", subscribe(dsn, follow_by_name));
	start("subscriber to everything", subscribe(dsn, all));
	start("subscribers by name in turns", subscribe_in_turns(dsn, true));
	start("subscribers to everything in turns", subscribe_in_turns(dsn, false));
	for (int i = 0; i < writer_count; i++)
		writers.emplace_back([&, i] {
			try {
				committed[static_cast<std::size_t>(i)] = write(dsn, i, stop_writing);
			} catch (const std::exception &error) {
				ADD_FAILURE() << "writer: " << error.what();
			}
		});

	const auto end = std::chrono::steady_clock::now() + duration();
	int cuts = 0;
	for (bool attached = false; std::chrono::steady_clock::now() < end;) {
		std::this_thread::sleep_for(1s);
		// C7: one listening session for each Subscriber, however many streams it follows; two may be on their way out.
		const std::string listeners = "FROM pg_stat_activity WHERE application_name = 'contract_listener'";
		EXPECT_LE(std::stoi(session.value("SELECT count(*) " + listeners)), attached ? 9 : 6);
		cuts += std::stoi(session.value("SELECT count(pg_terminate_backend(pid)) " + listeners));
		if (!attached && std::chrono::steady_clock::now() > end - duration() / 2) {
			attached = true;
			start("replay in small pages, attached in the middle", replay(dsn, 7));
			start("subscriber by name, attached in the middle", subscribe(dsn, follow_by_name));
			start("subscriber by prefix, attached in the middle", subscribe(dsn, by_prefix));
			start("subscriber in small batches, attached in the middle", subscribe(dsn, all, 13));
		}
	}
	stop_writing = true;
	for (std::thread &writer : writers)
		writer.join();

	// C2: what exists is what the writers were told is committed.
	const Events truth = read_table(session);
	Events told;
	std::size_t count = 0;
	for (const Events &events : committed)
		for (const auto &[stream, list] : events)
			told[stream].insert(told[stream].end(), list.begin(), list.end());
	for (auto &[stream, list] : told) {
		std::sort(list.begin(), list.end());
		count += list.size();
	}
	EXPECT_EQ(difference(truth, told), "") << "between the table and what was committed";
	EXPECT_GT(count, 1000U) << "events: too few to prove anything";
	EXPECT_GT(cuts, 0) << "listeners were cut off";

	// C1, C3, C4: every reader arrives without further appends, and has all of it.
	for (Reader &reader : readers)
		EXPECT_NO_THROW(live::wait_for(reader.name, [&] { return reader.collection->count() >= count; }));
	stop_reading = true;
	for (Reader &reader : readers) {
		reader.thread.join();
		EXPECT_EQ(difference(truth, reader.collection->take()), "") << reader.name;
	}
	std::cout << count << " events in " << truth.size() << " streams, " << readers.size() << " readers, " << cuts
			  << " listeners cut off" << std::endl;
}

TEST(Contract, every_reader_is_given_every_committed_event_once_and_in_order)
{
	run_contract({});
}

TEST(Contract, every_reader_is_given_every_committed_event_once_and_in_order_with_the_ringer)
{
	run_contract({"shared_preload_libraries=pg_doorbell"});
}

} // namespace
