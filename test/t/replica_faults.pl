# C3: a `doorbell tail` that reads from a standby gets every event once and in order through the end of the walsender, its
# violent death (which takes the primary down), and restarts of the standby.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Load;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', allows_streaming => 1, conf => "restart_after_crash = on\nshared_preload_libraries = 'pg_doorbell'");
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "wal_retrieve_retry_interval = 100ms\nlog_min_duration_statement = 0");
$standby->start;
my $tail = start_tail($primary->connstr('postgres'), '--replay-dsn', $standby->connstr('postgres'));

sub newest
{
	return $primary->safe_psql('postgres', q{SELECT coalesce(max(seq), 0) FROM doorbell.event WHERE stream = 'hot'});
}

sub walsender
{
	return $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_replication});
}

sub survives
{
	my ($fault, $happens) = @_;
	my $start = newest();
	my @writers = start_writers($primary->connstr('postgres'), $fault, 2);
	until_true($primary, qq{SELECT doorbell.high_water('hot') >= $start + 200});
	$happens->();
	my $then = newest();
	until_true($primary, qq{SELECT doorbell.high_water('hot') >= $then + 200}) if grep { $_->{run}->pumpable } @writers;
	$_->{run}->signal('TERM') foreach grep { $_->{run}->pumpable } @writers;
	acknowledged(@writers);
	$primary->safe_psql('postgres', qq{SELECT doorbell.append('hot', 'test', '"after $fault"')});
	until_tailed($tail, "after $fault");
	is_the_table($tail, $primary, "C3: a tail that reads from a standby gets each event once, in order, through $fault");
}

survives('the end of the walsender', sub {
	my $pid = walsender();
	$primary->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 10000)");
	until_true($primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE pid <> $pid");
});
survives('a restart of the standby', sub { $standby->restart });
survives('a crash of the standby', sub { $standby->stop('immediate'); $standby->start });
survives('the death of the walsender and the crash that it causes', sub {
	my $pid = walsender();
	kill 'KILL', $pid;
	until_true($primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE pid <> $pid");
});
cmp_ok(scalar(() = slurp_file($standby->logfile) =~ /doorbell\.replay_many/g), '>=', 4, 'it has read from the standby');
is($primary->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%replay_many%' AND pid <> pg_backend_pid()}), '0',
	'and not from the primary');

$standby->stop;
$primary->stop;
done_testing();
