#!/usr/bin/env bats
# Short forms of what `make stress` does for long.

load ../lib/helper

# stress TOPIC COUNT [NAME=VALUE...]: what was violated is shown, with the seed. Sanitizers make
# a process so much slower that a quarter has to do.
stress() {
	local topic=$1 count=$2
	shift 2
	[[ $REDLOCK == */build/redlock ]] || count=$((count / 4))
	run env -u SEED COUNT="$count" "$@" "$ROOT/test/lab/stress/stress" "$topic" 3>&- 4>&-
	[[ $status == 0 ]] || {
		echo "$output" >&2
		return 1
	}
}

@test "no wake-up is lost in hand-overs over a network with random delays" {
	stress hand-overs 600
}

@test "no wake-up is lost in hand-overs on three servers" {
	stress hand-overs 300 SERVERS=3
}

@test "the order of the queue holds while contenders are killed and stopped" {
	stress order 1000
}

@test "readers and writers are not passed by later ones that they cannot share with" {
	stress sharing 2000
}

@test "several keys, named in any order: all or none, and nobody waits for ever" {
	stress several 1000
}

@test "there are never more than N with N permits, with processes and servers killed" {
	stress permits 0 DURATION=6 SHORT=1
}
