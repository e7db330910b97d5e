#!/usr/bin/env bats
# A short form of what `make stress` does for long.

load ../lib/helper

# Violations are shown, with the seed. Sanitizers make a process so much slower that a quarter has
# to do.
@test "several keys, named in any order: all or none, and nobody waits for ever" {
	local count=1000
	[[ $REDLOCK == */build/redlock ]] || count=$((count / 4))
	run env -u SEED COUNT="$count" "$ROOT/test/lab/stress/stress" several 3>&- 4>&-
	[[ $status == 0 ]] || {
		echo "$output" >&2
		return 1
	}
}
