# `doorbell serve` answers every request correctly, and hostile ones without harm.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Serve;
use Socket qw(SOL_SOCKET SO_LINGER);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
$node->safe_psql('postgres', q{SELECT doorbell.append('a/b ü:', 'made', '1'), doorbell.append('s', 'made', '2')});
my $serve = serve($node->connstr('postgres'), '--cors', 'https://app.example', '--max-streams', 3);

sub status { return $_[0] =~ m{^HTTP/1\.1 (\d+) } ? $1 : 'none' }

# Paths and methods
my $answer = get($serve, '/nothing');
is($answer->{status}, 404, 'an unknown path is 404');
is($answer->{body}, qq({"error":"there is nothing at this path"}\n), 'with one line of JSON');
like($answer->{head}, qr{^content-type: application/json\r$}m, 'which says so');
is(get($serve, $_)->{status}, 404, "so is $_") for '/v1', '/v1/streams', '/v1/event', '/healthz/', '//';
for my $method (qw(POST PUT DELETE PATCH TRACE BREW))
{
	my $text = ask($serve, "$method /v1/streams/s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
	is(status($text), 405, "$method is 405");
	like($text, qr/\r\nallow: GET, HEAD, OPTIONS\r\n/, 'and says what is allowed');
}
my $text = ask($serve, "OPTIONS /v1/events HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example\r\n\r\n");
is(status($text), 204, 'OPTIONS is 204');
like($text, qr/^$_\r$/m, "with $_")
  for 'access-control-allow-origin: https://app\.example', 'access-control-allow-credentials: true', 'vary: origin',
  'access-control-allow-headers: authorization, cache-control, last-event-id';
is(status(ask($serve, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")), 204, 'OPTIONS * is, too');
unlike(get($serve, '/', 'Origin: https://other.example')->{head}, qr/access-control-allow-origin/, 'another origin is not allowed');
$text = ask($serve, "HEAD /v1/streams/s HTTP/1.1\r\nHost: x\r\n\r\n");
like($text, qr{^HTTP/1\.1 200 .*content-type: text/event-stream\r\n.*\r\n\r\n$}s, 'HEAD of a stream is the head of its answer alone');
$text = ask($serve, "HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
like($text, qr{^HTTP/1\.1 404 .*\r\ncontent-length: [1-9]\d*\r\n\r\n$}s, 'HEAD of an error has its length, but no body');

# Forms of the same request
for my $request (
	"GET /v1/streams/a%2Fb%20%c3%BC:?after=0 HTTP/1.0\r\n\r\n",
	"GET /v1/streams/a/b%20%C3%BC%3A?after=0 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET http://x/v1/streams/a%2Fb%20%C3%BC:?after=0 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/events?stream=a%2Fb+%C3%BC:&after=0 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/events?prefix=a%2F&after=0 HTTP/1.1\r\nhOST: x\r\n\r\n",
	"\r\nGET /v1/streams/a%2Fb%20%C3%BC:?after=0 HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
{
	my $client = { socket => Serve::connection($serve), text => '' };
	syswrite $client->{socket}, $request;
	$text = until_gets($client, qr/^data: .*\n\n/m);
	(my $line = $request) =~ s/\r\n.*//s;
	like($text, qr{^HTTP/1\.1 200 OK\r\n.*\r\n\r\nretry: \d+\n\n: .*^event: made\n}sm, "\"$line\" becomes a stream");
	unlike($text, qr/404/, 'and what was sent after it is ignored') if $request =~ /nothing/;
}
my $client = { socket => Serve::connection($serve), text => '' };
syswrite $client->{socket}, $_ for split //, "GET /v1/streams/s?after=0 HTTP/1.1\r\nHost: x\r\n\r\n";
like(until_gets($client, qr/^data: 2$/m), qr/200/, 'a request may come byte by byte');
for my $header ('cache-control: no-cache, no-transform', 'x-accel-buffering: no', 'content-type: text/event-stream', 'connection: close')
{
	like($client->{text}, qr/^\Q$header\E\r$/m, "the stream's head says $header");
}
unlike($client->{text}, qr/content-length|transfer-encoding/i, 'and no length');

# Malformed
for my $malformed ("\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nHost x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
{
	(my $shown = $malformed) =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
	is(status(ask($serve, $malformed)), 400, "\"$shown\" is 400");
}
is(status(ask($serve, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), 505, 'HTTP/2 is 505');
is(status(ask($serve, 'GET /' . 'x' x 8200 . " HTTP/1.1\r\nHost: x\r\n\r\n")), 414, 'a long request line is 414');
is(status(ask($serve, 'GET /' . 'x' x 20_000)), 414, 'also when it does not end');
is(status(ask($serve, "GET / HTTP/1.1\r\nHost: x\r\n" . "A: b\r\n" x 5000 . "\r\n")), 431, 'a long head is 431');
is(status(ask($serve, "GET / HTTP/1.1\r\nHost: x\r\nA: " . 'b' x 200_000)), 431, 'also when it does not end, and goes on for long');
for my $bad ('/v1/streams/', '/v1/streams/%zz', '/v1/streams/a%2', '/v1/streams/a%00b', '/v1/streams/a%0Ab', '/v1/streams/%FF',
	'/v1/streams/%ED%A0%80', '/v1/streams/' . 'k' x 513, '/v1/events?stream=', '/v1/events?stream=a&stream=a', '/v1/events?prefix=%FF',
	'/v1/events?stream=a&stream=b&stream=c&stream=d', '/v1/streams/s?after=-1', '/v1/streams/s?after=x', '/v1/streams/s?after=01',
	'/v1/streams/s?after=9223372036854775808', '/v1/streams/s?after=1,2', '/v1/streams/s?after=1-xyz', '/v1/events?stream=a&stream=b&after=1,2,3',
	'/v1/events?after=7', '/v1/events?after=all1', '/v1/events?after=all1.1.1....', '/v1/streams/s?after=all1.1.1...', '/v1/events?prefix=a&after=1-00000001', '/v1/streams/s?raw=maybe', '/v1/streams/s?named=%FF')
{
	$answer = get($serve, $bad);
	is($answer->{status}, 400, substr($bad, 0, 60) . ' is 400');
	like($answer->{body}, qr/^\{"error":".+"\}\n$/, 'and says why in one line');
}
is(get($serve, '/v1/streams/s?after=0', 'Last-Event-ID: nonsense')->{status}, 400, 'a malformed Last-Event-ID is 400');

# Short answers
$answer = get($serve, '/');
is($answer->{status}, 200, 'the page is there');
my ($nonce) = $answer->{head} =~ /script-src 'nonce-([0-9a-f]{32})'/;
like($answer->{head}, qr/^content-security-policy: default-src 'none';/m, 'with a policy that allows nothing else');
like($answer->{body}, qr/<script nonce="$nonce">/, 'and the nonce of that policy');
isnt((get($serve, '/')->{head} =~ /nonce-([0-9a-f]{32})/)[0], $nonce, 'which is another one each time');
unlike($answer->{body}, qr/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|src=|https?:/, 'the page makes no HTML of data, and loads nothing');

# Many at once
my @idle = map { Serve::connection($serve) } 1 .. 900;
is(get($serve, '/healthz')->{status}, 200, 'connections that say nothing hold up nobody');
close $_ for @idle;
for (1 .. 300)
{
	my $socket = Serve::connection($serve);
	syswrite $socket, ("GET /v1/streams/s?after=0 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /", "\xff" x 100, '')[ $_ % 4 ];
	$socket->setsockopt(SOL_SOCKET, SO_LINGER, pack('ii', 1, 0)) if $_ % 3 == 0; # a reset
	close $socket;
}
is(get($serve, '/healthz')->{status}, 200, 'nor do those that vanish at any moment');
$node->safe_psql('postgres', q{SELECT doorbell.append('s', 'made', '"later"')});
like(until_gets($client, qr/later/), qr/^data: "later"$/m, 'and streams go on');

is(stop_serve($serve), 0, 'it ends by SIGTERM with 0');
is($serve->{err}, "doorbell: listening on http://127.0.0.1:$serve->{port}\n", 'and has said no more than where it listened');
$node->stop;
done_testing();
