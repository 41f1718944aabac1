# A crash in the middle of appends loses no event whose append was acknowledged, and leaves no reader waiting.
#
# Writers append to one hot stream, each append a transaction, and note the seqs that they are given; one more session
# has an append in flight. Then the server is stopped without warning, or a backend is killed.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Load;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => 'restart_after_crash = on');

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

sub wait_until
{
	my ($condition) = @_;
	$node->poll_query_until('postgres', "SELECT $condition") or die "it never comes to this: $condition";
	return;
}

sub newest
{
	return query(q{SELECT coalesce(max(seq), 0) FROM doorbell.event WHERE stream = 'hot'});
}

sub crash_in_the_middle
{
	my ($name, $crash) = @_;
	my $start = newest();

	my @writers = start_writers($node->connstr('postgres'), $name, 4);
	wait_until(qq{doorbell.high_water('hot') >= $start + 200});
	my $open = $node->background_psql('postgres');
	my $hole = $open->query_safe(q{BEGIN; SELECT doorbell.append('hot', 'test', '"in flight"')});
	wait_until(qq{(SELECT max(seq) FROM doorbell.event WHERE stream = 'hot') >= $hole + 200});
	cmp_ok(query(q{SELECT doorbell.high_water('hot')}), '<', $hole, "$name: an append is in flight at the crash");

	$crash->();

	my %acknowledged = acknowledged(@writers);
	eval { $open->quit };

	my %read = query(q{SELECT seq || ' ' || (payload #>> '{}') FROM doorbell.replay('hot', 0, 10000000)}) =~ /^(\d+) (.+)$/mg;
	my @lost = grep { ($read{$_} // '') ne $acknowledged{$_} } sort { $a <=> $b } keys %acknowledged;
	cmp_ok(scalar(keys %acknowledged), '>=', 400, "$name: appends were acknowledged before the crash");
	is("@lost", '', "$name: readers get every acknowledged event with the seq that its writer was given");
	ok(!exists $read{$hole}, "$name: the seq that was in flight is void");
	is((sort { $b <=> $a } keys %read)[0], newest(), "$name: no reader is held up by it");
	is(query(q{SELECT doorbell.high_water('hot')}), newest(), "$name: nor is high water");
	my $next = newest() + 1;
	is(query(q{SELECT doorbell.append('hot', 'test', '"after"')}), $next, "$name: seqs go on");
	return;
}

crash_in_the_middle('immediate stop', sub {
	$node->stop('immediate');
	$node->start;
});

crash_in_the_middle('killed backend', sub {
	my $victim = query(q{SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT doorbell.append(%killed backend-1.%' LIMIT 1});
	kill 'KILL', $victim;
	# True once the server has recovered: every backend ends when one is killed.
	wait_until("NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT doorbell.append(%')");
});

$node->stop;
done_testing();
