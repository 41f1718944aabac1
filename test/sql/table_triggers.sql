-- Triggers on doorbell.event: AFTER ROW ones fire once the stream's lock is released, others are refused.
CREATE EXTENSION pg_doorbell;
CREATE ROLE regress_doorbell_writer;
GRANT USAGE ON SCHEMA doorbell TO regress_doorbell_writer;
GRANT EXECUTE ON FUNCTION doorbell.append, doorbell.append_batch TO regress_doorbell_writer;

-- A trigger that appends again, to the same stream and to another, as the table's owner.
CREATE FUNCTION echo() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.type = 'call' THEN
        PERFORM doorbell.append(NEW.stream, 'echo', NEW.payload);
        PERFORM doorbell.append('log', 'echo', to_jsonb(format('%s:%s seen %s, by the owner: %s, search_path %s', NEW.stream, NEW.seq, (SELECT count(*) FROM doorbell.event e WHERE e.stream = NEW.stream AND e.seq = NEW.seq), current_user <> 'regress_doorbell_writer', current_setting('search_path'))));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER echo AFTER INSERT ON doorbell.event FOR EACH ROW EXECUTE FUNCTION echo();
SET ROLE regress_doorbell_writer;
SELECT doorbell.append('s', 'call', '1');
SELECT doorbell.append_batch('s', '{call,quiet,call}', ARRAY['2', '3', '4']::jsonb[]);
SELECT current_user, current_setting('search_path');
RESET ROLE;
SELECT seq, type, payload FROM doorbell.replay('s');
SELECT payload FROM doorbell.replay('log');
DROP TRIGGER echo ON doorbell.event;

CREATE TRIGGER before_row BEFORE INSERT ON doorbell.event FOR EACH ROW EXECUTE FUNCTION echo();
SELECT doorbell.append('s', 'call', '1');
DROP TRIGGER before_row ON doorbell.event;
CREATE TRIGGER statement AFTER INSERT ON doorbell.event EXECUTE FUNCTION echo();
SELECT doorbell.append('s', 'call', '1');
DROP TRIGGER statement ON doorbell.event;
SELECT doorbell.append('s', 'quiet', '1');

-- A row that COPY or INSERT brings gets the transaction id of the restoring transaction.
BEGIN;
INSERT INTO doorbell.event VALUES ('restored', 1, 'test', '1', now(), '999999999');
SELECT xid = pg_current_xact_id() AS own FROM doorbell.event WHERE stream = 'restored';
COMMIT;
SELECT doorbell.high_water('restored');
DROP FUNCTION echo();
DROP EXTENSION pg_doorbell;
DROP SCHEMA doorbell;
DROP ROLE regress_doorbell_writer;
