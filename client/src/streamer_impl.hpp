// The inside of Streamer (streamer.hpp says what it promises).
//
// 1. A hub is a stream that at least one connection follows by name: its live mark, its subscriptions, and the events
//    that came since the last broadcast. One Subscriber follows all hubs, each from the high water it had when it was
//    made; until that is known the hub is unsettled.
// 2. A subscription is a client in a hub: a mark, which only delivery moves, and a state:
//    - starting: what its mark is worth is not known yet (the hub is unsettled, or the mark is to be surveyed);
//    - behind: events lie between its mark and the hub's. It reads the table;
//    - live: it has all that the hub had. It gets what the hub broadcasts.
//    A client is given nothing before all its subscriptions have started, because its cursor needs all marks.
// 3. Catching up: one request is in flight. A survey judges the marks of starting subscriptions. A read takes a page of
//    each hub that has subscriptions behind, from the lowest of their marks, and gives it to all of them that it fits;
//    who then is at the hub's mark, or beyond it, is live. (A live subscription may be beyond: it skips what it had.)
//    What was read is kept for one sweep interval, which is how old anything here may be: those who come back later to
//    the same place, or who are slower, get it without another read.
// 4. Delivery stops in the middle of a run of events when buffer_bytes are full: the subscription is behind.
// 5. One epoll descriptor watches all sockets, edge-triggered, so a blocked client costs nothing until it is writable.
// 6. A client has one timer, at the earliest of what may be due; it is looked at lazily: writes do not move it.
// 7. Clients are removed at the end of a step, never while anything walks over them.
//
// Clients with prefixes follow otherwise, because their streams are without number and so have no marks:
//
//  8. An AllHub is a set of streams that at least one client follows. Its clients are at cursors of
//     doorbell.replay_all; those at the same one are a Group. A group is read as one, and encoded as one. One
//     statement, and so one snapshot, reads many groups, also of several hubs.
//  9. One group, live, is always there, even without clients. It begins at the high water, and is where "now" is. It
//     need not wait for the listener: when that becomes live, `*` wakes the hub.
// 10. Groups become one when their cursors are equal, and when one statement brought both to the end of a window of the
//     same extent: then they have the same, and either cursor does for both. (One snapshot may open windows of two
//     extents: what waits for an open append in the one does not in the other, if that is rolled back in between.) In
//     the end everybody is in the live group.
// 11. A hub wakes, and all its groups are due, when one of its streams rings, at `*`, and every sweep_interval. A group
//     stays due until it has been brought to the end. When the live group gets events, those that were not read by the
//     same statement are due, because a ring of what it has is not heard any more. What rang and was not reached is
//     asked for again (agenda.hpp).
// 12. A client whose buffer is full leaves its group for where it was stopped, and rests until it has drained to half.
//     Then it goes on with pages that are kept, if there are any that continue its cursor, or joins a group.
// 13. The server refuses a cursor of another history, and with it the statement. So groups are read alone until their
//     cursor has been accepted on this connection: those from outside, and all after a reconnect. Who is refused gets
//     a reset and goes on from the beginning. (A malformed one is treated like that too: with the next event the
//     browser has a good one, whereas a closed connection would come back with the same for ever.)
#pragma once

#include <doorbell/backoff.hpp>
#include <doorbell/high_water.hpp>
#include <doorbell/streamer.hpp>

#include "agenda.hpp"
#include "connection.hpp"
#include "history.hpp"
#include "process.hpp"
#include "sse_batch.hpp"
#include "sse_socket.hpp"
#include "stream_set.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>

namespace doorbell {

class Streamer::Impl {
public:
	explicit Impl(StreamerOptions options);
	~Impl();

	void add(int fd, SseRequest request);
	std::size_t poll(milliseconds timeout);
	std::vector<Descriptor> descriptors() const;
	Clock::time_point deadline() const;
	bool wants_reader() const { return !starting_.empty() || !behind_.empty() || !all_hubs_.empty(); }
	bool is_shut_down() const noexcept { return draining_ && clients_.empty(); }

	StreamerStats stats_;
	SubscriberStats subscriber_stats_;	   // the last ones, when there is no subscriber any more
	std::optional<Subscriber> subscriber_; // until shutdown
	std::atomic<bool> stop_{false};
	std::atomic<bool> shut_down_{false};
	std::atomic<std::size_t> connections_{0};
	detail::Waker waker_;
	const std::string no_error_;

private:
	struct Hub;
	struct Client;
	struct Subscription {
		enum class State { starting, behind, live };
		Client *client;
		Hub *hub;
		Mark mark;
		Start start;
		State state = State::starting;
	};

