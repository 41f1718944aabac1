// replay_all, replay_many and high_water against a model, in random histories.
//
//  1. Sessions begin, append to a few streams, set savepoints and roll back to them, prepare, commit and roll back, in
//     random order, several at once; some transactions write nothing, some streams are trimmed. It is all one thread,
//     so a seed makes the same history again (but for what a lagging standby has).
//  2. Readers of all streams page through it: by 1, 3 and 1000 events, from the beginning and from now on, by prefix,
//  on
//     the primary, on a standby, and on both in turns while the standby is held back.
//  3. The model knows what each row is: in flight, committed, rolled back, trimmed. After each read by 1000 it knows
//     exactly which events the reader must have by now: all that are committed, but for those that wait behind rows in
//     flight, with their whole transactions and what lies above those.
//  4. At the end everything is finished and the readers read on until nothing comes. Each must have each event once, in
//     seq order inside its stream; an event that is missing was trimmed, and a gap has said so.
//
// A failure names the seed; SEED=n runs that history alone. CONTRACT_SECONDS (20) bounds the time.
#include "../live/server.hpp"
#include "../live/wait_for.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Seq = std::int64_t;
using Place = std::pair<std::string, Seq>; // stream, seq

constexpr int stream_count = 5;
constexpr int session_count = 5;
constexpr int steps = 400;

class Failure : public std::runtime_error {
	using runtime_error::runtime_error;
};

std::string to_string(const Place &place)
{
	return place.first + ":" + std::to_string(place.second);
}

// What happened, as the test knows it without the server's help.
struct Model {
	enum class State { open, prepared, committed, rolled_back };
	struct Row {
		Place place;
		int transaction;
		std::string payload;
		bool trimmed = false;
	};

	std::vector<State> transactions;
	std::vector<Row> rows; // but for those that a savepoint took back

	State state(const Row &row) const { return transactions[static_cast<std::size_t>(row.transaction)]; }
	bool in_flight(const Row &row) const { return state(row) == State::open || state(row) == State::prepared; }
	bool is_event(const Row &row) const { return state(row) == State::committed; }

	// The untrimmed events that a reader of all streams who has `had` must have now.
	std::set<Place> due(const std::set<Place> &had) const
	{
		std::map<std::string, Seq> stops;
		const auto stop = [&](const Place &place) {
			const auto [found, is_new] = stops.insert(place);
			const bool lower = !is_new && place.second < found->second;
			if (lower)
				found->second = place.second;
			return is_new || lower;
		};
		for (const Row &row : rows)
			if (in_flight(row))
				stop(row.place);
		std::set<int> withheld;
		for (bool changed = true; changed;) {
			changed = false;
			for (const Row &row : rows) {
				if (!is_event(row) || row.trimmed || had.count(row.place) > 0)
					continue;
				const auto at = stops.find(row.place.first);
				if (at != stops.end() && row.place.second >= at->second)
					changed |= withheld.insert(row.transaction).second;
				if (withheld.count(row.transaction) > 0)
					changed |= stop(row.place);
			}
		}
		std::set<Place> due;
		for (const Row &row : rows)
			if (is_event(row) && !row.trimmed && withheld.count(row.transaction) == 0)
				due.insert(row.place);
		return due;
	}

	Seq low_water(const std::string &stream) const
	{
		const auto found = low_waters.find(stream);
		return found == low_waters.end() ? 0 : found->second;
	}
	Seq high_water(const std::string &stream) const
	{
		Seq lowest = INT64_MAX;
		for (const Row &row : rows)
			if (row.place.first == stream && in_flight(row))
				lowest = std::min(lowest, row.place.second);
		Seq high = low_water(stream);
		for (const Row &row : rows)
			if (row.place.first == stream && is_event(row) && row.place.second < lowest)
				high = std::max(high, row.place.second);
		return high;
	}

	std::map<std::string, Seq> low_waters;
};

// A reader of all streams, with everything that it was given.
struct Reader {
	enum class Where { primary, standby, both };

	std::string name;
	int page;
	Where where;
	std::string prefix;
	bool from_now; // from its first turn
	std::optional<std::string> cursor{};
	bool started = false;
	std::set<Place> before{}; // events that were committed when it began from now on
	std::set<Place> had{};
	std::set<Place> missed{}; // what gaps have told it of
	std::map<std::string, Seq> reached{};
	std::map<Place, std::string> payloads{};

