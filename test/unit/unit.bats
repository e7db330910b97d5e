#!/usr/bin/env bats
# The parsers and printers, in C: see test/unit/.

load ../lib/helper

# unit NAME: its program says nothing and ends with 0.
unit() {
	[[ -x $TOOLS/unit_$1 ]] || skip "not built: make tests"
	run timeout -k 1 100 "$TOOLS/unit_$1" </dev/null
	echo "$output"
	[[ $status == 0 && $output == '' ]]
}

@test "DURATIONs are read and shown as they should be" {
	unit duration
}

@test "a number is digits and within its bounds, whatever is around it" {
	unit number
}

@test "the tokens of several locks are one text, which is taken apart again" {
	unit tokens
}

@test "server URLs of every shape are read or refused, and show no secret" {
	unit url
}

@test "hostile bytes are fit for a terminal, a JSON text and a shell" {
	unit output
}

@test "an error reply is told apart whatever server, or script, it comes from" {
	unit cause
}

@test "a server's file counts if it is old, has no users, or its user default may do all" {
	unit identity
}

@test "names and values in turn are found, whatever a server makes of them" {
	unit reply
}

@test "of an owner's holds one is picked, and of releases that pick the same one at least one has it" {
	unit pick
}

@test "the description of a holder is read, whatever is in it" {
	unit record
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "the process title is shown and true; argv and the environment stay what they were" {
	unit title
}

@test "a live line is drawn in its place on a terminal's foreground, and nowhere else" {
	unit live
}

@test "a wait is told of after 10 s, 1, 5 and 15 min, and then each 30 min" {
	unit progress
}

# native: valgrind shares no memory with a child
# bats test_tags=native
@test "COMMAND starts if a SIGSTOP hits the leader of its group, or memory cannot be shared" {
	unit child
}

@test "a guard that was told in time acts no more, however late or stopped it is" {
	unit guard
}

@test "a watchdog that is stopped twice closes nothing of others" {
	unit watchdog
}

@test "the arithmetic of a lease is that of redlock-protocol(7), for every ttl" {
	unit lease
}

@test "the times in settle.lua are those of base/lease.c" {
	run -0 sed -nE 's/^#define (FIRST_LEASE|HEARTBEAT_LONGEST) ([0-9]+)$/\2/p' "$ROOT/src/base/lease.c"
	[[ ${#lines[@]} == 2 ]]
	local settle=$ROOT/src/lock/lua/settle.lua
	grep -Fx "local unanswered = ${lines[0]}" "$settle"
	grep -F "now - wish.seen > $((2 * lines[1])) then" "$settle"
}

@test "COMMAND's tree is found and killed when it is time, and no stranger" {
	unit tree
}

@test "a failed round is worth what servers said, and never 0" {
	unit ballot
}

@test "votes for slots are counted for each, and moved where a quorum has one free" {
	unit slots
}

@test "a record that is missing has its time, whoever asks" {
	unit trust
}

@test "a key's slot and a cluster's masters are what Redis says" {
	unit cluster
}

@test "the nearest word is meant, however long words are" {
	unit suggest
}

@test "no two KEYs share a record, and none is what is beside another" {
	unit names
}

@test "where a server was is remembered as it was said, or not at all" {
	unit last_place
}

@test "a signal to a whole job is told from one to redlock, also if another took it back" {
	unit job
}

@test "every unit test of test/unit has been run here" {
	local file
	for file in "$ROOT"/test/unit/*.c; do
		file=${file##*/}
		grep -q "^	unit ${file%.c}\$" "$ROOT/test/unit/unit.bats"
	done
}
