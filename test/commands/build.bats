#!/usr/bin/env bats
# What make builds again, and where it installs what.
# shellcheck disable=SC2119,SC2154 # helpers set variables

load ../lib/helper
load ../lib/cli

# native: valgrind has a program of its own in place of what was built
# bats file_tags=native

# tree: a copy of this tree, built as it is here, in $TREE
tree() {
	local built=${REDLOCK%/*}
	[[ -f $built/flags ]] || skip "not built here"
	TREE=$TMP/tree
	mkdir -p "$TREE/test/lab" "$TREE/build"
	cp -a "$ROOT"/{Makefile,scripts,src,man} "$TREE"
	cp -a "$ROOT/test/lab/rules.mk" "$TREE/test/lab"
	# tar(1) would cut their times, and make would find them older than the sources
	(cd "$built" && find . -maxdepth 2 -type f ! -path './test/*' ! -path './mutant/*' \
		\( -name '*.[odh]' -o -name 'redlock*' -o -name flags -o -name probed.mk \) \
		-exec cp -a --parents -t "$TREE/build" {} +)
	sed -i "s,^build/[a-z,]*/\(redlock\|base\|cmd\|lock\|net\|run\|server\|settings\|show\|wait\)\>,build/\1,
		s, build/[a-z,]*/\(scripts\|built\)\.h, build/\1.h," "$TREE"/build/*.d "$TREE"/build/*/*.d
}

# makes ARGUMENT...: in that tree, in the way that it was built
makes() {
	local overrides=${MAKEFLAGS-}
	[[ $overrides == *'-- '* ]] || overrides='-- '
	MAKEFLAGS="-- ${overrides##*-- }" make -C "$TREE" --no-print-directory BUILD=build SANITIZE="${SANITIZE-}" "$@"
}

# rebuilt ARGUMENT...: the objects that make would build
rebuilt() {
	makes -n V=1 "$@" | grep -oE -- '-c -o build/[a-z_/]+\.o' | sed 's,.*build/,,' | sort
}

@test "a second make does nothing and starts no process" {
	tree
	makes -s
	makes -s >"$TMP/out"
	[[ ! -s $TMP/out ]]
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	MAKEFLAGS='' strace -f -qq -o "$TMP/trace" -e trace=execve make -s -C "$TREE" BUILD=build SANITIZE="${SANITIZE-}"
	[[ $(grep -c execve "$TMP/trace") == 1 ]]
}

@test "a changed flag, compiler or directory builds again what it concerns, and no more" {
	tree
	local every
	every=$(cd "$TREE/src" && find . -name '*.c' | wc -l)
	[[ $(rebuilt all) == '' ]]
	[[ $(rebuilt CFLAGS='-O1 -g' all | wc -l) == "$every" ]]
	# nothing was built: these are still the flags that make was told last
	[[ $(rebuilt CFLAGS='-O1 -g' all | wc -l) == "$every" ]]
	tree
	[[ $(rebuilt LDFLAGS=-Wl,-O1 all | wc -l) == "$every" ]]
	tree
	[[ $(rebuilt LIBDIR=/elsewhere all | paste -sd ' ') == 'cmd/version.o net/tls.o net/tls_load.o' ]]
	tree
	[[ $(rebuilt VERSION=9.9 all | paste -sd ' ') == 'cmd/version.o net/tls.o net/tls_load.o' ]]
}

@test "make install takes what was built, also if sudo has dropped CFLAGS" {
	tree
	# make knows no other way to see them gone than that they have changed
	[[ $(CFLAGS='-O1 -g' rebuilt install) == '' || $MAKEFLAGS == *CFLAGS=* ]]
	[[ $(rebuilt CFLAGS='-O1 -g' install) ]]
}

@test "a compiler or a linker that lacks an option is not given it" {
	tree
	cat >"$TMP/cc" <<-'text'
		#!/bin/sh
		case " $* " in
		*-fcf-protection* | *-mbranch-protection*) echo "unrecognized option" >&2; exit 1 ;;
		*pack-relative-relocs*) echo "warning: ignored" >&2; exit 1 ;;
		esac
		exec cc "$@"
	text
	chmod +x "$TMP/cc"
	makes -n V=1 CC="$TMP/cc" all >"$TMP/commands"
	grep -qF -- -fstack-clash-protection "$TMP/commands"
	[[ ! $(grep -E 'fcf-protection|pack-relative-relocs' "$TMP/commands") ]]
	run makes CC=false all
	[[ $status == 2 && $output == *'probe: false '*' does not compile; scripts/bootstrap installs what a build needs'* ]]
}

