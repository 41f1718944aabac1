-- The extension installs, documents every object, and grants nothing to PUBLIC.
CREATE EXTENSION pg_doorbell;

-- Every object has a comment. (From version 17 on, row types of tables and array types are objects of the extension, too.)
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
FROM pg_depend d
WHERE d.refclassid = 'pg_extension'::regclass
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_doorbell')
  AND d.deptype = 'e'
  AND obj_description(d.objid, d.classid::regclass::name) IS NULL
  AND d.classid <> 'pg_namespace'::regclass
  AND NOT EXISTS (SELECT FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
      WHERE d.classid = 'pg_type'::regclass AND t.oid = d.objid AND (t.typelem <> 0 OR c.relkind <> 'c'))
ORDER BY 1;
SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE relnamespace = 'doorbell'::regnamespace AND relkind IN ('r', 'v') AND attnum > 0
  AND col_description(attrelid, attnum) IS NULL;

-- The signatures are the contract.
SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, provolatile
FROM pg_proc WHERE pronamespace = 'doorbell'::regnamespace ORDER BY 1, 2;
\d doorbell.entry

-- PUBLIC has no right on anything.
SELECT proname FROM pg_proc WHERE pronamespace = 'doorbell'::regnamespace AND has_function_privilege('public', oid, 'EXECUTE');
SELECT has_schema_privilege('public', 'doorbell', 'USAGE');
SELECT relname FROM pg_class WHERE relnamespace = 'doorbell'::regnamespace AND relkind = 'r' AND has_table_privilege('public', oid, 'SELECT');

-- All tables are dumped with their rows but the history: a restored dump is another one.
SELECT c.oid::regclass FROM pg_extension e, unnest(e.extconfig) AS c(oid) WHERE extname = 'pg_doorbell' ORDER BY 1;

-- The settings of the prefix are ours.
SET doorbell.ring_mode = loud;
SET doorbell.nonsense = 1;
SHOW doorbell.ring_mode;

-- The library finds its tables again after the extension was dropped and created.
SELECT doorbell.append('s', 'test', '1');
DROP EXTENSION pg_doorbell;
CREATE EXTENSION pg_doorbell;
SELECT doorbell.append('s', 'test', '1');
SELECT count(*) FROM doorbell.replay('s');
DROP EXTENSION pg_doorbell;
