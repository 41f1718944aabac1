# A full NOTIFY queue: with the ringer appends go on, the server says why nothing rings, and all rings when there is room.
#
# A session that listens, and stays in a transaction, takes nothing out of the queue. Before version 17 the queue holds
# 8 GB, which takes minutes to fill and as much space on the disk; from then on it can be made small.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t";
use Doorbell;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', without_extension => 1, conf => "shared_preload_libraries = 'pg_doorbell'");
if ($node->pg_version >= 17)
{
	$node->append_conf('postgresql.conf', 'max_notify_queue_pages = 64');
	$node->restart;
}
$node->safe_psql('postgres', 'CREATE EXTENSION pg_doorbell');

my $sleeper = listen_on($node);
$sleeper->query_safe('BEGIN; SELECT 1');
my $notify = q{DO $$ BEGIN
	LOOP
		PERFORM pg_notify('flood', lpad(n::text, 7999, 'x')) FROM generate_series(1, 5000) n;
		COMMIT;
	END LOOP;
END $$};
my ($status, undef, $error) = $node->psql('postgres', $notify, timeout => 1800);
like($error, qr/too many notifications in the NOTIFY queue/, 'the queue is full');

my ($conflict, undef, $refusal) = $node->psql('postgres', q{SET doorbell.ring_mode = commit; SELECT doorbell.append('s', 'test', '0')});
isnt($conflict, 0, 'an append that rings with its commit fails then');
like($refusal, qr/too many notifications in the NOTIFY queue/, 'because PostgreSQL refuses the commit');

is($node->safe_psql('postgres', qq{SELECT doorbell.append('s', 'test', '$_')}), $_, "append $_ goes on with the ringer") foreach (1 .. 3);
is(events($node, 's'), '1 1, 2 2, 3 3', 'and readers get what was appended');
$node->poll_query_until('postgres', q{SELECT last_error IS NOT NULL FROM doorbell.stats}) or die 'no error is told';
like($node->safe_psql('postgres', 'SELECT last_error FROM doorbell.stats'), qr/too many notifications in the NOTIFY queue/,
	'doorbell.stats says why nothing rings');
cmp_ok($node->safe_psql('postgres', 'SELECT notify_queue_usage FROM doorbell.stats'), '>', 0.99, 'and how full the queue is');
is($node->safe_psql('postgres', 'SELECT oldest_listener_pid = (SELECT pid FROM pg_stat_activity WHERE state = $$idle in transaction$$) FROM doorbell.stats'),
	't', 'and which session holds it back');

my @status = ("$ENV{TESTDIR}/build/doorbell", '--dsn', $node->connstr('postgres'), 'status');
my ($out, $err);
IPC::Run::run \@status, '>', \$out, '2>', \$err;
is($? >> 8, 1, '"doorbell status" exits with 1');
like($out, qr/^ringer +CANNOT ring: too many notifications in the NOTIFY queue$/m, 'and says why');
like($out, qr/^NOTIFY queue +(99\.\d|100\.0) % in use; the oldest transaction is that of process \d+$/m, 'and who is to blame');

my $ears = listen_on($node);
$sleeper->quit;
like(heard($ears, '*'), qr/(^| )\*$/, 'when the session has gone, everything is rung');
$node->poll_query_until('postgres', q{SELECT last_error IS NULL FROM doorbell.stats}) or die 'the error stays';
IPC::Run::run \@status, '>', \$out, '2>', \$err;
is($? >> 8, 0, 'and "doorbell status" is content');

$node->stop;
done_testing();
