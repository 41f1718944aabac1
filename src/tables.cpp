#include "tables.hpp"

namespace pg_doorbell {

static Tables tables;
static bool tables_known = false;
static bool tables_changed = false; // while they were looked up

static void forget_tables(Datum, Oid relation)
{
	const Oid known[] = {tables.event,	tables.event_pkey,	tables.event_xid_idx,	   tables.event_id_idx,
						 tables.stream, tables.stream_pkey, tables.stream_trimmed_idx, tables.stream_trim_idx,
						 tables.history};
	bool ours = relation == InvalidOid;
	for (const Oid one : known)
		ours = ours || relation == one;
	if (ours) {
		tables_known = false;
		tables_changed = true;
	}
}

static void forget_subscriptions(Datum, int, uint32)
{
	tables_known = false;
	tables_changed = true;
}

void watch_tables()
{
	CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, forget_subscriptions, Datum(0));
	CacheRegisterRelcacheCallback(forget_tables, Datum(0));
}

static Oid find_relation(Oid schema, const char *name)
{
	const Oid relation = get_relname_relid(name, schema);
	if (!OidIsValid(relation))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"doorbell.%s\" does not exist", name),
				errhint("Run CREATE EXTENSION pg_doorbell in this database."));
	return relation;
}

// A subscription's relations have no cache by relation; it is one look into an index.
static bool is_in_subscription(Oid relation)
{
	Relation catalog = table_open(SubscriptionRelRelationId, AccessShareLock);
	ScanKeyData key;
	ScanKeyInit(&key, Anum_pg_subscription_rel_srrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
	SysScanDesc scan = systable_beginscan(catalog, SubscriptionRelSrrelidSrsubidIndexId, true, nullptr, 1, &key);
	const bool found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

bool tables_exist()
{
	const Oid schema = get_namespace_oid("doorbell", true);
	return OidIsValid(schema) && OidIsValid(get_relname_relid("event_xid_idx", schema));
}

const Tables &find_tables()
{
	while (!tables_known) {
		tables_changed = false;
		const Oid schema = get_namespace_oid("doorbell", false);
		tables.event = find_relation(schema, "event");
		tables.event_pkey = find_relation(schema, "event_pkey");
		tables.event_xid_idx = find_relation(schema, "event_xid_idx");
		tables.event_id_idx = find_relation(schema, "event_id_idx");
		tables.stream = find_relation(schema, "stream");
		tables.stream_pkey = find_relation(schema, "stream_pkey");
		tables.stream_trimmed_idx = find_relation(schema, "stream_trimmed_idx");
		tables.stream_trim_idx = find_relation(schema, "stream_trim_idx");
		tables.history = find_relation(schema, "history");
		tables.is_replicated = is_in_subscription(tables.event);
		tables_known = !tables_changed;
	}
	return tables;
}

const Tables &find_tables_to_follow()
{
	const Tables &found = find_tables();
	if (found.is_replicated)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot follow streams that logical replication brings here"),
				errdetail("Table \"doorbell.event\" belongs to a subscription, and appends in flight on the publisher "
						  "cannot be seen here, so events could be skipped."),
				errhint("Follow the publisher, or a physical standby of it."));
	return found;
}

ScanKeyData text_key(AttrNumber number, StrategyNumber strategy, text *value)
{
	ScanKeyData key;
	const RegProcedure compare = strategy == BTEqualStrategyNumber	   ? F_TEXTEQ
								 : strategy == BTGreaterStrategyNumber ? F_TEXT_GT
																	   : F_TEXT_GE;
	Assert(strategy == BTEqualStrategyNumber || strategy == BTGreaterStrategyNumber ||
		   strategy == BTGreaterEqualStrategyNumber);
	ScanKeyEntryInitialize(&key, 0, number, strategy, InvalidOid, C_COLLATION_OID, compare, PointerGetDatum(value));
	return key;
}

ScanKeyData seq_key(AttrNumber number, StrategyNumber strategy, int64 value)
{
	ScanKeyData key;
	const RegProcedure compare = strategy == BTGreaterStrategyNumber ? F_INT8GT : F_INT8LT;
	Assert(strategy == BTGreaterStrategyNumber || strategy == BTLessStrategyNumber);
	ScanKeyEntryInitialize(&key, 0, number, strategy, InvalidOid, InvalidOid, compare, Int64GetDatum(value));
	return key;
}

ScanKeyData xid_key(StrategyNumber strategy, uint64 xid)
{
	ScanKeyData key;
	const RegProcedure compare = strategy == BTEqualStrategyNumber	? F_XID8EQ
								 : strategy == BTLessStrategyNumber ? F_XID8LT
																	: F_XID8GE;
	Assert(strategy == BTEqualStrategyNumber || strategy == BTLessStrategyNumber ||
		   strategy == BTGreaterEqualStrategyNumber);
	ScanKeyEntryInitialize(&key, 0, 1, strategy, InvalidOid, InvalidOid, compare, UInt64GetDatum(xid));
	return key;
}

uint64 with_epoch(TransactionId xid)
{
	const FullTransactionId next = ReadNextFullTransactionId();
	uint32 epoch = EpochFromFullTransactionId(next);
	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

Walk Walk::over(Relation table, Relation index, Snapshot snapshot, int nkeys)
{
	Walk walk;
	walk.table = table;
	walk.index = index;
	walk.own_index = false;
	walk.slot = table_slot_create(table, nullptr);
	walk.scan = pg::begin_index_scan(table, index, snapshot, nkeys);
	return walk;
}

Walk Walk::over(Relation table, Oid index, Snapshot snapshot, int nkeys)
{
	Walk walk = over(table, index_open(index, AccessShareLock), snapshot, nkeys);
	walk.own_index = true;
	return walk;
}

void Walk::end()
{
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	if (own_index)
		index_close(index, AccessShareLock);
}

} // namespace pg_doorbell
