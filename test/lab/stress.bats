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

@test "several keys, named in any order: all or none, and nobody waits for ever" {
	stress several 1000
}
