// doorbell serve: streams to browsers, over HTTP. Its options; what it does is in serve/server.hpp.
#include "command.hpp"
#include "replay_dsns.hpp"
#include "serve/server.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

namespace command {
namespace {

struct Serve {
	serve::ServerOptions options;
	std::string jwt_key_file;
	std::string jwt_algorithm;
	double header_deadline = 10;
	double heartbeat = 15;
	double idle_timeout = 0;
	double write_deadline = 5;
	double retry = 2;

	int run(const doorbell::ConnectOptions &connect);
	std::string jwt_key() const;
};

doorbell::milliseconds milliseconds_of(double seconds)
{
	return doorbell::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string Serve::jwt_key() const
{
	if (jwt_key_file.empty()) {
		const char *key = std::getenv("DOORBELL_JWT_KEY");
		return key == nullptr ? "" : key;
	}
	std::ifstream file(jwt_key_file, std::ios::binary);
	std::string key((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
	if (!file || key.empty())
		throw std::runtime_error("could not read the JWT key \"" + jwt_key_file + "\", or it is empty");
	return key;
}

int Serve::run(const doorbell::ConnectOptions &connect)
{
	const std::string key = jwt_key();
	if (!key.empty())
		options.routes.auth = std::make_shared<const serve::Auth>(key, jwt_algorithm);
	else if (!jwt_algorithm.empty())
		throw std::runtime_error("--jwt-alg without a key: give --jwt-key or DOORBELL_JWT_KEY");
	options.streamer.subscriber.connect = connect;
	options.streamer.subscriber.read_dsns = shuffled(options.streamer.subscriber.read_dsns);
	options.front.header_time = milliseconds_of(header_deadline);
	options.streamer.heartbeat = milliseconds_of(heartbeat);
	options.streamer.idle_timeout = milliseconds_of(idle_timeout);
	options.streamer.write_deadline = milliseconds_of(write_deadline);
	options.streamer.retry = milliseconds_of(retry);
	return serve::Server(options).run() ? succeeded : failed;
}

} // namespace

void add_serve(CLI::App &app, Command &command)
{
	const auto serve = std::make_shared<Serve>();
	CLI::App *sub = app.add_subcommand("serve", "Serve streams over HTTP as Server-Sent Events, until interrupted");
	serve::ServerOptions &options = serve->options;
	const CLI::Range seconds(0.001, 86400.0);

	sub->add_option("--listen", options.listen, "where to listen (default: 127.0.0.1:8080; port 0 picks one)")
		->option_text("ADDRESS:PORT");
	sub->add_option("--listener-dsn", options.streamer.subscriber.listen_dsn,
					"how the listener connects, if --dsn is a replica or a pooler")
		->option_text("DSN");
	add_replay_dsns(*sub, options.streamer.subscriber.read_dsns);
	sub->add_option("--cors", options.routes.cors, "an origin whose pages may read, or *; may be repeated")
		->option_text("ORIGIN")
		->allow_extra_args(false);
	sub->add_option("--max-connections", options.max_connections, "streaming connections at a time (default: 10000)")
		->check(CLI::PositiveNumber)
		->option_text("N");
	sub->add_option("--max-streams", options.routes.max_streams, "streams that a connection may name (default: 100)")
		->check(CLI::PositiveNumber)
		->option_text("N");

	sub->add_option("--jwt-key", serve->jwt_key_file,
					"file with the key that tokens are verified by: a public key in PEM, or a secret (default: the "
					"environment variable DOORBELL_JWT_KEY, which holds the key itself)")
		->option_text("FILE");
	sub->add_option("--jwt-alg", serve->jwt_algorithm, "HS256, RS256 or EdDSA (default: what a public key is for)")
		->check(CLI::IsMember({"HS256", "RS256", "EdDSA"}))
		->option_text("ALG");
	sub->add_option("--jwt-cookie", options.routes.cookie, "cookie that may hold the token (default: doorbell)")
		->option_text("NAME");
	sub->add_flag("--insecure", options.insecure, "listen on any address without authentication");

	sub->add_option("--header-deadline", serve->header_deadline, "a request must have come after so long (default: 10)")
		->check(seconds)
		->option_text("S");
	sub->add_option("--buffer", options.streamer.buffer_bytes, "bytes that wait for a slow reader (default: 262144)")
		->check(CLI::Range(4096, 1 << 30))
		->option_text("BYTES");
	sub->add_option("--write-deadline", serve->write_deadline,
					"cut a reader that takes nothing for so long (default: 5)")
		->check(seconds)
		->option_text("S");
	sub->add_option("--heartbeat", serve->heartbeat, "a comment after so long without a write (default: 15)")
		->check(seconds)
		->option_text("S");
	sub->add_option("--idle-timeout", serve->idle_timeout, "close what got no event for so long (default: never)")
		->check(seconds)
		->option_text("S");
	sub->add_option("--retry", serve->retry, "browsers reconnect after about so long (default: 2)")
		->check(seconds)
		->option_text("S");
	sub->add_flag("--verbose", options.front.verbose, "a line on stderr for each request");
	sub->callback([serve, &command] { command.run = [serve, &command] { return serve->run(command.connect); }; });
}

} // namespace command
