# A cursor of all streams goes on where its history goes on, on whichever server, and is refused in any other history:
# after a dump is restored, and when a failover lost what the cursor has seen.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Reads on, up to $count events; the cursor moves. Gives "stream seq" of each, or the error.
sub read_on
{
	my ($node, $cursor, $count) = @_;
	$count //= 1000;
	my $after = defined $$cursor ? "'$$cursor'" : 'NULL';
	my ($status, $out, $error) = $node->psql('postgres', '\set VERBOSITY verbose' . "\n" .
		"SELECT stream || ' ' || seq || CASE WHEN type IS NULL THEN ' gap' ELSE '' END, cursor FROM doorbell.replay_all($after, $count)",
		extra_params => [ '--field-separator', "\t" ]);
	return $error =~ /ERROR:  (\w+):/ ? $1 : $error if $error ne '';
	my @events;
	for my $line (split /\n/, $out)
	{
		my ($event, $next) = split /\t/, $line;
		push @events, $event;
		$$cursor = $next;
	}
	return join ', ', @events;
}

sub append
{
	my ($node, @streams) = @_;
	my $list = join ',', map { "'$_'" } @streams;
	$node->safe_psql('postgres', "SELECT doorbell.append_many(ARRAY[$list], array_fill('test'::text, ARRAY[cardinality(ARRAY[$list])]), array_fill('1'::jsonb, ARRAY[cardinality(ARRAY[$list])]))");
	return;
}

my $primary = new_node('primary', allows_streaming => 1, conf => 'wal_keep_size = 64MB');
my $restored = new_node('restored', without_extension => 1);
$primary->backup('base');
my %standby;
for my $name (qw(behind lossless lossy))
{
	$standby{$name} = PostgreSQL::Test::Cluster->new($name);
	$standby{$name}->init_from_backup($primary, 'base', has_streaming => 1);
	$standby{$name}->start;
}
my $behind = $standby{behind};

sub everything_is_on
{
	my ($standby) = @_;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

# A standby goes on from the primary's cursor, in the middle of a window; while it is behind it gives nothing.
my $cursor;
append($primary, qw(a b c d));
everything_is_on($behind);
is(read_on($primary, \$cursor, 1), 'a 1', 'a reader begins on the primary');
is(read_on($behind, \$cursor, 1), 'b 1', 'it goes on on a standby');
append($primary, qw(a z));
everything_is_on($behind);
$behind->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
append($primary, qw(c e));
until_true($behind, q{SELECT pg_get_wal_replay_pause_state() = 'paused'});
is(read_on($primary, \$cursor), 'c 1, d 1', 'and again on the primary, to the end of the window');
is(read_on($primary, \$cursor, 1), 'a 2', 'and into the next one');
is(read_on($behind, \$cursor), '', 'a standby that is behind gives nothing, not even what it has of the window');
$behind->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
everything_is_on($behind);
is(read_on($behind, \$cursor), 'c 2, e 1, z 1', 'until it has caught up');

# So does a snapshot that is older than the cursor.
my $old = $primary->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
append($primary, qw(a b));
is(read_on($primary, \$cursor, 1), 'a 3', 'a reader goes on beside an old snapshot');
is($old->query_safe("SELECT count(*) FROM doorbell.replay_all('$cursor')"), '0', 'which gives nothing for its cursor');
$primary->safe_psql('postgres', q{SELECT doorbell.trim('a', 3)});
is($old->query_safe("SELECT count(*) FROM doorbell.replay_all('$cursor')"), '0', 'also when the event of the cursor is trimmed');
$old->query_safe('COMMIT');
is($old->query_safe("SELECT count(*) FROM doorbell.replay_all('$cursor')"), '1', 'and goes on in a new one');
$old->quit;
is(read_on($primary, \$cursor), 'b 2', 'nothing is lost by that');

# A restored dump is another history, whatever its ids.
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$primary->command_ok([ 'pg_dump', '--file', $dump, '--dbname', $primary->connstr('postgres') ], 'a dump is made');
$restored->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $restored->connstr('postgres'), '-f', $dump ], 'and restored');
is(read_on($restored, \$cursor), 'DB002', 'a cursor is refused by a restored dump');
is($restored->safe_psql('postgres', q{SELECT count(*) FROM doorbell.stream WHERE trimmed_xid >= pg_snapshot_xmax(pg_current_snapshot()) OR trim_xid <> trimmed_xid}),
	'0', 'the ids of the trims of a restored dump are of its cluster');
my $new;
is(read_on($restored, \$new), 'b 1, b 2, c 1, c 2, d 1, e 1, z 1', 'a reader that begins there gets everything, and no gap');
append($restored, 'a');
is(read_on($restored, \$new), 'a 4', 'and goes on');

# The primary is lost. One standby has everything that it had, another one lacks the last events.
my $idle = $cursor; # of a reader that sees none of the lost events
my $idle_from_now = $primary->safe_psql('postgres', 'SELECT doorbell.high_water_all()');
everything_is_on($standby{lossy});
$standby{lossy}->stop;
$primary->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
my $after_eventless = $primary->safe_psql('postgres', 'SELECT doorbell.high_water_all()');
append($primary, 'd');
append($primary, qw(a b));
my $paging = $cursor;
is(read_on($primary, \$paging, 1), 'a 4', 'a reader is in the middle of a window when the primary is lost');
my $finished = $cursor;
is(read_on($primary, \$finished), 'a 4, b 3, d 2', 'another has everything');
my $from_now = $primary->safe_psql('postgres', 'SELECT doorbell.high_water_all()');
everything_is_on($standby{lossless});
$primary->stop('immediate');
$standby{lossy}->start;
$_->promote for $standby{lossless}, $standby{lossy};

my ($lossless, $lossy) = @standby{qw(lossless lossy)};
my ($paging_there, $finished_there) = ($paging, $finished);
append($lossless, 'c');
is(read_on($lossless, \$paging_there), 'b 3, d 2', 'a failover without loss: the reader goes on in its window');
is(read_on($lossless, \$paging_there), 'c 3', 'and in the next one');
is(read_on($lossless, \$finished_there), 'c 3', 'the one who had everything goes on');
is(read_on($lossless, \$from_now), 'c 3', 'so does one from now on');

is(read_on($lossy, \$finished), 'DB002', 'a failover with loss: who had a lost event is refused');
append($lossy, qw(a b));
append($lossy, 'd');
is(read_on($lossy, \$finished), 'DB002', 'also when the seqs are used again');
is(read_on($lossy, \$paging), 'DB002', 'also in the middle of a window');
$lossy->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 200 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
is(read_on($lossy, \$finished), 'DB002', 'also when the transaction ids are used again');
is(read_on($lossy, \$idle), 'a 4, b 3, d 2', 'who had none of them goes on, with events whose ids were lost ones');
is(read_on($lossy, \$idle_from_now), 'a 4, b 3, d 2', 'so does one from now on');
is(read_on($lossy, \$after_eventless), 'a 4, b 3, d 2', 'although transactions without events were lost that it could know of');

$_->stop for $restored, values %standby;
done_testing();
