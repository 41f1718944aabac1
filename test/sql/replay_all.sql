-- Reading all streams: pages, cursors, prefix, gaps, what is not committed, cursors that are not.
CREATE EXTENSION pg_doorbell;
-- Readers that keep their cursors, because those have random parts.
CREATE TABLE reader (name text PRIMARY KEY, cursor text);
CREATE FUNCTION read_on(reader_name text, max_events int DEFAULT 1000, prefix text DEFAULT '')
RETURNS TABLE (stream text, seq bigint, payload jsonb, is_gap boolean) LANGUAGE plpgsql AS $$
DECLARE
    row record;
    last text;
BEGIN
    SELECT r.cursor INTO last FROM reader r WHERE name = reader_name;
    FOR row IN SELECT * FROM doorbell.replay_all(last, max_events, prefix) LOOP
        stream := row.stream; seq := row.seq; payload := row.payload; is_gap := row.type IS NULL;
        last := row.cursor;
        RETURN NEXT;
    END LOOP;
    INSERT INTO reader VALUES (reader_name, last) ON CONFLICT (name) DO UPDATE SET cursor = EXCLUDED.cursor;
END $$;

-- Nothing was ever appended.
SELECT * FROM doorbell.replay_all();
INSERT INTO reader VALUES ('from nothing', doorbell.high_water_all());
SELECT * FROM read_on('from nothing');

SELECT doorbell.append_batch('a', '{x,y}', ARRAY['1', '2']::jsonb[]), doorbell.append('b:1', 'z', '3'), doorbell.append('b:2', 'z', '4'), doorbell.append('Grüße', 'z', '5');
SELECT stream, seq, type, payload, appended_at <= clock_timestamp() AS past FROM doorbell.replay_all();
SELECT stream, seq FROM read_on('from nothing');
SELECT stream, seq FROM read_on('from nothing');

