#include "replay_dsns.hpp"

#include <algorithm>
#include <random>

namespace command {

void add_replay_dsns(CLI::App &app, std::vector<std::string> &dsns)
{
	app.add_option("--replay-dsn", dsns,
				   "a read replica to read from, while --dsn only listens; may be repeated: reads are shared, and one "
				   "that is down is passed over")
		->option_text("DSN")
		->allow_extra_args(false);
}

std::vector<std::string> shuffled(std::vector<std::string> dsns)
{
	std::shuffle(dsns.begin(), dsns.end(), std::minstd_rand(std::random_device{}()));
	return dsns;
}

} // namespace command
