#!/usr/bin/env bats
# make mutate: what is drawn, and which tests come first. Whether tests notice it takes hours.
# shellcheck disable=SC2154 # helpers set variables

load ../lib/helper

# draws SEED COUNT: says what these are.
draws() {
	BUILD=$TMP SHOW=1 SEED=$1 COUNT=$2 ONLY='' run -0 "$ROOT/test/lab/mutate/mutate"
}

@test "a seed has the same mutations each time, and another seed has others" {
	local first
	draws 1 20
	first=$output
	draws 1 20
	[[ $output == "$first" ]]
	draws 2 20
	[[ $output != "$first" ]]
}

@test "a mutation changes one place of one file, and its diff can be applied" {
	local diff
	draws 3 40
	cp -a "$ROOT/src" "$TMP/src"
	for diff in "$TMP"/mutate/3/*.diff; do
		[[ $(grep -c '^@@' "$diff") == 1 ]]
		patch -s -p1 -F0 -d "$TMP" <"$diff"
		patch -s -p1 -F0 -R -d "$TMP" <"$diff"
	done
	diff -r "$ROOT/src" "$TMP/src"
}

@test "the tests that come first are there, and so are the modules that they are for" {
	local file files module
	while read -r module files; do
		[[ $module && $module != '#' ]] || continue
		[[ -d $ROOT/src/$module || -f $ROOT/src/$module.c || -f $ROOT/src/$module.lua ]]
		for file in $files; do [[ -f $ROOT/test/$file.bats ]]; done
	done <"$ROOT/test/lab/mutate/tests"
}