-- By pages of every size: the same events in the same order, each cursor goes on from behind its row.
CREATE FUNCTION paged(size int, prefix text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    all_rows text := '';
    page text;
BEGIN
    DELETE FROM reader WHERE name = 'paged';
    LOOP
        SELECT string_agg(stream || ' ' || seq, ', ') INTO page FROM read_on('paged', size, prefix);
        EXIT WHEN page IS NULL;
        all_rows := all_rows || '[' || page || ']';
    END LOOP;
    RETURN all_rows;
END $$;
SELECT size, paged(size) FROM generate_series(1, 6) size;
SELECT count(*) AS cursors, count(next.seq) AS with_the_next_row,
       bool_and((next.stream, next.seq) IS NOT DISTINCT FROM (here.next_stream, here.next_seq)) AS right
FROM (SELECT *, lead(stream) OVER (), lead(seq) OVER () FROM doorbell.replay_all()) here (stream, seq, type, payload, appended_at, cursor, next_stream, next_seq)
LEFT JOIN LATERAL doorbell.replay_all(here.cursor, 1) next ON true;
-- The cursor behind the last row of a window is without the set at its beginning, so an idle reader's is short.
SELECT stream, seq, split_part(cursor, '.', 4) AS beginning FROM doorbell.replay_all();

-- By prefix; the prefix need not be a stream, and may be none's.
SELECT prefix, paged(1, prefix) FROM unnest(ARRAY['b', 'b:', 'b:1', 'b:11', 'Gr', 'A', 'zz']) prefix;

-- New events, in streams before and behind the last one given.
SELECT read_on('from nothing');
SELECT doorbell.append('0', 'z', '6'), doorbell.append('b:2', 'z', '7'), doorbell.append('z', 'z', '8');
SELECT stream, seq FROM read_on('from nothing', 2);
-- They come while a window is being paged, and after it.
SELECT doorbell.append('0', 'z', '9');
SELECT stream, seq FROM read_on('from nothing', 2);
SELECT stream, seq FROM read_on('from nothing', 2);

-- What the reading transaction has appended comes after its commit, and with it what lies above; a rollback is nothing.
BEGIN;
SELECT doorbell.append('own', 'z', '10');
SAVEPOINT a;
SELECT doorbell.append('own', 'z', '11'), doorbell.append('undone', 'z', '11');
SELECT stream, seq FROM read_on('from nothing');
ROLLBACK TO a;
SELECT doorbell.append('own', 'z', '12');
INSERT INTO reader VALUES ('from within', doorbell.high_water_all());
SELECT stream, seq FROM read_on('from nothing');
COMMIT;
SELECT stream, seq, payload FROM read_on('from nothing');
SELECT stream, seq, payload FROM read_on('from within');
BEGIN;
SELECT doorbell.append('own', 'z', '13');
ROLLBACK;
SELECT stream, seq FROM read_on('from nothing');
-- Nor does the running statement see what it appends itself.
SELECT doorbell.append('own', 'z', '14'), (SELECT count(*) FROM read_on('from nothing'));
SELECT stream, seq, payload FROM read_on('from nothing');

-- From now on.
INSERT INTO reader VALUES ('from now', doorbell.high_water_all());
SELECT * FROM read_on('from now');
SELECT doorbell.append('b:1', 'z', '15');
SELECT * FROM read_on('from now');

-- Gaps: one who has had the trimmed events is told nothing, nor is one who begins.
SELECT doorbell.append('t', 'z', to_jsonb(i)) FROM generate_series(1, 6) i;
SELECT seq FROM read_on('has had them', 3, 't');
SELECT doorbell.trim('t', 3);
SELECT * FROM read_on('has had them', 2, 't');
SELECT * FROM read_on('begins', 1, 't');
SELECT * FROM read_on('from now', 1, 't');
SELECT * FROM read_on('from now', 1, 't');
-- Once, at its place, also within a first window; the void seq 7 is not a part of it.
BEGIN; SELECT doorbell.append('t', 'z', '"void"'); SAVEPOINT a; SELECT doorbell.append('t', 'z', '"void"'); ROLLBACK TO a; COMMIT;
SELECT doorbell.append('t', 'z', '8');
SELECT doorbell.trim('t', 5);
SELECT * FROM read_on('begins', 1, 't');
SELECT * FROM read_on('begins', 1, 't');
SELECT * FROM read_on('has had them', 9, 't');
SELECT doorbell.trim('t', 100);
SELECT * FROM read_on('begins', 9, 't');
SELECT * FROM read_on('has had them', 9, 't');
SELECT * FROM read_on('from now', 9, 't');
SELECT * FROM read_on('begins', 9, 't');
SELECT * FROM read_on('has had them', 9, 't');
SELECT * FROM read_on('from now', 9, 't');
SELECT doorbell.append('t', 'z', '9');
SELECT * FROM read_on('begins', 9, 't');
-- Who begins only now hears nothing of it.
SELECT * FROM read_on('begins later', 9, 't');

-- Cursors that are none: 22023 names them. Every change of a character of one either is refused or is read, never a crash.
CREATE FUNCTION error_of(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
\pset format unaligned
SELECT statement, (error_of(statement)).* FROM (VALUES
    ($$SELECT doorbell.replay_all('')$$),
    ($$SELECT doorbell.replay_all('42')$$),
    ($$SELECT doorbell.replay_all('all1.')$$),
    ($$SELECT doorbell.replay_all('all1.0.5')$$),
    ($$SELECT doorbell.replay_all('all1.0.0...')$$),
    ($$SELECT doorbell.replay_all('all1.0.05...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5~5...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5~1~7...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5!YQ:1!YQ:2...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5!YQ:0...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5!YR:1...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5!gA:1...')$$),
    ($$SELECT doorbell.replay_all('all1.0.5...YQ:8000000000000000')$$),
    ($$SELECT doorbell.replay_all('all1.0.5.0..')$$),
    ($$SELECT doorbell.replay_all('all1.0.5...YQ:1:100000000')$$),
    ($$SELECT doorbell.replay_all('all1.0.5... ')$$),
    ($$SELECT doorbell.replay_all('all1.' || repeat('é', 20000))$$),
    ($$SELECT doorbell.replay_all(NULL, 0)$$),
    ($$SELECT doorbell.replay_all(NULL, NULL)$$),
    ($$SELECT doorbell.replay_all(NULL, 1, NULL)$$)
) AS bad (statement);
WITH good AS (SELECT cursor FROM doorbell.replay_all(NULL, 3) OFFSET 2)
SELECT code, message FROM good, generate_series(1, length(cursor)) i, unnest(ARRAY['', '.', '~1', '!YQ:1', ':', '0', 'ff']) new,
    error_of(format('SELECT doorbell.replay_all(%L)', overlay(cursor PLACING new FROM i FOR 1)))
WHERE code NOT IN ('22023', 'DB002');

-- Cursors of another history: another id, another event, one that does not exist, an id that was not assigned yet.
WITH good AS (SELECT cursor FROM doorbell.replay_all(NULL, 1))
SELECT name, code, message, regexp_replace(detail, '(history|Transaction) [0-9a-f]+', '\1 N', 'g') AS detail, hint
FROM good, LATERAL (VALUES
    ('as it is', cursor),
    ('another id', regexp_replace(cursor, '^all1\.[^.]*', 'all1.1')),
    ('another event', overlay(cursor PLACING CASE right(cursor, 1) WHEN '0' THEN '1' ELSE '0' END FROM length(cursor))),
    ('no such event', regexp_replace(cursor, '[^:.]*:[^:]*(:[^:]*)$', 'YWE:1\1')),
    ('no such newest event', regexp_replace(cursor, '\.[^.:]*(:[^.]*\.[^.]*)$', '.YWE\1')),
    ('the future', regexp_replace(cursor, '^(all1\.[^.]*\.)[^.]*', '\1ffffffff'))) changed (name, text),
    error_of(format('SELECT doorbell.replay_all(%L)', text));
\pset format aligned
DELETE FROM doorbell.event WHERE stream = 'own' AND seq = 3;
SELECT (error_of($$SELECT read_on('from nothing')$$)).*;

DROP EXTENSION pg_doorbell;
DROP SCHEMA doorbell;
DROP TABLE reader;
DROP FUNCTION read_on, paged, error_of;
