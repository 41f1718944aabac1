#!/usr/bin/env bash
# make docs: writes the references docs/sql.md, from the catalog of a private server, and docs/library.md, from the headers.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

workspace docs
give_inputs pg_doorbell.control sql client/include test/tools
run initdb -D "$work/tmp/data" -U postgres -A trust --no-locale -E UTF8 -N >"$work/log/initdb"
start server postgres -D "$work/tmp/data" -k "$work/tmp" -c listen_addresses= -c shared_preload_libraries=pg_doorbell
export PGHOST=$work/tmp PGUSER=postgres PGDATABASE=postgres
for ((waited = 0; waited < 600; waited++)); do
	! run pg_isready -q || break
	sleep 0.1
done
run psql -XAtq -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION pg_doorbell'
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$top/pg_doorbell.control")
run perl test/tools/docs_sql.pl "sql/pg_doorbell--$version.sql" >"$work/sql.md"
run perl test/tools/docs_library.pl client/include/doorbell >"$work/library.md"
cp "$work/sql.md" "$work/library.md" "$top/docs/"
