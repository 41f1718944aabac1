\echo Use "CREATE EXTENSION pg_doorbell" to load this file. \quit

-- Durable event streams. Nothing is granted to PUBLIC; nobody but the extension's owner needs rights on the tables.

-- Tables --------------------------------------------------------------------------------------------------------------

CREATE TABLE doorbell.event (
    stream      text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    type        text COLLATE "C" NOT NULL,
    payload     jsonb NOT NULL,
    appended_at timestamptz NOT NULL,
    xid         xid8 NOT NULL,
    event_id    uuid,
    CONSTRAINT event_pkey PRIMARY KEY (stream, seq)
) USING heap;
CREATE INDEX event_xid_idx ON doorbell.event (xid);
CREATE UNIQUE INDEX event_id_idx ON doorbell.event (stream, event_id) WHERE event_id IS NOT NULL;
COMMENT ON TABLE doorbell.event IS
    'the events of all streams; append to it with doorbell.append, read it with doorbell.replay: a plain SELECT may show an event before an earlier one that is still in flight';
COMMENT ON COLUMN doorbell.event.stream IS 'key of the stream';
COMMENT ON COLUMN doorbell.event.seq IS 'number of the event in its stream: 1, 2, 3 …';
COMMENT ON COLUMN doorbell.event.type IS 'what kind of event it is, in the application''s words';
COMMENT ON COLUMN doorbell.event.payload IS 'the event itself';
COMMENT ON COLUMN doorbell.event.appended_at IS 'clock at the append, never before that of the previous event of the stream';
COMMENT ON COLUMN doorbell.event.xid IS 'the appending top-level transaction';
COMMENT ON COLUMN doorbell.event.event_id IS 'id given by the writer; the stream has it once';
COMMENT ON INDEX doorbell.event_xid_idx IS 'finds what running transactions have in flight';
COMMENT ON INDEX doorbell.event_id_idx IS 'finds an event by the id that its writer gave';

CREATE TABLE doorbell.stream (
    key       text COLLATE "C" NOT NULL,
    low_water bigint NOT NULL DEFAULT 0,
    CONSTRAINT stream_pkey PRIMARY KEY (key)
) USING heap;
COMMENT ON TABLE doorbell.stream IS 'streams that were trimmed or configured; others have no row';
COMMENT ON COLUMN doorbell.stream.key IS 'key of the stream';
COMMENT ON COLUMN doorbell.stream.low_water IS 'largest seq that was trimmed away; never decreases';

SELECT pg_catalog.pg_extension_config_dump('doorbell.event', '');
SELECT pg_catalog.pg_extension_config_dump('doorbell.stream', '');

CREATE FUNCTION doorbell.restored() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME', 'doorbell_restored';
REVOKE ALL ON FUNCTION doorbell.restored() FROM PUBLIC;
COMMENT ON FUNCTION doorbell.restored() IS
    'gives rows that a restore brings the id of the restoring transaction; appends do not pass here';

CREATE TRIGGER event_restored BEFORE INSERT ON doorbell.event
    FOR EACH ROW EXECUTE FUNCTION doorbell.restored();
ALTER TABLE doorbell.event ENABLE ALWAYS TRIGGER event_restored;
COMMENT ON TRIGGER event_restored ON doorbell.event IS 'see doorbell.restored()';

CREATE TYPE doorbell.entry AS (
    stream      text,
    seq         bigint,
    type        text,
    payload     jsonb,
    appended_at timestamptz
);
COMMENT ON TYPE doorbell.entry IS 'an event as every reader returns it';

-- Writing -------------------------------------------------------------------------------------------------------------
-- The functions store rows as the extension's owner whoever calls them: to append takes EXECUTE and nothing else.
-- A call that fails stores nothing.
--
-- Errors that all of them raise:
--   22004  an argument, or an element of an array, is null where that is not allowed
--   22023  a stream key is empty, longer than 512 bytes, or has control characters; a type is empty or has control
--          characters; a seq is negative; arrays differ in length; a batch is empty
--   25006  the transaction is read-only, or the server is a standby

-- append(stream, type, payload, expected_seq, event_id) → the event's seq
--   expected_seq  append only if the stream's largest live seq (low water when all is trimmed) equals it; 0: the stream
--                 must be new. A live seq may belong to a transaction that is still open.
--   event_id      appending the same id to the same stream again stores nothing and returns the first seq, whatever
--                 expected_seq says; waits for another open transaction that appended it
--   DB001         the stream is not at expected_seq; the detail shows stream, expected and actual seq
CREATE FUNCTION doorbell.append(stream text, type text, payload jsonb, expected_seq bigint DEFAULT NULL,
                                event_id uuid DEFAULT NULL)
    RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'doorbell_append';
