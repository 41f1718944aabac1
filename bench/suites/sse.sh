# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Server-Sent Events to many: `doorbell serve`, one thread, against nchan, one nginx worker. Both servers run all the
# time, and only one has anything to do. bench/sse_load.cpp counts what arrives, bench/sse_publish.cpp publishes.
#
# 1. The first core is the server's, and nobody else's. The load generator, the publisher and PostgreSQL share the rest.
# 2. Each round has new server processes, so that memory is measured from the start.
# 3. A path is the same at both: /v1/streams/{n}.
competitors=(serve nchan)
declare -A listening=([serve]=1 [nchan]=0) # sessions that listen in PostgreSQL
declare -A address pid
connections=5000
many=(1 100 1000 "$connections")
path='/v1/streams/{n}'
memory_bound=$(((12 + 2 * 16) * 1024 + 20 * 256)) # kB, as docs/operations.md has it, for 20 readers that do not keep up

first_core=()
other_cores=()
if [ "$(nproc)" -gt 1 ]; then
	first_core=(taskset --cpu-list 0)
	other_cores=(taskset --cpu-list "1-$(($(nproc) - 1))")
	"${other_cores[@]/--cpu-list/-pc}" "$(head -n 1 "$work/tmp/data/postmaster.pid")" >>"$log" # and its children to come
fi
ulimit -Sn "$(ulimit -Hn)"
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge $((connections + 2000)) ] ||
	{ echo "This takes $((connections + 2000)) open files, and $(ulimit -n) are allowed." >&2; exit 1; }

give_inputs build/doorbell
# The module insists on this directory, which nginx makes when root starts it for the first time.
[ -d /var/lib/nginx/body ] || [ "$(id -u)" != 0 ] || mkdir -p /var/lib/nginx/body

answers() # HOST:PORT
{
	(exec 3<>"/dev/tcp/${1/:/\/}") 2>/dev/null
}

wait_for() # WHAT COMMAND...: until it succeeds
{
	local deadline=$((SECONDS + 20)) what=$1
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || { echo "$what does not start, see $work/log" >&2; exit 1; }
		sleep 0.05
	done
}

