-- A page of 1,000 events by doorbell.replay.
SELECT * FROM doorbell.replay('s', :after, 1000);
