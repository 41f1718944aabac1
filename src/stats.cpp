// What the ringer of this database has done, for the view doorbell.stats.
#include "pg.hpp"
#include "ring_table.hpp"

namespace pg_doorbell {

// One row of the view's columns; none when the library is not preloaded.
DOORBELL_SQL_FUNCTION(doorbell_ringer_stats)
{
	InitMaterializedSRF(fcinfo, 0);
	auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	const std::optional<RingerStatus> status = ringer_status(MyDatabaseId);
	if (!status.has_value())
		return Datum(0);

	const RingCounters &counters = status->counters;
	const double mean_ms =
		counters.rung > 0 ? static_cast<double>(counters.latency) / static_cast<double>(counters.rung) / 1000 : 0;
	Datum values[] = {
		Int32GetDatum(status->pid),		   Int64GetDatum(counters.appends),
		Int64GetDatum(counters.asked),	   Int64GetDatum(counters.rung),
		Int64GetDatum(counters.coalesced), Int64GetDatum(counters.overflows),
		Int32GetDatum(status->waiting),	   Int64GetDatum(counters.batches),
		Int64GetDatum(counters.failures),  CStringGetTextDatum(status->last_error),
		Float8GetDatum(mean_ms),		   Float8GetDatum(static_cast<double>(counters.latency_max) / 1000),
	};
	bool nulls[lengthof(values)] = {};
	nulls[0] = status->pid == 0;
	nulls[9] = status->last_error[0] == '\0';
	nulls[10] = nulls[11] = counters.rung == 0;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return Datum(0);
}

} // namespace pg_doorbell
