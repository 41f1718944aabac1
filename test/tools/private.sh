#!/usr/bin/env bash
# Makes a private PostgreSQL installation with this checkout's pg_doorbell in it, and prints its bin directory.
#
# usage: private.sh PG_CONFIG ROOT
#
# 1. PostgreSQL finds its files relative to where its program really lies (symbolic links are followed), as long as
#    the path ends as it did when it was built. So ROOT + the original bin directory holds real copies of the programs,
#    and everything else may be symbolic links to the originals.
# 2. The extension then goes in by `make install DESTDIR=ROOT`. The system's own PostgreSQL is only read, so nothing is
#    left behind and several checkouts can be tested at once.
set -euo pipefail
pg_config=$1
root=$2
top=$(cd "$(dirname "$0")/../.." && pwd)

bindir=$("$pg_config" --bindir)
mkdir -p "$root$bindir"
for program in postgres initdb pg_ctl pg_controldata pg_resetwal pg_config psql pgbench pg_dump pg_dumpall pg_restore \
	pg_basebackup pg_isready pg_waldump pg_upgrade vacuumdb createdb dropdb; do
	cp -L "$bindir/$program" "$root$bindir/"
done

for directory in "$("$pg_config" --pkglibdir)" "$("$pg_config" --sharedir)"; do
	mkdir -p "$root$(dirname "$directory")"
	cp -rs "$directory" "$root$directory"
done
# A pg_doorbell of the system must neither be seen nor be written through a link.
find "$root" -name 'pg_doorbell*' -prune -exec rm -rf {} +

# Not a part of the make that may have called this: neither its options nor its job slots.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$top" PG_CONFIG="$pg_config" CLIENT=no DESTDIR="$root" install >&2
echo "$root$bindir"
