# Runs docs/recipes.md as it is printed. Each second-level heading is a recipe with a database of its own.
#
# ```sql and ```sh blocks are run, ```sh background ones beside what follows until the recipe ends, and a block with
# file=NAME is saved. A ```text block is what the block before it prints; … stands for anything.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../t";
use Doorbell;
use IO::Socket::INET;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();

my $node = new_node('main', conf => "shared_preload_libraries = 'pg_doorbell'\n", without_extension => 1);
$ENV{PATH} = "$ENV{TESTDIR}/build:$ENV{PG_BINDIR}:/usr/bin:$ENV{PATH}"; # the Python that the system packages are for
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGUSER} = getpwuid $>;

sub pattern_of
{
	my ($text) = @_;
	$text =~ s/[ \t]+$//mg;
	return join '.*', map { quotemeta } split /…/, $text, -1;
}

# Waits until the ports of a background command are open.
sub wait_for_port
{
	my ($command) = @_;
	my ($port) = $command =~ /(?:127\.0\.0\.1:| )(\d{4,5})\b/ or return;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port))
	{
		die "nothing listens on port $port" if time > $deadline;
		Time::HiRes::sleep(0.05);
	}
	return;
}

sub run_block
{
	my ($kind, $text) = @_;
	my $out = '';
	my @command = $kind eq 'sql' ? ('psql', '-X', '-v', 'ON_ERROR_STOP=1') : ('bash', '-euo', 'pipefail');
	IPC::Run::run \@command, '<', \$text, '>', \$out, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	return ($? >> 8, $out);
}

my %ports = map { $_ => PostgreSQL::Test::Cluster::get_free_port() } 8080, 8081;
my $document = slurp_file("$FindBin::Bin/../../docs/recipes.md");
$document =~ s/\b(808[01])\b/$ports{$1}/g; # they may be somebody's
my (undef, @recipes) = split /^## /m, $document;
my $number = 0;
foreach my $recipe (@recipes)
{
	my ($title) = $recipe =~ /^(.*)$/m;
	$ENV{PGDATABASE} = 'recipe_' . ++$number;
	$node->safe_psql('postgres', "CREATE DATABASE $ENV{PGDATABASE}");
	$node->safe_psql($ENV{PGDATABASE}, 'CREATE EXTENSION pg_doorbell');
	chdir PostgreSQL::Test::Utils::tempdir() or die;
	my @background;
	my $out;
	while ($recipe =~ /^```(\w+)(?: ([^\n]+))?\n(.*?)^```$/msg)
	{
		my ($kind, $how, $text) = ($1, $2 // '', $3);
		if ($how =~ /^file=(.+)/)
		{
			append_to_file($1, $text);
		}
		elsif ($how eq 'background')
		{
			push @background, IPC::Run::start [ 'bash', '-c', "exec $text" ], '<', \undef, '&>', "background.$#background";
			wait_for_port($text);
		}
		elsif ($kind eq 'text')
		{
			my $pattern = pattern_of($text);
			$out =~ s/[ \t]+$//mg;
			$out =~ s/\n*\z/\n/;
			like($out, qr/\A$pattern\z/s, "$title: what is printed comes");
		}
		else
		{
			(my $status, $out) = run_block($kind, $text);
			is($status, 0, "$title: a block of $kind is run") or diag($out);
		}
	}
	$_->signal('TERM'), IPC::Run::finish($_) foreach @background;
}
$node->stop;
done_testing();
