-- An outbox as it is often made: an id from a sequence, and a trigger that rings. Ids show 11 before 10, so a reader that
-- remembers the last one can miss events. No index leads to one stream, which is to its advantage here.
CREATE TABLE event (
    id          bigserial PRIMARY KEY,
    stream      text NOT NULL,
    type        text NOT NULL,
    payload     jsonb NOT NULL,
    appended_at timestamptz NOT NULL DEFAULT now()
);
CREATE FUNCTION ring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('doorbell', NEW.stream || ':' || NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER ring AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION ring();
-- Each transaction:
INSERT INTO event (stream, type, payload) VALUES (concat('s:', :n::int), 'test', :payload);
