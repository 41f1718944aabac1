#include "keeper.hpp"

#include "tables.hpp"
#include "worker_transaction.hpp"

namespace pg_doorbell {

static constexpr int64 target_us = 10000;
static constexpr int least_batch = 16;
static constexpr int first_batch = 256;
static constexpr int largest_batch = 10000;
static constexpr long longest_wait_ms = 24 * 3600 * 1000L;

static int interval_s = 60;

void define_keeper_settings()
{
	DefineCustomIntVariable("doorbell.retention_interval", "How often a ringer applies the rules of retention.",
							"0: never; call doorbell.apply_retention() instead. While events are left to remove it "
							"goes on without waiting, batch by batch.",
							&interval_s, 60, 0, INT_MAX / 1000, PGC_SIGHUP, GUC_UNIT_S, nullptr, nullptr, nullptr);
}

Keeper Keeper::begin(TimestampTz now)
{
	Keeper keeper = {};
	keeper.due_at_ = now;
	keeper.batch_ = first_batch;
	return keeper;
}

bool Keeper::has_rules() const
{
	return interval_s > 0 && pass_.any_rules;
}

bool Keeper::is_due(TimestampTz now) const
{
	return interval_s > 0 && now >= due_at_;
}

long Keeper::milliseconds_left(TimestampTz now) const
{
	return interval_s > 0 ? Min(TimestampDifferenceMilliseconds(now, due_at_), longest_wait_ms) : longest_wait_ms;
}

// With the rights of the tables' owner, as doorbell.apply_retention() has them.
static int64 apply_as_owner(RetentionPass &pass, int max_events, TimestampTz deadline)
{
	Relation event = table_open(find_tables().event, AccessShareLock);
	const Oid owner = event->rd_rel->relowner;
	table_close(event, NoLock);

	Oid user;
	int context;
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE);
	PushActiveSnapshot(GetTransactionSnapshot());
	const int64 removed = apply_retention(pass, max_events, deadline);
	PopActiveSnapshot();
	SetUserIdAndSecContext(user, context);
	return removed;
}

void Keeper::work()
{
	const TimestampTz began = GetCurrentTimestamp();
	int64 removed = 0;
	ErrorData *failure = try_transaction([&] {
		if (tables_exist())
			removed = apply_as_owner(pass_, batch_, began + target_us);
		else
			pass_ = {};
	});
	const TimestampTz done = GetCurrentTimestamp();
	const int64 took = done - began;
	if (took > target_us)
		batch_ = Max(batch_ / 2, least_batch);
	else if (removed == batch_ && took < target_us / 2)
		batch_ = Min(batch_ * 2, largest_batch);

	const bool goes_on = failure == nullptr && (!pass_.at_start() || pass_.more);
	due_at_ = done + (goes_on ? took : interval_s * INT64CONST(1000000));
	if (failure != nullptr)
		FreeErrorData(failure);
	pgstat_report_stat(!goes_on); // autovacuum is to know what was removed
}

} // namespace pg_doorbell
