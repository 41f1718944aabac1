// The connection beneath Listener, Subscriber and Log.
#include "connection.hpp"
#include "follower.hpp"
#include "relay.hpp"
#include "wait.hpp"

namespace live {
namespace {

using doorbell::detail::Connection;
using Status = Connection::Status;

struct ConnectionTest : LiveTest {
	void advance_until(Status status)
	{
		wait_for("the connection", [&] {
			connection.advance();
			return connection.status() == status;
		});
	}

	doorbell::ConnectOptions options() const
	{
		doorbell::ConnectOptions options;
		options.dsn = database.tcp_dsn(relay.port(), "peer");
		return options;
	}

	Relay relay{primary().port()};
	Connection connection{options()};
};

TEST_F(ConnectionTest, L4_sending_reads_nothing_so_the_descriptor_still_tells_of_what_has_arrived)
{
	connection.connect();
	advance_until(Status::idle);
	connection.send_script("LISTEN doorbell");
	advance_until(Status::idle);
	sql("NOTIFY doorbell, 's:1'");
	wait_for("the notification", [&] { return doorbell::detail::is_ready(connection.descriptor()); });
	relay.set(Relay::Mode::hold_answers);
	connection.send("SELECT 1", {});
	EXPECT_TRUE(doorbell::detail::is_ready(connection.descriptor()));
	EXPECT_FALSE(connection.take_notification());
	connection.advance();
	EXPECT_TRUE(connection.take_notification());
	EXPECT_EQ(connection.status(), Status::busy);
	relay.set(Relay::Mode::pass);
	advance_until(Status::idle);
	EXPECT_TRUE(connection.take_result());
}

TEST_F(ConnectionTest, a_farewell_of_the_server_is_the_reason_of_the_failure)
{
	connection.connect();
	advance_until(Status::idle);
	ASSERT_EQ(database.kill("peer"), 1);
	try {
		advance_until(Status::closed);
		ADD_FAILURE() << "no failure";
	} catch (const doorbell::Error &error) {
		EXPECT_EQ(error.sqlstate(), "57P01");
		EXPECT_NE(std::string(error.what()).find("administrator"), std::string::npos) << error.what();
	}
	EXPECT_EQ(connection.status(), Status::closed);
}

} // namespace
} // namespace live