start_servers()
{
	local port
	stop_started
	start serve "${first_core[@]}" env PGDATABASE=sse build/doorbell serve --listen 127.0.0.1:0
	pid[serve]=$started
	wait_for serve grep -q 'listening on' "$work/log/serve"
	address[serve]=$(sed -n 's|.*listening on http://||p' "$work/log/serve")

	port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
	address[nchan]=127.0.0.1:$port
	mkdir -p "$work/tmp/nchan"
	[ ${#as_user[@]} -eq 0 ] || chown "$user" "$work/tmp/nchan"
	sed "s/PORT/$port/" "$top/bench/nchan/nginx.conf" >"$work/in/nginx.conf"
	start nchan "${first_core[@]}" /usr/sbin/nginx -p "$work/tmp/nchan" -c "$work/in/nginx.conf" -e stderr
	wait_for nchan answers "${address[nchan]}"
	pid[nchan]=$(tr -d ' ' <"/proc/$started/task/$started/children") # the worker
}

publisher() # NAME OPTION...: sets `publish`
{
	publish=("$programs/sse_publish" "${@:2}" doorbell)
	[ "$1" = serve ] || publish=("$programs/sse_publish" "${@:2}" http "${address[$1]}" '/publish/{n}')
}

loaded() # NAME CONNECTIONS SECONDS OPTION... [-- COMMAND...]: the output is in `output`
{
	local name=$1 count=$2 time=$3 options=()
	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	beside 0 sse "${other_cores[@]}" "$programs/sse_load" --connections="$count" --seconds="$time" \
		--server="${pid[$name]}" "${options[@]}" "${address[$name]}" "$path" "$@"
}

got() # KEY: from the last line of the load generator
{
	sed -nE "s/.*\"$1\": ([0-9.]+).*/\1/p" "$output"
}

keep_load() # LOAD NAME CONNECTIONS ROUND KEY
{
	record sse "$1" "$2" "$3" "${listening[serve]}" "$4" "$(got "$5")" lost $(($(got missed) + $(got doubled))) \
		detail "$(cat "$output")"
}

full_speed() # LOAD NAME CONNECTIONS STREAMS ROUND SECONDS PUBLISHER_OPTION...
{
	publisher "$2" --streams="$4" "${@:7}"
	loaded "$2" "$3" "$6" --streams="$4" -- "${publish[@]}"
	keep_load "$1" "$2" "$3" "$5" per_second
}

paced() # LOAD NAME COUNT ROUND SECONDS RATE
{
	local quantile
	publisher "$2" --rate="$6"
	loaded "$2" "$3" "$5" -- "${publish[@]}"
	for quantile in p50 p99; do
		keep_load "$1, $quantile" "$2" "$3" "$4" "$quantile"
	done
}

stalled() # NAME PER_CENT ROUND SECONDS RATE
{
	publisher serve --rate="$5" --bytes=2000
	loaded serve 1000 "$4" --stalled="$2" -- "${publish[@]}"
	keep_load "$5/s, stalled" "$1" 1000 "$3" p99
}

stalled_memory() # ROUND: half of them stall, and get more than the kernel's buffers take
{
	publisher serve --rate=200 --bytes=20000
	loaded serve 40 4 --stalled=50 -- "${publish[@]}"
	record sse "stalled, memory" serve 40 1 "$1" "$(got resident)"
	record sse "stalled, memory" bound 40 1 "$1" "$memory_bound"
}

idle() # NAME ROUND: memory of one connection, in bytes
{
	loaded "$1" "$connections" 0.1 --warm-up=2
	record sse "idle, memory" "$1" "$connections" 1 "$2" \
		"$(awk "BEGIN { print ($(got resident) - $(got resident_before)) * 1024 / $connections }")"
}

metric() # NAME: of `doorbell serve`
{
	exec 3<>"/dev/tcp/${address[serve]/:/\/}"
	printf 'GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n' >&3
	sed -n "s/^$1 //p" <&3
	exec 3<&-
}

reconnect() # ROUND: 1,000 clients come back at one cursor, 500 events behind the end
{
	local before path="/v1/streams/1?after=$(($(run psql -XAtqd sse -c "SELECT doorbell.high_water('1')") - 500))"
	before=$(metric doorbell_catch_ups_total)
	loaded serve 1000 0.1 --warm-up=1
	record sse reconnect reads 1000 1 "$1" "$(($(metric doorbell_catch_ups_total) - before))"
	record sse reconnect alone 1000 1 "$1" 1000
}

latency() # NAME ROUND SECONDS RATE
{
	local append="SELECT doorbell.append('latency', 'test', \$1)" reader=sse from=("${address[serve]}" /v1/streams/latency)
	if [ "$1" = loop ]; then
		reader=loop from=("SELECT seq, payload FROM doorbell.replay('latency', \$1)")
	fi
	beside 0 sse "$programs/latency" "$reader" "$4" "$3" "$append" "${from[@]}"
	record sse "$4/s, p50" "$1" 1 1 "$2" "$(sed -n 's/^p50 = //p' "$output")" lost "$(sed -n 's/^lost = //p' "$output")"
}

round_of() # ROUND SECONDS
{
	local name count
	start_servers
	for name in $(rotated "$1" "${competitors[@]}"); do
		idle "$name" "$1"
	done
	for count in "${many[@]}"; do
		for name in $(rotated "$1" "${competitors[@]}"); do
			full_speed "one stream" "$name" "$count" 1 "$1" "$2"
		done
	done
	for count in 1000 "$connections"; do
		for name in $(rotated "$1" "${competitors[@]}"); do
			full_speed "one by one" "$name" "$count" 1 "$1" "$2" --batch=1
		done
	done
	for name in $(rotated "$1" "${competitors[@]}"); do
		full_speed "$connections streams" "$name" "$connections" "$connections" "$1" "$2"
	done
	for name in $(rotated "$1" "${competitors[@]}"); do
		paced 25/s "$name" 1000 "$1" "$2" 25
	done
	for rate in 50 100; do
		for name in $(rotated "$1" all_read stalled); do
			stalled "$name" "$([ "$name" = all_read ] && echo 0 || echo 5)" "$1" $(($2 * 2)) "$rate"
		done
	done
	stalled_memory "$1"
	reconnect "$1"
	for rate in 100 1000; do
		for name in $(rotated "$1" serve loop); do
			latency "$name" "$1" "$2" "$rate"
		done
	done
}

versus() # LOAD UNIT GOAL CONNECTIONS OURS THEIRS
{
	compare sse "$2" "$3" "$1" "$5 $4 1" "$6 $4 1"
}

query postgres 'CREATE DATABASE sse'
query sse 'CREATE EXTENSION pg_doorbell'
round_of 0 1
for round in $(seq "$rounds"); do
	query sse 'VACUUM ANALYZE'
	round_of "$round" "$seconds"
done
stop_started

for count in "${many[@]}"; do
	versus "one stream" 1/s "$([ "$count" -lt 1000 ] || echo '>= 5')" "$count" serve nchan
done
for count in 1000 "$connections"; do
	versus "one by one" 1/s '>= 5' "$count" serve nchan
done
versus "$connections streams" 1/s '' "$connections" serve nchan
versus "25/s, p50" us '<= 1' 1000 serve nchan
versus "25/s, p99" us '<= 1' 1000 serve nchan
for rate in 50 100; do
	versus "$rate/s, stalled" us '<= 1.5' 1000 stalled all_read
done
versus "stalled, memory" kB "value <= $memory_bound" 40 serve bound
versus "idle, memory" bytes 'value <= 4096' "$connections" serve nchan
versus reconnect reads 'value <= 5' 1000 reads alone
versus "100/s, p50" us '' 1 serve loop
versus "1000/s, p50" us '<= 1.5' 1 serve loop
