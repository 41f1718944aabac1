# What `make install` puts below PREFIX and DESTDIR is complete, can be used from another place than it was installed to,
# and goes away by `make uninstall`.
#
# SOURCE is the source tree, which is built; TESTDIR has a copy of the tests. Runs as whoever has built it.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Find;
use File::Temp;
use IPC::Run qw(run);
use Test::More;

my ($source, $here) = ($ENV{SOURCE}, "$ENV{TESTDIR}/test/install");
my $tree = abs_path(File::Temp->newdir(CLEANUP => 0));
my $prefix = '/opt/doorbell';
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL PKG_CONFIG_PATH CMAKE_PREFIX_PATH)};

# Whether a command succeeds; its output goes to the log. `output` is its stdout, without the last line feed.
sub succeeds
{
	my $log;
	run [@_], '<', \undef, '>&', \$log and return 1;
	diag $log;
	return 0;
}

sub output
{
	my ($out, $err);
	run [@_], '<', \undef, '>', \$out, '2>', \$err or diag $err;
	chomp $out;
	return $out;
}

sub slurp
{
	my ($file) = @_;
	open my $in, '<', $file or return '';
	local $/;
	return <$in>;
}

sub files # below the tree: all that is no directory
{
	my @files;
	find({ no_chdir => 1, wanted => sub { push @files, substr $_, length $tree if -l || !-d } }, $tree);
	return sort @files;
}

my @make = ('make', '-s', '-C', $source, "PG_CONFIG=$ENV{PG_CONFIG}", "DESTDIR=$tree", "PREFIX=$prefix");
ok(succeeds(@make, 'install'), 'make install succeeds');

my ($version) = slurp("$source/client/include/doorbell/doorbell.hpp") =~ /char \*version = "(.*)";/;
my ($major) = $version =~ /^(\d+)/;
my %is_there = map { $_ => 1 } files();
my ($sharedir, $pkglibdir) = map { output($ENV{PG_CONFIG}, $_) } qw(--sharedir --pkglibdir);
my @headers = map { s,.*/,,r } glob "$source/client/include/doorbell/*.{h,hpp}";
my @scripts = map { s,.*/,,r } glob "$source/sql/*--*.sql";
for my $file ("$pkglibdir/pg_doorbell.so", (map { "$sharedir/extension/$_" } 'pg_doorbell.control', @scripts),
	(map { "$prefix/$_" } 'bin/doorbell', 'share/man/man1/doorbell.1', 'share/bash-completion/completions/doorbell',
		'share/zsh/site-functions/_doorbell', 'share/fish/vendor_completions.d/doorbell.fish', 'lib/systemd/system/doorbell.service',
		(map { "include/doorbell/$_" } @headers)),
	(map { "$prefix/lib/$_" } 'libdoorbell.a', 'libdoorbell.so', "libdoorbell.so.$major", "libdoorbell.so.$version",
		'pkgconfig/doorbell.pc', 'cmake/doorbell/doorbell-config.cmake', 'cmake/doorbell/doorbell-config-version.cmake'))
{
	ok($is_there{$file}, "there is $file");
}
like(slurp("$tree$prefix/lib/systemd/system/doorbell.service"), qr/^ExecStart=\Q$prefix\E\/bin\/doorbell serve /m,
	'the systemd unit runs the command that was installed');
is(output("$tree$prefix/bin/doorbell", '--version'), "doorbell $version", 'the command runs');

# Programs that use the library, where it was installed to and somewhere else.
my $says = "$version 42-6a35e0e0"; # docs/protocol.md
for my $root ("$tree$prefix", "$tree/some/where else/else")
{
	if (!-d $root)
	{
		mkdir $_ for "$tree/some", "$tree/some/where else";
		rename "$tree$prefix", $root or die "$root: $!";
	}
	my $built = File::Temp->newdir;
	{
		local $ENV{CMAKE_PREFIX_PATH} = $root;
		ok(succeeds('cmake', '-S', $here, '-B', $built, "-DVERSION=$version") && succeeds('cmake', '--build', $built),
			"find_package(doorbell) finds it in $root");
		is(output("$built/app_$_"), $says, "a program that links doorbell::$_ runs") for qw(shared static);
		isnt(run([ 'cmake', '-S', $here, '-B', "$built/other", '-DVERSION=99.0.0' ], '>&', \my $log), 1, 'another version is not found');
	}
	next if $root =~ / /; # pkg-config and blanks are another matter
	local $ENV{PKG_CONFIG_PATH} = "$root/lib/pkgconfig";
	is(output(qw(pkg-config --modversion doorbell)), $version, 'pkg-config knows its version');
	my @shared = split ' ', output(qw(pkg-config --cflags --libs doorbell));
	ok(succeeds('g++', '-std=c++17', '-o', "$built/by_pkg_config", "$here/app.cpp", @shared), 'a program is built by pkg-config');
	local $ENV{LD_LIBRARY_PATH} = "$root/lib";
	is(output("$built/by_pkg_config"), $says, 'and runs');
	ok(succeeds('gcc', '-std=c11', '-o', "$built/in_c", "$here/app.c", @shared), 'so is one in C');
	is(output("$built/in_c"), "$version -1", 'and runs');
	my @static = map { $_ eq '-ldoorbell' ? '-l:libdoorbell.a' : $_ } split ' ', output(qw(pkg-config --cflags --libs doorbell libpq));
	ok(succeeds('g++', '-std=c++17', '-o', "$built/static", "$here/app.cpp", @static), 'so is one with the static library');
	delete $ENV{LD_LIBRARY_PATH};
	is(output("$built/static"), $says, 'and runs without it');
}
rename "$tree/some/where else/else", "$tree$prefix" or die;

