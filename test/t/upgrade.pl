# O14, C6: after pg_upgrade streams, waters and event ids are what they were, seqs go on, and the marks of readers stay
# valid: they go on without a gap or a reset.
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
$old->safe_psql('postgres', <<'SQL');
DO $$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$;
SELECT doorbell.append('s', 'test', to_jsonb(i), NULL, gen_random_uuid()) FROM generate_series(1, 100) i;
BEGIN; SELECT doorbell.append('s', 'test', '"void"'); SAVEPOINT a; SELECT doorbell.append('s', 'test', '"void"'); ROLLBACK;
SELECT doorbell.append('trimmed', 'test', to_jsonb(i)) FROM generate_series(1, 10) i;
SELECT doorbell.trim('trimmed', 4);
SELECT doorbell.append('gone', 'test', to_jsonb(i)) FROM generate_series(1, 10) i;
SELECT doorbell.trim('gone', 10);
SQL

sub doorbell
{
	my ($node, @arguments) = @_;
	my ($out, $err);
	IPC::Run::run [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $node->connstr('postgres'), @arguments ], '<', \undef, '>', \$out, '2>', \$err,
	  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	return "$out$err";
}
my ($cursor) = doorbell($old, qw(tail s trimmed --after 0 --count 106 --format sse)) =~ /.*^id: ([^\n]*)$/ms;
like($cursor, qr/^100-[0-9a-f]{8},10-[0-9a-f]{8}$/, 'a reader has read everything');
my $everything = q{SELECT * FROM doorbell.event ORDER BY stream, seq};
my $streams = q{SELECT * FROM doorbell.streams()};
my @before = map { $old->safe_psql('postgres', $_) } ($everything, $streams);
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
chdir PostgreSQL::Test::Utils::tempdir() or die;
command_ok([ 'pg_upgrade', '--no-sync', '-b', $ENV{PG_BINDIR}, '-B', $ENV{PG_BINDIR}, '-d', $old->data_dir, '-D', $new->data_dir,
	'-p', $old->port, '-P', $new->port, '-s', $new->host ], 'pg_upgrade takes the cluster over');
$new->start;
is($new->safe_psql('postgres', $everything), $before[0], 'O14: the events are the same, to the last column');
is($new->safe_psql('postgres', $streams), $before[1], 'O14: so are low and high waters');
is($new->safe_psql('postgres', qq{SELECT doorbell.append('$_', 'test', '"next"')}), $_ eq 's' ? 101 : 11, "O14: seqs of stream $_ go on")
  foreach qw(s trimmed gone);
is(join(' ', doorbell($new, qw(tail s trimmed --count 2 --format json --after), $cursor) =~ /"(?:control|seq)":"?(\w+)/g), '101 11',
	'C6: the cursor from before the upgrade goes on, without a gap or a reset');
$new->stop;
done_testing();