COMMENT ON FUNCTION doorbell.append(text, text, jsonb, bigint, uuid) IS
    'appends an event to a stream, rings the doorbell at commit, and returns the event''s seq';

-- append_batch(stream, types, payloads, expected_seq) → the last event's seq; the seqs are contiguous
CREATE FUNCTION doorbell.append_batch(stream text, types text[], payloads jsonb[], expected_seq bigint DEFAULT NULL)
    RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'doorbell_append_batch';
COMMENT ON FUNCTION doorbell.append_batch(text, text[], jsonb[], bigint) IS
    'appends events to a stream with contiguous seqs and returns the last one''s seq';

-- append_many(streams, types, payloads) → stream and seq of each event, in the order given
CREATE FUNCTION doorbell.append_many(streams text[], types text[], payloads jsonb[])
    RETURNS TABLE (stream text, seq bigint)
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'doorbell_append_many';
COMMENT ON FUNCTION doorbell.append_many(text[], text[], jsonb[]) IS
    'appends each event to its own stream and returns the seqs in the order given';

-- trim(stream, through_seq) → how many events were removed
--   Removes the events up to through_seq, but none above high water, and raises low water to match.
CREATE FUNCTION doorbell.trim(stream text, through_seq bigint)
    RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_trim';
COMMENT ON FUNCTION doorbell.trim(text, bigint) IS
    'removes the events of a stream up to a seq, not beyond high water, and returns how many';

-- ring(stream, seq): the pointer alone, for a store of your own. Like that of an append it is heard after the commit,
--   once per stream with the highest seq, and not at all with doorbell.ring_mode = off.
CREATE FUNCTION doorbell.ring(stream text, seq bigint)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'doorbell_ring';
COMMENT ON FUNCTION doorbell.ring(text, bigint) IS 'rings the doorbell at commit with a bare pointer; stores nothing';

-- capture('stream template' [, 'type template']): row trigger that appends each change of a table.
--   {column} in a template is the row's value, {{ and }} are braces; the type is insert, update or delete by default.
--   The payload is {"op","schema","table","new","old"}. An update that moves a row to another stream goes to both.
--   39P01  not fired AFTER … FOR EACH ROW      42703  the template names an unknown column
--   22004  a column of the template is null    22023  bad template, key or type
CREATE FUNCTION doorbell.capture() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'doorbell_capture';
COMMENT ON FUNCTION doorbell.capture() IS
    'row trigger: appends each change of a table to the stream that its template names';

-- Reading -------------------------------------------------------------------------------------------------------------
-- The functions read in the snapshot of the calling statement, also on a hot standby: several of them in one statement
-- agree with each other. Whoever is given a seq has been given every untrimmed, committed seq below it.
--
-- Errors: 22004 and 22023 as above; 22023 also if max_events is below 1.

-- replay(stream, after_seq, max_events) → events after after_seq in seq order, up to the first one in flight
CREATE FUNCTION doorbell.replay(stream text, after_seq bigint DEFAULT 0, max_events int DEFAULT 1000)
    RETURNS SETOF doorbell.entry LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_replay';
COMMENT ON FUNCTION doorbell.replay(text, bigint, int) IS
    'returns the events of a stream after a seq, in seq order';

-- replay_many(streams, after_seqs, max_events) → the same for many streams. max_events is shared fairly: each stream
--   that has more than an equal part gets at least that. Within a stream events are in seq order; streams may
--   interleave. With more streams than max_events the first ones of the list are served.
CREATE FUNCTION doorbell.replay_many(streams text[], after_seqs bigint[], max_events int DEFAULT 1000)
    RETURNS SETOF doorbell.entry LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_replay_many';
COMMENT ON FUNCTION doorbell.replay_many(text[], bigint[], int) IS
    'returns the events of many streams, each after its seq, with max_events shared fairly';

-- high_water(stream) → largest seq at or below which nothing is in flight; 0 if the stream is unknown
CREATE FUNCTION doorbell.high_water(stream text)
    RETURNS bigint LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_high_water';
COMMENT ON FUNCTION doorbell.high_water(text) IS
    'returns the largest seq of a stream at or below which nothing is in flight';

-- low_water(stream) → largest seq that was trimmed away; 0 if none or the stream is unknown
CREATE FUNCTION doorbell.low_water(stream text)
    RETURNS bigint LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_low_water';
COMMENT ON FUNCTION doorbell.low_water(text) IS 'returns the largest seq of a stream that was trimmed away';

-- streams(prefix) → the streams whose key begins with prefix, in byte order. Reads one row or two per stream.
CREATE FUNCTION doorbell.streams(prefix text DEFAULT '')
    RETURNS TABLE (stream text, low_water bigint, high_water bigint)
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_streams';
COMMENT ON FUNCTION doorbell.streams(text) IS
    'lists the streams whose key begins with a prefix, with low and high water';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA doorbell FROM PUBLIC;
