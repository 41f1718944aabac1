// A shared object for LD_PRELOAD that makes flushes of the WAL take FLUSH_MS milliseconds longer, so that a local disk
// looks like a volume in the network.
//
// 1. The process sleeps first, then the real call flushes as before: nothing becomes less durable.
// 2. Only files in pg_wal are slow. Data files are flushed by checkpoints, of which there are none while we measure.
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

bool is_wal(int fd)
{
	const std::string link = "/proc/self/fd/" + std::to_string(fd);
	char path[1024];
	const ssize_t length = readlink(link.c_str(), path, sizeof path);
	return length > 0 &&
		   std::string_view(path, static_cast<std::size_t>(length)).find("/pg_wal/") != std::string_view::npos;
}

int slowly(const char *name, int fd)
{
	if (is_wal(fd)) {
		const char *text = std::getenv("FLUSH_MS");
		const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr) / 1000;
		timespec left{};
		left.tv_sec = static_cast<time_t>(seconds);
		left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
		while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
			;
	}
	return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name))(fd);
}

} // namespace

extern "C" {
__attribute__((visibility("default"))) int fsync(int fd)
{
	return slowly("fsync", fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return slowly("fdatasync", fd);
}
}
