#!/usr/bin/env bats
# A short form of what `make fleet` does for long.

load ../lib/helper

@test "a fleet's jobs run once a period, and history, check and metrics say what truly ran" {
	run env -u SEED DURATION=24 PERIODS=2 HOSTS=16 KEYS=3 "$ROOT/test/lab/fleet/fleet" 3>&- 4>&-
	[[ $status == 0 ]] || {
		echo "$output" >&2
		return 1
	}
}
