// Follows streams and prints what happens:  follow "dbname=shop" orders:1 orders:2
#include <doorbell/doorbell.hpp>

#include <csignal>
#include <iostream>

static doorbell::Subscriber *running = nullptr;

int main(int argc, char **argv)
{
	if (argc < 3) {
		std::cerr << "usage: follow DSN STREAM...\n";
		return 2;
	}

	doorbell::SubscriberOptions options;
	options.connect.dsn = argv[1];

	doorbell::Handlers handlers;
	handlers.on_event = [](const doorbell::Event &event) { std::cout << format_envelope(event) << std::endl; };
	handlers.on_gap = [](const doorbell::Gap &gap) {
		std::cerr << gap.stream << ": events up to " << gap.low_water << " were trimmed away\n";
	};
	handlers.on_reset = [](const doorbell::Reset &reset) {
		std::cerr << reset.stream << ": this is another history, starting again\n";
	};

	try {
		doorbell::Subscriber subscriber(options, handlers);
		for (int i = 2; i < argc; i++)
			subscriber.follow(argv[i], doorbell::Start::beginning());

		running = &subscriber;
		std::signal(SIGINT, [](int) { running->stop(); });
		subscriber.run(); // until Ctrl-C
		std::signal(SIGINT, SIG_DFL);
	} catch (const std::exception &error) {
		std::cerr << "follow: " << error.what() << '\n';
		return 1;
	}
	return 0;
}
