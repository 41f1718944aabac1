# `doorbell serve` gives every event once, in order, and cursors survive whatever comes between.
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
my $serve = serve($node->connstr('postgres'), '--heartbeat', '0.2', '--max-connections', 12, '--retry', 1);

sub append
{
	my ($stream, @payloads) = @_;
	$node->safe_psql('postgres', join ';', map { "SELECT doorbell.append('$stream', 'made', '$_')" } @payloads);
}

sub field
{
	my ($name, @frames) = @_;
	return join ' ', map { $_->{$name} // '-' } @frames;
}

# A stream from there to its nth event.
sub frames_of
{
	my ($path, $count, @headers) = @_;
	my $client = follow($serve, $path, @headers);
	until_gets($client, qr/(?:^id: .*\n(?:event: .*\n)?data: .*\n\n[^\0]*?){$count}/m);
	close $client->{socket};
	return frames($client);
}

# Forms
append('s', 1 .. 3);
is(field('data', frames_of('/v1/streams/s?after=0', 3)), '1 2 3', 'after=0 begins at the beginning');
my @frames = frames_of('/v1/streams/s?after=1', 2);
is(field('data', @frames), '2 3', 'after=N begins behind N');
like(field('id', @frames), qr/^2-[0-9a-f]{8} 3-[0-9a-f]{8}$/, 'ids are cursors');
is(field('event', @frames), 'made made', 'types are events');
is(field('data', frames_of("/v1/streams/s?after=$frames[0]{id}", 1)), '3', 'after=CURSOR begins behind it');
is(field('data', frames_of('/v1/streams/s?after=0', 1, "Last-Event-ID: $frames[0]{id}")), '3', 'Last-Event-ID wins');
is(field('event', frames_of('/v1/streams/s?after=2&named=0', 1)), '-', 'named=0 leaves the type out');
like(field('data', frames_of('/v1/streams/s?after=2&envelope', 1)),
	qr/^\{"stream":"s","seq":3,"type":"made","appended_at":"[^"]+","payload":3\}$/, 'envelope gives the envelope');
append('html', '"<p>a\n</p>\u00e9"');
my $raw = follow($serve, '/v1/streams/html?after=0&raw=1');
like(until_gets($raw, qr/data: <\/p>.*\n\n/), qr/^data: <p>a\ndata: <\/p>é\n\n/m, 'raw=1 gives a string as its text');
close $raw->{socket};

my $now = follow($serve, '/v1/streams/s');
until_gets($now, qr/^:\n\n/m);
append('s', 4);
until_gets($now, qr/^data: 4\n\n/m);
is(field('data', frames($now)), '4', 'without after it begins now');
close $now->{socket};

# Many streams
append('t', 20);
my $prefix = follow($serve, '/v1/events?prefix=live:');
my $all = follow($serve, '/v1/events?after=0');
until_gets($prefix, qr/^:\n\n/m);
until_gets($all, qr/"stream":"t"/);
append('live:1', 10);
append('dead:1', 11);
append('live:2', 12);
like(field('data', (until_gets($prefix, qr/"payload":12/), frames($prefix))[1, 2]), qr/"payload":10.*"payload":12/s,
	'a prefix gives the streams that begin so, new ones too');
unlike($prefix->{text}, qr/dead/, 'and no others');
until_gets($all, qr/"payload":12/);
like($all->{text}, qr/"stream":"$_"/, "all streams include $_") for qw(s t html dead:1 live:1 live:2);
close $_->{socket} for $prefix, $all;

# S5, of prefixes and all streams
@frames = frames($all);
is(scalar(grep { $_->{id} !~ /^all1\.[\w.~!:-]+$/ } @frames), 0, 'S5: all streams together have a cursor');
is(field('data', frames_of('/v1/events', 2, "Last-Event-ID: $frames[-3]{id}")), "$frames[-2]{data} $frames[-1]{data}",
	'S5: which goes on behind each event');
is(field('data', frames_of("/v1/events?after=$frames[-2]{id}", 1)), $frames[-1]{data}, 'S5: also as after=');
@frames = frames($prefix);
is(field('data', frames_of('/v1/events?prefix=live:&named=0', 1, "Last-Event-ID: $frames[0]{id}")), $frames[1]{data}, 'S5: so has a prefix');
is(field('data', frames_of('/v1/events?prefix=live:&stream=t&after=0', 3)) =~ s/"appended_at":"[^"]+",//gr,
	'{"stream":"live:1","seq":1,"type":"made","payload":10} {"stream":"live:2","seq":1,"type":"made","payload":12} {"stream":"t","seq":1,"type":"made","payload":20}',
	'S5: and a prefix together with names');
my $past = (frames($all))[0]{id};

# S2
my $client = follow($serve, '/v1/streams/s?after=3');
until_gets($client, qr/^data: 4\n\n.*^:\n\n/ms);
my ($last) = (frames($client))[-1]{id};
append('s', 5);
append('other', 1);
until_gets($client, qr/^data: 5\n\n.*^:\n\n/ms);
my %ids = map { $_->{id} => 1 } grep { $_->{id} } frames($client);
is(scalar(keys %ids), 2, 'S2: heartbeats carry no id');
close $client->{socket};
is(field('data', frames_of('/v1/streams/s', 1, "Last-Event-ID: $last")), '5', 'S2: so a reconnect goes on behind the last event');

# S3
$node->safe_psql('postgres', q{SELECT doorbell.trim('s', 3)});
@frames = (frames_of('/v1/streams/s', 2, 'Last-Event-ID: 1'));
is(field('event', @frames), 'doorbell:gap made made', 'S3: a cursor older than low water gets a gap, and then the rest');
is($frames[0]{data}, '{"stream":"s","asked":1,"low_water":3}', 'S3: which says what was asked and what is left');
is($frames[0]{id}, undef, 'S3: and is no cursor');
is(field('data', @frames[1, 2]), '4 5', 'S3: nothing else is missing');

@frames = frames_of('/v1/events?prefix=s', 2, "Last-Event-ID: $past");
is($frames[0]{event}, 'doorbell:gap', 'S3: so does a cursor of all streams');
is($frames[0]{data}, '{"stream":"s","low_water":3}', 'S3: with the stream and what is left');
is($frames[0]{id}, undef, 'S3: and without an id');

# S4
@frames = frames_of('/v1/streams/s', 2, 'Last-Event-ID: 77');
is(field('event', @frames), 'doorbell:reset made made', 'S4: a cursor beyond high water gets a reset, and then everything');
is($frames[0]{data}, '{"stream":"s","asked":77,"low_water":3}', 'S4: from low water');
(my $foreign = $last) =~ s/-.*/-0badcafe/;
@frames = frames_of('/v1/streams/s', 2, "Last-Event-ID: $foreign");
is(field('event', @frames), 'doorbell:reset made made', 'S4: so does a cursor whose event is another one here');
is($frames[0]{id}, undef, 'S4: a reset is no cursor');
(my $elsewhere = $past) =~ s/^(all1\.)(.)/$1 . ($2 eq '1' ? 2 : 1)/e;
for my $refused ($elsewhere, 'all1.0.0...')
{
	@frames = frames_of('/v1/events?prefix=live:', 2, "Last-Event-ID: $refused");
	is(field('event', @frames), 'doorbell:reset made made', 'S4: a cursor of all streams from elsewhere gets a reset, and then everything');
	is($frames[0]{data}, qq({"asked":"$refused"}), 'S4: which says what was asked');
	is($frames[0]{id}, undef, 'S4: and is no cursor');
}

# S5
append('one', 1);
append('hundred', 1 .. 100);
@frames = frames_of('/v1/events?stream=one&stream=hundred&after=0', 101);
like($frames[-1]{id}, qr/^1-[0-9a-f]{8},100-[0-9a-f]{8}$/, 'S5: the cursor of two streams has the mark of each');
append('hundred', 101);
append('one', 2);
@frames = sort { $a->{data} cmp $b->{data} } frames_of('/v1/events?stream=one&stream=hundred', 2, "Last-Event-ID: $frames[-1]{id}");
like(field('data', @frames), qr/"hundred","seq":101.*"one","seq":2/, 'S5: and each goes on at its own');

# S9
my $readers = sub { get($serve, '/healthz')->{body} =~ /"connections":(\d+)/ ? $1 : 'none' };
my $deadline = Serve::deadline();
until ($readers->() eq '0') { die 'somebody does not leave' if time > $deadline }
my @house = map { follow($serve, '/v1/streams/s') } 1 .. 12;
until_gets($_, qr/^: pg_doorbell$/m) for @house;
my $refused = follow($serve, '/v1/streams/s');
my $text = until_ends($refused);
like($text, qr{^HTTP/1\.1 200 .*^content-type: text/event-stream\r\n.*^retry: (\d+)$}sm, 'S9: a full house answers 200 with retry, and closes');
my %delays = map { until_ends(follow($serve, '/v1/streams/s')) =~ /^retry: (\d+)$/m; $1 => 1 } 1 .. 10;
cmp_ok(scalar(keys %delays), '>', 1, 'S9: not everybody with the same delay');
append('s', '"still here"');
like(until_gets($_, qr/still here/), qr/still here/, 'S9: nobody else is evicted') for $house[0], $house[11];
is(ask($serve, "HEAD /v1/streams/s HTTP/1.1\r\nHost: x\r\n\r\n") =~ /^HTTP\/1.1 200/, 1, 'S9: nor are short answers refused');
close $house[0]{socket};
$deadline = Serve::deadline();
until ($readers->() < 12) { die 'the seat stays taken' if time > $deadline }
like(until_gets(follow($serve, '/v1/streams/s?after=0'), qr/still here/), qr/still here/, 'S9: who leaves makes room');

# The end
append('s', '"last"');
until_gets($house[1], qr/"last"/);
is(stop_serve($serve), 0, 'SIGTERM ends it with 0');
for my $guest (@house[ 1 .. 11 ])
{
	$text = until_ends($guest);
	$text =~ /"last"\n\n(?::\n\n)*event: doorbell:shutdown\ndata: \{\}\n\n$/ or last;
}
like($text, qr/"last"\n\n(?::\n\n)*event: doorbell:shutdown\ndata: \{\}\n\n$/, 'after everybody got what there was, and a shutdown event without id');
$node->stop;
done_testing();
