# doorbell tail --consumer: whatever ends it, the next one goes on; nothing is lost, and only what was not committed comes
# twice.
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
my $directory = PostgreSQL::Test::Utils::tempdir();

# Runs the command; returns (exit status, stdout, stderr).
sub doorbell
{
	my ($out, $err);
	run [ @command, @_ ], '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	return ($? >> 8, $out, $err);
}

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub seqs
{
	return join ' ', $_[0] =~ /"seq":(\d+)/g;
}

# Waits until it is true.
sub until_so
{
	my ($what, $test) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until ($test->())
	{
		die "in vain: $what" if time > $deadline;
		select undef, undef, undef, 0.01;
	}
	return pass($what);
}

# From the beginning, then from where it was, with the check of the last event.
sql(q{SELECT count(doorbell.append('s', 'test', to_jsonb(i))) FROM generate_series(1, 10) i});
my ($status, $out, $err) = doorbell(qw(tail s --consumer c --count 4));
is("$status: " . seqs($out), '0: 1 2 3 4', 'a consumer without a cursor begins at the beginning');
like(sql(q{SELECT doorbell.mark('c', 's')}), qr/^4-[0-9a-f]{8}$/, 'what was written is committed, with its check');
is(seqs((doorbell(qw(tail s --consumer c --count 3 --after now)))[1]), '5 6 7', 'then it goes on there, whatever --after says');
is(seqs((doorbell(qw(tail s --consumer d --count 1 --after 8)))[1]), '9', 'without a cursor it begins behind --after');
is(seqs((doorbell(qw(tail s --count 1 --after 2)))[1]), '3', 'a tail without a consumer commits nothing');
is(sql(q{SELECT string_agg(consumer || ' ' || seq, ', ' ORDER BY 1) FROM doorbell.consumers}), 'c 7, d 9', 'the cursors are where they were left');
sql(q{SELECT doorbell.append('t', 'test', '1')});
($status, $out) = doorbell(qw(tail t s --consumer c --count 4));
is(join(' ', sort $out =~ /"stream":"(\w)","seq":(\d+)/g), '1 10 8 9 s s s t', 'each stream has its own cursor');

# At "now", before anything came.
my $tail = start [ @command, qw(tail quiet s --consumer e --after now) ], '<', \undef, '>', \my $now, '2>', \my $now_err;
$node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM doorbell.consumers WHERE consumer = 'e'}) or die 'it commits nothing';
is(sql(q{SELECT string_agg(stream || ' ' || seq, ', ' ORDER BY 1) FROM doorbell.consumers WHERE consumer = 'e'}), 'quiet 0, s 10',
	'where a consumer begins is committed at once');
$tail->kill_kill(grace => 0);
sql(q{SELECT doorbell.append('s', 'test', '11')});
is(seqs((doorbell(qw(tail quiet s --consumer e --after now --count 1)))[1]), '11', 'so what comes while it is away is not lost');

