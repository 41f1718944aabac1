// Says on stderr when events do not come, or come late, for longer than a moment, and when they come again.
//
// Short interruptions are silent: every reconnect has one.
#pragma once

#include <doorbell/connect.hpp>

#include <string>

namespace command {

class StateWatch {
public:
	// To be called when something may have changed, and at deadline().
	void look(doorbell::State state, const std::string &last_error);
	doorbell::Clock::time_point deadline() const noexcept { return complain_at_; }

private:
	static constexpr std::chrono::seconds patience{1};

	doorbell::State state_ = doorbell::State::down;
	doorbell::Clock::time_point complain_at_ = doorbell::Clock::now() + patience;
	bool complained_ = false;
};

} // namespace command
