# One serve, two read replicas: reads are shared over them and the primary has none; when one is lost it goes on over the
# other, and so it does when that one is promoted. 200 clients are given each event once and in order.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use Serve;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $logging = "log_min_duration_statement = 0\nwal_retrieve_retry_interval = 100ms\n";
my $primary = new_node('primary', allows_streaming => 1, conf => "shared_preload_libraries = 'pg_doorbell'\n$logging");
$primary->backup('base');
my @standbys = map {
	my $standby = PostgreSQL::Test::Cluster->new("standby$_");
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->start;
	$standby
} 1 .. 2;
my @nodes = ($primary, @standbys);
my $all = join ' ', 'host=' . join(',', map { $_->host } @nodes), 'port=' . join(',', map { $_->port } @nodes),
  'dbname=postgres target_session_attrs=read-write';

my $newest = 0;
sub append
{
	my ($node, $count) = @_;
	$newest = $node->safe_psql('postgres', "SELECT max(seq) FROM (SELECT doorbell.append('s', 'made', to_jsonb(i)) AS seq FROM generate_series(1, $count) i) a");
}

sub reads
{
	my ($node) = @_;
	return scalar(() = slurp_file($node->logfile) =~ /doorbell\.replay_many\(/g);
}

append($primary, 50);
$primary->wait_for_catchup($_, 'replay', $primary->lsn('insert')) foreach @standbys;
my $serve = serve($all, map { ('--replay-dsn', $_->connstr('postgres')) } @standbys);
my @clients = map { follow($serve, '/v1/streams/s?after=' . ($_ % 2 ? 0 : 50)) } 1 .. 200;

sub everybody_has_everything
{
	my ($when) = @_;
	until_gets($_, qr/^id: $newest-/m) foreach @clients;
	my @wrong = grep { join(' ', map { $_->{id} =~ /^(\d+)/ } frames($clients[$_])) ne join(' ', ($_ % 2 ? 51 : 1) .. $newest) } 0 .. 199;
	is(scalar @wrong, 0, "C3: 200 clients have each event once, in order, $when");
}

append($primary, 1) foreach 1 .. 20;
everybody_has_everything('over two replicas');
cmp_ok(reads($_), '>', 0, $_->name . ' was read') foreach @standbys;
is(reads($primary), 0, 'the primary was not');

my @before = map { reads($_) } @standbys;
$standbys[0]->stop('immediate');
append($primary, 1) foreach 1 .. 20;
push @clients, map { follow($serve, '/v1/streams/s?after=0') } 1 .. 5;
until_gets($_, qr/^id: $newest-/m) foreach splice @clients, 200;
everybody_has_everything('after one of them is lost');
cmp_ok(reads($standbys[1]), '>', $before[1], 'the other one is read for both');
is(reads($primary), 0, 'and still not the primary');

$primary->wait_for_catchup($standbys[1], 'replay', $primary->lsn('insert'));
$primary->stop('immediate');
$standbys[1]->promote;
append($standbys[1], 1) foreach 1 .. 20;
everybody_has_everything('after the other one was promoted');
ok(says($serve, qr/listening/), 'by the serve of the beginning');
is(scalar(grep { $_->{text} =~ /doorbell:(gap|reset)/ } @clients), 0, 'without a gap or a reset');
is(stop_serve($serve), 0, 'which ends in order');
$standbys[1]->stop;
done_testing();
