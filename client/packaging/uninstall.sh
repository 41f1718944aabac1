#!/usr/bin/env bash
# Removes what `cmake --install` puts below a prefix: nothing else, and no directory but those that are called doorbell.
#
# usage: uninstall.sh BUILD PREFIX      DESTDIR as for the installation
set -euo pipefail
build=$1
prefix=$2
destination=${DESTDIR:-}

# What it would install now, in a place of its own.
list=$build/uninstall
rm -rf "$list"
DESTDIR=$(realpath "$build")/uninstall cmake --install "$build" --prefix "$prefix" >/dev/null
(cd "$list" && find . ! -type d -print0) | while IFS= read -r -d '' file; do
	rm -fv "$destination/${file#./}"
done
(cd "$list" && find . -depth -type d -name doorbell -print0) | while IFS= read -r -d '' directory; do
	[ ! -d "$destination/${directory#./}" ] || rmdir --ignore-fail-on-non-empty "$destination/${directory#./}"
done
rm -rf "$list"
