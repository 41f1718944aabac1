# `doorbell doctor`, `doorbell status` and /healthz tell the truth in every state, and what to do about it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Serve;
use Test::More;

sub command
{
	my ($dsn, @arguments) = @_;
	my ($out, $err);
	IPC::Run::run [ "$ENV{TESTDIR}/build/doorbell", '--dsn', $dsn, @arguments ], '<', \undef, '>', \$out, '2>', \$err;
	return ($? >> 8, $out, $err);
}

# What the doctor says and how it ends.
sub doctor_says
{
	my ($what, $dsn, $exit, @patterns) = @_;
	my ($status, $out, $err) = command($dsn, qw(doctor --wait 60));
	is("$status $err", "$exit ", "$what: doctor exits with $exit");
	like($out, $_, "$what: it says so") foreach @patterns;
	return $out;
}

my $node = new_node('main', allows_streaming => 1,
	conf => "shared_preload_libraries = 'pg_doorbell'\nfsync = on\nmax_prepared_transactions = 1\nautovacuum = off\n");
my $dsn = $node->connstr('postgres');

# Live
my $out = doctor_says('live', $dsn, 0, qr/^well    extension: pg_doorbell 0\.1$/m, qr/^well    rings: by the ringer/m, qr/^well    channel: /m);
unlike($out, qr/^(advice|PROBLEM)/m, 'live: it has nothing to say');
my ($status, $json) = command($dsn, qw(doctor --format json));
is((grep { /^\{"level":"well","about":"\w+","found":".+"\}$/ } split /\n/, $json), 4, 'live: as JSON it is a line for each check');

# Settings of the role
$node->safe_psql('postgres', "CREATE ROLE $_->[0] SUPERUSER LOGIN; ALTER ROLE $_->[0] SET doorbell.ring_mode = $_->[1]")
  foreach [ 'silent', 'off' ], [ 'slow', 'commit' ];
doctor_says('rings off', "$dsn user=silent", 1, qr/^PROBLEM rings: doorbell\.ring_mode is off\n +why: .+\n +change: set doorbell\.ring_mode = auto$/m);
doctor_says('rings at commit', "$dsn user=slow", 0, qr/^advice  rings: .*commit although/m);

# Privileges
$node->safe_psql('postgres', 'CREATE ROLE stranger LOGIN; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA doorbell TO reader;'
	. ' GRANT EXECUTE ON FUNCTION doorbell.replay, doorbell.replay_many, doorbell.high_water, doorbell.low_water, doorbell.streams TO reader');
$node->safe_psql('postgres', q{DO $$ BEGIN EXECUTE (SELECT string_agg(format('GRANT EXECUTE ON FUNCTION %s TO reader', oid::regprocedure), ';')
	FROM pg_proc WHERE pronamespace = 'doorbell'::regnamespace AND provolatile = 's'); END $$});
doctor_says('a stranger', "$dsn user=stranger", 1, qr/^PROBLEM privileges: role "stranger" may not read$/m, qr/^advice  privileges: role "stranger" may not append$/m);
$out = doctor_says('a reader', "$dsn user=reader", 0, qr/^advice  privileges: role "reader" may not append$/m);
unlike($out, qr/may not read/, 'a reader: it may read');

# Transactions that stay open
my $open = $node->background_psql('postgres');
$open->query_safe(q{BEGIN; SELECT doorbell.append('s', 'made', '1')});
unlike((command($dsn, 'doctor'))[1], qr/^advice/m, 'a young transaction is nothing to speak of');
$node->safe_psql('postgres', q{BEGIN; SELECT doorbell.append('t', 'made', '1'); PREPARE TRANSACTION 'left behind'});
($status, $out) = command($dsn, qw(doctor --long-transaction 0));
is($status, 0, 'long transactions: they are no problem');
like($out, qr/^advice  transactions: process \d+ has written in a transaction open for \d+ s\n +why: .*\n +change: /m, 'long transactions: but said');
like($out, qr/^advice  transactions: "left behind" has been prepared for \d+ s\n/m, 'long transactions: and so are prepared ones');
$open->quit;

