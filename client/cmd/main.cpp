#include "command.hpp"
#include "interrupt.hpp"

#include <doorbell/doorbell.hpp>

#include <csignal>
#include <exception>
#include <iostream>

namespace command {

void say(const std::string &text)
{
	std::cerr << "doorbell: " + text + '\n';
}

static int run(int argc, char **argv)
{
	Command command;
	CLI::App app("Durable event streams in PostgreSQL: append, replay, follow.", "doorbell");
	app.set_version_flag("--version", std::string("doorbell ") + doorbell::version);
	app.add_option("--dsn", command.connect.dsn, "connection string or URI (default: the PG* variables, as in psql)")
		->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
		->option_text("DSN");
	app.require_subcommand(1);
	app.fallthrough();
	app.footer("Exit status: 0 done, 1 the server refused or could not be reached, 2 wrong arguments,\n"
			   "3 --expected-seq was not the stream's last seq, 4 another process has moved the --consumer on.\n"
			   "Write -- before an argument that begins with a hyphen.");
	add_append(app, command);
	add_import(app, command);
	add_replay(app, command);
	add_tail(app, command);
	add_serve(app, command);
	add_status(app, command);
	add_doctor(app, command);
	add_describe(app, command);

	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &error) {
		return app.exit(error) == 0 ? succeeded : misused;
	}
	return command.run();
}

} // namespace command

int main(int argc, char **argv)
{
	try {
		command::interrupt();
		std::signal(SIGPIPE, SIG_IGN);
		return command::run(argc, argv);
	} catch (const doorbell::Error &error) {
		command::say(error.what());
		return error.is_conflict() ? command::conflict : error.is_overtaken() ? command::overtaken : command::failed;
	} catch (const std::exception &error) {
		command::say(error.what());
		return command::failed;
	}
}
