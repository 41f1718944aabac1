#!/usr/bin/env bash
# Builds the client once per sanitizer and runs its unit and live tests with it. A finding ends the test program with
# an error and so fails the test. Needs PG_CONFIG.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
status=0
unset MAKEFLAGS MFLAGS MAKELEVEL # cmake runs a make of its own
for sanitizer in address,undefined thread; do
	build=build/${sanitizer%%,*}
	echo "== $sanitizer"
	cmake -S client -B "$build" -DDOORBELL_SANITIZE="$sanitizer" -DDOORBELL_WERROR=ON >/dev/null
	cmake --build "$build" -j"$(nproc)"
	BUILD=$build UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
		bash test/tools/test.sh unit live || status=1
done
exit "$status"
