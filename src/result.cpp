#include "result.hpp"

namespace pg_doorbell {

// Results live in a memory context of the backend that keeps its first block: to get a page's worth of memory from the
// system, and give it back, for every call would cost as much as to read the events. It is emptied when the last query
// that uses it has ended, one way or the other.
static constexpr Size result_block = 512 * 1024;
static MemoryContext result_memory = nullptr;
static int result_users = 0;

static void release_result_memory(void *)
{
	if (--result_users == 0)
		MemoryContextReset(result_memory);
}

static Tuplestorestate *replace_tuplestore(const ReturnSetInfo *result)
{
	if (result_memory == nullptr)
		result_memory = GenerationContextCreate(TopMemoryContext, "doorbell replay", result_block, result_block,
												ALLOCSET_DEFAULT_MAXSIZE);
	MemoryContext query = result->econtext->ecxt_per_query_memory;
	auto *callback = static_cast<MemoryContextCallback *>(MemoryContextAllocZero(query, sizeof(MemoryContextCallback)));
	callback->func = release_result_memory;
	MemoryContextRegisterResetCallback(query, callback);
	result_users++;

	tuplestore_end(result->setResult);
	MemoryContext before = MemoryContextSwitchTo(result_memory);
	const bool random_access = (result->allowedModes & SFRM_Materialize_Random) != 0;
	Tuplestorestate *replaced = tuplestore_begin_heap(random_access, false, work_mem);
	MemoryContextSwitchTo(before);
	return replaced;
}

ReturnSetInfo *begin_result(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	result->setResult = replace_tuplestore(result);
	return result;
}

} // namespace pg_doorbell
