#!/usr/bin/env bats
# --replicas: what a server promises counts only when its replicas have it.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # as in helper.bash
# bats file_tags=long

load ../lib/helper
load ../lib/cli
load ../lib/discovery

# masters_start COUNT [OPTION...]: servers 0 and on; the replica of server I is server COUNT + I.
masters_start() {
	local count=$1 i
	shift
	addresses_new
	export SERVER_COUNT=$((2 * count)) MASTERS=$count REDLOCK_SERVERS=
	for ((i = 0; i < count; i++)); do
		server_new "$i" "$@"
		server_new $((count + i)) --replicaof "$(address "$i")" 6379
		REDLOCK_SERVERS+=${REDLOCK_SERVERS:+,}redis://$(address "$i")
	done
	all_ready || return
	for ((i = 0; i < count; i++)); do online "$i" || return; done
}

# online I [COUNT]: so many replicas (1) acknowledge what this server has written. (For a second after they
# were synchronised they do not, although INFO says that they are online.)
online() {
	wait_until "[[ \$(redis-cli -s $SERVERS/$1/redis.sock <<<\$'SET probe 1 PX 1\nWAIT ${2-1} 100') == *${2-1} ]]"
}

place_of() {
	echo "redis://$(address "$1"):6379"
}

LACKS='see INFO replication there, and --replicas'
# on a busy machine the answer to WAIT may be late
BEHIND="(only 0 of 1 replicas have it after|its replicas have not answered within) [0-9.]+m?s: $LACKS"

# nothing_on I...: KEY is free, and nobody waits.
nothing_on() {
	local i
	for i; do wait_until "nothing_left $i" || return; done
}

# ---------------------------------------------------------------- taking it

@test "what a replica has is a lock, and it costs one request more in the same write" {
	masters_start 1
	monitor 0
	ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=sendto -o "$TMP/trace" "$REDLOCK" run --replicas 1 "$KEY" true
	wait_until '[[ $(tr "a-z" "A-Z" <$TMP/monitor0.out) == *\"WAIT\"\ \"1\"\ \"500\"* ]]'
	# the first write has all of it, the second is the release
	[[ $(grep -c 'sendto(.*MSG_NOSIGNAL' "$TMP/trace") == 2 ]]
	[[ $(grep -c '"WAIT"' "$TMP/monitor0.out") == 1 ]]
	redlock run --server-timeout 10s --replicas 1 "$KEY" redis-cli -s "$SERVERS/1/redis.sock" EXISTS "$KEY"
	expect 0 1
}

@test "without --replicas no server is asked for them" {
	masters_start 1
	monitor 0
	redlock run "$KEY" true
	expect 0
	REDLOCK_REPLICAS=1 redlock run --replicas 0 "$KEY" true
	expect 0
	requests 0
	run ! grep -qiE '"WAIT"|INFO.*replication' "$TMP/monitor0.out"
}

@test "a server with too few replicas is refused at once, and nothing is taken" {
	masters_start 1
	redlock run --replicas 2 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $(place_of 0): only 1 of 2 replicas are online: $LACKS"
	redlock acquire -n --replicas 2 "$KEY"
	expect 69 '' "redlock: $KEY: $(place_of 0): only 1 of 2 replicas are online: $LACKS"
	[[ ! -e $TMP/ran ]]
	# no grant had to be given back: there is no fence
	[[ $(fence_at 0) == '' ]]
	nothing_on 0
}

@test "if replicas are behind, the lock is given back and COMMAND not started" {
	masters_start 1
	server_stop 1
	redlock run --replicas 1 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $(place_of 0): $BEHIND"
	redlock acquire -n --replicas 1 "$KEY"
	expect 69 '' "redlock: $KEY: $(place_of 0): $BEHIND"
	[[ ! -e $TMP/ran ]]
	nothing_on 0
	server_continue 1
	online 0
	redlock run --server-timeout 10s --replicas 1 "$KEY" true
	expect 0
}

@test "of two replicas one may be behind" {
	masters_start 1
	SERVER_COUNT=3
	server_new 2 --replicaof "$(address 0)" 6379
	server_ready 2
	online 0 2
	server_stop 1
	redlock run --replicas 2 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $(place_of 0): only 1 of 2 replicas have it after [0-9]+ms: $LACKS"
	[[ ! -e $TMP/ran ]]
	redlock run --server-timeout 10s --replicas 1 "$KEY" true
	expect 0
	server_continue 1
}