# The manual page and the completions have every option that the command explains.
my $share = "$tree$prefix/share";
my $page = "$share/man/man1/doorbell.1";
my $bash = "$share/bash-completion/completions/doorbell";
my $zsh = slurp("$share/zsh/site-functions/_doorbell");
my $fish = slurp("$share/fish/vendor_completions.d/doorbell.fish");
run [qw(groff -k -man -Tutf8 -ww -z), $page], '>&', \my $warnings;
is($warnings, '', 'the manual page is formatted without a warning');
my $manual = slurp($page) =~ s/\\-/-/gr;

# What bash offers for the last of the words.
sub offers
{
	my @words = split / /, $_[0], -1;
	return ' ' . join(' ', split /\n/, output('bash', '--norc', '-c',
		'source "$0" && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _doorbell 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"',
		$bash, @words)) . ' ';
}
my ($list) = output("$tree$prefix/bin/doorbell", '--help') =~ /^Subcommands:\n(.*?)(?:\n\n|\z)/ms;
my @subcommands = $list =~ /^  (\w[\w-]*)/mg;
cmp_ok(scalar @subcommands, '>', 5, 'the command has subcommands');
for my $sub (@subcommands)
{
	like($manual, qr/^\.SS \Q$sub\E$/m, "the manual page explains $sub");
	like(offers('doorbell '), qr/ \Q$sub\E /, 'bash offers it');
	my ($options) = output("$tree$prefix/bin/doorbell", $sub, '--help') =~ /^Options:\n(.*)/ms;
	my @options = grep { $_ ne '--help' } $options =~ /^  (?:-\w,)?(--[\w-]+)/mg;
	my ($part) = $manual =~ /^\.SS \Q$sub\E\n(.*?)(?=^\.S[HS] )/ms;
	my ($zsh_part) = $zsh =~ /^\t\Q$sub\E\)\n(.*?)^\t\t;;/ms;
	my $offered = offers("doorbell $sub -");
	is(join(' ', grep { $part !~ /^\\fB(?:-\w\\fR, \\fB)?$_\\fR/m } @options), '', "the manual page explains each option of $sub");
	is(join(' ', grep { $offered !~ / $_ / } @options), '', 'bash offers them');
	is(join(' ', grep { $zsh_part !~ /'\*?$_(?:=|\[)/ } @options), '', 'so does zsh');
	is(join(' ', grep { my $name = substr $_, 2; $fish !~ /seen_subcommand_from $sub' .*-l $name / } @options), '', 'so does fish');
}
is(offers('doorbell re'), ' replay ', 'bash completes subcommands');
is(offers('doorbell --dsn tail serve --jwt-al'), ' --jwt-alg ', 'options, also behind those of the command');
is(offers('doorbell serve --jwt-alg '), ' HS256 RS256 EdDSA ', 'the values of an option');
is(offers("doorbell import s $here/app.cp"), " $here/app.cpp ", 'files');
is(offers('doorbell append s t --event-id '), '  ', 'and nothing where it knows nothing');

# Others may have put files beside.
my @foreign = ("$prefix/include/doorbell/other.hpp", "$prefix/share/man/man1/other.1", "$sharedir/extension/other.control");
for my $file (@foreign)
{
	open my $out, '>', "$tree$file" or die "$file: $!";
}
ok(succeeds(@make, 'uninstall'), 'make uninstall succeeds');
is_deeply([ files() ], [ sort @foreign ], 'what is left are files of others');
unlink map { "$tree$_" } @foreign;
ok(succeeds(@make, 'install') && succeeds(@make, 'uninstall'), 'once more');
is_deeply([ files() ], [], 'nothing is left');
ok(succeeds(@make, 'uninstall'), 'make uninstall of nothing is no error');
succeeds('rm', '-r', $tree);

done_testing();