	bool wants(const std::string &stream) const { return stream.compare(0, prefix.size(), prefix) == 0; }
};

// A reader of each stream by replay_many.
struct Marks {
	std::map<std::string, Seq> marks{};
	std::map<Place, std::string> payloads{};
};

class History {
public:
	History(unsigned seed, const live::Server &primary, live::Server *standby)
		: random_(seed), primary_(primary.dsn("postgres"))
	{
		primary_("DROP EXTENSION IF EXISTS pg_doorbell; DROP SCHEMA IF EXISTS doorbell; CREATE EXTENSION pg_doorbell");
		for (int i = 0; i < session_count; i++) {
			sessions_.push_back({std::make_unique<live::Session>(primary.dsn("postgres")), -1, {}});
			(*sessions_.back().sql)("SET doorbell.ring_mode = off");
		}
		readers_ = {{"by 1", 1, Reader::Where::primary, "", false},
					{"by 3", 3, Reader::Where::primary, "", false},
					{"by 1000", 1000, Reader::Where::primary, "", false},
					{"by 3 from now", 3, Reader::Where::primary, "", true},
					{"by 1000 from now", 1000, Reader::Where::primary, "", true},
					{"by 3 by prefix", 3, Reader::Where::primary, "s1", false}};
		if (standby != nullptr) {
			standby_ = std::make_unique<live::Session>(standby->dsn("postgres"));
			catch_up();
			for (const Reader &reader : std::vector<Reader>(readers_)) {
				readers_.push_back(reader);
				readers_.back().where = Reader::Where::standby;
				readers_.back().name += " on the standby";
			}
			readers_.push_back({"by 3 on both", 3, Reader::Where::both, "", false});
			readers_.push_back({"by 1000 on both", 1000, Reader::Where::both, "", false});
		}
	}

	void run()
	{
		for (int step = 0; step < steps; step++)
			act();
		for (Transaction &transaction : sessions_)
			if (transaction.number >= 0)
				end(transaction);
		while (!prepared_.empty())
			end_prepared();
		resume();
		for (Reader &reader : readers_) {
			for (int idle = 0; idle < 2;) // on both in turns: nothing from either
				idle = read(reader) ? 0 : idle + 1;
			check(reader);
		}
		while (read_marks()) {
		}
		check_marks();
	}

	std::size_t events() const { return marks_.payloads.size(); }

private:
	struct Transaction {
		std::unique_ptr<live::Session> sql;
		int number;							 // in the model; -1: none is open
		std::vector<std::size_t> savepoints; // how many rows the transaction had
	};

