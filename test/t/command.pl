# The command does what its help says: results on stdout, words on stderr, exit status.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run qw(start finish run);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');
my @command = ("$ENV{TESTDIR}/build/doorbell", '--dsn', $node->connstr('postgres'));

# Runs the command; returns (exit status, stdout, stderr).
sub doorbell
{
	my ($in, @arguments) = @_;
	my ($out, $err);
	run [ @command, @arguments ], '<', \$in, '>', \$out, '2>', \$err;
	return ($? >> 8, $out, $err);
}

# Starts it; `until` waits for a text on its stdout (or stderr).
sub begin
{
	my %running = (out => '', err => '');
	$running{handle} = start [ @command, @_ ], '<', \undef, '>', \$running{out}, '2>', \$running{err},
	  IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	return \%running;
}

sub until_says
{
	my ($running, $stream, $pattern) = @_;
	$running->{handle}->pump until $running->{$stream} =~ $pattern || !$running->{handle}->pumpable;
	like($running->{$stream}, $pattern, "it says $pattern");
}

sub finish_by
{
	my ($running, $signal) = @_;
	$running->{handle}->signal($signal);
	finish $running->{handle};
	return $? >> 8;
}

my ($status, $out, $err);

# append
is_deeply([ doorbell('', 'append', 's', 'made') ], [ 0, "1\n", '' ], 'append prints the seq and nothing else');
is_deeply([ doorbell('', 'append', 's', 'made', '{"a":[1,2]}') ], [ 0, "2\n", '' ], 'append takes the payload as an argument');
is_deeply([ doorbell("[1,\n2]", 'append', 's', 'made', '-') ], [ 0, "3\n", '' ], 'append reads the payload from stdin');
($status, $out, $err) = doorbell('', qw(append s made --expected-seq 7));
is("$status$out", '3', 'an append that expected another seq exits with 3');
like($err, qr/^doorbell: .*\nStream "s": expected seq 7, actual seq 3\./, 'and shows the stream, the expected and the actual seq');
my @once = qw(append s made {} --event-id 6f2f54b4-6d1c-4a0f-9d7e-08bd0c3a1c55);
is_deeply([ doorbell('', @once), doorbell('', @once) ], [ 0, "4\n", '', 0, "4\n", '' ], 'the same --event-id stores one event');
($status, $out, $err) = doorbell('', 'append', 's', 'made', '{"a":}');
is("$status$out", '1', 'an append of what is not JSON exits with 1');
like($err, qr/invalid input syntax for type json/, 'and says what is wrong');
is(events($node, 's'), '1 {}, 2 {"a": [1, 2]}, 3 [1, 2], 4 {}', 'nothing but the successful appends is stored');

# import
is_deeply(
	[ doorbell(join('', map { "$_\n" } 1 .. 2500), qw(import numbers --type n)) ],
	[ 0, "2500\n", "doorbell: 2500 events appended to numbers, the last with seq 2500\n" ],
	'import appends each line of stdin');
is($node->safe_psql('postgres', q{SELECT bool_and(payload::text = seq::text) FROM doorbell.replay('numbers', 0, 10000)}),
	't', 'in the order of the lines');
my $file = PostgreSQL::Test::Utils::tempdir() . '/events.ndjson';
append_to_file($file, qq({"n":1}\r\n\n  \n{"n":2}\n{"n":3}));
is_deeply([ (doorbell('', 'import', 'file', $file, qw(--type n)))[ 0, 1 ] ], [ 0, "3\n" ],
	'import reads a file, skips blank lines and needs no line feed at the end');
for my $bad ([ '{', qr/invalid input syntax for type json/ ], [ '"\u0000"', qr/unsupported Unicode escape/ ])
{
	my ($line, $reason) = @$bad;
	($status, $out, $err) = doorbell(join("\n", 1 .. 14, $line, 16 .. 30), 'import', "bad $line", qw(--type n --batch 10));
	is("$status$out", '1', "import of a line $line exits with 1");
	like($err, qr/^doorbell: line 15: $reason/, 'names its number and what is wrong');
	like($err, qr/nothing of lines 11 to 20 was stored/, 'and says what was not stored');
	is(waters($node, "bad $line"), '0..10', 'nothing of its batch is stored, the batches before are');
}
($status, $out, $err) = doorbell('', qw(import s /nonexistent --type n));
is("$status$err", qq(1doorbell: could not read "/nonexistent": No such file or directory\n), 'a file that is not there is named');

# replay
my @lines = split /\n/, (doorbell('', qw(replay s --after 1)))[1];
is(scalar @lines, 3, 'replay prints a line for each event after --after');
like($lines[0], qr/^\{"stream":"s","seq":2,"type":"made","appended_at":"\d{4}-\d\d-\d\dT[\d:.]+Z","payload":\{"a": \[1, 2\]\}\}$/,
	'which is the envelope');
is(() = (doorbell('', qw(replay numbers)))[1] =~ /\n/g, 2500, 'replay goes through pages to the end');
is(() = (doorbell('', qw(replay numbers --count 150)))[1] =~ /\n/g, 150, 'or to --count');
like((doorbell('', qw(replay s --after 1 --count 1 --format sse)))[1],
	qr/^: pg_doorbell\n\nid: 2-[0-9a-f]{8}\nevent: made\ndata: \{"a": \[1, 2\]\}\n\n$/, 'replay --format sse prints frames');
