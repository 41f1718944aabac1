// The words that the command understands, taken from its CLI11 declarations, for manual and completions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace command::describe {

struct Argument {
	std::vector<std::string> names; // "-h", "--help"; of a positional argument its name alone
	std::string value;				// what stands for the value in help texts; empty: a flag
	std::string description;
	std::vector<std::string> choices; // if it takes one of these only
	bool required = false;
	bool repeats = false;

	bool is_file() const { return value == "FILE"; }
};

struct Words {
	std::string name;
	std::string description;
	std::vector<Argument> options; // of a subcommand: its own, without --help
	std::vector<Argument> positionals;
	std::vector<Words> subcommands; // but for hidden ones
};

Words words_of(const CLI::App &app);

} // namespace command::describe