	int dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }
	std::string any_stream()
	{
		static const char *const names[stream_count] = {"s1", "s1:Grüße", "s2", "a.b!c~d", "z"};
		return names[dice(stream_count)];
	}

	void act()
	{
		Transaction &transaction = sessions_[static_cast<std::size_t>(dice(session_count))];
		const int what = dice(100);
		if (what < 30) {
			Reader &reader = readers_[static_cast<std::size_t>(dice(static_cast<int>(readers_.size())))];
			read(reader);
		} else if (what < 34) {
			read_marks();
		} else if (what < 38) {
			check_high_water();
		} else if (what < 41) {
			trim();
		} else if (what < 44) {
			if (!prepared_.empty())
				end_prepared();
		} else if (what < 46) {
			hold_standby_back();
		} else if (transaction.number < 0) {
			begin(transaction);
		} else if (what < 76) {
			append(transaction);
		} else if (what < 82) {
			savepoint(transaction);
		} else {
			end(transaction);
		}
	}

	void begin(Transaction &transaction)
	{
		transaction.number = static_cast<int>(model_.transactions.size());
		model_.transactions.push_back(Model::State::open);
		(*transaction.sql)("BEGIN");
		if (dice(3) == 0) // an old id, whatever it is used for
			(*transaction.sql)("SELECT pg_current_xact_id()");
	}

	void append(Transaction &transaction)
	{
		const std::string stream = any_stream();
		const int count = dice(4) == 0 ? 4 : 1;
		std::vector<std::string> payloads;
		for (int i = 0; i < count; i++)
			payloads.push_back(std::to_string(next_payload_++));
		std::string list = "'" + payloads[0] + "'";
		for (std::size_t i = 1; i < payloads.size(); i++)
			list += ",'" + payloads[i] + "'";
		const std::string size = std::to_string(count);
		const Seq last = std::stoll((*transaction.sql)("SELECT doorbell.append_batch('" + stream +
													   "', array_fill('test'::text, ARRAY[" + size + "]), ARRAY[" +
													   list + "]::jsonb[])"));
		for (int i = 0; i < count; i++)
			model_.rows.push_back(
				{{stream, last - count + 1 + i}, transaction.number, payloads[static_cast<std::size_t>(i)]});
	}

	void savepoint(Transaction &transaction)
	{
		if (transaction.savepoints.empty() || dice(2) == 0) {
			(*transaction.sql)("SAVEPOINT s" + std::to_string(transaction.savepoints.size()));
			std::size_t count = 0;
			for (const Model::Row &row : model_.rows)
				count += row.transaction == transaction.number ? 1 : 0;
			transaction.savepoints.push_back(count);
			return;
		}
		const std::size_t kept = transaction.savepoints.back();
		transaction.savepoints.pop_back();
		const std::string name = "s" + std::to_string(transaction.savepoints.size());
		(*transaction.sql)("ROLLBACK TO " + name + "; RELEASE " + name);
		std::size_t count = 0;
		const auto taken_back = [&](const Model::Row &row) {
			return row.transaction == transaction.number && ++count > kept;
		};
		model_.rows.erase(std::remove_if(model_.rows.begin(), model_.rows.end(), taken_back), model_.rows.end());
	}

	void end(Transaction &transaction)
	{
		Model::State &state = model_.transactions[static_cast<std::size_t>(transaction.number)];
		const int what = dice(10);
		if (what == 0) {
			(*transaction.sql)("PREPARE TRANSACTION 'p" + std::to_string(transaction.number) + "'");
			state = Model::State::prepared;
			prepared_.push_back(transaction.number);
		} else {
			(*transaction.sql)(what < 7 ? "COMMIT" : "ROLLBACK");
			state = what < 7 ? Model::State::committed : Model::State::rolled_back;
		}
		transaction.number = -1;
		transaction.savepoints.clear();
	}

	void end_prepared()
	{
		const auto which = prepared_.begin() + dice(static_cast<int>(prepared_.size()));
		const bool commit = dice(3) > 0;
		primary_((commit ? "COMMIT PREPARED 'p" : "ROLLBACK PREPARED 'p") + std::to_string(*which) + "'");
		model_.transactions[static_cast<std::size_t>(*which)] =
			commit ? Model::State::committed : Model::State::rolled_back;
		prepared_.erase(which);
	}

	void trim()
	{
		const std::string stream = any_stream();
		const Seq high = model_.high_water(stream);
		const Seq through = dice(static_cast<int>(high) + 3);
		primary_("SELECT doorbell.trim('" + stream + "', " + std::to_string(through) + ")");
		for (Model::Row &row : model_.rows) {
			if (row.place.first != stream || row.place.second > std::min(through, high) || !model_.is_event(row))
				continue;
			row.trimmed = true;
			model_.low_waters[stream] = std::max(model_.low_waters[stream], row.place.second);
		}
	}

	void check_high_water()
	{
		const std::string stream = any_stream();
		const std::string found = primary_("SELECT doorbell.high_water('" + stream + "')");
		if (found != std::to_string(model_.high_water(stream)))
			throw Failure("high water of " + stream + " is " + found + " instead of " +
						  std::to_string(model_.high_water(stream)));
	}

	// The standby stays at what it has, until it is resumed.
	void hold_standby_back()
	{
		if (standby_ == nullptr)
			return;
		if (held_back_) {
			resume();
			return;
		}
		(*standby_)("SELECT pg_wal_replay_pause()");
		primary_("SELECT pg_logical_emit_message(true, 'test', 'a record to stop at')");
		live::wait_for("the pause", [&] { return (*standby_)("SELECT pg_get_wal_replay_pause_state()") == "paused"; });
		held_back_ = true;
	}

	void resume()
	{
		if (held_back_)
			(*standby_)("SELECT pg_wal_replay_resume()");
		held_back_ = false;
	}

	// Until the standby has everything, also what is in flight.
	void catch_up()
	{
		primary_("SELECT pg_logical_emit_message(true, 'test', 'its commit flushes the log')");
		const std::string end = primary_("SELECT pg_current_wal_flush_lsn()");
		live::wait_for("the standby",
					   [&] { return (*standby_)("SELECT pg_last_wal_replay_lsn() >= '" + end + "'") == "t"; });
	}

	// Whether anything came.
	bool read(Reader &reader)
	{
		const bool on_standby =
			reader.where == Reader::Where::standby || (reader.where == Reader::Where::both && dice(2) == 0);
		const bool late = on_standby && held_back_;
		if (late && reader.where == Reader::Where::standby && !reader.started)
			return false;
		if (on_standby && !late)
			catch_up();
		live::Session &sql = on_standby ? *standby_ : primary_;
		if (!reader.started) {
			if (late)
				return false; // the extension may not be there yet
			reader.started = true;
			if (reader.from_now) {
				reader.cursor = sql("SELECT doorbell.high_water_all()");
				for (const Model::Row &row : model_.rows)
					if (model_.is_event(row))
						reader.before.insert(row.place);
				reader.had = model_.due({});
				for (const Place &place : reader.had)
					reader.reached[place.first] = std::max(reader.reached[place.first], place.second);
				for (const auto &[stream, seq] : model_.low_waters)
					reader.reached[stream] = std::max(reader.reached[stream], seq);
			}
		}
		const std::string cursor = reader.cursor ? "'" + *reader.cursor + "'" : "NULL";
		const auto rows = sql.rows("SELECT stream, seq, type, payload, cursor FROM doorbell.replay_all(" + cursor +
								   ", " + std::to_string(reader.page) + ", '" + reader.prefix + "')");
		for (const auto &row : rows) {
			take(reader, {row[0], std::stoll(row[1])}, !row[2].empty(), row[3]);
			reader.cursor = row[4];
		}
		// Who moves to the standby may have to wait there for transactions with savepoints.
		if (reader.page == 1000 && !late)
			check_due(reader, !on_standby || reader.where == Reader::Where::standby);
		return !rows.empty();
	}

	void take(Reader &reader, const Place &place, bool is_event, const std::string &payload)
	{
		if (!reader.wants(place.first))
			throw Failure(reader.name + " was given " + to_string(place));
		Seq &reached = reader.reached[place.first];
		if (place.second <= reached)
			throw Failure(reader.name + " was given " + to_string(place) + " behind " + std::to_string(reached));
		reached = place.second;
		if (is_event) {
			reader.had.insert(place);
			reader.payloads[place] = payload;
			return;
		}
		bool true_gap = false;
		for (const Model::Row &row : model_.rows) {
			if (row.place.first != place.first || row.place.second > place.second || !model_.is_event(row) ||
				reader.had.count(row.place) > 0)
				continue;
			true_gap |= reader.missed.insert(row.place).second;
		}
		if (!true_gap)
			throw Failure(reader.name + " was told of a gap up to " + to_string(place) + ", but had everything");
	}

	// Exactly what the model says: whole transactions, nothing too early, nothing later than need be.
	void check_due(const Reader &reader, bool complete)
	{
		const std::set<Place> due = model_.due(reader.had);
		for (const Place &place : due)
			if (complete && reader.had.count(place) == 0)
				throw Failure(reader.name + " is not given " + to_string(place));
		for (const Model::Row &row : model_.rows)
			if (model_.in_flight(row) && reader.had.count(row.place) > 0)
				throw Failure(reader.name + " was given " + to_string(row.place) + " too early");
		std::map<int, bool> whole;
		for (const Model::Row &row : model_.rows) {
			if (row.trimmed || !model_.is_event(row))
				continue;
			const bool has = reader.had.count(row.place) > 0;
			if (whole.emplace(row.transaction, has).first->second != has)
				throw Failure(reader.name + " has a part of the transaction of " + to_string(row.place));
		}
	}

	void check(const Reader &reader)
	{
		std::map<Place, std::string> events;
		for (const Model::Row &row : model_.rows) {
			if (!model_.is_event(row) || !reader.wants(row.place.first))
				continue;
			events[row.place] = row.payload;
			// A reader from the beginning is not told of what was trimmed before it began.
			const bool told = reader.missed.count(row.place) > 0 || reader.before.count(row.place) > 0 ||
							  (row.trimmed && !reader.from_now);
			if (reader.had.count(row.place) == 0 && !told)
				throw Failure(reader.name + " never was given " + to_string(row.place));
		}
		for (const auto &[place, payload] : reader.payloads)
			if (events[place] != payload)
				throw Failure(reader.name + " was given " + to_string(place) + " with the payload " + payload);
	}

	bool read_marks()
	{
		std::string streams;
		std::string seqs;
		for (const char *stream : {"s1", "s1:Grüße", "s2", "a.b!c~d", "z"}) {
			streams += (streams.empty() ? "'" : ",'") + std::string(stream) + "'";
			seqs += (seqs.empty() ? "" : ",") + std::to_string(marks_.marks[stream]);
		}
		const auto rows = primary_.rows("SELECT stream, seq, payload FROM doorbell.replay_many(ARRAY[" + streams +
										"], ARRAY[" + seqs + "], " + std::to_string(1 + dice(9)) + ")");
		for (const auto &row : rows) {
			const Place place{row[0], std::stoll(row[1])};
			if (place.second <= marks_.marks[place.first])
				throw Failure("replay_many gave " + to_string(place) + " again");
			marks_.marks[place.first] = place.second;
			marks_.payloads[place] = row[2];
		}
		return !rows.empty();
	}

	void check_marks()
	{
		std::size_t found = 0;
		for (const Model::Row &row : model_.rows) {
			if (!model_.is_event(row))
				continue;
			const auto given = marks_.payloads.find(row.place);
			if (given != marks_.payloads.end() && given->second == row.payload)
				found++;
			else if (!row.trimmed)
				throw Failure("replay_many never gave " + to_string(row.place));
		}
		if (found != marks_.payloads.size())
			throw Failure("replay_many gave what is not an event");
	}

	std::mt19937 random_;
	live::Session primary_;
	std::unique_ptr<live::Session> standby_;
	bool held_back_ = false;
	std::vector<Transaction> sessions_;
	std::vector<int> prepared_;
	int next_payload_ = 1;
	Model model_;
	std::vector<Reader> readers_;
	Marks marks_;
};

