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
    key         text COLLATE "C" NOT NULL,
    low_water   bigint NOT NULL DEFAULT 0,
    trimmed_xid xid8,
    trim_xid    xid8,
    CONSTRAINT stream_pkey PRIMARY KEY (key)
) USING heap;
CREATE INDEX stream_trimmed_idx ON doorbell.stream (trimmed_xid);
CREATE INDEX stream_trim_idx ON doorbell.stream (trim_xid);
COMMENT ON TABLE doorbell.stream IS 'streams that were trimmed or configured; others have no row';
COMMENT ON COLUMN doorbell.stream.key IS 'key of the stream';
COMMENT ON COLUMN doorbell.stream.low_water IS 'largest seq that was trimmed away; never decreases';
COMMENT ON COLUMN doorbell.stream.trimmed_xid IS 'transaction that appended the last of the events that were trimmed away';
COMMENT ON COLUMN doorbell.stream.trim_xid IS 'transaction that trimmed last';
COMMENT ON INDEX doorbell.stream_trimmed_idx IS 'finds the streams whose trimmed events a reader of all streams has not had';
COMMENT ON INDEX doorbell.stream_trim_idx IS 'finds the streams that were trimmed since a first read of all streams began';

-- Not registered for pg_dump: what a dump is restored into is another history, with transaction ids of its own.
CREATE TABLE doorbell.history (
    id uuid NOT NULL
) USING heap;
COMMENT ON TABLE doorbell.history IS 'one row, made with the extension: which history the cursors of replay_all belong to';
COMMENT ON COLUMN doorbell.history.id IS 'random; its first 8 bytes are in every cursor';
INSERT INTO doorbell.history VALUES (pg_catalog.gen_random_uuid());

CREATE TABLE doorbell.consumer (
    name         text COLLATE "C" NOT NULL,
    required     boolean NOT NULL,
    hold_at_most interval NOT NULL,
    CONSTRAINT consumer_pkey PRIMARY KEY (name)
) USING heap;
COMMENT ON TABLE doorbell.consumer IS 'consumers that were configured with doorbell.set_consumer; others have no row';
COMMENT ON COLUMN doorbell.consumer.name IS 'name of the consumer';
COMMENT ON COLUMN doorbell.consumer.required IS 'whether retention leaves it the events that it has not committed';
COMMENT ON COLUMN doorbell.consumer.hold_at_most IS 'how long it does, from when they were due to be removed';

CREATE TABLE doorbell.consumer_cursor (
    consumer     text COLLATE "C" NOT NULL,
    stream       text COLLATE "C" NOT NULL,
    seq          bigint,
    event_check  text COLLATE "C",
    cursor       text COLLATE "C",
    committed_at timestamptz NOT NULL,
    CONSTRAINT consumer_cursor_pkey PRIMARY KEY (consumer, stream),
    CONSTRAINT consumer_cursor_check CHECK ((stream = '') = (seq IS NULL) AND (stream = '') = (cursor IS NOT NULL))
) USING heap;
COMMENT ON TABLE doorbell.consumer_cursor IS 'how far consumers have come; see doorbell.consumers';
COMMENT ON COLUMN doorbell.consumer_cursor.consumer IS 'name of the consumer';
COMMENT ON COLUMN doorbell.consumer_cursor.stream IS 'key of the stream; empty: all streams';
COMMENT ON COLUMN doorbell.consumer_cursor.seq IS 'last event of the stream that was committed; 0: none';
COMMENT ON COLUMN doorbell.consumer_cursor.event_check IS 'check of that event, when the consumer gave it';
COMMENT ON COLUMN doorbell.consumer_cursor.cursor IS 'cursor over all streams';
COMMENT ON COLUMN doorbell.consumer_cursor.committed_at IS 'when it was committed';

