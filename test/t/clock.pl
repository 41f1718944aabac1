# The server's clock is set back by an hour: within a stream appended_at never decreases, and a stream that is new has the
# new time.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clock = PostgreSQL::Test::Utils::tempdir() . '/clock';
sub set_clock
{
	my ($offset) = @_;
	append_to_file("$clock.new", "$offset\n");
	rename "$clock.new", $clock or die;
}

my ($faketime) = glob '/usr/lib/*/faketime/libfaketime.so.1' or die 'libfaketime is not installed';
set_clock('+0');
my $node = new_node('main', without_extension => 1);
$node->stop;
{
	local %ENV = (%ENV, LD_PRELOAD => $faketime, FAKETIME_TIMESTAMP_FILE => $clock, FAKETIME_NO_CACHE => 1, FAKETIME_DONT_FAKE_MONOTONIC => 1,
		FAKETIME_DISABLE_SHM => 1);
	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION pg_doorbell');

my $session = $node->background_psql('postgres');
my $clock_of = q{SELECT extract(epoch FROM clock_timestamp())::bigint};
my $append = q{SELECT doorbell.append('s', 'test', '1')};
$session->query_safe("$append; $append;");
my $before = $session->query_safe($clock_of);
set_clock('-3600');
cmp_ok($session->query_safe($clock_of), '<', $before - 3000, 'the clock of the server is set back');
$session->query_safe($append);
$node->safe_psql('postgres', "BEGIN; $append; $append; COMMIT; SELECT doorbell.append('new', 'test', '1')");
is($node->safe_psql('postgres', q{SELECT count(*) FROM doorbell.replay('s')}), '5', 'appends go on');
is($node->safe_psql('postgres', q{SELECT bool_and(appended_at >= before) FROM
	(SELECT appended_at, lag(appended_at, 1, appended_at) OVER (ORDER BY seq) AS before FROM doorbell.replay('s')) e}), 't',
	'appended_at does not decrease within the stream');
is($node->safe_psql('postgres', qq{SELECT extract(epoch FROM appended_at) < $before - 3000 FROM doorbell.replay('new')}), 't',
	'a new stream has the time of the clock');
set_clock('+0');
$session->query_safe($append);
is($node->safe_psql('postgres', q{SELECT max(appended_at) = (SELECT appended_at FROM doorbell.replay('s', 5)) FROM doorbell.replay('s')}), 't',
	'and when the clock is right again, so is appended_at');
$session->quit;
$node->stop;
done_testing();
