// Runs a command beside listening sessions, and says what they heard:  listeners 10 doorbell pgbench --time=5
//
// 1. All sessions have LISTEN confirmed before the command starts.
// 2. They take every notification as soon as it arrives and do nothing with it.
// 3. When the command has ended, the last line says how many notifications they got, all together and the one that got
//    the fewest. The exit status is the command's.
#include "connection.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

[[noreturn]] void fail(int error, const char *what)
{
	throw std::system_error(error, std::generic_category(), what);
}

// Tells by a descriptor that a child has ended.
class ChildSignal {
public:
	ChildSignal()
	{
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGCHLD);
		sigprocmask(SIG_BLOCK, &set, &before_);
		fd_ = signalfd(-1, &set, SFD_CLOEXEC);
		if (fd_ < 0)
			fail(errno, "signalfd");
	}
	~ChildSignal() { close(fd_); }
	ChildSignal(const ChildSignal &) = delete;
	ChildSignal &operator=(const ChildSignal &) = delete;

	int descriptor() const noexcept { return fd_; }
	const sigset_t &mask_before() const noexcept { return before_; }

private:
	sigset_t before_{};
	int fd_;
};

// The command; ended with this object if it still runs.
class Child {
public:
	Child(char **command, const sigset_t &mask)
	{
		posix_spawnattr_t attributes;
		posix_spawnattr_init(&attributes);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
		posix_spawnattr_setsigmask(&attributes, &mask);
		const int error = posix_spawnp(&pid_, command[0], nullptr, &attributes, command, environ);
		posix_spawnattr_destroy(&attributes);
		if (error != 0)
			fail(error, command[0]);
	}
	~Child()
	{
		if (pid_ > 0) {
			kill(pid_, SIGTERM);
			wait();
		}
	}
	Child(const Child &) = delete;
	Child &operator=(const Child &) = delete;

	int wait()
	{
		int status = 0;
		waitpid(pid_, &status, 0);
		pid_ = 0;
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}

private:
	pid_t pid_ = 0;
};

int listen_beside(std::size_t count, const std::string &channel, char **command)
{
	std::vector<bench::Connection> sessions;
	std::vector<long> heard(count);
	std::vector<pollfd> descriptors;
	for (std::size_t i = 0; i < count; i++) {
		sessions.push_back(bench::connect());
		bench::checked(sessions[i].get(), PQexec(sessions[i].get(), ("LISTEN " + channel).c_str()));
		descriptors.push_back({PQsocket(sessions[i].get()), POLLIN, 0});
	}
	const ChildSignal ended;
	descriptors.push_back({ended.descriptor(), POLLIN, 0});
	Child child(command, ended.mask_before());
	while (descriptors.back().revents == 0) {
		if (poll(descriptors.data(), descriptors.size(), -1) < 0 && errno != EINTR)
			fail(errno, "poll");
		for (std::size_t i = 0; i < count; i++) {
			if (descriptors[i].revents != 0) {
				bench::read_input(sessions[i].get());
				heard[i] += bench::take_notifications(sessions[i].get());
			}
		}
	}
	const int status = child.wait();
	std::printf("notifications = %ld, fewest %ld\n", std::accumulate(heard.begin(), heard.end(), 0L),
				count == 0 ? 0 : *std::min_element(heard.begin(), heard.end()));
	return status;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 4) {
		std::fputs("usage: listeners COUNT CHANNEL COMMAND...\n", stderr);
		return 2;
	}
	try {
		return listen_beside(std::strtoul(argv[1], nullptr, 10), argv[2], argv + 3);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "listeners: %s\n", error.what());
		return 1;
	}
}
