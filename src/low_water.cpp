#include "low_water.hpp"

#include "args.hpp"

namespace pg_doorbell {

LowWaterTable LowWaterTable::open()
{
	const Tables &tables = find_tables();
	LowWaterTable opened;
	opened.table = table_open(tables.stream, AccessShareLock);
	opened.index = index_open(tables.stream_pkey, AccessShareLock);
	return opened;
}

void LowWaterTable::close()
{
	index_close(index, NoLock);
	table_close(table, NoLock);
}

int64 LowWaterTable::read(text *stream, Snapshot snapshot) const
{
	ScanKeyData key = text_key(1, BTEqualStrategyNumber, stream);
	Walk walk = Walk::over(table, index, snapshot, 1);
	walk.seek(&key, 1);
	const int64 low_water = walk.next() ? DatumGetInt64(walk.column(stream_low_water)) : 0;
	walk.end();
	return low_water;
}

DOORBELL_SQL_FUNCTION(doorbell_low_water)
{
	text *stream = stream_argument(fcinfo, 0);
	LowWaterTable low_waters = LowWaterTable::open();
	const int64 low_water = low_waters.read(stream, GetActiveSnapshot());
	low_waters.close();
	PG_RETURN_INT64(low_water);
}

} // namespace pg_doorbell
