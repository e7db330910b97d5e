#!/usr/bin/env bats
# How scripts come to a server: named by their SHA1, and whole only to one that does not know them.
# bats file_tags=long

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set variables
load ../lib/helper
load ../lib/discovery

# sent COMMAND [SERVER]: how often it has come from clients since CONFIG RESETSTAT
sent() {
	rcli "${2:-0}" INFO commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0
}

# received [SERVER]: the bytes that it has been sent.
received() {
	rcli "${1:-0}" INFO stats | sed -n 's/^total_net_input_bytes:\([0-9]*\).*/\1/p'
}

@test "acquire and release are one script, which a server is sent once, by the first run" {
	local kind sent=1
	servers_start 1
	for kind in -x -r -s '-P 2' '--remember 1d' '--once-in 10d'; do
		rcli 0 CONFIG RESETSTAT
		# shellcheck disable=SC2086 # words
		redlock run $kind "$KEY$kind" true
		expect 0
		echo "$kind: $(sent eval) $(sent evalsha)" >&2
		[[ $(sent eval) == "$sent" && $(sent evalsha) == 2 ]] # the first one was refused
		sent=0
	done
}

@test "a run sends less than 1 KB to a server that knows the script" {
	servers_start 1
	scripts_known
	redlock run "$KEY" true
	expect 0
	echo "$(received)" >&2
	(($(received) < 1000))
}

@test "in a cluster, too, the script is sent once to each node" {
	cluster_start 3 0
	local i run eval=0 evalsha=0
	for run in 1 2; do
		redlock run "$KEY" true
		expect 0
	done
	for i in 0 1 2; do
		((eval += $(sent eval $i), evalsha += $(sent evalsha $i))) || :
	done
	[[ $eval == 1 && $evalsha == 4 ]]
}

# a round trip takes more than half of --server-timeout
far_and_flushed() {
	local i
	for ((i = 0; i < $1; i++)); do
		rcli "$i" SCRIPT FLUSH
		proxy "$i" "delay $((300 * SLOW))"
	done
	redlock run --quarantine 0 --server-timeout "$((1000 * SLOW))ms" -S "$2" "$KEY" echo ran
	expect 0 ran
	wait_until "nothing_left {0..$(($1 - 1))}"
}

@test "to be sent the script a server has --server-timeout once more" {
	servers_start 3
	proxies_start
	KEY=$KEY-one far_and_flushed 1 "$(proxy_url 0)"
	KEY=$KEY-three far_and_flushed 3 "$(proxy_urls)"
}

# The script is sent once, by the acquire. A renewal, which there may be, is another script, without `#ARGV>6`.
@test "a waiter names the script, however often it asks, and to release" {
	servers_start 1
	monitor 0
	token=$("$REDLOCK" acquire -t 10m "$KEY")
	spawn waiter "$REDLOCK" run -t 2s "$KEY" true
	wait_until '(($(sent evalsha) >= 4))'
	"$REDLOCK" release "$KEY" "$token"
	finish waiter
	expect 0
	(($(requests 0) >= 7))
	[[ $(grep -c '"EVAL" ".*#ARGV>6' "$TMP/monitor0.out") == 1 ]]
}

@test "the first run after a restart, or SCRIPT FLUSH, is like any other, on one server and on three" {
	local count
	servers_start 3
	for count in 1 3; do
		use "$count"
		redlock run --quarantine 0 "$KEY" echo first
		expect 0 first
		rcli 0 SCRIPT FLUSH
		redlock run --quarantine 0 "$KEY" echo flushed
		expect 0 flushed
		server_restart 0 1 2
		redlock run --quarantine 0 "$KEY" echo restarted
		expect 0 restarted
		wait_until 'key_free 0 1 2'
	done
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

@test "a lock that was acquired before its server forgot the script is kept, and released" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	rcli 0 SCRIPT FLUSH
	renewals 2
	touch "$TMP/end"
	finish run
	expect 0
	key_free 0
	token=$("$REDLOCK" acquire "$KEY")
	rcli 0 SCRIPT FLUSH
	redlock release "$KEY" "$token"
	expect 0
	key_free 0
}

# behind_delay: three servers that vote at once; the third is far away, and knows no script. $DIRECT
# has their own URLs.
behind_delay() {
	servers_start 3 --appendonly yes --appendfsync always
	DIRECT=$REDLOCK_SERVERS
	scripts_known 0 1
	proxies_start
	proxy 2 'delay 160'
	REDLOCK_SERVERS=$(server_urls 0 1),$(proxy_url 2)
}

