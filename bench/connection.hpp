// The little libpq that the benchmark's programs share. Connections go where the PG* variables lead.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>

namespace bench {

struct Finish {
	void operator()(PGconn *connection) const noexcept { PQfinish(connection); }
	void operator()(PGresult *result) const noexcept { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Result = std::unique_ptr<PGresult, Finish>;

inline Result checked(PGconn *connection, PGresult *answer)
{
	Result result(answer);
	const ExecStatusType status = PQresultStatus(answer);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		throw std::runtime_error(PQerrorMessage(connection));
	return result;
}

inline Connection connect()
{
	Connection connection(PQconnectdb(""));
	if (PQstatus(connection.get()) != CONNECTION_OK)
		throw std::runtime_error(PQerrorMessage(connection.get()));
	return connection;
}

inline void read_input(PGconn *connection)
{
	if (PQconsumeInput(connection) == 0)
		throw std::runtime_error(PQerrorMessage(connection));
}

// How many notifications were read and not counted yet.
inline long take_notifications(PGconn *connection)
{
	struct Free {
		void operator()(PGnotify *notification) const noexcept { PQfreemem(notification); }
	};
	long count = 0;
	while (std::unique_ptr<PGnotify, Free>(PQnotifies(connection)))
		count++;
	return count;
}

} // namespace bench
