#!/usr/bin/env bash
# Prints the pg_config to build with, or nothing: the first that belongs to PostgreSQL 15 and has the files for building
# extensions, else the first of any version that has them. (A machine with libpq-dev alone has a pg_config, often of
# another version, that can build nothing.)
set -u

any=
for candidate in "$(command -v pg_config)" /usr/lib/postgresql/{15,18,17,16}/bin/pg_config; do
	[ -f "$("${candidate:-false}" --pgxs 2>/dev/null)" ] || continue
	case $("$candidate" --version) in
	"PostgreSQL 15"*) echo "$candidate" && exit ;;
	esac
	any=${any:-$candidate}
done
echo "$any"
