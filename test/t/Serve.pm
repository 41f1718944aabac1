# What the tests of `doorbell serve` share: a running one, requests as bytes, streams as text, tokens.
package Serve;

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use Exporter 'import';
use IO::Select;
use IO::Socket::INET;
use IPC::Run ();
use MIME::Base64 qw(encode_base64url);
use PostgreSQL::Test::Utils;
use Time::HiRes ();

our @EXPORT = qw(serve stop_serve nginx_in_front_of says ask get follow until_gets until_ends frames token signed_token);

my @started; # a script that dies leaves none behind
END
{
	local $?;
	$_->{handle}->kill_kill foreach grep { $_->{handle}->pumpable } @started;
}

sub deadline { return Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default }

# An option and its value, unless the options have it.
sub unless_given
{
	my ($default, @options) = @_;
	return (grep { $_ eq $default->[0] } @options) ? () : @$default;
}

# Starts it on a port of its own choice; {port} is that. Takes as many clients as every limit of open files allows.
sub serve
{
	my ($connstr, @options) = @_;
	my %running = (out => '', err => '');
	$running{handle} = IPC::Run::start [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $connstr, 'serve', (map { unless_given($_, @options) } [ '--listen', '127.0.0.1:0' ], [ '--max-connections', 1000 ]), @options ],
	  '<', \undef, '>', \$running{out}, '2>', \$running{err}, IPC::Run::timeout(4 * $PostgreSQL::Test::Utils::timeout_default);
	push @started, \%running;
	says(\%running, qr/^doorbell: listening on http:\/\/127\.0\.0\.1:(\d+)$/m) or die "it does not listen: $running{err}";
	($running{port}) = $running{err} =~ /:(\d+)$/m;
	return \%running;
}

# nginx with nothing set but the addresses; stop it as a serve.
sub nginx_in_front_of
{
	my ($server, $port) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	PostgreSQL::Test::Utils::append_to_file("$directory/nginx.conf", join '',
		"daemon off; pid $directory/pid; error_log $directory/error; events {} http { access_log off;",
		(map { "${_}_temp_path $directory/$_;" } qw(client_body proxy fastcgi uwsgi scgi)),
		"server { listen 127.0.0.1:$port; location / { proxy_pass http://127.0.0.1:$server; } } }");
	my ($program) = grep { -x } map { "$_/nginx" } split(/:/, $ENV{PATH}), '/usr/sbin';
	my %running = (port => $port, out => '');
	$running{handle} = IPC::Run::start [ $program, '-e', "$directory/error", '-c', "$directory/nginx.conf", '-p', $directory ],
	  '<', \undef, '&>', \$running{out};
	push @started, \%running;
	my $deadline = deadline();
	until (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port))
	{
		die "nginx does not listen: $running{out}" if Time::HiRes::time() > $deadline || !$running{handle}->pumpable;
		IPC::Run::pump_nb($running{handle});
	}
	return \%running;
}

# Waits until stderr says so; false when it ended without.
sub says
{
	my ($running, $pattern) = @_;
	my $deadline = deadline();
	until ($running->{err} =~ $pattern)
	{
		return 0 if !$running->{handle}->pumpable || Time::HiRes::time() > $deadline;
		IPC::Run::pump_nb($running->{handle});
		select undef, undef, undef, 0.005;
	}
	return 1;
}

# Sends the signal and returns the exit status, or the signal that it died of as a negative number.
sub stop_serve
{
	my ($running, $signal) = @_;
	$running->{handle}->signal($signal // 'TERM');
	IPC::Run::finish $running->{handle};
	return $? & 127 ? -($? & 127) : $? >> 8;
}

sub connection
{
	my ($running) = @_;
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $running->{port}, Proto => 'tcp')
	  // die "no connection: $@";
}

# Everything that comes until the server closes. A list of texts is sent as that many packets.
sub ask
{
	my ($running, @texts) = @_;
	my $socket = connection($running);
	$socket->setsockopt(Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1);
	syswrite $socket, $_ for @texts;
	my $client = { socket => $socket, text => '' };
	until_ends($client);
	return $client->{text};
}

# A GET, taken apart. (A proxy would keep the connection.)
sub get
{
	my ($running, $path, @headers) = @_;
	my $text = ask($running, join('', map { "$_\r\n" } "GET $path HTTP/1.1", 'Host: x', 'Connection: close', @headers, ''));
	my ($head, $body) = split /\r\n\r\n/, $text, 2;
	my ($status) = ($head // '') =~ m{^HTTP/1\.1 (\d+) };
	return { status => $status, head => "$head\r\n", body => $body };
}

# A stream: its socket, and what has come so far.
sub follow
{
	my ($running, $path, @headers) = @_;
	my $client = { socket => connection($running), text => '' };
	syswrite $client->{socket}, join('', map { "$_\r\n" } "GET $path HTTP/1.1", 'Host: x', 'Connection: close', @headers, '');
	return $client;
}

sub receive
{
	my ($client, $deadline) = @_;
	my $left = $deadline - Time::HiRes::time();
	die "in vain, but this came:\n$client->{text}" if $left <= 0;
	return 1 unless IO::Select->new($client->{socket})->can_read($left);
	return sysread $client->{socket}, $client->{text}, 65536, length $client->{text};
}

# Waits until the text so far matches; dies when it ends or the time is over before. Returns the text.
sub until_gets
{
	my ($client, $pattern) = @_;
	my $deadline = deadline();
	until ($client->{text} =~ $pattern)
	{
		receive($client, $deadline) or die "the stream ended without $pattern:\n$client->{text}";
	}
	return $client->{text};
}

sub until_ends
{
	my ($client) = @_;
	my $deadline = deadline();
	1 while receive($client, $deadline);
	return $client->{text};
}

# The frames of a stream, without comments and retry, each as a hash.
sub frames
{
	my ($client) = @_;
	my (undef, $body) = split /\r\n\r\n/, $client->{text}, 2;
	my @frames;
	for my $frame (split /\n\n/, $body // '')
	{
		my %fields = map { /^(id|event|data): ?(.*)/ ? ($1, $2) : () } split /\n/, $frame;
		push @frames, \%fields if exists $fields{data};
	}
	return @frames;
}

# A token with those claims (as JSON), signed by a subroutine.
sub signed_token
{
	my ($algorithm, $claims, $sign, $more) = @_;
	my $text = encode_base64url(qq({"alg":"$algorithm","typ":"JWT") . ($more // '') . '}') . '.' . encode_base64url($claims);
	return "$text." . encode_base64url($sign->($text));
}

sub token
{
	my ($secret, $claims) = @_;
	return signed_token('HS256', $claims, sub { hmac_sha256($_[0], $secret) });
}

1;