@test "a run that ends before a slow server has asked for the script leaves nothing there, but the script" {
	behind_delay
	redlock run "$KEY" true
	expect 0
	wait_until '[[ $(sent eval 2) == 1 ]]'
	wait_until 'server_drained 2'
	nothing_left 2
	redlock run "$KEY" true
	expect 0
	wait_until '[[ $(rcli 2 EXISTS "$(record)") == 1 ]]'
	wait_until 'server_drained 2'
	nothing_left 2
}

@test "an acquire, and a release, by their SHA1 reach a slow server that does not know it" {
	behind_delay
	redlock acquire -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	wait_until "key_held_by $output 0 1 2"
	wait_until 'server_drained 2'
	rcli 2 SCRIPT FLUSH
	redlock release "$KEY" "$output"
	expect 0
	wait_until 'key_free 0 1 2'
}

@test "an acquire that has ended is not sent again to a server that is silent: it could come after the release" {
	servers_start 3
	export REDLOCK_QUARANTINE=0
	scripts_known 0 1 2
	proxies_start
	rcli 2 CONFIG RESETSTAT
	proxy 2 mute
	redlock acquire -S "$(server_urls 0 1),$(proxy_url 2)" "$KEY"
	expect 0 '[0-9a-f]{32}'
	wait_until 'server_drained 2'
	[[ $(sent time 2) == 1 ]] # as it calls it, once each time
	redlock release "$KEY" "$output"
	expect 0
	key_free 0 1 2
}

@test "a release reaches a slow server that has forgotten the script since it was used" {
	behind_delay
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until '[[ $(rcli 2 EXISTS "$KEY") == 1 ]]'
	renewals 3 2 # it has answered, and more than a second ago
	rcli 2 SCRIPT FLUSH
	touch "$TMP/end"
	finish run
	expect 0
	wait_until 'server_drained 2'
	nothing_left 2
}

@test "a slow server that does not know the script is told the fence after the acquire" {
	behind_delay
	rcli 0 HSET "$(record)" fence 4000000000000000
	rcli 1 HSET "$(record)" fence 4000000000000000
	redlock acquire -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	wait_until '[[ $(fence_at 2) == 4000000000000001 ]]'
	key_held_by "$output" 2
	# the same while it asks for the script before the holder has ended
	rcli 2 SCRIPT FLUSH
	rcli 2 DEL "$(record)" "$KEY"
	redlock release -S "$DIRECT" "$KEY" "$output"
	expect 0
	rcli 2 SCRIPT FLUSH
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 60s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until '[[ $(fence_at 2) == 4000000000000002 ]]'
	touch "$TMP/end"
	finish run
	expect 0
	wait_until 'key_free 0 1 2'
}

@test "a connection that is lost before the whole script has come: it is sent on another one" {
	servers_start 1
	proxies_start
	proxy 0 still
	spawn acquire "$REDLOCK" acquire -S "$(proxy_url 0)" --server-timeout 20s "$KEY"
	wait_until 'proxy_did 0 still' # it has been refused
	proxy 0 'reset 1'
	finish acquire
	expect 0 '[0-9a-f]{32}'
	proxy_did 0 reset
	key_held_by "$output" 0
	[[ $(sent evalsha) == 1 && $(sent eval) == 1 ]]
}

@test "a server that never knows a script is sent each request twice, and no more often" {
	seeds_start 1
	seed_says 0 EVAL '-NOSCRIPT No matching script. Please use EVAL.\r\n' \
		EVALSHA '-NOSCRIPT No matching script. Please use EVAL.\r\n'
	redlock acquire -n -S "redis://$(seed_address 0)" "$KEY"
	expect 69 '' "redlock: $KEY: .*: it does not know a script that it was sent \\(NOSCRIPT\\): .*"
	# acquire and release
	wait_until '(($(grep -c "EVALSHA" "$SEEDS/0.log") == 2 && $(grep -c "^b.EVAL " "$SEEDS/0.log") == 2))'
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

@test "doctor does not count what only waiters or list need: a server without EVALSHA or SCAN would grant a lock" {
	local command
	for command in EVALSHA SCAN; do
		servers_start 1 --rename-command "$command" ''
		redlock doctor --accept restart
		[[ $status == 0 && $output == *"warning: it lacks commands: ${command,,}, which waiters, "* ]]
		[[ $output != *error* && $output == *'1 of 1 servers would grant a lock'* ]]
	done
}
