// What `status` and `doctor` find out about a server.
#pragma once

#include <doorbell/log.hpp>

#include <CLI/CLI.hpp>

#include <string>

namespace command {

struct Facts {
	doorbell::ServerStatus server;
	std::string available_version; // of the extension on the server's machine; empty: none
	std::string role;
	bool may_append = false;
	bool may_read = false;
	bool fsync = true;
	bool subscribed = false; // doorbell.event is the target of a logical replication

	int writer_pid = 0; // of the oldest transaction that has written, as far as the role can see
	double writer_seconds = 0;
	std::string prepared; // the oldest prepared transaction
	double prepared_seconds = 0;

	// As far as the role may see them:
	bool has_retention_rules = false;
	bool retention_applied = false; // by the ringer
	std::string slow_consumer;		// the one that is the longest behind
	double slow_consumer_seconds = 0;
};

Facts ask_facts(const doorbell::ConnectOptions &connect); // throws doorbell::Error

// Listens until a ring of our own was heard; else returns why not.
std::string listen(const doorbell::ConnectOptions &connect, double wait_seconds);

void add_wait_option(CLI::App &subcommand, double &wait_seconds);
void add_report_format(CLI::App &subcommand, bool &json);

} // namespace command
