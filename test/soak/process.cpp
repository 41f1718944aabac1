#include "process.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace soak {

Process::Process(const std::vector<std::string> &command)
{
	std::vector<char *> argv;
	for (const std::string &word : command)
		argv.push_back(const_cast<char *>(word.c_str()));
	argv.push_back(nullptr);
	int ends[2];
	if (::pipe2(ends, O_CLOEXEC) != 0)
		throw std::runtime_error("could not make a pipe");
	const int err = ::open("soak.stderr", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	pid_ = ::fork();
	if (pid_ == 0) {
		::dup2(ends[1], 1);
		::dup2(err, 2);
		::prctl(PR_SET_PDEATHSIG, SIGKILL);
		::execv(argv[0], argv.data());
		::_exit(127);
	}
	::close(ends[1]);
	::close(err);
	out_ = ends[0];
}

Process::~Process()
{
	end(SIGKILL);
	::close(out_);
}

void Process::end(int signal)
{
	if (pid_ < 0)
		return;
	::kill(pid_, signal);
	::waitpid(pid_, nullptr, 0);
	pid_ = -1;
}

// What there is now; empty after the timeout, and after it, too, where there will never be more.
static std::optional<std::string> read_some(int fd, std::size_t most, milliseconds timeout)
{
	pollfd wait{fd, POLLIN, 0};
	if (::poll(&wait, 1, static_cast<int>(timeout.count())) <= 0)
		return std::string();
	std::string bytes(most, '\0');
	const ssize_t size = ::read(fd, bytes.data(), most);
	if (size <= 0)
		return std::nullopt;
	bytes.resize(static_cast<std::size_t>(size));
	return bytes;
}

std::string Process::read(milliseconds timeout)
{
	std::optional<std::string> bytes = read_some(out_, 65'536, timeout);
	if (bytes)
		return *bytes;
	std::this_thread::sleep_for(timeout); // it has ended
	return {};
}

HttpStream::HttpStream(int port, const std::string &path, const std::string &last_event_id, bool small_buffer)
	: fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
	if (small_buffer) {
		const int size = 4'096;
		::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	}
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(static_cast<in_port_t>(port));
	const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" +
								(last_event_id.empty() ? "" : "Last-Event-ID: " + last_event_id + "\r\n") + "\r\n";
	if (::connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
		(void) ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
}

HttpStream::~HttpStream()
{
	::close(fd_);
}

std::optional<std::string> HttpStream::read(std::size_t most, milliseconds timeout)
{
	std::optional<std::string> bytes = read_some(fd_, most, timeout);
	if (!bytes || in_body_)
		return bytes;
	head_ += *bytes;
	const std::size_t end = head_.find("\r\n\r\n");
	if (end == std::string::npos)
		return std::string();
	if (head_.compare(0, 12, "HTTP/1.1 200") != 0)
		throw std::runtime_error("not what was asked for: " + head_);
	in_body_ = true;
	return head_.substr(end + 4);
}

long memory_of(pid_t pid, const std::string &field)
{
	std::ifstream status("/proc/" + std::to_string(pid) + "/status");
	for (std::string line; std::getline(status, line);)
		if (line.compare(0, field.size(), field) == 0)
			return std::stol(line.substr(field.size()));
	return 0;
}

} // namespace soak
