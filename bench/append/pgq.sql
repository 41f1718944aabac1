-- PgQ: one queue, the stream's key beside the event; the shortest way in. Its ticker, without which nobody can read the
-- queue, does not run, which is to its advantage.
CREATE EXTENSION pgq;
SELECT pgq.create_queue('q');
-- Each transaction:
SELECT pgq.insert_event('q', 'test', :payload, concat('s:', :n::int), null, null, null);
