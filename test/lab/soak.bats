#!/usr/bin/env bats
# Short forms of what `make soak` does for long.
# bats file_tags=long

load ../lib/helper

# soak SERVERS SECONDS: what was violated is shown, with the seed.
soak() {
	[[ $(id -u) == 0 && -c /dev/net/tun ]] || skip "needs root and /dev/net/tun"
	ip netns add "soak-$$" || skip "network namespaces can't be made here"
	ip netns del "soak-$$"
	run env -u SEED SERVERS="$1" DURATION="$2" CLIENTS=6 "$ROOT/test/lab/soak/soak" 3>&- 4>&-
	[[ $status == 0 ]] || {
		echo "$output" >&2
		return 1
	}
}

@test "locks on one server survive 6 seconds of faults" {
	soak 1 6
}

@test "locks on three servers survive 7 seconds of faults" {
	soak 3 7
}

@test "locks on five servers survive 7 seconds of faults" {
	soak 5 7
}
