# C3: a `doorbell tail` gets every event once and in order through an immediate stop of the server, a backend that is killed
# in the middle of an append, and the ringer's death, in both ways of ringing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Load;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

sub newest
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT coalesce(max(seq), 0) FROM doorbell.event WHERE stream = 'hot'});
}

sub kill_one
{
	my ($node, $condition) = @_;
	my $victim = '';
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	while ($victim eq '')
	{
		die "there is none to kill: $condition" if time > $deadline;
		$victim = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $condition LIMIT 1");
	}
	kill 'KILL', $victim;
	until_true($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim OR query LIKE 'SELECT doorbell.append(%')");
}

my %faults = (
	'an immediate stop' => sub { my ($node) = @_; $node->stop('immediate'); $node->start },
	'a backend killed while it appends' => sub { kill_one($_[0], q{query LIKE 'SELECT doorbell.append(%' AND state = 'active'}) },
	'the ringer killed' => sub { kill_one($_[0], q{backend_type = 'pg_doorbell ringer'}) });

for my $mode ('commit', 'worker')
{
	my $node = new_node($mode, conf => "restart_after_crash = on\nshared_preload_libraries = '" . ($mode eq 'worker' ? 'pg_doorbell' : '') . q{'});
	my $tail = start_tail($node->connstr('postgres'));
	for my $fault (sort keys %faults)
	{
		next if $fault =~ /ringer/ && $mode eq 'commit'; # there is none
		my $start = newest($node);
		my @writers = start_writers($node->connstr('postgres'), "$mode $fault", 4);
		until_true($node, qq{SELECT doorbell.high_water('hot') >= $start + 200});
		$faults{$fault}->($node);
		my %acknowledged = acknowledged(@writers);
		$node->safe_psql('postgres', qq{SELECT doorbell.append('hot', 'test', '"after $fault"')});
		until_tailed($tail, "after $fault");
		my %given = map { /^(\d+) (.*)$/ } tailed($tail);
		my @lost = grep { ($given{$_} // '') ne $acknowledged{$_} } keys %acknowledged;
		cmp_ok(scalar keys %acknowledged, '>=', 100, "$mode: appends were acknowledged before $fault");
		is("@lost", '', "$mode: a tail is given all of them through $fault");
		is_the_table($tail, $node, "C3: $mode: and each event once, in order, through $fault");
	}
	$node->stop;
}
done_testing();
