-- Consumers: cursors that move on and never back, unless on purpose.
CREATE EXTENSION pg_doorbell;
SET timezone = 'UTC';
CREATE VIEW committed AS SELECT consumer, stream, seq, event_check, cursor FROM doorbell.consumer_cursor ORDER BY 1, 2;
CREATE FUNCTION pg_temp.error_of(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
SELECT count(doorbell.append('s', 'test', to_jsonb(i))) FROM generate_series(1, 10) i;

-- Unknown, then committed, also at 0 and again.
SELECT doorbell.cursor('c', 's'), doorbell.mark('c', 's'), doorbell.cursor('c');
SELECT doorbell.commit_cursor('c', 's', 0);
SELECT doorbell.cursor('c', 's'), doorbell.mark('c', 's');
SELECT doorbell.commit_cursor('c', 's', 4);
SELECT doorbell.commit_cursor('c', 's', 4);
SELECT doorbell.cursor('c', 's'), doorbell.mark('c', 's');

-- An older seq is refused and nothing moves.
\pset format unaligned
SELECT (pg_temp.error_of($$SELECT doorbell.commit_cursor('c', 's', 3)$$)).*;
\pset format aligned
SELECT doorbell.cursor('c', 's');

-- The check belongs to the seq: it stays when the same seq comes without it, and goes with the seq.
SELECT doorbell.commit_cursor('c', 's', 5, '0badcafe');
SELECT doorbell.commit_cursor('c', 's', 5);
SELECT doorbell.mark('c', 's');
SELECT doorbell.commit_cursor('c', 's', 6);
SELECT doorbell.mark('c', 's');

-- On purpose it can go back.
SELECT doorbell.move_cursor('c', 's', 2, '0badcafe');
SELECT doorbell.mark('c', 's');
SELECT doorbell.move_cursor('new', 's', 9);
SELECT doorbell.mark('new', 's');

-- Consumers and streams do not mix; the work and its cursor are there together or not at all.
SELECT doorbell.commit_cursor('c', 't', 1);
SELECT doorbell.commit_cursor('d', 's', 1);
BEGIN;
CREATE TABLE done AS SELECT * FROM doorbell.replay('s', 2, 3);
SELECT doorbell.commit_cursor('c', 's', 5);
ROLLBACK;
SELECT * FROM committed;

-- Bad arguments.
\pset format unaligned
SELECT statement, (pg_temp.error_of(statement)).* FROM (VALUES
    ($$SELECT doorbell.commit_cursor(NULL, 's', 1)$$),
    ($$SELECT doorbell.commit_cursor('', 's', 1)$$),
    ($$SELECT doorbell.commit_cursor(E'c\n', 's', 1)$$),
    ($$SELECT doorbell.commit_cursor(repeat('c', 513), 's', 1)$$),
    ($$SELECT doorbell.commit_cursor('c', NULL, 1)$$),
    ($$SELECT doorbell.commit_cursor('c', '', 1)$$),
    ($$SELECT doorbell.commit_cursor('c', 's', NULL)$$),
    ($$SELECT doorbell.commit_cursor('c', 's', -1)$$),
    ($$SELECT doorbell.commit_cursor('c', 's', 7, '0BADCAFE')$$),
    ($$SELECT doorbell.commit_cursor('c', 's', 7, '0badcaf')$$),
    ($$SELECT doorbell.commit_cursor('c', 's', 7, '00000000')$$),
    ($$SELECT doorbell.commit_cursor('c', 's', 0, '0badcafe')$$),
    ($$SELECT doorbell.move_cursor('c', 's', -1)$$),
    ($$SELECT doorbell.move_cursor('', 's', 1)$$),
    ($$SELECT doorbell.cursor('', 's')$$),
    ($$SELECT doorbell.cursor('c', '')$$),
    ($$SELECT doorbell.cursor(NULL)$$),
    ($$SELECT doorbell.mark('c', NULL)$$),
    ($$SELECT doorbell.commit_cursor('c', NULL)$$),
    ($$SELECT doorbell.set_consumer('', true)$$),
    ($$SELECT doorbell.set_consumer('c', NULL)$$),
    ($$SELECT doorbell.set_consumer('c', true, NULL)$$),
    ($$SELECT doorbell.set_consumer('c', true, '0')$$),
    ($$SELECT doorbell.set_consumer('c', true, '1 day -25 hours')$$),
    ($$SELECT doorbell.forget_consumer(NULL)$$)
) AS bad (statement);
\pset format aligned
BEGIN READ ONLY;
SELECT doorbell.cursor('c', 's');
SELECT doorbell.commit_cursor('c', 's', 7);
ROLLBACK;

-- What operators see. Seqs that were trimmed are nobody's lag.
SELECT doorbell.set_consumer('c', true);
SELECT doorbell.set_consumer('idle', false, '1 hour');
SELECT doorbell.set_consumer('idle', true, '2 hours');
SELECT doorbell.commit_cursor('d', 's', 10);
SELECT doorbell.trim('s', 4);
SELECT consumer, stream, seq, cursor, committed_at <= now() AS committed, lag_events, lag_seconds > 0 AS late, required, hold_at_most
FROM doorbell.consumers ORDER BY 1, 2;

-- Forgotten.
SELECT doorbell.forget_consumer('c');
SELECT doorbell.forget_consumer('idle');
SELECT doorbell.forget_consumer('nobody');
SELECT consumer, stream FROM doorbell.consumers ORDER BY 1, 2;

-- EXECUTE is all that is needed; monitors can look, and only look.
CREATE ROLE regress_doorbell_worker;
CREATE ROLE regress_doorbell_monitor;
GRANT USAGE ON SCHEMA doorbell TO regress_doorbell_worker;
GRANT EXECUTE ON FUNCTION doorbell.commit_cursor(text, text, bigint, text), doorbell.cursor(text, text) TO regress_doorbell_worker;
GRANT pg_monitor TO regress_doorbell_monitor;
SET ROLE regress_doorbell_worker;
SELECT doorbell.commit_cursor('w', 's', 5);
SELECT doorbell.cursor('w', 's');
SELECT doorbell.move_cursor('w', 's', 1);
SELECT count(*) FROM doorbell.consumers;
SELECT count(*) FROM doorbell.consumer_cursor;
SET ROLE regress_doorbell_monitor;
SELECT consumer, stream, seq, lag_events FROM doorbell.consumers ORDER BY 1;
SELECT count(*) FROM doorbell.retention;
SELECT doorbell.commit_cursor('w', 's', 6);
SELECT doorbell.replay('s');
RESET ROLE;

DROP VIEW committed;
DROP EXTENSION pg_doorbell;
DROP SCHEMA doorbell;
DROP ROLE regress_doorbell_worker, regress_doorbell_monitor;
