#!/usr/bin/env bash
# Compares pg_doorbell with its alternatives on a private server with durable commits, and prints one table.
#
# BENCH_SUITES="append replay"    some of: append clients listeners batch replay latency (these), or all_streams, retention, sse
# BENCH_SECONDS=2    length of one measurement
# BENCH_ROUNDS=5     measurements of each; their order rotates, and ratios are taken within a round
# FLUSH_MS=0         makes each flush of the WAL take that much longer, see slow_flush.cpp
# BENCH_DIR=/var/tmp where the server's data directory is made: on a real disk, or commits cost nothing
# BENCH_OUT=build/bench.ndjson    every single measurement, one JSON object per line
#
# A suite is a file bench/suites/NAME.sh. It sets up its databases, measures round by round, `record`s each value, and
# says by `compare` which lines the table has. See docs/benchmarks.md.
# shellcheck source-path=SCRIPTDIR source=../test/tools/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/tools/lib.sh"
# shellcheck source=appending.sh
. "$top/bench/appending.sh"

suites=${BENCH_SUITES:-append clients listeners batch replay latency}
seconds=${BENCH_SECONDS:-2}
rounds=${BENCH_ROUNDS:-5}
flush=${FLUSH_MS:-0}
base=${BENCH_DIR:-/var/tmp}
results=$(realpath -m "${BENCH_OUT:-$top/build/bench.ndjson}")
programs=build/bench

for suite in $suites; do
	[ -f "$top/bench/suites/$suite.sh" ] || { echo "There is no suite $suite in bench/suites." >&2; exit 1; }
done
[ "$(stat -f -c %T "$base")" != tmpfs ] ||
	{ echo "$base is in memory: set BENCH_DIR to a directory on a disk." >&2; exit 1; }
workspace bench "$base"
give_inputs "$programs"/{listeners,latency,follow_all,sse_load,sse_publish,slow_flush.so}
log=$work/log/bench
mkdir -p "$(dirname "$results")"
: >"$results"

query() # DATABASE SQL
{
	run psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -c "$2" >>"$log"
}

rotated() # ROUND NAME...: the names, beginning with another one each round
{
	local shift=$((($1 + $# - 2) % ($# - 1)))
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

record() # SUITE LOAD NAME CLIENTS LISTENERS ROUND VALUE [KEY VALUE]...: round 0 is to warm up and is not recorded
{
	[ "$6" -eq 0 ] || json suite "\"$1\"" load "\"$2\"" name "\"$3\"" clients "$4" listeners "$5" \
		round "$6" value "$7" "${@:8}"
	[ ! -t 2 ] || printf '\r%-78s' "$1, $2, $3, $4 clients, $5 listeners: round $6" >&2
}

# OURS and THEIRS are "NAME CLIENTS LISTENERS"; UNIT is 1/s, us, or another; GOAL is like ">= 4" of the ratio,
# "value <= 5" of what is ours, or empty.
compare() # SUITE UNIT GOAL LOAD OURS THEIRS
{
	local ours theirs
	read -ra ours <<<"$5"
	read -ra theirs <<<"$6"
	json suite "\"$1\"" unit "\"$2\"" goal "\"$3\"" load "\"$4\"" \
		ours "[\"${ours[0]}\", ${ours[1]}, ${ours[2]}]" theirs "[\"${theirs[0]}\", ${theirs[1]}, ${theirs[2]}]"
}

goal() # PLAIN SLOW: the one that holds for the disk as it is, or the one for slow flushes
{
	if [ "$flush" = 0 ]; then echo "$1"; else echo "$2"; fi
}

beside() # LISTENERS DATABASE COMMAND...: beside that many sessions that listen there; the output goes to `output`
{
	local listeners=$1 database=$2
	shift 2
	[ "$listeners" -eq 0 ] || set -- "$programs/listeners" "$listeners" doorbell "$@"
	output=$work/log/output
	run env "PGDATABASE=$database" "$@" >"$output" 2>&1 || { cat "$output" >&2; exit 1; }
}

load() # LISTENERS DATABASE PGBENCH_ARGUMENT...: sets `rate`, in transactions per second, and `heard`
{
	beside "$1" "$2" pgbench --no-vacuum --protocol=prepared "${@:3}" "$2"
	rate=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$output")
	heard=$(sed -nE 's/^notifications = ([0-9]+).*/\1/p' "$output")
	heard=${heard:-0}
	if grep -q '^notifications.* fewest 0$' "$output"; then
		echo "$2: a session that listens heard nothing" >&2
		exit 1
	fi
}

flush_time() # how long one small write takes, in ms, until it is on the disk: over an existing file, like the WAL
{
	local file=$work/tmp/flush
	run dd if=/dev/zero of="$file" bs=8k count=200 conv=fsync 2>>"$log"
	run dd if=/dev/zero of="$file" bs=8k count=200 conv=notrunc oflag=dsync 2>&1 |
		sed -nE 's/.* ([0-9.]+) s, .*/\1/p' | awk '{ printf "%.2f", $1 / 200 * 1000 }'
	rm "$file"
}

run initdb -D "$work/tmp/data" -U postgres -A trust --no-locale -E UTF8 >"$log" 2>&1
cat >>"$work/tmp/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$work/tmp'
shared_preload_libraries = 'pg_doorbell'
max_connections = 220
# All that a suite writes fits in, and there is no checkpoint and no vacuum but those that we ask for.
shared_buffers = 4GB
checkpoint_timeout = 1h
max_wal_size = 32GB
min_wal_size = 2GB
autovacuum = off
CONF
preload=()
[ "$flush" = 0 ] || preload=(env "LD_PRELOAD=$work/in/$programs/slow_flush.so" "FLUSH_MS=$flush")
run "${preload[@]}" pg_ctl -D "$work/tmp/data" -l "$work/log/server" -w start >>"$log"
export PGHOST=$work/tmp PGUSER=postgres
# Files of the WAL that the next checkpoint keeps to be used again, as in a server that has run for a while.
query postgres "SELECT pg_logical_emit_message(false, 'bench', repeat('x', 100000000)) FROM generate_series(1, 15)"

{
	echo "$(postgres --version), $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	echo "data on $(df --output=fstype "$base" | tail -n 1)," \
		"a flush takes $(flush_time) ms$(goal '' ", made $flush ms longer for the WAL");" \
		"$rounds rounds of $seconds s; $(date +%F)"
} >"$work/log/machine"

for suite in $suites; do
	# shellcheck source=/dev/null
	. "$top/bench/suites/$suite.sh"
done
[ ! -t 2 ] || printf '\r%-78s\r' '' >&2
cat "$work/log/machine"
perl "$top/bench/report.pl" "$results"
