# The ringer rings after the commit, and comes and goes with the work.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => qq{
	shared_preload_libraries = 'pg_doorbell'
	max_prepared_transactions = 10
	doorbell.ring_table_size = 64
});

my $ears = listen_on($node);
my $ringer = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_doorbell ringer'};
is($node->safe_psql('postgres', $ringer), '', 'there is no ringer before the first append');

# After the commit, and only then.
$node->safe_psql('postgres', q{SELECT doorbell.append('a', 'test', '1')});
is(heard($ears, 'a:1'), 'a:1', 'an append is rung');
like($node->safe_psql('postgres', $ringer), qr/^\d+$/, 'by a ringer');
my $open = $node->background_psql('postgres');
$open->query_safe(q{BEGIN; SELECT doorbell.append('a', 'test', '2'); SAVEPOINT s; SELECT doorbell.append('back', 'test', '1')});
$node->safe_psql('postgres', q{SELECT doorbell.append('a', 'test', '3'); SELECT doorbell.append('b', 'test', '1')});
is(heard($ears, 'b:1'), 'a:3 b:1', 'what is in flight is not rung');
$open->query_safe('ROLLBACK TO s');
is(heard($ears, 'back:1'), 'back:1', 'an append that a savepoint takes back is rung at once, for readers stopped at its hole');
$open->query_safe('COMMIT');
is(heard($ears, 'a:2'), 'a:2', 'the rest at the commit');
$open->query_safe(q{BEGIN; SELECT doorbell.append('a', 'test', '4'); ROLLBACK});
is(heard($ears, 'a:4'), 'a:4', 'an append that rolled back is rung, for readers stopped at its hole');

# One ring per stream and transaction.
$node->safe_psql('postgres', q{
	SELECT count(doorbell.append('many', 'test', '1')) FROM generate_series(1, 10000);
});
is(heard($ears, 'many:10000'), 'many:10000', 'L6: 10,000 appends of one transaction are one ring');
$node->safe_psql('postgres', q{SELECT count(doorbell.append('s' || i, 'test', '1')) FROM generate_series(1, 1000) i});
is(heard($ears, '*'), '*', 'L6: 1,000 streams in one transaction are one *');
$node->safe_psql('postgres', q{SET doorbell.ring_mode = off; SELECT doorbell.append('quiet', 'test', '1')});
$node->safe_psql('postgres', q{SET doorbell.ring_mode = commit; SELECT doorbell.append('commit', 'test', '1')});
is(heard($ears, 'commit:1'), 'commit:1', 'ring_mode off is not rung, commit still is');

# Two-phase commit.
sub prepare
{
	my ($name) = @_;
	$node->safe_psql('postgres', qq{
		BEGIN; SELECT doorbell.append('$name', 'test', '1'); SELECT doorbell.append('$name', 'test', '2');
		PREPARE TRANSACTION '$name'});
	return;
}
prepare($_) foreach ('two', 'three', "it''s four");
$_->quit foreach ($open, $ears);
$node->restart;
$ears = listen_on($node);
$node->safe_psql('postgres', q{COMMIT PREPARED 'two'});
is(heard($ears, 'two:2'), 'two:2', 'COMMIT PREPARED rings, also after a restart');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'three'});
is(heard($ears, 'three:2'), 'three:2', 'ROLLBACK PREPARED too');
$node->safe_psql('postgres', q{SET doorbell.ring_mode = off; COMMIT PREPARED 'it''s four'});
is(heard($ears, q{it's four:2}), q{it's four:2}, 'whatever the ring mode of the session that commits is');

# Stopped and paused.
my $pid = $node->safe_psql('postgres', $ringer);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 10000)");
is($node->safe_psql('postgres', $ringer), '', 'a ringer that is terminated goes away');
$node->safe_psql('postgres', q{SELECT doorbell.append('c', 'test', '1')});
is(heard($ears, 'c:1'), 'c:1', 'the next append starts another');
$pid = $node->safe_psql('postgres', $ringer);
kill 'STOP', $pid;
$node->safe_psql('postgres', qq{SELECT doorbell.append('merged', 'test', '$_')}) foreach (1 .. 20);
like($node->safe_psql('postgres', 'SELECT rings_waiting FROM doorbell.stats'), qr/^[01]$/, 'while the ringer is busy rings of a stream merge');
kill 'CONT', $pid;
like(heard($ears, 'merged:20'), qr/^(merged:\d+ )?merged:20$/, 'and the last one is rung');
cmp_ok($node->safe_psql('postgres', 'SELECT rings_coalesced FROM doorbell.stats'), '>=', 18, 'which doorbell.stats tells');

