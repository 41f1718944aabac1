# O11: seqs go on after everything was trimmed and the server restarted; they never start again.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');

sub append
{
	return $node->safe_psql('postgres', q{SELECT doorbell.append('s', 'test', 'true')});
}

$node->safe_psql('postgres', q{SELECT doorbell.append_batch('s', array_fill('test'::text, ARRAY[10]), array_fill('1'::jsonb, ARRAY[10]))});
is($node->safe_psql('postgres', q{SELECT doorbell.trim('s', 10)}), '10', 'all events are trimmed');
$node->safe_psql('postgres', 'VACUUM doorbell.event');

$node->restart;
is(waters($node, 's'), '10..10', 'O11: low and high water are those from before the restart');
is(append(), '11', 'O11: the first append after trim and restart goes on');

$node->safe_psql('postgres', q{SELECT doorbell.trim('s', 11)});
$node->safe_psql('postgres', 'VACUUM doorbell.event');
$node->stop('immediate');
$node->start;
is(waters($node, 's'), '11..11', 'O11: low and high water are those from before the crash');
is(append(), '12', 'O11: the first append after trim and crash goes on');
is(events($node, 's'), '12 true', 'O11: readers get what was appended since');

$node->stop;
done_testing();
