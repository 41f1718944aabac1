-- 1,000 events by doorbell.append_batch.
SELECT doorbell.append_batch('s:1', array_fill('test'::text, ARRAY[1000]), array_fill(:payload::jsonb, ARRAY[1000]));
