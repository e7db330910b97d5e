#!/usr/bin/env bats
# Only the owner releases or extends.
# shellcheck disable=SC2016

load ../lib/helper

setup_file() {
	servers_start 5
}

one() {
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=$(server_url 0)
}

# acquire [OPTION...]: $token owns KEY.
acquire() {
	redlock acquire --quarantine 0 "$@" "$KEY"
	expect 0 '[0-9a-f]{32}' || return
	token=$output
}

# expire: what time does to KEY, at once, on every server.
expire() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do rcli "$i" PEXPIRE "$KEY" 1; done
	wait_until 'key_free $(seq 0 $((SERVER_COUNT - 1)))'
}

ttls() {
	local i
	for i in 0 1 2 3 4; do rcli "$i" PTTL "$KEY"; done
}

@test "a lock is released by its token, and then it is gone" {
	one
	acquire
	redlock release "$KEY" "$token"
	expect 0
	key_free 0
}

@test "the token may come from REDLOCK_TOKEN" {
	one
	acquire
	export REDLOCK_TOKEN=$token
	redlock extend -t 90s "$KEY"
	expect 0
	(($(rcli 0 PTTL "$KEY") > 60000))
	redlock release "$KEY"
	expect 0
	key_free 0
}

@test "a second release of the same token is 1" {
	one
	acquire
	redlock release "$KEY" "$token"
	expect 0
	redlock release "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
}

@test "somebody else's lock can neither be released nor extended" {
	local token other=00112233445566778899aabbccddeeff
	one
	acquire -t 50s
	redlock release "$KEY" "$other"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	redlock extend -t 500s "$KEY" "$other"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	key_held_by "$token" 0
	(($(rcli 0 PTTL "$KEY") <= 50000))
}

@test "a prefix, a longer and an other-cased token are not the token" {
	local token
	one
	acquire
	for other in "${token:0:31}" "${token}0" "${token^^}x" "*"; do
		redlock release "$KEY" "$other"
		expect 1 '' "redlock: $KEY: not held by this token.*"
	done
	key_held_by "$token" 0
}

@test "a lock that has expired is neither released nor revived" {
	one
	acquire
	expire
	redlock extend "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	key_free 0
	redlock release "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
}

@test "a slow owner's late release and extend leave the next owner alone" {
	local slow next before
	acquire
	slow=$token
	expire
	acquire -t 50s
	next=$token
	wait_until 'key_held_by '"$next"' 0 1 2 3 4'
	redlock extend -t 500s "$KEY" "$slow"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	redlock release "$KEY" "$slow"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	key_held_by "$next" 0 1 2 3 4
	before=$(ttls | sort -n | tail -n 1)
	((before > 0 && before <= 50000))
	redlock release "$KEY" "$next"
	expect 0
}

# late REQUEST...: REQUEST of an owner is on its way while the lock expires and changes hands.
late() {
	servers_start 1
	proxies_start
	acquire -t 30s
	local slow=$token
	proxy 0 hold
	spawn late "$REDLOCK" "$1" -S "$(proxy_url 0)" --server-timeout 30s "${@:2}" "$KEY" "$slow"
	wait_until 'proxy_did 0 hold'
	expire
	acquire -t 50s
	proxy 0 pass
	finish late
	expect 1 '' "redlock: $KEY: not held by this token.*"
	key_held_by "$token" 0
	(($(rcli 0 PTTL "$KEY") <= 50000))
}

@test "a release that arrives after the lock has changed hands does nothing" {
	late release
}

@test "an extend that arrives after the lock has changed hands does nothing" {
	late extend -t 500s
}

@test "a run that was stopped past its lease leaves the next owner's lock alone" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn slow "$REDLOCK" run -t 2s "$KEY" "$STAMP" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	stop_process "$(pid slow)"
	wait_until 'key_free 0'
	acquire -t 50s
	kill -CONT "$(pid slow)"
	finish slow
	expect 76 '' "redlock: $KEY: lock lost: .*"
	key_held_by "$token" 0
	(($(rcli 0 PTTL "$KEY") <= 50000))
}

@test "a command that outlives a lock it was told about leaves the next owner's lock alone" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn slow "$REDLOCK" run -t 2s --on-lost warn "$KEY" \
		"$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	rcli 0 DEL "$KEY"
	acquire -t 50s
	wait_until '[[ -s $TMP/slow.err ]]'
	touch "$TMP/end"
	finish slow
	expect 3 '' "redlock: $KEY: lock lost: .*"
	key_held_by "$token" 0
	(($(rcli 0 PTTL "$KEY") <= 50000))
}

@test "a lock changes only within scripts: compare and act are never two commands" {
	servers_start 1
	spawn monitor redis-cli -s "$SERVERS/0/redis.sock" MONITOR
	wait_until 'grep -q OK $TMP/monitor.out'
	acquire
	redlock extend "$KEY" "$token"
	expect 0
	redlock release "$KEY" "$token"
	expect 0
	redlock run -t 2s "$KEY" sleep 1
	expect 0
	rcli 0 ECHO the-end
	wait_until 'grep -q the-end $TMP/monitor.out'
	kill "$(pid monitor)"
	# what clients sent themselves ("lua" marks what scripts did)
	run awk '$1 ~ /^[0-9.]+$/ && $3 != "lua]" { gsub(/"/, "", $4); print toupper($4) }' \
		"$TMP/monitor.out"
	run -0 sort -u <<<"$output"
	[[ $output == *EVAL* ]]
	run -1 grep -vxE 'EVAL|EVALSHA|INFO|CLIENT|AUTH|SELECT|HELLO|PING|ECHO' <<<"$output"
}

@test "without a quorum, release and extend are 69 and not 1" {
	servers_start 5
	acquire
	server_kill 1 2 3
	redlock extend "$KEY" "$token"
	expect 69 '' "redlock: $KEY: no quorum: [^:]+: .*"
	redlock release "$KEY" "$token"
	expect 69 '' "redlock: $KEY: no quorum: [^:]+: .*"
}

@test "without its only server, release and extend are 69 and say which and why" {
	servers_start 1
	acquire
	server_kill 0
	redlock extend "$KEY" "$token"
	expect 69 '' "redlock: $KEY: $(server_url 0): Connection refused.*"
	redlock release "$KEY" "$token"
	expect 69 '' "redlock: $KEY: $(server_url 0): Connection refused.*"
}

@test "a lock is released and extended while a minority is down" {
	servers_start 5
	acquire -t 30s
	server_kill 0 4
	redlock extend -t 90s "$KEY" "$token"
	expect 0
	for i in 1 2 3; do wait_until "((\$(rcli $i PTTL $KEY) > 60000))"; done
	redlock release "$KEY" "$token"
	expect 0
	wait_until 'key_free 1 2 3'
	redlock release "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
}
