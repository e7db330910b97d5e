#!/usr/bin/env bats
# Waiting: in the order of coming, told by a message, and no place is ever left behind.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 5
}

# one_server: the first of the file's servers only.
one_server() {
	SERVER_COUNT=1
	REDLOCK_SERVERS=$(server_url 0)
	export REDLOCK_SERVERS
}

# ---------------------------------------------------------------- order

in_order() {
	local names=() i
	take
	for ((i = 1; i <= $1; i++)); do
		names+=("w$i")
		line_up "w$i" -v
	done
	give_back
	in_line "${names[@]}"
	assert_exclusive "$TMP/stamps" "$1"
	wait_until no_trace
}

# in_line NAME...: these, who are verbose, end with 0 and have run in this order, behind whoever has
# run before. A release that reaches servers at different times, as on a busy machine, may split
# the votes; then somebody comes again.
in_line() {
	local name
	for name; do
		finish "$name"
		[[ $status == 0 ]] || expect 0 || return
	done
	if [[ $(tail -n $# "$TMP/order") != "$(printf '%s\n' "$@")" ]]; then
		echo "not in line: $(paste -sd ' ' "$TMP/order")" >&2
		had_split && ((SERVER_COUNT > 1))
	fi
}

had_split() {
	grep -qs 'split vote' "$TMP"/*.err
}

@test "on one server waiters get the lock in the order in which they came" {
	one_server
	in_order 8
}

@test "on three servers waiters get the lock in the order in which they came" {
	SERVER_COUNT=3
	REDLOCK_SERVERS=$(server_urls)
	in_order 6
}

@test "on five servers waiters get the lock in the order in which they came" {
	in_order 6
}

@test "who waits while the server's clock is set back stays in front of those who come later" {
	local first
	clocked servers_start 1
	turn 3600
	take
	line_up w1
	line_up w2
	first=$(queue_at 0)
	turn 0
	line_up w3
	wait_until '[[ $(queue_at 0 | head -n 2) == "$first" ]]'
	give_back
	in_line w1 w2 w3
}

@test "the queue is the same on all servers" {
	local i
	take
	for i in 1 2 3 4 5 6; do line_up "w$i"; done
	[[ $(queue_at 0 | wc -l) == 6 ]]
	for i in 1 2 3 4; do [[ $(queue_at "$i") == "$(queue_at 0)" ]]; done
	give_back
	all_end_well w1 w2 w3 w4 w5 w6
}

# ---------------------------------------------------------------- hand-over

# requests [FILE]: how many requests for a lock the monitor has seen there.
requests() {
	grep -cE '"EVAL(SHA)?" .*host=' "${1-$TMP/monitor.out}"
}

# monitor I: all that it is asked, in $TMP/monitor.out.
monitor() {
	spawn monitor redis-cli -s "$SERVERS/$1/redis.sock" MONITOR
	wait_until '[[ -s $TMP/monitor.out ]]'
}

@test "a released lock is handed over at once, without another request of the waiter" {
	servers_start 1
	monitor 0
	take
	line_up a
	wait_until '(($(requests) >= 3))' # take, the first attempt, the place in the queue
	give_back
	all_end_well a
	rcli 0 PING
	wait_until '[[ $(tail -n 1 "$TMP/monitor.out") == *PING* ]]'
	sed '1,/"- released"/d' "$TMP/monitor.out" >"$TMP/after"
	grep -q "\"publish\" \"$(record):" "$TMP/after"
	[[ $(requests "$TMP/after") == 0 ]]
}

@test "a lock that was handed over soon has its whole ttl, however long ago the last request was" {
	local asked
	one_server
	take
	line_up a -t 1m
	asked=$NOW
	touch "$TMP/a.stay"
	wait_until '((NOW - asked > 4000))'
	give_back
	wait_until 'stamped "$TMP/stamps"'
	wait_until '(($(rcli 0 PTTL "$KEY") > 50000))' 3
	touch "$TMP/a.end"
	all_end_well a
}

@test "acquire prints a token that holds KEY for its whole ttl, though it had to wait" {
	take
	spawn a "$REDLOCK" acquire --quarantine 0 -t 1m "$KEY"
	wait_until 'queued 1'
	give_back
	finish a
	expect 0 '[0-9a-f]{32}'
	token=$output
	(($(minutes_held) >= 3))
	give_back
	wait_until no_trace
}

# minutes_held: how many servers let $token hold KEY for most of a minute.
minutes_held() {
	local i count=0
	for i in 0 1 2 3 4; do
		key_held_by "$token" "$i" && (($(rcli "$i" PTTL "$KEY") > 50000)) && ((++count))
	done
	echo "$count"
}

# ---------------------------------------------------------------- newcomers

@test "who does not wait does not pass the queue, and leaves it" {
	local before
	take
	line_up a
	before=$(queue_at 0)
	redlock run -n --quarantine 0 "$KEY" touch "$TMP/passed"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ '.*' for .*, .* left"
	wait_until 'queued 1'
	[[ $(queue_at 0) == "$before" ]]
	give_back
	all_end_well a
	[[ ! -e $TMP/passed ]]
	wait_until no_trace
}

# stand_in REQUEST [SEEN]: somebody made by hand is at the head of server 0's queue, and listens.
stand_in() {
	rcli 0 ZADD "$(record):queue" 1 handmade
	rcli 0 HSET "$(record):wishes" handmade "20000 string 0 1 - $1${2:+ $2}"$'\nhost=elsewhere\npid=7\ncommand=by hand\n'
	spawn ears redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "$(record):handmade"
	wait_until 'listening 1 0'
}

@test "who comes when KEY is free, but others wait, gets it behind them" {
	one_server
	stand_in 1 0
	redlock run -n "$KEY" touch "$TMP/passed"
	expect 75 '' "redlock: $KEY: held by elsewhere pid 7 'by hand' for [0-9.]+m?s, [0-9.]+s left"
	[[ ! -e $TMP/passed ]]
	key_held_by handmade 0
	queued 0
	wait_until '[[ $(<"$TMP/ears.out") == *"1 "[0-9]*" 3000 - "[0-9]* ]]'
	# and one who waits is next
	rcli 0 PEXPIRE "$KEY" 600000
	line_up a
	rcli 0 DEL "$KEY"
	rcli 0 ZCARD "$(record):queue"
	kill "$(pid ears)"
	redlock run --poll -w 20s "$KEY" true
	expect 0
	all_end_well a
	ran a
}

@test "a waiter of an earlier version is told what it can read" {
	one_server
	stand_in 1
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by elsewhere .*"
	wait_until '[[ $(<"$TMP/ears.out") == *"1 "[0-9]*" 3000 -" ]]'
}

@test "a waiter of an earlier version is granted a reentrant lock by its own token" {
	one_server
	stand_in 1
	rcli 0 HSET "$(record):wishes" handmade $'20000 hash 0 1 +0123 1 9000000000000\ncommand=by hand\n'
	redlock run -r -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	[[ $(rcli 0 HGETALL "$KEY") == $'handmade\n1' ]]
	wait_until '[[ $(<"$TMP/ears.out") == *"1 "[0-9]*" 3000 +0123" ]]'
}

@test "where nobody holds KEY and others wait for it, that is what is said" {
	one_server
	rcli 0 ACL SETUSER "mute-$KEY" on '>pw' '~*' '&*' +@all -publish
	stand_in 1
	redlock run -n -S "unix://mute-$KEY:pw@$SERVERS/0/redis.sock" "$KEY" touch "$TMP/passed"
	expect 75 '' "redlock: $KEY: others wait for it and come first"
	[[ ! -e $TMP/passed && $(queue_at 0) == handmade ]]
	key_free 0
	[[ $(rcli 0 HKEYS "$(record):wishes") == handmade ]]
}

# ---------------------------------------------------------------- the dead and the stopped

@test "dead waiters are skipped at once" {
	local name next holder
	take
	for name in a b c d; do line_up "$name"; done
	touch "$TMP/d.stay"
	for name in a b c; do kill -KILL "$(pid "$name")"; done
	wait_until 'listening 1'
	queued 4
	next=$(queue_at 0 | tail -n 1)
	give_back
	# free for a moment where the release comes last: the others' grants were a quorum, and d has left the line
	wait_until 'holder=$(rcli 0 GET "$KEY"); [[ $holder && $holder != "$token" ]]'
	[[ $holder == "$next" ]]
	touch "$TMP/d.end"
	all_end_well d
	ran d
	wait_until no_trace
}

@test "a waiter that is stopped delays the others by its lease at most, and gets its turn later" {
	local start took
	take
	line_up a -t 3s
	line_up b -t 3s
	touch "$TMP/b.stay"
	stop_process "$(pid a)"
	start=$NOW
	give_back
	wait_until 'stamped "$TMP/stamps"'
	took=$(($(first_beat) - start))
	((took > 2000 && took < 6000))
	kill -CONT "$(pid a)"
	wait_until 'queued 1'
	is_beating "$TMP/stamps"
	touch "$TMP/b.end"
	all_end_well a b
	ran b a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

# unanswered SERVERS: a waiter that hears nothing of its grant, however long its ttl, keeps the next one waiting for
# 3 s, though that one's next request is not due by then.
unanswered() {
	local start took
	servers_start "$1"
	take
	line_up a -t 60s
	line_up b -t 60s
	stop_process "$(pid a)"
	start=$NOW
	give_back
	wait_until 'stamped "$TMP/stamps"' 15
	took=$(($(first_beat) - start))
	((took > 2500 && took < 4500))
	finish b
	expect 0
	kill -CONT "$(pid a)"
	finish a
	[[ $status == 0 ]]
	ran b a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

@test "a waiter that does not answer its grant delays the others by 3 s: one server" {
	unanswered 1
}

@test "a waiter that does not answer its grant delays the others by 3 s: three servers" {
	unanswered 3
}

@test "when a holder was killed, the head of the queue takes over as the lease ends" {
	local end gap
	touch "$TMP/h.stay"
	wait_turn h -t 3s
	wait_until 'stamped "$TMP/stamps"'
	line_up a -v
	line_up b -v
	kill -KILL "$(pid h)"
	end=$((NOW + $(rcli 0 PTTL "$KEY")))
	in_line a b
	assert_exclusive "$TMP/stamps" 3
	gap=$(($(first_beat 2) - end))
	((gap > -100 && gap < 1500)) # the next request that is due anyhow may be 5 s away
	wait_until no_trace
}

# ---------------------------------------------------------------- giving up

@test "a waiter whose patience is over leaves nothing, and the next one is served" {
	local start
	take
	line_up a -w $((5 * SLOW))s
	line_up b
	finish a
	expect 75 '' "redlock: $KEY: held by .* for .*"
	wait_until 'queued 1 && listening 1'
	[[ $(rcli 0 HLEN "$(record):wishes") == 1 ]]
	start=$NOW
	give_back
	all_end_well b
	(($(first_beat) - start < 2500))
	ran b
	wait_until no_trace
}

@test "a KEY that was lost while others wait is known from then on only, who is told of it too" {
	local began
	one_server
	take
	line_up a
	line_up b
	began=$(rcli 0 HGET "$(record)" began)
	rcli 0 DEL "$KEY"
	kill -TERM "$(pid b)" # its place is given up, and a is told
	finish b
	all_end_well a
	(($(rcli 0 HGET "$(record)" began) > began))
}

@test "a waiter that a signal ends dies of it and leaves nothing" {
	local signal
	take
	line_up b
	for signal in TERM INT HUP; do
		line_up a
		kill "-$signal" "$(pid a)"
		finish a
		expect $((128 + $(kill -l "$signal")))
		wait_until 'queued 1 && listening 1'
		LINE=1
	done
	give_back
	all_end_well b
	wait_until no_trace
}

@test "a waiter that gives up while it is granted the lock leaves nothing, and the next one is served" {
	local i died=0 pause
	for i in {1..12}; do
		rm -f "$TMP/order"
		LINE=0
		take
		line_up a -v
		line_up b -v
		spawn release "$REDLOCK" release "$KEY" "$token"
		printf -v pause '0.%03d' $((i * 2))
		sleep "$pause"
		kill -TERM "$(pid a)" || :
		finish release
		expect 0
		finish a
		[[ $status == @(0|143) ]]
		[[ $status == 0 ]] || ((++died))
		finish b
		[[ $status == 0 ]]
		[[ $(<"$TMP/order") == @(b|a$'\n'b) ]] || had_split
		wait_until no_trace
	done
	echo "$died of 12 were ended"
	[[ ! -s $TMP/stamps/overlap ]]
}

@test "patience that ends while the lock is granted: one way or the other, and nothing is left" {
	local i pause
	for i in {1..8}; do
		take
		spawn a "$REDLOCK" run --quarantine 0 -w 300ms "$KEY" true
		wait_until 'queued 1 || ! is_running a'
		spawn b "$REDLOCK" run --quarantine 0 "$KEY" true
		printf -v pause '0.%03d' $((100 + i * 20))
		sleep "$pause"
		give_back
		finish a
		[[ $status == 0 ]] || expect 75 '' "redlock: $KEY: .*"
		finish b
		expect 0
		wait_until no_trace
	done
}

@test "patience that ends names who holds KEY by then, not who held it when servers were last asked" {
	local name
	takes first --label 'the first'
	wait_until 'entered first'
	takes second --label 'the second'
	wait_until 'queued 1'
	takes run -w $((4500 * SLOW))ms
	spawn wait "$REDLOCK" wait --quarantine 0 -w $((4500 * SLOW))ms "$KEY"
	wait_until 'queued 3'
	ends first
	wait_until 'entered second'
	for name in run wait; do
		finish "$name"
		expect 75 '' "redlock: $KEY: held by .* 'the second' for .*"
	done
	ends second
	done_well first second
	wait_until no_trace
}

# stops_answering I...: these servers stop just before patience ends.
stops_answering() {
	local try start
	for try in {1..5}; do
		LINE=0
		start=$NOW
		line_up "late$try" -w 3s --server-timeout 4s
		server_stop "$@"
		finish "late$try"
		took=$((NOW - start))
		server_continue "$@"
		wait_until 'queued 0'
		[[ $stderr != "redlock: $KEY: held by "* ]] || continue # it had ended by then
		[[ $stderr == *': still waiting: '* ]] || return 0
	done
	return 1
}

@test "where patience ends as servers answer no more, what they said before is told as such, after a round: five servers" {
	local took
	take
	stops_answering 0 1 2
	expect 75 '' "redlock: $KEY: when last heard: held by .*; now: no quorum: 3 of 5 .*: no answer within .*"
	((took < 3000 + 2 * 4000))
}

@test "where patience ends as servers answer no more, what they said before is told as such, after a round: one server" {
	local took
	one_server
	take
	stops_answering 0
	expect 75 '' "redlock: $KEY: when last heard: held by .*; now: .*: no answer within .*"
	((took < 3000 + 2 * 4000))
}

# ---------------------------------------------------------------- many at once

@test "twenty that come at once on five servers all get their turn" {
	local i names=()
	for i in {1..20}; do
		wait_turn "c$i" -t 10s
		names+=("c$i")
	done
	all_end_well "${names[@]}"
	assert_exclusive "$TMP/stamps" 20
	wait_until no_trace
}

@test "of twenty that come at once and do not wait, one gets the lock at least" {
	local round i won
	for round in 1 2 3; do
		won=0
		for i in {1..20}; do wait_turn "c$i" -n; done
		for i in {1..20}; do
			finish "c$i"
			[[ $status == 0 ]] && ((++won)) && continue
			expect 75 '' "redlock: $KEY: .*"
		done
		((won > 0))
		wait_until no_trace
	done
	[[ ! -s $TMP/stamps/overlap ]]
}

# ---------------------------------------------------------------- slow servers

# holds_without_place: a holds KEY, and is in no queue, though it has asked server 2 for a place.
holds_without_place() {
	wait_until 'stamped "$TMP/stamps"'
	wait_until '(($(requests) >= 2))'
	wait_until 'queued 0'
	is_beating "$TMP/stamps"
	touch "$TMP/a.end"
	finish a
	expect 0
	wait_until 'queued 0 && listening 0'
	[[ $(rcli 2 GET "$KEY") == "$1" ]]
}

@test "a holder leaves no place on a server where another has KEY" {
	servers_start 3
	touch "$TMP/a.stay"
	monitor 2
	take
	rcli 2 SET "$KEY" another
	line_up a
	give_back || :
	holds_without_place another
}

@test "a holder leaves no place on a server that got its requests too late" {
	local other
	servers_start 3
	proxies_start
	for other in another ''; do
		rm -rf "$TMP"/{order,a.end,stamps}
		touch "$TMP/a.stay"
		proxy 2 pass
		take
		monitor 2
		[[ ! $other ]] || rcli 2 SET "$KEY" another
		proxy 2 hold
		proxy_ears 2 pass
		wait_turn a -S "$(proxy_urls)"
		wait_until 'queued 1 0 1 && listening 1 2'
		give_back || :
		wait_until 'stamped "$TMP/stamps"'
		proxy 2 pass
		holds_without_place "$other"
		kill "$(pid monitor)"
		finish monitor
		rcli 2 DEL "$KEY"
	done
}

@test "a holder has KEY, and no place, on a server that is slow" {
	servers_start 3
	proxies_start
	touch "$TMP/a.stay"
	take
	proxy 2 'delay 80'
	line_up a -S "$(proxy_urls)"
	give_back
	wait_until 'stamped "$TMP/stamps"'
	wait_until 'queued 0'
	wait_until '[[ $(rcli 2 GET "$KEY") && $(rcli 2 GET "$KEY") == "$(rcli 0 GET "$KEY")" ]]'
	touch "$TMP/a.end"
	all_end_well a
	wait_until no_trace
}

# ---------------------------------------------------------------- outages

@test "waiters are back in the queue of a server that has lost it, in order, by their next request" {
	servers_start 3
	take
	line_up a -v -t 6s
	line_up b -v -t 6s
	line_up c -v -t 6s
	rcli 2 EVAL "redis.call('flushall') redis.call('set', KEYS[1], ARGV[1], 'px', 60000)" 1 "$KEY" "$token"
	wait_until 'queued 3' 10 # they ask every 2 s
	[[ $(queue_at 2) == "$(queue_at 0)" ]]
	give_back
	in_line a b c
	assert_exclusive "$TMP/stamps" 3
	wait_until no_trace
}

@test "a server that is restarted empty while others wait: all are served" {
	servers_start 3
	touch "$TMP/h.stay"
	wait_turn h -t 3s
	wait_until 'stamped "$TMP/stamps"'
	line_up a
	line_up b
	line_up c
	server_restart 2
	wait_until '[[ $(rcli 2 EXISTS "$(record)") == 1 ]]'
	touch "$TMP/h.end"
	all_are_served h a b c
	assert_exclusive "$TMP/stamps" 4
	wait_until no_trace
}

@test "waiters whose connections are cut are served, in order" {
	local i type
	servers_start 3
	take
	for i in 1 2 3 4; do line_up "w$i" -v; done
	for type in normal pubsub normal pubsub; do
		for i in 0 1 2; do rcli "$i" CLIENT KILL TYPE "$type"; done
		wait_until 'queued 4 && listening 4'
	done
	wait_until 'all_asked_again'
	give_back
	in_line w1 w2 w3 w4
	wait_until no_trace
}

# all_asked_again: every wish is of a later request than the first.
all_asked_again() {
	local i
	for i in 0 1 2; do
		(($(rcli "$i" HVALS "$(record):wishes" | grep -cE '^[0-9]+ string 0 [0-9]+ - [2-9] ') == 4)) || return
	done
}

@test "a server that closes idle connections is no outage" {
	servers_start 3 --timeout 1
	take
	line_up a -t 30s
	wait_until 'first_asked_twice'
	give_back
	all_end_well a
	wait_until no_trace
}

# first_asked_twice: everybody has asked more than twice.
first_asked_twice() {
	local i
	for i in 0 1 2; do
		rcli "$i" HVALS "$(record):wishes" | grep -qE '^[0-9]+ string 0 [0-9]+ - [3-9] ' || return
	done
}

# last_requests: the number of each waiter's last request, the smallest first.
last_requests() {
	rcli 0 HVALS "$(record):wishes" | sed -nE 's/^[0-9]+ (string|none) 0 [0-9]+ - ([0-9]+) .*/\2/p' | sort -n
}

@test "connections that are closed again and again, as by a proxy, and are back at once are no outage" {
	local last i
	servers_start 1
	take
	line_up a --server-timeout 9s
	spawn b "$REDLOCK" wait --server-timeout 9s "$KEY"
	wait_until 'queued 2 && listening 2'
	for i in 1 2 3 4 5; do
		last=$(last_requests | tail -n 1)
		rcli 0 CLIENT KILL TYPE pubsub
		rcli 0 CLIENT KILL TYPE normal
		wait_until 'listening 2 && (($(last_requests | head -n 1) > last))'
	done
	give_back
	all_end_well a b
}

@test "waiters whose connections are cut as the lock is released are served" {
	local i type
	servers_start 3
	for type in normal pubsub; do
		LINE=0
		take
		for i in 1 2 3; do line_up "w$i"; done
		for i in 0 1 2; do rcli "$i" CLIENT KILL TYPE "$type"; done
		give_back
		for i in 0 1 2; do rcli "$i" CLIENT KILL TYPE "$type"; done
		all_are_served w1 w2 w3
		wait_until no_trace # two servers know of the last release, the third one soon
	done
	assert_exclusive "$TMP/stamps" 6
}

@test "waiters that are cut off when their turn comes are passed over, and have their old places when they are back" {
	local name
	servers_start 1
	proxies_start
	take
	for name in a b c; do line_up $name -S "$(proxy_urls)"; done
	touch "$TMP/d.stay"
	line_up d
	proxy_ears 0 reset
	rcli 0 CLIENT KILL TYPE pubsub
	wait_until 'listening 1'
	give_back
	wait_until 'ran d'
	wait_turn e
	wait_until 'listening 2' # d, too
	proxy_ears 0 pass
	wait_until 'listening 5 && queued 4'
	touch "$TMP/d.end"
	in_line d a b c e
	wait_until no_trace
}

@test "an outage is told once and waited through" {
	servers_start 3
	TAKEN_FOR=6s take # servers that come back empty have no vote for so long
	line_up a -t 3s
	server_kill 0 1
	wait_until '[[ -s $TMP/a.err ]]'
	server_launch 0
	server_launch 1
	server_ready 0
	server_ready 1
	finish a
	expect 0 '' "redlock: $KEY: still waiting: no quorum: 2 of 3 .*"
}

@test "an outage is told once, however often what is left of the servers grants KEY" {
	servers_start_tcp 3
	redlock acquire --quarantine 0 -t 5s "$KEY"
	wait_turn a -t 3s -w 9s
	wait_until 'queued 1'
	server_kill 1 2
	finish a
	expect 69 '' "redlock: $KEY: still waiting: no quorum: 2 of 3 .*
redlock: $KEY: no quorum: 2 of 3 .*"
	wait_until 'queued 0 0 && key_free 0'
}

@test "patience that ends in an outage is 69, and with a quorum that answers 75" {
	servers_start 3
	take
	line_up a -t 3s -w 5s
	server_kill 2
	finish a
	expect 75 '' "redlock: $KEY: held by .*"
	wait_turn b -t 3s -w 7s
	wait_until 'queued 1 0 1'
	server_kill 0
	finish b
	expect 69 '' "redlock: $KEY: still waiting: no quorum: 2 of 3 .*
redlock: $KEY: no quorum: 2 of 3 .*"
	wait_until 'queued 0 1'
}

# ---------------------------------------------------------------- networks

# cut_off DIRECTION: a waiter on the other side of a network that loses packets is served once it heals.
cut_off() {
	local i urls=
	net_servers_start 3
	for i in 0 1 2; do urls+=,unix://$SERVERS/$i/redis.sock; done
	token=$("$REDLOCK" acquire -S "${urls#,}" --quarantine 0 -t 60s "$KEY")
	mkdir "$TMP/stamps"
	net_spawn a "$REDLOCK" run --quarantine 0 -t 3s --server-timeout 300ms "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	wait_until 'queued 1'
	net_drop "$1" 0 1 2
	wait_until '[[ -s $TMP/a.err ]]'
	give_back -S "${urls#,}"
	# where only requests are lost, the message comes through
	[[ $1 == out ]] || run -1 stamped "$TMP/stamps"
	net_heal
	finish a 15
	[[ $status == 0 && $stderr == "redlock: $KEY: still waiting: "* ]]
	stamped "$TMP/stamps"
	wait_until no_trace
}

@test "a waiter whose requests vanish in the network is served once it heals" {
	cut_off out
}

@test "a waiter to whom no reply comes through is served once the network heals" {
	cut_off in
}

@test "a waiter takes back at once what servers grant to a place of its own that a broken network has left there" {
	local i place
	servers_start 3
	proxies_start
	take
	wait_turn a -v -S "$(proxy_urls)"
	wait_until 'queued 1 && listening 1'
	for i in 0 1; do proxy_ears "$i" pass; done
	for i in 0 1; do proxy "$i" hold; done
	for i in 0 1; do rcli "$i" PUBLISH "$(channels "$i")" '0 0 0 -'; done
	wait_until 'grep -q "still waiting" "$TMP/a.err"'
	place=$(queue_at 0)
	"$REDLOCK" release -S "$(server_url 2)" "$KEY" "$token"
	wait_until 'grep -q "split vote: given back" "$TMP/a.err"'
	# its old subscriptions are alive as far as the servers know, and the releases are lost
	for i in 0 1; do
		spawn "ear$i" redis-cli -s "$SERVERS/$i/redis.sock" SUBSCRIBE "$(record):$place"
		wait_until '[[ -s $TMP/ear$i.out ]]'
		proxy "$i" 'reset 1'
	done
	wait_until '[[ $(queue_at 0 | wc -l) == 2 && $(queue_at 1 | wc -l) == 2 ]]'
	for i in 0 1; do "$REDLOCK" release -S "$(server_url "$i")" "$KEY" "$token"; done
	finish a 2
	[[ $status == 0 && $stderr == *"held by an earlier attempt of ours, given back"* ]]
}

# ---------------------------------------------------------------- permissions

@test "where a server lets nobody subscribe, that is said once, and the lock is asked for again and again" {
	local what url
	one_server
	for what in '&* +@all -subscribe' 'resetchannels +@all'; do
		# shellcheck disable=SC2086
		rcli 0 ACL SETUSER "deaf-$KEY" reset on '>pw' '~*' $what
		url=unix://deaf-$KEY:pw@$SERVERS/0/redis.sock
		take
		wait_turn a -S "$url"
		wait_until '[[ -s $TMP/a.err ]]'
		give_back
		finish a
		expect 0 '' "redlock: $KEY: no place in the queue, so asking again and again: unix://$SERVERS/0/redis.sock: .*(NOPERM|permission).*"
		wait_until no_trace
	done
}

@test "where subscriptions are cut, and requests are not, the lock is asked for again and again, until it can be listened to" {
	local why="redlock: $KEY: still waiting: .*
redlock: $KEY: no place in the queue, so asking again and again: unix://.*: .*"
	servers_start 1
	proxies_start
	proxy_ears 0 reset
	take
	wait_turn a -S "$(proxy_urls)"
	wait_until 'grep -q "no place in the queue" "$TMP/a.err"'
	give_back
	finish a 3
	expect 0 '' "$why"
	take
	wait_turn b -S "$(proxy_urls)"
	wait_until 'grep -q "no place in the queue" "$TMP/b.err"'
	proxy_ears 0 pass
	wait_until 'listening 1'
	give_back
	finish b
	expect 0 '' "$why"
	wait_until no_trace
}

@test "a release by who may not publish is done, and waiters keep their place" {
	one_server
	rcli 0 ACL SETUSER "mute-$KEY" reset on '>pw' '~*' '&*' +@all -publish
	take
	line_up a -t 6s
	line_up b -t 6s
	run --separate-stderr "$REDLOCK" release -S "unix://mute-$KEY:pw@$SERVERS/0/redis.sock" "$KEY" "$token"
	expect 0
	all_end_well a b
	ran a b
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

# ---------------------------------------------------------------- no queue

@test "--poll and --tries make no queue" {
	servers_start 1
	take
	monitor 0
	spawn poller "$REDLOCK" run --poll=5ms "$KEY" true
	redlock run --tries 4 "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	redlock run --poll -w 200ms "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	give_back
	finish poller
	expect 0
	rcli 0 PING
	wait_until '[[ $(tail -n 1 "$TMP/monitor.out") == *PING* ]]'
	(($(requests) > 6))
	run -1 grep -iE '"zadd"|"subscribe"' "$TMP/monitor.out"
}

# polls_on STOPPED...: of the servers of the set, these are killed while somebody polls, and come back empty.
polls_on() {
	local before i
	TAKEN_FOR=6s take # servers that come back empty have no vote for so long
	before=$(scripts_run 0)
	spawn poller "$REDLOCK" run --quarantine 0 -t 3s --poll=20ms "$KEY" true
	wait_until '(($(scripts_run 0) > before + 5))' # a quorum has answered
	server_kill "$@"
	wait_until '[[ -s $TMP/poller.err ]]'
	for i; do server_launch "$i"; done
	for i; do server_ready "$i"; done
	finish poller
	# the outage is told, and perhaps that what is there again knows KEY only for a short time, each once
	stderr=$(sed '2{/: still waiting: .*it has known KEY for only /d;}' "$TMP/poller.err")
	expect 0 '' "redlock: $KEY: still waiting: .*"
	wait_until no_trace # one server may hear of the release a little later
}

@test "--poll waits through an outage that begins after an answer: one server" {
	servers_start 1
	polls_on 0
}

@test "--poll waits through an outage that begins after an answer: three servers" {
	servers_start 3
	polls_on 0 1
}

@test "--poll and --tries do not pass waiters" {
	servers_start 1
	take
	line_up a
	wait_turn p --poll=5ms
	wait_turn t --tries 10000
	wait_until '(($(scripts_run 0) > 20))'
	touch "$TMP/a.stay"
	line_up b
	give_back
	wait_until 'stamped "$TMP/stamps"'
	ran a
	touch "$TMP/a.end"
	all_end_well a b p t
	[[ $(head -n 2 "$TMP/order") == a$'\n'b ]]
	assert_exclusive "$TMP/stamps" 4
	wait_until no_trace
}

# ---------------------------------------------------------------- locks of other programs

@test "locks of other programs are waited for" {
	local start
	one_server
	rcli 0 SET "$KEY" another NX PX 700
	redlock run "$KEY" true
	expect 0
	rcli 0 SET "$KEY" another
	LINE=0
	line_up a
	line_up b
	start=$NOW
	rcli 0 DEL "$KEY"
	all_end_well a b
	ran a b
	(($(first_beat) - start < 2000))
	rcli 0 HSET "$KEY" 3f0e9c2a-0000-4000-8000-000000000000:1 1
	rcli 0 PEXPIRE "$KEY" 30000
	LINE=0
	line_up c
	rcli 0 DEL "$KEY"
	all_end_well c
	wait_until no_trace
}

# requests_in SECONDS: how many for a lock come in that time.
requests_in() {
	local before start
	before=$(requests)
	start=$NOW
	wait_until "((NOW - $start >= $1 * 1000))"
	echo $(($(requests) - before))
}

@test "another program's lock is looked at by the head of the queue only, twice a second" {
	local alone many
	servers_start 1
	monitor 0
	rcli 0 SET "$KEY" another
	line_up a
	wait_until '(($(requests) >= 6))' # 50 ms, 100, 200 ... later
	alone=$(requests_in 3)
	line_up b
	line_up c
	line_up d
	line_up e
	many=$(requests_in 3)
	echo "$alone $many"
	((alone >= 2 && alone <= 8))
	((many >= 2 && many <= 14)) # all five would make 30
	rcli 0 DEL "$KEY"
	all_end_well a b c d e
	ran a b c d e
}

# ---------------------------------------------------------------- what it costs

@test "a waiter costs a server a command in four seconds at most" {
	local start
	servers_start_tcp 1
	take
	line_up a -t 30s
	monitor 0
	start=$NOW
	wait_until '((NOW - start >= 12000))'
	(($(grep -c '\[0 127\.0\.0\.1:' "$TMP/monitor.out") <= 3))
	give_back
	all_end_well a
}

# ---------------------------------------------------------------- servers that know less

@test "a server that has lost KEY is left to its holder, and the waiters keep their places elsewhere" {
	local before after
	servers_start 3
	take
	line_up a -v
	line_up b
	rcli 2 DEL "$KEY"
	rcli 2 CLIENT KILL TYPE pubsub
	wait_until '[[ $(<"$TMP/a.err") == *"given back"* ]]'
	wait_until 'queued 0 2 && key_free 2'
	queued 2 0 1
	before=$(scripts_run 0)
	after=$((NOW + 3000))
	wait_until "((NOW > $after)) || ! queued 2 0 1"
	# a heartbeat each, perhaps, and what asks here
	(($(scripts_run 0) - before <= 4)) && queued 2 0 1
	give_back
	finish a
	[[ $status == 0 && $stderr != *'split vote'* ]]
	finish b
	expect 0
	ran a b
	wait_until no_trace
}

@test "a release that reaches some servers late costs nobody its place" {
	local i holder
	servers_start 3
	proxies_start
	for i in 1 2 3; do
		rm -f "$TMP/order"
		holder=h$i
		touch "$TMP/$holder.stay"
		wait_turn "$holder" -S "$(proxy_urls)"
		wait_until '[[ -s $TMP/order ]]'
		LINE=0
		line_up "a$i" -v
		line_up "b$i" -v
		proxy 1 'delay 300'
		proxy 2 'delay 300'
		touch "$TMP/$holder.end"
		finish "a$i"
		[[ $status == 0 && $stderr != *'split vote'* ]]
		finish "b$i"
		[[ $status == 0 ]]
		finish "$holder"
		ran "$holder" "a$i" "b$i"
		proxy 1 pass
		proxy 2 pass
		wait_until no_trace
	done
	assert_exclusive "$TMP/stamps" 9
}

@test "a release that is late on servers that a quorum needs is waited for" {
	servers_start 5
	proxies_start
	touch "$TMP/h.stay"
	wait_turn h -S "$(proxy_urls)"
	wait_until '[[ -s $TMP/order ]]'
	line_up a -v
	server_kill 4
	proxy 2 'delay 300'
	proxy 3 'delay 300'
	touch "$TMP/h.end"
	finish a
	[[ $status == 0 && $stderr != *'split vote'* && $stderr != *'given back'* ]]
	finish h
	ran h a
	wait_until 'no_trace 0 1 2 3'
}

@test "in a terminal's foreground a line says who has KEY and what our place is, each second anew" {
	take
	in_terminal session "stty cols 200; $REDLOCK run --quarantine 0 $KEY true; echo end: \$?"
	wait_until 'grep -q "held by .*, 1st in line, waiting for [12]" "$TMP/session.out"'
	give_back
	wait_until 'grep -q "end: 0" "$TMP/session.out"'
	wait_until no_trace
}

@test "the line in a terminal is no wider than that, whatever characters a label has" {
	take --label "$(printf '✅%.0s' {1..40}) done"
	in_terminal session "stty cols 100; $REDLOCK run --quarantine 0 $KEY true; echo end: \$?"
	wait_until 'grep -q "held by .*✅.*, 1st in line, waiting for [1-9]" "$TMP/session.out"'
	give_back
	wait_until 'grep -q "end: 0" "$TMP/session.out"'
	python3 -IS - "$TMP/session.out" <<-'end'
		import re, sys, unicodedata
		lines = re.split(r"[\r\n]|\x1b\[[0-9]*K", open(sys.argv[1], encoding="utf-8", newline="").read())
		widest = max(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) for line in lines)
		sys.exit(f"{widest} columns" if not 60 < widest <= 100 else 0)
	end
}

# ---------------------------------------------------------------- long lines

# forge LINE COUNT: so many who are not there stand in that line of KEY (queue, waits), before everybody else, and
# six behind everybody.
forge() {
	local from
	for ((from = 0; from < $2; from += 1000)); do
		rcli 0 EVAL 'for i = ARGV[1] + 1, ARGV[1] + 1000 do
				redis.call("zadd", KEYS[1], i <= 6 and 2^52 or i, "forged" .. i)
				redis.call("hset", KEYS[2], "forged" .. i, "20000 string 0 1 - 1\nhost=x\n")
			end' 2 "$(record):$1" "$(record):wishes" "$from"
	done
}

# executed: how many scripts, and how many commands in all, the server has by now.
executed() {
	rcli 0 INFO commandstats | awk -F '[:=,]' '
		/^cmdstat_eval(sha)?:/ { scripts += $3 }
		/^cmdstat_/ { sum += $3 }
		END { print scripts + 0, sum + 0 }'
}

# bounded LINE: with 20,000 who are not there in that line no request takes a server long, and others are served.
bounded() {
	local before after
	servers_start 1
	take
	line_up a
	forge "$1" 20000
	read -ra before < <(executed)
	give_back
	all_end_well a
	redlock run -w 20s "$KEY" true
	expect 0
	read -ra after < <(executed)
	((after[1] - before[1] < 1500 * (after[0] - before[0])))
}

@test "20,000 in line who are not there cost a request no more than a few, and others are served" {
	bounded queue
}

@test "20,000 who only wait, and are not there, cost a request no more than a few, and others are served" {
	bounded waits
}

@test "a thousand in line who are not there are no reason for -n to be busy" {
	servers_start 1
	forge queue 1000
	redlock run -n "$KEY" true
	expect 0
}

@test "a long line of readers is let in, a part of them with each request" {
	local i
	servers_start 1
	take
	for i in {1..6}; do wait_turn "r$i" -s; done
	wait_until 'queued 6'
	# before them 120 readers, whom one process listens for
	# shellcheck disable=SC2046 # a word for each
	spawn heard redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE $(printf "$(record):reader%s\n" {1..120})
	wait_until '(($(grep -c "^subscribe" "$TMP/heard.out") == 120))'
	rcli 0 EVAL 'for i = 1, 120 do
		redis.call("zadd", KEYS[1], i, "reader" .. i)
		redis.call("hset", KEYS[2], "reader" .. i, "20000 zset 0 1 - 1\nhost=x\n")
	end' 2 "$(record):queue" "$(record):wishes"
	give_back
	wait_until '(($(grep -cE "^1 [0-9]+ 3000 -$" "$TMP/heard.out") == 120))'
	for i in {1..6}; do finish "r$i" && expect 0; done
	# the 120 do not answer, and keep a writer out no longer than that
	redlock run --quarantine 0 -w 20s "$KEY" true
	expect 0
}

@test "a full pipe as standard error keeps a waiter neither from its turn nor from a signal" {
	local name before queued=0
	servers_start 1
	rcli 0 SET "$KEY" other
	mkfifo "$TMP/log"
	exec 9<>"$TMP/log"
	for name in one two; do
		spawn "$name" sh -c 'exec "$@" 2>"$0" 9>&-' "$TMP/log" "$REDLOCK" run -v "$KEY" touch "$TMP/ran.$name"
		wait_until "queued $((++queued))"
	done
	run ! dd if=/dev/zero of="$TMP/log" oflag=nonblock bs=1k # until it is full
	before=$(scripts_run 0)
	wait_until "((\$(scripts_run 0) > $before + 4))" # it goes on asking
	kill -TERM "$(pid two)"
	finish two
	[[ $status == 143 ]]
	rcli 0 DEL "$KEY"
	wait_until '[[ -e $TMP/ran.one ]]'
	spawn reader sh -c 'exec cat "$0" 9>&-' "$TMP/log"
	wait_until '[[ -s $TMP/reader.out ]]' # it has opened it
	exec 9>&-
	finish one
	[[ $status == 0 && ! -e $TMP/ran.two ]]
	key_free 0
}

@test "a waiter does not keep too few votes for long, though the last holder has not left some servers" {
	local token i
	servers_start 5
	server_stop 4
	token=$("$REDLOCK" acquire --quarantine 0 -t 1h "$KEY")
	wait_until 'key_held_by "$token" 0 1 2 3'
	spawn waiter "$REDLOCK" run -v --quarantine 0 -t 1h "$KEY" true
	wait_until 'queued 1 0 1 2 3'
	for i in 0 3; do "$REDLOCK" release -S "$(server_url "$i")" "$KEY" "$token"; done
	wait_until 'grep -q "split vote: given back" "$TMP/waiter.err"'
	for i in 1 2; do "$REDLOCK" release -S "$(server_url "$i")" "$KEY" "$token"; done
	finish waiter
	[[ $status == 0 ]]
	server_continue 4
}

@test "a waiter keeps too few votes no longer because servers were stopped for a while" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli "$i" SET "$KEY" "another-program-$i"; done
	spawn waiter "$REDLOCK" run -v --quarantine 0 "$KEY" true
	wait_until 'queued 1'
	server_stop 1 2
	wait_until 'grep -q "still waiting" "$TMP/waiter.err"'
	server_continue 1 2
	rcli 0 DEL "$KEY"
	wait_until 'grep -q "granted, fence" "$TMP/waiter.err"'
	wait_until 'grep -q "given back" "$TMP/waiter.err"' 1
	for i in 1 2; do rcli "$i" DEL "$KEY"; done
	finish waiter
	[[ $status == 0 ]]
}

@test "a waiter whose grant came too late, as its server was stopped, asks for it again at once" {
	local queued
	servers_start 1
	take
	line_up a --server-timeout 9s -t 1m
	queued=$NOW # it asks again 5 s after this, and a grant to that request ends 3 s later
	server_stop 0
	wait_until '((NOW - queued > 8200))'
	server_continue 0
	give_back
	finish a 1
	expect 0
}

@test "a permit that a server gave too early, and got back, is had once the others give it" {
	local queued
	servers_start 3
	server_stop 0 1 # which know the holder a bit later than the third one
	spawn take "$REDLOCK" acquire --quarantine 0 -t 1m --server-timeout 9s -P 1 "$KEY"
	wait_until '[[ $(rcli 2 EXISTS "$KEY") == 1 ]]'
	server_continue 0 1
	finish take
	token=$output
	wait_until '[[ $(servers_with "$token" ZRANGE "$KEY" 0 -1) == 3 ]]'
	line_up a --server-timeout 9s -t 1m -P 1 -v
	queued=$NOW
	server_stop 0 1
	"$REDLOCK" release -S "$(server_url 2)" "$KEY" "$token"
	wait_until '((NOW - queued > 8200))' # as above
	spawn release "$REDLOCK" release --server-timeout 9s "$KEY" "$token"
	wait_until '(($(readlink /proc/$(pid release)/fd/* | grep -c socket) == 3))' # they have it at one time
	server_continue 0 1
	finish a
	[[ $status == 0 && $stderr != *"split vote"* ]]
	finish release
}
