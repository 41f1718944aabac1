# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Appending, 32 clients and 1,000 streams, beside the ringer that removes a backlog of at least a million old events, and
# without it. What was removed while it was measured is in the results as `removed`.
each_second=200000 # more than the ringer can remove
backlog=$((rounds * seconds * each_second))
[ "$backlog" -ge 1000000 ] || backlog=1000000

set_up retention worker
query retention 'ALTER SYSTEM SET doorbell.retention_interval = 1'
query retention 'SELECT pg_reload_conf()'
query retention "DO \$\$ BEGIN
	FOR page IN 1 .. $((backlog / 1000)) LOOP
		PERFORM doorbell.append_batch('old:' || page % 100, array_fill('test'::text, ARRAY[1000]),
			array_fill('$payload'::jsonb, ARRAY[1000]));
		COMMIT;
	END LOOP;
END \$\$"
query retention 'VACUUM ANALYZE'
query retention CHECKPOINT

removed() # so far
{
	run psql -XAtq -d retention -c "SELECT sum(low_water) FROM doorbell.streams('old:')"
}

measure_retention() # NAME ROUND SECONDS
{
	local before=0 after=0
	if [ "$1" = beside ]; then
		query retention "SELECT doorbell.set_retention('old:*', NULL, 1)"
		after=$(removed)
		before=$after
		until [ "$before" -gt "$after" ]; do # it has begun
			sleep 0.05
			before=$(removed)
		done
	fi
	load 1 retention --client=32 --jobs=2 --time="$3" --file=append/worker -D streams=1000 -D "payload=$payload"
	if [ "$1" = beside ]; then
		after=$(removed)
		query retention "SELECT doorbell.set_retention('old:*', NULL, NULL)"
		[ "$after" -lt $((backlog - 100)) ] || { echo "retention: all was removed before the measurement ended" >&2; exit 1; }
	fi
	record retention "1000 streams" "$1" 32 1 "$2" "$rate" removed $((after - before))
}

for name in alone beside; do
	measure_retention "$name" 0 1
done
for round in $(seq "$rounds"); do
	query retention 'VACUUM ANALYZE'
	for name in $(rotated "$round" alone beside); do
		measure_retention "$name" "$round" "$seconds"
	done
done

compare retention 1/s '>= 0.8' "1000 streams" "beside 32 1" "alone 32 1"
