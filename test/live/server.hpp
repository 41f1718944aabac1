// A private PostgreSQL for the live tests, and a plain session to it.
//
// 1. The programs come from PG_BINDIR, else from `pg_config --bindir`; the extension must be installed there. Whatever
//    is missing fails the test.
// 2. A server lives in a temporary folder, listens on a socket there and, for TCP tests, on a port of 127.0.0.1. It is
//    a child of the test process and dies with it. Started by root, it runs as the user postgres.
// 3. The tests share one primary (`primary()`); each has a database of its own, so that no ring of another reaches it.
//    It is not durable (fsync off): nothing here pulls the plug of the machine.
// 4. With RING_MODE=worker in the environment, servers preload the extension, so that the ringer rings instead of the
//    committing session. All tests run in both modes.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace live {

bool rings_by_worker();
int free_port(); // of the loopback address

class Server {
public:
	Server();										 // a new cluster, started
	explicit Server(const std::string &primary_dsn); // a hot standby of another one, started
	~Server();
	Server(const Server &) = delete;
	Server &operator=(const Server &) = delete;

	std::string dsn(const std::string &database) const; // by the socket
	std::string tcp_dsn(const std::string &database) const;
	int port() const { return port_; }

	void start(const std::vector<std::string> &settings = {}); // returns as soon as the process runs
	void stop(int signal);									   // SIGINT: fast, SIGQUIT: immediate
	void await();											   // until it answers
	void promote();
	void become_standby(); // at the next start, until promoted

private:
	std::string folder_;
	int port_;
	pid_t pid_ = -1;
};

Server &primary();

// A session that waits for its answers. Failures of SQL end the test by an exception.
class Session {
public:
	explicit Session(const std::string &dsn);

	using Rows = std::vector<std::vector<std::string>>; // as text, null as an empty one

	Rows rows(const std::string &sql);				// of the last statement
	std::string operator()(const std::string &sql); // its first value

private:
	std::unique_ptr<PGconn, void (*)(PGconn *)> conn_;
};

// A new database of the primary with the extension, dropped at the end.
class Database {
public:
	Database();
	~Database();

	const std::string &name() const { return name_; }
	std::string dsn(const std::string &application = "test") const;
	std::string tcp_dsn(int port, const std::string &application = "test") const;
	int sessions(const std::string &application) const; // how many there are
	int kill(const std::string &application) const;		// ends them, waits until they are gone; how many there were

private:
	std::string name_;
};

} // namespace live
