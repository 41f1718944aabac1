// Capture: rows of an application's own table become events, in the transaction that changes them.
//
//   CREATE TRIGGER … AFTER INSERT OR UPDATE OR DELETE ON orders
//   FOR EACH ROW EXECUTE FUNCTION doorbell.capture('orders:{customer_id}');
//
// 1. The first argument is a template of the stream key, the second, optional one of the event type. {column} stands
//    for the row's value as text; {{ and }} for the braces themselves. The type is "insert", "update" or "delete"
//    without a second argument.
// 2. The payload is {"op","schema","table","new","old"}, where op is the type's default and a row that the operation
//    does not have is null.
// 3. The key is made of the new row, for a delete of the old one. An update that moves a row to another stream is
//    appended to both, the old stream first, so that its followers see the row leave.
// 4. Whoever may change the table needs no right on doorbell: to create the trigger takes EXECUTE on this function.
#include "append.hpp"
#include "args.hpp"
#include "tables.hpp"

namespace pg_doorbell {

enum class Operation { insert, update, remove };

static const char *name_of(Operation operation)
{
	return operation == Operation::insert ? "insert" : operation == Operation::update ? "update" : "delete";
}

struct Change {
	Operation operation;
	Relation table;
	HeapTuple new_row; // null for a delete
	HeapTuple old_row; // null for an insert
};

static const TriggerData *check_call(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("doorbell.capture() can only be called as a trigger"));
	const auto *data = reinterpret_cast<TriggerData *>(fcinfo->context);
	const Trigger *trigger = data->tg_trigger;
	if (!TRIGGER_FIRED_FOR_ROW(data->tg_event) || !TRIGGER_FIRED_AFTER(data->tg_event))
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("trigger \"%s\" on table \"%s\" must be fired after each row", trigger->tgname,
					   RelationGetRelationName(data->tg_relation)),
				errhint("Create it as AFTER INSERT OR UPDATE OR DELETE … FOR EACH ROW."));
	if (trigger->tgnargs < 1 || trigger->tgnargs > 2)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("trigger \"%s\" on table \"%s\" must give one or two arguments: %d", trigger->tgname,
					   RelationGetRelationName(data->tg_relation), trigger->tgnargs),
				errhint("Give a stream template and, if you like, a type template: "
						"doorbell.capture('orders:{customer_id}', 'order')."));
	return data;
}

static Change change_of(const TriggerData *data)
{
	if (TRIGGER_FIRED_BY_INSERT(data->tg_event))
		return Change{Operation::insert, data->tg_relation, data->tg_trigtuple, nullptr};
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		return Change{Operation::update, data->tg_relation, data->tg_newtuple, data->tg_trigtuple};
	return Change{Operation::remove, data->tg_relation, nullptr, data->tg_trigtuple};
}

static void append_column(StringInfo out, const char *text_template, std::string_view column, Relation table,
						  HeapTuple row)
{
	const TupleDesc columns = RelationGetDescr(table);
	char *name = pnstrdup(column.data(), column.size());
	const int number = SPI_fnumber(columns, name);
	if (number <= 0)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("column \"%s\" of template \"%s\" does not exist in table \"%s\"", name, text_template,
					   RelationGetRelationName(table)));
	char *value = SPI_getvalue(row, columns, number);
	if (value == nullptr)
		ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("column \"%s\" of template \"%s\" must not be null", name, text_template),
				errdetail("Table \"%s\".", RelationGetRelationName(table)));
	appendStringInfoString(out, value);
}

// The text of a template for one row.
static text *expand(const char *text_template, Relation table, HeapTuple row)
{
	StringInfoData out;
	initStringInfo(&out);
	for (const char *at = text_template; *at != '\0'; at++) {
		if ((at[0] == '{' || at[0] == '}') && at[1] == at[0]) {
			appendStringInfoChar(&out, *at++);
		} else if (at[0] == '{') {
			const char *close = std::strchr(at, '}');
			if (close == nullptr || close == at + 1)
				ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("template \"%s\" has a \"{\" without a column name and \"}\"", text_template),
						errhint("Write {column} for a column's value, and {{ for a brace."));
			append_column(&out, text_template, std::string_view(at + 1, close - at - 1), table, row);
			at = close;
		} else if (at[0] == '}') {
			ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("template \"%s\" has a \"}\" without a \"{\"", text_template),
					errhint("Write {column} for a column's value, and }} for a brace."));
		} else {
			appendStringInfoChar(&out, *at);
		}
	}
	return cstring_to_text_with_len(out.data, out.len);
}

