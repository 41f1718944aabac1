#!/usr/bin/env perl
# Prints the table of a benchmark run from its results (see run.sh): one line per comparison, the ratio first.
#
# A ratio is the median of the ratios within each round, because what disturbs a machine lasts longer than a round;
# beside it stand the smallest and the largest one. The values are medians of their own.
use strict;
use warnings;
use JSON::PP;

my (%values, %lost, @comparisons);
while (<>) {
	my $line = decode_json($_);
	if (exists $line->{round}) {
		my $point = join ' ', @$line{qw(suite load name clients listeners)};
		$values{$point}[ $line->{round} - 1 ] = $line->{value};
		$lost{$point} += $line->{lost} // 0;
	} else {
		push @comparisons, $line;
	}
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2;
}

# "12,346/s" or "81 us"; other units are like the latter
sub in_unit
{
	my ($value, $unit) = @_;
	my $text = sprintf '%.0f', $value;
	1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
	return $unit eq '1/s' ? "$text/s" : "$text $unit";
}

sub point # what was measured for one side of a comparison
{
	my ($comparison, $side) = @_;
	return join ' ', $comparison->{suite}, $comparison->{load}, @{ $comparison->{$side} };
}

# The cell of one side: its name and median; what it lost, if it can lose anything.
sub cell
{
	my ($comparison, $side) = @_;
	my $point = point($comparison, $side);
	my $text = "$comparison->{$side}[0] " . in_unit(median(@{ $values{$point} }), $comparison->{unit});
	return $lost{$point} ? "$text, $lost{$point} lost" : $text;
}

my $format = "%-6s %-14s %-13s %-7s %-10s %-15s %7s %9s  %-29s %s\n";
printf $format, qw(ratio range goal), '', qw(suite load clients listeners ours theirs);
for my $c (@comparisons) {
	my ($ours, $theirs) = map { $values{ point($c, $_) } } qw(ours theirs);
	my @ratios = map { $ours->[$_] / $theirs->[$_] } 0 .. $#$ours;
	my $ratio = median(@ratios);
	my ($least, $most) = (sort { $a <=> $b } @ratios)[ 0, -1 ];
	my $verdict = '';
	if ($c->{goal} =~ /^(value )?(>=|<=) ([\d.]+)$/) { # of the ratio, or of what we measured ourselves
		my $judged = $1 ? median(@$ours) : $ratio;
		$verdict = ($2 eq '>=' ? $judged >= $3 : $judged <= $3) ? 'met' : 'MISSED';
	}
	my (undef, $clients, $listeners) = @{ $c->{ours} };
	my @cells = map { cell($c, $_) } qw(ours theirs);
	$cells[1] .= " ($c->{theirs}[1] clients)" if $c->{theirs}[1] != $clients;
	printf $format, sprintf('%.2f', $ratio), sprintf('%.2f..%.2f', $least, $most), $c->{goal}, $verdict, $c->{suite},
	  $c->{load}, $clients, $listeners, @cells;
}
