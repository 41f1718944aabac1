#!/usr/bin/env perl
# Prints docs/library.md: the public headers of libdoorbell: what they open with as text, what they declare as code.
#
# usage: docs_library.pl DIRECTORY      with doorbell.hpp in it, and the others
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

-e "$directory/doorbell.hpp" or die "there is no doorbell.hpp in $directory\n";
my @headers = ('doorbell.hpp', grep { $_ ne 'doorbell.hpp' } map { s,.*/,,r } sort glob("$directory/*.hpp"), sort glob("$directory/*.h"));

print <<'END';
<!-- Made by `make docs` from the headers in client/include/doorbell. -->
# Library reference

`libdoorbell` is C++17 on libpq, with a C interface. `pkg-config doorbell`, or in CMake `find_package(doorbell)` and the target
`doorbell::shared` or `doorbell::static`.

END
for my $name (@headers)
{
	my ($comment, $code) = slurp($name) =~ m{\A((?://[^\n]*\n)+|/\*.*?\*/\s*)(?:#pragma once|#ifndef \w+\n#define \w+)\n(.*)\z}s
	  or die "$name does not open with a comment and an include guard\n";
	$comment =~ s{^(?:// ?|/\* ?| \* ?)|\s*\*/\s*\z}{}gm;
	$comment =~ s/\s*\z/\n/;
	$code =~ s/^#include [^\n]*\n//gm;
	$code =~ s/\n#endif[^\n]*\s*\z// if slurp($name) !~ /^#pragma once/m;
	$code =~ s/\A\s+|\s+\z//g;
	my $language = $name =~ /\.h$/ ? 'c' : 'cpp';
	print "## `<doorbell/$name>`\n\n", markdown($comment), "\n```$language\n", public($code), "\n```\n", $name eq $headers[-1] ? '' : "\n";
}
