#!/usr/bin/env bash
# make demo: a real workload, and its events as they arrive. What it shows is in test/demo/run.sh; this gives it a
# private PostgreSQL and takes everything away afterwards.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export DEMO_SECONDS=${DEMO_SECONDS:-10}
[[ $DEMO_SECONDS =~ ^[1-9][0-9]*$ ]] || { echo "DEMO_SECONDS must be a whole number of seconds: \"$DEMO_SECONDS\"" >&2; exit 2; }
workspace demo
give_inputs test/demo build/doorbell
run bash test/demo/run.sh
