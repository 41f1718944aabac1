# The references in docs are those of this server and these headers; what has no comment cannot be forgotten.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Doorbell;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = $ENV{TESTDIR};
my ($version) = slurp_file("$top/pg_doorbell.control") =~ /^default_version = '(.*)'/m;
my $script = "$top/sql/pg_doorbell--$version.sql";
my $node = new_node('main', conf => "shared_preload_libraries = 'pg_doorbell'");
@ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

# Exit status, stdout and stderr of a generator.
sub made_by
{
	my ($generator, $argument) = @_;
	my ($out, $err);
	IPC::Run::run [ 'perl', "$top/test/tools/$generator", $argument ], '>', \$out, '2>', \$err;
	return ($? >> 8, $out, $err);
}

# What differs between the file and the text.
sub difference
{
	my ($file, $text) = @_;
	my $out;
	IPC::Run::run [ 'diff', '-u', $file, '-' ], '<', \$text, '>', \$out, '2>&1';
	return $out;
}

my ($status, $sql, $err) = made_by('docs_sql.pl', $script);
is("$status$err", '0', 'every function, type, relation, column and setting has a comment');
is(difference("$top/docs/sql.md", $sql), '', 'docs/sql.md is what `make docs` writes');
my ($library_status, $library, $library_err) = made_by('docs_library.pl', "$top/client/include/doorbell");
is("$library_status$library_err", '0', 'every header opens with a comment');
is(difference("$top/docs/library.md", $library), '', 'docs/library.md is what `make docs` writes');

# That would not be so if
$node->safe_psql('postgres', q{CREATE FUNCTION doorbell.another(a int, b text DEFAULT 'x') RETURNS int LANGUAGE sql AS 'SELECT 1';
	ALTER EXTENSION pg_doorbell ADD FUNCTION doorbell.another});
($status, $sql, $err) = made_by('docs_sql.pl', $script);
isnt($status, 0, 'a function without a comment is refused');
is($err, "no comment: function doorbell.another(integer,text)\n", 'and named');
$node->safe_psql('postgres', q{COMMENT ON FUNCTION doorbell.another IS 'another one'});
($status, $sql, $err) = made_by('docs_sql.pl', $script);
like(difference("$top/docs/sql.md", $sql), qr/^\+doorbell\.another\(a integer, b text DEFAULT 'x'\) → integer\n(?:\+.*\n)+\+Another one\. /m,
	'with a comment, it is in the reference');
$node->safe_psql('postgres', 'ALTER EXTENSION pg_doorbell DROP FUNCTION doorbell.another; COMMENT ON COLUMN doorbell.stats.appends IS NULL');
is((made_by('docs_sql.pl', $script))[2], "no comment: column stats.appends\n", 'so is a column without a comment');
my $headers = PostgreSQL::Test::Utils::tempdir();
append_to_file("$headers/doorbell.hpp", "#pragma once\n");
like((made_by('docs_library.pl', $headers))[2], qr/^doorbell\.hpp does not open with a comment/, 'and a header that says nothing');

# The manual page takes what subcommands do from docs/command.md.
my ($help) = run_command([ "$top/build/doorbell", '--help' ]);
my ($list) = $help =~ /^Subcommands:\n(.*?)(?:\n\n|\z)/ms;
my @subcommands = $list =~ /^  (\w[\w-]*)/mg;
cmp_ok(scalar @subcommands, '>', 5, 'the command has subcommands');
my $text = slurp_file("$top/docs/command.md");
like($text, qr/^\*\*\Q$_\E\*\* /m, "docs/command.md says what `doorbell $_` does") for @subcommands;

$node->stop;
done_testing();
