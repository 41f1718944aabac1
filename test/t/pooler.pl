# L8: behind a transaction pooler (pgbouncer) rings cannot be heard. That is named, and events arrive by sweep all the same,
# although each transaction is another session's. A session pooler is as good as none.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IO::Socket::INET;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
my $doorbell = "$ENV{TESTDIR}/build/doorbell";

sub pooler
{
	my ($mode, $port) = @_;
	$port //= PostgreSQL::Test::Cluster::get_free_port();
	my $directory = PostgreSQL::Test::Utils::tempdir();
	append_to_file("$directory/ini", join "\n", '[databases]', 'postgres = host=' . $node->host . ' port=' . $node->port . ' user=' . getpwuid($>),
		'[pgbouncer]', 'listen_addr = 127.0.0.1', "listen_port = $port", 'unix_socket_dir =', 'auth_type = any',
		"pool_mode = $mode", 'default_pool_size = 5', 'server_round_robin = 1', '');
	my %pooler = (out => '', port => $port, dsn => "host=127.0.0.1 port=$port dbname=postgres");
	$pooler{handle} = IPC::Run::start [ (grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin')[0], "$directory/ini" ],
	  '<', \undef, '&>', \$pooler{out};
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port))
	{
		die "pgbouncer does not listen: $pooler{out}" if time > $deadline || !$pooler{handle}->pumpable;
		$pooler{handle}->pump_nb;
	}
	return \%pooler;
}

sub command
{
	my ($dsn, @arguments) = @_;
	my ($out, $err);
	IPC::Run::run [ $doorbell, '--dsn', $dsn, @arguments ], '<', \undef, '>', \$out, '2>', \$err;
	return ($? >> 8, $out, $err);
}

# Sessions that other clients hold for a moment, so that the pool has several and hands out another one each time.
sub warm
{
	my ($dsn) = @_;
	my @busy = map { IPC::Run::start([ 'psql', '-XAtqd', $dsn, '-c', 'SELECT pg_sleep(0.3)' ], '<', \undef, '>', \my $out) } 1 .. 4;
	IPC::Run::finish $_ foreach @busy;
}

my $pooler = pooler('transaction');
warm($pooler->{dsn});
my ($status, $out, $err) = command($pooler->{dsn}, 'status');
is($status, 1, 'L8: status behind a transaction pooler is not healthy');
like($out, qr/^channel +NOT heard: .*(rings do not come back|pooler)/m, 'L8: and says that rings do not come back');

($status, $out, $err) = command($pooler->{dsn}, 'doctor');
is($status, 1, 'L8: doctor behind a transaction pooler finds a problem');
like($out, qr/^PROBLEM channel: .*\n +why: .*\n +change: .*not through a pooler in transaction mode$/m, 'L8: and says what to change');

my @numbers = (1 .. 30);
is((command($pooler->{dsn}, 'append', 's', 'made', $_))[1], "$_\n", "append $_ goes through") foreach @numbers[ 0 .. 2 ];
my %tail = (out => '', err => '');
$tail{handle} = IPC::Run::start [ $doorbell, '--dsn', $pooler->{dsn}, 'tail', 's', '--after', '0', '--count', '30' ], '<', \undef,
  '>', \$tail{out}, '2>', \$tail{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
for my $number (@numbers[ 3 .. 29 ])
{
	command($node->connstr('postgres'), 'append', 's', 'made', $number);
	$tail{handle}->pump_nb;
}
IPC::Run::finish $tail{handle};
is(join(' ', $tail{out} =~ /"seq":(\d+),/g), "@numbers", 'L8: a tail gets every event once, in order, by sweep');
is(join(' ', (command($pooler->{dsn}, 'replay', 's'))[1] =~ /"seq":(\d+),/g), "@numbers",
	'and replay reads them all');
$pooler->{handle}->kill_kill;

$pooler = pooler('session');
($status, $out, $err) = command($pooler->{dsn}, 'status');
is("$status $err", '0 ', 'status behind a session pooler is healthy');
like($out, qr/^channel +heard$/m, 'rings are heard there');
%tail = (out => '', err => '');
$tail{handle} = IPC::Run::start [ $doorbell, '--dsn', $pooler->{dsn}, 'tail', 's', '--after', '0', '--count', '60' ], '<', \undef,
  '>', \$tail{out}, '2>', \$tail{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
$tail{handle}->pump until $tail{out} =~ /"seq":30,/;
command($node->connstr('postgres'), 'append', 's', 'made', $_) foreach 31 .. 45;
$pooler->{handle}->kill_kill;
command($node->connstr('postgres'), 'append', 's', 'made', $_) foreach 46 .. 50;
$pooler = pooler('session', $pooler->{port});
command($node->connstr('postgres'), 'append', 's', 'made', $_) foreach 51 .. 60;
IPC::Run::finish $tail{handle};
is(join(' ', $tail{out} =~ /"seq":(\d+),/g), join(' ', 1 .. 60), 'C3: a tail gets every event once, in order, through the death of the pooler');
$pooler->{handle}->kill_kill;
$node->stop;
done_testing();