# Retention and consumers
$node->safe_psql('postgres', q{SELECT doorbell.set_retention('s', '1 day', NULL), doorbell.commit_cursor('mailer', 'slow', 0), doorbell.append('slow', 'made', '1')});
unlike((command($dsn, 'doctor'))[1], qr/^advice/m, 'rules that the ringer applies and a consumer that is a little behind are well');
$node->safe_psql('postgres', q{UPDATE doorbell.event SET appended_at = now() - interval '2 hours' WHERE stream = 'slow'});
doctor_says('a consumer that is far behind', $dsn, 0, qr/^advice  consumers: "mailer" is 72\d\d s behind\n +why: .*\n +change: .*forget_consumer/m);
$node->append_conf('postgresql.conf', 'doorbell.retention_interval = 0');
$node->reload;
$node->poll_query_until('postgres', q{SELECT doorbell.high_water('s') >= 0 AND current_setting('doorbell.retention_interval') = '0'}) or die 'no reload';
doctor_says('rules without a keeper', $dsn, 0, qr/^advice  retention: there are rules, and no ringer that applies them\n +why: doorbell\.retention_interval is 0\n/m);
$node->adjust_conf('postgresql.conf', 'doorbell.retention_interval', undef);
$node->reload;
$node->safe_psql('postgres', q{SELECT doorbell.forget_consumer('mailer'), doorbell.set_retention('s', NULL, NULL)});

# Versions
$node->safe_psql('postgres', q{UPDATE pg_extension SET extversion = '0.0' WHERE extname = 'pg_doorbell'});
doctor_says('an older extension', $dsn, 0, qr/^advice  extension: version 0\.1 is installed.*\n.*\n +change: ALTER EXTENSION pg_doorbell UPDATE$/m,
	qr/^advice  extension: this command is version /m);
$node->safe_psql('postgres', q{UPDATE pg_extension SET extversion = '0.1' WHERE extname = 'pg_doorbell'});
$node->safe_psql('postgres', 'CREATE DATABASE bare');
doctor_says('no extension', $node->connstr('bare'), 1, qr/^PROBLEM extension: not in this database\n.*\n +change: CREATE EXTENSION pg_doorbell$/m);

# A standby
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
doctor_says('a standby', $standby->connstr('postgres'), 1, qr/^PROBLEM server: this is a standby\n.*LISTEN.*\n +change: .*primary/m);
($status, $out) = command($standby->connstr('postgres'), 'status');
is($status, 1, 'a standby: status exits with 1');
like($out, qr/^server .*, a standby$/m, 'a standby: it says so');
like($out, qr/^channel +NOT heard: ./m, 'a standby: and that nothing is heard');
my $serve = serve($standby->connstr('postgres'));
my $health;
my $deadline = Serve::deadline();
do { $health = get($serve, '/healthz') } until $health->{body} =~ /"sweeping","last_error":"/ || time > $deadline;
is($health->{status}, 200, 'a standby: /healthz is 200, events come by sweep');
like($health->{body}, qr/^\{"listener":"sweeping","last_error":"[^"]*standby/, 'a standby: it says why');
stop_serve($serve);
$standby->stop;

# Logical replication
$node->safe_psql('bare', 'CREATE EXTENSION pg_doorbell');
$node->safe_psql('bare', "CREATE SUBSCRIPTION s CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false)");
unlike((command($node->connstr('bare'), 'doctor'))[1], qr/logical/, 'a subscription without our table is nothing to speak of');
$node->safe_psql('bare', "INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, 'doorbell.event'::regclass, 'i' FROM pg_subscription");
doctor_says('a subscriber', $node->connstr('bare'), 1, qr/^PROBLEM server: doorbell\.event is filled by logical replication$/m);


# Not preloaded, and careless
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'left behind'});
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nfsync = off\n");
$node->restart;
doctor_says('not preloaded', $dsn, 1, qr/^advice  rings: pg_doorbell is not in shared_preload_libraries\n.*\n +change: shared_preload_libraries = /m,
	qr/^PROBLEM server: fsync is off$/m);
($status, $out) = command($dsn, 'status');
is($status, 0, 'not preloaded: status exits with 0');
like($out, qr/^ring mode +commit \(auto\); add pg_doorbell to shared_preload_libraries/m, 'not preloaded: and says so');

# Down
$node->stop;
($status, $out, my $err) = command($dsn, 'doctor');
is("$status$out", '1', 'down: doctor exits with 1');
like($err, qr/^doorbell: .*(No such file|refused)/, 'down: and says why');
done_testing();