$node->safe_psql('postgres', q{SELECT doorbell.trim('file', 2)});
like((doorbell('', qw(replay file --after 1)))[1], qr/^\{"control":"gap","stream":"file","asked":1,"low_water":2\}\n\{"stream":"file","seq":3,/,
	'a replay from before low water begins with a gap');

# replay of all streams
sub cursors { return map { /"cursor":"([^"]+)"\}$/ ? $1 : "none in $_" } split /\n/, shift; }
doorbell('', qw(append), "p:$_", 'made', "[$_]") for 1 .. 5;
@lines = split /\n/, (doorbell('', qw(replay --all)))[1];
is(scalar(grep { /^\{"stream":"numbers"/ } @lines), 2500, 'replay --all goes through pages to the end');
is(scalar(grep { /^\{"stream":"s","seq":\d,.*,"payload":.*,"cursor":"all1\.[^"]+"\}$/ } @lines), 4,
	'of every stream, and each event has its cursor in the last field');
($status, $out, $err) = doorbell('', qw(replay --prefix p:));
is(scalar(() = $out =~ /"stream":"p:/g), 5, 'replay --prefix prints what begins with it');
my @cursors = cursors($out);
is(scalar(@cursors), 5, 'and nothing else');
is((doorbell('', qw(replay --all --prefix p: --after), $cursors[2]))[1], join('', map { "$_\n" } (split /\n/, $out)[ 3, 4 ]),
	'--after a cursor prints what follows that event, in the same words');
is((doorbell('', qw(replay --prefix p: --count 1 --after), $cursors[1]))[1], (split /\n/, $out)[2] . "\n", '--count ends it');
is((doorbell('', qw(replay --prefix p: --after), $cursors[4]))[1], '', 'nothing follows the last one');
like((doorbell('', qw(replay --prefix p: --format sse --count 1)))[1],
	qr/^: pg_doorbell\n\nid: \Q$cursors[0]\E\nevent: made\ndata: \{"stream":"p:1",.*"payload":\[1\]\}\n\n$/,
	'--format sse has the cursor as id and the envelope without it as data');
$node->safe_psql('postgres', q{SELECT doorbell.append_batch('p:1', '{a,b}', '{1,2}'); SELECT doorbell.trim('p:1', 2)});
like((doorbell('', qw(replay --prefix p: --after), $cursors[4]))[1],
	qr/^\{"control":"gap","stream":"p:1","low_water":2\}\n\{"stream":"p:1","seq":3,/, 'a gap is told');
like((doorbell('', qw(replay --prefix p: --format sse --after), $cursors[4]))[1],
	qr/^event: doorbell:gap\ndata: \{"stream":"p:1","low_water":2\}\n\n/m, 'as a browser is told it');
for my $command ('replay', 'tail')
{
	($status, $out, $err) = doorbell('', $command, qw(--all --after all1.nonsense));
	is("$status$out", '2', "$command --all behind what has not the form of a cursor exits with 2");
	like($err, qr/--after: invalid cursor of all streams "all1\.nonsense"/, 'and names it');
	($status, $out, $err) = doorbell('', $command, qw(--all --after all1.1.0...));
	is("$status$out", '1', "$command --all behind what the server does not take for one exits with 1");
	like($err, qr/cursor is malformed: "all1\.1\.0\.\.\."/, 'and names it');
}
my $history = $node->safe_psql('postgres', q{SELECT split_part(doorbell.high_water_all(), '.', 2)});
(my $foreign = $cursors[4]) =~ s/^all1\.\Q$history\E\./all1.1./;
($status, $out, $err) = doorbell('', qw(replay --all --after), $foreign);
is("$status$out", '1', 'a replay behind a cursor of another history exits with 1');
like($err, qr/cursor belongs to another history/, 'and says so');

# tail
my $tail = begin(qw(tail --prefix live: --format text));
my $follows_all = q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%doorbell.replay_all%' AND pid <> pg_backend_pid()};
$node->poll_query_until('postgres', $follows_all) or die 'the tail does not come';
doorbell('', qw(append live:1 born), '"é"');
until_says($tail, 'out', qr/^\S+Z  live:1 1  born  "é"\n/);
is(finish_by($tail, 'INT'), 0, 'Ctrl-C ends a tail with success');
is($tail->{err}, '', 'without a word');

$out = (doorbell('', qw(tail --prefix p: --after 0 --count 4)))[1];
my @before = cursors($out);
is(scalar(grep { /^all1\./ } @before), 4, 'tail --prefix prints the cursor of each event');
$out = (doorbell('', qw(tail --prefix p: --count 2 --after), $before[1]))[1];
is_deeply([ cursors($out) ], [ @before[ 2, 3 ] ], 'and goes on behind one');
$out = (doorbell('', qw(tail --prefix p: --format sse --count 1 --after), $before[1]))[1];
like($out, qr/^id: \Q$before[2]\E$/m, 'in frames it is the id');
$out = (doorbell('', qw(tail --prefix p: --count 1 --after), $foreign))[1];
like($out, qr/^\{"control":"reset","prefix":"p:","asked":"\Q$foreign\E"\}\n\{"stream":"p:/,
	'a cursor of another history is reset, and all follows from the beginning');
$out = (doorbell('', qw(tail --prefix p: --format sse --count 1 --after), $foreign))[1];
like($out, qr/^event: doorbell:reset\ndata: \{"asked":"\Q$foreign\E"\}\n\n/m, 'as a browser is told it');
$out = (doorbell('', qw(tail s --prefix p: --after 0 --count 6)))[1];
unlike($out, qr/"cursor"/, 'a mixture has no cursor');

$tail = begin(qw(tail --all));
$node->poll_query_until('postgres', $follows_all) or die 'the tail does not come';
doorbell('', qw(append later born));
until_says($tail, 'out', qr/^\{"stream":"later",.*,"cursor":"all1\.[^"]+"\}\n$/);
is(finish_by($tail, 'INT'), 0, 'tail --all begins now');

$tail = begin(qw(tail s numbers --after 0 --count 2504));
finish $tail->{handle};
is($? >> 8, 0, 'tail --count ends by itself');
is_deeply([ map { scalar(() = $tail->{out} =~ /"stream":"$_"/g) } qw(s numbers) ], [ 4, 2500 ], 'after events of all its streams');

my $pipe = begin(qw(tail --all --after 0));
my $head = `'$command[0]' --dsn '$command[2]' tail --all --after 0 | head -n 1`;
like($head, qr/^\{"stream":.*\n$/, 'a tail ends when the reader of its output has gone');
until_says($pipe, 'out', qr/"stream":"s","seq":4/);
is(finish_by($pipe, 'TERM'), 0, 'so it does by SIGTERM');

my $cursor = (doorbell('', qw(tail s numbers --after 3 --format sse --count 1)))[1] =~ /^id: (.*)$/m ? $1 : '';
like($cursor, qr/^[0-9a-f-]+,[0-9a-f-]+$/, 'the cursor of two streams has two marks');
$out = (doorbell('', qw(tail s numbers --count 1), '--after', $cursor))[1];
unlike($out, qr/control/, 'tail goes on behind such a cursor');
$out = (doorbell('', qw(tail s --count 1 --after 2-00000001)))[1];
like($out, qr/^\{"control":"reset","stream":"s","asked":2,"low_water":0\}\n\{"stream":"s","seq":1,/,
	'a cursor of another history is reset');

$tail = begin(qw(tail s --after 4));
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%doorbell.replay%' AND pid <> pg_backend_pid()})
  or die 'the tail does not come';
$node->stop('immediate');
until_says($tail, 'err', qr/^doorbell: not connected, trying again: /);
$node->start;
doorbell('', qw(append s after));
until_says($tail, 'out', qr/^\{"stream":"s","seq":5,"type":"after"/);
until_says($tail, 'err', qr/^doorbell: live$/m);
is(finish_by($tail, 'INT'), 0, 'a tail survives a crash of the server');

# status
($status, $out, $err) = doorbell('', qw(status --prefix s));
is($status, 0, 'status of a healthy database exits with 0');
like($out, qr/^$_/m, "it shows $_")
  for 'server +\d+', 'extension +\d', 'ring mode +commit \(auto\)', 'channel +heard$', 'NOTIFY queue +0\.0 %', 'streams +1$',
  '  s +0 +5$';
like((doorbell('', qw(status --format json)))[1], qr/^\{"healthy":true,.*"streams":\[\{"stream":"bad/, 'status --format json is one object');
$node->safe_psql('postgres', 'CREATE DATABASE bare');
($status, $out, $err) = doorbell('', 'status', '--dsn', $node->connstr('bare'));
is($status, 1, 'status of a database without the extension exits with 1');
like($out, qr/^extension +not in this database/m, 'and says so');

# arguments
for my $wrong ([], ['bogus'], ['append'], [qw(append s)], [qw(replay s --after x)], [qw(replay s --after -1)], ['tail'],
	[qw(replay)], [qw(replay s --all)], [qw(replay s --prefix s)], [qw(replay --all --after 7)],
	[qw(replay s --after 7-00000001)], [qw(tail s --prefix p --after all1.x)], [qw(tail --prefix a --prefix b --after all1.x)],
	[qw(tail --all s)], [qw(tail --all --after 7)], [qw(tail s --after 1,2)], [qw(tail s --format xml)],
	[qw(import s)], [qw(import s --type t --batch 0)])
{
	($status, $out, $err) = doorbell('', @$wrong);
	is("$status$out", '2', "\"doorbell @$wrong\" is refused with 2");
	isnt($err, '', 'and an explanation');
}
($status, $out, $err) = doorbell('', '--dsn', 'host=/nonexistent', 'status');
is("$status$out", '1', 'a server that is not there is an error');
like($err, qr/^doorbell: connection to server on socket "\/nonexistent.* failed: No such file or directory/, 'that names it');

$node->stop;
done_testing();
