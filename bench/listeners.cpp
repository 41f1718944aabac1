// Runs a command beside listening sessions, and says what they heard:  listeners 10 doorbell pgbench --time=5
//
// 1. All sessions have LISTEN confirmed before the command starts.
// 2. They take every notification as soon as it arrives and do nothing with it.
// 3. When the command has ended, the last line says how many notifications they got, all together and the one that got
//    the fewest. The exit status is the command's.
#include "child.hpp"
#include "connection.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <poll.h>
#include <string>
#include <vector>

namespace {

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
	const bench::ChildSignal ended;
	descriptors.push_back({ended.descriptor(), POLLIN, 0});
	bench::Child child(command, ended.mask_before());
	while (descriptors.back().revents == 0) {
		if (poll(descriptors.data(), descriptors.size(), -1) < 0 && errno != EINTR)
			bench::fail(errno, "poll");
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
