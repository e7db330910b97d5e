#!/usr/bin/env bats
# What packages are built from. `make package` builds, installs and tries them.

# shellcheck disable=SC2154 # helpers set variables

load ../lib/helper

PARTS=$ROOT/scripts/package.d

setup_file() {
	# the source as it is here, committed or not, in a repository of its own
	export SOURCE=$BATS_FILE_TMPDIR/source
	mkdir "$SOURCE"
	(cd "$ROOT" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$SOURCE"
	cd "$SOURCE" || return
	git init -q
	git add -A
	git -c user.name=test -c user.email=test@example.org commit -qm test
}

version() {
	sed -n 's/^VERSION = //p' "$ROOT/Makefile"
}

# installed DIRECTORY: what make install puts there, by the names that it has in a package
installed() {
	make -s -C "$ROOT" BUILD="${REDLOCK%/*}" DESTDIR="$1" install >/dev/null
	(cd "$1/usr/local" && find . -type f -o -type l) | sed 's,^\./,usr/,; s,^usr/lib/,&any/,'
}

@test "make dist has the same bytes anywhere, of git and of what it made itself" {
	local name
	name=redlock-$(version)
	cd "$SOURCE"
	make -s dist
	(umask 077 && LC_ALL=C TZ=XXX-14 scripts/package.d/dist "$TMP/again.tar.gz")
	cmp "build/$name.tar.gz" "$TMP/again.tar.gz"
	tar -xzf "$TMP/again.tar.gz" -C "$TMP"
	[[ ! -e $TMP/$name/.git && ! -e $TMP/$name/build ]]
	make -s -C "$TMP/$name" dist
	cmp "build/$name.tar.gz" "$TMP/$name/build/$name.tar.gz"
	diff <(git ls-files | sort) <(cd "$TMP/$name" && find . \( -type f -o -type l \) ! -path './build/*' | sed 's,^\./,,' | sort)
}

@test "make dist is of what is committed, and says if there is more" {
	cp -a "$SOURCE" "$TMP/source"
	cd "$TMP/source"
	scripts/package.d/dist "$TMP/one.tar.gz"
	echo change >>README
	run -0 scripts/package.d/dist "$TMP/two.tar.gz"
	[[ $output == 'dist: without the changes that are not committed' ]]
	cmp "$TMP/one.tar.gz" "$TMP/two.tar.gz"
	git -c user.name=test -c user.email=test@example.org commit -qam change
	scripts/package.d/dist "$TMP/three.tar.gz"
	run -1 cmp -s "$TMP/one.tar.gz" "$TMP/three.tar.gz"
}

@test "the version stands in Makefile, and in the changelog's first line" {
	local version
	version=$(version)
	[[ $(head -n 1 "$PARTS/changelog") == "$version "2[0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] ]]
	redlock --version
	[[ ${lines[0]} == "redlock $version"* ]]
	run -1 grep -rnF --exclude=changelog "$version" "$PARTS" "$ROOT"/scripts/package "$ROOT"/src
}

@test "without arguments scripts/package builds the packages of this system" {
	local tool
	cp -a "$SOURCE" "$TMP/source"
	printf '#!/bin/sh\necho "bootstrap $*"\nexit 1\n' >"$TMP/source/scripts/bootstrap"
	for tool in apt-get:deb dnf:rpm apk:apk; do
		mkdir "$TMP/${tool%:*}"
		ln -s "$(type -P dirname)" "$TMP/${tool%:*}"
		ln -s "$(type -P true)" "$TMP/${tool%:*}/${tool%:*}"
		run -1 env PATH="$TMP/${tool%:*}" "$TMP/source/scripts/package"
		[[ $output == "bootstrap --${tool#*:}" ]]
	done
}

@test "scripts/package refuses a path with a blank before it builds" {
	cp -a "$SOURCE" "$TMP/a source"
	printf '#!/bin/sh\necho "bootstrap $*"\nexit 1\n' >"$TMP/a source/scripts/bootstrap"
	run -64 "$TMP/a source/scripts/package" deb
	[[ $output == "package: the path of the source must not contain blanks: '$TMP/a source'" ]]
	run -0 "$TMP/a source/scripts/package" --help
}

@test "the changelog is one of Debian's, and one of rpm's" {
	"$PARTS/changes" deb <"$PARTS/changelog" >"$TMP/deb"
	[[ $(head -n 1 "$TMP/deb") == "redlock ($(version)-1) unstable; urgency=medium" ]]
	[[ $(grep -c '^redlock (' "$TMP/deb") == $(grep -c '^[0-9]' "$PARTS/changelog") ]]
	if command -v dpkg-parsechangelog; then
		run -0 dpkg-parsechangelog -l "$TMP/deb" --all
		[[ $output != *warning* ]]
	fi
	run -1 grep -E '^ [ *].{79}' "$TMP/deb" # lintian warns of such a line
	"$PARTS/changes" rpm <"$PARTS/changelog" >"$TMP/rpm"
	[[ $(head -n 1 "$TMP/rpm") == '* '[A-Z][a-z][a-z]' '[A-Z][a-z][a-z]' '[0-9][0-9]' 2'*"> - $(version)-1" ]]
	# every word of it is in both
	diff <(grep -v '^\([0-9]\|$\)' "$PARTS/changelog" | sed 's/^\t[* ] //') \
		<(sed -n 's/^  [* ] //p' "$TMP/deb")
	diff <(grep -v '^\([0-9]\|$\)' "$PARTS/changelog" | sed 's/^\t[* ] //') \
		<(sed -n 's/^[- ] //p' "$TMP/rpm")
}

@test "each file that is installed is in one package" {
	local file pattern count
	installed "$TMP/root" >"$TMP/files"
	[[ $(wc -l <"$TMP/files") -gt 10 ]]
	while IFS= read -r file; do
		count=0
		while IFS= read -r pattern; do
			# a pattern names a file, or the directory that it is in
			# shellcheck disable=SC2053
			[[ $file != $pattern && $file != $pattern/* ]] || ((++count))
		done < <(cat "$PARTS"/debian/redlock.install "$PARTS"/debian/redlock-tls.install)
		[[ $count == 1 ]] || { echo "in $count packages of Debian: $file" && false; }
		count=0
		while IFS= read -r pattern; do
			# shellcheck disable=SC2053
			[[ /$file != $pattern && /$file != ${pattern%/}/* ]] || ((++count))
		done < <(sed -n '/^%files/,/^%changelog/s/^%{/&/p' "$PARTS/redlock.spec.in" |
			sed 's,%{_bindir},/usr/bin,; s,%{_libdir},/usr/lib/any,; s,%{_mandir},/usr/share/man,; s,%{_datadir},/usr/share,')
		[[ $count == 1 ]] || { echo "in $count packages of the .spec: $file" && false; }
	done <"$TMP/files"
}

@test "the example of redlock.conf is one that redlock takes, with and without its #" {
	servers_start 1
	install -m 644 "$PARTS/redlock.conf" "$TMP/conf"
	redlock run --config "$TMP/conf" "$KEY" true
	expect 0
	sed -i 's/^#\([^ ]\)/\1/' "$TMP/conf"
	[[ $(grep -c '^[a-z[]' "$TMP/conf") -gt 8 ]]
	redlock run --config "$TMP/conf" "$KEY" true
	expect 0
}

@test "scripts/package and what it is made of can be read by their shells" {
	local file
	for file in "$ROOT/scripts/package" "$PARTS"/{dist,changes} "$PARTS"/debian/tests/{lock,tls,common.sh}; do
		dash -n "$file"
	done
	sh -n "$PARTS/APKBUILD.in"
	run -64 "$ROOT/scripts/package" zip
	run -64 "$PARTS/changes" zip
}

# native: valgrind has a program of its own in place of what was built
# bats test_tags=native
@test "the tests of the installed packages pass with what is built here" {
	mkdir "$TMP/bin"
	ln -s "$REDLOCK" "$TMP/bin/redlock"
	PATH=$TMP/bin:$PATH AUTOPKGTEST_TMP=$TMP run -0 sh "$PARTS/debian/tests/tls"
}
