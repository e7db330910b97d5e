#!/usr/bin/env bats
# How scripts come to a server: once on a connection, then by their SHA1, which nobody relies on.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set variables
load ../lib/helper
load ../lib/discovery

# sent COMMAND [SERVER]: how often it has come from clients since CONFIG RESETSTAT
sent() {
	rcli "${2:-0}" INFO commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0
}

@test "acquire and release are one script, and it is sent once on a connection" {
	local kind
	servers_start 1
	for kind in -x -r -s '-P 2'; do
		rcli 0 CONFIG RESETSTAT
		# shellcheck disable=SC2086 # words
		redlock run $kind "$KEY$kind" true
		expect 0
		echo "$kind: $(sent eval) $(sent evalsha)" >&2
		[[ $(sent eval) == 1 && $(sent evalsha) == 1 ]]
	done
}

@test "in a cluster, too, the script is sent once on a connection" {
	cluster_start 3 0
	redlock run "$KEY" true
	expect 0
	local i eval=0 evalsha=0
	for i in 0 1 2; do
		((eval += $(sent eval $i), evalsha += $(sent evalsha $i))) || :
	done
	[[ $eval == 1 && $evalsha == 1 ]]
}

@test "a waiter sends the script once, however often it asks, and to release" {
	servers_start 1
	token=$("$REDLOCK" acquire -t 10m "$KEY")
	rcli 0 CONFIG RESETSTAT
	spawn waiter "$REDLOCK" run -t 2s "$KEY" true
	wait_until '(($(sent evalsha) >= 3))'
	[[ $(sent eval) == 1 ]]
	"$REDLOCK" release "$KEY" "$token"
	finish waiter
	expect 0
	[[ $(sent eval) == 2 ]] # that release was on a connection of its own
}

@test "a server that has forgotten the script is sent it again: KEY is released, waiters are served" {
	servers_start 1
	redlock run "$KEY" redis-cli -s "$SERVERS/0/redis.sock" SCRIPT FLUSH
	expect 0 OK
	[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
	token=$("$REDLOCK" acquire -t 10m "$KEY")
	spawn waiter "$REDLOCK" run -t 2s "$KEY" true
	wait_until '(($(sent evalsha) >= 3))'
	rcli 0 SCRIPT FLUSH
	"$REDLOCK" release "$KEY" "$token"
	finish waiter
	expect 0
	[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
}

@test "a user, or a server, without EVALSHA is sent the whole script each time" {
	servers_start 1
	rcli 0 ACL SETUSER ann on '>pw' '~*' '&*' +@all -evalsha
	redlock run -S "unix://ann:pw@$SERVERS/0/redis.sock" "$KEY" true
	expect 0
	[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
	[[ $(sent eval) == 2 ]]
	servers_start 1 --rename-command EVALSHA ''
	redlock run "$KEY" true
	expect 0
	[[ $(sent eval) == 2 && $(rcli 0 EXISTS "$KEY") == 0 ]]
}
