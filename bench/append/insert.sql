-- A bare INSERT into a table with the same columns and primary key. Its seq comes from a sequence, which numbers
-- nothing usefully (it is not per stream, and shows 11 before 10) but is the cheapest way to a new key.
CREATE SEQUENCE seq CACHE 32;
CREATE TABLE event (
    stream      text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL DEFAULT nextval('seq'),
    type        text COLLATE "C" NOT NULL,
    payload     jsonb NOT NULL,
    appended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    event_id    uuid,
    PRIMARY KEY (stream, seq)
);
-- Each transaction:
INSERT INTO event (stream, type, payload) VALUES (concat('s:', :n::int), 'test', :payload);
