#!/usr/bin/env perl
# Prints docs/library.md: the public headers of libdoorbell, what they open with as text, what they declare as code.
#
# usage: docs_library.pl DIRECTORY      with doorbell.hpp in it, which includes the others
#
# A header that does not open with a comment is an error. What is private in a class is left out.
use strict;
use warnings;

my ($directory) = @ARGV or die "usage: docs_library.pl DIRECTORY\n";
binmode STDOUT, ':encoding(UTF-8)';

sub slurp
{
	my ($name) = @_;
	open my $in, '<:encoding(UTF-8)', "$directory/$name" or die "$directory/$name: $!\n";
	local $/;
	return <$in>;
}

# Text of a comment as Markdown: what looks like HTML or emphasis is neither.
sub markdown
{
	my ($text) = @_;
	return join '', map { /^`/ ? $_ : s/([<*])/\\$1/gr } split /(`[^`]*`)/, $text;
}

# Without the private parts of classes.
sub public
{
	my ($code) = @_;
	my ($out, $hidden) = ('', undef);
	for my $line (split /^/, $code)
	{
		$hidden = $1 if $line =~ /^(\s*)private:/;
		if (defined $hidden && $line =~ /^\Q$hidden\E(?:\};|public:)/)
		{
			$hidden = undef;
			$out =~ s/\n\n\z/\n/;
		}
		$out .= $line unless defined $hidden;
	}
	return $out;
}

my ($first, @rest) = map { s,.*/,,r } glob("$directory/doorbell.hpp"), sort glob("$directory/*.hpp");
die "there is no doorbell.hpp in $directory\n" unless defined $first;

print <<'END';
<!-- Made by `make docs` from the headers in client/include/doorbell. -->
# Library reference

`libdoorbell` is C++17 on libpq. `pkg-config doorbell`, or in CMake `find_package(doorbell)` and the target
`doorbell::shared` or `doorbell::static`.

END
for my $name ($first, grep { $_ ne $first } @rest)
{
	my ($comment, $code) = slurp($name) =~ m{\A((?://[^\n]*\n)+)#pragma once\n(.*)\z}s
	  or die "$name does not open with a comment and #pragma once\n";
	$comment =~ s{^// ?}{}gm;
	$code =~ s/^#include [^\n]*\n//gm;
	$code =~ s/\A\s+|\s+\z//g;
	print "## `<doorbell/$name>`\n\n", markdown($comment), "\n```cpp\n", public($code), "\n```\n\n";
}