@test "what is missing is named, with what installs it" {
	tree
	run makes PKG_CONFIG=false all
	[[ $status == 2 && $output == *'probe: hiredis: false does not find it; scripts/bootstrap installs what a build needs'* ]]
	# and what was built is as good as it was
	[[ $(rebuilt all) == '' ]]
	run makes PKG_CONFIG=false help
	[[ $status == 0 ]]
}

@test "a build directory that cannot be written to is told of, and how to name another" {
	tree
	mkdir "$TMP/bin"
	printf '#!/bin/sh\necho "rm: Read-only file system" >&2\nexit 1\n' >"$TMP/bin/rm"
	chmod +x "$TMP/bin/rm"
	PATH=$TMP/bin:$PATH run makes PREFIX=/other install
	[[ $status == 2 && $output == *'build cannot be written to: name another directory with BUILD=DIR'* ]]
}

# installed ROOT: the files there, and links
installed() {
	(cd "$1" && find . ! -type d | sort)
}

@test "make install honours each directory, may be repeated, and make uninstall leaves no file" {
	tree
	local places=(DESTDIR="$TMP/root" BINDIR=/usr/sbin LIBDIR=/usr/lib/some-triplet MANDIR=/usr/man COMPLETIONDIR=/usr/completions
		ZSHDIR=/usr/zsh FISHDIR=/usr/fish)
	makes -s "${places[@]}" install
	[[ $(installed "$TMP/root" | grep -v /man/ | paste -sd ' ') == \
		'./usr/completions/redlock ./usr/fish/redlock.fish ./usr/lib/some-triplet/redlock/redlock-tls.so ./usr/sbin/redlock ./usr/sbin/redlock.sh ./usr/zsh/_redlock' ]]
	[[ -f $TMP/root/usr/man/man1/redlock-run.1 && -f $TMP/root/usr/man/man7/redlock-protocol.7 ]]
	[[ $(installed "$TMP/root" | grep -c /man/) == $(($(find "$ROOT"/man -type f | wc -l) + 7)) ]]
	cmp "$TMP/root/usr/man/man1/redlock-list.1" "$ROOT/man/redlock-status.1"
	installed "$TMP/root" >"$TMP/once"
	makes -s "${places[@]}" install
	installed "$TMP/root" | diff "$TMP/once" -
	# what others have put there stays
	touch "$TMP/root/usr/lib/some-triplet/redlock/foreign"
	makes -s "${places[@]}" uninstall
	[[ $(installed "$TMP/root") == ./usr/lib/some-triplet/redlock/foreign ]]
	rm "$TMP/root/usr/lib/some-triplet/redlock/foreign"
	makes -s "${places[@]}" install
	makes -s "${places[@]}" uninstall
	[[ ! $(installed "$TMP/root") && ! -d $TMP/root/usr/lib/some-triplet/redlock ]]
}

# installs STATUS: make install ends so, with an install(1) that cuts what it copies first, and fails if it copies $FAILING.
installs() {
	mkdir -p "$TMP/bin"
	cat >"$TMP/bin/install" <<-'end'
		#!/bin/sh
		for target; do :; done
		[ "$1" = -d ] || printf '#!' >"$target" || exit
		"$LIVE" --version >/dev/null 2>&1 || echo "not whole while there is a new $target" >>"$SAID"
		case " $* " in *" $FAILING "*) exit 1 ;; esac
		exec "$INSTALL" "$@"
	end
	chmod +x "$TMP/bin/install"
	LIVE=$TMP/root/usr/local/bin/redlock SAID=$TMP/said INSTALL=$(type -P install) PATH=$TMP/bin:$PATH \
		run makes -s DESTDIR="$TMP/root" install
	[[ $status == "$1" && ! -s $TMP/said ]] || { cat "$TMP/said" && false; }
}

