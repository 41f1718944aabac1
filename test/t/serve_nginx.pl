# nginx in front of `doorbell serve`, with nothing set but the address: each event arrives at once, and none is lost.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Serve;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
my $serve = serve($node->connstr('postgres'));
my $front = nginx_in_front_of($serve->{port}, PostgreSQL::Test::Cluster::get_free_port());

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
$serve = serve($node->connstr('postgres'), '--listen', "127.0.0.1:$serve->{port}");
append(6);
my $deadline = Serve::deadline();
until (get($front, '/healthz')->{status} == 200) { die 'it does not come back' if time > $deadline }
$client = follow($front, '/v1/streams/s%2F%C3%BC?after=0', "Last-Event-ID: $cursor");
until_gets($client, qr/^data: 6\r?$/m);
is(join(' ', map { $_->{data} } frames($client)), '6', 'a reconnect after its restart misses nothing and repeats nothing');
stop_serve($serve);
stop_serve($front);
$node->stop;
done_testing();