	struct Page { // all events of a stream in (asked, its last one]
		Mark asked;
		detail::SseBatch events;
	};

	struct Hub {
		std::string stream;
		std::set<Subscription *> subscriptions;
		std::optional<Mark> mark;							  // empty: unsettled
		detail::SseBatch batch;								  // not broadcast yet
		std::vector<std::weak_ptr<Page>> pages;				  // kept
		Clock::time_point read_at = Clock::time_point::min(); // not before, when the last read led nowhere
	};

	struct AllPage { // what follows a cursor
		std::string asked;
		std::string end; // the cursor behind it
		detail::SseBatch rows;

		const std::string &cursor(std::size_t given) const // of who has so many rows
		{
			return given == 0 ? asked : given == rows.size() ? end : rows.cursor(given - 1);
		}
	};

	struct Group {
		std::set<Client *> clients;
		bool due = true;
		bool accepted = false;		  // the cursor, by the server, on this connection
		std::uint64_t last_asked = 0; // in which statement
	};

	struct AllHub {
		AllHub(detail::StreamSet set, milliseconds sweep_interval);

		const detail::StreamSet streams;
		const std::string prefix; // that all of them have
		std::size_t clients = 0;
		std::map<std::string, Group, std::less<>> groups; // by cursor, "": the beginning
		std::optional<std::string> live;				  // the cursor of the live group
		std::set<Client *> starting;					  // wait for it
		std::vector<std::weak_ptr<AllPage>> pages;		  // kept

		bool awake = false; // by `*`
		Clock::time_point sweep_at = Clock::time_point::min();
		detail::Agenda rings;
		std::map<std::string, std::int64_t, std::less<>> reached; // seqs that the live group got lately
		std::map<std::string, std::int64_t> asked; // rings that are being answered: what was reached then
	};

	struct Kept {
		std::shared_ptr<void> page;
		std::size_t bytes = 0;
		Clock::time_point until;
	};

	struct Client {
		Client(std::uint64_t number, int fd) : id(number), socket(fd) {}
		std::uint64_t id;
		detail::SseSocket socket;
		SseRequest request;
		std::vector<std::unique_ptr<Subscription>> subscriptions; // in the order of the request
		std::size_t unstarted = 0;

		std::shared_ptr<AllHub> all; // of a client with prefixes, which has no subscriptions
		Group *group = nullptr;		 // null: it is starting, or rests
		std::string cursor;			 // where it rests
		std::weak_ptr<AllPage> page; // and in which page, if that is still kept
		std::size_t given = 0;		 // of that page

		bool blocked = false;
		bool dirty = false; // to be flushed
		bool gone = false;
		bool closing = false; // once all is written
		Clock::time_point last_write;
		Clock::time_point last_event;
		std::optional<Clock::time_point> stalled_since; // no progress while something waits
		std::multimap<Clock::time_point, Client *>::iterator timer;

		bool is_ready() const { return unstarted == 0 && !gone && !closing; }
	};

	struct CatchUp {
		enum class Kind { none, survey, read, high_water, read_groups };
		Kind kind = Kind::none;
		std::vector<std::pair<std::string, Mark>> positions;				 // read
		std::vector<std::pair<std::shared_ptr<AllHub>, std::string>> groups; // read_groups: hubs and cursors
		int limit = 0;														 // read_groups: of each
	};

	// The loop (streamer.cpp)
	void step();
	void begin_drain();
	Handlers handlers();
	void admit_waiting();
	void admit(int fd, SseRequest request);
	void watch_sockets();

	// Hubs (streamer_hubs.cpp)
	void follow(Client &client, std::string_view stream, Start start);
	void settle_hubs();
	void broadcast();
	void arrived(const Event &event);

	// Clients (streamer_clients.cpp)
	static detail::Form form_of(const Client &client);
	bool deliver(Subscription &subscription, detail::SseBatch &batch);
	std::size_t give_shared(Client &client, detail::SseBatch &batch, std::size_t first);
	std::size_t give_with_own_ids(Subscription &subscription, detail::SseBatch &batch, std::size_t first);
	void count_given(Client &client, const detail::SseBatch &batch, std::size_t first, std::size_t end);
	std::size_t room(const Client &client) const;
	bool has_drained(const Client &client) const;
	void started(Subscription &subscription, Mark mark, Subscription::State state);
	void tell_gap(Subscription &subscription, std::int64_t low_water);
	void tell_reset(Subscription &subscription, std::int64_t low_water);
	void push(Client &client, std::string text);
	void mark_dirty(Client &client);
	void flush_dirty();
	void flush(Client &client);
	void leave(Client &client);
	void remove_gone();
	void unfollow(Client &client);
	void close_politely(Client &client);
	void run_timers();
	void look_at(Client &client, Clock::time_point now);
	void set_timer(Client &client, Clock::time_point at);
	Clock::time_point due(const Client &client) const;

