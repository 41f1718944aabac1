#include "ringer.hpp"

#include "keeper.hpp"
#include "ring_table.hpp"
#include "worker_transaction.hpp"

namespace pg_doorbell {

static constexpr int max_batch = 512;
static constexpr long retry_ms = 1000;
static constexpr int64 window_us = 10000;
static constexpr int64 busy_appends = 20; // in a window: from then on, a batch is to stand for several
static constexpr int64 busy_pause_ms = 2;
static constexpr int64 pause_factor = 20; // at most a twentieth of the time goes into sending under load

static bool ringer_on = true;
static int linger_ms = 20;
static int idle_timeout_s = 600;

void define_ringer_settings()
{
	DefineCustomBoolVariable("doorbell.ringer", "Whether background workers ring the doorbell after the commit.",
							 "When off, appends ring with NOTIFY in their own transaction, as without preloading.",
							 &ringer_on, true, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
	DefineCustomIntVariable("doorbell.ring_linger", "Longest pause between two batches of rings under load.",
							"The pause grows with what a batch costs. Raise it when many sessions listen and appends "
							"matter more than how soon they are heard. The first ring after silence never waits.",
							&linger_ms, 20, 0, 1000, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
	DefineCustomIntVariable("doorbell.ringer_idle_timeout", "How long a ringer stays without anything to ring.",
							"Each occupies one of max_worker_processes and a connection to its database.",
							&idle_timeout_s, 600, 1, INT_MAX / 1000, PGC_SIGHUP, GUC_UNIT_S, nullptr, nullptr, nullptr);
	define_keeper_settings();
}

bool ringer_is_on()
{
	return ringer_on;
}

bool start_ringer(int slot)
{
	BackgroundWorker worker = {};
	snprintf(worker.bgw_name, BGW_MAXLEN, "pg_doorbell ringer");
	snprintf(worker.bgw_type, BGW_MAXLEN, "pg_doorbell ringer");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART; // the next append starts another
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "pg_doorbell");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "doorbell_ringer_main");
	worker.bgw_main_arg = Int32GetDatum(slot);
	return RegisterDynamicBackgroundWorker(&worker, nullptr);
}

// A NOTIFY that finds the queue full does not look whether the sessions that held it back have gone; what reports the
// use of the queue does, and makes room.
static void make_room_in_notify_queue()
{
	(void) DirectFunctionCall1(pg_notification_queue_usage, Datum(0));
}

static void send(const Batch &batch)
{
	if (batch.everything)
		Async_Notify(doorbell::channel, doorbell::pointer_to_everything.data());
	for (int i = 0; i < batch.count; i++) {
		const TakenRing &ring = batch.rings[i];
		char pointer[doorbell::max_pointer_bytes + 1];
		doorbell::format_pointer(std::string_view(ring.stream, ring.length), ring.seq, pointer);
		Async_Notify(doorbell::channel, pointer);
	}
}

// Sends a batch; false when it failed and everything is to be rung again.
static bool try_to_send(int slot, const Batch &batch, bool failing)
{
	ErrorData *failure = try_transaction([&batch] { send(batch); }, failing);
	if (failure == nullptr)
		return true;
	report_failure(slot, failure->message);
	FreeErrorData(failure);
	return false;
}

// False when the postmaster, the administrator or a command on the database wants us gone.
static bool wait(int slot, long milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending) {
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	return !ShutdownRequestPending && !ringer_must_stop(slot);
}

// How fast appends come, measured from window to window.
struct Load {
	TimestampTz began;
	int64 appends;
	bool busy;

	void count(int64 more, TimestampTz now)
	{
		appends += more;
		if (now - began < window_us)
			return;
		busy = appends * window_us > busy_appends * (now - began);
		began = now;
		appends = 0;
	}
};
static_assert(std::is_trivially_destructible_v<Load>);

static long pause_after(bool busy, int64 cost_us)
{
	const int64 least = busy ? busy_pause_ms : 0;
	return static_cast<long>(Min(Max(cost_us * pause_factor / 1000, least), static_cast<int64>(linger_ms)));
}

static void ring_until_told_to_stop(int slot)
{
	Batch batch = {};
	batch.rings = static_cast<TakenRing *>(MemoryContextAlloc(TopMemoryContext, sizeof(TakenRing) * max_batch));
	Load load = {};
	bool failing = false;
	bool stay = true;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz idle_since = now;
	Keeper keeper = Keeper::begin(now);
	while (stay || !ringer_must_stop(slot)) {
		if (failing)
			make_room_in_notify_queue();
		const TimestampTz began = GetCurrentTimestamp();
		if (take_rings(slot, batch, max_batch)) {
			failing = !try_to_send(slot, batch, failing);
			now = idle_since = GetCurrentTimestamp();
			if (!failing)
				report_batch(slot, batch, now);
			else if (!stay)
				return; // told to stop, and nobody can be told
			load.count(batch.appends, now);
			const long pause = failing ? retry_ms : pause_after(load.busy, now - began);
			if (stay && pause > 0)
				stay = wait(slot, pause);
		} else if (!stay) {
			return;
		} else if (!keeper.is_due(began)) {
			const long idle_timeout = idle_timeout_s * 1000L;
			const long idle_left = idle_timeout - TimestampDifferenceMilliseconds(idle_since, began);
			if (idle_left <= 0 && !keeper.has_rules() && leave_ring_slot_if_idle(slot))
				return;
			stay = wait(slot, Min(idle_left > 0 ? idle_left : idle_timeout, keeper.milliseconds_left(began)));
			continue;
		}
		if (stay && keeper.is_due(GetCurrentTimestamp()))
			keeper.work();
	}
}

extern "C" {
PGDLLEXPORT void doorbell_ringer_main(Datum argument);
}

void doorbell_ringer_main(Datum argument)
{
	const int slot = DatumGetInt32(argument);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	enter_ring_slot(slot);
	BackgroundWorkerInitializeConnectionByOid(ring_slot_database(slot), InvalidOid, 0);
	// What a ring is worth does not depend on the disk.
	SetConfigOption("synchronous_commit", "off", PGC_SUSET, PGC_S_OVERRIDE);
	// The keeper runs SQL.
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	pgstat_report_activity(STATE_IDLE, nullptr);
	ring_until_told_to_stop(slot);
	proc_exit(0);
}

} // namespace pg_doorbell
