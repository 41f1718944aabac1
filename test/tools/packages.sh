#!/usr/bin/env bash
# Installs by apt what a goal of the Makefile needs and this machine lacks. Says so in one line; silent when there is
# nothing to do.
#
# usage: packages.sh GOAL [PART...]      PG_CONFIG, if set, names the PostgreSQL to build with
# CLIENT=no: without what only the client needs
#
# 1. What is missing is found by looking for the thing itself (a program, a header, a module), not for a package, so a
#    machine without apt is fine as long as it has everything.
# 2. Package lists are fetched only when they do not know a package or are too old to install from.
# 3. Debian starts a server as soon as its package is installed. Nobody asked for one, so that is forbidden for the time
#    of the installation, unless this machine has a policy of its own.
set -euo pipefail
goal=$1
shift
parts=" $* "
missing=()

need() # PACKAGE COMMAND...: the package is missing if the command fails
{
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}

has() # every one of these programs is there
{
	command -v "$@" >/dev/null && [ "$(command -v "$@" | wc -l)" -eq $# ]
}

has_server() # a program that is not in everybody's PATH
{
	PATH=$PATH:/usr/sbin has "$1"
}

has_header()
{
	printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | g++ -std=c++17 ${includedir:+-I"$includedir"} -E -x c++ -
}

find_any() # GLOB
{
	compgen -G "$1"
}

can_fuzz() # clang's run-time libraries are a package of their own
{
	echo 'extern "C" int LLVMFuzzerTestOneInput(const char *, unsigned long) { return 0; }' |
		clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null
}

PG_CONFIG=${PG_CONFIG:-$(bash "$(dirname "$0")/pg_config.sh")}
version=
includedir=
if [ -z "$PG_CONFIG" ]; then
	missing+=(postgresql-VERSION postgresql-server-dev-VERSION)
else
	includedir=$("$PG_CONFIG" --includedir) || { echo "PG_CONFIG=$PG_CONFIG does not work." >&2; exit 1; }
	version=$("$PG_CONFIG" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
	bindir=$("$PG_CONFIG" --bindir)
	need postgresql-VERSION has "$bindir/postgres" "$bindir/pgbench"
	need postgresql-server-dev-VERSION test -f "$("$PG_CONFIG" --includedir-server)/postgres.h" # client packages hold PGXS
fi
need make has make
need g++ has g++
if [ "${CLIENT:-yes}" = yes ]; then
	need cmake has cmake
	need pkg-config has pkg-config
	need libpq-dev has_header libpq-fe.h
	need libgtest-dev has_header gtest/gtest.h
	need libcli11-dev has_header CLI/CLI.hpp
	need nlohmann-json3-dev has_header nlohmann/json.hpp
	need libboost-dev has_header boost/beast/http/parser.hpp
	need librhonabwy-dev has_header rhonabwy.h
	need libgnutls28-dev has_header gnutls/gnutls.h
	need prometheus-cpp-dev has_header prometheus/histogram.h
fi
need binutils has readelf nm
need perl has prove
need openssl has openssl # makes the keys of tests
need libipc-run-perl perl -MIPC::Run -e1
if [ "$goal" = bench ]; then # PgQ is one of the competitors
	need postgresql-VERSION-pgq3 test -f "${PG_CONFIG:+$("$PG_CONFIG" --sharedir)}/extension/pgq.control"
fi
if [ "$goal" = test ] && [ "${CLIENT:-yes}" = yes ]; then
	need nginx-light has_server nginx
	need curl has curl
	need pgbouncer has_server pgbouncer
	need python3-psycopg2 /usr/bin/python3 -c 'import psycopg2'
	need libfaketime find_any '/usr/lib/*/faketime/libfaketime.so.1'
fi
if [ "$goal" = test-matrix ]; then # what it tests is built elsewhere
	missing=()
	need debootstrap has_server debootstrap
fi
if [ "$goal" = test ] && [[ $# -eq 0 || $parts = *" install "* ]]; then
	need groff-base has groff # formats the manual page
fi
if [[ $goal = deb || $goal = test && $parts = *" deb "* ]]; then
	need dpkg-dev has dpkg-shlibdeps dpkg-gencontrol dpkg-buildflags dpkg-architecture
fi
if [[ $goal = test && $parts = *" deb "* ]]; then
	need lintian has lintian
	need debootstrap has_server debootstrap
fi
if [ "$goal" = bench-sse ]; then # nchan is the competitor; nginx itself comes with it
	need nginx has /usr/sbin/nginx
	need libnginx-mod-nchan test -f /usr/lib/nginx/modules/ngx_nchan_module.so
fi
if [ "$goal" = fuzz ]; then
	need clang has clang++
	need libclang-rt-dev can_fuzz
fi
if [[ $goal = test && $parts = *" browser "* ]]; then
	need chromium has chromium
	need nodejs has node
	need npm has npm
fi
if [ "$goal" = lint ]; then
	need clang-format has clang-format
	need clang-tidy has clang-tidy
	need libclang-rt-dev test -n "$(find /usr/lib/llvm* -name FuzzedDataProvider.h -print -quit 2>/dev/null)"
	need shellcheck has shellcheck
fi
[ ${#missing[@]} -gt 0 ] || exit 0

cannot() # REASON
{
	echo "Missing here: ${missing[*]//VERSION/${version:-15}} (Debian's names). $1" >&2
	exit 1
}
has apt-get apt-cache || cannot "There is no apt-get: install them yourself and run \`make $goal\` again."
as_root=()
if [ "$(id -u)" != 0 ]; then
	has sudo || cannot "Installing takes root and there is no sudo: install them yourself and run \`make $goal\` again."
	as_root=(sudo)
fi

log=$(mktemp)
policy=/usr/sbin/policy-rc.d
own_policy=
finish()
{
	rm -f "$log"
	[ -z "$own_policy" ] || "${as_root[@]}" rm -f "$policy"
}
trap finish EXIT
trap 'exit 130' INT TERM

apt()
{
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -y -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null
}

known() # apt's lists know every one of these packages
{
	local package
	for package; do
		apt-cache show "$package" >/dev/null 2>&1 || return 1
	done
}

resolve() # puts the packages' real names into `wanted`; fails if the lists do not know them
{
	local candidate
	for candidate in ${version:-15 18 17 16}; do
		wanted=("${missing[@]//VERSION/$candidate}")
		! known "${wanted[@]}" || return 0
	done
	return 1
}

resolve || { apt update && resolve; } || cannot "apt-get does not know them all."
echo "Installing ${wanted[*]} by ${as_root[*]}${as_root:+ }apt-get, without starting any server."
if [ ! -e "$policy" ]; then
	own_policy=yes
	printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
fi
apt install --no-install-recommends "${wanted[@]}" ||
	{ apt update && apt install --no-install-recommends "${wanted[@]}"; } ||
	{ cat "$log" >&2; cannot "apt-get failed, see above."; }