CREATE TABLE doorbell.retention (
    pattern    text COLLATE "C" NOT NULL,
    max_age    interval,
    max_events bigint,
    CONSTRAINT retention_pkey PRIMARY KEY (pattern),
    CONSTRAINT retention_pattern_check CHECK (pattern <> '')
) USING heap;
COMMENT ON TABLE doorbell.retention IS 'how long events stay; set with doorbell.set_retention';
COMMENT ON COLUMN doorbell.retention.pattern IS 'key of a stream, or the beginning of keys and a *; the most specific one counts';
COMMENT ON COLUMN doorbell.retention.max_age IS 'older events go; null: whatever their age';
COMMENT ON COLUMN doorbell.retention.max_events IS 'events that so many seqs follow go; null: however many there are';

SELECT pg_catalog.pg_extension_config_dump('doorbell.event', '');
SELECT pg_catalog.pg_extension_config_dump('doorbell.stream', '');
SELECT pg_catalog.pg_extension_config_dump('doorbell.consumer', '');
SELECT pg_catalog.pg_extension_config_dump('doorbell.consumer_cursor', '');
SELECT pg_catalog.pg_extension_config_dump('doorbell.retention', '');

CREATE FUNCTION doorbell.restored() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME', 'doorbell_restored';
REVOKE ALL ON FUNCTION doorbell.restored() FROM PUBLIC;
COMMENT ON FUNCTION doorbell.restored() IS
    'gives rows that a restore brings the id of the restoring transaction; appends do not pass here';

CREATE TRIGGER event_restored BEFORE INSERT ON doorbell.event
    FOR EACH ROW EXECUTE FUNCTION doorbell.restored();
ALTER TABLE doorbell.event ENABLE ALWAYS TRIGGER event_restored;
COMMENT ON TRIGGER event_restored ON doorbell.event IS 'see doorbell.restored()';
CREATE TRIGGER stream_restored BEFORE INSERT ON doorbell.stream
    FOR EACH ROW WHEN (NEW.low_water > 0) EXECUTE FUNCTION doorbell.restored();
ALTER TABLE doorbell.stream ENABLE ALWAYS TRIGGER stream_restored;
COMMENT ON TRIGGER stream_restored ON doorbell.stream IS 'the same for its two ids; doorbell.trim() inserts a low water of 0';

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
-- Errors: 22004 and 22023 as above; 22023 also if max_events is below 1. 0A000 where logical replication fills the table:
-- what is in flight on the publisher cannot be seen there, so an event could be skipped (low_water is not affected).

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

-- replay_all(after_cursor, max_events, prefix) → the events of all streams that follow a cursor, each with the cursor to
--   go on from behind it. Null is the beginning. Every committed event once, whole transactions, in seq order inside each
--   stream; a transaction that is open delays what lies behind its events, and nothing else. A row without type, payload
--   and appended_at is a gap: events of the stream up to this seq that the reader had not been given were trimmed away.
--   No rows: there is nothing to give now; keep the cursor. Fewer rows than max_events do not mean that.
--   prefix   only events of the streams whose key begins with it; not to be changed while a cursor is used
--   22023    the text is not a cursor
--   DB002    the cursor belongs to another history: a restored dump, or a server that lost what the cursor saw
CREATE FUNCTION doorbell.replay_all(after_cursor text DEFAULT NULL, max_events int DEFAULT 1000, prefix text DEFAULT '')
    RETURNS TABLE (stream text, seq bigint, type text, payload jsonb, appended_at timestamptz, cursor text)
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_replay_all';
COMMENT ON FUNCTION doorbell.replay_all(text, int, text) IS
    'returns the events of all streams that follow a cursor, each exactly once, with the cursor to go on from';

-- high_water_all() → the cursor of a reader of all streams who wants only what comes from now on
--   54000  too many streams wait for open transactions, or too many are open: the list does not fit into a cursor
CREATE FUNCTION doorbell.high_water_all()
    RETURNS text LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_high_water_all';
COMMENT ON FUNCTION doorbell.high_water_all() IS
    'returns a cursor of replay_all behind everything that it would give now';

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

-- Consumers -----------------------------------------------------------------------------------------------------------
-- A consumer is a name under which cursors are kept. To commit the cursor in the transaction in which the events' work is
-- stored makes that work exactly-once: both are there or neither is.
--
-- Errors that all of them raise:
--   22004  an argument is null where that is not allowed
--   22023  a consumer's name or a stream key is empty, longer than 512 bytes, or has control characters; a seq is negative;
--          event_check is no check of an event
--   25006  (those that write) the transaction is read-only, or the server is a standby

