# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# From append to delivery, one stream, by bench/latency.cpp: the library's Subscriber against a loop written by hand,
# which reads by doorbell.replay, or an outbox.
competitors=(subscriber_worker loop_worker subscriber_commit loop_commit loop_outbox)
rates=(100 1000)

measure_latency() # NAME RATE ROUND SECONDS
{
	local reader=${1%_*} mode=${1#*_} lost
	local append="SELECT doorbell.append('latency', 'test', \$1)"
	local read="SELECT seq, payload FROM doorbell.replay('latency', \$1)"
	if [ "$mode" = outbox ]; then
		append="INSERT INTO event (stream, type, payload) VALUES ('latency', 'test', \$1)"
		read="SELECT id, payload FROM event WHERE id > \$1 ORDER BY id LIMIT 1000"
	fi
	set -- "$@" "$reader" "$2" "$4" "$append"
	[ "$reader" = subscriber ] || set -- "$@" "$read"
	beside 0 "latency_$mode" "$programs/latency" "${@:5}"
	lost=$(sed -n 's/^lost = //p' "$output")
	for quantile in p50 p99; do
		record latency "$2/s, $quantile" "$1" 16 1 "$3" "$(sed -n "s/^$quantile = //p" "$output")" lost "$lost"
	done
}

for mode in worker commit outbox; do
	set_up "latency_$mode" "$mode"
done
query postgres CHECKPOINT
for name in "${competitors[@]}"; do
	measure_latency "$name" 1000 0 1
done
for round in $(seq "$rounds"); do
	for rate in "${rates[@]}"; do
		for name in $(rotated "$round" "${competitors[@]}"); do
			measure_latency "$name" "$rate" "$round" "$seconds"
		done
	done
done

for rate in "${rates[@]}"; do
	for quantile in p50 p99; do
		compare latency us '' "$rate/s, $quantile" "subscriber_worker 16 1" "loop_worker 16 1"
		compare latency us '' "$rate/s, $quantile" "subscriber_commit 16 1" "loop_commit 16 1"
		compare latency us '' "$rate/s, $quantile" "subscriber_worker 16 1" "loop_outbox 16 1"
	done
done