@test "a lock that others hold is busy, whatever its replicas do" {
	masters_start 1
	take
	server_stop 1
	redlock run -n --replicas 1 "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	redlock run -n -E 0 --server-timeout 10s --replicas 1 "$KEY" true
	expect 0
	server_continue 1
	redlock run -n --replicas 5 "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
}

@test "a signal while replicas are awaited leaves nothing on the server" {
	masters_start 1
	server_stop 1
	spawn run "$REDLOCK" run --server-timeout 4s --replicas 1 "$KEY" touch "$TMP/ran"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	kill -INT "$(pid run)"
	finish run
	[[ $status == 130 && ! -e $TMP/ran ]]
	nothing_on 0
	server_continue 1
}

@test "with the whole round over, what was granted is released behind the WAIT" {
	masters_start 1
	proxies_start
	server_stop 1
	# no answer at all comes back, be it of the script or of WAIT
	proxy 0 mute
	redlock run -n -S "$(proxy_url 0)" --server-timeout 1s --replicas 1 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: .*: no answer within .*"
	nothing_on 0
	server_continue 1
	[[ ! -e $TMP/ran ]]
}

@test "every kind of lock has its replicas" {
	local option
	masters_start 1
	for option in -x -s -r '-P 2'; do
		# shellcheck disable=SC2086 # words
		redlock run --server-timeout 10s --replicas 1 $option "$KEY" redis-cli -s "$SERVERS/1/redis.sock" EXISTS "$KEY"
		expect 0 1
		server_stop 1
		# shellcheck disable=SC2086 # words
		redlock run --server-timeout 1500ms --replicas 1 $option "$KEY" touch "$TMP/ran"
		expect 69 '' "redlock: $KEY: $(place_of 0): $BEHIND"
		nothing_on 0
		server_continue 1
	done
	[[ ! -e $TMP/ran ]]
}

@test "of three servers one may have no replica, two may not" {
	masters_start 3
	server_stop 4
	redlock run --quarantine 0 --server-timeout 10s --replicas 1 "$KEY" true
	expect 0
	nothing_on 0 1 2 # there it is released behind the WAIT
	server_stop 5
	redlock run --quarantine 0 --replicas 1 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*: only 0 of 1 replicas have it after .*; .*: only 0 of 1 replicas have it after .*: $LACKS"
	[[ ! -e $TMP/ran ]]
	nothing_on 0 1 2
	server_continue 4 5
	online 1
	online 2
	redlock run --quarantine 0 --server-timeout 10s --replicas 1 "$KEY" true
	expect 0
}

# The last that it was sent before the release was an acquire and a WAIT, which lasts for 5 s.
@test "a server whose replica is behind is released in the end, although nobody waits for that" {
	masters_start 3
	take
	spawn run "$REDLOCK" run --quarantine 0 -t 60s --server-timeout 10s --replicas 1 "$KEY" true
	wait_until 'queued 1 0 1 2'
	server_stop 4
	give_back
	finish run
	expect 0
	nothing_on 0 1 2
	server_continue 4
}

# ---------------------------------------------------------------- waiting for it

# The releaser's script grants KEY on the releaser's connection. A WAIT on the waiter's own would say at once
# that all is well, as nothing was written there since.
@test "a waiter that is granted KEY by a message starts nothing before replicas have that" {
	masters_start 1
	take
	takes waiter --replicas 1 -w 60s
	wait_until 'queued 1 0'
	caught_up 1 0
	server_stop 1
	give_back
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting"* ]]'
	is_running waiter
	[[ ! -e $TMP/order ]]
	# and once more: it is granted, and given back, again and again
	fence=$(fence_at 0)
	wait_until '(($(fence_at 0) > fence + 1))'
	[[ ! -e $TMP/order ]]
	server_continue 1
	wait_until 'entered waiter'
	[[ $(rcli 1 GET "$KEY") == "$(rcli 0 GET "$KEY")" ]]
	ends waiter
	finish waiter
	expect 0 '' "redlock: $KEY: still waiting: $(place_of 0): $BEHIND"
	nothing_on 0
}

