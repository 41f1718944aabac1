-- The end of a stream is found whatever happened to its last event.
CREATE EXTENSION pg_doorbell;

-- Rolled back
SELECT doorbell.append('s', 'test', to_jsonb(n)) FROM generate_series(1, 3) n;
BEGIN;
SELECT doorbell.append('s', 'test', '4');
SAVEPOINT later;
SELECT doorbell.append('s', 'test', '5');
ROLLBACK TO later;
SELECT doorbell.append('s', 'test', '5');
ROLLBACK;
SELECT doorbell.append('s', 'test', '4');

-- An append that failed
SELECT doorbell.append('s', 'test', '5', expected_seq => 3);
SELECT doorbell.append('s', 'test', '5', expected_seq => 4);

-- Stored by somebody else
INSERT INTO doorbell.event VALUES ('s', 10, 'test', '10', now(), '0');
SELECT doorbell.append('s', 'test', '11');
BEGIN;
INSERT INTO doorbell.event VALUES ('s', 20, 'test', '20', now(), '0');
SELECT doorbell.append('s', 'test', '21');
INSERT INTO doorbell.event VALUES ('s', 30, 'test', '30', now(), '0');
SELECT doorbell.append('s', 'test', '31');
ROLLBACK;
SELECT doorbell.append('s', 'test', '12');

-- Removed, and its place given to others
SELECT doorbell.trim('s', 12);
VACUUM doorbell.event;
SELECT doorbell.append('other', 'test', to_jsonb(n)) FROM generate_series(1, 20) n;
SELECT doorbell.append('s', 'test', '13');
DELETE FROM doorbell.event WHERE stream = 's';
SELECT doorbell.append('s', 'test', '13');

DELETE FROM doorbell.event;
VACUUM doorbell.event;
SELECT doorbell.append('short', 'test', '1');
SELECT ctid AS place FROM doorbell.event;
DELETE FROM doorbell.event;
VACUUM doorbell.event;
SELECT doorbell.append('heir', 'test', '1');
SELECT ctid AS place FROM doorbell.event;
SELECT doorbell.append('short', 'test', '1');

-- Moved
VACUUM FULL doorbell.event;
SELECT doorbell.append('s', 'test', '14');
SELECT doorbell.append('s', 'test', '15');
TRUNCATE doorbell.event;
SELECT doorbell.append('s', 'test', '13');

-- Another stream of that name, before and elsewhere
DROP EXTENSION pg_doorbell;
CREATE EXTENSION pg_doorbell;
SELECT doorbell.append('s', 'test', '1');
SELECT current_database() AS here \gset
CREATE DATABASE doorbell_elsewhere;
\c doorbell_elsewhere
CREATE EXTENSION pg_doorbell;
SELECT doorbell.append('s', 'test', to_jsonb(n)) FROM generate_series(1, 3) n;
\c :here
SELECT doorbell.append('s', 'test', '2');
DROP DATABASE doorbell_elsewhere;
SELECT stream, seq, payload FROM doorbell.replay('s');
DROP EXTENSION pg_doorbell;