-- commit_cursor(consumer, stream, seq, event_check): everything in the stream up to seq is done. The first commit of a
--   stream makes the consumer known there; 0 is a cursor, too. The same seq may be committed again.
--   event_check  check of the event at seq, as in its mark (docs/protocol.md): who resumes can tell another history by it
--   DB003        a later seq is committed: another process works under this name. The detail shows consumer, stream and
--                both seqs. Waits for another open transaction that commits the same cursor.
CREATE FUNCTION doorbell.commit_cursor(consumer text, stream text, seq bigint, event_check text DEFAULT NULL)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_commit_cursor';
COMMENT ON FUNCTION doorbell.commit_cursor(text, text, bigint, text) IS
    'commits how far a consumer has come in a stream; never moves it back';

-- move_cursor(consumer, stream, seq, event_check): puts the cursor there, wherever it was: to do things again, or when the
--   stream is of another history.
CREATE FUNCTION doorbell.move_cursor(consumer text, stream text, seq bigint, event_check text DEFAULT NULL)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_move_cursor';
COMMENT ON FUNCTION doorbell.move_cursor(text, text, bigint, text) IS
    'puts a consumer''s cursor in a stream anywhere, also back';

-- cursor(consumer, stream) → the committed seq; null when there is none
CREATE FUNCTION doorbell.cursor(consumer text, stream text)
    RETURNS bigint LANGUAGE c STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_cursor';
COMMENT ON FUNCTION doorbell.cursor(text, text) IS 'returns how far a consumer has come in a stream';

-- mark(consumer, stream) → the same as a mark: the seq and, if it was committed, the check of its event
CREATE FUNCTION doorbell.mark(consumer text, stream text)
    RETURNS text LANGUAGE c STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_mark';
COMMENT ON FUNCTION doorbell.mark(text, text) IS
    'returns how far a consumer has come in a stream, with the check of that event';

-- commit_cursor(consumer, cursor), move_cursor(consumer, cursor), cursor(consumer): the same for a cursor of replay_all
--   22023  no such cursor      DB003  the committed one does not precede it, or is of another history
CREATE FUNCTION doorbell.commit_cursor(consumer text, cursor text)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_commit_cursor_all';
COMMENT ON FUNCTION doorbell.commit_cursor(text, text) IS
    'commits how far a consumer of all streams has come; never moves it back';

CREATE FUNCTION doorbell.move_cursor(consumer text, cursor text)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_move_cursor_all';
COMMENT ON FUNCTION doorbell.move_cursor(text, text) IS 'puts the cursor of a consumer of all streams anywhere, also back';

CREATE FUNCTION doorbell.cursor(consumer text)
    RETURNS text LANGUAGE c STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_cursor_all';
COMMENT ON FUNCTION doorbell.cursor(text) IS 'returns how far a consumer of all streams has come';

-- cursor_precedes(a, b): whether the holder of cursor b has all that the holder of cursor a has been given by replay_all.
--   Of two cursors neither may precede the other one: of two histories, or within two windows. 22023: no such cursor
CREATE FUNCTION doorbell.cursor_precedes(a text, b text)
    RETURNS boolean LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'doorbell_cursor_precedes';
COMMENT ON FUNCTION doorbell.cursor_precedes(text, text) IS
    'whether one cursor over all streams is not further on than another';

-- cursor_lag(cursor) → how many visible events the holder of a cursor over all streams has not been given, of all streams,
--   and the age of the oldest; 0 when there is none. Takes as long as reading them. Null: the cursor is of another history.
--   22023  the text is not a cursor
CREATE FUNCTION doorbell.cursor_lag(cursor text, OUT events bigint, OUT seconds double precision)
    RETURNS record LANGUAGE c STABLE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_cursor_lag';
COMMENT ON FUNCTION doorbell.cursor_lag(text) IS
    'how far the holder of a cursor over all streams is behind';

