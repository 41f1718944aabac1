-- A writer and a reader role, with the grants of the README and nothing else.
CREATE EXTENSION pg_doorbell;
CREATE ROLE regress_doorbell_writer;
CREATE ROLE regress_doorbell_reader;
CREATE ROLE regress_doorbell_nobody;
GRANT USAGE ON SCHEMA doorbell TO regress_doorbell_writer, regress_doorbell_reader, regress_doorbell_nobody;
GRANT EXECUTE ON FUNCTION doorbell.append, doorbell.append_batch, doorbell.append_many TO regress_doorbell_writer;
GRANT EXECUTE ON FUNCTION doorbell.replay, doorbell.replay_many, doorbell.replay_all, doorbell.high_water, doorbell.high_water_all, doorbell.low_water, doorbell.streams TO regress_doorbell_reader;

SET ROLE regress_doorbell_writer;
SELECT doorbell.append('s', 'test', '1');
SELECT doorbell.append_batch('s', '{test}', ARRAY['2']::jsonb[]);
SELECT * FROM doorbell.append_many('{s,t}', '{test,test}', ARRAY['3', '4']::jsonb[]);
SELECT doorbell.replay('s');
SELECT doorbell.trim('s', 1);
SELECT * FROM doorbell.event;
INSERT INTO doorbell.event VALUES ('s', 9, 'forged', '1', now(), '3');
UPDATE doorbell.stream SET low_water = 9;

SET ROLE regress_doorbell_reader;
SELECT seq, payload FROM doorbell.replay('s');
SELECT count(*) FROM doorbell.replay_many('{s,t}', '{0,0}');
SELECT count(*), count(r.cursor) FROM doorbell.replay_all() r;
SELECT count(*) FROM doorbell.replay_all(doorbell.high_water_all());
SELECT doorbell.high_water('s'), doorbell.low_water('s');
SELECT * FROM doorbell.streams();
SELECT doorbell.append('s', 'test', '1');
SELECT * FROM doorbell.event;

SET ROLE regress_doorbell_nobody;
SELECT doorbell.append('s', 'test', '1');
SELECT doorbell.replay('s');
SELECT doorbell.streams();
SELECT doorbell.replay_all();
SELECT doorbell.high_water_all();
SELECT doorbell.ring('s', 1);

-- trim() runs as the owner, whatever is on the caller's search_path.
RESET ROLE;
GRANT EXECUTE ON FUNCTION doorbell.trim TO regress_doorbell_writer;
GRANT CREATE ON SCHEMA public TO regress_doorbell_writer;
SET ROLE regress_doorbell_writer;
CREATE FUNCTION public.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped as %', current_user; END $$;
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.trap);
SET search_path = public, pg_catalog;
SELECT doorbell.trim('s', 1);
SELECT doorbell.append('s', 'test', '5');
RESET search_path;
DROP OPERATOR public.= (text, text);
DROP FUNCTION public.trap(text, text);
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM regress_doorbell_writer;

DROP EXTENSION pg_doorbell;
DROP SCHEMA doorbell;
DROP ROLE regress_doorbell_writer, regress_doorbell_reader, regress_doorbell_nobody;
