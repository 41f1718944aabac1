# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Appending: each competitor is a file bench/append/NAME.sql, first what its database (called NAME) is set up with, then,
# below the line "-- Each transaction:", what a client does.
competitors=(insert counter doorbell)

for name in "${competitors[@]}"; do
	query postgres "CREATE DATABASE $name"
	sed '/^-- Each transaction:/,$d' "$top/bench/append/$name.sql" >"$work/in/setup.sql"
	run psql -XAtq -v ON_ERROR_STOP=1 -d "$name" -f setup.sql >>"$log"
	{
		echo '\set n random(1, :streams)'
		sed '1,/^-- Each transaction:/d' "$top/bench/append/$name.sql"
	} >"$work/in/append-$name.sql"
done

payload="{\"data\": \"$(printf 'x%.0s' {1..188})\"}" # 200 bytes

measure_append() # NAME STREAMS ROUND SECONDS
{
	local case="$2 streams"
	[ "$2" -ne 1 ] || case='one hot stream'
	query "$1" 'VACUUM ANALYZE'
	query "$1" 'CHECKPOINT'
	measure append "$case" "$1" "$3" --client=32 --jobs=2 --time="$4" -D "streams=$2" -D "payload=$payload" \
		--file="append-$1.sql" "$1"
}

for name in "${competitors[@]}"; do
	measure_append "$name" 1000 0 1 # warm, not counted
done
for round in $(seq "$rounds"); do
	for name in $(rotated "$round" "${competitors[@]}"); do
		for streams in 1 1000; do
			measure_append "$name" "$streams" "$round" "$seconds"
		done
	done
done

compare append "one hot stream" per_second doorbell counter ">= 4"
compare append "1000 streams" per_second doorbell counter ">= 1.15"
compare append "one hot stream" per_second doorbell insert
compare append "1000 streams" per_second doorbell insert
