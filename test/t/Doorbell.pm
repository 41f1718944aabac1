# What the TAP scripts share: a server with the extension, and its streams as text.
package Doorbell;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(new_node events waters listen_on heard until_true);

# A started server with pg_doorbell in database postgres. Options: conf => lines of postgresql.conf, the rest is for
# init(); without_extension => 1 leaves the database empty.
sub new_node
{
	my ($name, %options) = @_;
	my $conf = delete $options{conf} // '';
	my $without_extension = delete $options{without_extension};
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(extra => [ '--no-locale', '--encoding=UTF8' ], %options);
	$node->append_conf('postgresql.conf', $conf);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_doorbell') unless $without_extension;
	return $node;
}

# What a reader of the stream gets: "seq payload" lines joined by commas.
sub events
{
	my ($node, $stream, $after) = @_;
	$after //= 0;
	return $node->safe_psql('postgres',
		"SELECT string_agg(seq || ' ' || payload, ', ' ORDER BY seq) FROM doorbell.replay('$stream', $after, 1000000)");
}

# "low water..high water"
sub waters
{
	my ($node, $stream) = @_;
	return $node->safe_psql('postgres', "SELECT doorbell.low_water('$stream') || '..' || doorbell.high_water('$stream')");
}

# A session that listens.
sub listen_on
{
	my ($node, $database) = @_;
	my $ears = $node->background_psql($database // 'postgres');
	$ears->query_safe('LISTEN doorbell');
	return $ears;
}

# The pointers that it hears up to the one given, joined by spaces; dies when that one does not come.
sub heard
{
	my ($ears, $last) = @_;
	my @pointers;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until (@pointers && $pointers[-1] eq $last)
	{
		die "heard \"@pointers\", but no \"$last\"" if time > $deadline;
		my $output = $ears->query_safe('SELECT pg_sleep(0.01)');
		push @pointers, $output =~ /Asynchronous notification "doorbell" with payload "(.*)" received/g;
	}
	return "@pointers";
}

# Waits until the query gives t, also while the server crashes and restarts, which poll_query_until does not survive.
sub until_true
{
	my ($node, $query) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my ($out, $err) = ('', '');
	until ($out eq "t\n")
	{
		die "in vain: $query: $out$err" if time > $deadline;
		IPC::Run::run [ 'psql', '-XAtqd', $node->connstr('postgres'), '-c', $query ], '>', \$out, '2>', \$err;
	}
}

1;
