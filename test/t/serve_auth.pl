# `doorbell serve` lets nobody follow what no token of its key allows.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Digest::SHA qw(hmac_sha256 hmac_sha512);
use Doorbell;
use IPC::Run qw(run);
use MIME::Base64 qw(encode_base64url decode_base64url);
use Serve;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
$node->safe_psql('postgres', q{SELECT doorbell.append(s, 'made', '1') FROM unnest(ARRAY['repo:foo', 'repo:bar', 'other']) s});
my $connstr = $node->connstr('postgres');
my $directory = PostgreSQL::Test::Utils::tempdir();

sub file
{
	my ($name, $text) = @_;
	PostgreSQL::Test::Utils::append_to_file("$directory/$name", $text);
	return "$directory/$name";
}

sub openssl
{
	my ($in, @arguments) = @_;
	my ($out, $err);
	run [ 'openssl', @arguments ], '<', \$in, '>', \$out, '2>', \$err or die "openssl @arguments: $err";
	return $out;
}

# What a request for the stream with that token is answered with.
sub status
{
	my ($serve, $token, $path) = @_;
	my $text = ask_head($serve, $path // '/v1/streams/repo:foo', "Authorization: Bearer $token");
	return $text =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none';
}

sub ask_head
{
	my ($serve, $path, @headers) = @_;
	return ask($serve, join '', map { "$_\r\n" } "HEAD $path HTTP/1.1", 'Host: x', @headers, '');
}

my $secret = 'a secret of more than thirty-two bytes';
my $all = '{"doorbell.subscribe":["*"]}';
my $serve = serve($connstr, '--jwt-key', file('secret', "$secret\n"), '--jwt-alg', 'HS256', '--verbose', '--cors', '*');

# Where tokens come from
my $answer = get($serve, '/v1/streams/repo:foo');
is($answer->{status}, 401, 'no token is 401');
like($answer->{head}, qr/^www-authenticate: Bearer\r$/m, 'which says what is needed');
like($answer->{body}, qr/^\{"error":".+"\}\n$/, 'with one line of JSON');
like($answer->{head}, qr/^access-control-allow-origin: \*\r$/m, 'that scripts of other origins may read');
my $token = token($secret, '{"doorbell.subscribe":["repo:*","other"]}');
for my $way ([ '', "Authorization: Bearer $token" ], [ '', "authorization: bearer  $token" ], [ "?token=$token" ],
	[ '', "Cookie: a=b; doorbell=$token; c=d" ], [ '', 'Authorization: Basic abcd', "Cookie: doorbell=$token" ])
{
	my ($query, @headers) = @$way;
	like(ask_head($serve, "/v1/streams/repo:foo$query", @headers), qr/^HTTP\/1\.1 200 /, 'a token may come as ' . substr("$query@headers", 0, 25));
}
is(get($serve, $_)->{status}, 200, "$_ needs no token") for '/', '/metrics';

# What they allow
is(status($serve, $token, $_), 200, "$_ is allowed")
  for '/v1/streams/other', '/v1/streams/repo:', '/v1/events?prefix=repo:', '/v1/events?prefix=repo:fo', '/v1/events?stream=other&stream=repo:bar';
is(status($serve, $token, $_), 403, "$_ is not")
  for '/v1/streams/others', '/v1/streams/repo', '/v1/events?prefix=other', '/v1/events?prefix=rep', '/v1/events', '/v1/events?stream=other&stream=x',
  '/v1/events?stream=other&prefix=';
is(status($serve, token($secret, $all), '/v1/events'), 200, 'a bare * allows all streams');
is(status($serve, token($secret, '{"doorbell":{"subscribe":["repo:foo"]}}')), 200, 'the claim may be nested');
is(status($serve, token($secret, $_)), 403, "$_ allows nothing")
  for '{}', '{"doorbell.subscribe":[]}', '{"doorbell.subscribe":[""]}', '{"doorbell.subscribe":[1,null,["*"]]}', '{"doorbell":"*"}';

# What is no token of ours
my $now = time;
my %refused = (
	'another secret' => token('b' x 40, $all),
	'an expired one' => token($secret, qq({"exp":@{[$now - 1]},"doorbell.subscribe":["*"]})),
	'one for later' => token($secret, qq({"nbf":@{[$now + 1000]},"doorbell.subscribe":["*"]})),
	'an exp that is no number' => token($secret, '{"exp":"9999999999","doorbell.subscribe":["*"]}'),
	'a claim that is no array' => token($secret, '{"doorbell.subscribe":"*"}'),
	'claims that are no object' => token($secret, '["*"]'),
	'claims that are no JSON' => token($secret, '{'),
	'alg none' => signed_token('none', $all, sub { '' }) . 'AA',
	'alg none without a signature' => signed_token('none', $all, sub { '' }),
	'HS512' => signed_token('HS512', $all, sub { hmac_sha512($_[0], $secret) }),
	'RS256 signed with the secret' => signed_token('RS256', $all, sub { hmac_sha256($_[0], $secret) }),
	'no signature' => token($secret, $all) =~ s/[^.]*$//r,
	'half a signature' => token($secret, $all) =~ s/.{20}$//r,
	'other claims under that signature' => join('.', (split /\./, $token)[0], encode_base64url($all), (split /\./, $token)[2]),
	'a compressed one' => signed_token('HS256', $all, sub { hmac_sha256($_[0], $secret) }, ',"zip":"DEF"'),
	'critical extensions' => signed_token('HS256', $all, sub { hmac_sha256($_[0], $secret) }, ',"crit":["x"]'),
	'four parts' => token($secret, $all) . '.x', 'two parts' => 'a.b', 'one part' => 'abc', 'dots' => '..', 'many dots' => '.' x 500,
	'JSON' => '{"payload":"e30","signature":"e30"}', 'deep JSON' => encode_base64url('[' x 5000) . '.e30.e30',
	'a header without alg' => encode_base64url('{}') . '.e30.e30', 'a strange alg' => encode_base64url('{"alg":{"a":1}}') . '.e30.e30',
	'no base64' => '%%%.e30.e30', 'one character' => 'e.e.e');
is(status($serve, $refused{$_}), 401, "$_ is refused") for sort keys %refused;
my $later = $now + 10_000;
is(status($serve, token($secret, qq({"exp":$later.5,"nbf":@{[$now - 10]},"doorbell.subscribe":["*"]}))), 200, 'exp and nbf may hold');
is(status($serve, token($secret, qq({"exp":1e300,"doorbell.subscribe":["*"]}))), 200, 'an exp may be far away');

# A running stream
my $short = token($secret, qq({"exp":@{[time + 2]},"doorbell.subscribe":["*"]}));
my $client = follow($serve, '/v1/streams/repo:foo?after=0', "Authorization: Bearer $short");
like(until_ends($client), qr/^data: 1\n\n/m, 'a stream ends when its token expires');
is(status($serve, $short), 401, 'and the token does not open another');
like(get($serve, '/metrics')->{body}, qr/^doorbell_expired_total 1$/m, 'which is counted');

is(stop_serve($serve), 0, 'it ends by SIGTERM with 0');
like($serve->{err}, qr{^doorbell: 200 HEAD /v1/streams/repo:foo$}m, '--verbose logs requests');
like($serve->{err}, qr{^doorbell: 401 GET /v1/streams/repo:foo$}m, 'with their status');
unlike($serve->{err}, qr/\Q$token\E|token=|\Q$secret\E|eyJ/, 'but never a token');

# The other algorithms
openssl('', qw(genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out), "$directory/rsa");
openssl('', qw(genpkey -algorithm ed25519 -out), "$directory/ed");
openssl('', qw(genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out), "$directory/ec");
openssl('', qw(genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out), "$directory/small");
openssl('', 'pkey', '-in', "$directory/$_", '-pubout', '-out', "$directory/$_.pub") for qw(rsa ed ec small);
my $by_rsa = sub { openssl($_[0], qw(dgst -sha256 -sign), "$directory/rsa") };
my $by_ed = sub { openssl('', qw(pkeyutl -sign -rawin -inkey), "$directory/ed", '-in', file('signed' . $now++, $_[0])) };

$serve = serve($connstr, '--jwt-key', "$directory/rsa.pub");
is(status($serve, signed_token('RS256', $all, $by_rsa)), 200, 'RS256 works by its public key');
my $public = PostgreSQL::Test::Utils::slurp_file("$directory/rsa.pub");
my %confused = (
	'HS256 with the public key as its secret' => token($public, $all),
	'alg none' => signed_token('none', $all, sub { '' }),
	'EdDSA' => signed_token('EdDSA', $all, $by_ed),
	'RS512 that is an RS256' => signed_token('RS512', $all, $by_rsa),
	'a key that the token brings along' => signed_token('RS256', $all, sub { 'x' x 256 }, ',"jwk":{"kty":"oct","k":"AAAA"},"x5c":["AAAA"]'),
	'a key that the token points to' => signed_token('RS256', $all, sub { 'x' x 256 }, qq(,"jku":"http://127.0.0.1:$serve->{port}/","x5u":"http://127.0.0.1:$serve->{port}/")),
	'RS256 for other claims' => signed_token('RS256', $all, sub { $by_rsa->('other') }));
is(status($serve, $confused{$_}), 401, "RS256: $_ is refused") for sort keys %confused;
stop_serve($serve);

{
	local $ENV{DOORBELL_JWT_KEY} = PostgreSQL::Test::Utils::slurp_file("$directory/ed.pub");
	$serve = serve($connstr);
}
is(status($serve, signed_token('EdDSA', $all, $by_ed)), 200, 'EdDSA works, and the key may be in the environment');
is(status($serve, signed_token('EdDSA', $all, sub { 'x' x 64 })), 401, 'EdDSA: a wrong signature is refused');
is(status($serve, signed_token('RS256', $all, $by_rsa)), 401, 'EdDSA: so is RS256');
is(status($serve, token($ENV{DOORBELL_JWT_KEY} // $public, $all)), 401, 'EdDSA: and HS256');
stop_serve($serve);

# Keys and addresses that are refused
my %wrong = (
	'an RSA key for HS256' => [ '--jwt-key', "$directory/rsa.pub", '--jwt-alg', 'HS256' ],
	'an RSA key for EdDSA' => [ '--jwt-key', "$directory/rsa.pub", '--jwt-alg', 'EdDSA' ],
	'a secret that is not said to be one' => [ '--jwt-key', "$directory/secret" ],
	'a secret for RS256' => [ '--jwt-key', "$directory/secret", '--jwt-alg', 'RS256' ],
	'a short secret' => [ '--jwt-key', file('short', 'short'), '--jwt-alg', 'HS256' ],
	'a private key' => [ '--jwt-key', "$directory/rsa" ],
	'a short RSA key' => [ '--jwt-key', "$directory/small.pub" ],
	'a key of another kind' => [ '--jwt-key', "$directory/ec.pub" ],
	'a key that is not there' => [ '--jwt-key', "$directory/nothing" ],
	'an algorithm without a key' => [ '--jwt-alg', 'HS256' ],
	'an open address without a key' => [ '--listen', '0.0.0.0:0' ],
	'an open IPv6 address without a key' => [ '--listen', '[::]:0' ],
	'an address that is none' => [ '--listen', '127.0.0.1' ],
	'a port that is none' => [ '--listen', '127.0.0.1:http!' ]);
for my $case (sort keys %wrong)
{
	my ($out, $err);
	run [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $connstr, 'serve', @{ $wrong{$case} } ], '<', \undef, '>', \$out, '2>', \$err,
	  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	is($? >> 8, 1, "$case is refused");
	like($err, qr/^doorbell: .*\n$/, 'in one line');
}
$node->stop;
done_testing();
