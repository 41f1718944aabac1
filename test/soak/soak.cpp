// make soak: everything at once, for as long as one likes, and then the delivery contract is checked.
//
//  1. A primary and a standby. Writers append to random streams: transactions with savepoints and rollbacks, batches,
//     and single appends with an event id that are repeated until one is known to be stored. The ring mode changes from
//     worker to commit half-way.
//  2. Readers by every way, from the beginning, in threads of their own: Subscribers that read on the primary, on the
//     standby and on both; a tail of everything, and one of some streams that is killed and goes on by its cursor; SSE
//     clients of two serves, fast ones, slow ones, and those that leave and come back by Last-Event-ID.
//  3. Meanwhile, at random: backends are ended or killed, so are the ringer and the walsender, the servers stop
//     immediately or fast, one serve and one tail are ended or killed.
//  4. One stream is trimmed all the time; whoever is too late for it is told a gap.
//  5. At the end all is left in peace until the readers have arrived, and is compared with the table. Checked are:
//     C1, C3: each reader has each stored event once, in seq order; what is missing is covered by a gap (C6), and gaps
//     are in the trimmed stream alone, resets nowhere. C2: what is stored is what was committed, unless a COMMIT's
//     answer was lost; what has an event id is there once. C4: the readers arrive without further appends, and soon.
//     C5: memory of the steady serve and of backends does not grow from the first third to the last. C7: one listening
//     session for each process that follows. C8: no control frame has an id.
//
// usage: soak DOORBELL    SOAK_SECONDS=60, SOAK_SEED; exits non-zero when a check failed.
#include "../live/server.hpp"
#include "../live/sse_parser.hpp"
#include "../live/wait_for.hpp"
#include "collection.hpp"
#include "process.hpp"

#include <doorbell/doorbell.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

namespace soak {
namespace {

using namespace std::chrono_literals;
using Random = std::mt19937;

constexpr const char *quiet = " options='-c client_min_messages=error'"; // a crash ends many sessions with a warning
constexpr int writer_count = 6;
constexpr int stream_count = 12; // hot, trimmed, and others

std::atomic<bool> stop_writing{false};
std::atomic<bool> stop_reading{false};
std::atomic<bool> at_peace{false}; // no more faults; nobody is slow or leaves

int pick(Random &random, int least, int most)
{
	return std::uniform_int_distribution<int>(least, most)(random);
}

unsigned seed_of(Random &random)
{
	return static_cast<unsigned>(random());
}

std::string stream_name(int number)
{
	return number == 0 ? "hot" : number == 1 ? trimmed : "other:" + std::to_string(number);
}

// Writers ------------------------------------------------------------------------------------------------------------

struct Written {
	Known known;
	int lost_connections = 0;
	std::size_t transactions = 0;
};

class Writer {
public:
	Writer(std::string dsn, int number, unsigned seed) : dsn_(std::move(dsn)), number_(number), random_(seed) {}

	Written run()
	{
		while (!stop_writing) {
			try {
				if (!session_)
					session_.emplace(dsn_ + quiet);
				const int kind = pick(random_, 0, 9);
				if (kind < 2)
					append_once();
				else if (kind < 3)
					append_batch();
				else
					transaction();
				written_.transactions++;
			} catch (const std::runtime_error &error) {
				connection_lost(error);
			}
			std::this_thread::sleep_for(std::chrono::milliseconds(pick(random_, 0, 40)));
		}
		return std::move(written_);
	}

private:
	// Nothing here can be refused, so whatever fails is the connection.
	void connection_lost(const std::runtime_error &error)
	{
		if (session_) {
			bool lives = true;
			try {
				(*session_)("ROLLBACK");
			} catch (const std::runtime_error &) {
				lives = false;
			}
			if (lives)
				throw std::logic_error(error.what());
		}
		session_.reset();
		written_.lost_connections++;
		std::this_thread::sleep_for(100ms);
	}

	std::string stream() { return stream_name(pick(random_, 0, 2) == 0 ? 0 : pick(random_, 1, stream_count - 1)); }

	std::string payload()
	{
		std::string text = std::to_string(number_) + ":" + std::to_string(count_++);
		if (pick(random_, 0, 19) == 0)
			text += std::string(static_cast<std::size_t>(pick(random_, 1'000, 20'000)), 'x');
		return text;
	}

	std::int64_t append(const std::string &stream, const std::string &payload, const std::string &event_id = "NULL")
	{
		return std::stoll((*session_)("SELECT doorbell.append('" + stream + "', 'test', '\"" + payload + "\"', NULL, " +
									  event_id + ")"));
	}

