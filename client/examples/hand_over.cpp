// A server of your own (here Boost.Beast) that hands its sockets to the Streamer:  hand_over "dbname=shop" 8081
// GET /orders:7 is then answered with the events of stream orders:7. Yours would first ask who it is.
#include <doorbell/doorbell.hpp>
#include <doorbell/streamer.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <iostream>
#include <thread>

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

static void serve(tcp::socket socket, doorbell::Streamer &streamer)
{
	boost::beast::flat_buffer buffer;
	http::request<http::empty_body> request;
	http::read(socket, buffer, request); // one client at a time: fine for an example

	http::response<http::empty_body> head(http::status::ok, 11);
	head.set(http::field::content_type, "text/event-stream");
	head.set(http::field::cache_control, "no-cache");
	http::response_serializer<http::empty_body> writer(head);
	http::write_header(socket, writer);

	doorbell::SseRequest follow;
	follow.streams.emplace_back(request.target().substr(1));
	follow.starts.push_back(doorbell::Start::beginning()); // or after(parse_mark(…)) of Last-Event-ID
	const int fd = socket.release();
	try {
		streamer.add(fd, follow); // from here on it is the streamer's
	} catch (...) {
		::close(fd);
		throw;
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		std::cerr << "usage: hand_over DSN PORT\n";
		return 2;
	}
	try {
		boost::asio::io_context io;
		tcp::acceptor acceptor(
			io, {boost::asio::ip::address_v4::loopback(), static_cast<unsigned short>(std::stoi(argv[2]))});
		std::cout << "listening on 127.0.0.1:" << acceptor.local_endpoint().port() << std::endl;
		doorbell::StreamerOptions options;
		options.subscriber.connect.dsn = argv[1];
		doorbell::Streamer streamer(options);
		std::thread thread([&streamer] { streamer.run(); }); // add() is thread-safe

		while (true) {
			try {
				serve(acceptor.accept(), streamer);
			} catch (const std::exception &error) { // of this client; the others go on
				std::cerr << "hand_over: " << error.what() << '\n';
			}
		}
	} catch (const std::exception &error) {
		std::cerr << "hand_over: " << error.what() << '\n';
		return 1;
	}
}
