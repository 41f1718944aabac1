#!/usr/bin/env bash
# Builds the fuzzers of test/fuzz with clang, libFuzzer, ASan and UBSan, and runs each for FUZZ_SECONDS.
#
# usage: fuzz.sh [NAME...]      names: those of test/fuzz/NAME_fuzz.cpp, by default all of them
# FUZZ_SECONDS=30
#
# 1. What a fuzzer has learned stays in build/fuzz/corpus/NAME and is where the next run begins.
# 2. A finding ends its fuzzer; its input is build/fuzz/findings/NAME-*, and `build/fuzz/NAME_fuzz FILE` shows it again.
set -euo pipefail
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MFLAGS MAKELEVEL # cmake runs a make of its own
build=build/fuzz
status=0

names=("$@")
if [ $# -eq 0 ]; then
	for source in test/fuzz/*_fuzz.cpp; do
		names+=("$(basename "$source" _fuzz.cpp)")
	done
fi
cmake -S client -B "$build" -DCMAKE_CXX_COMPILER=clang++ -DDOORBELL_FUZZ=ON -DDOORBELL_SANITIZE=address,undefined >/dev/null
cmake --build "$build" --target "${names[@]/%/_fuzz}" -j"$(nproc)"

mkdir -p "$build/findings"
for name in "${names[@]}"; do
	mkdir -p "$build/corpus/$name"
	options=(-max_total_time="${FUZZ_SECONDS:-30}" -max_len=20000 -timeout=10 -print_final_stats=1
		-artifact_prefix="$build/findings/$name-")
	[ ! -e "test/fuzz/$name.dict" ] || options+=(-dict="test/fuzz/$name.dict")
	printf '%-8s ' "$name"
	if "$build/${name}_fuzz" "${options[@]}" "$build/corpus/$name" >"$build/$name.log" 2>&1; then
		sed -n 's/^stat::number_of_executed_units: *\(.*\)/\1 inputs, nothing found/p' "$build/$name.log"
	else
		status=1
		echo "FOUND something:"
		tail -n 60 "$build/$name.log" | sed 's/^/    /'
	fi
done
exit "$status"