std::chrono::milliseconds half_of_the_time()
{
	const char *seconds = std::getenv("CONTRACT_SECONDS");
	return std::chrono::milliseconds((seconds != nullptr ? std::atoi(seconds) : 20) * 500);
}

void run_histories(const live::Server &primary, live::Server *standby)
{
	const char *given = std::getenv("SEED");
	unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
	std::size_t events = 0;
	unsigned count = 0;
	const auto end = std::chrono::steady_clock::now() + half_of_the_time();
	do {
		History history(seed, primary, standby);
		try {
			history.run();
		} catch (const std::exception &error) {
			FAIL() << error.what() << "; SEED=" << seed << " runs this history again";
		}
		events += history.events();
		count++;
		seed++;
	} while (given == nullptr && std::chrono::steady_clock::now() < end);
	std::cout << count << " histories with " << events << " events" << std::endl;
	EXPECT_GT(events, 50U * count) << "too few to prove anything";
}

struct ReplayAll : testing::Test {
	ReplayAll()
	{
		live::Session(primary.dsn("postgres"))(
			"ALTER SYSTEM SET max_prepared_transactions = 50"); // also for the standby
		primary.stop(SIGINT);
		primary.start();
		primary.await();
	}

	live::Server primary;
};

TEST_F(ReplayAll, gives_every_event_once_in_order_and_as_soon_as_the_model_does)
{
	run_histories(primary, nullptr);
}

TEST_F(ReplayAll, on_a_standby_and_when_a_reader_moves_between_the_two)
{
	live::Server standby(primary.dsn("postgres"));
	run_histories(primary, &standby);
}

} // namespace
