# C1: streams that logical replication brings cannot be followed: what is in flight on the publisher is unknown here, so a
# hole would be taken for a void. That is refused by name, as long as there is a subscription.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = new_node('publisher', allows_streaming => 'logical');
my $copy = new_node('copy');
$publisher->safe_psql('postgres', q{CREATE PUBLICATION streams FOR TABLE doorbell.event, doorbell.stream});
$publisher->safe_psql('postgres', q{SELECT doorbell.append('s', 'test', '1')});

my $session = $copy->background_psql('postgres', on_error_stop => 0);
is($session->query(q{SELECT count(*) FROM doorbell.replay('s')}), '0', 'a session reads while there is no subscription');
$copy->safe_psql('postgres', q{CREATE SUBSCRIPTION streams CONNECTION $$} . $publisher->connstr('postgres') . q{$$ PUBLICATION streams});
$copy->wait_for_subscription_sync($publisher, 'streams');
is($copy->safe_psql('postgres', q{SELECT seq || ' ' || payload FROM doorbell.event}), '1 1', 'the events arrive in the table');

for my $call (q{doorbell.replay('s')}, q{doorbell.replay_many('{s}', '{0}')}, q{doorbell.streams()}, q{doorbell.high_water('s')},
	q{doorbell.replay_all()}, q{doorbell.high_water_all()})
{
	my (undef, undef, $error) = $copy->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM $call");
	like($error, qr/ERROR:  0A000: cannot follow streams that logical replication brings here$/m, "C1: $call is refused there");
	like($error, qr/HINT:  Follow the publisher, or a physical standby of it\./, 'with what to do instead');
}
$session->query(q{SELECT count(*) FROM doorbell.replay('s')});
like($session->{stderr}, qr/cannot follow streams that logical replication brings/, 'also in a session that had read before');
$session->{stderr} = '';

my ($out, $err);
IPC::Run::run [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $copy->connstr('postgres'), qw(tail s --after 0) ], '<', \undef, '>', \$out, '2>', \$err,
  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
is($? >> 8, 1, 'a tail ends');
like($err, qr/^doorbell: cannot follow streams that logical replication brings here\n.*\nFollow the publisher/, 'and says why');
is(events($publisher, 's'), '1 1', 'the publisher is read as ever');

$copy->safe_psql('postgres', 'DROP SUBSCRIPTION streams');
is(events($copy, 's'), '1 1', 'without the subscription it is a copy like a restored dump');
is($session->query(q{SELECT count(*) FROM doorbell.replay('s')}), '1', 'also for that session');

$session->quit;
$copy->stop;
$publisher->stop;
done_testing();
