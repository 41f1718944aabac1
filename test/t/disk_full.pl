# C2, C3: the disk becomes full under load. Nothing that was acknowledged is lost, and when there is space again appends go
# on and a tail gets all of it, each event once and in order.
#
# 1. A file may not grow: the server's limit of file sizes (RLIMIT_FSIZE) is reached by the table or one of its indexes, in
#    the middle of an append; then it is raised.
# 2. A small file system of its own, made in a user namespace, gets full of everything, WAL too, so the server may crash
#    and be unable to come back; then a file on it is removed. Where the system allows no user namespaces, only 1.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run ();
use Load;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Appends 70 kB of what cannot be compressed until that fails; the seqs that were acknowledged.
my $filler = q{SELECT doorbell.append('filler', 'test', (SELECT jsonb_agg(md5(random()::text)) FROM generate_series(1, 2000)))};
sub fill
{
	my ($node) = @_;
	my $sql = PostgreSQL::Test::Utils::tempdir() . '/fill.sql';
	append_to_file($sql, "$filler;\n" x 5_000);
	my ($out, $err) = ('', '');
	IPC::Run::run [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $sql ], '>', \$out, '2>', \$err;
	return ([ split /\n/, $out ], $err);
}

sub check
{
	my ($node, $name, $tail, $filled, $acknowledged) = @_;
	$node->safe_psql('postgres', qq{SELECT doorbell.append('hot', 'test', '"space again"')});
	pass("$name: appends go on when there is space again");
	until_tailed($tail, 'space again');
	is_the_table($tail, $node, "C3: $name: a tail is given each event once, in order");
	my %given = map { /^(\d+) (.*)$/ } tailed($tail);
	my @lost = grep { ($given{$_} // '') ne $acknowledged->{$_} } keys %$acknowledged;
	is("@lost", '', "C2: $name: nothing that was acknowledged is lost");
	cmp_ok(scalar @$filled, '>', 10, "$name: it took appends to fill it");
	my %there = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', q{SELECT seq FROM doorbell.replay('filler', 0, 1000000)});
	is(scalar(grep { !$there{$_} } @$filled), 0, "C2: $name: and all that filled it is there");
}

# 1. A file may not grow.
my $node = new_node('limited', conf => "autovacuum = off\nrestart_after_crash = on");
my $tail = start_tail($node->connstr('postgres'));
my @writers = start_writers($node->connstr('postgres'), 'limited', 2);
until_true($node, q{SELECT doorbell.high_water('hot') >= 100});
# More than a segment of WAL has; soft limits may be raised again by their owner.
my $limit = 17 * 1024 * 1024;
sub limit_to
{
	my ($bytes) = @_;
	my @pids = ($node->{_pid}, split /\n/, $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity'));
	system('prlimit', "--fsize=$bytes:unlimited", '--pid', $_) foreach grep { kill 0, $_ } @pids;
}
limit_to($limit);
my ($filled, $error) = fill($node);
like($error, qr/ERROR:  could not (extend|write to) file .*: File too large/, 'a file that cannot grow: the append fails, and says why');
limit_to('unlimited');
my $then = $node->safe_psql('postgres', q{SELECT doorbell.high_water('hot')});
until_true($node, qq{SELECT doorbell.high_water('hot') >= $then + 100}) if grep { $_->{run}->pumpable } @writers;
$_->{run}->signal('TERM') foreach grep { $_->{run}->pumpable } @writers;
check($node, 'a file that cannot grow', $tail, $filled, { acknowledged(@writers) });
$node->stop;

# 2. A small file system.
my $uid = $>;
my $gid = $) + 0;
if (system('unshare -U -r -m true 2>/dev/null') != 0)
{
	note('no user namespaces here');
	done_testing();
	exit;
}
$node = new_node('small', conf => "autovacuum = off\nrestart_after_crash = on\nmax_wal_size = 64MB\nmin_wal_size = 32MB\ncheckpoint_timeout = 1h");
$node->stop;
my $data = $node->data_dir;
my $place = PostgreSQL::Test::Utils::tempdir();
my ($commands, $said) = ('', '');
my $inside = IPC::Run::start [ qw(unshare -U -r -m sh) ], '<', \$commands, '>&', \$said;
sub inside # runs a command there; returns what it says
{
	my ($command) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	$said = '';
	$commands .= "$command </dev/null\necho status \$?\n";
	until ($said =~ /^status (\d+)$/m)
	{
		die "in vain: $command: $said" if time > $deadline || !$inside->pumpable;
		$inside->pump_nb;
		select undef, undef, undef, 0.01;
	}
	return $said =~ /^status 0$/m;
}
my $log = $node->logfile;
my $pg_ctl = "unshare -U --map-user=$uid --map-group=$gid pg_ctl -w -D '$data' -l '$log'"; # not as the root of the namespace
my $start = "$pg_ctl start >/dev/null 2>&1";
inside("mount -t tmpfs -o size=110m,mode=700 tmpfs '$place' && cp -a '$data/.' '$place/' && head -c 30m /dev/zero >'$place/ballast' && mount --bind '$place' '$data'")
  or die "no small file system: $said";
inside($start) or die "no server on it: $said";
$tail = start_tail($node->connstr('postgres'));
@writers = start_writers($node->connstr('postgres'), 'small', 2);
until_true($node, q{SELECT doorbell.high_water('hot') >= 100});
($filled, $error) = fill($node);
like("$error " . slurp_file($log), qr/No space left on device/, 'a full disk: the server says so');
inside("rm '$place/ballast'") or die $said;
inside("$pg_ctl status >/dev/null || $start") or die "it does not start again: $said";
until_true($node, 'SELECT true');
$_->{run}->signal('TERM') foreach grep { $_->{run}->pumpable } @writers;
check($node, 'a full disk', $tail, $filled, { acknowledged(@writers) });
inside("$pg_ctl -m fast stop >/dev/null");
$inside->kill_kill;
done_testing();