# More streams than the table holds.
kill 'STOP', $pid;
$node->safe_psql('postgres', qq{SELECT doorbell.append('o$_', 'test', '1')}) foreach (1 .. 100);
kill 'CONT', $pid;
like(heard($ears, '*'), qr/(^| )\*$/, 'a full table becomes one *');
is($node->safe_psql('postgres', 'SELECT overflows FROM doorbell.stats'), '1', 'which doorbell.stats tells');

# A command that wants the database for itself, or a server that goes.
kill 'STOP', $pid;
$node->safe_psql('postgres', q{SELECT doorbell.append('late', 'test', '1')});
kill 'TERM', $pid;
kill 'CONT', $pid;
is(heard($ears, 'late:1'), 'late:1', 'what waits is still rung when the ringer is told to stop');

# Two databases.
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION pg_doorbell');
my $other_ears = listen_on($node, 'other');
$node->safe_psql($_, qq{SELECT doorbell.append('in $_', 'test', '1')}) foreach ('postgres', 'other');
is(heard($ears, 'in postgres:1'), 'in postgres:1', 'each database has its own ringer');
is(heard($other_ears, 'in other:1'), 'in other:1', 'which rings there');
is($node->safe_psql('postgres', qq{SELECT count(*) FROM ($ringer) r}), '2', 'so there are two');
$other_ears->quit;
$node->safe_psql('postgres', 'ALTER DATABASE other RENAME TO another');
pass('a database with a ringer can be renamed');
$node->safe_psql('another', q{SELECT doorbell.append('x', 'test', '1')});
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE another');
pass('it can be a template');
$node->safe_psql('another', q{SELECT doorbell.append('x', 'test', '2')});
$node->safe_psql('postgres', 'DROP DATABASE another');
pass('it can be dropped');

# Idle.
$node->append_conf('postgresql.conf', 'doorbell.ringer_idle_timeout = 1s');
$node->reload;
$node->safe_psql('postgres', q{SELECT doorbell.append('d', 'test', '1')});
is(heard($ears, 'd:1'), 'd:1', 'a new idle timeout is taken up');
$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM ($ringer) r}) or die 'the ringer stays';
pass('an idle ringer leaves');
$open = $node->background_psql('postgres');
$open->query_safe(q{BEGIN; SELECT doorbell.append('e', 'test', '1')});
my $present = qq{SELECT count(*) = 1 FROM ($ringer) r};
$node->poll_query_until('postgres', $present) or die 'no ringer came';
$node->safe_psql('postgres', 'SELECT pg_sleep(1.5)'); # longer than the timeout that must not apply here
is($node->safe_psql('postgres', $present), 't', 'but not while a transaction will have to ring');
$open->query_safe('COMMIT');
is(heard($ears, 'e:1'), 'e:1', 'which it then does');

# Without a place for the worker, or with the ringer off, the transaction rings by itself.
$node->append_conf('postgresql.conf', 'doorbell.ringer = off');
$node->reload;
$node->safe_psql('postgres', q{SELECT doorbell.append('f', 'test', '1')});
is(heard($ears, 'f:1'), 'f:1', 'with the ringer off the transaction rings at its commit');
$node->append_conf('postgresql.conf', "doorbell.ringer = on\nmax_worker_processes = 0");
$open->quit;
$ears->quit;
$node->restart;
$ears = listen_on($node);
$node->safe_psql('postgres', q{SELECT doorbell.append('g', 'test', '1')});
is(heard($ears, 'g:1'), 'g:1', 'and so it does when no background worker can be had');

# A crash loses rings, never events; afterwards all goes on.
$node->append_conf('postgresql.conf', "max_worker_processes = 8\nrestart_after_crash = on");
$node->restart;
$node->safe_psql('postgres', q{SELECT doorbell.append('h', 'test', '1')});
$node->poll_query_until('postgres', $present) or die 'no ringer came';
$pid = $node->safe_psql('postgres', $ringer);
kill 'KILL', $pid;
until_true($node, qq{SELECT NOT pg_is_in_recovery() AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)});
$ears = listen_on($node);
$node->safe_psql('postgres', q{SELECT doorbell.append('h', 'test', '2')});
is(heard($ears, 'h:2'), 'h:2', 'after a crash of the ringer the next append is rung');
is(events($node, 'h'), '1 1, 2 2', 'and no event is lost');

$node->stop;
done_testing();
