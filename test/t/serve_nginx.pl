# nginx in front of `doorbell serve`, with nothing set but the address: each event arrives at once, and none is lost.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IO::Socket::INET;
use IPC::Run ();
use Serve;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
my $serve = serve($node->connstr('postgres'));
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $directory = PostgreSQL::Test::Utils::tempdir();
PostgreSQL::Test::Utils::append_to_file("$directory/nginx.conf", join '',
	"daemon off; pid $directory/pid; error_log $directory/error; events {} http { access_log off;",
	(map { "${_}_temp_path $directory/$_;" } qw(client_body proxy fastcgi uwsgi scgi)),
	"server { listen 127.0.0.1:$port; location / { proxy_pass http://127.0.0.1:$serve->{port}; } } }");
my $out = '';
my ($program) = grep { -x } map { "$_/nginx" } split(/:/, $ENV{PATH}), '/usr/sbin';
my $nginx = IPC::Run::start [ $program, '-e', "$directory/error", '-c', "$directory/nginx.conf", '-p', $directory ], '<', \undef, '&>', \$out;
my $front = { port => $port };
my $deadline = Serve::deadline();
until (my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port))
{
	die "nginx does not listen: $out" if time > $deadline || !$nginx->pumpable;
	$nginx->pump_nb;
}

sub append
{
	my ($payload) = @_;
	return $node->safe_psql('postgres', "SELECT doorbell.append('s/ü', 'made', '$payload')");
}

append(1);
my $client = follow($front, '/v1/streams/s%2F%C3%BC?after=0');
like(until_gets($client, qr/^data: 1\r?$/m), qr{^HTTP/1\.1 200 .*content-type: text/event-stream}si, 'S10: a stream begins through nginx');
for my $payload (2 .. 5)
{
	append($payload);
	like(until_gets($client, qr/^data: $payload\r?$/m), qr/^id: $payload-/m, "S10: event $payload arrives before the next one is appended");
}
my ($cursor) = (frames($client))[-1]{id};
is(get($front, '/healthz')->{status}, 200, 'short answers come through, too');
is(get($front, '/v1/streams/s?after=x')->{status}, 400, 'and errors');

is(stop_serve($serve), 0, 'serve ends while nginx has clients');
like(until_ends($client), qr/event: doorbell:shutdown/, 'they hear of it, and their connection ends');
my $again = IPC::Run::start [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $node->connstr('postgres'), 'serve', '--listen', "127.0.0.1:$serve->{port}" ],
  '<', \undef, '2>', \$out;
append(6);
$deadline = Serve::deadline();
until (get($front, '/healthz')->{status} == 200) { die 'it does not come back' if time > $deadline }
$client = follow($front, '/v1/streams/s%2F%C3%BC?after=0', "Last-Event-ID: $cursor");
until_gets($client, qr/^data: 6\r?$/m);
is(join(' ', map { $_->{data} } frames($client)), '6', 'a reconnect after its restart misses nothing and repeats nothing');
$again->signal('TERM');
IPC::Run::finish $again;
$nginx->signal('TERM');
IPC::Run::finish $nginx;
$node->stop;
done_testing();
