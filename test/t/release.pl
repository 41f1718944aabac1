# META.json is what PGXN's specification wants, and all that names a version names the same.
use strict;
use warnings;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = $ENV{TESTDIR};
my $semver = qr/^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?$/;

# What is wrong with a META.json, by version 1.0.0 of the specification.
sub problems
{
	my ($meta) = @_;
	my @problems;
	my $wrong = sub { push @problems, $_[0] if $_[1] };
	my $text = sub { defined $_[0] && !ref $_[0] && $_[0] =~ /\S/ };
	for my $key (qw(name version abstract maintainer license provides meta-spec))
	{
		$wrong->("$key is missing", !exists $meta->{$key});
	}
	my %known = map { $_ => 1 } qw(name version abstract maintainer license provides meta-spec description generated_by
	  tags no_index prereqs release_status resources);
	$wrong->("$_ is unknown", !$known{$_} && !/^x_/i) for sort keys %$meta;
	for my $key (grep { exists $meta->{$_} } qw(abstract description generated_by))
	{
		$wrong->("$key is no text", !$text->($meta->{$key}));
	}
	$wrong->('name', ($meta->{name} // '') !~ m{^[^\s/\\[:cntrl:]]{2,}$});
	$wrong->('version', ($meta->{version} // '') !~ $semver);
	my @maintainers = ref $meta->{maintainer} eq 'ARRAY' ? @{ $meta->{maintainer} } : $meta->{maintainer};
	$wrong->('maintainer', !@maintainers || scalar grep { !$text->($_) } @maintainers);
	my %licenses = map { $_ => 1 } qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3 gpl_1
	  gpl_2 gpl_3 lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun zlib open_source
	  restricted unrestricted unknown);
	$wrong->('license', ref $meta->{license} ne 'HASH'
		  && scalar grep { !$licenses{ $_ // '' } } ref $meta->{license} ? @{ $meta->{license} } : $meta->{license});
	$wrong->('release_status', ($meta->{release_status} // 'stable') !~ /^(?:stable|testing|unstable)$/);
	$wrong->('meta-spec', ($meta->{'meta-spec'}{version} // '') ne '1.0.0');
	$wrong->('tags', scalar grep { !$text->($_) || length > 255 || m{[/\\[:cntrl:]]} } @{ $meta->{tags} // [] });

	$wrong->('provides', !%{ $meta->{provides} // {} });
	while (my ($name, $it) = each %{ $meta->{provides} // {} })
	{
		$wrong->("$name: version", ($it->{version} // '') !~ $semver);
		$wrong->("$name: file", !$text->($it->{file}) || !-e "$top/$it->{file}");
		$wrong->("$name: docfile", defined $it->{docfile} && !-e "$top/$it->{docfile}");
		$wrong->("$name: $_ is unknown", !/^(?:file|version|abstract|docfile)$|^x_/i) for sort keys %$it;
	}
	while (my ($phase, $relations) = each %{ $meta->{prereqs} // {} })
	{
		$wrong->("prereqs: $phase", $phase !~ /^(?:configure|build|test|runtime|develop)$|^x_/i);
		while (my ($relation, $versions) = each %$relations)
		{
			$wrong->("prereqs: $relation", $relation !~ /^(?:requires|recommends|suggests|conflicts)$|^x_/i);
			$wrong->("prereqs: $_", $versions->{$_} !~ /^0$|(?:[<>=!]=? *)?\d+\.\d+\.\d+/) for sort keys %$versions;
		}
	}
	return join ', ', @problems;
}

my $json = slurp_file("$top/META.json");
my $meta = decode_json($json);
is(problems($meta), '', 'META.json is valid');

# A wrong one is seen.
for my $case (
	[ sub { delete $_[0]{license} }, 'license is missing, license' ],
	[ sub { $_[0]{license} = [ 'postgresql', 'mine' ] }, 'license' ],
	[ sub { $_[0]{tags} = [ '' ] }, 'tags' ],
	[ sub { $_[0]{version} = '0.1' }, 'version' ],
	[ sub { $_[0]{licence} = 'mit' }, 'licence is unknown' ],
	[ sub { $_[0]{provides}{pg_doorbell}{file} = 'sql/none.sql' }, 'pg_doorbell: file' ],
	[ sub { $_[0]{'meta-spec'} = {} }, 'meta-spec' ],
	[ sub { $_[0]{prereqs}{runtime}{needs} = {} }, 'prereqs: needs' ])
{
	my $broken = decode_json($json);
	$case->[0]->($broken);
	is(problems($broken), $case->[1], "a META.json with a wrong \"$case->[1]\" is not");
}

my ($version) = slurp_file("$top/client/include/doorbell/doorbell.hpp") =~ /char \*version = "(.*)";/;
like($version, $semver, 'the library has a version');
is($meta->{version}, $version, 'META.json has it');
is($meta->{provides}{pg_doorbell}{version}, $version, 'its extension, too');
my ($short) = $version =~ /^(\d+\.\d+)\./;
my ($default) = slurp_file("$top/pg_doorbell.control") =~ /^default_version = '(.*)'/m;
is($default, $short, 'the control file has its first two numbers');
is($meta->{provides}{pg_doorbell}{file}, "sql/pg_doorbell--$short.sql", 'META.json names the script of that version');
my ($unreleased, $next) = slurp_file("$top/CHANGELOG.md") =~ /^## \[Unreleased\]\n(.*?)(?:^## \[(.*?)\]|\z)/ms;
my ($announced) = ($unreleased // '') =~ /^What will be (.*)\.$/m;
is($announced // $next, $version, 'CHANGELOG.md has it as what comes next or came last');
is((run_command([ "$top/build/doorbell", "--version" ]))[0], "doorbell $version", 'so does the command');

done_testing();
