#include "writer.hpp"

#include "tables.hpp"

namespace pg_doorbell {

static constexpr int max_slots = 64;

// Our own BEFORE trigger serves rows that COPY or INSERT bring, as in a restore; appends need it not.
static bool is_restore_trigger(const Trigger &trigger)
{
	return std::strcmp(trigger.tgname, "event_restored") == 0;
}

static void check_triggers(Relation table)
{
	const TriggerDesc *triggers = table->trigdesc;
	for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
		const Trigger &trigger = triggers->triggers[i];
		const bool after_row =
			TRIGGER_FOR_ROW(trigger.tgtype) && TRIGGER_FOR_AFTER(trigger.tgtype) && trigger.tgnewtable == nullptr;
		if (TRIGGER_FOR_INSERT(trigger.tgtype) && !after_row && !is_restore_trigger(trigger))
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot append while trigger \"%s\" is on table doorbell.event", trigger.tgname),
					errhint("Only AFTER INSERT … FOR EACH ROW triggers without transition tables can be on that "
							"table."));
	}
}

static bool has_other_indexes(Relation table)
{
	if (table->rd_indexvalid) // saves a copy
		return list_length(table->rd_indexlist) != 3;
	List *indexes = RelationGetIndexList(table);
	const bool others = list_length(indexes) != 3;
	list_free(indexes);
	return others;
}

EventWriter EventWriter::open(int count, bool with_ids)
{
	const Tables &tables = find_tables();
	EventWriter writer;
	writer.table_ = table_open(tables.event, RowExclusiveLock);
	check_triggers(writer.table_);
	writer.pkey_ = index_open(tables.event_pkey, RowExclusiveLock);
	writer.xid_index_ = index_open(tables.event_xid_idx, RowExclusiveLock);
	writer.id_index_ = with_ids ? index_open(tables.event_id_idx, RowExclusiveLock) : nullptr;
	writer.xid_ = FullTransactionIdGetDatum(GetTopFullTransactionId());

	writer.count_ = count;
	writer.slot_count_ = Min(count, max_slots);
	writer.slots_ = static_cast<TupleTableSlot **>(palloc(sizeof(TupleTableSlot *) * writer.slot_count_));
	for (int i = 0; i < writer.slot_count_; i++)
		writer.slots_[i] = table_slot_create(writer.table_, nullptr);

	const TriggerDesc *triggers = writer.table_->trigdesc;
	const bool fires = triggers != nullptr && triggers->trig_insert_after_row;
	writer.stored_ = fires ? static_cast<ItemPointerData *>(palloc(sizeof(ItemPointerData) * count)) : nullptr;
	writer.estate_ = nullptr;
	if (fires || has_other_indexes(writer.table_))
		writer.open_for_executor();
	return writer;
}

void EventWriter::open_for_executor()
{
	estate_ = CreateExecutorState();
	result_ = makeNode(ResultRelInfo);
	InitResultRelInfo(result_, table_, 1, nullptr, 0);
	ExecOpenIndices(result_, false);
}

void EventWriter::close()
{
	if (estate_ != nullptr) {
		ExecCloseIndices(result_);
		ExecResetTupleTable(estate_->es_tupleTable, false); // what the triggers used
		FreeExecutorState(estate_);
	}
	for (int i = 0; i < slot_count_; i++)
		ExecDropSingleTupleTableSlot(slots_[i]);
	if (id_index_ != nullptr)
		index_close(id_index_, NoLock);
	index_close(xid_index_, NoLock);
	index_close(pkey_, NoLock);
	table_close(table_, NoLock);
}

void EventWriter::insert_index_entries(TupleTableSlot *slot)
{
	if (estate_ != nullptr) {
		pg::insert_index_entries(result_, slot, estate_);
		ResetPerTupleExprContext(estate_);
		return;
	}
	const auto insert = [this, slot](Relation index, EventColumn first, EventColumn second, IndexUniqueCheck unique) {
		Datum values[2] = {slot->tts_values[first - 1], slot->tts_values[second - 1]};
		bool nulls[2] = {};
		IndexInfo info = {};
		info.type = T_IndexInfo;
		index_insert(index, values, nulls, &slot->tts_tid, table_, unique, false, &info);
	};
	insert(pkey_, event_stream, event_seq, UNIQUE_CHECK_YES);
	insert(xid_index_, event_xid, event_xid, UNIQUE_CHECK_NO);
	if (id_index_ != nullptr) // a partial index: only rows with an event_id are in it
		insert(id_index_, event_stream, event_event_id, UNIQUE_CHECK_YES);
}

ItemPointerData EventWriter::store(text *stream, const NewEvent *events, pg_uuid_t *event_id, int64 first_seq,
								   TimestampTz appended_at)
{
	ItemPointerData last;
	const CommandId command = GetCurrentCommandId(true);
	for (int done = 0; done < count_;) {
		const int batch = Min(slot_count_, count_ - done);
		for (int i = 0; i < batch; i++) {
			TupleTableSlot *slot = ExecClearTuple(slots_[i]);
			slot->tts_values[event_stream - 1] = PointerGetDatum(stream);
			slot->tts_values[event_seq - 1] = Int64GetDatum(first_seq + done + i);
			slot->tts_values[event_type - 1] = PointerGetDatum(events[done + i].type);
			slot->tts_values[event_payload - 1] = events[done + i].payload;
			slot->tts_values[event_appended_at - 1] = TimestampTzGetDatum(appended_at);
			slot->tts_values[event_xid - 1] = xid_;
			slot->tts_values[event_event_id - 1] = UUIDPGetDatum(event_id);
			std::memset(slot->tts_isnull, 0, event_columns * sizeof(bool));
			slot->tts_isnull[event_event_id - 1] = event_id == nullptr;
			ExecStoreVirtualTuple(slot);
		}
		if (batch == 1)
			table_tuple_insert(table_, slots_[0], command, 0, nullptr);
		else
			table_multi_insert(table_, slots_, batch, command, 0, nullptr);
		for (int i = 0; i < batch; i++) {
			insert_index_entries(slots_[i]);
			if (stored_ != nullptr)
				stored_[done + i] = slots_[i]->tts_tid;
		}
		last = slots_[batch - 1]->tts_tid;
		done += batch;
	}
	return last;
}

void EventWriter::fire_triggers()
{
	if (stored_ == nullptr)
		return;
	Oid user;
	int context;
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(table_->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	const int settings = NewGUCNestLevel();
	set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
					  false);

	estate_->es_opened_result_relations = lappend(estate_->es_opened_result_relations, result_);
	AfterTriggerBeginQuery();
	for (int i = 0; i < count_; i++) {
		if (!table_tuple_fetch_row_version(table_, &stored_[i], SnapshotAny, slots_[0]))
			elog(ERROR, "could not fetch the event that was just stored");
		ExecARInsertTriggers(estate_, result_, slots_[0], NIL, nullptr);
	}
	CommandCounterIncrement(); // so that the triggers see the rows
	AfterTriggerEndQuery(estate_);

	AtEOXact_GUC(false, settings);
	SetUserIdAndSecContext(user, context);
}

} // namespace pg_doorbell
