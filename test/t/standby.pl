# C1 on a hot standby: replay and high water stop before what is in flight on the primary, and only there; a promotion
# settles it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', allows_streaming => 1);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub append
{
	my ($stream, $payload) = @_;
	return $primary->safe_psql('postgres', "SELECT doorbell.append('$stream', 'test', '$payload')");
}

# What the standby says once it has replayed all that the primary has written.
sub standby_has
{
	my ($stream, $events, $waters, $what) = @_;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(events($standby, $stream), $events, "C1: $what: replay on the standby");
	is(waters($standby, $stream), $waters, "C1: $what: high water on the standby");
	is($standby->safe_psql('postgres', "SELECT low_water || '..' || high_water FROM doorbell.streams('$stream') WHERE high_water > 0 OR low_water > 0"),
		$waters eq '0..0' ? '' : $waters, "C1: $what: streams() on the standby");
	return;
}

append('s', 1);
my $open = $primary->background_psql('postgres');
$open->query_safe(q{BEGIN; SELECT doorbell.append('s', 'test', '2')});
append('s', 3);
append('other', 1);
standby_has('s', '1 1', '0..1', 'behind an append in flight');
standby_has('other', '1 1', '0..1', 'another stream does not wait');
$open->query_safe('COMMIT');
append('s', 4);
standby_has('s', '1 1, 2 2, 3 3, 4 4', '0..4', 'after its commit');

$open->query_safe(q{BEGIN; SELECT doorbell.append('s', 'test', '5')});
append('s', 6);
standby_has('s', '1 1, 2 2, 3 3, 4 4', '0..4', 'behind a second append in flight');
$open->query_safe('ROLLBACK');
append('s', 7);
standby_has('s', '1 1, 2 2, 3 3, 4 4, 6 6, 7 7', '0..7', 'after its rollback');

# More subtransactions than a snapshot of the standby lists: it only knows the top-level transaction.
$open->query_safe(q{
	BEGIN;
	DO $$ BEGIN
		FOR i IN 1 .. 200 LOOP
			BEGIN PERFORM doorbell.append('deep', 'test', to_jsonb(i)); EXCEPTION WHEN division_by_zero THEN NULL; END;
		END LOOP;
	END $$;
});
append('deep', 201);
standby_has('deep', '', '0..0', 'behind 200 subtransactions in flight');
my $all = q{SELECT count(*) FROM doorbell.replay_all(NULL, 1000, 'deep')};
is($standby->safe_psql('postgres', $all), '0', 'C1: so does a reader of all streams');
$open->query_safe('COMMIT');
append('deep', 202);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', q{SELECT count(*) || ' to ' || max(seq) FROM doorbell.replay('deep')}), '202 to 202',
	'C1: after their commit: replay on the standby');
is($standby->safe_psql('postgres', $all), '202', 'C1: and a reader of all streams');

my (undef, undef, $error) = $standby->psql('postgres', q{SELECT doorbell.append('s', 'test', '1')});
like($error, qr/ERROR: .*read-only/, 'an append on a standby is refused');

# What is in flight when the primary is lost will never commit.
$open->query_safe(q{BEGIN; SELECT doorbell.append('s', 'test', '8'); SELECT doorbell.append('only', 'test', '1')});
append('s', 9);
standby_has('s', '1 1, 2 2, 3 3, 4 4, 6 6, 7 7', '0..7', 'behind an append in flight before the promotion');
$primary->stop('immediate');
eval { $open->quit };
$standby->promote;
is(events($standby, 's', 7), '9 9', 'after the promotion readers step over what was in flight');
is(waters($standby, 's'), '0..9', 'and so does high water');
is(waters($standby, 'only'), '0..0', 'a stream that had nothing else is still new');
is($standby->safe_psql('postgres', q{SELECT doorbell.append('s', 'test', '10')}), '10', 'seqs go on');
is($standby->safe_psql('postgres', q{SELECT doorbell.append('only', 'test', '1')}), '1', 'there, too');

$standby->stop;
done_testing();
