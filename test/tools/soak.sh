#!/usr/bin/env bash
# make soak: the delivery contract through everything at once, for SOAK_SECONDS (60); see test/soak/soak.cpp.
# SOAK_SEED repeats the choices of an earlier run, not its timing.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export SOAK_SECONDS=${SOAK_SECONDS:-60}
[[ $SOAK_SECONDS =~ ^[1-9][0-9]*$ ]] || { echo "SOAK_SECONDS must be a whole number of seconds: \"$SOAK_SECONDS\"" >&2; exit 2; }
workspace soak
give_inputs build/soak build/doorbell
run build/soak build/doorbell
