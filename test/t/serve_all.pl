# C3 for all streams: who is cut off anywhere, while writers commit in another order than they append and roll back, comes
# back with its last id as a browser does, and gets each event once, whole streams in order.
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

srand 4711;
my $node = new_node('main', conf => "shared_preload_libraries = 'pg_doorbell'");
my $connstr = $node->connstr('postgres');
my $serve = serve($connstr, '--buffer', 16384);

# Each makes transactions, of one to three appends to few streams, that stay open for a while, until it is told to end.
$node->safe_psql('postgres', 'CREATE TABLE told_to_end ()');
my $writer = <<'SQL';
DO $$
BEGIN
    WHILE NOT EXISTS (SELECT FROM told_to_end) LOOP
        FOR n IN 0..(random() * 2)::int LOOP
            PERFORM doorbell.append(CASE WHEN random() < .3 THEN 'a:' ELSE 'b:' END || (random() * 3)::int, 'made',
                to_jsonb(repeat('x', (random() * 500)::int)));
            PERFORM pg_sleep(random() * .005);
        END LOOP;
        IF random() < .5 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$
SQL
my @writers = map { IPC::Run::start [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connstr, '-c', $writer ] } 1 .. 4;

# The last two follow less than everything.
my @readers = map { { path => $_, id => '', got => [], visits => 0 } }
  ('/v1/events?after=0') x 3, '/v1/events?prefix=a%3A&after=0', '/v1/events?prefix=a%3A1&prefix=b%3A&stream=a%3A2&after=0';

# What came whole.
sub take
{
	my ($reader) = @_;
	my $client = $reader->{client};
	my ($head, $body) = $client->{text} =~ /\A(.*?\r\n\r\n)(.*)\z/s or return;
	die $head unless $head =~ m{^HTTP/1\.1 200 };
	my ($whole, $rest) = $body =~ /\A(.*\n\n)?(.*)\z/s;
	for my $frame (frames({ text => $head . ($whole // '') }))
	{
		die "a control frame: $frame->{data}" if ($frame->{event} // '') =~ /^doorbell:(?!shutdown)/;
		next unless $frame->{data} =~ /^\{"stream":"([^"]+)","seq":(\d+),/;
		push @{ $reader->{got} }, "$1:$2";
		$reader->{id} = $frame->{id};
	}
	$client->{text} = $head . $rest;
}

sub visit
{
	my ($reader) = @_;
	$reader->{visits}++;
	$reader->{client} = eval { follow($serve, $reader->{path}, $reader->{id} eq '' ? () : "Last-Event-ID: $reader->{id}") };
}

# Reads a little from each; now and then one is cut off, wherever it is.
sub work
{
	for my $reader (@readers)
	{
		visit($reader) unless $reader->{client};
		my $client = $reader->{client} or next;
		$client->{socket}->blocking(0);
		my $got = sysread $client->{socket}, $client->{text}, 1 + int rand 6000, length $client->{text};
		take($reader);
		delete $reader->{client} if (defined $got && $got == 0) || rand() < .02;
	}
	select undef, undef, undef, 0.002;
}

my $deadline = Serve::deadline();
my $rounds = 0;
while (grep { $_->pumpable } @writers)
{
	die 'the writers do not end' if time > $deadline;
	$_->pumpable && IPC::Run::pump_nb($_) foreach @writers;
	work();
	$node->safe_psql('postgres', 'INSERT INTO told_to_end DEFAULT VALUES') if ++$rounds == 1500;
	if ($rounds % 400 == 0)
	{
		stop_serve($serve, $rounds % 800 == 0 ? 'TERM' : 'KILL');
		$serve = serve($connstr, '--buffer', 16384, '--listen', "127.0.0.1:$serve->{port}");
	}
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'doorbell%'})
	  if $rounds % 300 == 0;
}
ok(IPC::Run::finish($_), 'a writer has written all') foreach @writers;

# What is not in both lists just as often.
sub difference
{
	my ($got, $expected) = @_;
	my %balance;
	$balance{$_}++ foreach @$got;
	$balance{$_}-- foreach @$expected;
	return join ' ', map { "$_ ($balance{$_})" } sort grep { $balance{$_} } keys %balance;
}

for my $reader (@readers)
{
	my $which = $reader->{path} =~ /stream=/ ? "stream ~ '^(a:1|b:)' OR stream = 'a:2'" : $reader->{path} =~ /prefix=/ ? "stream ~ '^a:'" : 'true';
	my @events = split /\n/, $node->safe_psql('postgres', "SELECT stream || ':' || seq FROM doorbell.event WHERE $which");
	$deadline = Serve::deadline();
	while (@{ $reader->{got} } < @events)
	{
		die "$reader->{path}: only " . @{ $reader->{got} } . ' of ' . @events if time > $deadline;
		work();
	}
	is(difference($reader->{got}, \@events), '', "$reader->{path}: each event once");
	cmp_ok($reader->{visits}, '>', 10, 'over many visits');
	my (%last, $disorder);
	/^(.*):(\d+)$/ and ($disorder ||= ($last{$1} // 0) >= $2, $last{$1} = $2) foreach @{ $reader->{got} };
	ok(!$disorder, 'each stream in order');
}

stop_serve($serve);
$node->stop;
done_testing();
