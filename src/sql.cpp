#include "sql.hpp"

namespace pg_doorbell {

uint64 run(Statement &statement, std::initializer_list<NullableDatum> values, bool stable)
{
	Assert(values.size() <= max_values);
	if (statement.plan == nullptr) {
		SPIPlanPtr plan = SPI_prepare(statement.sql, static_cast<int>(values.size()), statement.types);
		if (plan == nullptr)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		SPI_keepplan(plan);
		statement.plan = plan;
	}
	Datum datums[max_values];
	char nulls[max_values];
	int count = 0;
	for (const NullableDatum &value : values) {
		datums[count] = value.value;
		nulls[count++] = value.isnull ? 'n' : ' ';
	}
	const int done = SPI_execute_plan(statement.plan, datums, nulls, stable, 0);
	if (done != statement.expected)
		elog(ERROR, "SPI_execute_plan failed: %s", SPI_result_code_string(done));
	return SPI_processed;
}

NullableDatum returned(uint64 row, int column)
{
	NullableDatum result;
	result.value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &result.isnull);
	return result;
}

} // namespace pg_doorbell