# Killed at any place.
my $events = 300000;
sql(qq{SELECT doorbell.append_batch('many', array_fill('test'::text, ARRAY[$events]), array_fill('1'::jsonb, ARRAY[$events]))});
my ($committed, $twice, $kills) = (0, 0, 0);
my %seen;
sub consume # until the file has so many bytes, or the last event; returns whether it has that
{
	my ($bytes) = @_;
	my $file = "$directory/many.$kills";
	my $many = start [ @command, qw(tail many --consumer killed) ], '<', \undef, '>', $file, '2>', \my $said;
	my $last = qr/"seq":$events,/;
	until_so("it writes $bytes bytes", sub { (-s $file // 0) >= $bytes || slurp_file($file) =~ $last });
	$many->signal('KILL');
	finish $many;
	my $text = slurp_file($file);
	my @lines = $text =~ /^\{"stream":"many","seq":(\d+),.*\}$/mg;
	is($lines[0], $committed + 1, "after $kills kills it goes on behind what is committed");
	$twice += grep { $seen{$_}++ } @lines;
	my $now = sql(q{SELECT coalesce(doorbell.cursor('killed', 'many'), 0)});
	ok($now <= $lines[-1], 'and never commits what it has not written') or diag("committed $now, written $lines[-1]");
	cmp_ok($now, '>=', $committed, 'nor anything that is behind');
	$committed = $now;
	$kills++;
	return $text =~ $last;
}
my @sizes = (1, 50_000, 3_000_000, 200_000, 8_000_000, 1_000, 2_000_000);
consume($_) foreach (@sizes);
cmp_ok($committed, '>', 0, 'something was committed on the way');
($status, $out) = doorbell(qw(tail many --consumer killed --count), $events - $committed);
is($status, 0, 'the last one ends in order');
$twice += grep { $seen{$_}++ } $out =~ /"seq":(\d+)/g;
is(scalar(keys %seen), $events, "nothing is lost in $kills kills");
note("$twice events came more than once");
is(sql(q{SELECT doorbell.cursor('killed', 'many')}), $events, 'all is committed in the end');

# A crash of the server on the way.
my $file = "$directory/crash";
$tail = start [ @command, qw(tail s crash --consumer f) ], '<', \undef, '>', $file, '2>', \$err;
until_so('it follows', sub { (slurp_file($file) // '') =~ /"seq":11,/ });
$node->stop('immediate');
$node->start;
sql(q{SELECT count(doorbell.append('crash', 'test', '1')) FROM generate_series(1, 50)});
$node->poll_query_until('postgres', q{SELECT doorbell.cursor('f', 'crash') = 50}) or die 'it does not commit after a crash';
pass('it commits on after a crash of the server');
$tail->signal('TERM');
finish $tail;
is($? >> 8, 0, 'SIGTERM ends it in order');
is(seqs(slurp_file($file)), join(' ', 1 .. 11, 1 .. 50), 'everything came once');

# Another process under the same name.
$tail = start [ @command, qw(tail s --consumer c) ], '<', \undef, '>', \$out, '2>', \$err;
$node->poll_query_until('postgres', q{SELECT doorbell.cursor('c', 's') = 11}) or die 'it does not commit';
sql(q{SELECT doorbell.commit_cursor('c', 's', 1000); SELECT doorbell.append('s', 'test', '12')});
finish $tail;
is($? >> 8, 4, 'a tail that another process has overtaken ends with 4');
like($err, qr/^doorbell: the cursor of consumer "c" cannot go on to the given one\nConsumer "c", stream "s": committed seq 1000, given seq 12\.\n/,
	'and says who is where');
is(seqs($out), '11 12', 'after what it wrote');
is(sql(q{SELECT doorbell.cursor('c', 's')}), '1000', 'the cursor stays');

# Another history.
sql(q{SELECT doorbell.move_cursor('c', 's', 3, '00000001')});
($status, $out) = doorbell(qw(tail s --consumer c --count 2));
like($out, qr/^\{"control":"reset","stream":"s","asked":3,"low_water":0\}\n\{"stream":"s","seq":1,.*\n\{"stream":"s","seq":2,.*\n$/,
	'a cursor of another history is told by its check');
like(sql(q{SELECT doorbell.mark('c', 's')}), qr/^2-[0-9a-f]{8}$/, 'and goes back with the stream');
sql(q{SELECT doorbell.trim('s', 5)});
like((doorbell(qw(tail s --consumer c --count 1)))[1], qr/^\{"control":"gap","stream":"s","asked":2,"low_water":5\}\n\{"stream":"s","seq":6,/,
	'what was trimmed is a gap');

# All streams, or those of a prefix: one cursor.
sub places
{
	return join ' ', map { tr/",//dr } $_[0] =~ /"stream":("\w+","seq":\d+)/g;
}
sql(q{SELECT doorbell.trim('many', 1000000), doorbell.append('p1', 'test', '1'), doorbell.append('p2', 'test', '1'), doorbell.append('p1', 'test', '2')});
is(places((doorbell(qw(tail --prefix p --consumer all --count 2)))[1]), 'p1seq:1 p1seq:2', 'a consumer of a prefix begins at the beginning');
is(places((doorbell(qw(tail --prefix p --consumer all --count 1)))[1]), 'p2seq:1', 'and goes on behind its one cursor');
is(sql(q{SELECT concat_ws(' ', stream IS NULL, seq IS NULL, doorbell.cursor('all') = cursor) FROM doorbell.consumers WHERE consumer = 'all'}),
	't t t', 'which is one over all streams');
$tail = start [ @command, qw(tail --all --consumer late --after now) ], '<', \undef, '>', \$now, '2>', \$now_err;
$node->poll_query_until('postgres', q{SELECT doorbell.cursor('late') IS NOT NULL}) or die 'it commits nothing';
$tail->kill_kill(grace => 0);
sql(q{SELECT doorbell.append('p3', 'test', '1')});
is(places((doorbell(qw(tail --all --consumer late --count 1)))[1]), 'p3seq:1', 'where it begins is committed at once, too');
$tail = start [ @command, qw(tail --all --consumer late) ], '<', \undef, '>', \$out, '2>', \$err;
sql(q{SELECT doorbell.append('p4', 'test', '1')});
$node->poll_query_until('postgres', q{SELECT lag_events = 0 FROM doorbell.consumers WHERE consumer = 'late'}) or die 'it does not commit';
$tail->signal('STOP');
sql(q{SELECT doorbell.append('p5', 'test', '1'), doorbell.append('p6', 'test', '1')});
is(sql(q{SELECT lag_events FROM doorbell.consumers WHERE consumer = 'late'}), '2', 'what it has not committed is its lag');
$tail->signal('KILL');
finish $tail;
is(places($out), 'p4seq:1', 'it commits what it has written');

# Another process under the same name commits beyond what this one is allowed to write.
my $lock = $node->background_psql('postgres');
$lock->query_safe(q{BEGIN; SELECT doorbell.commit_cursor('late', doorbell.high_water_all())});
$tail = start [ @command, qw(tail --all --consumer late --count 1) ], '<', \undef, '>', \$out, '2>', \$err;
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%commit_cursor%'}) or die 'it does not commit';
$lock->query_safe('COMMIT');
$lock->quit;
finish $tail;
is($? >> 8, 4, 'who was overtaken in all streams ends with 4, too');
like($err, qr/^doorbell: the cursor of consumer "late" cannot go on to the given one\nConsumer "late", all streams: committed "all/, 'and says so');
is(places($out), 'p5seq:1', 'after what it wrote');

sql(q{UPDATE doorbell.history SET id = gen_random_uuid()});
($status, $out) = doorbell(qw(tail --prefix p --consumer all --count 1));
like($out, qr/^\{"control":"reset","prefix":"p","asked":"all[^"]+"\}\n\{"stream":"p1","seq":1,/, 'a cursor of another history is told, and all that there is follows');
is(sql(q{SELECT lag_events IS NOT NULL FROM doorbell.consumers WHERE consumer = 'all'}), 't', 'the cursor is now one of this history');

# Arguments and privileges.
for my $wrong ([qw(tail --prefix p --prefix q --consumer c)], [qw(tail s --prefix p --consumer c)], [ qw(tail s --consumer), '' ])
{
	($status, $out, $err) = doorbell(@$wrong);
	is("$status$out", '2', "\"doorbell @$wrong\" is refused with 2");
}
sql(q{CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA doorbell TO reader;
	GRANT EXECUTE ON FUNCTION doorbell.replay, doorbell.replay_many, doorbell.high_water, doorbell.low_water, doorbell.streams, doorbell.mark TO reader});
($status, $out, $err) = doorbell('--dsn', $node->connstr('postgres') . ' user=reader', qw(tail s --consumer g));
is($status, 1, 'who may not commit gets an error');
like($err, qr/^doorbell: permission denied for function commit_cursor$/m, 'that says so');

$node->stop;
done_testing();
