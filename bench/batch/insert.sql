-- A plain INSERT of 1,000 rows.
INSERT INTO event (stream, type, payload)
SELECT 's:1', 'test', payload FROM unnest(array_fill(:payload::jsonb, ARRAY[1000])) payload;
