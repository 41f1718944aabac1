# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Replaying: each competitor is a file bench/replay/NAME.sql, one page of 1,000 events behind seq :after. They read the
# same table, a stream of a million events, so they alternate in short rounds.
competitors=(select doorbell)

query postgres 'CREATE DATABASE replay'
query replay 'CREATE EXTENSION pg_doorbell'
query replay 'ALTER DATABASE replay SET doorbell.ring_mode = off'
query replay "DO \$\$ BEGIN
	FOR page IN 0 .. 999 LOOP
		PERFORM doorbell.append_batch('s', array_fill('test'::text, ARRAY[1000]), array_agg(payload))
		FROM (SELECT jsonb_build_object('n', page * 1000 + n, 'data', repeat('x', 180)) AS payload
			FROM generate_series(1, 1000) n) events;
		COMMIT;
	END LOOP;
END \$\$"
query replay 'VACUUM ANALYZE'
query replay 'CHECKPOINT'
mkdir "$work/in/replay"
for name in "${competitors[@]}"; do
	{
		echo '\set after random(0, 999000)'
		cat "$top/bench/replay/$name.sql"
	} >"$work/in/replay/$name"
done

measure_replay() # NAME ROUND SECONDS
{
	load 0 replay --client=1 --time="$3" --file="replay/$1"
	record replay "1000 events" "$1" 1 0 "$2" "$(awk "BEGIN { print 1e6 / $rate }")"
}

for name in "${competitors[@]}"; do
	measure_replay "$name" 0 1 # warm, not counted
done
for round in $(seq $((rounds * 2))); do
	for name in $(rotated "$round" "${competitors[@]}"); do
		measure_replay "$name" "$round" $(((seconds + 1) / 2))
	done
done

compare replay us "<= 1.2" "1000 events" "doorbell 1 0" "select 1 0"
