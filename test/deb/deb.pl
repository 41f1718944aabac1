# The Debian packages in build/deb are without errors, install with what they depend on into a bare Debian, work there, and leave it.
#
# Runs as root, because a system to chroot into is made by debootstrap, from where this machine's apt gets its packages. It
# is used in mount and process namespaces of its own, so nothing stays mounted or running.
use strict;
use warnings;
use File::Copy qw(copy);
use File::Temp;
use IPC::Run qw(run);
use Test::More;

my ($source, $here) = ($ENV{SOURCE}, "$ENV{TESTDIR}/test/deb");
my ($pg) = `$ENV{PG_CONFIG} --version` =~ /(\d+)/;

sub lines
{
	my ($out, $err);
	run [@_], '<', \undef, '>', \$out, '2>', \$err;
	diag "@_: $err" if $?;
	return split /\n/, $out;
}

my @debs = glob "$source/build/deb/*.deb";
my ($version) = `$source/build/deb/client/doorbell --version` =~ /doorbell (\S+)/;
my @names = map { m,/([^/_]+)_[^/]*$, } @debs;
is_deeply([ sort @names ], [ sort "postgresql-$pg-doorbell", qw(libdoorbell0 libdoorbell-dev doorbell) ], 'there are four packages');

my $found;
run [ 'lintian', '--allow-root', '--fail-on', 'error', @debs ], '>&', \$found;
is($?, 0, 'lintian finds no error') or diag $found;
note $found;
my %contents = map { my $deb = $_; $deb =~ m,/([^/_]+)_[^/]*$, ? ($1 => join "\n", lines('dpkg-deb', '--contents', $deb)) : () } @debs;
for my $case (
	[ "postgresql-$pg-doorbell", "/usr/lib/postgresql/$pg/lib/pg_doorbell.so", "/usr/share/postgresql/$pg/extension/pg_doorbell.control" ],
	[ 'libdoorbell0', 'libdoorbell.so.0 ->' ],
	[ 'libdoorbell-dev', '/usr/include/doorbell/doorbell.hpp', 'libdoorbell.a', 'libdoorbell.so ->', 'doorbell.pc', 'doorbell-config.cmake' ],
	[ 'doorbell', '/usr/bin/doorbell', '/man1/doorbell.1.gz', '/completions/doorbell', '/vendor-completions/_doorbell',
		'/doorbell.fish', '/lib/systemd/system/doorbell.service', './etc/default/doorbell' ])
{
	my ($name, @files) = @$case;
	like($contents{$name}, qr/\Q$_\E/, "$name has $_") for @files;
}


# A program that uses the library, built with what the two packages hold.
my $extracted = File::Temp->newdir;
lines('dpkg-deb', '--extract', $_, $extracted) for grep { /libdoorbell/ } @debs;
my ($libdir) = glob "$extracted/usr/lib/*";
{
	local $ENV{PKG_CONFIG_PATH} = "$libdir/pkgconfig";
	local $ENV{LD_LIBRARY_PATH} = $libdir;
	my @flags = split ' ', (lines(qw(pkg-config --cflags --libs doorbell)))[0];
	lines('g++', '-std=c++17', '-o', "$extracted/app", "$ENV{TESTDIR}/test/install/app.cpp", @flags);
	is(join("\n", lines("$extracted/app")), "$version 42-6a35e0e0", 'a program is built with the library, and runs');
}

my ($codename) = do { open my $in, '<', '/etc/os-release' or die; join('', <$in>) =~ /^VERSION_CODENAME=(\w+)/m };
my ($mirror) = grep { m,/debian/?$, } lines('apt-get', 'indextargets', '--format', '$(SITE)', 'Created-By: Packages');
my $root = File::Temp->newdir;
my @alone = qw(unshare --mount --propagation private --pid --fork --kill-child --mount-proc);
my $log;
run [ @alone, 'debootstrap', '--variant=minbase', $codename, $root, $mirror ], '>&', \$log;
is($?, 0, 'there is a bare Debian') or diag $log;
chmod 0755, $root;
mkdir "$root/packages";
copy($_, "$root/packages") or die "$_: $!" for @debs;
copy("$here/inside.sh", "$root/inside.sh") or die;
copy($_, "$root$_") for qw(/etc/resolv.conf /etc/hosts);
copy($_, "$root$_") for glob '/etc/apt/sources.list /etc/apt/sources.list.d/*';
my $out;
run [ @alone, 'bash', '-c', 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" env -i PATH="$PATH" bash /inside.sh "$1"',
	$root, $pg ], '<', \undef, '>&', \$out;
my %seen = $out =~ /^([a-z]+): ?(.*)$/mg;

is($seen{installed}, '0', 'apt installs the packages and what they depend on') or diag $out;
is($seen{packages}, join(' ', map { "$_ installed" } "postgresql-$pg-doorbell", qw(libdoorbell0 libdoorbell-dev doorbell)), 'all of them');
is($seen{loader}, '1', 'the loader knows the shared library');
is($seen{version}, "doorbell $version", 'the command runs');
is($seen{enabled}, '', 'the service is not enabled');
is($seen{server}, '0', 'a server starts with the extension preloaded');
like($seen{extension}, qr/^\d+\.\d+$/, 'CREATE EXTENSION succeeds');
is($seen{append}, '1', 'an event is appended');
like($seen{replay}, qr/^\{"stream":"orders:7","seq":1,"type":"paid",.*\}$/, 'and replayed');
like($seen{status}, qr/ ring mode +worker \(auto\) .*channel +heard /, 'doorbell status hears the ringer');
is($seen{healthy}, '0', 'and is content');
is($seen{purged}, '0', 'apt purges the packages') or diag $out;
is($seen{left}, '', 'and nothing of them is left');

done_testing();
