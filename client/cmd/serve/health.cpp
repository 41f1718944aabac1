#include "health.hpp"

#include <nlohmann/json.hpp>

namespace command::serve {

static const char *name(doorbell::State state)
{
	switch (state) {
	case doorbell::State::live:
		return "live";
	case doorbell::State::sweeping:
		return "sweeping";
	default:
		return "down";
	}
}

Answer health(const doorbell::Streamer &streamer)
{
	nlohmann::ordered_json out;
	out["listener"] = name(streamer.state());
	out["last_error"] = nullptr;
	if (!streamer.last_error().empty())
		out["last_error"] = streamer.last_error();
	out["connections"] = streamer.connections();
	Answer answer;
	answer.status = streamer.state() == doorbell::State::down ? 503 : 200;
	answer.type = "application/json";
	answer.body = out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
	return answer;
}

} // namespace command::serve
