#!/usr/bin/env perl
# Prints docs/sql.md: the extension's functions, types, tables, views and settings.
#
# usage: docs_sql.pl SCRIPT      the PG* variables lead to a database with the extension, on a server that preloads it
#
# 1. The catalog says what there is: signatures, types, comments, privileges, settings. The installation script gives the
#    order, the sections, and the comments that stand before objects and at the head of sections (limits and errors).
# 2. A function, type, relation, column or setting without a comment is an error.
use strict;
use utf8;
use warnings;
use JSON::PP;

my ($script) = @ARGV or die "usage: docs_sql.pl SCRIPT\n";
binmode STDOUT, ':encoding(UTF-8)';
my @undescribed;

# Rows of a query as hashes.
sub rows
{
	my ($query) = @_;
	open my $psql, '-|', 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', "SET client_encoding = 'UTF8'", '-c',
	  "SELECT coalesce(json_agg(r), '[]') FROM ($query) r" or die "psql: $!";
	local $/;
	my $json = <$psql>;
	close $psql or die "the catalog cannot be read\n";
	return @{ decode_json($json) };
}

# The members of the extension in a catalog.
sub members
{
	my ($catalog) = @_;
	return "SELECT d.objid FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND x.extname = 'pg_doorbell'
		AND d.classid = '$catalog'::regclass";
}

sub described
{
	my ($what, $comment) = @_;
	push @undescribed, $what if !defined $comment || $comment eq '';
	return $comment // '';
}

sub sentence
{
	my ($text) = @_;
	$text = ucfirst $text;
	$text .= '.' unless $text =~ /[.!?…]$/;
	return $text;
}

sub cell
{
	my ($text) = @_;
	$text =~ s/\|/\\|/g;
	return $text;
}

# The script: @sections of {title, text}, and for "kind name" its section, place and header.
my @sections = ({ title => '', text => '' });
my %place;
{
	open my $in, '<:encoding(UTF-8)', $script or die "$script: $!\n";
	my (@comment, $number);
	while (my $line = <$in>)
	{
		if ($line =~ /^-- (.*?) -{10,}$/)
		{
			push @sections, { title => $1, text => '' };
			@comment = ();
		}
		elsif ($line =~ /^--(?: (.*))?$/)
		{
			push @comment, $1 // '';
		}
		elsif ($line =~ /^CREATE (?:OR REPLACE |UNLOGGED )?(FUNCTION|PROCEDURE|VIEW|TABLE|TYPE|DOMAIN|AGGREGATE) doorbell\.(\w+)/)
		{
			my ($kind, $name) = ($1, $2);
			my $object = ($kind =~ /FUNCTION|PROCEDURE|AGGREGATE/ ? 'function' : 'relation') . " $name";
			$place{$object} //= { section => $#sections, number => ++$number, header => join "\n", @comment };
			@comment = ();
		}
		else
		{
			$sections[-1]{text} .= join("\n", @comment) . "\n\n" if @comment && $#sections > 0;
			@comment = ();
		}
	}
}

# What is said of an object, by section.
my @said;
sub say_of
{
	my ($object, $name, $text) = @_;
	my $place = $place{$object} // { section => $#sections, number => 1_000_000, header => '' };
	$text .= "\n```text\n$place->{header}\n```\n" if $place->{header} ne '';
	push @{ $said[ $place->{section} ] }, [ $place->{number}, "### $name\n\n$text" ];
}

my %volatility = (i => 'immutable', s => 'stable', v => 'volatile');
my %parallel = (s => 'safe', r => 'restricted', u => 'unsafe');

