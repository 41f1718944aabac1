-- capture(): rows of a table become events of the streams that the template names.
CREATE EXTENSION pg_doorbell;
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, state text, dropped int, total numeric(10, 2), placed date DEFAULT '2026-01-02');
ALTER TABLE orders DROP COLUMN dropped;
CREATE TRIGGER capture AFTER INSERT OR UPDATE OR DELETE ON orders
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('orders:{customer_id}');
INSERT INTO orders VALUES (1, 7, 'new', 9.90), (2, 8, 'new', 1);
UPDATE orders SET state = 'paid' WHERE id = 1;
DELETE FROM orders WHERE id = 2;
SELECT stream, seq, type, payload FROM doorbell.replay_many('{orders:7,orders:8}', '{0,0}') ORDER BY stream, seq;

-- A row that moves leaves an event in both streams.
UPDATE orders SET customer_id = 8 WHERE id = 1;
SELECT stream, seq, type, payload -> 'old' -> 'customer_id' AS old, payload -> 'new' -> 'customer_id' AS new FROM doorbell.replay_many('{orders:7,orders:8}', '{2,2}') ORDER BY stream, seq;

-- Templates: several columns, literal braces, a type of one's own.
DROP TRIGGER capture ON orders;
CREATE TRIGGER capture AFTER INSERT ON orders
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('{{{customer_id}}}/{placed}', 'order.{state}');
INSERT INTO orders VALUES (3, 9, 'new', 5);
SELECT e.stream, type FROM doorbell.streams('{') s, doorbell.replay(s.stream) e;

-- Rolled back with its transaction, and by savepoints.
BEGIN;
INSERT INTO orders VALUES (4, 9, 'new', 5);
ROLLBACK;
SELECT count(*) FROM doorbell.replay('{9}/2026-01-02');

-- Deferred constraint triggers append just before the commit.
CREATE TABLE notes (room text, body text);
CREATE CONSTRAINT TRIGGER capture AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('room:{room}', 'note');
BEGIN;
INSERT INTO notes VALUES ('blue', 'hello');
SELECT count(*) FROM doorbell.replay('room:blue');
COMMIT;
SELECT payload FROM doorbell.replay('room:blue');

-- Whoever may change the table needs no right on doorbell.
CREATE ROLE regress_doorbell_clerk;
GRANT INSERT ON notes TO regress_doorbell_clerk;
SET ROLE regress_doorbell_clerk;
INSERT INTO notes VALUES ('blue', 'from the clerk');
RESET ROLE;
SELECT seq, payload -> 'new' ->> 'body' AS body FROM doorbell.replay('room:blue');

-- Partitions: the row's own table is named.
CREATE TABLE parted (id int, kind text) PARTITION BY LIST (kind);
CREATE TABLE parted_a PARTITION OF parted FOR VALUES IN ('a');
CREATE TRIGGER capture AFTER INSERT ON parted FOR EACH ROW EXECUTE FUNCTION doorbell.capture('parted:{kind}');
INSERT INTO parted VALUES (1, 'a');
SELECT payload FROM doorbell.replay('parted:a');

-- Errors: each names what is wrong, and the row is not stored.
-- What a statement fails with.
CREATE FUNCTION pg_temp.error_of(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
CREATE FUNCTION pg_temp.error_with(timing text, level text, arguments text, statement text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.error_of(format('DROP TRIGGER IF EXISTS capture ON orders; CREATE TRIGGER capture %s INSERT ON orders FOR EACH %s EXECUTE FUNCTION doorbell.capture(%s); %s', timing, level, arguments, statement))::text
$$;
SET client_min_messages = warning;
\pset format unaligned
SELECT arguments, pg_temp.error_with(timing, level, arguments, statement) FROM (VALUES
    ('AFTER', 'ROW', $t$'orders:{nonsense}'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$'orders:{customer_id}'$t$, $t$INSERT INTO orders VALUES (10, NULL, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$'orders:{customer_id'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$'orders:{}'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$'orders:}'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$''$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$'{state}'$t$, $t$INSERT INTO orders VALUES (10, 1, E'new\n', 5)$t$),
    ('AFTER', 'ROW', $t$'orders', '{state}'$t$, $t$INSERT INTO orders VALUES (10, 1, '', 5)$t$),
    ('AFTER', 'ROW', $t$$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'ROW', $t$'a', 'b', 'c'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('BEFORE', 'ROW', $t$'orders'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$),
    ('AFTER', 'STATEMENT', $t$'orders'$t$, $t$INSERT INTO orders VALUES (10, 1, 'new', 5)$t$)
) AS bad (timing, level, arguments, statement);
\pset format aligned
SELECT doorbell.capture();
SELECT count(*) FROM orders WHERE id = 10;
DROP TABLE orders, notes, parted;
DROP ROLE regress_doorbell_clerk;
DROP EXTENSION pg_doorbell;