-- set_consumer(consumer, required, hold_at_most)
--   required      retention keeps what this consumer has not committed, in the streams in which it has a cursor …
--   hold_at_most  … but no longer than this after it was due
--   22023         hold_at_most is not more than 0
CREATE FUNCTION doorbell.set_consumer(consumer text, required boolean, hold_at_most interval DEFAULT '7 days')
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_set_consumer';
COMMENT ON FUNCTION doorbell.set_consumer(text, boolean, interval) IS
    'says whether retention waits for a consumer, and how long';

-- forget_consumer(consumer): its cursors and settings
CREATE FUNCTION doorbell.forget_consumer(consumer text)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_forget_consumer';
COMMENT ON FUNCTION doorbell.forget_consumer(text) IS 'removes a consumer with its cursors and settings';

-- Retention -----------------------------------------------------------------------------------------------------------

-- set_retention(pattern, max_age, max_events): what is older, or has so many seqs behind it, is to be removed. Both null:
--   no rule. A void seq counts as one.
--   pattern  key of a stream, or the beginning of keys and a *. Of all that match, the exact key counts, else the longest.
--   22004    pattern is null
--   22023    pattern is empty, too long, has control characters or a * that is not its end; max_age is not more than 0;
--            max_events is below 1
--   25006    as above
CREATE FUNCTION doorbell.set_retention(pattern text, max_age interval, max_events bigint)
    RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_set_retention';
COMMENT ON FUNCTION doorbell.set_retention(text, interval, bigint) IS
    'says how long the events of a stream, or of all streams whose key begins so, stay';

-- apply_retention(max_events) → how many events were removed. Removes what is due, up to so many, and goes on there in the
--   session's next call; 0: nothing is left to do. A stream that another transaction is trimming is left to that.
--   22023  max_events is below 1      25006  as above
CREATE FUNCTION doorbell.apply_retention(max_events int DEFAULT 10000)
    RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'doorbell_apply_retention';
COMMENT ON FUNCTION doorbell.apply_retention(int) IS
    'removes events that have stayed long enough, some in each call, and returns how many; 0: nothing is left to do';

-- Watching ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION doorbell.ringer_stats(
    OUT ringer_pid int, OUT appends bigint, OUT rings_asked bigint, OUT rings_sent bigint, OUT rings_coalesced bigint,
    OUT overflows bigint, OUT rings_waiting int, OUT batches bigint, OUT failures bigint, OUT last_error text,
    OUT mean_ring_ms double precision, OUT max_ring_ms double precision)
    RETURNS SETOF record LANGUAGE c VOLATILE ROWS 1 PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'doorbell_ringer_stats';
COMMENT ON FUNCTION doorbell.ringer_stats() IS 'what the ringer of this database has done; see doorbell.stats';

-- One row. Counts are since the server's start, of appends that ask for a ring while the library is preloaded.
CREATE VIEW doorbell.stats AS
SELECT r.*, pg_catalog.pg_notification_queue_usage() AS notify_queue_usage, o.pid AS oldest_listener_pid,
       o.xact_start AS oldest_listener_xact_start
FROM (SELECT 1) one
LEFT JOIN doorbell.ringer_stats() r ON true
LEFT JOIN LATERAL (
    SELECT a.pid, a.xact_start FROM pg_catalog.pg_stat_activity a
    WHERE a.backend_type = 'client backend' AND a.xact_start IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
    ORDER BY a.xact_start LIMIT 1) o ON pg_catalog.pg_notification_queue_usage() > 0;
