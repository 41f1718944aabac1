// A command that runs beside a measurement, in a process of its own; it is ended with this object if it still runs.
#pragma once

#include <cerrno>
#include <csignal>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace bench {

[[noreturn]] inline void fail(int error, const char *what)
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

} // namespace bench
