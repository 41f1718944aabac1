#!/usr/bin/env bash
# The part of deb.pl that runs inside the other Debian. Prints "name: what was seen", one line each.
#
# usage: inside.sh MAJOR      the packages are in /packages
set -uo pipefail
pg=$1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

see() # NAME COMMAND...
{
	local name=$1
	shift
	printf '%s: %s\n' "$name" "$("$@" 2>&1 | tr '\n' ' ' | sed 's/ $//')"
}

as_postgres()
{
	setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get -q update >/tmp/log 2>&1 && apt-get -qy install --no-install-recommends /packages/*.deb >>/tmp/log 2>&1
see installed echo $?
# shellcheck disable=SC2016
see packages dpkg-query -W -f '${Package} ${db:Status-Status}\n' "postgresql-$pg-doorbell" libdoorbell0 libdoorbell-dev doorbell
see loader sh -c 'ldconfig -p | grep -c libdoorbell.so.0'
see version doorbell --version
see enabled sh -c 'find /etc/systemd -name "doorbell*"'

[ -d "/etc/postgresql/$pg/main" ] || pg_createcluster "$pg" main >>/tmp/log 2>&1
echo "shared_preload_libraries = 'pg_doorbell'" >"/etc/postgresql/$pg/main/conf.d/doorbell.conf"
pg_ctlcluster "$pg" main start >>/tmp/log 2>&1
see server echo $?
see extension as_postgres psql -XAtqc 'CREATE EXTENSION pg_doorbell' -c "SELECT extversion FROM pg_extension WHERE extname = 'pg_doorbell'"
see append as_postgres doorbell append orders:7 paid '{"order": 42}'
see replay as_postgres doorbell replay orders:7 --format json
see status as_postgres doorbell status
see healthy sh -c 'setpriv --reuid=postgres --regid=postgres --init-groups doorbell status >/dev/null; echo $?'
pg_ctlcluster "$pg" main stop >>/tmp/log 2>&1

apt-get -qy purge "postgresql-$pg-doorbell" libdoorbell0 libdoorbell-dev doorbell >>/tmp/log 2>&1
see purged echo $?
rm -f "/etc/postgresql/$pg/main/conf.d/doorbell.conf"
see left find / -xdev \( -path /proc -o -path /packages -o -path /inside.sh -o -path /tmp -o -path /var/lib/postgresql -o -path /var/log \) -prune \
	-o -iname '*doorbell*' -print
cat /tmp/log
