-- pgbench's own tables, and triggers that make each change an event. One transaction of its TPC-B script updates an
-- account, a teller and a branch and inserts into the history: four events, in streams of very different traffic.
CREATE EXTENSION pg_doorbell;
CREATE TRIGGER capture AFTER INSERT OR UPDATE OR DELETE ON pgbench_branches -- one hot stream
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('branch:{bid}', 'balance');
CREATE TRIGGER capture AFTER INSERT OR UPDATE OR DELETE ON pgbench_tellers -- ten busy ones
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('teller:{tid}', 'balance');
CREATE TRIGGER capture AFTER INSERT OR UPDATE OR DELETE ON pgbench_accounts -- up to 100,000 quiet ones
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('account:{aid}', 'balance');
CREATE TRIGGER capture AFTER INSERT ON pgbench_history
    FOR EACH ROW EXECUTE FUNCTION doorbell.capture('history:{bid}', 'booking');
