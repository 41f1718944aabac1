#include "server.hpp"

#include "wait_for.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <pwd.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace live {
namespace {

std::string bindir()
{
	if (const char *given = std::getenv("PG_BINDIR"))
		return given;
	FILE *pipe = ::popen("pg_config --bindir", "r");
	char line[1024] = {};
	const bool read = pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr;
	if (pipe != nullptr)
		::pclose(pipe);
	if (!read)
		throw std::runtime_error("no PostgreSQL: set PG_BINDIR");
	std::string path = line;
	return path.substr(0, path.find('\n'));
}

// Starts a program of PostgreSQL, as the user postgres when we are root, its output going to `log`.
pid_t spawn(const std::vector<std::string> &command, const std::string &log)
{
	std::vector<char *> argv;
	for (const std::string &word : command)
		argv.push_back(const_cast<char *>(word.c_str()));
	argv.push_back(nullptr);
	const passwd *user = ::getuid() == 0 ? ::getpwnam("postgres") : nullptr;
	if (::getuid() == 0 && user == nullptr)
		throw std::runtime_error("started by root, but there is no user postgres to run the server");

	const pid_t pid = ::fork();
	if (pid != 0)
		return pid;
	const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
	::dup2(out, 1);
	::dup2(out, 2);
	if (user != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0))
		::_exit(126);
	::prctl(PR_SET_PDEATHSIG, SIGQUIT);
	::execv(argv[0], argv.data());
	::_exit(127);
}

void run(const std::vector<std::string> &command, const std::string &log)
{
	int status = 0;
	::waitpid(spawn(command, log), &status, 0);
	if (status != 0) {
		std::ifstream text(log);
		throw std::runtime_error(command[0] + " failed:\n" + std::string(std::istreambuf_iterator<char>(text), {}));
	}
}

std::string new_folder()
{
	char path[] = "/tmp/doorbell-live-XXXXXX";
	if (::mkdtemp(path) == nullptr)
		throw std::runtime_error("could not make a temporary folder");
	if (::getuid() == 0) {
		const passwd *user = ::getpwnam("postgres");
		if (user == nullptr || ::chown(path, user->pw_uid, user->pw_gid) != 0)
			throw std::runtime_error("could not give a folder to the user postgres");
	}
	return path;
}

} // namespace

int free_port()
{
	const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t length = sizeof address;
	if (::bind(fd, reinterpret_cast<sockaddr *>(&address), length) != 0 ||
		::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) != 0)
		throw std::runtime_error("no free port");
	::close(fd);
	return ntohs(address.sin_port);
}

bool rings_by_worker()
{
	const char *mode = std::getenv("RING_MODE");
	return mode != nullptr && std::string(mode) == "worker";
}

Server::Server() : folder_(new_folder()), port_(free_port())
{
	run({bindir() + "/initdb", "-D", folder_ + "/data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C",
		 "-N"},
		folder_ + "/log");
	start();
	await();
}

Server::Server(const std::string &primary_dsn) : folder_(new_folder()), port_(free_port())
{
	run({bindir() + "/pg_basebackup", "-D", folder_ + "/data", "-R", "-X", "stream", "--no-sync", "-c", "fast", "-d",
		 primary_dsn},
		folder_ + "/log");
	start();
	await();
}

Server::~Server()
{
	stop(SIGQUIT);
	std::error_code ignored;
	std::filesystem::remove_all(folder_, ignored);
}

std::string Server::dsn(const std::string &database) const
{
	return "host=" + folder_ + " port=" + std::to_string(port_) + " user=postgres dbname=" + database;
}

std::string Server::tcp_dsn(const std::string &database) const
{
	return "host=127.0.0.1 port=" + std::to_string(port_) + " user=postgres dbname=" + database;
}

