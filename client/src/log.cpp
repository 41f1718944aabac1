#include <doorbell/error.hpp>
#include <doorbell/log.hpp>

#include "connection.hpp"
#include "history.hpp"
#include "wait.hpp"

#include <utility>

namespace doorbell {

using detail::Connection;
using detail::Params;
using detail::Result;

class Log::Impl {
public:
	explicit Impl(ConnectOptions options) : connection_(std::move(options)) {}

	Result ask(const char *sql, const Params &params);

private:
	void connect();
	void finish();

	Connection connection_;
};

// Runs one statement to its end.
Result Log::Impl::ask(const char *sql, const Params &params)
{
	connect();
	connection_.send(sql, params);
	finish();
	std::optional<Result> answer = connection_.take_result();
	if (!answer)
		throw Error("the server gave no answer");
	return std::move(*answer);
}

void Log::Impl::connect()
{
	if (connection_.status() == Connection::Status::busy)
		connection_.close(); // an exception left a query unfinished
	try {					 // notices a connection that died since; its server's farewell is read before its end
		while (connection_.status() == Connection::Status::idle && detail::is_ready(connection_.descriptor()))
			connection_.advance();
	} catch (const Error &) {
	}
	if (connection_.status() == Connection::Status::closed)
		connection_.connect();
	finish();
}

void Log::Impl::finish()
{
	while (true) {
		connection_.advance();
		if (connection_.status() == Connection::Status::idle)
			return;
		detail::wait({connection_.descriptor()}, connection_.deadline());
	}
}

static std::vector<Event> read_events(const Result &result)
{
	std::vector<Event> events(static_cast<std::size_t>(result.rows()));
	for (int row = 0; row < result.rows(); row++)
		detail::read_entry(result, row, events[static_cast<std::size_t>(row)]);
	return events;
}

template <typename T>
static const T *address_of(const std::optional<T> &value)
{
	return value ? &*value : nullptr;
}

Log::Log(ConnectOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Log::~Log() = default;
Log::Log(Log &&) noexcept = default;
Log &Log::operator=(Log &&) noexcept = default;

std::int64_t Log::append(std::string_view stream, std::string_view type, std::string_view payload,
						 std::optional<std::int64_t> expected_seq, std::optional<std::string_view> event_id)
{
	return impl_
		->ask("SELECT doorbell.append($1, $2, $3::jsonb, $4, $5::uuid)", Params()
																			 .text(stream)
																			 .text(type)
																			 .text(payload)
																			 .int8_or_null(address_of(expected_seq))
																			 .text_or_null(address_of(event_id)))
		.int8(0, 0);
}

std::int64_t Log::append_batch(std::string_view stream, const std::vector<NewEvent> &events,
							   std::optional<std::int64_t> expected_seq)
{
	std::vector<std::string_view> types;
	std::vector<std::string_view> payloads;
	types.reserve(events.size());
	payloads.reserve(events.size());
	for (const NewEvent &event : events) {
		types.push_back(event.type);
		payloads.push_back(event.payload);
	}
	return impl_
		->ask("SELECT doorbell.append_batch($1, $2, $3::jsonb[], $4)",
			  Params().text(stream).text_array(types).text_array(payloads).int8_or_null(address_of(expected_seq)))
		.int8(0, 0);
}

std::vector<Event> Log::replay(std::string_view stream, std::int64_t after, int max_events)
{
	return read_events(impl_->ask("SELECT stream, seq, type, payload, appended_at FROM doorbell.replay($1, $2, $3)",
								  Params().text(stream).int8(after).int4(max_events)));
}

std::vector<Event> Log::replay_many(const std::vector<Position> &positions, int max_events)
{
	std::vector<std::string_view> streams;
	std::vector<std::int64_t> after_seqs;
	for (const Position &position : positions) {
		streams.push_back(position.stream);
		after_seqs.push_back(position.after);
	}
	return read_events(
		impl_->ask("SELECT stream, seq, type, payload, appended_at FROM doorbell.replay_many($1, $2, $3)",
				   Params().text_array(streams).int8_array(after_seqs).int4(max_events)));
}

std::vector<AllEvent> Log::replay_all(std::optional<std::string_view> cursor, int max_events, std::string_view prefix)
{
	const Result result =
		impl_->ask(detail::read_all_sql, Params().text_or_null(address_of(cursor)).int4(max_events).text(prefix));
	std::vector<AllEvent> events(static_cast<std::size_t>(result.rows()));
	for (int row = 0; row < result.rows(); row++) {
		AllEvent &each = events[static_cast<std::size_t>(row)];
		each.cursor = result.text(row, 5);
		if (detail::is_gap(result, row)) {
			each.event.stream = result.text(row, 0);
			each.event.seq = result.int8(row, 1);
		} else {
			detail::read_entry(result, row, each.event);
		}
	}
	return events;
}

std::string Log::high_water_all()
{
	return std::string(impl_->ask(detail::high_water_all_sql, {}).text(0, 0));
}

std::int64_t Log::high_water(std::string_view stream)
{
	return impl_->ask("SELECT doorbell.high_water($1)", Params().text(stream)).int8(0, 0);
}

std::int64_t Log::low_water(std::string_view stream)
{
	return impl_->ask("SELECT doorbell.low_water($1)", Params().text(stream)).int8(0, 0);
}

std::vector<StreamInfo> Log::streams(std::string_view prefix)
{
	const Result result =
		impl_->ask("SELECT stream, low_water, high_water FROM doorbell.streams($1)", Params().text(prefix));
	std::vector<StreamInfo> streams;
	streams.reserve(static_cast<std::size_t>(result.rows()));
	for (int row = 0; row < result.rows(); row++)
		streams.push_back({std::string(result.text(row, 0)), result.int8(row, 1), result.int8(row, 2)});
	return streams;
}

// Consumer, stream, seq, check: the arguments of commit_cursor and move_cursor.
static Params cursor_params(std::string_view consumer, std::string_view stream, Mark mark)
{
	const std::string text = format_mark(mark);
	std::optional<std::string_view> check;
	if (mark.check != 0)
		check = std::string_view(text).substr(text.find('-') + 1);
	return Params().text(consumer).text(stream).int8(mark.seq).text_or_null(address_of(check));
}

void Log::commit_cursor(std::string_view consumer, std::string_view stream, Mark mark)
{
	impl_->ask("SELECT doorbell.commit_cursor($1, $2, $3, $4)", cursor_params(consumer, stream, mark));
}

void Log::move_cursor(std::string_view consumer, std::string_view stream, Mark mark)
{
	impl_->ask("SELECT doorbell.move_cursor($1, $2, $3, $4)", cursor_params(consumer, stream, mark));
}

std::optional<Mark> Log::cursor(std::string_view consumer, std::string_view stream)
{
	const Result result = impl_->ask("SELECT doorbell.mark($1, $2)", Params().text(consumer).text(stream));
	if (result.is_null(0, 0))
		return std::nullopt;
	return parse_mark(result.text(0, 0));
}

void Log::commit_cursor(std::string_view consumer, std::string_view cursor)
{
	impl_->ask("SELECT doorbell.commit_cursor($1, $2)", Params().text(consumer).text(cursor));
}

void Log::move_cursor(std::string_view consumer, std::string_view cursor)
{
	impl_->ask("SELECT doorbell.move_cursor($1, $2)", Params().text(consumer).text(cursor));
}

std::optional<std::string> Log::cursor(std::string_view consumer)
{
	const Result result = impl_->ask("SELECT doorbell.cursor($1)", Params().text(consumer));
	if (result.is_null(0, 0))
		return std::nullopt;
	return std::string(result.text(0, 0));
}

ServerStatus Log::status()
{
	// The settings are those of the extension's library, which a session loads with the first function it calls. Names
	// are looked up in the catalogs, because resolving them takes privileges on the schema.
	const bool callable =
		impl_
			->ask("SELECT coalesce(pg_catalog.bool_or(pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
				  "  AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')), false)"
				  " FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
				  " WHERE n.nspname = 'doorbell' AND p.proname = 'low_water'",
				  {})
			.boolean(0, 0);
	if (callable)
		low_water("doorbell");

	const Result result =
		impl_->ask("SELECT pg_catalog.current_setting('server_version'),"
				   " (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pg_doorbell'),"
				   " pg_catalog.current_setting('doorbell.ring_mode', true),"
				   " pg_catalog.current_setting('doorbell.ring_table_size', true) IS NOT NULL,"
				   " pg_catalog.pg_is_in_recovery(),"
				   " CASE WHEN pg_catalog.pg_is_in_recovery() THEN 0 ELSE pg_catalog.pg_notification_queue_usage() END,"
				   " (SELECT coalesce(pg_catalog.bool_or(pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
				   "   AND pg_catalog.has_table_privilege(c.oid, 'SELECT')), false)"
				   "  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
				   "  WHERE n.nspname = 'doorbell' AND c.relname = 'stats')",
				   {});
	ServerStatus status;
	status.server_version = result.text(0, 0);
	if (!result.is_null(0, 1))
		status.extension_version = result.text(0, 1);
	if (!result.is_null(0, 2))
		status.ring_mode = result.text(0, 2);
	status.preloaded = result.boolean(0, 3);
	status.standby = result.boolean(0, 4);
	status.notify_queue_usage = result.float8(0, 5);

	if (!status.standby && result.boolean(0, 6)) {
		const Result stats = impl_->ask(
			"SELECT coalesce(last_error, ''), coalesce(oldest_listener_pid, 0)::bigint FROM doorbell.stats", {});
		status.ringer_error = stats.text(0, 0);
		status.notify_queue_holder = static_cast<int>(stats.int8(0, 1));
	}
	return status;
}

} // namespace doorbell
