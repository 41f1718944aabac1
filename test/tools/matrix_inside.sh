#!/usr/bin/env bash
# The part of matrix.sh that runs inside the other system: installs packages, builds, tests.
#
# usage: matrix_inside.sh PART...
set -euo pipefail
cd "$(dirname "$0")/../.."

if bash test/tools/packages.sh test "$@"; then
	exec make test PARTS="$*"
fi
parts=()
for part; do
	case $part in
	symbols | regress | isolation) parts+=("$part") ;;
	esac
done
[ ${#parts[@]} -gt 0 ] || exit 1
echo "Without the client: packages are missing"
CLIENT=no bash test/tools/packages.sh test
exec make CLIENT=no test PARTS="${parts[*]}"