# Two grant it, and one of these has a fence that is too small, and a replica that is behind. The third is
# as good, but was slower.
@test "a waiter waits for no single server's replicas, if others have what it needs" {
	masters_start 3
	take
	takes waiter --replicas 1 -t 2m --server-timeout 30s -w 60s
	wait_until 'queued 1 0 1 2'
	rcli 0 HSET "$(record)" fence $(($(fence_at 0) + 1000000))
	caught_up 4 1
	server_stop 4
	server_stop 2
	give_back
	wait_until "[[ \$(rcli 0 GET $KEY) != $token && \$(rcli 1 GET $KEY) != $token ]]"
	server_continue 2
	wait_until 'entered waiter' 13 # WAIT lasts for 15 s
	(($(fence_at 2) == $(fence_at 0)))
	ends waiter
	done_well waiter
	server_continue 4
}

@test "a wait that ends while replicas are behind ends with 69, and says why" {
	masters_start 1
	take
	spawn waiter "$REDLOCK" run --replicas 1 -w 4s "$KEY" touch "$TMP/ran"
	wait_until 'queued 1 0'
	server_stop 1
	give_back
	finish waiter
	expect 69 '' "redlock: $KEY: still waiting: $(place_of 0): $BEHIND
redlock: $KEY: $(place_of 0): $BEHIND"
	[[ ! -e $TMP/ran ]]
	nothing_on 0
	server_continue 1
}

# One server grants KEY with a larger fence, which the other's replica cannot take; the third is held by others.
@test "if only the fence is not acknowledged, a waiter that others keep out says why, too" {
	masters_start 3
	take
	takes waiter --replicas 1 -w 60s
	wait_until 'queued 1 0 1 2'
	rcli 0 HSET "$(record)" fence $(($(fence_at 0) + 1000000))
	rcli 2 SET "$KEY" somebody PX 600000
	caught_up 4 1
	server_stop 4
	give_back
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting"* ]]'
	server_continue 4
	wait_until 'entered waiter'
	ends waiter
	finish waiter
	expect 0 '' "redlock: $KEY: still waiting: no quorum: 1 of 3 servers gave no vote, 2 votes are needed: $(place_of 1): $BEHIND"
}

@test "a waiter that replicas fail keeps nobody else out" {
	masters_start 1
	take
	spawn waiter "$REDLOCK" run --replicas 1 "$KEY" true
	wait_until 'queued 1 0'
	server_stop 1
	give_back
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting"* ]]'
	redlock run -w 30s "$KEY" true
	expect 0
	is_running waiter
	server_continue 1
	finish waiter
	[[ $status == 0 ]]
}

@test "waiters whom replicas fail, one after the other, say so once each" {
	local grants=0 fence name
	masters_start 1
	take
	for name in a b; do
		spawn "$name" "$REDLOCK" run --replicas 1 --server-timeout 300ms -w 60s "$KEY" true
	done
	wait_until 'queued 2 0'
	server_stop 1
	give_back
	while ((grants++ < 8)); do
		fence=$(fence_at 0)
		wait_until '(($(fence_at 0) > fence))'
	done
	server_continue 1
	for name in a b; do
		finish "$name"
		expect 0 '' "redlock: $KEY: still waiting: $(place_of 0): $BEHIND" || return
	done
}

@test "-w waits for a replica that is yet to come" {
	masters_start 1
	rcli 1 REPLICAOF NO ONE
	wait_until '[[ $(rcli 0 INFO replication) == *connected_slaves:0* ]]'
	spawn run "$REDLOCK" run --replicas 1 -w 60s "$KEY" true
	wait_until '[[ $(<"$TMP/run.err") == *"still waiting"* ]]'
	rcli 1 REPLICAOF "$(address 0)" 6379
	finish run
	expect 0 '' "redlock: $KEY: still waiting: $(place_of 0): only 0 of 1 replicas are online: $LACKS"
}

# ---------------------------------------------------------------- keeping it

# begins_in_time: a run whose replicas have 150 ms. It has not begun if they took longer.
begins_in_time() {
	spawn run "$REDLOCK" run --replicas 1 -t 4s --server-timeout 300ms -k 200ms "$KEY" "$STAMP" -d 60000 "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps" || ! is_running run'
	is_running run
}

@test "a renewal that replicas do not acknowledge is none: COMMAND is stopped before they forget KEY" {
	masters_start 1
	mkdir "$TMP/stamps"
	wait_until begins_in_time
	renewals 1
	caught_up 1 0
	server_stop 1
	stopped=$NOW
	# the master goes on granting all that it is asked for
	renewals 1
	finish run
	expect 76 '' "redlock: $KEY: lock lost: not renewed for .*: $(place_of 0): $BEHIND.*: COMMAND (is|was) stopped"
	(($(last_beat "$TMP/stamps") <= stopped + 4000))
	server_continue 1
}

