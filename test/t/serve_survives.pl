# C3 from the outside: curl, directly and through nginx, gets each event once and in order, through kills of serve's listener,
# of serve, and of PostgreSQL. It comes back with its last id, as a browser does.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run ();
use Serve;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => "shared_preload_libraries = 'pg_doorbell'");
my $connstr = $node->connstr('postgres');
my $serve = serve($connstr);
my $nginx = nginx_in_front_of($serve->{port}, PostgreSQL::Test::Cluster::get_free_port());
my @readers = map { { name => $_->[0], port => $_->[1]{port}, id => '', got => [], out => '' } }
  ([ 'curl', $serve ], [ 'curl through nginx', $nginx ]);

# Takes what has come, and comes back where the connection has ended.
sub work
{
	for my $reader (@readers)
	{
		if ($reader->{handle} && $reader->{handle}->pumpable)
		{
			IPC::Run::pump_nb($reader->{handle});
		}
		else
		{
			IPC::Run::finish $reader->{handle} if $reader->{handle};
			$reader->{out} = ''; # what was cut off has no blank line, and is no event
			$reader->{handle} = IPC::Run::start [
				'curl', '-sN', '--max-time', $PostgreSQL::Test::Utils::timeout_default,
				($reader->{id} ne '' ? ('-H', "Last-Event-ID: $reader->{id}") : ()),
				"http://127.0.0.1:$reader->{port}/v1/streams/s?after=0" ],
			  '<', \undef, '>', \$reader->{out}, '2>', \my $err;
		}
		while ($reader->{out} =~ s/^(.*?)\n\n//s)
		{
			my $frame = $1;
			next unless $frame =~ /^data: (\d+)$/m;
			push @{ $reader->{got} }, $1;
			($reader->{id}) = $frame =~ /^id: (.*)$/m;
		}
	}
	select undef, undef, undef, 0.005;
}

my $appended = 0;
sub append_some
{
	my $from = $appended + 1;
	$appended += 20;
	until_true($node, "SELECT count(*) = 20 FROM (SELECT doorbell.append('s', 'made', to_jsonb(n)) FROM generate_series($from, $appended) n) a");
}

sub until_all
{
	my ($when) = @_;
	my $deadline = Serve::deadline();
	for my $reader (@readers)
	{
		while (@{ $reader->{got} } < $appended)
		{
			die "$reader->{name} $when: only @{ $reader->{got} }" if time > $deadline;
			work();
		}
		is("@{ $reader->{got} }", join(' ', 1 .. $appended), "$reader->{name} $when: each event once, in order");
	}
}

append_some();
until_all('at first');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
append_some();
until_all('after a kill of the listener');
stop_serve($serve, 'KILL');
append_some();
work();
$serve = serve($connstr, '--listen', "127.0.0.1:$serve->{port}");
append_some();
until_all('after a kill of serve');
$node->stop('immediate');
work();
$node->start;
append_some();
until_all('after a crash of PostgreSQL');
stop_serve($serve);
append_some();
$serve = serve($connstr, '--listen', "127.0.0.1:$serve->{port}");
until_all('after a restart of serve');

$_->{handle}->kill_kill foreach @readers;
stop_serve($_) foreach ($serve, $nginx);
$node->stop;
done_testing();
