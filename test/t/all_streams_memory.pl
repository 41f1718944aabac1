# C5: a reader of all streams pages through a large table, and through what a transaction holds back, in bounded memory.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => "fsync = off\nshared_buffers = 32MB\nwork_mem = 4MB");

# The most memory that the backend has had so far, but for what it shares, in kB.
sub peak
{
	my ($session) = @_;
	my $status = slurp_file('/proc/' . $session->query_safe('SELECT pg_backend_pid()') . '/status');
	my %kb = $status =~ /^(\w+):\s+(\d+) kB/mg;
	return $kb{VmHWM} - $kb{RssShmem} - $kb{RssFile};
}

# Reads everything that follows the cursor in `position`, by pages of 1000.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE position (cursor text);
INSERT INTO position VALUES (NULL);
CREATE PROCEDURE read_all(INOUT events bigint) LANGUAGE plpgsql AS $$
DECLARE
    page record;
BEGIN
    events := 0;
    LOOP
        SELECT count(*), (array_agg(r.cursor))[count(*)] AS cursor INTO page
        FROM position p, doorbell.replay_all(p.cursor) r;
        EXIT WHEN page.count = 0;
        events := events + page.count;
        UPDATE position SET cursor = page.cursor;
        COMMIT;
    END LOOP;
END $$;
SQL

my $writer = $node->background_psql('postgres');
sub append
{
	my ($streams, $count) = @_;
	$writer->query_safe(qq{
		SELECT count(doorbell.append_batch('s' || i, array_fill('test'::text, ARRAY[$count]), array_fill('{"text": "a payload of some length"}'::jsonb, ARRAY[$count])))
		FROM generate_series(1, $streams) i
	});
	return;
}

my $reader = $node->background_psql('postgres');
append(1, 2000);
is($reader->query_safe('CALL read_all(0)'), '2000', 'a first read');
my $before = peak($reader);
append(300, 1000);
is($reader->query_safe('CALL read_all(0)'), '300000', 'a window of 300,000 events is read by pages');
$reader->query_safe('UPDATE position SET cursor = NULL');
is($reader->query_safe('CALL read_all(0)'), '302000', 'and the whole history as well');
cmp_ok(peak($reader) - $before, '<', 8 * 1024, 'C5: in less than 8 MB more than 2,000 events take');

# 100,000 events of 100 transactions behind one in flight.
my $open = $node->background_psql('postgres');
$open->query_safe(q{BEGIN; SELECT doorbell.append('s1', 'test', '1')});
append(1, 1000) for 1 .. 100;
append(2, 1);
$node->safe_psql('postgres', q{SELECT doorbell.append('other', 'test', '1')});
is($reader->query_safe('CALL read_all(0)'), '1', 'only what is not behind a row in flight is given');
cmp_ok(peak($reader) - $before, '<', 8 * 1024, 'C5: what is held back takes no memory');

# A giant transaction, then more streams held back than a cursor has room for.
$open->query_safe(q{ROLLBACK; BEGIN; SELECT count(doorbell.append('big', 'test', to_jsonb(i))) FROM generate_series(1, 100000) i});
is($reader->query_safe('CALL read_all(0)'), '100002', 'a transaction with 100,000 events holds up nothing else');
cmp_ok(peak($reader) - $before, '<', 8 * 1024, 'C5: what is in flight takes no memory');
$open->query_safe(q{COMMIT; BEGIN; SELECT count(doorbell.append('many' || i, 'test', '1')) FROM generate_series(1, 10000) i});
is($reader->query_safe('CALL read_all(0)'), '100000', 'it is given after its commit');
$node->safe_psql('postgres', q{SELECT doorbell.append('many' || i, 'test', '2') FROM generate_series(1, 10000) i; SELECT doorbell.append('other', 'test', '2')});
is($reader->query_safe('CALL read_all(0)'), '0', 'while too many streams are held back for a cursor, nothing is given');
my (undef, undef, $error) = $node->psql('postgres', 'SELECT doorbell.high_water_all()');
like($error, qr/ERROR:  too much waits for open transactions to fit into a cursor/, 'and there is no cursor from now on');
cmp_ok(peak($reader) - $before, '<', 8 * 1024, 'C5: that takes no memory');
$open->query_safe('COMMIT');
is($reader->query_safe('CALL read_all(0)'), '20001', 'then everything comes');

$_->quit for $reader, $writer, $open;
$node->stop;
done_testing();
