// Many SSE connections beside a publisher, and what arrived on them, as one line of JSON:
//   sse_load --connections=1000 127.0.0.1:8080 '/v1/streams/{n}' sse_publish doorbell
//
// 1. All connections are opened, a few at a time; {n} in the path is the number of the stream, 1 to --streams in turn.
//    A connection that is refused, or answered other than 200, is an error.
// 2. Then the publisher starts, if there is one. What arrives in its first --warm-up seconds is not counted, what
// arrives
//    in the --seconds after that is. Then it is ended.
// 3. --stalled per cent of the connections, evenly spread, stop reading as soon as they are answered, with a receive
//    buffer as small as it gets. They are in no count but `connected`, and the server may close them.
// 4. One thread, and one read per connection that has something. It can take about two million small events per second
//    on its own core; what it cannot take is the server's share of waiting.
// 5. --server=PID: also its resident memory before the first connection and at the end, and the CPU time it used
//    meanwhile.
#include "child.hpp"
#include "sse_reader.hpp"
#include "tcp.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <sys/epoll.h>

namespace {

using bench::fail;
using Clock = std::chrono::steady_clock;

struct Options {
	std::string address;
	std::string path;
	std::size_t connections = 1;
	std::size_t streams = 1;
	double seconds = 2;
	double warm_up = 0.5;
	double stalled = 0;
	int server = 0;
};

std::int64_t wall_clock() // in µs
{
	using namespace std::chrono;
	return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

Clock::time_point after(double seconds)
{
	return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// What a process has used so far.
struct Usage {
	long resident = 0; // kB
	double cpu = 0;	   // seconds
};

Usage usage_of(int pid)
{
	Usage usage;
	if (pid == 0)
		return usage;
	const std::string place = "/proc/" + std::to_string(pid);
	std::ifstream memory(place + "/statm");
	std::ifstream times(place + "/stat");
	long size = 0;
	memory >> size >> usage.resident;
	usage.resident *= sysconf(_SC_PAGESIZE) / 1024;
	std::string skipped;
	std::getline(times, skipped, ')'); // the name may hold spaces
	for (int field = 3; field < 14; field++)
		times >> skipped;
	long user = 0;
	long system = 0;
	if (!(times >> user >> system))
		throw std::runtime_error("there is no process " + std::to_string(pid));
	usage.cpu = static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
	return usage;
}

class Load {
public:
	explicit Load(const Options &options)
		: options_(options), address_(options.address), epoll_(epoll_create1(EPOLL_CLOEXEC))
	{
		buffer_.resize(256 * 1024);
		if (options.stalled > 0)
			stalls_every_ = static_cast<std::size_t>(100 / options.stalled);
	}

	void connect_all()
	{
		constexpr std::size_t at_once = 100; // not answered yet
		const auto deadline = after(60);
		while (counts_.connected < options_.connections) {
			while (connections_.size() < options_.connections &&
				   connections_.size() - static_cast<std::size_t>(counts_.connected) < at_once)
				open();
			work_until(after(0.1), counts_.connected + 1);
			if (closed_ > 0)
				throw std::runtime_error("a connection was closed before all were connected");
			if (Clock::now() > deadline)
				throw std::runtime_error("only " + std::to_string(counts_.connected) + " connections were answered");
		}
	}

	void measure(char **publisher)
	{
		const bench::ChildSignal ended;
		std::optional<bench::Child> child;
		if (publisher[0] != nullptr) {
			child.emplace(publisher, ended.mask_before());
			watch(ended.descriptor(), nullptr);
		}
		work_until(after(options_.warm_up));
		const Usage before = usage_of(options_.server);
		counts_.counting = true;
		const auto begin = Clock::now();
		work_until(after(options_.seconds));
		elapsed_ = std::chrono::duration<double>(Clock::now() - begin).count();
		counts_.counting = false;
		cpu_ = usage_of(options_.server).cpu - before.cpu;
	}

	void report(long resident_before)
	{
		const auto starved = std::count_if(connections_.begin(), connections_.end(), [](const Connection &connection) {
			return !connection.stalls && connection.reader.last() < 0;
		});
		std::printf(
			"{\"connected\": %llu, \"events\": %llu, \"per_second\": %.1f, \"p50\": %u, \"p99\": %u, \"max\": %u, "
			"\"bytes\": %llu, \"missed\": %llu, \"doubled\": %llu, \"starved\": %lld, \"closed\": %llu, "
			"\"cpu\": %.2f, \"resident_before\": %ld, \"resident\": %ld}\n",
			number(counts_.connected), number(counts_.events), static_cast<double>(counts_.events) / elapsed_,
			latency(0.5), latency(0.99), latency(1), number(counts_.bytes), number(counts_.missed),
			number(counts_.doubled), static_cast<long long>(starved), number(closed_), cpu_, resident_before,
			usage_of(options_.server).resident);
	}

private:
	struct Connection {
		explicit Connection(int fd) : socket(fd) {}
		bench::Socket socket;
		bool stalls = false;
		bench::SseReader reader;
	};

	static unsigned long long number(std::uint64_t value) { return value; }

	unsigned latency(double quantile)
	{
		std::vector<std::uint32_t> &all = counts_.latencies;
		if (all.empty())
			return 0;
		const auto rank = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(all.size() - 1));
		std::nth_element(all.begin(), all.begin() + rank, all.end());
		return all[static_cast<std::size_t>(rank)];
	}

	void watch(int fd, Connection *connection)
	{
		epoll_event event = {};
		event.events = EPOLLIN;
		event.data.ptr = connection;
		if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0)
			fail(errno, "epoll_ctl");
	}

	void open()
	{
		const std::size_t number = connections_.size();
		Connection &connection = connections_.emplace_back(address_.make_socket());
		connection.stalls = stalls_every_ > 0 && number % stalls_every_ == 0;
		const int small = 1;
		if (connection.stalls)
			setsockopt(connection.socket.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
		address_.connect(connection.socket);
		const std::size_t stream = number % options_.streams + 1;
		connection.socket.send(address_.sse_request(bench::path_of(options_.path, stream)));
		watch(connection.socket.fd(), &connection);
	}

	void work_until(Clock::time_point end, std::uint64_t wanted = UINT64_MAX)
	{
		epoll_event events[512];
		for (auto now = Clock::now(); now < end && counts_.connected < wanted; now = Clock::now()) {
			const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - now).count();
			const int count = epoll_wait(epoll_, events, 512, static_cast<int>(left) + 1);
			if (count < 0 && errno != EINTR)
				fail(errno, "epoll_wait");
			for (int i = 0; i < count; i++) {
				if (events[i].data.ptr == nullptr)
					throw std::runtime_error("the publisher ended");
				read(*static_cast<Connection *>(events[i].data.ptr));
			}
		}
	}

	void read(Connection &connection)
	{
		const ssize_t got = recv(connection.socket.fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
		if (got < 0 && errno == EAGAIN)
			return;
		if (got > 0)
			connection.reader.take({buffer_.data(), static_cast<std::size_t>(got)}, wall_clock(), counts_);
		if (got <= 0)
			closed_++;
		if (got <= 0 || (connection.stalls && connection.reader.is_connected()))
			epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.socket.fd(), nullptr);
	}

	const Options &options_;
	bench::Address address_;
	int epoll_;
	std::string buffer_;
	std::deque<Connection> connections_;
	std::size_t stalls_every_ = 0; // 0: none
	bench::SseCounts counts_;
	std::uint64_t closed_ = 0;
	double elapsed_ = 0;
	double cpu_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
	try {
		Options options;
		CLI::App app("Opens SSE connections beside a publisher and says what arrived.");
		app.add_option("--connections", options.connections);
		app.add_option("--streams", options.streams);
		app.add_option("--seconds", options.seconds);
		app.add_option("--warm-up", options.warm_up);
		app.add_option("--stalled", options.stalled, "per cent of the connections");
		app.add_option("--server", options.server, "its process id");
		app.add_option("address", options.address)->required();
		app.add_option("path", options.path)->required();
		app.prefix_command();
		CLI11_PARSE(app, argc, argv);
		const Usage before = usage_of(options.server);
		Load load(options);
		load.connect_all();
		load.measure(argv + argc - app.remaining_size());
		load.report(before.resident);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "sse_load: %s\n", error.what());
		return 1;
	}
	return 0;
}
