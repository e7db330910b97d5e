#!/usr/bin/env bats
# Short forms of what `make stress` does for long.

load helper

# stress TOPIC [NAME=VALUE...]: what was violated is shown, with the seed.
stress() {
	local topic=$1
	shift
	run env -u SEED "$@" "$ROOT/test/load/stress" "$topic" 3>&- 4>&-
	[[ $status == 0 ]] || {
		echo "$output" >&2
		return 1
	}
}

@test "no wake-up is lost in hand-overs over a network with random delays" {
	stress hand-overs COUNT=600
}

@test "no wake-up is lost in hand-overs on three servers" {
	stress hand-overs COUNT=300 SERVERS=3
}

@test "the order of the queue holds while contenders are killed and stopped" {
	stress order COUNT=1000
}

@test "readers and writers are not passed by later ones that they cannot share with" {
	stress sharing COUNT=2000
}

@test "there are never more than N with N permits, with processes and servers killed" {
	stress permits DURATION=6 SHORT=1
}
