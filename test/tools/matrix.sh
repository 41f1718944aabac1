#!/usr/bin/env bash
# make test-matrix: the tests on other versions of PostgreSQL, each in a Debian of its own that has it.
#
# usage: matrix.sh [PART...]      parts of test.sh; by default those that depend on the server's version, and unit
# MATRIX="bookworm trixie forky"  Debian's suites: PostgreSQL 15, 17 and 18
# MATRIX_DIR=/var/tmp/pg_doorbell-matrix
#
# 1. MATRIX_DIR/SUITE is made by debootstrap, from where this machine's apt gets its packages, and is used again by the
#    next run; remove it to begin anew. What the tests need is installed there by packages.sh.
# 2. The tree is copied there as git sees it, with what is not committed yet, built from nothing, and tested by test.sh.
# 3. All of it happens in a mount and a process namespace, which end with their first process. So whatever way a run ends,
#    also by Ctrl-C, nothing stays mounted and nothing goes on running.
# 4. A suite without the client's packages is tested without the client, and its line says so.
# 5. One line for each version; the log is MATRIX_DIR/SUITE.log. Fails if one fails.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
MATRIX=${MATRIX:-bookworm trixie forky}
MATRIX_DIR=${MATRIX_DIR:-/var/tmp/pg_doorbell-matrix}
parts=${*:-symbols regress isolation unit}
inside=
status=0

[ "$(id -u)" = 0 ] || { echo "test-matrix makes systems to chroot into, which takes root." >&2; exit 1; }
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian/\?$' | head -n 1)
[ -n "$mirror" ] || { echo "apt-get knows no Debian archive here (run apt-get update?)." >&2; exit 1; }

isolated() # COMMAND...: in namespaces of its own
{
	local result=0
	set -m
	unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$@" </dev/null &
	inside=$!
	set +m
	wait "$inside" || result=$?
	inside=
	return "$result"
}
# shellcheck disable=SC2317 # by the traps
stop() # STATUS
{
	[ -z "$inside" ] || kill -KILL "$inside" 2>/dev/null || true
	exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM HUP

make_system() # SUITE
{
	local root=$MATRIX_DIR/$1
	[ ! -e "$root/made" ] || return 0
	rm -rf "$root"
	local script=/usr/share/debootstrap/scripts/$1
	[ -e "$script" ] || script=${script%/*}/sid # a suite that is younger than this debootstrap
	isolated debootstrap --variant=minbase "$1" "$root" "$mirror" "$script" || return
	cp -r /etc/apt/auth.conf.d "$root/etc/apt/" || return
	apt-config dump Acquire >"$root/etc/apt/apt.conf.d/00machine" || return
	touch "$root/made"
}

test_on() # SUITE
{
	local root=$MATRIX_DIR/$1
	make_system "$1" || return
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	rm -rf "$root/tree" "$root"/tmp/doorbell-*
	mkdir "$root/tree"
	(cd "$top" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read) |
		tar -x -C "$root/tree" --no-same-owner || return
	# shellcheck disable=SC2016
	isolated bash -c '
		mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
			exec chroot "$1" env -i PATH="$PATH" LC_ALL=C.UTF-8 bash /tree/test/tools/matrix_inside.sh $2' \
		bash "$root" "$parts"
}

mkdir -p "$MATRIX_DIR"
for suite in $MATRIX; do
	log=$MATRIX_DIR/$suite.log
	printf '%-10s ' "$suite"
	result=0
	test_on "$suite" >"$log" 2>&1 || result=$?
	server=$(cat "$MATRIX_DIR/$suite"/usr/lib/postgresql/*/lib/pgxs/src/Makefile.global 2>/dev/null |
		sed -n 's/^VERSION *= *//p' || true)
	printf 'PostgreSQL %-8s %s%s\n' "${server:-?}" "$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1 || true)" \
		"$(sed -n 's/^Without the client:/; without the client:/p' "$log")"
	if [ "$result" -ne 0 ]; then
		status=1
		tail -n 30 "$log" | sed 's/^/    /'
		echo "    FAILED; the whole log is $log"
	fi
done
exit "$status"
