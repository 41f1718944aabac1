#!/usr/bin/env bash
# Checks form and finds mistakes without running anything: clang-format, clang-tidy and shellcheck, warnings as errors.
# Every check runs, whatever the others say. Needs PG_CONFIG.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
status=0

check() # NAME XARGS_ARGUMENT...: a command over the files that stdin names
{
	local name=$1
	shift
	if xargs -r "$@" 2> >(grep -v 'warnings\? generated' >&2); then
		echo "$name: ok"
	else
		status=1
		echo "$name: FAILED"
	fi
}

# The server's headers are not ours to judge, so they are system headers here.
server=$("$PG_CONFIG" --includedir-server)
tidy=(-P "$(nproc)" -I{} clang-tidy --quiet {})

check clang-format clang-format --dry-run -Werror < <(git ls-files '*.cpp' '*.hpp')
check "clang-tidy src" "${tidy[@]}" -- -std=c++17 -Iclient/include -isystem "$server" < <(git ls-files 'src/*.cpp')
if [ -f client/CMakeLists.txt ]; then
	cmake -S client -B build/lint -DDOORBELL_FUZZ=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || status=1
	check "clang-tidy client" "${tidy[@]}" -p build/lint < <(git ls-files 'client/*.cpp' 'test/*.cpp' 'bench/*.cpp')
fi
check shellcheck shellcheck -x < <(git ls-files '*.sh' .ci/run)
exit "$status"
