// The forms in which the command can describe itself.
#pragma once

#include "words.hpp"

#include <iosfwd>
#include <string>

namespace command::describe {

// A manual page, in man(7)'s macros: synopsis and options from the words; what the subcommands do, exit status and
// formats from `text`, which is docs/command.md.
std::string manual(const Words &words, const std::string &version, std::istream &text);

// Completion scripts. None of them asks a server, so they offer subcommands, options, choices and files, no streams.
std::string bash_completion(const Words &words);
std::string zsh_completion(const Words &words);
std::string fish_completion(const Words &words);

} // namespace command::describe
