-- Consumers of all streams: cursors of replay_all move on and never back, and hold back what was not given.
CREATE EXTENSION pg_doorbell;
CREATE FUNCTION pg_temp.error_of(statement text, OUT code text, OUT message text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
END $$;
-- Each reads on from the one before, some events at a time.
CREATE TABLE read (n int, cursor text, events bigint);
CREATE FUNCTION pg_temp.read_on(max_events int, times int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE at text := (SELECT cursor FROM read ORDER BY n DESC LIMIT 1); next text; got bigint; total bigint := 0;
BEGIN
    FOR i IN 1 .. times LOOP
        SELECT e.cursor, e.ordinality INTO next, got FROM doorbell.replay_all(at, max_events) WITH ORDINALITY e ORDER BY e.ordinality DESC LIMIT 1;
        EXIT WHEN next IS NULL;
        at := next;
        total := total + 1;
        INSERT INTO read SELECT coalesce(max(n), 0) + 1, at, got FROM read;
    END LOOP;
    RETURN total;
END $$;
SELECT count(doorbell.append('s' || i % 3, 'test', to_jsonb(i))) FROM generate_series(1, 12) i;
SELECT pg_temp.read_on(5, 10);
SELECT count(doorbell.append('s' || i % 4, 'test', to_jsonb(i))) FROM generate_series(1, 6) i;
SELECT pg_temp.read_on(2, 2);
SELECT doorbell.append('s1', 'test', '1');
SELECT pg_temp.read_on(100, 10) > 0 AS some;
SELECT doorbell.append('s2', 'test', '1');
SELECT pg_temp.read_on(100, 10) > 0 AS some;

-- Each precedes itself and all later ones, and none before.
SELECT count(*) > 50 AS pairs, bool_and(doorbell.cursor_precedes(a.cursor, b.cursor) = (a.n <= b.n)) AS in_order
FROM read a, read b;
-- What it was given and its lag are all there is, at every place in a window.
SELECT count(*) > 7 AS cursors, bool_and(l.events + given = (SELECT count(*) FROM doorbell.event)) AS exact, bool_and((l.seconds > 0) = (l.events > 0)) AS aged
FROM (SELECT cursor, sum(events) OVER (ORDER BY n) AS given FROM read) r, doorbell.cursor_lag(r.cursor) l;
-- Commits.
SELECT doorbell.commit_cursor('c', cursor) FROM read WHERE n = 3;
SELECT doorbell.commit_cursor('c', cursor) FROM read WHERE n = 3;
SELECT (pg_temp.error_of(format('SELECT doorbell.commit_cursor(%L, %L)', 'c', cursor))).* FROM read WHERE n = 2;
SELECT n FROM read WHERE cursor = doorbell.cursor('c');
SELECT doorbell.commit_cursor('c', cursor) FROM read WHERE n = 5;
SELECT doorbell.move_cursor('c', cursor) FROM read WHERE n = 1;
SELECT n FROM read WHERE cursor = doorbell.cursor('c');
SELECT consumer, stream, seq, (SELECT n FROM read r WHERE r.cursor = c.cursor), lag_events, lag_seconds > 0 AS late FROM doorbell.consumers c;
\pset format unaligned
SELECT statement, (pg_temp.error_of(statement)).code FROM (VALUES
    ($$SELECT doorbell.commit_cursor('c', 'nonsense')$$),
    ($$SELECT doorbell.commit_cursor('new', 'nonsense')$$),
    ($$SELECT doorbell.move_cursor('c', 'nonsense')$$),
    ($$SELECT doorbell.move_cursor('c', NULL)$$),
    ($$SELECT doorbell.commit_cursor('', 'nonsense')$$),
    ($$SELECT doorbell.cursor_precedes('nonsense', 'nonsense')$$),
    ($$SELECT doorbell.cursor_lag('nonsense')$$)
) AS bad (statement);
\pset format aligned

-- Required: what its holder was given can go, in the middle of a window, too.
SELECT doorbell.set_retention('*', NULL, 1);
SELECT doorbell.set_consumer('c', true);
SELECT doorbell.move_cursor('c', cursor) FROM read WHERE n = 1;
SELECT doorbell.apply_retention();
SELECT stream, low_water FROM doorbell.streams();
SELECT doorbell.commit_cursor('c', cursor) FROM read WHERE n = 3;
SELECT doorbell.apply_retention();
SELECT stream, low_water FROM doorbell.streams();
SELECT doorbell.commit_cursor('c', cursor) FROM read ORDER BY n DESC LIMIT 1;
SELECT doorbell.apply_retention();
SELECT * FROM doorbell.streams();

-- A cursor of another history is behind nothing, and cannot be moved on from.
SELECT doorbell.append('s0', 'test', '1') FROM generate_series(1, 3);
UPDATE doorbell.history SET id = '00000000-0000-0000-0000-000000000001';
SELECT doorbell.apply_retention();
DELETE FROM read;
SELECT pg_temp.read_on(100, 1);
SELECT (pg_temp.error_of(format('SELECT doorbell.commit_cursor(%L, %L)', 'c', cursor))).* FROM read;
SELECT doorbell.move_cursor('c', cursor) FROM read;
SELECT doorbell.apply_retention();

DROP TABLE read;
DROP EXTENSION pg_doorbell;
