-- Compares what `doorbell tail` wrote (one JSON object per line, in recorded.ndjson) with the table, by SQL alone.
-- Sets the variables appended, delivered, missing, doubled, misplaced, altered.
CREATE TEMP TABLE recorded (line bigserial, object jsonb);
\copy recorded (object) FROM 'recorded.ndjson' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02')
CREATE TEMP VIEW delivered AS
    SELECT line, object ->> 'stream' AS stream, (object -> 'seq')::bigint AS seq, object ->> 'type' AS type,
           object -> 'payload' AS payload, (object ->> 'appended_at')::timestamptz AS appended_at
    FROM recorded;
SELECT (SELECT count(*) FROM doorbell.event) AS appended,
       (SELECT count(*) FROM delivered) AS delivered,
       (SELECT count(*) FROM (SELECT stream, seq FROM doorbell.event EXCEPT SELECT stream, seq FROM delivered) x) AS missing,
       (SELECT count(*) FROM (SELECT FROM delivered GROUP BY stream, seq HAVING count(*) > 1) x) AS doubled,
       (SELECT count(*) FROM (SELECT seq, lag(seq) OVER (PARTITION BY stream ORDER BY line) AS before FROM delivered) x
        WHERE seq <= before) AS misplaced,
       (SELECT count(*) FROM delivered d LEFT JOIN doorbell.event e USING (stream, seq)
        WHERE (d.type, d.payload, d.appended_at) IS DISTINCT FROM (e.type, e.payload, e.appended_at)) AS altered
\gset
