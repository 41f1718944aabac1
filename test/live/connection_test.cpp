// The connection beneath Listener, Subscriber and Log.
#include "connection.hpp"
#include "follower.hpp"
#include "relay.hpp"
#include "wait.hpp"

namespace live {
namespace {

using doorbell::detail::Connection;
using doorbell::detail::Params;
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

TEST_F(ConnectionTest, what_is_sent_again_is_prepared_and_sent_as_it_is_where_that_gets_lost)
{
	connection.connect();
	advance_until(Status::idle);
	const auto ask = [this](std::int64_t addend) {
		connection.send("SELECT count(*) + $1 FROM pg_prepared_statements", Params().int8(addend));
		advance_until(Status::idle);
		return connection.take_result()->int8(0, 0);
	};
	EXPECT_EQ(ask(10), 10);
	EXPECT_EQ(ask(20), 21);
	EXPECT_EQ(ask(30), 31);
	connection.send_script("DEALLOCATE ALL"); // as behind a pooler, where the next transaction is another session's
	advance_until(Status::idle);
	EXPECT_EQ(ask(40), 40);
	EXPECT_EQ(ask(50), 50);
}

TEST_F(ConnectionTest, a_prepared_statement_reports_its_errors_and_can_be_used_again)
{
	connection.connect();
	advance_until(Status::idle);
	for (const std::int64_t divisor : {1, 2, 0, 3, 0, 4}) {
		connection.send("SELECT 12 / $1", Params().int8(divisor));
		if (divisor == 0) {
			EXPECT_THROW(advance_until(Status::idle), doorbell::Error);
		} else {
			advance_until(Status::idle);
		}
		EXPECT_EQ(connection.status(), Status::idle);
		if (const auto result = connection.take_result()) {
			EXPECT_EQ(result->int8(0, 0), 12 / divisor);
		}
	}
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
