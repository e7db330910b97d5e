#!/usr/bin/env bats
# The protocol as a model, searched by spin: see test/lab/model/README.
# bats file_tags=long

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

@test "fences rise where a server goes back to an older one, by the clock" {
	finds holds dump
	finds refuted count-on
}

@test "without drift, or with validity counted from the reply, two hold it" {
	finds refuted no-drift from-reply
}

@test "a token used twice, or a reply taken for the next one, lets two hold it" {
	finds refuted one-token late-reply
}

@test "a release or an extension that does not compare lets two hold it" {
	finds refuted plain-del extend-any
}

@test "a command that outlives its validity runs beside the next one" {
	finds refuted kept-alive
}

@test "a break that asks lets no two hold it: neither who understands it nor who does not" {
	finds holds asked frozen
}

@test "a break that frees KEY at once, or a renewal that is kept all the same, lets two hold it" {
	finds refuted frees broken-kept
}

@test "a restarted server that votes at once lets two hold it" {
	finds refuted no-quarantine
}

@test "servers that forget have no vote: one of three within a lease, or all for the longest ttl" {
	finds holds forget apart longest
}

@test "a quarantine that is shorter than a ttl lets two hold it, unless who refuses is learned from" {
	finds refuted too-short no-learning
}

@test "a quorum that does not hear the others lets two hold it, where one was restarted or emptied" {
	finds refuted no-hearing hear-near sure-early
}

@test "a server that has lost its record, and votes, lets two hold it" {
	finds refuted no-record
}

@test "fences that are not raised on a quorum repeat" {
	finds refuted no-raise
}

@test "fences rise where locks are broken, too" {
	finds holds broken
}

@test "a grant that comes while fences are raised, and counts, lets fences repeat" {
	finds refuted read-on
}

@test "a raise by one that does not own the key gives two one fence" {
	finds refuted raise-anywhere
}

@test "a lock that is put back stays below no later one" {
	finds holds heal
}

@test "an extension that acquires, or putting back without a quorum, revives a lock after a later one" {
	finds refuted extend-takes heal-alone
}

@test "waiting by messages holds, and who stays has its turn" {
	finds holds queue turn
}

@test "a stale message, or validity from its receipt, lets two hold it" {
	finds refuted stale from-receipt
}

@test "a grant by message ends when the message says, from when its request was sent" {
	finds refuted whole-ttl from-first
	finds holds renewed
}

@test "two waiters with one token keep their own places, holds and leases" {
	finds holds same-token
	finds refuted place-of-token any-hold shortens
}

@test "who waits beside the queue is told that KEY was free, however late" {
	finds holds beside
	finds refuted untold stale-too
}

@test "without settling or heartbeats a waiter is forgotten" {
	finds refuted no-settle no-heartbeat
}

@test "no two hold one slot of permits: with moves, messages, requests that come twice, and a restart" {
	finds holds slots one-slot moved-twice told-slot slot-restart
}

@test "votes for different slots count together, or while they are moved: two hold one slot" {
	finds refuted together eager
}

@test "a late request that moves a token, or a message from before a move: two hold one slot" {
	finds refuted unnumbered stale-slot
}

@test "a renewal that asks for no slot, or a restart that votes at once: two hold one slot" {
	finds refuted unchecked young-slot
}

@test "whoever has moved to a slot gets a fence as new as that of any other" {
	finds holds slot-fences
	finds refuted old-fence
}

@test "several keys: all or none, no two wait for each other, and who stays has its turn" {
	finds holds several several-three several-turn
}

@test "several keys: who waits for a smaller key than it holds waits for ever" {
	finds refuted keeps-larger
}

@test "several keys: without renewals while it waits, nobody need ever hold all" {
	finds refuted no-renewal
}

@test "several keys: a command that outlives its first lease runs beside the next one, and a grant is forgotten that comes late" {
	finds refuted not-minimum keeps-some
}

@test "several keys: of those that do not wait one is served, unless none waits for what is given back" {
	finds holds no-wait
	finds refuted at-once
}
