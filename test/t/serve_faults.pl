# `doorbell serve` keeps its clients through whatever happens to the database, says how it is, and ends in order.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run qw(run);
use Serve;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
my $connstr = $node->connstr('postgres');

sub append
{
	my ($stream, $payload) = @_;
	return $node->safe_psql('postgres', "SELECT doorbell.append('$stream', 'made', '$payload')");
}

sub until_healthy
{
	my ($serve, $status) = @_;
	my $deadline = Serve::deadline();
	my $health;
	do
	{
		die "still $health->{status}: $health->{body}" if $health && time > $deadline;
		$health = get($serve, '/healthz');
	} until $health->{status} == $status;
	return $health;
}

my $serve = serve($connstr);
append('s', 1);
my $client = follow($serve, '/v1/streams/s?after=0');
until_gets($client, qr/^data: 1$/m);
my $health = until_healthy($serve, 200);
is($health->{body}, qq({"listener":"live","last_error":null,"connections":1}\n), '/healthz says that the listener is live');
like($health->{head}, qr{^content-type: application/json\r$}m, 'in JSON');

# Slow senders
my $strict = serve($connstr, '--header-deadline', '0.3');
like(ask($strict, "GET /healthz HTTP/1.1\r\nHost:"), qr{^HTTP/1\.1 408 }, 'half a request is 408 at the header deadline');
like(ask($strict, ''), qr{^HTTP/1\.1 408 }, 'so is none');
like(get($strict, '/metrics')->{body}, qr/^doorbell_http_answers_total\{code="408"\} 2$/m, 'both are counted');
stop_serve($strict);

# L1
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
append('s', 2);
like(until_gets($client, qr/^data: 2$/m), qr/200/, 'an event arrives after every connection to the database was killed');

# The server is lost
my $said = length $serve->{err};
$node->stop('immediate');
$health = until_healthy($serve, 503);
like($health->{body}, qr/^\{"listener":"down","last_error":"[^"]+/, 'without a database /healthz is 503 and says why');
ok(says($serve, qr/^doorbell: not connected, trying again: ./m), 'a state that lasts is said once');
my $second = follow($serve, '/v1/streams/s?after=1');
like(until_gets($second, qr/^: pg_doorbell$/m), qr{^HTTP/1\.1 200 }, 'new clients are taken all the same');
$node->start;
append('s', 3);
like(until_gets($client, qr/^data: 3$/m), qr/^data: 1\n.*^data: 2\n.*^data: 3\n/ms, 'clients keep their connection and get what comes after');
until_gets($second, qr/^data: 3$/m);
is(join(' ', map { $_->{data} } frames($second)), '2 3', 'each event once');
ok(says($serve, qr/^doorbell: live$/m), 'that it is live again is said, too');
until_healthy($serve, 200);
like(substr($serve->{err}, $said), qr/\A[^\n]*not connected[^\n]*\ndoorbell: live\n\z/, 'and nothing else is');

# Metrics
append('s', 4);
until_gets($_, qr/^data: 4$/m) for $client, $second;
my $metrics = get($serve, '/metrics');
like($metrics->{head}, qr{^content-type: text/plain; version=0\.0\.4; charset=utf-8\r$}m, '/metrics is Prometheus text');
my @strange = grep { !/^(# (HELP|TYPE) doorbell_\w+ .+|doorbell_\w+(\{\w+="[^"]*"\})? [0-9.e+-]+)$/ } split /\n/, $metrics->{body};
is("@strange", '', 'to the last line');
like($metrics->{body}, qr/^$_$/m, "with $_")
  for 'doorbell_connections 2', 'doorbell_connections_opened_total 2', 'doorbell_events_sent_total 7', 'doorbell_state\{state="live"\} 1',
  'doorbell_state\{state="down"\} 0', 'doorbell_event_age_seconds_bucket\{le="\+Inf"\} [1-9]\d*', 'doorbell_bytes_sent_total [1-9]\d*',
  'doorbell_listener_connects_total [3-9]';
is(stop_serve($serve, 'INT'), 0, 'Ctrl-C ends it with 0');

# Readers that do not read
# One event is more than the kernel keeps for a connection, so they are stuck in the middle of it.
$node->safe_psql('postgres', q{SELECT doorbell.append('big', 'made', to_jsonb(repeat('x', 30000000)))});
$serve = serve($connstr, '--write-deadline', '0.5');
my $stuck = follow($serve, '/v1/streams/big?after=0');
until_gets($stuck, qr/^data: "x/m);
append('s', 5);
like(until_gets(follow($serve, '/v1/streams/s?after=4'), qr/^data: 5$/m), qr/200/, 'who does not read delays nobody');
my $deadline = Serve::deadline();
until (get($serve, '/metrics')->{body} =~ /^doorbell_cuts_total 1$/m) { die 'never cut' if time > $deadline }
pass('and is cut at the write deadline');
my $other = follow($serve, '/v1/streams/big?after=0');
until_gets($other, qr/^data: "x/m);
is(stop_serve($serve), 0, 'SIGTERM does not wait longer for such a one');

$serve = serve($connstr, '--write-deadline', '1000');
$stuck = follow($serve, '/v1/streams/big?after=0');
until_gets($stuck, qr/^data: "x/m);
$serve->{handle}->signal('TERM');
$deadline = Serve::deadline();
while (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $serve->{port})) { die 'still listening' if time > $deadline }
pass('after SIGTERM nothing is accepted');
is(stop_serve($serve), 1, 'a second signal ends it at once, with 1');

# What waiting does not cure
$node->safe_psql('postgres', 'CREATE ROLE nobody_in_particular LOGIN');
my ($out, $err) = ('', '');
my $refused = serve("$connstr user=nobody_in_particular");
my $vain = follow($refused, '/v1/streams/s?after=0');
until_ends($vain);
IPC::Run::finish $refused->{handle};
is($? >> 8, 1, 'a missing privilege ends it with 1');
like($refused->{err}, qr/^doorbell: .*permission denied/m, 'and says so');
my $taken = serve($connstr);
run [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $connstr, 'serve', '--listen', "127.0.0.1:$taken->{port}" ], '<', \undef, '>', \$out, '2>', \$err;
is($? >> 8, 1, 'so does an address that is taken');
like($err, qr/^doorbell: could not listen on 127\.0\.0\.1:$taken->{port}: /m, 'and says so');
stop_serve($taken);
$node->stop;
done_testing();
