// The inside of Streamer (streamer.hpp says what it promises).
//
// 1. A hub is a stream that at least one connection follows: its live mark, its subscriptions, and the events that came
//    since the last broadcast. One Subscriber follows all hubs, each from the high water it had when it was made; until
//    that is known the hub is unsettled.
// 2. A subscription is a client in a hub: a mark, which only delivery moves, and a state:
//    - starting: what its mark is worth is not known yet (the hub is unsettled, or the mark is to be surveyed);
//    - behind: events lie between its mark and the hub's. It reads the table;
//    - live: it has all that the hub had. It gets what the hub broadcasts.
//    A client is given nothing before all its named subscriptions have started, because its cursor needs all marks.
// 3. Catching up: one request is in flight. A survey judges the marks of starting subscriptions. A read takes a page of
//    each hub that has subscriptions behind, from the lowest of their marks, and gives it to all of them that it fits;
//    who then is at the hub's mark, or beyond it, is live. (A live subscription may be beyond: it skips what it had.)
//    What was read is kept for one sweep interval, which is how old anything here may be: those who come back later to
//    the same place, or who are slower, get it without another read.
// 4. Delivery stops in the middle of a run of events when buffer_bytes are full: the subscription is behind.
// 5. One epoll descriptor watches all sockets, edge-triggered, so a blocked client costs nothing until it is writable.
// 6. A client has one timer, at the earliest of what may be due; it is looked at lazily: writes do not move it.
// 7. Clients are removed at the end of a step, never while anything walks over them.
#pragma once

#include <doorbell/backoff.hpp>
#include <doorbell/streamer.hpp>

#include "connection.hpp"
#include "history.hpp"
#include "process.hpp"
#include "sse_batch.hpp"
#include "sse_socket.hpp"

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
		bool counted = false; // among the client's unstarted ones
	};

	struct Page { // all events of a stream in (asked, its last one]
		std::uint64_t number = 0;
		Mark asked;
		detail::SseBatch events;
	};

	struct KeptPage { // of a hub that may have gone meanwhile
		std::uint64_t number = 0;
		std::string stream;
		std::size_t bytes = 0;
		Clock::time_point until;
	};

	struct Hub {
		std::string stream;
		std::set<Subscription *> subscriptions;
		bool named = false;									  // the Subscriber follows it by name, too
		std::optional<Mark> mark;							  // empty: unsettled
		detail::SseBatch batch;								  // not broadcast yet
		std::vector<Page> pages;							  // kept
		Clock::time_point read_at = Clock::time_point::min(); // not before, when the last read led nowhere
	};

	struct Client {
		Client(std::uint64_t number, int fd) : id(number), socket(fd) {}
		std::uint64_t id;
		detail::SseSocket socket;
		SseRequest request;
		std::vector<std::unique_ptr<Subscription>> subscriptions; // the named ones first, in their order
		std::size_t unstarted = 0;
		std::vector<std::string> undiscovered; // prefixes whose present streams are not known yet
		std::set<const Hub *> hubs;			   // of a client with prefixes, to find them quickly
		bool blocked = false;
		bool dirty = false; // to be flushed
		bool gone = false;
		bool closing = false; // once all is written
		Clock::time_point last_write;
		Clock::time_point last_event;
		std::optional<Clock::time_point> stalled_since; // no progress while something waits
		std::multimap<Clock::time_point, Client *>::iterator timer;

		std::size_t named() const { return request.streams.size(); }
		bool has_cursor() const { return request.prefixes.empty(); }
		bool is_ready() const { return unstarted == 0 && !gone && !closing; }
	};

	struct CatchUp {
		enum class Kind { none, survey, discover, read };
		Kind kind = Kind::none;
		std::vector<std::pair<std::string, Mark>> positions; // read
		std::string prefix;									 // discover
	};

	// The loop (streamer.cpp)
	void step();
	void begin_drain();
	Handlers handlers();
	void admit_waiting();
	void admit(int fd, SseRequest request);
	void watch_sockets();

	// Hubs (streamer_hubs.cpp)
	void follow_named(Client &client, std::string_view stream, Start start);
	void follow_found(Client &client, std::string_view stream, Start start, std::optional<Mark> live);
	Subscription &subscribe(Client &client, Hub &hub, Start start);
	void settle_hubs();
	void broadcast();

	// Clients (streamer_clients.cpp)
	detail::Form form_of(const Client &client) const;
	bool deliver(Subscription &subscription, detail::SseBatch &batch);
	void count_event(Client &client, std::size_t events);
	void started(Subscription &subscription, Mark mark, Subscription::State state);
	void tell_gap(Subscription &subscription, std::int64_t low_water);
	void tell_reset(Subscription &subscription, std::int64_t low_water);
	void push(Client &client, std::string text);
	void mark_dirty(Client &client);
	void flush_dirty();
	void flush(Client &client);
	void leave(Client &client);
	void remove_gone();
	void close_politely(Client &client);
	void run_timers();
	void look_at(Client &client, Clock::time_point now);
	void set_timer(Client &client, Clock::time_point at);
	Clock::time_point due(const Client &client) const;

	// Catching up (streamer_catch_up.cpp)
	void advance_catch_up();
	void ask_catch_up();
	bool ask_survey();
	bool ask_discover();
	bool ask_read();
	void send(CatchUp request, const char *sql, const detail::Params &params);
	void catch_up_failed(const Error &error);
	void surveyed(const detail::Result &result);
	void discovered(const detail::Result &result);
	void read(const detail::Result &result);
	bool give_page(Hub &hub, Mark asked, detail::SseBatch &batch, std::int64_t low_water);
	void keep_page(Hub &hub, Mark asked, detail::SseBatch batch);
	void drop_old_pages();
	void give_kept();
	bool can_take_page(const Subscription &subscription) const;
	static Page *kept_page(const Subscription &subscription);
	void give(Subscription &subscription, detail::SseBatch &batch);

	detail::Creator creator_;
	StreamerOptions options_;
	int epoll_;
	std::map<std::string, Hub, std::less<>> hubs_;
	std::map<std::string, std::set<Client *>, std::less<>> prefixes_;
	std::unordered_map<std::uint64_t, std::unique_ptr<Client>> clients_;
	std::uint64_t next_id_ = 1;
	std::vector<Client *> dirty_;
	std::vector<std::uint64_t> gone_;
	std::set<Hub *> unsettled_;
	std::set<Hub *> live_;				// with events to broadcast
	std::set<Subscription *> starting_; // with a mark to be surveyed
	std::set<Subscription *> behind_;
	std::set<Client *> undiscovered_;
	std::multimap<Clock::time_point, Client *> timers_;
	std::minstd_rand random_{std::random_device{}()};
	bool draining_ = false;
	std::size_t delivered_ = 0; // in this poll()

	detail::Connection reader_;
	Backoff backoff_;
	Clock::time_point retry_at_ = Clock::time_point::min();
	Clock::time_point read_at_ = Clock::time_point::max(); // the earliest of those of hubs with someone behind
	CatchUp request_;									   // in flight
	std::deque<KeptPage> kept_;							   // the oldest first
	std::size_t kept_bytes_ = 0;
	std::uint64_t next_page_ = 1;
	int limit_; // events of the next read

	mutable std::mutex inbox_mutex_;
	std::vector<std::pair<int, SseRequest>> inbox_;
	bool inbox_closed_ = false;
};

} // namespace doorbell