for my $f (rows('SELECT proname AS name, oid::regprocedure::text AS id, pg_get_function_arguments(oid) AS arguments,
		pg_get_function_result(oid) AS result, provolatile AS volatility, proparallel AS parallel, prokind AS kind,
		obj_description(oid, \'pg_proc\') AS comment,
		(SELECT string_agg(CASE a.grantee WHEN 0 THEN \'PUBLIC\' ELSE a.grantee::regrole::text END, \', \' ORDER BY a.grantee)
		 FROM aclexplode(coalesce(proacl, acldefault(\'f\', proowner))) a WHERE a.grantee <> proowner) AS granted
	FROM pg_proc WHERE oid IN (' . members('pg_proc') . ') ORDER BY proname, 2'))
{
	my $arguments = $f->{arguments};
	$arguments =~ s/(DEFAULT [^,:]+)::[a-z ]+(?:\[\])?/$1/g;
	my $signature = "doorbell.$f->{name}($arguments)" . (defined $f->{result} ? " → $f->{result}" : '');
	my $comment = described("function $f->{id}", $f->{comment});
	my $traits = $f->{kind} eq 'p' ? 'procedure' : "$volatility{$f->{volatility}}, parallel $parallel{$f->{parallel}}";
	$traits .= ", granted to $f->{granted}" if defined $f->{granted};
	say_of("function $f->{name}", $f->{name}, "```sql\n$signature\n```\n\n" . sentence($comment) . " *($traits)*\n");
}

my %kind = (r => 'Table', p => 'Table', v => 'View', m => 'Materialized view', c => 'Type', S => 'Sequence');
for my $r (rows('SELECT relname AS name, relkind AS kind,
		coalesce(obj_description(oid, \'pg_class\'), obj_description(reltype, \'pg_type\')) AS comment,
		(SELECT json_agg(json_build_object(\'name\', attname, \'type\', format_type(atttypid, atttypmod),
			\'comment\', col_description(attrelid, attnum)) ORDER BY attnum)
		 FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS columns
	FROM pg_class c WHERE relkind IN (\'r\', \'p\', \'v\', \'m\', \'c\', \'S\') AND (oid IN (' . members('pg_class') . ')
		OR reltype IN (' . members('pg_type') . ')) ORDER BY relname'))
{
	my $text = "$kind{$r->{kind}}: " . described("$r->{name}", $r->{comment});
	$text .= "." unless $text =~ /[.!?…]$/;
	$text .= "\n\n";
	if ($r->{kind} eq 'c') # its attributes cannot have comments worth the name
	{
		$text .= "| field | type |\n|---|---|\n";
		$text .= "| `$_->{name}` | $_->{type} |\n" for @{ $r->{columns} };
	}
	elsif ($r->{kind} ne 'S')
	{
		$text .= "| column | type | |\n|---|---|---|\n";
		$text .= "| `$_->{name}` | $_->{type} | " . cell(described("column $r->{name}.$_->{name}", $_->{comment})) . " |\n"
		  for @{ $r->{columns} };
	}
	say_of("relation $r->{name}", $r->{name}, $text);
}

for my $t (rows('SELECT typname AS name, format_type(typbasetype, typtypmod) AS base, typtype AS kind, obj_description(oid, \'pg_type\') AS comment,
		(SELECT string_agg(quote_literal(enumlabel), \', \' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid) AS labels
	FROM pg_type t WHERE typtype NOT IN (\'c\', \'p\') AND typcategory <> \'A\' AND oid IN (' . members('pg_type') . ') ORDER BY typname'))
{
	my $what = $t->{kind} eq 'e' ? "enum: $t->{labels}" : $t->{kind} eq 'd' ? "domain over $t->{base}" : 'type';
	say_of("relation $t->{name}", $t->{name}, sentence(described("type $t->{name}", $t->{comment})) . " *($what)*\n");
}

my %context = (
	postmaster => 'set at the start of the server',
	sighup => 'set in the server\'s configuration, takes effect by a reload',
	superuser => 'set by superusers',
	'superuser-backend' => 'set at the start of a session, by superusers',
	backend => 'set at the start of a session',
	user => 'set by everybody, for a session or a transaction',
	internal => 'shown only');
my $settings = '';
my @settings = rows('SELECT * FROM pg_settings WHERE name LIKE \'doorbell.%\' ORDER BY name');
die "the server does not preload pg_doorbell: shared_preload_libraries\n"
  unless (rows('SELECT current_setting(\'shared_preload_libraries\') AS it'))[0]{it} =~ /\bpg_doorbell\b/;
for my $s (@settings)
{
	my $unit = defined $s->{unit} ? " $s->{unit}" : '';
	my $default = ($s->{boot_val} // '') eq '' ? 'empty' : "`$s->{boot_val}$unit`";
	my $values =
	    $s->{enumvals} ? 'one of ' . join(', ', map { "`$_`" } @{ $s->{enumvals} })
	  : defined $s->{min_val} ? "$s->{vartype}, $s->{min_val} to $s->{max_val}$unit"
	  : $s->{vartype};
	$settings .= "### $s->{name}\n\n" . sentence(described("setting $s->{name}", $s->{short_desc}));
	$settings .= " $s->{extra_desc}" if ($s->{extra_desc} // '') ne '';
	$settings .= "\n\nDefault $default; $values; " . ($context{ $s->{context} } // $s->{context}) . ".\n\n";
}

die map { "no comment: $_\n" } @undescribed if @undescribed;

print <<'END';
<!-- Made by `make docs` from the catalog and the installation script. -->
# SQL reference

Everything is in the schema `doorbell`. Nothing is granted to PUBLIC; how roles get what they need is in the
[README](../README.md).

END
for my $number (0 .. $#sections)
{
	my @objects = sort { $a->[0] <=> $b->[0] } @{ $said[$number] // [] };
	next unless @objects;
	print "## $sections[$number]{title}\n\n" if $sections[$number]{title} ne '';
	print "```text\n" . ($sections[$number]{text} =~ s/\s+$//r) . "\n```\n\n" if $sections[$number]{text} =~ /\S/;
	print $_->[1] =~ s/\s+$//r, "\n\n" for @objects;
}
print "## Settings\n\n", $settings =~ s/\s+$//r, "\n";
