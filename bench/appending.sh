# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# What the suites that append share. A competitor is a file bench/append/NAME.sql: first what its database is set up
# with, then, below the line "-- Each transaction:", what a client does. doorbell.sql stands for three competitors,
# which are named after their ring modes.

payload="{\"data\": \"$(printf 'x%.0s' {1..188})\"}" # 200 bytes

set_up() # DATABASE NAME: a database for the competitor, unless it is there; the client's part is append/NAME
{
	local file=$2
	case $2 in
	off | commit | worker) file=doorbell ;;
	esac
	mkdir -p "$work/in/append"
	sed '/^-- Each transaction:/,$d' "$top/bench/append/$file.sql" >"$work/in/append/$2.setup"
	{
		echo '\set n random(1, :streams)'
		sed '1,/^-- Each transaction:/d' "$top/bench/append/$file.sql"
	} >"$work/in/append/$2"
	if ! run psql -XAtq -d "$1" -c '' >/dev/null 2>&1; then
		query postgres "CREATE DATABASE $1"
		run psql -XAtq -v ON_ERROR_STOP=1 -v "mode=$2" -d "$1" -f "append/$2.setup" >>"$log"
	fi
}

measure_append() # SUITE NAME STREAMS CLIENTS LISTENERS ROUND [SECONDS]
{
	local what="$3 streams"
	[ "$3" -ne 1 ] || what='hot stream'
	load "$5" "$2" --client="$4" --jobs=2 --time="${7:-$seconds}" --file="append/$2" \
		-D "streams=$3" -D "payload=$payload"
	record "$1" "$what" "$2" "$4" "$5" "$6" "$rate" heard "$heard"
}

tidy() # NAME...: before a round
{
	local name
	for name; do
		query "$name" 'VACUUM ANALYZE'
	done
}

# The warm-up writes each page that a suite will write once after the checkpoint, so that no measurement has to log
# whole pages, as it is between the checkpoints of a server.
warm_up() # SUITE NAME...
{
	local name
	for name in "${@:2}"; do
		set_up "$name" "$name"
	done
	query postgres CHECKPOINT
	for name in "${@:2}"; do
		measure_append "$1" "$name" 1000 32 0 0 1
	done
}
