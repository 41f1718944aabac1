#include "utility.hpp"

#include "ring.hpp"
#include "ring_table.hpp"
#include "tables.hpp"

namespace pg_doorbell {

static ProcessUtility_hook_type previous_hook = nullptr;

// The id of a prepared transaction; 0 when there is none of that name.
static uint64 find_prepared(const char *gid)
{
	uint64 xid = 0;
	Oid types[1] = {TEXTOID};
	Datum values[1] = {CStringGetTextDatum(gid)};
	SPI_connect();
	SPI_execute_with_args("SELECT transaction FROM pg_catalog.pg_prepared_xacts WHERE gid OPERATOR(pg_catalog.=) $1", 1,
						  types, values, nullptr, true, 1);
	if (SPI_processed == 1) {
		bool isnull;
		xid =
			with_epoch(DatumGetTransactionId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull)));
	}
	SPI_finish();
	return xid;
}

// Committed or rolled back, the rows are there.
static void note_rings_of(uint64 xid)
{
	Relation event = table_open(find_tables().event, AccessShareLock);
	Walk walk = Walk::over(event, find_tables().event_xid_idx, SnapshotAny, 1);
	ScanKeyData key = xid_key(BTEqualStrategyNumber, xid);
	walk.seek(&key, 1);
	while (walk.next()) {
		CHECK_FOR_INTERRUPTS();
		note_ring_for_prepared(DatumGetTextPP(walk.column(event_stream)), walk.seq());
	}
	walk.end();
	table_close(event, NoLock);
}

static Oid database_named(const char *name)
{
	return get_database_oid(name, true);
}

static void send_ringer_away(const Node *statement)
{
	const char *name = nullptr;
	if (IsA(statement, DropdbStmt)) {
		name = reinterpret_cast<const DropdbStmt *>(statement)->dbname;
	} else if (IsA(statement, AlterDatabaseStmt)) {
		name = reinterpret_cast<const AlterDatabaseStmt *>(statement)->dbname;
	} else if (IsA(statement, RenameStmt)) {
		const auto *rename = reinterpret_cast<const RenameStmt *>(statement);
		if (rename->renameType == OBJECT_DATABASE)
			name = rename->subname;
	} else if (IsA(statement, CreatedbStmt)) {
		ListCell *cell;
		foreach (cell, reinterpret_cast<const CreatedbStmt *>(statement)->options) {
			auto *option = static_cast<DefElem *>(lfirst(cell));
			if (std::strcmp(option->defname, "template") == 0 && option->arg != nullptr)
				name = defGetString(option);
		}
	}
	if (name != nullptr)
		stop_ringer(database_named(name));
}

static void watch(PlannedStmt *planned, const char *query, bool read_only, ProcessUtilityContext context,
				  ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *destination,
				  QueryCompletion *completion)
{
	const Node *statement = planned->utilityStmt;
	uint64 prepared = 0;
	if (IsA(statement, TransactionStmt)) {
		const auto *transaction = reinterpret_cast<const TransactionStmt *>(statement);
		if ((transaction->kind == TRANS_STMT_COMMIT_PREPARED || transaction->kind == TRANS_STMT_ROLLBACK_PREPARED) &&
			!IsTransactionBlock() && tables_exist())
			prepared = find_prepared(transaction->gid);
	} else {
		send_ringer_away(statement);
	}

	(previous_hook != nullptr ? previous_hook : standard_ProcessUtility)(planned, query, read_only, context, parameters,
																		 environment, destination, completion);

	if (prepared != 0)
		note_rings_of(prepared);
}

void watch_utility_commands()
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = watch;
}

} // namespace pg_doorbell
