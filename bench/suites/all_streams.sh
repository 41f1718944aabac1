# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Following all streams beside 32 clients that append to 1,000 streams, by doorbell.replay_all and by a plain SELECT of the
# same rows.
set_up all_streams worker
query all_streams CHECKPOINT

measure_all_streams() # ROUND SECONDS
{
	local name
	beside 0 all_streams "$programs/follow_all" pgbench --no-vacuum --protocol=prepared --client=32 --jobs=2 \
		--time="$2" --file=append/worker -D streams=1000 -D "payload=$payload" all_streams
	for name in doorbell select; do
		record all_streams "1000 events" "$name" 32 0 "$1" "$(sed -n "s/^$name = //p" "$output")"
	done
}

measure_all_streams 0 1
for round in $(seq "$rounds"); do
	query all_streams 'VACUUM ANALYZE'
	measure_all_streams "$round" "$seconds"
done

compare all_streams us '<= 1.3' "1000 events" "doorbell 32 0" "select 32 0"
