# Where the library is preloaded, the ringer applies the rules of retention, and rings meanwhile.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => qq{
	shared_preload_libraries = 'pg_doorbell'
	doorbell.retention_interval = 1s
	doorbell.ringer_idle_timeout = 1s
	default_transaction_isolation = 'serializable'
});
my $ringer = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_doorbell ringer'};

# Appends events of a day ago, and `more` of now.
sub fill
{
	my ($stream, $old, $more) = @_;
	$node->safe_psql('postgres', qq{
		SELECT doorbell.append_batch('$stream', array_fill('test'::text, ARRAY[$old]), array_fill('1'::jsonb, ARRAY[$old]));
		UPDATE doorbell.event SET appended_at = appended_at - interval '1 day' WHERE stream = '$stream';
		SELECT count(doorbell.append('$stream', 'test', '2')) FROM generate_series(1, $more)});
	return;
}

sub until_waters
{
	my ($stream, $waters) = @_;
	$node->poll_query_until('postgres', "SELECT doorbell.low_water('$stream') || '..' || doorbell.high_water('$stream') = '$waters'")
	  or die "$stream is at " . waters($node, $stream) . ", not at $waters";
	return pass("stream $stream gets to $waters");
}

# A rule brings a ringer, which applies it.
fill('old', 20000, 3);
fill('counted', 10, 20);
fill('kept', 10, 0);
$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM ($ringer) r}) or die 'the ringer stays';
pass('without a rule an idle ringer leaves');
$node->safe_psql('postgres', q{SELECT doorbell.set_retention('old', '1 hour', NULL), doorbell.set_retention('c*', NULL, 5)});
until_waters('old', '20000..20003');
until_waters('counted', '25..30');
is(waters($node, 'kept'), '0..10', 'a stream without a rule keeps everything');
is(events($node, 'old'), '20001 2, 20002 2, 20003 2', 'what is young stays');
my $pid = $node->safe_psql('postgres', $ringer);
like($pid, qr/^\d+$/, 'the ringer is there');

# It stays although there is nothing to ring, and goes on.
$node->safe_psql('postgres', 'SELECT pg_sleep(1.5)'); # longer than the idle timeout
is($node->safe_psql('postgres', $ringer), $pid, 'with a rule an idle ringer stays');
$node->safe_psql('postgres', q{SET doorbell.ring_mode = off; SELECT doorbell.append('counted', 'test', '3')});
until_waters('counted', '26..31');

# An append that is open is not passed, and a required consumer not either.
my $open = $node->background_psql('postgres');
$open->query_safe(q{BEGIN; SELECT doorbell.append('counted', 'test', '4')});
$node->safe_psql('postgres', q{SELECT count(doorbell.append('counted', 'test', '5')) FROM generate_series(1, 10)});
until_waters('counted', '31..31');
$open->query_safe('COMMIT');
until_waters('counted', '37..42');
$node->safe_psql('postgres', q{
	SELECT doorbell.set_consumer('audit', true); SELECT doorbell.commit_cursor('audit', 'counted', 39);
	SELECT count(doorbell.append('counted', 'test', '5')) FROM generate_series(1, 10)});
until_waters('counted', '39..52');
$node->safe_psql('postgres', q{SELECT doorbell.forget_consumer('audit')});
until_waters('counted', '47..52');

# Rings go on beside a large backlog, and the counts of dead rows reach autovacuum.
my $ears = listen_on($node);
fill('large', 100000, 0);
$node->safe_psql('postgres', q{SELECT doorbell.set_retention('large', '1 hour', NULL)});
for my $n (1 .. 20)
{
	$node->safe_psql('postgres', qq{SELECT doorbell.append('live', 'test', '$n')});
	heard($ears, "live:$n");
}
pass('rings are heard beside it');
until_waters('large', '100000..100000');
$node->poll_query_until('postgres', q{SELECT n_tup_del > 120000 FROM pg_stat_all_tables WHERE relid = 'doorbell.event'::regclass})
  or die 'the statistics do not show what was removed';
pass('the statistics show what was removed');

# A failure is logged, costs no ring, and is over when its reason is.
$node->safe_psql('postgres', q{
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now, %', current_user; END $$;
	CREATE TRIGGER refuse BEFORE DELETE ON doorbell.event FOR EACH ROW EXECUTE FUNCTION refuse()});
my $offset = -s $node->logfile;
fill('refused', 5, 1);
$node->safe_psql('postgres', q{SELECT doorbell.set_retention('refused', '1 hour', NULL)});
$node->wait_for_log(qr/ERROR:  not now/, $offset);
$node->safe_psql('postgres', q{SELECT doorbell.append('live', 'test', '21')});
is(heard($ears, 'live:21') =~ /live:21$/, 1, 'a pass that fails costs no ring');
$node->safe_psql('postgres', 'DROP TRIGGER refuse ON doorbell.event');
until_waters('refused', '5..6');

# Off.
$node->append_conf('postgresql.conf', 'doorbell.retention_interval = 0');
$node->reload;
$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM ($ringer) r}) or die 'the ringer stays';
pass('with the interval 0 the ringer leaves in spite of rules');
fill('refused', 5, 1);
foreach my $n (22, 23)
{
	$node->safe_psql('postgres', qq{SELECT doorbell.append('live', 'test', '$n')});
	heard($ears, "live:$n"); # a new ringer would have begun its first pass before the second ring
}
is(waters($node, 'refused'), '5..12', 'and does not apply them');
# As docs/operations.md has it for cron.
$node->safe_psql('postgres', q{
	CREATE PROCEDURE apply_retention() LANGUAGE plpgsql AS $$
	BEGIN
		WHILE doorbell.apply_retention(2) > 0 LOOP
			COMMIT;
		END LOOP;
	END $$});
$node->safe_psql('postgres', q{SET default_transaction_isolation = 'read committed'; CALL apply_retention()});
is(waters($node, 'refused'), '11..12', 'which apply_retention() does by hand');

# Without the extension there is nothing to do, and it can be dropped and made while there is a ringer.
$node->append_conf('postgresql.conf', 'doorbell.retention_interval = 1s');
$node->reload;
$node->safe_psql('postgres', q{SELECT doorbell.append('live', 'test', '24')});
$node->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM ($ringer) r}) or die 'no ringer came';
$node->safe_psql('postgres', 'DROP EXTENSION pg_doorbell; CREATE EXTENSION pg_doorbell');
fill('again', 5, 1);
$node->safe_psql('postgres', q{SELECT doorbell.set_retention('again', '1 hour', NULL)});
until_waters('again', '5..6');

$_->quit foreach ($open, $ears);
$node->stop;
done_testing();