	// Catching up (streamer_catch_up.cpp)
	void advance_catch_up();
	void ask_catch_up();
	bool ask_survey();
	bool ask_read();
	void send(CatchUp request, const char *sql, const detail::Params &params);
	void catch_up_failed(const Error &error);
	void surveyed(const detail::Result &result);
	void read(const CatchUp &request, const detail::Result &result);
	bool give_page(Hub &hub, Mark asked, detail::SseBatch &batch, std::int64_t low_water);
	void give_kept();
	bool can_take_page(const Subscription &subscription) const;
	static std::shared_ptr<Page> kept_page(const Subscription &subscription);
	void give(Subscription &subscription, detail::SseBatch &batch);
	void keep(std::shared_ptr<void> page, std::size_t bytes);
	template <typename Any>
	void keep(std::vector<std::weak_ptr<Any>> &pages, const std::shared_ptr<Any> &page, std::size_t bytes)
	{
		constexpr std::size_t most = 32;
		if (bytes > most_kept_bytes)
			return;
		if (pages.size() >= most)
			pages.erase(pages.begin());
		pages.push_back(page);
		keep(page, bytes);
	}
	void drop_old_pages();
	static constexpr std::size_t most_kept_bytes = 8 * 1024 * 1024;

	// Prefixes: who is where (streamer_all.cpp)
	void follow_all(Client &client);
	void unfollow_all(Client &client);
	void join(Client &client, const std::string &cursor);
	void rest(Client &client, std::string cursor);
	void give_group(AllHub &hub, Group &group, const std::shared_ptr<AllPage> &page);
	void give_rested();
	void go_on(Client &client);
	void move_group(AllHub &hub, const std::string &from, const std::string &to);
	void reset_group(AllHub &hub, const std::string &cursor);

	// Prefixes: reading (streamer_all_reads.cpp)
	void on_ring(const Pointer &pointer);
	void wake_hubs();
	Clock::time_point wakes_at() const;
	bool ask_high_water();
	bool ask_groups();
	void high_water_found(const detail::Result &result);
	void groups_read(const CatchUp &request, const detail::Result &result);
	void group_read(AllHub &hub, const std::shared_ptr<AllPage> &page, int rows, int limit);
	void live_read(AllHub &hub, const detail::SseBatch &rows, bool complete);
	void refused(const CatchUp &request, const Error &error);
	void distrust_cursors();

	detail::Creator creator_;
	StreamerOptions options_;
	int epoll_;
	std::map<std::string, Hub, std::less<>> hubs_;
	std::map<detail::StreamSet, std::shared_ptr<AllHub>> all_hubs_;
	std::unordered_map<std::uint64_t, std::unique_ptr<Client>> clients_;
	std::uint64_t next_id_ = 1;
	std::vector<Client *> dirty_;
	std::vector<std::uint64_t> gone_;
	std::set<Hub *> unsettled_;
	std::set<Hub *> live_;				// with events to broadcast
	std::set<Subscription *> starting_; // with a mark to be surveyed
	std::set<Subscription *> behind_;
	std::set<Client *> resting_;
	bool drained_ = false; // perhaps a resting client can go on
	HighWater reported_;   // what arrived live, while there are AllHubs: several may bring the same event
	std::multimap<Clock::time_point, Client *> timers_;
	std::minstd_rand random_{std::random_device{}()};
	bool draining_ = false;
	std::size_t delivered_ = 0; // in this poll()

	detail::Connection reader_;
	std::size_t reader_turn_ = 1; // the Subscriber begins with 0
	Backoff backoff_;
	Clock::time_point retry_at_ = Clock::time_point::min();
	Clock::time_point read_at_ = Clock::time_point::max(); // the earliest of those of hubs with someone behind
	CatchUp request_;									   // in flight
	std::deque<Kept> kept_;								   // the oldest first
	std::size_t kept_bytes_ = 0;
	int limit_;		  // events of the next read
	int group_limit_; // rows of the next read of groups, of all together
	std::uint64_t group_reads_ = 0;
	bool groups_were_read_ = false; // last, so hubs are next
	bool asked_alone_ = false;		// a group, last

	mutable std::mutex inbox_mutex_;
	std::vector<std::pair<int, SseRequest>> inbox_;
	bool inbox_closed_ = false;
};

} // namespace doorbell
