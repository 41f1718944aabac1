#!/usr/bin/env bash
# make deb: Debian packages of the extension, for the PostgreSQL of PG_CONFIG, and of library and command.
# They end up in build/deb. Needs PG_CONFIG; not root.
#
# DEBFULLNAME, DEBEMAIL: who is named as the maintainer
#
# 1. Everything is built from copies and in directories of its own below build/deb, with Debian's flags, and installed to
#    a staging tree by the same rules as `make install`, with the prefix /usr.
# 2. A package is a part of that tree, its entry in client/packaging/debian/control.in, and what else is there for it
#    (PACKAGE.postinst, PACKAGE.default, ...). dpkg-shlibdeps finds what its programs need.
# 3. The version is that of the library, marked as older than itself (~) until CHANGELOG.md has its release. Times are that
#    of the last commit, so that the same sources give the same packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MFLAGS MAKELEVEL # cmake runs a make of its own
umask 022
top=$PWD
out=$top/build/deb
jobs=${JOBS:-$(nproc)}
pg=$("$PG_CONFIG" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
libdir=lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)
version=$(sed -n 's/.*char \*version = "\(.*\)";/\1/p' client/include/doorbell/doorbell.hpp)
grep -qF "## [$version]" CHANGELOG.md || version+='~unreleased'
version+=-1
maintainer="${DEBFULLNAME:-pg_doorbell contributors} <${DEBEMAIL:-contributors@pg-doorbell.invalid}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH DEB_BUILD_MAINT_OPTIONS=hardening=+all

build()
{
	local link
	link=$(dpkg-buildflags --get LDFLAGS)
	cmake -S client -B "$out/client" -DCMAKE_BUILD_TYPE=None -DDOORBELL_BUILD_TESTS=OFF \
		-DCMAKE_C_FLAGS="$(dpkg-buildflags --get CPPFLAGS) $(dpkg-buildflags --get CFLAGS)" \
		-DCMAKE_CXX_FLAGS="$(dpkg-buildflags --get CPPFLAGS) $(dpkg-buildflags --get CXXFLAGS)" \
		-DCMAKE_EXE_LINKER_FLAGS="$link" -DCMAKE_SHARED_LINKER_FLAGS="$link" \
		-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="$libdir" -DDOORBELL_ZSH_DIR=share/zsh/vendor-completions >/dev/null
	cmake --build "$out/client" -j"$jobs" --target doorbell doorbell_shared doorbell_static descriptions
	rm -rf "$out/extension"
	mkdir -p "$out/extension/client"
	cp -r Makefile pg_doorbell.control sql "$out/extension/"
	cp -r client/include "$out/extension/client/"
	mkdir "$out/extension/src"
	cp src/*.[ch]pp "$out/extension/src/"
	make -s -C "$out/extension" -j"$jobs" PG_CONFIG="$PG_CONFIG" CLIENT=no all
}

stage() # PACKAGE: what it contains, into $tree
{
	local component
	case $1 in
	postgresql-*)
		make -s -C "$out/extension" PG_CONFIG="$PG_CONFIG" CLIENT=no DESTDIR="$tree" install
		return
		;;
	libdoorbell-dev) component="development" ;;
	libdoorbell0) component="library" ;;
	doorbell) component="command" ;;
	esac
	DESTDIR=$tree cmake --install "$out/client" --component "$component" >/dev/null
}

documents() # PACKAGE: the documentation that goes with it
{
	case $1 in
	postgresql-*) echo README.md docs/sql.md docs/design.md docs/protocol.md ;;
	libdoorbell-dev) echo docs/library.md client/examples/* ;;
	doorbell) echo docs/command.md docs/operations.md docs/recipes.md ;;
	esac
}

copyright()
{
	printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n'
	printf 'Copyright: %s\nLicense: PostgreSQL\n' "$(sed -n 's/^Copyright (c) //p' LICENSE)"
	sed -E '1,/^Copyright/d; s/^$/./; s/^/ /' LICENSE | sed '1{/^ \.$/d}'
}

package() # PACKAGE
{
	local tree=$out/tree/$1 file binaries packaging=client/packaging/debian
	local doc=$tree/usr/share/doc/$1
	mkdir -p "$tree/DEBIAN" "$doc"
	stage "$1"
	for file in $(documents "$1"); do
		[ ! -e "$file" ] || install -m 644 "$file" "$doc/"
	done
	copyright >"$doc/copyright"
	gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
	gzip -9nc "$out/work/debian/changelog" >"$doc/changelog.Debian.gz"
	for file in "$tree"/usr/share/man/*/*; do
		[ ! -f "$file" ] || gzip -9n "$file"
	done
	if [ -e "$packaging/$1.default" ]; then
		install -D -m 640 "$packaging/$1.default" "$tree/etc/default/$1" # may come to hold secrets
		echo "/etc/default/$1" >"$tree/DEBIAN/conffiles"
	fi
	for file in postinst prerm postrm; do
		[ ! -e "$packaging/$1.$file" ] || install -m 755 "$packaging/$1.$file" "$tree/DEBIAN/$file"
	done
	if [ "$1" = libdoorbell0 ]; then
		echo "libdoorbell 0 libdoorbell0 (>= $version)" >"$tree/DEBIAN/shlibs"
		echo 'activate-noawait ldconfig' >"$tree/DEBIAN/triggers"
	fi

	find "$tree" -name '*.a' -exec strip --strip-debug --enable-deterministic-archives {} +
	mapfile -d '' binaries < <(find "$tree/usr" \( -name '*.so*' -o -path '*/bin/*' \) -type f -print0)
	: >"$out/work/substvars"
	if [ ${#binaries[@]} -gt 0 ]; then
		strip --strip-unneeded --remove-section=.comment --remove-section=.note "${binaries[@]}"
		(cd "$out/work" && dpkg-shlibdeps --warnings=0 -Tsubstvars "${binaries[@]}")
	fi
	echo 'misc:Pre-Depends=' >>"$out/work/substvars"
	(cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	(cd "$out/work" && dpkg-gencontrol -p"$1" -P"$tree" -Tsubstvars)
	dpkg-deb --root-owner-group --build "$tree" "$out" >/dev/null
}

mkdir -p "$out/work/debian"
rm -rf "$out/tree" "$out"/*.deb
build
sed -e "s/@PG@/$pg/g" -e "s/@MAINTAINER@/$maintainer/" client/packaging/debian/control.in >"$out/work/debian/control"
{
	printf 'pg-doorbell (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n' "$version"
	printf ' -- %s  %s\n' "$maintainer" "$(date -uR -d "@$SOURCE_DATE_EPOCH")"
} >"$out/work/debian/changelog"
for name in "postgresql-$pg-doorbell" libdoorbell0 libdoorbell-dev doorbell; do
	package "$name"
done
ls "$out"/*.deb
