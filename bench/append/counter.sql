-- A counter row per stream: gapless seqs in commit order, by a row lock that is held until the commit is on disk.
-- The counter's pages have room for updates in place, which is to its advantage.
CREATE TABLE counter (
    stream text COLLATE "C" PRIMARY KEY,
    seq    bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE event (
    stream      text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    type        text COLLATE "C" NOT NULL,
    payload     jsonb NOT NULL,
    appended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    event_id    uuid,
    PRIMARY KEY (stream, seq)
);
CREATE FUNCTION append(_stream text, _type text, _payload jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _seq bigint;
BEGIN
    INSERT INTO counter AS c (stream, seq) VALUES (_stream, 1)
        ON CONFLICT (stream) DO UPDATE SET seq = c.seq + 1 RETURNING c.seq INTO _seq;
    INSERT INTO event (stream, seq, type, payload) VALUES (_stream, _seq, _type, _payload);
    RETURN _seq;
END $$;
-- Each transaction:
SELECT append(concat('s:', :n::int), 'test', :payload);
