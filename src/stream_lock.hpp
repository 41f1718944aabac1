// The short lock of one stream, under which an append finds and uses the next seq.
//
// 1. With the library preloaded it is one of a fixed set of LWLocks, chosen by the key's hash: streams that share one
//    wait for each other a little. Else it is a heavyweight lock of the advisory class, with a tag that no user lock
//    can have, and whatever waits for it shows in pg_locks.
// 2. Under it nothing may wait for another backend's transaction, call user code, or append again. The last is checked,
//    because it could hang or deadlock: an index expression that somebody put on the table could do it.
// 3. An error while it is held releases it with the (sub)transaction. An LWLock also holds cancel requests off.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

void request_stream_locks(); // while the library is preloaded

class StreamLock {
public:
	static constexpr int count = 256; // of LWLocks; hashes that are equal modulo this share one

	explicit StreamLock(uint64 hash); // of the stream's key
	void acquire();
	void release();

private:
	LWLock *light_; // null: not preloaded
	LOCKTAG heavy_;
};
static_assert(std::is_trivially_destructible_v<StreamLock>);

} // namespace pg_doorbell
