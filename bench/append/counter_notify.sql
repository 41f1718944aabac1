-- The counter row, with its pointer rung in the same transaction.
\i append/counter.setup
-- Each transaction:
SELECT pg_notify('doorbell', concat('s:', :n::int, ':', append(concat('s:', :n::int), 'test', :payload)));
