# C3, C2: the primary is lost under load and a synchronous standby takes over. Everybody has a connection string with both
# hosts and target_session_attrs=read-write: what was acknowledged is there, and a tail gets each event once and in order.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Load;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

for my $mode ('commit', 'worker')
{
	my $primary = new_node("primary_$mode", allows_streaming => 1,
		conf => q{shared_preload_libraries = '} . ($mode eq 'worker' ? 'pg_doorbell' : '') . q{'});
	$primary->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new("standby_$mode");
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', 'wal_retrieve_retry_interval = 100ms');
	$standby->start;
	until_true($primary, q{SELECT count(*) = 1 FROM pg_stat_replication});
	$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = '*'});
	$primary->reload;
	until_true($primary, q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'});

	my $both = 'host=' . $primary->host . ',' . $standby->host . ' port=' . $primary->port . ',' . $standby->port
	  . ' dbname=postgres target_session_attrs=read-write';
	my $tail = start_tail($both);
	my @writers = start_writers($both, "$mode before", 4);
	until_true($primary, q{SELECT doorbell.high_water('hot') >= 500});
	$primary->stop('immediate');
	my %acknowledged = acknowledged(@writers);
	$standby->promote;
	my $start = $standby->safe_psql('postgres', q{SELECT max(seq) FROM doorbell.event WHERE stream = 'hot'});
	@writers = start_writers($both, "$mode after", 4);
	until_true($standby, qq{SELECT doorbell.high_water('hot') >= $start + 200});
	$_->{run}->signal('TERM') foreach @writers;
	%acknowledged = (%acknowledged, acknowledged(@writers));
	$standby->safe_psql('postgres', q{SELECT doorbell.append('hot', 'test', '"the last one"')});
	until_tailed($tail, 'the last one');

	my %given = map { /^(\d+) (.*)$/ } tailed($tail);
	my @lost = grep { ($given{$_} // '') ne $acknowledged{$_} } keys %acknowledged;
	cmp_ok(scalar keys %acknowledged, '>=', 400, "$mode: appends were acknowledged");
	is("@lost", '', "C2: $mode: none of them is lost by the promotion");
	is_the_table($tail, $standby, "C3: $mode: a tail is given each event once, in order, through a promotion under load");
	$standby->stop;
}
done_testing();
