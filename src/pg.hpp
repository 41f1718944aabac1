// The one prelude of the extension: PostgreSQL's headers for C++, and the switch between its versions.
//
// 1. Standard headers come first, because postgres.h redefines printf and friends; then one extern "C" block.
// 2. Version #ifs live here and nowhere else: the rest of the code calls the names below.
// 3. Code of this extension may be left at any call by ereport's longjmp. So its types are trivially destructible,
//    it allocates with palloc, it never throws, and it links nothing of the C++ run-time library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

extern "C" {
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "access/subtrans.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_subscription_rel.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/async.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"
#include "utils/xid8.h"
}

// Everything is hidden but what the server looks up by name. Before 16 the macro is empty on this platform.
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

// Declares a function that SQL calls by the name `name`.
#define DOORBELL_SQL_FUNCTION(name) \
	extern "C" { \
	PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name); \
	} \
	Datum name(PG_FUNCTION_ARGS)

namespace pg_doorbell::pg {

inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int nkeys)
{
#if PG_VERSION_NUM >= 180000
	return index_beginscan(table, index, snapshot, nullptr, nkeys, 0);
#else
	return index_beginscan(table, index, snapshot, nkeys, 0);
#endif
}

// Inserts the index entries of a row that was just stored.
inline void insert_index_entries(ResultRelInfo *result, TupleTableSlot *slot, EState *estate)
{
#if PG_VERSION_NUM >= 160000
	ExecInsertIndexTuples(result, slot, estate, false, false, nullptr, NIL, false);
#else
	ExecInsertIndexTuples(result, slot, estate, false, false, nullptr, NIL);
#endif
}

// Where a relation's rows are: another one in each database, and after each rewrite.
#if PG_VERSION_NUM >= 160000
using Storage = RelFileLocator;
inline Storage storage_of(Relation relation)
{
	return relation->rd_locator;
}
#else
using Storage = RelFileNode;
inline Storage storage_of(Relation relation)
{
	return relation->rd_node;
}
#endif

inline bool is_same_storage(const Storage &storage, Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return RelFileLocatorEquals(storage, relation->rd_locator);
#else
	return RelFileNodeEquals(storage, relation->rd_node);
#endif
}

// Pins a buffer if it still holds that block.
inline bool pin_if_there(const Storage &storage, BlockNumber block, Buffer buffer)
{
	return ReadRecentBuffer(storage, MAIN_FORKNUM, block, buffer);
}

inline bool lock_held_by_me(const LOCKTAG &tag, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(&tag, mode, false);
#else
	return LockHeldByMe(&tag, mode);
#endif
}

} // namespace pg_doorbell::pg