COMMENT ON VIEW doorbell.stats IS 'appends, rings and the NOTIFY queue of this database, one row';
COMMENT ON COLUMN doorbell.stats.ringer_pid IS 'process of the ringer; null while there is none';
COMMENT ON COLUMN doorbell.stats.appends IS 'events whose transaction ended, committed or not';
COMMENT ON COLUMN doorbell.stats.rings_asked IS 'rings that transactions asked for: one per stream and transaction';
COMMENT ON COLUMN doorbell.stats.rings_sent IS 'pointers sent with NOTIFY by the ringer';
COMMENT ON COLUMN doorbell.stats.rings_coalesced IS 'rings merged with one that was already waiting';
COMMENT ON COLUMN doorbell.stats.overflows IS 'times that the table was full and one * stood for all; raise doorbell.ring_table_size';
COMMENT ON COLUMN doorbell.stats.rings_waiting IS 'pointers waiting for the ringer now';
COMMENT ON COLUMN doorbell.stats.batches IS 'transactions of the ringer that were sent';
COMMENT ON COLUMN doorbell.stats.failures IS 'transactions of the ringer that failed; their streams are rung again as *';
COMMENT ON COLUMN doorbell.stats.last_error IS 'why the last one failed; null when it did not';
COMMENT ON COLUMN doorbell.stats.mean_ring_ms IS 'mean time from the end of the appending transaction to its ring';
COMMENT ON COLUMN doorbell.stats.max_ring_ms IS 'longest such time';
COMMENT ON COLUMN doorbell.stats.notify_queue_usage IS 'share of the NOTIFY queue in use, 0 to 1; at 1 nothing can be rung';
COMMENT ON COLUMN doorbell.stats.oldest_listener_pid IS
    'session with the oldest open transaction while the queue is in use: a listening session takes nothing out of the queue before its transaction ends';
COMMENT ON COLUMN doorbell.stats.oldest_listener_xact_start IS 'when that transaction began';

CREATE FUNCTION doorbell.consumer_stats()
    RETURNS TABLE (consumer text, stream text, seq bigint, cursor text, committed_at timestamptz, lag_events bigint,
                   lag_seconds double precision, required boolean, hold_at_most interval)
    LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce(k.consumer, c.name), nullif(k.stream, ''), k.seq, k.cursor, k.committed_at,
           CASE WHEN k.seq IS NOT NULL
                THEN greatest(doorbell.high_water(k.stream) - greatest(k.seq, doorbell.low_water(k.stream)), 0)
                ELSE l.events END,
           CASE WHEN k.seq IS NOT NULL
                THEN coalesce((SELECT extract(epoch FROM clock_timestamp() - e.appended_at)::double precision
                               FROM doorbell.replay(k.stream, k.seq, 1) e), 0)
                ELSE l.seconds END,
           coalesce(c.required, false), c.hold_at_most
    FROM doorbell.consumer_cursor k FULL JOIN doorbell.consumer c ON c.name = k.consumer
    LEFT JOIN LATERAL doorbell.cursor_lag(k.cursor) l ON true;
END;
COMMENT ON FUNCTION doorbell.consumer_stats() IS 'how far consumers have come; see doorbell.consumers';

CREATE VIEW doorbell.consumers AS SELECT * FROM doorbell.consumer_stats();
COMMENT ON VIEW doorbell.consumers IS
    'consumers, one row for each of their cursors; one with nulls for a consumer that was configured and has none';
COMMENT ON COLUMN doorbell.consumers.consumer IS 'name of the consumer';
COMMENT ON COLUMN doorbell.consumers.stream IS 'key of the stream; null: all streams';
COMMENT ON COLUMN doorbell.consumers.seq IS 'last event of the stream that was committed; 0: none';
COMMENT ON COLUMN doorbell.consumers.cursor IS 'cursor over all streams';
COMMENT ON COLUMN doorbell.consumers.committed_at IS 'when it was committed';
COMMENT ON COLUMN doorbell.consumers.lag_events IS
    'seqs from there to high water that were not trimmed; for a cursor over all streams, events that were not given (null: it is of another history)';
COMMENT ON COLUMN doorbell.consumers.lag_seconds IS
    'age of the oldest event that can be replayed and is not committed, 0 when there is none';
COMMENT ON COLUMN doorbell.consumers.required IS 'whether retention leaves it the events that it has not committed';
COMMENT ON COLUMN doorbell.consumers.hold_at_most IS 'how long it does, from when they were due to be removed';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA doorbell FROM PUBLIC;
GRANT USAGE ON SCHEMA doorbell TO pg_monitor;
GRANT SELECT ON doorbell.stats, doorbell.consumers, doorbell.retention TO pg_monitor;
GRANT EXECUTE ON FUNCTION doorbell.ringer_stats(), doorbell.consumer_stats() TO pg_monitor;
