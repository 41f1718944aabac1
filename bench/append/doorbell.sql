-- doorbell.append, in a database that is named after its ring mode.
CREATE EXTENSION pg_doorbell;
ALTER DATABASE :"DBNAME" SET doorbell.ring_mode = :'mode';
-- Each transaction:
SELECT doorbell.append(concat('s:', :n::int), 'test', :payload);
