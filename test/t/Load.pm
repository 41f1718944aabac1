# What the tests of faults share: writers that note what was acknowledged, and a `doorbell tail` that follows them.
package Load;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_writers acknowledged start_tail until_tailed tailed is_the_table);

my $dir = PostgreSQL::Test::Utils::tempdir();
my @tails; # a script that dies leaves none behind
END
{
	local $?;
	$_->{run}->kill_kill foreach grep { $_->{run}->pumpable } @tails;
}

# Writers that append to the stream "hot", each append a transaction, until the connection is lost.
sub start_writers
{
	my ($connstr, $name, $count) = @_;
	return map { start_writer($connstr, "$name-$_") } 1 .. $count;
}

sub start_writer
{
	my ($connstr, $name) = @_;
	my $writer = { out => "$dir/$name.out" };
	PostgreSQL::Test::Utils::append_to_file("$dir/$name.sql", join '', map {
		qq{SELECT doorbell.append('hot', 'test', '"$name.$_"') || ' $name.$_';\n}
	} 1 .. 100_000);
	$writer->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connstr, '-f', "$dir/$name.sql" ],
		'>', $writer->{out}, '2>', "$dir/$name.err");
	return $writer;
}

# Waits until the writers have ended; what they were told is stored, seq => payload.
sub acknowledged
{
	my @writers = @_;
	my %acknowledged;
	for my $writer (@writers)
	{
		$writer->{run}->finish;
		%acknowledged = (%acknowledged, slurp_file($writer->{out}) =~ /^(\d+) (.+)$/mg);
	}
	return %acknowledged;
}

# A tail of "hot" from its beginning.
sub start_tail
{
	my ($connstr, @options) = @_;
	my %tail = (out => '', err => '');
	$tail{run} = IPC::Run::start(
		[ "$ENV{TESTDIR}/build/doorbell", '--dsn', $connstr, qw(tail hot --after 0 --format json), @options ],
		'<', \undef, '>', \$tail{out}, '2>', \$tail{err});
	push @tails, \%tail;
	return \%tail;
}

# Waits until the tail has printed the event with this payload.
sub until_tailed
{
	my ($tail, $payload) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	until (index(substr($tail->{out}, -1000), qq("payload":"$payload"})) >= 0)
	{
		die "no \"$payload\" comes; the tail said: $tail->{err}" if time > $deadline || !$tail->{run}->pumpable;
		$tail->{run}->pump_nb;
		select undef, undef, undef, 0.005;
	}
}

# "seq payload" of each event that it printed, as they came; what is no event is there, too.
sub tailed
{
	my ($tail) = @_;
	return map { /^\{"stream":"hot","seq":(\d+),.*"payload":"(.*)"\}$/ ? "$1 $2" : $_ } split /\n/, $tail->{out};
}

# Asserts that the tail printed what lies in the table, each event once and in order, and nothing else.
sub is_the_table
{
	my ($tail, $node, $name) = @_;
	my @given = tailed($tail);
	my @stored = split /\n/, $node->safe_psql('postgres',
		q{SELECT seq || ' ' || (payload #>> '{}') FROM doorbell.event WHERE stream = 'hot' ORDER BY seq});
	my ($place) = grep { ($given[$_] // '') ne ($stored[$_] // '') } 0 .. (@given > @stored ? $#given : $#stored);
	is(defined $place ? "event $place is \"" . ($given[$place] // '') . '", not "' . ($stored[$place] // '') . '"' : 'all', 'all', $name);
}

1;
