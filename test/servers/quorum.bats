#!/usr/bin/env bats
# Five servers: a dead minority is not felt, a dead majority is told plainly,
# and what was granted by less than a quorum is taken back.
# shellcheck disable=SC2016,SC2154

load ../lib/helper

setup_file() {
	servers_start 5
}

# measure ARRAY URLS [PREFIX...]: a microsecond count for acquire and release, another for run.
measure() {
	local -n times=$1
	local urls=$2 token start
	shift 2
	start=${EPOCHREALTIME//[!0-9]/}
	token=$("$@" "$REDLOCK" acquire -S "$urls" --quarantine 0 "$KEY") || return
	"$@" "$REDLOCK" release -S "$urls" "$KEY" "$token" || return
	times+=($((${EPOCHREALTIME//[!0-9]/} - start)))
	start=${EPOCHREALTIME//[!0-9]/}
	"$@" "$REDLOCK" run -S "$urls" --quarantine 0 "$KEY" true || return
	times+=($((${EPOCHREALTIME//[!0-9]/} - start)))
}

# not_felt UP DOWN: the medians are alike; a single wait for a server would cost a second.
not_felt() {
	local -n up_times=$1 down_times=$2
	local up down
	up=$(median "${up_times[@]}")
	down=$(median "${down_times[@]}")
	echo "medians: $up us with all, $down us without two"
	((down < 3 * up + 150000))
}

# two_down FAULT...: the same work with all five and with two of five, in turns.
two_down() {
	local all=$REDLOCK_SERVERS up=() down=() i
	servers_start 5
	"$@" 1 3
	for i in {1..7}; do
		measure up "$all"
		measure down "$REDLOCK_SERVERS"
	done
	not_felt up down
}

@test "two of five servers stopped: acquire, release and run take what they take with all" {
	two_down server_stop
}

@test "two of five servers refusing: acquire, release and run take what they take with all" {
	two_down server_kill
}

# net_two_down FAULT...: the same in a network.
net_two_down() {
	local up=() down=() i
	net_servers_start 5
	for i in {1..6}; do measure up "$REDLOCK_SERVERS" net_run; done
	"$@" 0 2
	for i in {1..6}; do measure down "$REDLOCK_SERVERS" net_run; done
	not_felt up down
}

@test "two of five servers out of reach: acquire, release and run take what they take with all" {
	net_two_down net_drop both
}

@test "two of five servers with dead links: acquire, release and run take what they take with all" {
	net_two_down net_unplug
}

@test "two of five servers resetting: acquire, release and run take what they take with all" {
	net_two_down net_reject
}

@test "servers that answer after another has reset its connection are heard" {
	local urls i
	servers_start 3
	proxies_start
	urls=$(for i in 0 1 2; do proxy_tcp_url "$i"; done)
	proxy 0 reset
	proxy 1 'delay 50'
	proxy 2 'delay 60'
	run "$REDLOCK" run -v -S "${urls//[[:space:]]/,}" --quarantine 0 "$KEY" echo ran
	echo "$output"
	[[ $status == 0 && $output == *"$(proxy_tcp_url 0): it hung up"* ]]
	[[ $output != *"$(proxy_tcp_url 1): it hung up"* ]]
	[[ $output != *"$(proxy_tcp_url 2): it hung up"* ]]
}

@test "a lock taken with two of five servers stopped excludes others, whichever two are down" {
	local token
	servers_start 5
	server_stop 0 1
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
	server_continue 0 1
	server_stop 3 4
	redlock acquire --quarantine 0 -n "$KEY"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ '.*' for .*"
	redlock release "$KEY" "$token"
	expect 0
	redlock acquire --quarantine 0 -n "$KEY"
	expect 0 '[0-9a-f]{32}'
}

@test "three of five servers refusing is 69 at once, and says which and why" {
	local refused i
	servers_start_tcp 5
	server_kill 1 2 4
	redlock acquire --quarantine 0 "$KEY"
	refused=$(for i in 1 2 4; do echo "; $(server_url "$i"): Connection refused"; done)
	refused=${refused//$'\n'/}
	expect 69 '' \
		"redlock: $KEY: no quorum: [^:]+: ${refused#; }.*"
	wait_until 'key_free 0 3'
}

@test "three of five servers silent is 69 after the time-out, and says which" {
	local start
	servers_start 5
	server_stop 0 2 4
	start=$NOW
	redlock run --quarantine 0 --server-timeout 300ms "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: [^:]+: $(
		)$(server_url 0): [^;]+; $(server_url 2): [^;]+; $(server_url 4): [^;]+"
	[[ ! -e $TMP/ran ]]
	((NOW - start >= 290))
	wait_until 'key_free 1 3'
}

@test "what a server has refused is told as long as it does, not how it hung up then" {
	servers_start 3
	rcli 2 CONFIG SET requirepass secret
	redlock acquire --quarantine 0 -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	spawn waiter "$REDLOCK" run --quarantine 0 "$KEY" true
	wait_until 'queued 1 0 1'
	server_kill 1
	wait_until '[[ -s $TMP/waiter.err ]]'
	kill -TERM "$(pid waiter)"
	finish waiter
	expect 143 '' "redlock: $KEY: still waiting: no quorum: [^:]+: $(server_url 1): [^;]+; $(
		)$(server_url 2): it requires a password \(NOAUTH\)(: set .*)?"
}

@test "with -w an unreachable quorum is tried until the wait is over, and taken when it is back" {
	local start
	servers_start 5
	server_kill 0 2 4
	start=$NOW
	redlock acquire --quarantine 0 -w 700ms "$KEY"
	expect 69 '' "redlock: $KEY: still waiting: .*
redlock: $KEY: no quorum: [^:]+: .*"
	((NOW - start >= 690))
	spawn waiter "$REDLOCK" acquire --quarantine 0 -w 40s "$KEY"
	wait_until '[[ -s $TMP/waiter.err ]]'
	server_launch 4
	finish waiter
	expect 0 '[0-9a-f]{32}' "redlock: $KEY: still waiting: .*"
	key_held_by "$output" 4
}

@test "a grant by less than a quorum is taken back on every server, the silent ones too" {
	servers_start 5
	scripts_known
	server_stop 2
	server_kill 3 4
	redlock acquire --quarantine 0 -t 60s --server-timeout $((300 * SLOW))ms "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: [^:]+: .*"
	wait_until 'key_free 0 1'
	server_continue 2
	wait_until 'server_drained 2'
	# it did get the request, late, and the release behind it
	[[ $(rcli 2 EXISTS "$(record)") == 1 ]]
	key_free 0 1 2
}

@test "a release gets to a server that others were faster than, before there was a connection" {
	net_servers_start 3
	token=$(net_run "$REDLOCK" acquire --quarantine 0 -t 1h "$KEY")
	wait_until 'key_held_by "$token" 0 1 2'
	# its first packet is lost: the next one is sent after a second
	net_drop out 2
	net_run "$REDLOCK" release --server-timeout 10s "$KEY" "$token" >"$TMP/said" 2>&1
	[[ ! -s $TMP/said ]]
	key_free 0 1
	key_held_by "$token" 2
	net_heal
	wait_until 'key_free 2'
}

@test "so does an extension" {
	net_servers_start 3
	token=$(net_run "$REDLOCK" acquire --quarantine 0 -t 1h "$KEY")
	wait_until 'key_held_by "$token" 0 1 2'
	net_drop out 2
	net_run "$REDLOCK" extend -t 2h --server-timeout 10s "$KEY" "$token"
	(($(rcli 2 PTTL "$KEY") <= 3600000))
	net_heal
	wait_until '(($(rcli 2 PTTL "$KEY") > 3600000))'
}

@test "an acquire does not: it could come after a release, and no process is left for it" {
	KEY=$KEY-late # no other test's begins so
	net_servers_start 3
	net_drop out 2
	token=$(net_run "$REDLOCK" acquire --quarantine 0 -t 1h --server-timeout 10s "$KEY")
	net_run "$REDLOCK" run --quarantine 0 --server-timeout 10s "$KEY-run" true
	net_run "$REDLOCK" run --quarantine 0 --server-timeout 10s -n -E 0 "$KEY" true
	wait_until '[[ -z $(pgrep -f "^$REDLOCK .*$KEY") ]]' 4 # which would last for 5 s
	net_heal
	net_run "$REDLOCK" release "$KEY" "$token"
	wait_until 'key_free 0 1 2'
}

@test "a minority of grants is taken back when the majority is somebody else's, every time" {
	local i
	servers_start 5
	for i in 0 2 3; do rcli "$i" SET "$KEY" another-program; done
	for i in {1..12}; do
		redlock acquire --quarantine 0 -n -t 60s "$KEY"
		expect 75 '' "redlock: $KEY: held by another program, with no expiry"
		wait_until 'server_drained 1 && server_drained 4'
		key_free 1 4
	done
	key_held_by another-program 0 2 3
}

@test "a run leaves nothing on servers that were stopped all the while" {
	local remember
	servers_start 5
	# with --remember its script is another one, that no server knows
	for remember in '' --remember=30d; do
		server_stop 1 3
		redlock run --quarantine 0 -t 60s ${remember:+"$remember"} "$KEY" true
		expect 0
		wait_until 'key_free 0 2 4'
		pause 0.5 # nobody is connected any more: a process stays for 100 ms (drain.h)
		server_continue 1 3
		wait_until 'server_drained 1 && server_drained 3'
		key_free 0 1 2 3 4
	done
}

# native: strace would stop valgrind
# bats test_tags=native
@test "who has not answered at the end is left to a process that keeps nothing but its connection" {
	local child fd ours
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	servers_start 5
	server_stop 1 3
	exec 8>"$TMP/inherited"
	# it is stopped when it has closed the rest
	ASAN_OPTIONS=detect_leaks=0 spawn acquire strace -f -o "$TMP/trace" -e trace=close_range,exit_group \
		-e inject=close_range:signal=STOP "$REDLOCK" acquire --quarantine 0 -t 60s "$KEY"
	exec 8>&-
	# (a call is shown with ")" only where no other process was heard of meanwhile)
	wait_until 'grep -q "stopped by SIGSTOP" "$TMP/trace" && grep -q "exit_group(0" "$TMP/trace"'
	child=$(awk '/close_range\(/ { print $1 }' "$TMP/trace")
	ours=$(awk '/exit_group\(/ { print $1 }' "$TMP/trace")
	wait_until "[[ ! -e /proc/$ours ]]"
	[[ $(<"$TMP/acquire.out") =~ ^[0-9a-f]{32}$ ]]
	[[ $(for fd in /proc/"$child"/fd/*; do readlink "$fd"; done | sed 's/:.*//' | sort | uniq -c | xargs) == \
		'3 /dev/null 2 socket' ]]
	[[ $(ps -o sid= -p "$child") -eq $child ]]
	kill -CONT "$child"
	server_continue 1 3
	finish acquire
	[[ $status == 0 ]]
	key_held_by "$output" 0 1 2 3 4
}

@test "an interrupted wait leaves nothing on a server that was stopped all the while" {
	servers_start 5
	server_stop 2
	for i in 0 1 3; do rcli "$i" SET "$KEY" another-program; done
	spawn waiter "$REDLOCK" acquire --quarantine 0 -t 60s "$KEY"
	wait_until '[[ $(rcli 4 INFO commandstats) == *cmdstat_eval:* ]]'
	kill -TERM "$(pid waiter)"
	finish waiter
	[[ $status == 143 && -z $output ]]
	wait_until 'key_free 4'
	server_continue 2
	wait_until 'server_drained 2'
	key_free 2 4
}

@test "one server under two names is a wrong configuration, not two servers" {
	local port link same
	servers_start_tcp 2
	port=$(<"$SERVERS/0/port")
	link=$SERVERS/link.sock
	ln -s "$SERVERS/0/redis.sock" "$link"
	server_stop 1 # so that only the one under its two names could make a quorum of three
	for same in "redis://127.0.0.1:$port,redis://localhost:$port" \
		"unix://$SERVERS/0/redis.sock,unix://$link" \
		"redis://127.0.0.1:$port,unix://$link"; do
		redlock acquire -S "$same" --quarantine 0 -t 60s "$KEY"
		expect 78 '' 'redlock: .*'
		wait_until 'key_free 0'
		redlock acquire -S "$same,$(server_url 1)" --quarantine 0 -t 60s "$KEY"
		expect 78 '' 'redlock: .*'
		wait_until 'key_free 0'
	done
}

@test "a run and an acquire under two names of one server are 78, whichever names answer first" {
	local names a b same
	servers_start_tcp 2
	a=$(<"$SERVERS/0/port") b=$(server_url 1)
	for names in "redis://127.0.0.1:$a redis://localhost:$a" "unix://$SERVERS/0/redis.sock redis://127.0.0.1:$a"; do
		for same in "${names/ /,},$b" "$b,${names/ /,}" "${names/ /,$b,}"; do
			for _ in 1 2 3; do
				redlock run -S "$same" --quarantine 0 "$KEY" touch "$TMP/ran"
				expect 78 '' 'redlock: .* and .* are the same server: name it only once'
				wait_until 'key_free 0 1'
			done
			redlock acquire -S "$same" --quarantine 0 "$KEY"
			expect 78 '' 'redlock: .* and .* are the same server: name it only once'
		done
	done
	[[ ! -e $TMP/ran ]]
}

# late_name: $same are the servers 0, 1, and 0 once more by a proxy that answers late.
late_name() {
	servers_start 2
	proxies_start
	same=$(server_url 0),$(server_url 1),$(proxy_url 0)
}

@test "a lock that is held goes on where two names turn out to be one server, with one warning" {
	local same
	late_name
	proxy 0 hold
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -S "$same" --quarantine 0 -t 3s "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	proxy 0 pass
	wait_until '[[ -s $TMP/run.err ]]'
	renewals 4
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 3 '' "redlock: $KEY: $(server_url 0) and $(proxy_url 0) are the same server: name it only once"
	key_free 0 1
}

@test "that two names are one server is remembered, so the next acquire hears them out" {
	local same
	late_name
	proxy 0 hold
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -S "$same" --quarantine 0 -t 3s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	proxy 0 pass
	wait_until '[[ -s $TMP/run.err ]]'
	touch "$TMP/end"
	finish run
	proxy 0 'delay 100'
	redlock run -S "$same" --quarantine 0 --server-timeout 5s -t 60s "$KEY" touch "$TMP/ran"
	expect 78 '' "redlock: $KEY: $(server_url 0) and $(proxy_url 0) are the same server: name it only once"
	[[ ! -e $TMP/ran ]]
	wait_until 'key_free 0 1'
}

@test "under two names of one server a lock is extended and released once, with a warning" {
	local token same warning patient='--server-timeout 20s' # both names have to answer
	servers_start 2
	server_kill 1 # or it makes up a quorum with one of the names
	ln -s "$SERVERS/0/redis.sock" "$SERVERS/link.sock"
	warning="redlock: $KEY: $(server_url 0) and unix://$SERVERS/link.sock are the same server: .*"
	for same in "$(server_url 0),unix://$SERVERS/link.sock" \
		"$(server_url 0),unix://$SERVERS/link.sock,$(server_url 1)"; do
		token=$("$REDLOCK" acquire --quarantine 0 -t 60s -S "$(server_url 0)" "$KEY")
		# shellcheck disable=SC2086 # words
		redlock extend $patient -S "$same" -t 600s "$KEY" "$token"
		expect 0 '' "$warning"
		(($(rcli 0 PTTL "$KEY") > 500000))
		# shellcheck disable=SC2086 # words
		redlock release $patient -S "$same" "$KEY" "$token"
		expect 0 '' "$warning"
		key_free 0
		# shellcheck disable=SC2086 # words
		redlock release $patient -S "$same" "$KEY" "$token"
		expect 1 '' "$warning
redlock: $KEY: not held by this token: .*"
	done
}

@test "with a minority down a busy key is busy, and a free one is free, every time" {
	local i
	servers_start 5
	server_kill 0 1
	for i in 2 3 4; do rcli "$i" SET "$KEY" another-program; done
	for i in {1..8}; do
		redlock acquire --quarantine 0 -n "$KEY"
		expect 75 '' "redlock: $KEY: held by another program, with no expiry"
		redlock release "$KEY" 00112233445566778899aabbccddeeff
		expect 1 '' "redlock: $KEY: not held by this token.*"
		redlock extend "$KEY-free" 00112233445566778899aabbccddeeff
		expect 1 '' "redlock: $KEY-free: not held by this token.*"
		redlock run --quarantine 0 -n "$KEY-free" true
		expect 0
	done
}

@test "voters with a smaller fence are raised, so the next holder's fence is larger whoever votes" {
	servers_start 3
	redlock run --quarantine 0 "$KEY" true # so that all have known KEY for the same time
	expect 0
	wait_until no_trace
	rcli 0 HSET "$(record)" fence 4000000000000
	server_stop 2
	# both others must vote: the fence is server 0's, and server 1 learns it
	# (in one attempt: a second one would count on)
	redlock run --quarantine 0 --server-timeout 9s "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 4000000000001
	[[ $(fence_at 0) == 4000000000001 && $(fence_at 1) == 4000000000001 ]]
	server_continue 2
	wait_until 'server_drained 2'
	server_stop 0
	redlock run --quarantine 0 "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]+'
	((output > 4000000000001))
}

@test "every server that voted keeps the fence that was given out" {
	local fence i behind
	for i in 0 2; do rcli "$i" HSET "$(record)" fence $((4000000000000 + i)); done
	redlock acquire --quarantine 0 --format json "$KEY"
	[[ $status == 0 && $output =~ \"fence\":\ ?([0-9]+) ]]
	fence=${BASH_REMATCH[1]}
	behind=0
	for i in 0 1 2 3 4; do
		(($(fence_at "$i") >= fence)) || ((++behind))
	done
	((behind <= 2))
}

@test "a server that comes back with its data after a release does not block the next owner" {
	local token
	servers_start 3 --appendonly yes --appendfsync always
	token=$("$REDLOCK" acquire -t 60s "$KEY")
	wait_until 'key_held_by '"$token"' 0 1 2'
	server_kill 2
	redlock release "$KEY" "$token"
	expect 0
	server_launch 2
	server_ready 2
	key_held_by "$token" 2
	redlock run "$KEY" true
	expect 0
}

@test "a server that takes in nothing more does not keep redlock from ending" {
	servers_start 3
	KEY=$KEY-$(printf '%04000d' 0)
	take
	server_stop 2
	redlock acquire --poll=5ms --tries 11 --server-timeout 1s --quarantine 0 "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	server_continue 2
	wait_until 'server_drained 2'
	key_held_by "$token" 0 1 2
}

@test "without -w a split vote is asked again for the time of a round" {
	servers_start 2
	rcli 0 SET "$KEY" somebody PX 600000
	redlock acquire -n -v --quarantine 0 "$KEY"
	[[ $status == 75 && -z $output ]]
	(($(grep -c ': granted, ' <<<"$stderr") > 1))
	wait_until 'key_free 1'
}

# rival NAME URLS: in the background one that does not wait; it tells that it ran, and its status.
rival() {
	spawn "$1" bash -c '
		"$REDLOCK" run -n -v --quarantine 0 --server-timeout $((60 * SLOW))s -t $((10 * SLOW))m -S "$1" "$2" \
			sh -c "echo ran >>$3/ran; until [ -e $3/enough ]; do sleep 0.01; done"
		echo $? >>"$3/ended"' - "$2" "$KEY" "$TMP"
}

@test "of two who do not wait and have a vote each, one runs, though the third server has stopped" {
	local i
	servers_start 3
	proxies_start
	# none seems to have forgotten KEY
	for i in 0 1; do rcli "$i" HSET "$(record)" began 1 fence 1; done
	server_stop 2
	proxy 1 hold
	rival one "$(proxy_urls)"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	rival two "$REDLOCK_SERVERS"
	wait_until 'grep -q "/1/redis.sock: granted" "$TMP/two.err"'
	proxy 1 pass
	wait_until '[[ -s $TMP/ended ]]'
	touch "$TMP/enough"
	finish one
	finish two
	[[ $(sort "$TMP/ended") == $'0\n75' && $(<"$TMP/ran") == ran ]]
	wait_until 'nothing_left 0 1'
}

# strangers_come: from now on somebody else has KEY on the first server every 10 ms, and nobody for long.
strangers_come() {
	spawn strangers "$TOOLS/start" -k redis-cli -s "$SERVERS/0/redis.sock" -r -1 -i 0.01 EVAL "
		return redis.call('SET', KEYS[1], redis.call('INCR', 'strangers') .. ' of them', 'PX', 600000)" 1 "$KEY"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
}

@test "without -w a split vote is asked again for as long as those who have the other votes are new" {
	local start
	servers_start 2
	strangers_come
	start=$NOW
	spawn run "$REDLOCK" acquire -n --quarantine 0 --server-timeout 1s "$KEY"
	wait_until "((NOW - $start > 2500))"
	is_running run
	kill "$(pid strangers)"
	rcli 0 DEL "$KEY"
	finish run
	expect 0 '[0-9a-f]{32}'
}

@test "without -w a split vote is asked again for the time of ten rounds at most" {
	servers_start 2
	strangers_come
	redlock acquire -n --quarantine 0 --server-timeout 400ms "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	kill "$(pid strangers)"
	wait_until 'key_free 1'
}

# fails_between OPTION...: of three servers one has a larger fence, and the only other one that has granted KEY
# fails before it is told; the third one comes in its stead.
fails_between() {
	servers_start 3
	proxies_start
	local i
	# records that are old: an answer that is a second late makes none seem younger than the others
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done
	rcli 0 HSET "$(record)" fence $(($(server_ms 0) + 3600000))
	proxy 0 hold
	proxy 2 hold
	spawn run "$REDLOCK" run -S "$(proxy_urls)" --quarantine 0 --server-timeout 20s -t 5m "$@" "$KEY" echo ran
	wait_until '[[ $(rcli 1 EXISTS "$KEY") == 1 ]]'
	proxy 1 reset
	proxy 0 pass
	wait_until 'proxy_did 1 reset 2'
	proxy 2 pass
	finish run
	expect 0 ran
	wait_until 'nothing_left 0 2'
}

@test "a voter that fails before it knows the fence costs no more than that attempt, with -n" {
	fails_between -n
}

@test "a voter that fails before it knows the fence costs no more than that attempt, without -n" {
	fails_between
}

@test "what one server releases and another has lost is released, whatever the third one has" {
	servers_start 3
	take
	rcli 1 DEL "$KEY"
	server_kill 2
	redlock release "$KEY" "$token"
	expect 0
	key_free 0 1
}
