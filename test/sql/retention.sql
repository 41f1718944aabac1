-- Retention: rules, what they match, and what applying them removes.
CREATE EXTENSION pg_doorbell;
CREATE FUNCTION pg_temp.error_of(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
-- Appends `count` events; the first `old` of them become as old as is said.
CREATE FUNCTION pg_temp.fill(key text, count int, old int DEFAULT 0, age interval DEFAULT '0') RETURNS void LANGUAGE sql AS $$
    SELECT doorbell.append_batch(key, array_fill('test'::text, ARRAY[count]), array_fill('1'::jsonb, ARRAY[count]));
    UPDATE doorbell.event SET appended_at = appended_at - age WHERE stream = key AND seq <= old;
$$;
-- Applies the rules until nothing is left to do.
CREATE FUNCTION pg_temp.apply_all() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE removed bigint; total bigint := 0;
BEGIN
    LOOP
        removed := doorbell.apply_retention();
        EXIT WHEN removed = 0;
        total := total + removed;
    END LOOP;
    RETURN total;
END $$;

-- Without rules nothing goes.
SELECT pg_temp.fill('plain', 3, 3, '10 years');
SELECT doorbell.apply_retention();

-- Rules.
\pset format unaligned
SELECT statement, (pg_temp.error_of(statement)).* FROM (VALUES
    ($$SELECT doorbell.set_retention(NULL, '1 day', NULL)$$),
    ($$SELECT doorbell.set_retention('', '1 day', NULL)$$),
    ($$SELECT doorbell.set_retention(E'a\t', '1 day', NULL)$$),
    ($$SELECT doorbell.set_retention(repeat('a', 513), '1 day', NULL)$$),
    ($$SELECT doorbell.set_retention('a*b', '1 day', NULL)$$),
    ($$SELECT doorbell.set_retention('a**', '1 day', NULL)$$),
    ($$SELECT doorbell.set_retention('a', '0', NULL)$$),
    ($$SELECT doorbell.set_retention('a', '-1 day', NULL)$$),
    ($$SELECT doorbell.set_retention('a', NULL, 0)$$),
    ($$SELECT doorbell.apply_retention(0)$$),
    ($$SELECT doorbell.apply_retention(NULL)$$)
) AS bad (statement);
\pset format aligned
SELECT doorbell.set_retention('a', '1 day', 5);
SELECT doorbell.set_retention('a', NULL, 5);
SELECT doorbell.set_retention('b*', '1 month', NULL);
SELECT * FROM doorbell.retention ORDER BY pattern;
SELECT doorbell.set_retention('a', NULL, NULL);
SELECT doorbell.set_retention('b*', NULL, NULL);
SELECT doorbell.set_retention('never there', NULL, NULL);
SELECT * FROM doorbell.retention ORDER BY pattern;
BEGIN READ ONLY;
SELECT doorbell.set_retention('a', '1 day', 5);
ROLLBACK;
BEGIN READ ONLY;
SELECT doorbell.apply_retention();
ROLLBACK;

-- By age and by number, whichever takes more; low water says what went, and the seqs go on.
SELECT pg_temp.fill('age', 10, 6, '2 days');
SELECT pg_temp.fill('number', 10);
SELECT pg_temp.fill('both', 10, 6, '2 days');
SELECT pg_temp.fill('all', 10, 10, '2 days');
SELECT doorbell.set_retention('age', '1 day', NULL);
SELECT doorbell.set_retention('number', NULL, 3);
SELECT doorbell.set_retention('both', '1 day', 8);
SELECT doorbell.set_retention('all', '1 day', 100);
SELECT pg_temp.apply_all();
SELECT * FROM doorbell.streams() ORDER BY 1;
SELECT min(seq), max(seq) FROM doorbell.replay('age');
SELECT doorbell.append('all', 'test', '1');
SELECT doorbell.apply_retention();

-- The most specific rule counts: the exact key, else the longest prefix. Whatever no rule matches stays, before, between
-- and behind the ones that do.
DELETE FROM doorbell.retention;
SELECT pg_temp.fill(key, 10) FROM unnest('{m:,m:a,m:a:1,m:a:2,m:b,m:b:1,n,o:1,p}'::text[]) key;
SELECT doorbell.set_retention('m:*', NULL, 9);
SELECT doorbell.set_retention('m:a*', NULL, 7);
SELECT doorbell.set_retention('m:a:*', NULL, 6);
SELECT doorbell.set_retention('m:a:2', NULL, 2);
SELECT doorbell.set_retention('m:b', NULL, 8);
SELECT doorbell.set_retention('o*', NULL, 1);
SELECT doorbell.set_retention('zz', NULL, 1);
SELECT pg_temp.apply_all();
SELECT stream, low_water FROM doorbell.streams() WHERE stream >= 'm' ORDER BY 1;
SELECT doorbell.set_retention('*', NULL, 5);
SELECT pg_temp.apply_all();
SELECT stream, low_water FROM doorbell.streams() ORDER BY 1;

-- In batches: a call removes no more than it is told, each stream gets its turn, and 0 comes when nothing is left.
DELETE FROM doorbell.retention;
SELECT pg_temp.fill(key, 101) FROM unnest('{x:1,x:2,x:3}'::text[]) key;
SELECT doorbell.set_retention('x:*', NULL, 1);
SELECT doorbell.apply_retention(60);
SELECT doorbell.apply_retention(60);
SELECT doorbell.apply_retention(60);
SELECT stream, low_water FROM doorbell.streams('x:') ORDER BY 1;
SELECT doorbell.apply_retention(1000);
SELECT doorbell.apply_retention(1000);
SELECT stream, low_water FROM doorbell.streams('x:') ORDER BY 1;
-- More streams than a call has locks for.
SELECT count(pg_temp.fill('y' || i, 2)) FROM generate_series(1, 300) i;
SELECT doorbell.set_retention('y*', NULL, 1);
SELECT doorbell.apply_retention(1000);
SELECT doorbell.apply_retention(1000);
SELECT doorbell.apply_retention(1000);

-- A required consumer holds back what it has not committed …
DELETE FROM doorbell.retention;
SELECT pg_temp.fill('held', 20, 15, '2 days');
SELECT doorbell.set_consumer('audit', true, '1 day');
SELECT doorbell.set_consumer('mail', true, '1 day');
SELECT doorbell.set_retention('held', '36 hours', NULL);
SELECT doorbell.commit_cursor('audit', 'held', 5);
SELECT doorbell.commit_cursor('mail', 'held', 10);
SELECT doorbell.commit_cursor('not required', 'held', 1);
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('held');
-- … until it commits …
SELECT doorbell.commit_cursor('audit', 'held', 12);
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('held');
-- … or is not required any more …
SELECT doorbell.set_consumer('mail', false);
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('held');
-- … or has held them for long enough. Its cursor in one stream holds back no other one.
SELECT doorbell.set_consumer('audit', true, '6 hours');
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('held');
SELECT pg_temp.fill('free', 3, 3, '2 days');
SELECT doorbell.set_retention('free', '1 day', NULL);
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('free');
-- The same by number: an event is due since so many followed it.
SELECT pg_temp.fill('counted', 20, 20, '10 days');
SELECT pg_temp.fill('counted', 10);
SELECT doorbell.set_retention('counted', NULL, 5);
SELECT doorbell.set_consumer('audit', true, '3 days');
SELECT doorbell.commit_cursor('audit', 'counted', 0);
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('counted');
SELECT doorbell.commit_cursor('audit', 'counted', 28);
SELECT pg_temp.apply_all();
SELECT doorbell.low_water('counted');

-- EXECUTE is all that is needed.
CREATE ROLE regress_doorbell_keeper;
GRANT USAGE ON SCHEMA doorbell TO regress_doorbell_keeper;
SET ROLE regress_doorbell_keeper;
SELECT doorbell.apply_retention();
RESET ROLE;
GRANT EXECUTE ON FUNCTION doorbell.apply_retention, doorbell.set_retention TO regress_doorbell_keeper;
SET ROLE regress_doorbell_keeper;
SELECT doorbell.set_retention('plain', '1 year', NULL);
SELECT doorbell.apply_retention();
DELETE FROM doorbell.retention;
RESET ROLE;

DROP EXTENSION pg_doorbell;
DROP SCHEMA doorbell;
DROP ROLE regress_doorbell_keeper;
