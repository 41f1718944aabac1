-- Appending: seqs, batches, many streams, optimistic concurrency, event ids.
CREATE EXTENSION pg_doorbell;
SELECT doorbell.append('s', 'created', '{"n": 1}');
SELECT doorbell.append('s', 'changed', '{"n": 2}');
SELECT doorbell.append_batch('s', '{a,b,c}', ARRAY['1', '"two"', 'null']::jsonb[]);
SELECT * FROM doorbell.append_many('{s,t,s}', '{x,y,z}', ARRAY['1', '2', '3']::jsonb[]);
SELECT stream, seq, type, payload FROM doorbell.replay('s');
SELECT stream, seq, type, payload FROM doorbell.replay('t');

-- Many appends in one statement, and a batch larger than one page of rows.
SELECT max(doorbell.append('u', 'test', to_jsonb(i))) FROM generate_series(1, 100) i;
SELECT doorbell.append_batch('u', array_fill('test'::text, ARRAY[2500]), (SELECT array_agg(to_jsonb(i) ORDER BY i) FROM generate_series(101, 2600) i));
SELECT count(*), min(seq), max(seq), bool_and(payload = to_jsonb(seq)) FROM doorbell.replay('u', 0, 10000);

-- appended_at never goes back within a stream, whatever the clock of the appending transaction's start.
SELECT bool_and(appended_at >= before) FROM (SELECT appended_at, lag(appended_at, 1, appended_at) OVER (ORDER BY seq) AS before FROM doorbell.replay('u', 0, 10000)) e;
INSERT INTO doorbell.event VALUES ('ahead', 1, 'test', '1', '2999-01-01', '0');
SELECT doorbell.append('ahead', 'test', '2');
SELECT appended_at = '2999-01-01'::timestamptz AS stamped_like_the_previous FROM doorbell.replay('ahead', 1);

-- expected_seq
SELECT doorbell.append('s', 'test', '1', 7);
SELECT doorbell.append('new', 'test', '1', 1);
\echo :SQLSTATE
SELECT doorbell.append('new', 'test', '1', 0);
SELECT doorbell.append('new', 'test', '1', 0);
SELECT doorbell.append('new', 'test', '1', 1);
SELECT doorbell.append_batch('new', '{a,b}', ARRAY['1', '2']::jsonb[], 2);
SELECT doorbell.append_batch('new', '{a,b}', ARRAY['1', '2']::jsonb[], 2);
SELECT count(*) FROM doorbell.replay('new');

-- O8: the same event_id stores nothing the second time; ids are each stream's own.
SELECT doorbell.append('ids', 'test', '1', event_id => '00000000-0000-0000-0000-000000000001');
SELECT doorbell.append('ids', 'test', '2', event_id => '00000000-0000-0000-0000-000000000002');
SELECT doorbell.append('ids', 'test', '3', event_id => '00000000-0000-0000-0000-000000000001');
SELECT doorbell.append('ids', 'test', '4', expected_seq => 0, event_id => '00000000-0000-0000-0000-000000000001');
SELECT doorbell.append('other ids', 'test', '5', event_id => '00000000-0000-0000-0000-000000000001');
SELECT stream, seq, payload FROM doorbell.replay_many('{ids,other ids}', '{0,0}') ORDER BY stream, seq;

-- L12: keys of every kind, up to 512 bytes, with a large payload.
SELECT doorbell.append(key, 'test', to_jsonb(key)) FROM unnest(ARRAY['a:b:7', 'it''s "quoted"', ' spaces ', 'UPPER upper', '*', '🔔 doorbell', 'ключ']) key;
SELECT e.stream, payload #>> '{}' = e.stream AS intact, high_water FROM doorbell.streams() s, doorbell.replay(s.stream) e WHERE type = 'test' AND jsonb_typeof(payload) = 'string' ORDER BY 1;
SELECT doorbell.append(repeat('k', 512), 'large', to_jsonb(repeat('0123456789abcdef', 196608)));
SELECT length(stream), length(payload #>> '{}'), md5(payload #>> '{}') = md5(repeat('0123456789abcdef', 196608)) AS intact FROM doorbell.replay(repeat('k', 512));
SELECT doorbell.append(repeat('k', 513), 'test', '1');
SELECT doorbell.append(repeat('🔔', 129), 'test', '1');
SELECT length(stream), high_water FROM doorbell.streams('kk');
SELECT count(*) FROM doorbell.streams('🔔🔔');

-- A payload that another table stores out of line.
CREATE TABLE stored (payload jsonb);
ALTER TABLE stored ALTER payload SET STORAGE EXTERNAL;
INSERT INTO stored SELECT to_jsonb(repeat('0123456789abcdef', 10000));
SELECT doorbell.append('stored', 'test', payload) FROM stored;
SELECT doorbell.append_batch('stored', ARRAY['test'], ARRAY[payload]) FROM stored;
DROP TABLE stored;
SELECT length(payload #>> '{}') FROM doorbell.replay('stored');
DROP EXTENSION pg_doorbell;
