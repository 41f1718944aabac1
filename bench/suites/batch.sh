# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Appending 1,000 events at once, by one client. A competitor of the suite `append` does what bench/batch/NAME.sql says.
competitors=(insert pgq worker)

measure_batch() # NAME ROUND SECONDS
{
	load 0 "$1" --client=1 --time="$3" -D "payload=$payload" --file="batch/$1"
	record batch "1000 events" "$1" 1 0 "$2" "$(awk "BEGIN { print $rate * 1000 }")"
}

mkdir "$work/in/batch"
for name in "${competitors[@]}"; do
	set_up "$name" "$name"
	cp "$top/bench/batch/$name.sql" "$work/in/batch/$name"
done
query postgres CHECKPOINT
for name in "${competitors[@]}"; do
	measure_batch "$name" 0 1
done
for round in $(seq "$rounds"); do
	for name in $(rotated "$round" "${competitors[@]}"); do
		measure_batch "$name" "$round" "$seconds"
	done
done

for name in insert pgq; do
	compare batch 1/s '' "1000 events" "worker 1 0" "$name 1 0"
done
