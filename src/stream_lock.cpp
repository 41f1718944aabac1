#include "stream_lock.hpp"

namespace pg_doorbell {

static constexpr uint16 lock_class = 0xdb01; // the tag's field where user advisory locks have 1 or 2
static constexpr const char *tranche = "pg_doorbell_stream";

static bool preloaded = false;
static LWLockPadded *lights = nullptr;
static LWLock *held_light = nullptr; // or was held, before it was released or an error came
static LOCKTAG held_heavy = {};		 // the same
static shmem_request_hook_type previous_request_hook = nullptr;

static void request_locks()
{
	if (previous_request_hook != nullptr)
		previous_request_hook();
	RequestNamedLWLockTranche(tranche, StreamLock::count);
}

void request_stream_locks()
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_locks;
	preloaded = true;
}

StreamLock::StreamLock(uint64 hash) : light_(nullptr)
{
	if (preloaded) {
		if (lights == nullptr)
			lights = GetNamedLWLockTranche(tranche);
		light_ = &lights[hash % StreamLock::count].lock;
		return;
	}
	SET_LOCKTAG_ADVISORY(heavy_, MyDatabaseId, static_cast<uint32>(hash >> 32), static_cast<uint32>(hash), lock_class);
}

static bool any_is_held()
{
	if (preloaded)
		return held_light != nullptr && LWLockHeldByMe(held_light);
	return held_heavy.locktag_field4 == lock_class && pg::lock_held_by_me(held_heavy, ExclusiveLock);
}

void StreamLock::acquire()
{
	if (any_is_held())
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot append while an append stores its event"),
				errhint("An index expression on doorbell.event must not append."));
	if (light_ == nullptr) {
		(void) LockAcquire(&heavy_, ExclusiveLock, false, false);
		held_heavy = heavy_;
	} else {
		LWLockAcquire(light_, LW_EXCLUSIVE);
		held_light = light_;
	}
}

void StreamLock::release()
{
	if (light_ == nullptr)
		LockRelease(&heavy_, ExclusiveLock, false);
	else
		LWLockRelease(light_);
}

} // namespace pg_doorbell