	struct Appended {
		std::string stream;
		std::int64_t seq;
		std::string payload;
	};

	void note(const std::vector<Appended> &appended)
	{
		for (const Appended &event : appended)
			written_.known.committed[event.stream].push_back({event.seq, identity(event.payload)});
	}

	// Commits, and notes what is known then.
	void commit(const std::vector<Appended> &appended, const std::string &sql)
	{
		try {
			(*session_)(sql);
		} catch (...) {
			for (const Appended &event : appended)
				written_.known.unknown.insert(identity(event.payload));
			throw;
		}
		note(appended);
	}

	void transaction()
	{
		std::vector<Appended> appended;
		const auto one = [&] {
			const std::string to = stream();
			const std::string what = payload();
			appended.push_back({to, append(to, what), what});
		};
		(*session_)("BEGIN");
		for (int appends = pick(random_, 1, 3); appends > 0; appends--) {
			one();
			if (pick(random_, 0, 3) == 0)
				std::this_thread::sleep_for(std::chrono::milliseconds(pick(random_, 0, 30)));
			if (pick(random_, 0, 4) > 0)
				continue;
			const std::size_t kept = appended.size();
			(*session_)("SAVEPOINT s");
			one();
			const bool back = pick(random_, 0, 1) == 0;
			(*session_)(back ? "ROLLBACK TO s" : "RELEASE s");
			if (back)
				appended.resize(kept);
		}
		if (pick(random_, 0, 3) == 0)
			(*session_)("ROLLBACK");
		else
			commit(appended, "COMMIT");
	}

	void append_batch()
	{
		const std::string to = stream();
		std::vector<std::string> payloads(static_cast<std::size_t>(pick(random_, 2, 20)));
		std::string types;
		std::string array;
		for (std::string &one : payloads) {
			one = payload();
			types += std::string(types.empty() ? "" : ",") + "'test'";
			array += std::string(array.empty() ? "" : ",") + "'\"" + one + "\"'";
		}
		(*session_)("BEGIN");
		const std::int64_t last = std::stoll((*session_)("SELECT doorbell.append_batch('" + to + "', ARRAY[" + types +
														 "], ARRAY[" + array + "]::jsonb[])"));
		std::vector<Appended> appended;
		for (std::size_t i = 0; i < payloads.size(); i++)
			appended.push_back({to, last - static_cast<std::int64_t>(payloads.size() - 1 - i), payloads[i]});
		commit(appended, "COMMIT");
	}

	// Again and again until it is known to be stored; the event id makes that safe. (Not in the trimmed stream, where
	// an event and its id may be gone before it is repeated.)
	void append_once()
	{
		std::string to = stream();
		if (to == trimmed)
			to = "hot";
		const std::string what = payload();
		char id[40];
		std::snprintf(id, sizeof id, "'%08x-0000-4000-8000-%012x'", static_cast<unsigned>(number_),
					  static_cast<unsigned>(count_));
		while (true) {
			try {
				if (!session_)
					session_.emplace(dsn_ + quiet);
				note({{to, append(to, what, id), what}});
				written_.known.once.insert(identity(what));
				return;
			} catch (const std::runtime_error &error) {
				connection_lost(error);
			}
		}
	}

	std::string dsn_;
	int number_;
	Random random_;
	int count_ = 0;
	std::optional<live::Session> session_;
	Written written_;
};

// Readers ------------------------------------------------------------------------------------------------------------

using Work = std::function<void(Collection &)>;

void take_envelope(Collection &collection, const std::string &text)
{
	const nlohmann::json event = nlohmann::json::parse(text);
	if (event.contains("control")) {
		if (event["control"] == "gap")
			collection.gap(event["stream"], event["asked"], event["low_water"]);
		else
			collection.fault("a reset of " + event["stream"].get<std::string>());
		return;
	}
	collection.add(event["stream"], event["seq"], event["payload"].get<std::string>());
}

Work subscribe(const doorbell::SubscriberOptions &options)
{
	return [options](Collection &collection) {
		doorbell::Handlers handlers;
		handlers.on_event = [&](const doorbell::Event &event) {
			collection.add(event.stream, event.seq, event.payload.substr(1, event.payload.size() - 2),
						   event.appended_at);
		};
		handlers.on_gap = [&](const doorbell::Gap &gap) { collection.gap(gap.stream, gap.asked, gap.low_water); };
		handlers.on_reset = [&](const doorbell::Reset &reset) { collection.fault("a reset of " + reset.stream); };
		doorbell::Subscriber subscriber(options, handlers);
		subscriber.follow_prefix("", doorbell::Start::beginning());
		while (!stop_reading)
			subscriber.poll(100ms);
		collection.reconnects =
			static_cast<int>(subscriber.stats().reader_connects + subscriber.stats().listener_connects) - 2;
	};
}

// A tail of everything.
Work tail_all(const std::vector<std::string> &command)
{
	return [command](Collection &collection) {
		std::vector<std::string> all = command;
		all.insert(all.end(), {"tail", "--all", "--after", "0", "--format", "json"});
		Process process(all);
		std::string rest;
		while (!stop_reading) {
			rest += process.read(100ms);
			for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
				take_envelope(collection, rest.substr(0, end));
		}
	};
}

const std::vector<std::string> some_streams = {"hot", "other:2", "other:3"};

// Several streams as SSE: through whatever brings the bytes, `read`, until that ends.
class SseFollower {
public:
	explicit SseFollower(Collection &collection) : collection_(collection) {}