void Server::start(const std::vector<std::string> &settings)
{
	std::vector<std::string> command{bindir() + "/postgres",
									 "-D",
									 folder_ + "/data",
									 "-p",
									 std::to_string(port_),
									 "-k",
									 folder_,
									 "-h",
									 "127.0.0.1",
									 "-F",
									 "-c",
									 "wal_retrieve_retry_interval=10ms", // a promotion may wait for it
									 "-c",
									 "full_page_writes=off",
									 "-c",
									 "autovacuum=off"};
	if (rings_by_worker())
		command.insert(command.end(), {"-c", "shared_preload_libraries=pg_doorbell"});
	for (const std::string &setting : settings) {
		command.push_back("-c");
		command.push_back(setting);
	}
	pid_ = spawn(command, folder_ + "/log");
}

void Server::stop(int signal)
{
	if (pid_ < 0)
		return;
	::kill(pid_, signal);
	::waitpid(pid_, nullptr, 0);
	pid_ = -1;
}

void Server::await()
{
	const std::string dsn = this->dsn("postgres");
	wait_for("the server to answer", [&] {
		if (PQping(dsn.c_str()) == PQPING_OK)
			return true;
		if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
			pid_ = -1;
			std::ifstream text(folder_ + "/log");
			throw std::runtime_error("the server ended:\n" + std::string(std::istreambuf_iterator<char>(text), {}));
		}
		return false;
	});
}

void Server::promote()
{
	std::ofstream(folder_ + "/data/promote").close();
	::kill(pid_, SIGUSR1);
}

void Server::become_standby()
{
	std::ofstream(folder_ + "/data/standby.signal").close();
}

Server &primary()
{
	static Server server;
	return server;
}

Session::Session(const std::string &dsn) : conn_(PQconnectdb(dsn.c_str()), PQfinish)
{
	if (PQstatus(conn_.get()) != CONNECTION_OK)
		throw std::runtime_error(PQerrorMessage(conn_.get()));
}

Session::Rows Session::rows(const std::string &sql)
{
	const std::unique_ptr<PGresult, void (*)(PGresult *)> result(PQexec(conn_.get(), sql.c_str()), PQclear);
	const ExecStatusType status = PQresultStatus(result.get());
	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		throw std::runtime_error(sql + ": " + PQerrorMessage(conn_.get()));
	Rows rows(static_cast<std::size_t>(PQntuples(result.get())));
	for (std::size_t i = 0; i < rows.size(); i++)
		for (int column = 0; column < PQnfields(result.get()); column++)
			rows[i].emplace_back(PQgetvalue(result.get(), static_cast<int>(i), column));
	return rows;
}

std::string Session::operator()(const std::string &sql)
{
	const Rows found = rows(sql);
	return found.empty() ? "" : found[0].at(0);
}

Database::Database()
{
	static int count = 0;
	name_ = "test_" + std::to_string(++count);
	Session(primary().dsn("postgres"))("CREATE DATABASE " + name_ + " TEMPLATE template0");
	Session{dsn()}("CREATE EXTENSION pg_doorbell");
}

Database::~Database()
{
	try {
		Session(primary().dsn("postgres"))("DROP DATABASE " + name_ + " WITH (FORCE)");
	} catch (const std::exception &) {
		// the test stopped the server
	}
}

std::string Database::dsn(const std::string &application) const
{
	return primary().dsn(name_) + " application_name=" + application;
}

std::string Database::tcp_dsn(int port, const std::string &application) const
{
	return "host=127.0.0.1 port=" + std::to_string(port) + " user=postgres dbname=" + name_ +
		   " application_name=" + application;
}

int Database::sessions(const std::string &application) const
{
	return std::stoi(Session(primary().dsn(name_))("SELECT count(*) FROM pg_stat_activity WHERE datname = '" + name_ +
												   "' AND application_name = '" + application + "'"));
}

int Database::kill(const std::string &application) const
{
	const std::string killed = Session(primary().dsn(name_))(
		"SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = '" + name_ +
		"' AND application_name = '" + application + "'");
	return std::stoi(killed);
}

} // namespace live
