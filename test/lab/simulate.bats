#!/usr/bin/env bats
# Short forms of what `make simulate` does for long.

load ../lib/helper

setup_file() {
	[[ -z ${SANITIZE-} ]] || skip "fibers and sanitizers do not go together"
	pkg-config --exists lua5.1 || skip "there is no Lua 5.1"
	[[ $(ldd --version 2>&1) != *musl* ]] || skip "there is no ucontext(3)"
	# with the variables that redlock was built with, or it is built anew
	local overrides=${MAKEFLAGS-}
	[[ $overrides == *'-- '* ]] || overrides='-- '
	MAKEFLAGS="-- ${overrides##*-- }" make -s -j2 -C "$ROOT" build/simulate/simulate \
		build/simulate/differential build/test/clock.so \
		build/simulate/mutant/{release-anybody,young-is-old}/simulate \
		>"$BATS_FILE_TMPDIR/make" 2>&1 || {
		cat "$BATS_FILE_TMPDIR/make"
		return 1
	}
}

SIMULATE=build/simulate/simulate

setup() {
	cd "$ROOT" || return
}

@test "redlock keeps its promises in simulated time" {
	run "$SIMULATE" --jobs 2 1 16
	[[ $status == 0 ]] || {
		echo "$output" >&2
		return 1
	}
	[[ $output == *"16 seeds, 0 violations"* ]]
}

@test "the same seed is the same run, byte for byte" {
	"$SIMULATE" --trace 2 >"$BATS_TEST_TMPDIR/1"
	"$SIMULATE" --trace 2 >"$BATS_TEST_TMPDIR/2"
	cmp "$BATS_TEST_TMPDIR/1" "$BATS_TEST_TMPDIR/2"
	grep -q 'COMMAND begins' "$BATS_TEST_TMPDIR/1"
}

@test "the simulation finds a release that compares nothing" {
	run build/simulate/mutant/release-anybody/simulate 5
	[[ $status == 1 && $output == *"seed 5: two hold key0"* ]]
}

@test "the simulation finds young records that are relied on" {
	run build/simulate/mutant/young-is-old/simulate 2
	[[ $status == 1 && $output == *"seed 2: two hold key0"* ]]
}

@test "a run that breaks a promise can be made smaller" {
	run build/simulate/mutant/release-anybody/simulate --shrink 5
	[[ $status == 1 && $output =~ "--trace --drop "([^ ]*)" 5" ]] || return
	run build/simulate/mutant/release-anybody/simulate --trace --drop "${BASH_REMATCH[1]}" 5
	[[ $status == 1 && $output == *"VIOLATION  two hold key0"* ]]
}

@test "the simulated Redis answers as a real one does" {
	COUNT=3000 SEEDS=2 run test/lab/simulate/differential
	[[ $status == 0 && $output == *"3000 answers and messages compared, all the same"* ]]
}
