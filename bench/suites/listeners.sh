# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Appending while 0, 1, 10 and 100 sessions listen.
competitors=(outbox commit worker)
counts=(0 1 10 100)

warm_up listeners "${competitors[@]}"
for round in $(seq "$rounds"); do
	tidy "${competitors[@]}"
	for count in "${counts[@]}"; do
		for name in $(rotated "$round" "${competitors[@]}"); do
			measure_append listeners "$name" 1000 32 "$count" "$round"
		done
	done
done

for name in worker commit; do
	for count in "${counts[@]}"; do
		wanted=
		[ "$name $count" != "worker 100" ] || wanted=$(goal '>= 10' '')
		compare listeners 1/s "$wanted" "1000 streams" "$name 32 $count" "outbox 32 $count"
	done
done
