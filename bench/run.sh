#!/usr/bin/env bash
# Compares pg_doorbell with its alternatives on a private server with durable commits, and prints one table.
#
# BENCH_SECONDS=5    length of one measurement
# BENCH_ROUNDS=5     measurements of each; their order rotates, and ratios are taken within a round
# BENCH_DIR=/var/tmp where the server's data directory is made: on a real disk, or commits cost nothing
# BENCH_OUT=build/bench.ndjson    every single measurement, one JSON object per line
#
# A suite is a file bench/NAME.sh. It sets up its databases, calls `measure` round by round, and says by `compare` which
# lines the table has. See bench/README.md.
# shellcheck source-path=SCRIPTDIR source=../test/tools/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/tools/lib.sh"

seconds=${BENCH_SECONDS:-5}
rounds=${BENCH_ROUNDS:-5}
base=${BENCH_DIR:-/var/tmp}
results=$(realpath -m "${BENCH_OUT:-$top/build/bench.ndjson}")

[ "$(stat -f -c %T "$base")" != tmpfs ] || { echo "$base is in memory: set BENCH_DIR to a directory on a disk." >&2; exit 1; }
workspace bench "$base"
give_inputs
log=$work/log/bench
mkdir -p "$(dirname "$results")"
: >"$results"

query() # DATABASE SQL
{
	run psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -c "$2" >>"$log"
}

rotated() # ROUND NAME...: the names, beginning with another one each round
{
	local shift=$((($1 - 1) % ($# - 1)))
	shift
	echo "${@:shift+1}" "${@:1:shift}"
}

json() # KEY VALUE...: one line of the results; values are written as they are
{
	local line=
	while [ $# -gt 0 ]; do
		line+=", \"$1\": $2"
		shift 2
	done
	echo "{${line#, }}" >>"$results"
}

measure() # SUITE CASE NAME ROUND PGBENCH_ARGUMENT...: round 0 is not recorded
{
	local suite=$1 case=$2 name=$3 round=$4 rate
	shift 4
	run pgbench --no-vacuum --protocol=prepared "$@" >"$work/log/pgbench" 2>&1 ||
		{ cat "$work/log/pgbench" >&2; exit 1; }
	rate=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/log/pgbench")
	[ "$round" -eq 0 ] || json suite "\"$suite\"" case "\"$case\"" name "\"$name\"" round "$round" per_second "$rate"
	[ ! -t 2 ] || printf '\r%-60s' "$suite, $case, $name: round $round" >&2
}

compare() # SUITE CASE UNIT OURS THEIRS [GOAL]: unit per_second (more is better) or seconds (less is)
{
	json suite "\"$1\"" case "\"$2\"" unit "\"$3\"" ours "\"$4\"" theirs "\"$5\"" goal "\"${6:-}\""
}

flush_ms() # how long one small write takes until it is on the disk
{
	run dd if=/dev/zero of="$work/tmp/flush" bs=8k count=200 oflag=dsync 2>&1 | sed -nE 's/.* ([0-9.]+) s, .*/\1/p' |
		awk '{ printf "%.2f", $1 / 200 * 1000 }'
}

run initdb -D "$work/tmp/data" -U postgres -A trust --no-locale -E UTF8 >"$log" 2>&1
cat >>"$work/tmp/data/postgresql.conf" <<EOF
listen_addresses = ''
unix_socket_directories = '$work/tmp'
shared_buffers = 1GB
max_connections = 200
# No checkpoint and no vacuum but those between the measurements.
checkpoint_timeout = 1h
max_wal_size = 16GB
autovacuum = off
EOF
run pg_ctl -D "$work/tmp/data" -l "$work/log/server" -w start >>"$log"
export PGHOST=$work/tmp PGUSER=postgres

{
	echo "$(postgres --version), $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	echo "data on $(df --output=fstype "$base" | tail -n 1), a flush takes $(flush_ms) ms; $rounds rounds of $seconds s; $(date +%F)"
} >"$work/log/machine"

for suite in "$top"/bench/*.sh; do
	# shellcheck source=/dev/null
	[ "$suite" = "$top/bench/run.sh" ] || . "$suite"
done
[ ! -t 2 ] || printf '\r%-60s\r' '' >&2
cat "$work/log/machine"
perl "$top/bench/report.pl" "$results"