	const std::string &cursor() const { return parser_.last_id; }

	void begin() { parser_ = live::SseParser(parser_.last_id); } // anew, from the cursor

	void feed(std::string_view bytes)
	{
		std::set<std::string> ids{parser_.last_id};
		parser_.feed(bytes);
		for (const live::SseMessage &message : parser_.messages) {
			take_envelope(collection_, message.data);
			ids.insert(message.id);
		}
		for (const live::SseMessage &control : parser_.controls) {
			if (ids.count(control.id) == 0)
				collection_.fault("C8: " + control.type + " has an id of its own: " + control.id);
			const nlohmann::json data = nlohmann::json::parse(control.data);
			if (control.type == "doorbell:gap")
				collection_.gap(data["stream"], data["asked"], data["low_water"]);
			else if (control.type != "doorbell:shutdown")
				collection_.fault(control.type + ": " + control.data);
		}
		parser_.messages.clear();
		parser_.controls.clear();
	}

private:
	Collection &collection_;
	live::SseParser parser_;
};

// A tail that reads from the standby, is killed now and then, and goes on by its cursor.
Work tail_some(const std::vector<std::string> &command, const std::string &standby, unsigned seed)
{
	return [=](Collection &collection) {
		Random random(seed);
		SseFollower follower(collection);
		while (!stop_reading) {
			std::vector<std::string> some = command;
			some.push_back("tail");
			some.insert(some.end(), some_streams.begin(), some_streams.end());
			some.insert(some.end(), {"--replay-dsn", standby, "--format", "sse", "--after",
									 follower.cursor().empty() ? "0" : follower.cursor()});
			Process process(some);
			const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(pick(random, 500, 10'000));
			while (!stop_reading && (at_peace || std::chrono::steady_clock::now() < end))
				follower.feed(process.read(100ms));
			process.end(pick(random, 0, 1) == 0 ? SIGKILL : SIGTERM);
			follower.begin();
			collection.reconnects++;
		}
	};
}

enum class Pace { fast, slow, fickle };

// A client of serve, which comes back by Last-Event-ID whenever it lost its connection, or feels like it.
Work sse_client(int port, Pace pace, unsigned seed)
{
	return [=](Collection &collection) {
		Random random(seed);
		SseFollower follower(collection);
		std::string path = "/v1/events?after=0";
		for (const std::string &stream : some_streams)
			path += "&stream=" + stream;
		while (!stop_reading) {
			HttpStream stream(port, path, follower.cursor(), pace == Pace::slow);
			const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(pick(random, 100, 4'000));
			while (!stop_reading) {
				const bool slow = pace == Pace::slow && !at_peace;
				const std::optional<std::string> bytes = stream.read(slow ? 1'000 : 65'536, 100ms);
				if (!bytes)
					break;
				follower.feed(*bytes);
				if (slow)
					std::this_thread::sleep_for(20ms);
				if (pace == Pace::fickle && !at_peace && std::chrono::steady_clock::now() > end)
					break;
			}
			follower.begin();
			collection.reconnects++;
			std::this_thread::sleep_for(50ms);
		}
	};
}

// Faults -------------------------------------------------------------------------------------------------------------

struct Cluster {
	live::Server primary;
	std::optional<live::Server> standby;

	Cluster()
	{
		primary.stop(SIGINT);
		start();
		live::Session(primary.dsn("postgres"))("CREATE EXTENSION pg_doorbell");
		standby.emplace(primary.dsn("postgres"));
	}

	void start()
	{
		primary.start({"shared_preload_libraries=pg_doorbell", "wal_keep_size=1GB"});
		primary.await();
	}
};

struct Serve {
	std::vector<std::string> command;
	std::optional<Process> process;
	void start() { process.emplace(command); }
};

class Faults {
public:
	Faults(Cluster &cluster, Serve &serve, unsigned seed) : cluster_(cluster), serve_(serve), random_(seed) {}

	void one()
	{
		const int kind = pick(random_, 0, 15);
		if (kind < 5)
			signal("backends ended", SIGTERM, "backend_type = 'client backend'");
		else if (kind < 7)
			signal("walsenders ended", SIGTERM, "backend_type = 'walsender'");
		else if (kind < 8)
			signal("backends killed", SIGKILL, "backend_type = 'client backend' AND query LIKE '%doorbell.append%'");
		else if (kind < 9)
			signal("ringers killed", SIGKILL, "backend_type = 'pg_doorbell ringer'");
		else if (kind < 10)
			restart_primary();
		else if (kind < 13)
			restart_standby();
		else
			restart_serve();
	}

	std::map<std::string, int> counts;

private:
	void signal(const std::string &name, int signal, const std::string &condition)
	{
		const std::string pid = live::Session(cluster_.primary.dsn("postgres"))(
			"SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND " + condition +
			" ORDER BY random() LIMIT 1");
		if (pid.empty() || ::kill(std::stoi(pid), signal) != 0)
			return;
		counts[name]++;
		if (signal == SIGKILL)
			std::this_thread::sleep_for(200ms);
		cluster_.primary.await();
	}

	void restart_primary()
	{
		counts["immediate stops of the primary"]++;
		cluster_.primary.stop(SIGQUIT);
		std::this_thread::sleep_for(std::chrono::milliseconds(pick(random_, 0, 1'000)));
		cluster_.start();
	}

	void restart_standby()
	{
		counts["stops of the standby"]++;
		cluster_.standby->stop(pick(random_, 0, 1) == 0 ? SIGQUIT : SIGINT);
		std::this_thread::sleep_for(std::chrono::milliseconds(pick(random_, 0, 1'000)));
		cluster_.standby->start();
		cluster_.standby->await();
	}

	void restart_serve()
	{
		counts["ends of serve"]++;
		serve_.process->end(pick(random_, 0, 1) == 0 ? SIGKILL : SIGTERM);
		serve_.start();
	}

	Cluster &cluster_;
	Serve &serve_;
	Random random_;
};

// Memory -------------------------------------------------------------------------------------------------------------

class Memory {
public:
	void add(long kilobytes)
	{
		if (kilobytes > 0)
			samples_.push_back(kilobytes);
	}
	// Medians of the first and the last third.
	std::pair<long, long> thirds() const
	{
		const auto third = static_cast<std::ptrdiff_t>(samples_.size() / 3);
		const auto median = [](std::vector<long> some) {
			std::sort(some.begin(), some.end());
			return some.empty() ? 0 : some[some.size() / 2];
		};
		return {median({samples_.begin(), samples_.begin() + third}), median({samples_.end() - third, samples_.end()})};
	}

private:
	std::vector<long> samples_;
};

// Memory of its own of the backend that has most, in kB.
long largest_backend(const live::Server &server)
{
	long most = 0;
	std::string pids;
	try {
		pids = live::Session(server.dsn("postgres"))("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE "
													 "backend_type IN ('client backend', 'pg_doorbell ringer')");
	} catch (const std::runtime_error &) {
		return 0; // it is down
	}
	std::istringstream list(pids);
	for (int pid; list >> pid;)
		most = std::max(most, memory_of(pid, "RssAnon:"));
	return most;
}

// ---------------------------------------------------------------------------------------------------------------------

Events read_table(live::Session &session)
{
	Events truth;
	for (int i = 0; i < stream_count; i++) {
		std::vector<Stored> &stored = truth[stream_name(i)];
		for (std::size_t before = 1; before != stored.size();) { // in pages: a long run has more than one text can hold
			before = stored.size();
			std::istringstream rows(
				session("SELECT string_agg(seq || ' ' || (payload #>> '{}'), E'\\n' ORDER BY seq) FROM (SELECT * FROM"
						" doorbell.event WHERE stream = '" +
						stream_name(i) + "' AND seq > " + std::to_string(stored.empty() ? 0 : stored.back().seq) +
						" ORDER BY seq LIMIT 10000) page"));
			std::int64_t seq;
			for (std::string payload; rows >> seq >> payload;)
				stored.push_back({seq, identity(payload)});
		}
	}
	return truth;
}

int run(const std::string &doorbell)
{
	const char *given = std::getenv("SOAK_SECONDS");
	const std::chrono::seconds duration(given != nullptr ? std::atoi(given) : 60);
	const char *seed_given = std::getenv("SOAK_SEED");
	const unsigned seed =
		seed_given != nullptr ? static_cast<unsigned>(std::atoi(seed_given)) : std::random_device{}() % 1'000'000;
	std::cout << "SOAK_SEED=" << seed << " SOAK_SECONDS=" << duration.count() << std::endl;
	Random random(seed);
	Checks checks;

	Cluster cluster;
	const std::string dsn = cluster.primary.dsn("postgres");
	const std::string standby = cluster.standby->dsn("postgres");
	const auto follower = [&](const std::string &name) {
		return std::vector<std::string>{doorbell, "--dsn", dsn + " application_name=" + name};
	};
	const auto serve_command = [&](const std::string &name, int port, std::vector<std::string> more) {
		std::vector<std::string> command = follower(name + "_reader");
		command.insert(command.end(), {"serve", "--listen", "127.0.0.1:" + std::to_string(port), "--listener-dsn",
									   dsn + " application_name=" + name});
		command.insert(command.end(), more.begin(), more.end());
		return command;
	};
	const int steady_port = live::free_port();
	const int fragile_port = live::free_port();
	Serve steady{serve_command("soak_steady", steady_port, {"--replay-dsn", standby, "--replay-dsn", dsn}), {}};
	Serve fragile{serve_command("soak_fragile", fragile_port, {"--replay-dsn", standby}), {}};
	steady.start();
	fragile.start();

	const auto options = [&](const std::string &name, const std::vector<std::string> &read_dsns) {
		doorbell::SubscriberOptions made;
		made.connect.dsn = dsn + " application_name=" + name + "_reader";
		made.listen_dsn = dsn + " application_name=" + name;
		made.read_dsns = read_dsns;
		return made;
	};
	std::vector<Reader> readers;
	const auto start = [&](const std::string &name, bool of_all, const Work &work) {
		auto collection = std::make_shared<Collection>(name, of_all);
		readers.push_back({collection, std::thread([collection, work, &checks] {
							   try {
								   work(*collection);
							   } catch (const std::exception &error) {
								   checks.fail(collection->name + ": " + error.what());
							   }
						   })});
	};
	start("subscriber on the primary", true, subscribe(options("soak_1", {})));
	start("subscriber on the standby", true, subscribe(options("soak_2", {standby})));
	start("subscriber on both", true, subscribe(options("soak_3", {standby, dsn})));
	start("tail of everything", true, tail_all(follower("soak_4")));
	start("tail that is killed", false, tail_some(follower("soak_5"), standby, seed_of(random)));
	for (const auto &[place, port] :
		 {std::pair("steady serve", steady_port), std::pair("fragile serve", fragile_port)}) {
		start(std::string("fast client of the ") + place, false, sse_client(port, Pace::fast, seed_of(random)));
		start(std::string("slow client of the ") + place, false, sse_client(port, Pace::slow, seed_of(random)));
		for (int i = 1; i <= 3; i++)
			start(std::string("fickle client ") + std::to_string(i) + " of the " + place, false,
				  sse_client(port, Pace::fickle, seed_of(random)));
	}

	std::vector<Written> written(writer_count);
	std::vector<std::thread> writers;
	for (int i = 0; i < writer_count; i++)
		writers.emplace_back([&, i, its = seed_of(random)] {
			try {
				written[static_cast<std::size_t>(i)] = Writer(dsn, i, its).run();
			} catch (const std::exception &error) {
				checks.fail(std::string("writer: ") + error.what());
			}
		});

	Faults faults(cluster, fragile, seed_of(random));
	Memory serve_memory;
	Memory backend_memory;
	const auto begin = std::chrono::steady_clock::now();
	auto fault_at = begin + 3s;
	bool commit_mode = false;
	while (std::chrono::steady_clock::now() < begin + duration) {
		std::this_thread::sleep_for(500ms);
		serve_memory.add(memory_of(steady.process->pid(), "VmRSS:"));
		backend_memory.add(largest_backend(cluster.primary));
		try {
			live::Session session(dsn + quiet);
			session("SELECT doorbell.trim('" + std::string(trimmed) + "', greatest(doorbell.high_water('" + trimmed +
					"') - 200, 0))");
			if (!commit_mode && std::chrono::steady_clock::now() > begin + duration / 2) {
				session("ALTER SYSTEM SET doorbell.ring_mode = 'commit'");
				session("SELECT pg_reload_conf()");
				commit_mode = true;
			}
		} catch (const std::runtime_error &) { // a crash is being recovered from
		}
		if (std::chrono::steady_clock::now() > fault_at) {
			try {
				faults.one();
			} catch (const std::runtime_error &) { // the session that looked for a victim was hit
				cluster.primary.await();
			}
			fault_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(pick(random, 300, 3'000));
		}
	}
	at_peace = true;
	stop_writing = true;
	for (std::thread &writer : writers)
		writer.join();
	checks.expect(commit_mode, "the ring mode was changed half-way");

	live::Session session(dsn);
	const Events truth = read_table(session);
	Known known;
	std::size_t transactions = 0;
	int lost_connections = 0;
	for (const Written &one : written) {
		for (const auto &[stream, events] : one.known.committed) {
			std::vector<Stored> &all = known.committed[stream];
			all.insert(all.end(), events.begin(), events.end());
		}
		known.unknown.insert(one.known.unknown.begin(), one.known.unknown.end());
		known.once.insert(one.known.once.begin(), one.known.once.end());
		transactions += one.transactions;
		lost_connections += one.lost_connections;
	}
	check_stored(checks, truth, known);

	// C4: everybody arrives without further appends.
	const auto peace = std::chrono::steady_clock::now();
	for (Reader &reader : readers)
		try {
			live::wait_for(reader.collection->name,
						   [&] { return reader.collection->has_arrived(truth, some_streams); });
		} catch (const std::runtime_error &error) {
			checks.fail(std::string("C4: ") + error.what());
		}
	const double arrival = std::chrono::duration<double>(std::chrono::steady_clock::now() - peace).count();

	// C7
	for (const std::string name : {"soak_1", "soak_2", "soak_3", "soak_steady", "soak_fragile"})
		checks.expect(session("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + name + "'") == "1",
					  "C7: one listening session of " + name);

	stop_reading = true;
	std::size_t events = 0;
	for (const auto &[stream, list] : truth)
		events += list.size();
	std::size_t deliveries = 0;
	int reconnects = 0;
	std::int64_t delay = 0;
	for (Reader &reader : readers) {
		reader.thread.join();
		const Collection &collection = *reader.collection;
		check_given(checks, truth, known, collection, some_streams);
		deliveries += collection.count();
		reconnects += collection.reconnects;
		delay = std::max(delay, collection.longest_delay());
	}
	const auto [serve_first, serve_last] = serve_memory.thirds();
	const auto [backend_first, backend_last] = backend_memory.thirds();
	checks.expect(serve_first > 0 && serve_last <= serve_first + serve_first / 4 + 8'192,
				  "C5: memory of serve is flat");
	checks.expect(backend_first > 0 && backend_last <= backend_first + backend_first / 4 + 4'096,
				  "C5: memory of backends is flat");
	checks.expect(events > static_cast<std::size_t>(duration.count()) * 10,
				  "there were events enough to prove something");

	std::cout << transactions << " transactions, " << events << " events stored, " << deliveries << " deliveries to "
			  << readers.size() << " readers, " << reconnects << " reconnects of readers, " << lost_connections
			  << " of writers, " << known.unknown.size() << " events with an unknown commit\n";
	for (const auto &[name, count] : faults.counts)
		std::cout << count << " " << name << "; ";
	std::cout << "\nmax delay of subscribers " << delay / 1000 << " ms (outages included), all had arrived " << arrival
			  << " s after the last append\nserve " << serve_first << " -> " << serve_last << " kB, largest backend "
			  << backend_first << " -> " << backend_last << " kB (medians of the first and the last third)\n";
	return checks.report(std::cout);
}

} // namespace
} // namespace soak

int main(int argc, char **argv)
{
	std::signal(SIGPIPE, SIG_IGN);
	if (argc != 2) {
		std::cerr << "usage: soak DOORBELL\n";
		return 2;
	}
	try {
		return soak::run(argv[1]);
	} catch (const std::exception &error) {
		std::cerr << "soak: " << error.what() << '\n';
		return 1;
	}
}
