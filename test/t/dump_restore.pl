# O14, C6: a dump restored into a new cluster has all events, high and low waters, and appends go on from there. The marks of
# readers stay valid: they go on without a gap or a reset.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = new_node('old');
my $new = new_node('new', without_extension => 1);
my $streams = q{SELECT * FROM doorbell.streams()};
my $events = q{
	SELECT e.* FROM doorbell.streams() s, LATERAL doorbell.replay(s.stream, 0, 1000000) e ORDER BY e.stream, e.seq
};

# Voids, a trimmed stream, one that is trimmed to the end, an odd key, event ids; and transaction ids that are far ahead
# of those of the new cluster.
$old->safe_psql('postgres', <<'SQL');
DO $$ BEGIN FOR i IN 1 .. 5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$;
SELECT doorbell.append('s', 'test', to_jsonb(i), NULL, gen_random_uuid()) FROM generate_series(1, 100) i;
BEGIN;
SELECT doorbell.append_batch('s', array_fill('test'::text, ARRAY[5]), array_fill('1'::jsonb, ARRAY[5]));
SAVEPOINT a;
SELECT doorbell.append_batch('s', array_fill('test'::text, ARRAY[5]), array_fill('2'::jsonb, ARRAY[5]));
ROLLBACK TO a;
COMMIT;
SELECT doorbell.append('trimmed', 'test', to_jsonb(i)) FROM generate_series(1, 10) i;
SELECT doorbell.trim('trimmed', 4);
SELECT doorbell.append('gone', 'test', to_jsonb(i)) FROM generate_series(1, 10) i;
SELECT doorbell.trim('gone', 10);
SELECT doorbell.append(E'it''s: "odd" \\ é', E't\\', '{"a\t": "\n\\"}');
SELECT doorbell.commit_cursor('c', 's', 42, '0badcafe');
SELECT doorbell.commit_cursor('c', 'trimmed', 5);
SELECT doorbell.set_consumer('c', true, '3 days');
SELECT doorbell.set_retention('gone', '1 day', 5);
SELECT doorbell.set_retention('tr*', NULL, 100);
SQL
my $consumers = q{SELECT consumer, stream, seq, committed_at, lag_events, required, hold_at_most, doorbell.mark(consumer, stream)
	FROM doorbell.consumers ORDER BY 1, 2};
my $rules = q{SELECT * FROM doorbell.retention ORDER BY pattern};
# A hole in the middle: its seqs are void in the copy, too. Another append is in flight while the dump is made.
my $session = $old->background_psql('postgres');
$session->query_safe(q{BEGIN; SELECT doorbell.append('s', 'test', '"void"')});
$old->safe_psql('postgres', q{SELECT doorbell.append('s', 'test', '"after the void"')});
$session->query_safe('ROLLBACK');
my $expected_events = $old->safe_psql('postgres', $events);
my $expected_streams = $old->safe_psql('postgres', $streams);
my $expected_consumers = $old->safe_psql('postgres', $consumers);
my $expected_rules = $old->safe_psql('postgres', $rules);
like("$expected_consumers\n$expected_rules", qr/^c\|s\|42\|.*\|42-0badcafe\n.*^gone\|1 day\|5$/ms, 'there are consumers and rules of retention');
$session->query_safe(q{BEGIN; SELECT doorbell.append('s', 'test', '"in flight"'); SELECT doorbell.append('new', 'test', '1')});

sub doorbell
{
	my ($node, @arguments) = @_;
	my $out;
	IPC::Run::run [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $node->connstr('postgres'), @arguments ], '<', \undef, '>', \$out,
	  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	return $out;
}
my ($cursor) = doorbell($old, qw(tail s trimmed --after 0 --count 112 --format sse)) =~ /.*^id: ([^\n]*)$/ms;

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$old->command_ok([ 'pg_dump', '--file', $dump, '--dbname', $old->connstr('postgres') ], 'pg_dump dumps a database in use');
my $text = slurp_file($dump);
like($text, qr/^COPY doorbell\.event /m, 'O14: the dump has the events');
like($text, qr/^COPY doorbell\.stream /m, 'O14: the dump has the low waters');
$session->query_safe('ROLLBACK');
$session->quit;

$new->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $new->connstr('postgres'), '-f', $dump ], 'it restores without an error');
is($new->safe_psql('postgres', $events), $expected_events, 'O14: readers get the same events');
is($new->safe_psql('postgres', $streams), $expected_streams, 'O14: high and low waters are the same');
is($new->safe_psql('postgres', $consumers), $expected_consumers, 'O14: consumers are where they were');
is($new->safe_psql('postgres', $rules), $expected_rules, 'O14: the rules of retention are the same');
is($new->safe_psql('postgres', q{SELECT count(*) FROM doorbell.event WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())}),
	'0', 'restored events have no transaction ids from the future');
is($new->safe_psql('postgres', q{SELECT count(event_id) FROM doorbell.event}), '100', 'event ids are restored');
for my $stream (qw(s trimmed gone)) {
	my $append = qq{SELECT doorbell.append('$stream', 'test', '"next"')};
	is($new->safe_psql('postgres', $append), $old->safe_psql('postgres', $append), "O14: appends to stream $stream go on as in the old cluster");
}

is(join(' ', doorbell($new, qw(tail s trimmed --count 2 --format json --after), $cursor) =~ /"(?:control|seq)":"?(\w+)/g),
	join(' ', map { $new->safe_psql('postgres', "SELECT doorbell.high_water('$_')") } qw(s trimmed)),
	'C6: a cursor from before the dump goes on, without a gap or a reset');

# Rows can also keep the ids of the old cluster: loaded with the trigger switched off. Such an id may be that of a
# transaction which runs here, or which is still to come; neither may hold up a reader.
my $running = $new->background_psql('postgres');
my $xid = $running->query_safe(q{BEGIN; SELECT pg_current_xact_id()});
$new->safe_psql('postgres', qq{
	ALTER TABLE doorbell.event DISABLE TRIGGER event_restored;
	INSERT INTO doorbell.event VALUES ('foreign', 1, 'test', '1', now(), '$xid'), ('foreign', 2, 'test', '2', now(), '1000000');
	ALTER TABLE doorbell.event ENABLE ALWAYS TRIGGER event_restored;
});
is(events($new, 'foreign'), '1 1, 2 2', 'readers get events with the id of a transaction that runs here');
is(waters($new, 'foreign'), '0..2', 'high water does not stop before them');
is($new->safe_psql('postgres', q{SELECT high_water FROM doorbell.streams('foreign')}), '2', 'streams() agrees');
$running->query_safe('ROLLBACK');
$running->quit;

$old->stop;
$new->stop;
done_testing();