@test "a replica may be behind for a while" {
	masters_start 1
	takes run --replicas 1 -t "$((9 * SLOW))s" --server-timeout "${SLOW}s"
	wait_until 'entered run'
	renewals 1
	server_stop 1
	renewals 1
	server_continue 1
	renewals 2
	ends run
	done_well run
	wait_until 'key_free 1'
}

@test "extend: a lease that replicas lack is not said to be extended" {
	masters_start 1
	take
	redlock extend --server-timeout 10s --replicas 1 -t 2m "$KEY" "$token"
	expect 0
	(($(rcli 1 PTTL "$KEY") > 100000))
	server_stop 1
	redlock extend --replicas 1 -t 5m "$KEY" "$token"
	expect 69 '' "redlock: $KEY: $(place_of 0): $BEHIND"
	redlock extend -t 10m "$KEY" "$token"
	expect 0
	server_continue 1
}

@test "extend: what was extended before is asked of replicas, too" {
	masters_start 1
	take
	redlock extend -t 10m "$KEY" "$token"
	expect 0
	caught_up 1 0
	server_stop 1
	# it stays as it is, and is written all the same
	redlock extend --replicas 1 -t 1m "$KEY" "$token"
	expect 69 '' "redlock: $KEY: $(place_of 0): $BEHIND"
	server_continue 1
}

@test "a release asks no replica" {
	masters_start 1
	take
	server_stop 1
	redlock release "$KEY" "$token"
	expect 0
	REDLOCK_REPLICAS=1 redlock release "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token: .*"
	server_continue 1
}

@test "--min-hold: what only replicas lack is said to be kept, unless one takes over" {
	masters_start 1
	redlock run --server-timeout 10s --replicas 1 --min-hold 5m "$KEY" true
	expect 0
	(($(rcli 1 PTTL "$KEY") > 250000))
	KEY+=b
	spawn run "$REDLOCK" run --replicas 1 --min-hold 5m "$KEY" "$ROOT/test/lib/tools/note" "$TMP" run
	wait_until 'entered run'
	caught_up 1 0
	server_stop 1
	ends run
	finish run
	expect 0 '' "redlock: $KEY: held for (5m00s|4m5[0-9]s) more by --min-hold, unless a replica takes over: $(place_of 0): $BEHIND"
	# and so it is
	(($(rcli 0 PTTL "$KEY") > 250000))
	server_continue 1
}

# ---------------------------------------------------------------- failover

# takes_many NAME OPTION...: takes one lock after the other, and notes those that it has got.
takes_many() {
	local name=$1 n=0 got
	shift
	while [[ ! -e $TMP/enough ]]; do
		n=$((n + 1))
		got=$("$REDLOCK" acquire -n -t 5m --server-timeout 2s "$@" "$KEY-$name-$n" 2>>"$TMP/refused") ||
			continue
		echo "$KEY-$name-$n $got" >>"$TMP/granted"
	done
}

# fails_over OPTION...: under this load the replica hears nothing more, the master is killed, and the replica
# takes its place. In $forgotten: how many locks of those granted it does not know.
fails_over() {
	local i key token
	addresses_new
	export SERVER_COUNT=1
	server_new 0
	server_ready 0
	proxies_start
	SERVER_COUNT=2
	server_new 1 --replicaof 127.0.0.1 "$(<"$PROXIES/0.port")"
	server_ready 1
	online 0
	REDLOCK_SERVERS=redis://$(address 0)
	export REDLOCK_SERVERS
	: >"$TMP/granted"
	: >"$TMP/refused"
	for i in 1 2 3; do spawn "load$i" takes_many "$i" "$@"; done
	wait_until '(($(wc -l <"$TMP/granted") >= 60))' 60
	proxy 0 hold
	i=$(($(wc -l <"$TMP/granted") + 20))
	: >"$TMP/refused"
	wait_until "[[ \$(<$TMP/refused) == *replicas* ]] || ((\$(wc -l <$TMP/granted) >= $i))" 60
	server_kill 0
	rcli 1 REPLICAOF NO ONE
	wait_until 'is_master 1'
	touch "$TMP/enough"
	for i in 1 2 3; do finish "load$i"; done
	forgotten=0
	while read -r key token; do
		[[ $(rcli 1 GET "$key") == "$token" ]] || ((++forgotten))
	done <"$TMP/granted"
}

