# shellcheck shell=bash disable=SC2154 # run.sh, which reads this, sets what is not set here
# Appending, 32 clients. Who rings does it for one session that listens; the others do not ring.
declare -A listening=([insert]=0 [counter]=0 [counter_notify]=1 [outbox]=1 [pgq]=0 [off]=0 [commit]=1 [worker]=1)
competitors=(insert counter counter_notify outbox pgq off commit worker)

warm_up append "${competitors[@]}"
for round in $(seq "$rounds"); do
	tidy "${competitors[@]}"
	for streams in 1 1000; do
		for name in $(rotated "$round" "${competitors[@]}"); do
			measure_append append "$name" "$streams" 32 "${listening[$name]}" "$round"
		done
	done
done

appends() # LOAD OURS THEIRS [GOAL]
{
	compare append 1/s "${4:-}" "$1" "$2 32 ${listening[$2]}" "$3 32 ${listening[$3]}"
}
appends "hot stream" off counter "$(goal '>= 4' '')"
appends "1000 streams" off counter "$(goal '>= 1.15' '')"
appends "hot stream" off insert
appends "1000 streams" off insert
appends "hot stream" worker insert "$(goal '' '>= 0.7')"
appends "1000 streams" worker insert "$(goal '>= 0.80' '>= 0.85')"
appends "hot stream" worker pgq "$(goal '>= 0.9' '')"
appends "1000 streams" worker pgq "$(goal '>= 1.05' '')"
appends "hot stream" worker outbox "$(goal '' '>= 10')"
appends "1000 streams" worker outbox "$(goal '>= 4' '>= 10')"
appends "hot stream" worker counter_notify "$(goal '>= 6' '')"
appends "1000 streams" worker counter_notify
appends "hot stream" commit counter_notify
appends "1000 streams" commit outbox
