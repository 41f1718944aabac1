#!/usr/bin/env bash
# Runs the tests, each part on private servers, and ends with one line: "N passed, N failed".
#
# usage: test.sh [PART...]      parts: symbols regress isolation tap install recipes unit live contract, by default; slow browser deb
# BUILD=build                   where the client's test programs are
#
# 1. Everything is built already. What the tests read is copied to a working directory (see lib.sh), laid out as the
#    source tree is, and they run there.
# 2. Each part writes to a log of its own and is counted from its own results. A part that fails without a failed test,
#    and a part without any test, count as one failure; a skipped test is a failed one.
# 3. The names of failed tests are printed once more at the end, just before the closing line.
# 4. A part that takes longer than PART_TIMEOUT seconds is ended and has failed.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

parts=("$@")
[ $# -gt 0 ] || parts=(symbols regress isolation tap install recipes unit live contract)
BUILD=${BUILD:-build}
export CONTRACT_SECONDS=${CONTRACT_SECONDS:-20}
pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/../..

limited() # COMMAND...: run, with the time limit, into the part's log
{
	run timeout --kill-after=10 "${PART_TIMEOUT:-900}" "$@" >>"$log" 2>&1
}

count() # OK_PATTERN BAD_PATTERN: lines of the part's log; those of failed tests are said again at the end
{
	grep -E "$2" "$log" | sed "s/^/$part: /" >>"$work/log/failures" || true
	ok=$(grep -cE "$1" "$log" || true)
	bad=$(grep -cE "$2" "$log" || true)
}

list() # DIRECTORY EXTENSION: the tests of test/DIRECTORY into `tests`, in the order of their names
{
	local file
	tests=()
	for file in "$work/in/test/$1"/*."$2"; do
		[ ! -e "$file" ] || tests+=("$(basename "$file" ".$2")")
	done
	[ ${#tests[@]} -gt 0 ] || echo "there is no test/$1/*.$2" >>"$log"
	[ ${#tests[@]} -gt 0 ]
}

regress() # PROGRAM DIRECTORY EXTENSION: without preloading, then with it
{
	local status=0 tests preload
	list "$2" "$3" || return
	for preload in '' pg_doorbell; do
		echo "shared_preload_libraries = '$preload'" >"$work/tmp/$2.conf"
		limited "$pgxs/src/test/$1" --temp-instance="$work/tmp/$2$preload" --temp-config="$work/tmp/$2.conf" \
			--bindir="$bindir" --inputdir=test --outputdir=. --no-locale --encoding=UTF8 --dbname="doorbell_$2" \
			"${tests[@]}" || status=$?
		[ ! -s "$work/in/regression.diffs" ] || cat "$work/in/regression.diffs" >>"$log"
	done
	# PostgreSQL 15 writes "test name ... ok", later versions write TAP.
	count '^test .* \.\.\. ok|^ok ' '^test .* \.\.\. FAILED|^not ok '
	return "$status"
}

gtest() # PROGRAM
{
	local status=0
	limited "$BUILD/$1" --gtest_color=no || status=$?
	count '^\[       OK \] ' '^\[  (FAILED |SKIPPED) \] .* \([0-9]+ ms\)$'
	return "$status"
}

run_symbols() # the extension needs no C++ run-time library
{
	local library=$work/in/pg_doorbell.so pattern
	readelf -dW "$library" >"$work/log/needs" 2>>"$log" && nm -uD "$library" >>"$work/log/needs" || return
	for pattern in 'NEEDED.*lib(std)?c\+\+' ' (_Zn|_Zd|__cxa_(throw|atexit|guard|pure)|__gxx_personality)'; do
		if grep -E "$pattern" "$work/log/needs" >>"$log"; then
			bad=$((bad + 1))
		else
			ok=$((ok + 1))
		fi
	done
}

run_regress()
{
	regress regress/pg_regress sql sql
}

run_isolation()
{
	regress isolation/pg_isolation_regress specs spec
}

tap() # DIRECTORY: each assertion of a script is a test
{
	local status=0 tests broken script
	list "$1" pl || return
	limited env TESTDIR="$work/in" PG_REGRESS="$pgxs/src/test/regress/pg_regress" \
		prove --verbose --nocolor -I "$pgxs/src/test/perl" -I test/t "test/$1"/*.pl || status=$?
	count '^ok ([^#]|#[^ ])*$' '^not ok |^ok .*# (skip|SKIP|TODO)|^1\.\.0 '
	mapfile -t broken < <(sed -nE 's,^test/[a-z]+/(.*)\.pl +\(Wstat.*,\1,p' "$log")
	for script in "${broken[@]}"; do
		tail -n 50 "$work/in/tmp_check/log/regress_log_$script" >>"$log" 2>&1 || true
	done
	return "$status"
}

run_tap()
{
	tap t
}

run_slow()
{
	tap slow
}

run_recipes()
{
	tap recipes
}

# These two are run by whoever builds: one installs from the source tree, the other takes root.
run_install()
{
	local as_user=()
	SOURCE=$top tap install
}

run_deb()
{
	local as_user=()
	run bash "$top/test/tools/deb.sh" >>"$log" 2>&1 || return
	SOURCE=$top tap deb
}

run_unit()
{
	gtest unit_tests
}

run_live() # once for each way of ringing
{
	local status=0
	RING_MODE=commit gtest live_tests || status=$?
	RING_MODE=worker gtest live_tests || status=$?
	return "$status"
}

run_contract()
{
	gtest contract_test
}

run_browser() # each test of each file; npm's packages go into the working directory
{
	local status=0
	limited npm ci --prefix test/browser --ignore-scripts --no-audit --no-fund || return
	limited env DOORBELL="$work/in/$BUILD/doorbell" node --test --test-reporter=tap test/browser || status=$?
	count '^ok ([^#]|#[^ ])*$' '^not ok |^ok .*# (SKIP|TODO)'
	return "$status"
}

workspace test
give_inputs test expected sql docs client/include pg_doorbell.control META.json README.md CHANGELOG.md pg_doorbell.so \
	"$BUILD"/{unit_tests,live_tests,contract_test,doorbell,follow,follow_c,hand_over}

: >"$work/log/failures"
passed=0
failed=0
for part in "${parts[@]}"; do
	printf '%-10s ' "$part"
	log=$work/log/$part
	ok=0
	bad=0
	status=0
	SECONDS=0
	: >"$log"
	"run_$part" || status=$?
	stop_servers
	if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; }; then
		echo "$part: exit status $status after $ok passed tests" | tee -a "$log" >>"$work/log/failures"
		bad=1
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	if [ "$bad" -eq 0 ]; then
		printf '%4d passed  %3d s\n' "$ok" "$SECONDS"
	else
		printf '%4d passed, %d FAILED  %3d s\n' "$ok" "$bad" "$SECONDS"
		tail -n 300 "$log" | sed 's/^/    /'
	fi
done
if [ "$failed" -gt 0 ]; then
	echo "failed:"
	awk '!seen[$0]++ { print "    " $0 }' "$work/log/failures"
fi
closing="$passed passed, $failed failed"
[ "$failed" -eq 0 ]
