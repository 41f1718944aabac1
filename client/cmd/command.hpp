// The command `doorbell`: one file per subcommand, each of which declares its arguments and leaves what to do in `run`.
//
// 1. main.cpp parses, runs, and turns what is thrown into one line on stderr and an exit status (below).
// 2. Results go to stdout, in lines that a program can read; everything that is said to people goes to stderr.
// 3. SIGINT and SIGTERM do not kill: they make interrupt().is_pending() true, and whoever works or waits ends in order.
#pragma once

#include <doorbell/connect.hpp>

#include <CLI/CLI.hpp>

#include <functional>

namespace command {

enum ExitStatus {
	succeeded = 0,
	failed = 1,	   // the server refused, the connection failed, a file could not be read
	misused = 2,   // wrong arguments: nothing was done
	conflict = 3,  // --expected-seq was not the stream's last seq: nothing was stored
	overtaken = 4, // another process works under the same --consumer, and is further on
};

struct Command {
	doorbell::ConnectOptions connect;
	std::function<int()> run; // of the subcommand that was given; returns the exit status
};

void add_append(CLI::App &app, Command &command);
void add_import(CLI::App &app, Command &command);
void add_replay(CLI::App &app, Command &command);
void add_tail(CLI::App &app, Command &command);
void add_status(CLI::App &app, Command &command);
void add_doctor(CLI::App &app, Command &command);
void add_serve(CLI::App &app, Command &command);
void add_describe(CLI::App &app, Command &command); // hidden: what the build makes the man page from

// Says something to people: one line on stderr, "doorbell: ...".
void say(const std::string &text);

} // namespace command
