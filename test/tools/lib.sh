# shellcheck shell=bash
# What the scripts that run private servers share: a working directory, an unprivileged user, an end without leftovers.
# Sourced; needs PG_CONFIG.
#
# 1. `workspace NAME` makes $work, by default directly under /tmp because socket paths are short, and installs a private
#    PostgreSQL with pg_doorbell there ($bindir, first in PATH). Inputs are copied into it: the user below may be unable
#    to read the source tree, and nobody but the build writes there.
# 2. Root cannot run a server. When root calls, everything that `run` runs is run as the user postgres, or nobody.
# 3. `run` starts a command as a process group of its own and waits for it, so that Ctrl-C and TERM reach this script at
#    once and it can end the group. Servers are found by the postmaster.pid of their data directories, all of which
#    are below $work (TMPDIR points there too).
# 4. `start` is `run` in the background, until `stop_started`.
# 5. On the way out everything is stopped. $work goes when all went well (`keep` is empty), else it stays and is named.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
user=$(id -un)
as_user=()
work=
keep=
group=
groups=() # of what was started
closing= # the last line to print, whatever happens

workspace() # NAME [DIRECTORY]
{
	umask 022 # the user below has to read what is made here
	work=$(mktemp -d "${2:-/tmp}/doorbell-$1.XXXXXX")
	trap clean_up EXIT
	trap 'keep=yes; exit 130' INT
	trap 'keep=yes; exit 143' TERM HUP
	mkdir "$work/tmp" "$work/log" "$work/in"
	chmod 755 "$work"
	bindir=$(bash "$top/test/tools/private.sh" "$PG_CONFIG" "$work/pg" 2>"$work/log/install") ||
		{ cat "$work/log/install" >&2; exit 1; }
	if [ "$(id -u)" = 0 ]; then
		user=$(id -un postgres 2>/dev/null || echo nobody)
		as_user=(setpriv "--reuid=$user" "--regid=$(id -gn "$user")" --init-groups)
	fi
	local variable
	for variable in ${!PG@}; do # somebody's PGHOST, PGOPTIONS, ... are not ours
		[ "$variable" = PG_CONFIG ] || unset "$variable"
	done
	export PATH="$bindir:$PATH" PG_BINDIR="$bindir" TMPDIR="$work/tmp" HOME="$work/tmp"
}

give_inputs() # PATH...: copies files of the source tree to the same place below $work/in
{
	local path
	for path; do
		if [ -e "$top/$path" ]; then
			mkdir -p "$work/in/$(dirname "$path")"
			cp -rL "$top/$path" "$work/in/$path"
		fi
	done
	[ ${#as_user[@]} -eq 0 ] || chown -R "$user" "$work/tmp" "$work/in" "$work/log"
}

run() # COMMAND...: in $work/in, as the unprivileged user; returns its exit status
{
	local status=0
	set -m
	(cd "$work/in" && exec "${as_user[@]}" "$@") </dev/null &
	group=$!
	set +m
	wait "$group" || status=$?
	group=
	return "$status"
}

start() # NAME COMMAND...: as `run` does, without waiting; its output goes to log/NAME; sets `started`, its process id
{
	: >"$work/log/$1"
	set -m
	(cd "$work/in" && exec "${as_user[@]}" "${@:2}") </dev/null >>"$work/log/$1" 2>&1 &
	started=$!
	set +m
	groups+=("$started")
}

stop_started() # what `start` started, by TERM
{
	local pid
	for pid in "${groups[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
		wait "$pid" || true
	done
	groups=()
}

stop_servers() # every server with a data directory below $work: first fast, then immediately
{
	local signal file pid
	for signal in INT QUIT KILL; do
		while IFS= read -r file; do
			pid=$(head -n 1 "$file" 2>/dev/null) || continue
			# Is it still that server? A server's working directory is its data directory.
			[ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(dirname "$file")" ] || continue
			kill -s "$signal" "$pid" 2>/dev/null || continue
			timeout 20 tail --pid="$pid" -f /dev/null || true
		done < <(find "$work" -name postmaster.pid -not -path "$work/pg/*" 2>/dev/null)
	done
}

clean_up()
{
	local status=$?
	trap '' INT TERM HUP
	[ -z "$group" ] || kill -TERM -- "-$group" 2>/dev/null || true
	stop_started
	stop_servers
	[ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null || true
	if [ "$status" -eq 0 ] && [ -z "$keep" ]; then
		rm -rf "$work"
	else
		echo "Logs and data are kept in $work" >&2
	fi
	[ -z "$closing" ] || echo "$closing"
	exit "$status"
}
