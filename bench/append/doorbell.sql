-- doorbell.append, without rings.
CREATE EXTENSION pg_doorbell;
ALTER DATABASE doorbell SET doorbell.ring_mode = off;
-- Each transaction:
SELECT doorbell.append(concat('s:', :n::int), 'test', :payload);
