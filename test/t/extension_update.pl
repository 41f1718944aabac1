# An extension that was updated from any released version is the one that CREATE EXTENSION makes.
#
# The scripts are put into an installation of this test's own. As long as there is one version, what is tested with them
# is the test: versions made up from the current one, updated by right and by wrong scripts.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $scripts = "$ENV{TESTDIR}/sql";
my ($current) = slurp_file("$ENV{TESTDIR}/pg_doorbell.control") =~ /^default_version = '(.*)'/m;

# A copy of the installation: PostgreSQL finds its files relative to its programs, which must be real files.
my %from = map { my ($path) = run_command([ 'pg_config', "--$_" ]); ($_ => $path) } qw(bindir pkglibdir sharedir);
my @parts = split m{/}, $from{bindir};
pop @parts until index("$from{sharedir}/", join('/', @parts) . '/') == 0;
my $old_root = join '/', @parts;
my $root = PostgreSQL::Test::Utils::tempdir() . '/installation';
my %to = map { ($_ => $root . substr($from{$_}, length $old_root)) } keys %from;
make_path(map { dirname($_) } values %to);
make_path($to{bindir});
system_or_bail('cp', '-L', (map { "$from{bindir}/$_" } qw(postgres initdb pg_ctl pg_dump psql pg_config)), $to{bindir});
system_or_bail('cp', '-rs', $from{$_}, $to{$_}) for qw(pkglibdir sharedir);
my $extension = "$to{sharedir}/extension";
system_or_bail('sh', '-c', "cp --remove-destination -L '$from{sharedir}'/extension/pg_doorbell.control '$extension'; rm '$extension'/pg_doorbell--*");

my $node = PostgreSQL::Test::Cluster->new('main', install_path => dirname($to{bindir}));
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
$node->start;
my $databases = 0;

# Everything that pg_dump says of the objects of an extension that these statements made, once they are objects like any
# others; and what it does not say.
sub image
{
	my ($statements) = @_;
	my $database = 'd' . ++$databases;
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	$node->safe_psql($database, $statements);
	my $image = $node->safe_psql($database, q{
		SELECT extname, extversion, extrelocatable, extnamespace::regnamespace FROM pg_extension WHERE extname = 'pg_doorbell';
		SELECT 'dumped', c.table::regclass::text, c.condition FROM pg_extension, unnest(extconfig, extcondition) c("table", condition) ORDER BY 2;
		SELECT 'member', pg_describe_object(classid, objid, 0) FROM pg_depend
			WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_doorbell') AND deptype = 'e' ORDER BY 2;
		SELECT 'column', attrelid::regclass::text, attname, attnum FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
			WHERE relnamespace = 'doorbell'::regnamespace AND attnum > 0 ORDER BY 2, 4;
	});
	$node->safe_psql($database, q{
		DELETE FROM pg_depend WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_doorbell') AND deptype = 'e';
		DELETE FROM pg_init_privs;
		DELETE FROM pg_extension WHERE extname = 'pg_doorbell';
	});
	my ($dump) = run_command([ 'pg_dump', '--schema-only', '--dbname', $node->connstr($database) ]);
	$dump =~ s/^\\(?:un)?restrict .*\n//mg;
	$node->safe_psql('postgres', "DROP DATABASE $database");
	return "$image\n$dump\n";
}

# The lines in which an updated extension differs from a fresh one.
sub difference
{
	my ($from) = @_;
	my $fresh = PostgreSQL::Test::Utils::tempdir() . '/fresh';
	my $updated = PostgreSQL::Test::Utils::tempdir() . '/updated';
	append_to_file($fresh, image('CREATE EXTENSION pg_doorbell'));
	append_to_file($updated, image("CREATE EXTENSION pg_doorbell VERSION '$from'; ALTER EXTENSION pg_doorbell UPDATE"));
	my ($out, $err) = run_command([ 'diff', $fresh, $updated ]);
	return join "\n", grep { /^[<>] ./ } split /\n/, $out;
}

sub install
{
	copy($_, $extension) or die "$_: $!" for @_;
}

# Released versions.
install(glob "$scripts/*.sql");
like(image('CREATE EXTENSION pg_doorbell'), qr/^CREATE FUNCTION doorbell\.append\(.*^member\|function doorbell|^member\|.*^CREATE FUNCTION doorbell\.append\(/ms,
	'an extension is seen with its members');
my %base = map { basename($_) =~ /^pg_doorbell--([^-]+)\.sql$/ ? ($1 => 1) : () } glob "$scripts/*.sql";
ok($base{$current}, "there is a script that makes version $current");
for my $from (sort grep { $_ ne $current } keys %base)
{
	is(difference($from), '', "an update from version $from to $current equals a fresh installation");
}
for my $step (map { basename($_) } glob "$scripts/*--*--*.sql")
{
	my ($from) = $step =~ /--(.+)--/;
	ok($base{$from}, "$step begins at a version that there is a script for");
}

# A version without the function ring. Its update is right with all of the statements that the current script has.
my $script = slurp_file("$scripts/pg_doorbell--$current.sql");
my ($create) = $script =~ /^(CREATE FUNCTION doorbell\.ring\(.*?;\n)/ms;
my ($comment) = $script =~ /^(COMMENT ON FUNCTION doorbell\.ring\(.*?;\n)/ms;
my $revoke = "REVOKE ALL ON FUNCTION doorbell.ring FROM PUBLIC;\n";
sub without
{
	my ($text, @parts) = @_;
	for my $part (@parts)
	{
		$text =~ s/\Q$part\E// or die "not there: $part";
	}
	return $text;
}

sub update_by
{
	my ($base, $update) = @_;
	my %files = ("pg_doorbell--0.0.sql" => $base, "pg_doorbell--0.0--$current.sql" => $update);
	while (my ($name, $text) = each %files)
	{
		unlink "$extension/$name";
		append_to_file("$extension/$name", $text);
	}
	return difference('0.0');
}

my $base = without($script, $create, $comment);
is(update_by($base, $create . $comment . $revoke), '', 'an update that adds the function ring is found to be right');
like(update_by($base, ''), qr/^< CREATE FUNCTION doorbell\.ring\(/m, 'one that forgets the function is not');
like(update_by($base, $create . $comment), qr/^< REVOKE ALL ON FUNCTION doorbell\.ring\(/m, 'nor one that leaves it to PUBLIC');
like(update_by($base, $create . $revoke), qr/^< COMMENT ON FUNCTION doorbell\.ring\(/m, 'nor one without the comment');
like(update_by($base, ($create =~ s/\bVOLATILE\b/STABLE/r) . $comment . $revoke), qr/^> .*\bSTABLE\b/m,
	'nor one whose function has another volatility');
like(update_by($base, $create . $comment . $revoke . 'DROP INDEX doorbell.event_xid_idx;'), qr/^< CREATE INDEX event_xid_idx /m,
	'nor one that loses an index');
like(update_by(without($base, q{SELECT pg_catalog.pg_extension_config_dump('doorbell.stream', '');}), $create . $comment . $revoke),
	qr/^< dumped\|doorbell\.stream\|/m, 'nor one after which a dump lacks a table');
like(update_by($base, $create . $comment . $revoke . 'ALTER TABLE doorbell.stream ADD extra int; ALTER TABLE doorbell.stream DROP extra;'),
	qr/^> column\|doorbell\.stream\|\.+pg\.dropped/m, 'nor one that leaves a dropped column');

$node->stop;
done_testing();
