#!/usr/bin/env perl
# Prints the table of a benchmark run from its results (see run.sh): one line per comparison, the ratio first.
#
# A ratio is the median of the ratios within each round, because what disturbs a machine lasts longer than a round;
# beside it stand the smallest and the largest one. The rates are medians of their own.
use strict;
use warnings;
use JSON::PP;

my (%rate, @comparisons);
while (<>) {
	my $line = decode_json($_);
	if (exists $line->{round}) {
		$rate{ $line->{suite} }{ $line->{case} }{ $line->{name} }[ $line->{round} - 1 ] = $line->{per_second};
	} else {
		push @comparisons, $line;
	}
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2;
}

# 12345.6 per second as "12,346/s"; as a duration, "81 us".
sub in_unit
{
	my ($rate, $unit) = @_;
	return sprintf '%.0f us', 1e6 / $rate if $unit eq 'seconds';
	my $text = sprintf '%.0f', $rate;
	1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
	return "$text/s";
}

my $format = "%-6s %-11s %-8s %-7s %-7s %-15s %-19s %s\n";
printf $format, qw(ratio range goal), '', qw(suite case ours theirs);
for my $c (@comparisons) {
	my ($ours, $theirs) = map { $rate{ $c->{suite} }{ $c->{case} }{ $c->{$_} } } qw(ours theirs);
	my @ratios = map { $c->{unit} eq 'seconds' ? $theirs->[$_] / $ours->[$_] : $ours->[$_] / $theirs->[$_] } 0 .. $#$ours;
	my $ratio = median(@ratios);
	my ($least, $most) = (sort { $a <=> $b } @ratios)[ 0, -1 ];
	my $met = '';
	if ($c->{goal} =~ /^(>=|<=) ([\d.]+)$/) {
		$met = ($1 eq '>=' ? $ratio >= $2 : $ratio <= $2) ? 'met' : 'MISSED';
	}
	printf $format, sprintf('%.2f', $ratio), sprintf('%.2f..%.2f', $least, $most), $c->{goal}, $met, $c->{suite}, $c->{case},
	  "$c->{ours} " . in_unit(median(@$ours), $c->{unit}), "$c->{theirs} " . in_unit(median(@$theirs), $c->{unit});
}
