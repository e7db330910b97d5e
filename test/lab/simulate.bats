#!/usr/bin/env bats
# Short forms of what `make simulate` does for long.
# shellcheck disable=SC2030,SC2031 # tests are subshells

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
		build/simulate/mutant/{raise-always,reads-on,release-anybody,slot-unchecked,young-is-old}/simulate \
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

@test "of many who come at once one runs, and of those who want several keys" {
	local option
	for option in --permits --several; do
		run "$SIMULATE" --jobs 2 --crowds "$option" 1 8
		[[ $status == 0 && $output == *"8 seeds, 0 violations"* ]] || {
			echo "$output" >&2
			return 1
		}
	done
}

@test "while nothing stands in the way nobody waits for long" {
	local option
	for option in --peace --permits; do
		run "$SIMULATE" --jobs 2 --peace "$option" 1 60
		[[ $status == 0 && $output == *"60 seeds, 0 violations"* ]] || {
			echo "$output" >&2
			return 1
		}
	done
}

# goes_on WHY SEED [OPTION]: in that run somebody waited for a heartbeat or two, or got a smaller fence.
goes_on() {
	run "$SIMULATE" --peace "${@:3}" "$2"
	[[ $status == 0 ]] || {
		echo "$1: $output" >&2
		return 1
	}
}

@test "nobody waits until servers are asked again after heartbeats, and no fence falls" {
	goes_on "a refusal that its message has overtaken" 243
	goes_on "a vote that does not count, and one given back" 125
	goes_on "a server whose word frees votes is heard last" 561
	goes_on "votes for two slots, one of which does not count" 859
	goes_on "votes for two slots, one of which does not count" 305 --permits
	goes_on "all votes were given back" 237
	goes_on "all votes were given back" 383 --permits
	goes_on "a round for several keys that repeats split votes without a pause" 363 --several
	goes_on "fences that two attempts of an owner have left" 3218
}

@test "the same seed is the same run, byte for byte" {
	"$SIMULATE" --trace 2 >"$BATS_TEST_TMPDIR/1"
	"$SIMULATE" --trace 2 >"$BATS_TEST_TMPDIR/2"
	cmp "$BATS_TEST_TMPDIR/1" "$BATS_TEST_TMPDIR/2"
	grep -q 'COMMAND begins' "$BATS_TEST_TMPDIR/1"
}

# finds MUTANT SEED TEXT [OPTION]: it breaks a promise in that run, which redlock keeps. (If a redlock
# asks otherwise, its seeds are others: simulate.c has the first from 1 on.)
finds() {
	run build/simulate/mutant/"$1"/simulate "${@:4}" "$2"
	[[ $status == 1 && $output == *"seed $2: $3"* ]] || {
		echo "$output" >&2
		return 1
	}
	run "$SIMULATE" "${@:4}" "$2"
	[[ $status == 0 ]]
}

@test "the simulation finds a release that compares nothing" {
	finds release-anybody 29 "two hold key0"
}

@test "the simulation finds young records that are relied on" {
	finds young-is-old 153 "two hold key0"
}

@test "the simulation finds a message that counts for a fence being raised" {
	finds reads-on 7 "client 1 holds key0 with the fence"
}

@test "the simulation finds a fence that is raised where others have the key" {
	finds raise-always 1843 "key0 was taken away from client 4, which begins with the fence"
}

@test "the simulation finds a renewal that counts another slot" {
	finds slot-unchecked 228 "client 1 believes in key0 until" --permits
}

@test "a run that breaks a promise can be made smaller" {
	run build/simulate/mutant/release-anybody/simulate --shrink 7
	[[ $status == 1 && $output =~ "--trace --drop "([^ ]*)" 7" ]] || return
	run build/simulate/mutant/release-anybody/simulate --trace --drop "${BASH_REMATCH[1]}" 7
	[[ $status == 1 && $output == *"VIOLATION  "*key0* ]]
}

@test "the simulated Redis answers as a real one does" {
	COUNT=3000 SEEDS=2 run test/lab/simulate/differential
	[[ $status == 0 && $output == *"3000 answers and messages compared, all the same"* ]]
}
