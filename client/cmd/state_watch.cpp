#include "state_watch.hpp"

#include "command.hpp"

#include <utility>

namespace command {

using doorbell::Clock;
using doorbell::State;

void StateWatch::look(State state, const std::string &last_error)
{
	if (std::exchange(state_, state) != state) {
		complain_at_ = state == State::live ? Clock::time_point::max() : Clock::now() + patience;
		if (state == State::live && std::exchange(complained_, false))
			say("live");
	}
	if (Clock::now() < complain_at_)
		return;
	complain_at_ = Clock::time_point::max();
	complained_ = true;
	say((state == State::down ? "not connected, trying again: " : "rings are not heard, looking every few seconds: ") +
		(last_error.empty() ? "no answer yet" : last_error));
}

} // namespace command
