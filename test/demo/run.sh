#!/usr/bin/env bash
# The demo itself, in a working directory with the programs of a private PostgreSQL first in PATH.
#
# 1. pgbench, a workload that nobody here wrote, changes its own tables; triggers turn each change into an event.
# 2. One `doorbell tail` shows them on the terminal, a few a second; another one records all of them.
# 3. When pgbench has ended and all has arrived, SQL compares the record with the table: each event once, in order.
set -euo pipefail
seconds=$DEMO_SECONDS
doorbell=build/doorbell
export PGHOST=$TMPDIR PGUSER=postgres PGDATABASE=demo

say()
{
	printf '\n%s\n' "$*"
}

say "A private PostgreSQL, pgbench's tables, and triggers that turn each change into an event"
initdb -D "$TMPDIR/data" -U postgres -A trust --no-locale -E UTF8 -N >"$TMPDIR/initdb.log"
cat >>"$TMPDIR/data/postgresql.conf" <<EOF
listen_addresses = ''
unix_socket_directories = '$TMPDIR'
shared_preload_libraries = 'pg_doorbell'
EOF
pg_ctl -D "$TMPDIR/data" -l "$TMPDIR/server.log" -w start >/dev/null
createdb demo
pgbench --initialize --quiet >/dev/null 2>&1
psql -XAtq -v ON_ERROR_STOP=1 -f test/demo/setup.sql
grep -A1 '^CREATE TRIGGER' test/demo/setup.sql

say "pgbench runs for $seconds s with 8 clients; doorbell tail --all follows it (some lines of many)"
"$doorbell" tail --all --after 0 --format json --summary >recorded.ndjson 2>summary &
recorder=$!
"$doorbell" tail --all --after 0 --format text > >(
	perl -MTime::HiRes=time -ne '
		BEGIN { $| = 1; @kinds = qw(account teller branch history) }
		next if time < $next || !/  $kinds[0]:/;
		s/ {3,}/ /g; # the filler of the accounts
		print;
		push @kinds, shift @kinds;
		$next = time + 0.3'
) 2>/dev/null &
shower=$!
pgbench --no-vacuum --client=8 --jobs=2 --time="$seconds" >pgbench.log 2>&1 || { cat pgbench.log >&2; exit 1; }
transactions=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' pgbench.log)

appended=$(psql -XAtq -c 'SELECT count(*) FROM doorbell.event')
for ((waited = 0; waited < 600; waited++)); do # what is missing after a minute does not come any more
	[ "$(wc -l <recorded.ndjson)" -lt "$appended" ] || break
	sleep 0.1
done
kill -INT "$recorder" "$shower"
wait "$recorder" "$shower" || true

{
	cat test/demo/check.sql
	printf '%s\n' '\echo :appended :delivered :missing :doubled :misplaced :altered'
} >"$TMPDIR/check.sql"
read -r appended delivered missing doubled misplaced altered < <(psql -XAtq -v ON_ERROR_STOP=1 -f "$TMPDIR/check.sql")

say "Summary"
printf '  %-34s %10s\n' 'transactions committed by pgbench' "$transactions" 'events they appended (4 each)' "$appended" \
	'events delivered by doorbell tail' "$delivered" 'missing' "$missing" 'delivered twice' "$doubled" \
	'out of order' "$misplaced" 'altered' "$altered"
sed 's/^/  /' summary
pg_ctl -D "$TMPDIR/data" -m fast -w stop >/dev/null

if [ "$appended" -eq $((transactions * 4)) ] && [ "$delivered" -eq "$appended" ] && [ "$transactions" -gt 0 ] &&
	[ $((missing + doubled + misplaced + altered)) -eq 0 ]; then
	say "Every committed event was delivered once, and in order."
else
	say "FAILED: what was delivered is not what was committed."
	exit 1
fi
