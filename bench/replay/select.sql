-- The same page by a plain SELECT on the primary key: what a reader pays who does not care about events in flight.
SELECT stream, seq, type, payload, appended_at FROM doorbell.event WHERE stream = 's' AND seq > :after ORDER BY seq LIMIT 1000;
