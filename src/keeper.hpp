// The keeper: the ringer's other work, which is to apply the rules of retention (retention.hpp) in its database.
//
// 1. Every doorbell.retention_interval it begins a pass. A pass is done in batches, one transaction each. Rings go
// first:
//    the ringer looks for them before each batch.
// 2. A batch is kept to a few milliseconds, by the number of events that one may remove: it is halved when a batch was
//    slow, and doubled when one was quick and had more to do.
// 3. After each batch the keeper pauses for as long as it took, so that at most half of one processor, and half of what
//    the disk can do, goes into it. While there is more to remove, pass follows pass.
// 4. A batch that fails is logged, and tried again after the interval.
#pragma once

#include "retention.hpp"

namespace pg_doorbell {

void define_keeper_settings();

class Keeper {
public:
	static Keeper begin(TimestampTz now);

	bool has_rules() const; // as far as it has looked: with rules the ringer stays
	bool is_due(TimestampTz now) const;
	long milliseconds_left(TimestampTz now) const; // until it is due; at most a day
	void work();								   // one batch

private:
	TimestampTz due_at_;
	RetentionPass pass_;
	int batch_;
};
static_assert(std::is_trivially_destructible_v<Keeper>);

} // namespace pg_doorbell
