-- 1,000 events of PgQ, which takes them one by one; in one statement, so without round trips.
SELECT count(pgq.insert_event('q', 'test', :payload, 's:1', null, null, null)) FROM generate_series(1, 1000);