# listed: what is installed, with its content
listed() {
	(cd "$TMP/root" && find . ! -type d -exec sha1sum {} + | sort)
}

@test "make install replaces each file at once, the program last, and leaves nothing behind if it fails" {
	tree
	local program=$TMP/root/usr/local/bin/redlock module=$TMP/root/usr/local/lib/redlock/redlock-tls.so inode
	makes -s DESTDIR="$TMP/root" install
	listed >"$TMP/once"
	export FAILING
	for FAILING in build/redlock-tls.so build/redlock scripts/redlock.sh man/redlock-run.1; do
		installs 2
		listed | diff "$TMP/once" -
	done
	# the module is the new one before the program is
	FAILING=build/redlock
	inode=$(stat -c %i "$program")
	echo older >"$module"
	installs 2
	[[ $(stat -c %i "$program") == "$inode" ]]
	listed | diff "$TMP/once" -
	FAILING=none
	installs 0
	[[ $(stat -c %i "$program") != "$inode" ]]
	listed | diff "$TMP/once" -
}

@test "a place with a blank is refused, and no other file is removed" {
	tree
	touch "$TMP/my"
	local place
	for place in DESTDIR PREFIX BINDIR LIBDIR MANDIR COMPLETIONDIR ZSHDIR FISHDIR MODULEDIR; do
		run makes "$place=$TMP/my files" uninstall
		[[ $status == 2 && $output == *"$place must not contain blanks: '$TMP/my files'"* ]]
		[[ -e $TMP/my ]]
	done
}

# finds_module PROGRAM [FILE]
finds_module() {
	local place
	place=$("$1" --version | sed -n 's/^TLS: OpenSSL .*, by //p')
	[[ $place && $place -ef ${2-$place} ]] || { echo "$1: '$place'" && false; }
	REDLOCK=$1
	refuses 69 'Connection refused' acquire -S rediss://127.0.0.1:1 key
	no_row_failed
}

@test "what is installed finds its module, wherever that is, and if all of it was moved" {
	tree
	makes -s DESTDIR="$TMP/1" PREFIX=/opt/redlock install
	finds_module "$TMP/1/opt/redlock/bin/redlock" "$TMP/1/opt/redlock/lib/redlock/redlock-tls.so"
	mv "$TMP/1/opt/redlock" "$TMP/1/moved"
	finds_module "$TMP/1/moved/bin/redlock" "$TMP/1/moved/lib/redlock/redlock-tls.so"
	ln -s "$TMP/1/moved/bin/redlock" "$TMP/link"
	finds_module "$TMP/link" "$TMP/1/moved/lib/redlock/redlock-tls.so"
	makes -s DESTDIR="$TMP/2" PREFIX=/usr LIBDIR=/usr/lib/some-triplet install
	finds_module "$TMP/2/usr/bin/redlock" "$TMP/2/usr/lib/some-triplet/redlock/redlock-tls.so"
	makes -s DESTDIR="$TMP/3" PREFIX=/usr MODULEDIR=/usr/libexec/redlock install
	finds_module "$TMP/3/usr/bin/redlock" "$TMP/3/usr/libexec/redlock/redlock-tls.so"
	# from a directory that is none of an installation: where it was installed
	makes -s PREFIX="$TMP/4" LIBDIR="$TMP/libraries" install
	finds_module "$TMP/4/bin/redlock" "$TMP/libraries/redlock/redlock-tls.so"
	mkdir "$TMP/home"
	cp "$TMP/4/bin/redlock" "$TMP/home"
	finds_module "$TMP/home/redlock" "$TMP/libraries/redlock/redlock-tls.so"
}