@test "failover: of the locks that were granted the new master has each" {
	fails_over --replicas 1
	(($(wc -l <"$TMP/granted") >= 60 && forgotten == 0))
}

@test "failover: without --replicas it has not" {
	fails_over
	((forgotten > 0))
}

@test "Sentinels: a run with --replicas outlives its master, and nobody else gets KEY" {
	sentinels_start 2 --repl-diskless-load on-empty-db
	sentinels_hurry
	rcli 2 CONFIG SET replica-priority 0
	online 0 2
	start 0 --replicas 1 -t 20s
	fail 0 1
	[[ $(rcli 1 GET "$KEY") == "$token" ]]
	redlock run -n --replicas 1 "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	goes_on 1
}

@test "cluster: the replicas are those of the node that has KEY" {
	cluster_start 3 1
	online 0
	KEY=$(key_on 0 3)
	redlock run --server-timeout 10s --replicas 1 "$KEY" redis-cli -s "$SERVERS/3/redis.sock" PING
	expect 0 PONG
	KEY=$(key_on 1 3)
	redlock run --replicas 1 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: redis\+cluster://.*: .*only 0 of 1 replicas are online: $LACKS"
	[[ ! -e $TMP/ran ]]
}

# ---------------------------------------------------------------- settings, rights, doctor

@test "replicas: a file and the environment set it, and no other command heeds it" {
	masters_start 1
	mkdir "$TMP/config"
	echo 'replicas = 2' >"$TMP/config/redlock.conf"
	redlock acquire --config "$TMP/config/redlock.conf" "$KEY"
	expect 69 '' ".* only 1 of 2 replicas are online: $LACKS"
	redlock wait --config "$TMP/config/redlock.conf" "$KEY"
	expect 0
	redlock status --config "$TMP/config/redlock.conf" "$KEY"
	[[ $status == 0 ]]
	export REDLOCK_REPLICAS=3
	redlock acquire "$KEY"
	expect 69 '' ".* only 1 of 3 replicas are online: $LACKS"
	redlock acquire --server-timeout 10s --replicas 1 "$KEY"
	expect 0 '[0-9a-f]+'
	redlock list
	[[ $status == 0 ]]
}

@test "doctor: tries a lock with as many replicas, and says how many there are" {
	masters_start 1
	redlock doctor --accept restart --server-timeout 10s --replicas 1
	expect 0 "settings: .*
$(place_of 0): ok, (Redis|Valkey) .*, 1 replica
1 of 1 servers would grant a lock, 1 needed: 0 more may fail"
	redlock doctor --accept restart --replicas 1 --format json
	[[ $status == 0 ]]
	[[ $(jq '.servers[0].replicas' <<<"$output") == 1 ]]
	redlock doctor --replicas 2
	expect 69 "settings: .*
$(place_of 0): error: only 1 of 2 replicas are online: $LACKS" 'redlock: 0 of 1 servers would grant a lock, 1 needed'
	server_stop 1
	redlock doctor --accept restart --replicas 1
	expect 69 "settings: .*
$(place_of 0): error: $BEHIND" 'redlock: 0 of 1 servers would grant a lock, 1 needed'
	server_continue 1
}

@test "a user who may not WAIT is told so, before COMMAND runs" {
	masters_start 1
	rcli 0 ACL SETUSER app on '>pw' '~*' '&*' +@all -wait
	REDLOCK_SERVERS=redis://app:pw@$(address 0)
	redlock run --replicas 1 "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: .*: its user may not do this \(.*wait.*\): .*"
	[[ ! -e $TMP/ran ]]
	nothing_on 0
	redlock doctor --replicas 1
	[[ $status == 77 && $output == *wait* ]]
	redlock run "$KEY" true
	expect 0
}

@test "a user who may not ask for INFO waits for replicas all the same" {
	masters_start 1
	rcli 0 ACL SETUSER app on '>pw' '~*' '&*' +@all -info
	REDLOCK_SERVERS=redis://app:pw@$(address 0)
	redlock run --server-timeout 10s --replicas 1 "$KEY" true
	expect 0
	redlock run --replicas 2 --server-timeout 500ms "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: .*: only 1 of 2 replicas have it after .*: $LACKS"
	[[ ! -e $TMP/ran ]]
}
