-- Reading: pages, many streams with a fair share, waters, listing, trimming.
CREATE EXTENSION pg_doorbell;
SELECT doorbell.append_batch('a', array_fill('test'::text, ARRAY[10]), (SELECT array_agg(to_jsonb(i)) FROM generate_series(1, 10) i));
SELECT seq FROM doorbell.replay('a', 0, 3);
SELECT seq FROM doorbell.replay('a', 3, 3);
SELECT seq FROM doorbell.replay('a', 9);
SELECT seq FROM doorbell.replay('a', 10);
SELECT seq FROM doorbell.replay('a', 9223372036854775807);
SELECT seq FROM doorbell.replay('unknown');
SELECT doorbell.high_water('a'), doorbell.low_water('a'), doorbell.high_water('unknown'), doorbell.low_water('unknown');

-- Void seqs are stepped over: from the first page on, and at its border.
BEGIN;
SELECT doorbell.append('v', 'test', '1');
SAVEPOINT a;
SELECT doorbell.append_batch('v', '{a,b,c}', ARRAY['1', '2', '3']::jsonb[]);
ROLLBACK TO a;
SELECT doorbell.append('v', 'test', '2');
COMMIT;
INSERT INTO doorbell.event SELECT 'v', n, 'test', to_jsonb(n), now(), '0' FROM generate_series(5, 6) n;
SELECT seq FROM doorbell.replay('v');
SELECT seq FROM doorbell.replay('v', 2, 1);
SELECT seq FROM doorbell.replay('v', 3, 1);

-- What the running statement itself appends is not visible to it yet.
SELECT doorbell.append('w', 'test', '1'), doorbell.high_water('w'), (SELECT count(*) FROM doorbell.replay('w'));
SELECT doorbell.high_water('w'), (SELECT count(*) FROM doorbell.replay('w'));
BEGIN;
SELECT doorbell.append('w', 'test', '2');
SELECT doorbell.high_water('w'), (SELECT count(*) FROM doorbell.replay('w'));
ROLLBACK;

-- Entries as whole values: in expressions, stored in a table, in PL/pgSQL, with a payload that is out of line.
SELECT doorbell.append('whole', 'test', to_jsonb(repeat('0123456789abcdef', 10000)), NULL, '00000000-0000-0000-0000-000000000001');
CREATE TABLE kept AS SELECT e AS entry FROM doorbell.replay('whole') e UNION ALL SELECT doorbell.replay('whole');
SELECT (entry).stream, (entry).seq, (entry).type, length((entry).payload #>> '{}'), entry = (SELECT e FROM doorbell.replay('whole') e) AS same FROM kept;
SELECT count(DISTINCT entry), count(DISTINCT md5(entry::text)), max(length(to_jsonb(entry) ->> 'payload')) FROM kept;
DO $$
DECLARE
    entry doorbell.entry;
    entries doorbell.entry[];
BEGIN
    FOR entry IN SELECT * FROM doorbell.replay('a', 7) LOOP
        entries := entries || entry;
    END LOOP;
    RAISE NOTICE '% entries, the last is % of %', cardinality(entries), entries[3].seq, entries[3].stream;
END $$;
DROP TABLE kept;

-- A page that spills to disk, and two replays at once in one query, and one that fails half way.
SET work_mem = '64kB';
SELECT count(*), max(a.seq) FROM doorbell.replay('a') a, doorbell.replay('whole') w;
SELECT sum(length(payload::text)) FROM doorbell.replay_many('{whole,a}', '{0,0}'), generate_series(1, 3);
RESET work_mem;
SELECT 1 / (seq - 5) FROM doorbell.replay('a');
BEGIN;
DECLARE pages CURSOR WITH HOLD FOR SELECT seq FROM doorbell.replay('a', 6);
FETCH 2 FROM pages;
COMMIT;
FETCH ALL FROM pages;
CLOSE pages;

-- replay_many: equal parts first, then what others leave over; never more than max_events.
SELECT doorbell.append_batch('long', array_fill('test'::text, ARRAY[1000]), array_fill('1'::jsonb, ARRAY[1000]));
SELECT stream, count(*), min(seq), max(seq) FROM doorbell.replay_many('{long,a,w}', '{0,0,0}', 15) GROUP BY 1 ORDER BY 1;
SELECT stream, count(*), min(seq), max(seq) FROM doorbell.replay_many('{long,a,w}', '{500,8,0}', 100) GROUP BY 1 ORDER BY 1;
SELECT stream, count(*) FROM doorbell.replay_many('{a,long,w}', '{0,0,0}', 2) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM doorbell.replay_many('{}', '{}');
SELECT bool_and(seq > before) FROM (SELECT seq, lag(seq, 1, 0::bigint) OVER (PARTITION BY stream ORDER BY n) AS before FROM doorbell.replay_many('{long,a}', '{0,0}', 300) WITH ORDINALITY AS e(stream, seq, type, payload, appended_at, n)) o;

-- streams(): by prefix, in byte order; a trimmed stream stays.
SELECT doorbell.append(key, 'test', '1') FROM unnest('{room:1,room:2,room:10,rooms,Room:3,room,é}'::text[]) key;
SELECT * FROM doorbell.streams();
SELECT * FROM doorbell.streams('room:');
SELECT * FROM doorbell.streams('é');
SELECT * FROM doorbell.streams('nothing');

-- trim(): not beyond high water; the waters never go back; the seq goes on.
SELECT doorbell.trim('a', 4);
SELECT doorbell.low_water('a'), doorbell.high_water('a'), (SELECT min(seq) FROM doorbell.replay('a'));
SELECT doorbell.trim('a', 2);
SELECT doorbell.low_water('a');
SELECT doorbell.trim('a', 1000);
SELECT doorbell.low_water('a'), doorbell.high_water('a'), (SELECT count(*) FROM doorbell.replay('a'));
SELECT doorbell.append('a', 'test', '1', 10);
SELECT doorbell.trim('unknown', 5);
SELECT * FROM doorbell.streams('a');
SELECT * FROM doorbell.streams('unknown');

DROP EXTENSION pg_doorbell;
