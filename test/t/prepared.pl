# A prepared transaction holds the readers of its streams until it ends, across a restart and a crash too.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => "max_prepared_transactions = 10");

sub prepare
{
	my ($stream, $name) = @_;
	$node->safe_psql('postgres', qq{
		SET doorbell.ring_mode = off;
		BEGIN;
		SELECT doorbell.append('$stream', 'test', '"prepared"');
		PREPARE TRANSACTION '$name';
		SELECT doorbell.append('$stream', 'test', '"later"');
	});
}
prepare('kept', 'kept');
prepare('dropped', 'dropped');
$node->safe_psql('postgres', q{SELECT doorbell.append('other', 'test', '1')});

sub all_streams
{
	return $node->safe_psql('postgres', q{SELECT string_agg(stream || ' ' || seq, ', ') FROM doorbell.replay_all()});
}

sub holds
{
	my ($when) = @_;
	is(events($node, 'kept'), '', "readers stop before a prepared append $when");
	is(waters($node, 'kept'), '0..0', "high water stays below a prepared append $when");
	is(events($node, 'other'), '1 1', "readers of other streams do not wait for it $when");
	is(all_streams(), 'other 1', "a reader of all streams gets those, and nothing from behind it $when");
}
holds('while it is prepared');
$node->restart;
holds('after a restart');
$node->stop('immediate');
$node->start;
holds('after a crash');

$node->safe_psql('postgres', "COMMIT PREPARED 'kept'");
is(events($node, 'kept'), '1 "prepared", 2 "later"', 'readers get it, in order, once it is committed');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'dropped'");
is(events($node, 'dropped'), '2 "later"', 'readers step over it once it is rolled back');
is(all_streams(), 'dropped 2, kept 1, kept 2, other 1', 'and so does a reader of all streams');

my (undef, undef, $error) = $node->psql('postgres', q{
	SET doorbell.ring_mode = commit;
	BEGIN;
	SELECT doorbell.append('kept', 'test', '3');
	PREPARE TRANSACTION 'rings';
});
like($error, qr/ERROR:.*PREPARE/s, 'a transaction that has to ring at commit cannot be prepared');
is(waters($node, 'kept'), '0..2', 'and leaves nothing behind');

$node->stop;
done_testing();
