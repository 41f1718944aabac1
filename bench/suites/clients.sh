# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Appending with more and fewer clients than in the suite `append`.
competitors=(insert pgq outbox worker)
declare -A listening=([insert]=0 [pgq]=0 [outbox]=1 [worker]=1)

warm_up clients "${competitors[@]}"
for round in $(seq "$rounds"); do
	tidy "${competitors[@]}"
	for clients in 1 8 64; do
		for name in $(rotated "$round" "${competitors[@]}"); do
			measure_append clients "$name" 1000 "$clients" "${listening[$name]}" "$round"
		done
	done
	measure_append clients worker 1000 32 1 "$round"
	for name in $(rotated "$round" worker pgq); do
		measure_append clients "$name" 1 64 "${listening[$name]}" "$round"
	done
done

for name in insert pgq outbox; do
	for clients in 1 8 64; do
		compare clients 1/s '' "1000 streams" "worker $clients 1" "$name $clients ${listening[$name]}"
	done
done
compare clients 1/s "$(goal '>= 1.0' '')" "hot stream" "worker 64 1" "pgq 64 0"
compare clients 1/s "$(goal '>= 0.9' '')" "1000 streams" "worker 64 1" "worker 32 1"
