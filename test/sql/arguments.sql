-- Bad arguments: a clear error that names the value, its own SQLSTATE, and nothing stored.
CREATE EXTENSION pg_doorbell;
-- What a statement fails with.
CREATE FUNCTION pg_temp.error_of(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
\pset format unaligned
-- S1: among them, a type with CR or LF.
SELECT statement, (pg_temp.error_of(statement)).* FROM (VALUES
    ($$SELECT doorbell.append(NULL, 'test', '1')$$),
    ($$SELECT doorbell.append('', 'test', '1')$$),
    ($$SELECT doorbell.append(E'line\nbreak', 'test', '1')$$),
    ($$SELECT doorbell.append(E'delete\x7f', 'test', '1')$$),
    ($$SELECT doorbell.append('s', NULL, '1')$$),
    ($$SELECT doorbell.append('s', '', '1')$$),
    ($$SELECT doorbell.append('s', E'carriage\rreturn', '1')$$),
    ($$SELECT doorbell.append('s', E'line\nfeed', '1')$$),
    ($$SELECT doorbell.append('s', 'test', NULL)$$),
    ($$SELECT doorbell.append('s', 'test', '1', -1)$$),
    ($$SELECT doorbell.append_batch('s', NULL, ARRAY['1']::jsonb[])$$),
    ($$SELECT doorbell.append_batch('s', '{a,b}', ARRAY['1']::jsonb[])$$),
    ($$SELECT doorbell.append_batch('s', '{a,NULL}', ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.append_batch('s', '{a,b}', ARRAY['1', NULL]::jsonb[])$$),
    ($$SELECT doorbell.append_batch('s', '{}', '{}')$$),
    ($$SELECT doorbell.append_batch('s', '{{a},{b}}', ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.append_batch('s', ARRAY['a', E'b\t'], ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.append_batch('s', '{a}', ARRAY['1']::jsonb[], -5)$$),
    ($$SELECT doorbell.append_many('{s}', '{a,b}', ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.append_many('{s,""}', '{a,b}', ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.append_many('{s,NULL}', '{a,b}', ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.append_many('{s,t}', '{a,""}', ARRAY['1', '2']::jsonb[])$$),
    ($$SELECT doorbell.replay(NULL)$$),
    ($$SELECT doorbell.replay('')$$),
    ($$SELECT doorbell.replay('s', NULL)$$),
    ($$SELECT doorbell.replay('s', -1)$$),
    ($$SELECT doorbell.replay('s', 0, NULL)$$),
    ($$SELECT doorbell.replay('s', 0, 0)$$),
    ($$SELECT doorbell.replay_many('{s}', '{0,0}')$$),
    ($$SELECT doorbell.replay_many('{s,t}', '{0,-7}')$$),
    ($$SELECT doorbell.replay_many('{s,NULL}', '{0,0}')$$),
    ($$SELECT doorbell.replay_many('{s}', '{0}', -3)$$),
    ($$SELECT doorbell.high_water(NULL)$$),
    ($$SELECT doorbell.low_water('')$$),
    ($$SELECT doorbell.streams(NULL)$$),
    ($$SELECT doorbell.ring('s', NULL)$$),
    ($$SELECT doorbell.ring('s', -1)$$),
    ($$SELECT doorbell.ring('', 1)$$),
    ($$SELECT doorbell.trim('s', NULL)$$),
    ($$SELECT doorbell.trim('s', -1)$$),
    ($$SELECT doorbell.trim(NULL, 1)$$)
) AS bad (statement);
\pset format aligned
SELECT * FROM doorbell.append_many('{}', '{}', '{}');
BEGIN READ ONLY;
SELECT doorbell.append('s', 'test', '1');
ROLLBACK;
SELECT count(*) FROM doorbell.event;
DROP EXTENSION pg_doorbell;
