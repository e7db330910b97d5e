#!/usr/bin/env bats
# The order of the house: what make lint says of an include that leads up, of a circle, and of a long function.
# shellcheck disable=SC2154 # helpers set variables

load ../lib/helper

setup() {
	TMP=$BATS_TEST_TMPDIR
	mkdir -p "$TMP"/src/{base,net,run,wait,settings,cmd}
	file base/error.h
	file base/log.c base/log.h base/error.h
	file base/log.h
	file net/url.h base/error.h
	file net/stream.c base/log.h net/url.h
	file run/child.c base/log.h
	file run/child.h
	file wait/queue.h
	file settings/config.h net/url.h base/error.h
	file cmd/run.c run/child.h settings/config.h
	file redlock.c settings/config.h
}

# file NAME INCLUDED...: src/NAME, with these includes
file() {
	local name=$1
	shift
	{ (($#)) && printf '#include "%s"\n' "$@"; } >"$TMP/src/$name" || :
	[[ $name != *.c ]] || printf 'int f(void)\n{\n\treturn 1;\n}\n' >>"$TMP/src/$name"
}

# finds LINE...: that is what it finds
finds() {
	run "$ROOT/test/lab/house" --check "$TMP"
	echo "$output"
	[[ $output == "$(printf '%s\n' "$@")" && $status == $(($# > 0)) ]]
}

@test "a house in order has no findings" {
	finds
}

@test "an include that leads up is found, and one from beside" {
	file base/error.h net/url.h
	file wait/queue.h run/child.h
	finds 'src/base/error.h includes net/url.h: net is not below base' \
		'src/wait/queue.h includes run/child.h: run is not below wait' \
		'circle: base/error net/url'
	file base/error.h redlock.c
	file wait/queue.h
	finds 'src/base/error.h includes redlock.c: redlock is not below base' \
		'circle: base/error net/url redlock settings/config'
}

@test "an include that leads up is found, however it is written" {
	file base/error.h ../net/url.h
	finds 'src/base/error.h includes net/url.h: net is not below base' \
		'circle: base/error net/url'
	echo '#include <wait/queue.h>' >"$TMP/src/base/error.h"
	finds 'src/base/error.h includes wait/queue.h: wait is not below base'
	file base/error.h
	file settings/options.h config.h
	file settings/config.h options.h
	finds 'circle: settings/config settings/options'
}

@test "settings know the URL of a server, and nothing else above base" {
	file net/stream.h
	file settings/options.c net/stream.h settings/config.h
	finds 'src/settings/options.c includes net/stream.h: settings includes base/ and net/url.h only'
}

@test "a circle within a folder is found, however long, and through any file" {
	file settings/options.h settings/config.h
	file settings/help.c settings/options.h
	file settings/help.h
	file settings/config.c settings/help.h
	finds 'circle: settings/config settings/help settings/options'
}

@test "a room that has no floor, and a function of 61 lines, are found" {
	mkdir "$TMP/src/attic"
	file attic/box.c base/log.h
	{
		echo 'int long_one(void)'
		echo '{'
		printf '\tf();\n%.0s' {1..57}
		printf '\treturn 1;\n}\n'
	} >>"$TMP/src/net/stream.c"
	finds 'src/attic/box.c includes base/log.h: base is not below attic' \
		"$TMP/src/net/stream.c: long_one has 61 lines"
}

@test "the picture of a tree without folders has its modules for rooms" {
	rm -r "$TMP/src"
	mkdir "$TMP/src"
	file top.c middle.h
	file middle.h low.h
	file middle.c middle.h
	file low.c low.h
	file low.h
	touch "$TMP/Makefile" "$TMP/README"
	run -0 "$ROOT/test/lab/house" "$TMP"
	echo "$output"
	[[ ${lines[1]} == '  3  top '*' 1  middle' && ${lines[2]} == '  2  middle '*' 2  low' && ${lines[3]} == '  1  low '*' 2' ]]
	[[ $output == *'floors '*' 3'$'\n''arrows between rooms '*' 2'$'\n''circles of modules '*' 0'* ]]
}