// to_jsonb() of a row. It learns its argument's type from an expression, so it is given one.
static Jsonb *row_to_jsonb(FunctionCallInfo fcinfo, HeapTuple row, TupleDesc columns)
{
	auto *to_jsonb = static_cast<FmgrInfo *>(fcinfo->flinfo->fn_extra);
	if (to_jsonb == nullptr) {
		MemoryContext before = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		to_jsonb = static_cast<FmgrInfo *>(palloc0(sizeof(FmgrInfo)));
		fmgr_info_cxt(F_TO_JSONB, to_jsonb, fcinfo->flinfo->fn_mcxt);
		Node *record = reinterpret_cast<Node *>(makeNullConst(RECORDOID, -1, InvalidOid));
		fmgr_info_set_expr(reinterpret_cast<Node *>(makeFuncExpr(F_TO_JSONB, JSONBOID, list_make1(record), InvalidOid,
																 InvalidOid, COERCE_EXPLICIT_CALL)),
						   to_jsonb);
		fcinfo->flinfo->fn_extra = to_jsonb;
		MemoryContextSwitchTo(before);
	}
	return DatumGetJsonbP(FunctionCall1(to_jsonb, heap_copy_tuple_as_datum(row, columns)));
}

static void push_key(JsonbParseState **state, const char *key)
{
	JsonbValue value;
	value.type = jbvString;
	value.val.string.val = const_cast<char *>(key);
	value.val.string.len = static_cast<int>(std::strlen(key));
	pushJsonbValue(state, WJB_KEY, &value);
}

static void push_string(JsonbParseState **state, const char *key, const char *content)
{
	push_key(state, key);
	JsonbValue value;
	value.type = jbvString;
	value.val.string.val = const_cast<char *>(content);
	value.val.string.len = static_cast<int>(std::strlen(content));
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void push_row(FunctionCallInfo fcinfo, JsonbParseState **state, const char *key, HeapTuple row,
					 TupleDesc columns)
{
	push_key(state, key);
	JsonbValue value;
	if (row == nullptr) {
		value.type = jbvNull;
	} else {
		Jsonb *object = row_to_jsonb(fcinfo, row, columns);
		value.type = jbvBinary;
		value.val.binary.data = &object->root;
		value.val.binary.len = static_cast<int>(VARSIZE(object) - VARHDRSZ);
	}
	pushJsonbValue(state, WJB_VALUE, &value);
}

static Datum payload_of(FunctionCallInfo fcinfo, const Change &change)
{
	const TupleDesc columns = RelationGetDescr(change.table);
	JsonbParseState *state = nullptr;
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, nullptr);
	push_string(&state, "op", name_of(change.operation));
	push_string(&state, "schema", get_namespace_name(RelationGetNamespace(change.table)));
	push_string(&state, "table", RelationGetRelationName(change.table));
	push_row(fcinfo, &state, "new", change.new_row, columns);
	push_row(fcinfo, &state, "old", change.old_row, columns);
	JsonbValue *object = pushJsonbValue(&state, WJB_END_OBJECT, nullptr);
	return JsonbPGetDatum(JsonbValueToJsonb(object));
}

DOORBELL_SQL_FUNCTION(doorbell_capture)
{
	const TriggerData *data = check_call(fcinfo);
	const Change change = change_of(data);
	char **arguments = data->tg_trigger->tgargs;
	HeapTuple row = change.new_row != nullptr ? change.new_row : change.old_row;

	text *stream = check_stream(expand(arguments[0], change.table, row));
	NewEvent event;
	event.type = data->tg_trigger->tgnargs == 2 ? check_type(expand(arguments[1], change.table, row))
												: cstring_to_text(name_of(change.operation));
	event.payload = payload_of(fcinfo, change);

	if (change.operation == Operation::update) {
		text *old_stream = check_stream(expand(arguments[0], change.table, change.old_row));
		if (view_of(old_stream) != view_of(stream))
			append_events(old_stream, &event, 1);
	}
	append_events(stream, &event, 1);
	return PointerGetDatum(nullptr);
}

} // namespace pg_doorbell
