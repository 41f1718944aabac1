// --replay-dsn: read replicas that share the reads of `tail` and `serve`.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace command {

void add_replay_dsns(CLI::App &app, std::vector<std::string> &dsns);

// In a random order, so that many processes spread over the replicas.
std::vector<std::string> shuffled(std::vector<std::string> dsns);

} // namespace command
