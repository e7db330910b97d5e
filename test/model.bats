#!/usr/bin/env bats
# The protocol as a model, searched by spin: see test/model/README.

# finds holds|refuted NAME ...: every one of these searches comes to this end
finds() {
	local expected=$1
	shift
	command -v spin >/dev/null || skip 'no spin'
	export MODELS=$BATS_TEST_TMPDIR DEPTH=short
	run "$BATS_TEST_DIRNAME/model/check" "$@"
	echo "$output"
	[[ $status == 0 && ${#lines[@]} == $(($# + 1)) ]]
	[[ $(grep -c "found $expected\$" <<<"$output") == "$#" ]]
}

@test "the quorum protocol holds, with renewals and restarts" {
	finds holds quorum renewal restart
}

@test "fences rise" {
	finds holds fences
}

@test "without drift, or counted from the reply, validity outlives the quorum" {
	finds refuted no-drift from-reply
}

@test "a token used twice, or a reply taken for the next one, is a lock without a quorum" {
	finds refuted one-token late-reply
}

@test "a release or an extension that does not compare is a lock without a quorum" {
	finds refuted plain-del extend-any
}

@test "a command that outlives its validity runs beside the next one" {
	finds refuted kept-alive
}

@test "a restarted server that votes at once lets two hold it" {
	finds refuted no-quarantine
}

@test "fences that are not raised on a quorum repeat" {
	finds refuted no-raise
}

@test "waiting by messages holds, and who stays has its turn" {
	finds holds queue turn
}

@test "a stale message, or validity from its receipt, lets two hold it" {
	finds refuted stale from-receipt
}

@test "without settling or heartbeats a waiter is forgotten" {
	finds refuted no-settle no-heartbeat
}
