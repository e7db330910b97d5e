#!/usr/bin/env bats
# Servers that have forgotten who holds KEY, by a restart or while they run, have no vote until the
# holder cannot hold it any more.
# shellcheck disable=SC2016,SC2154
# bats file_tags=long

load ../lib/helper

# only I...: the three servers, as one sees them who reaches only these.
only() {
	local i list=
	for i in 0 1 2; do
		if [[ " $* " == *" $i "* ]]; then list+=,$(server_url "$i"); else list+=,unix://$SERVERS/$i/cut; fi
	done
	echo "${list#,}"
}

# held_barely [TTL]: $token holds KEY on servers 0 and 1, and 2 has never heard of it.
held_barely() {
	token=$("$REDLOCK" acquire --quarantine 0 -t "${1-60s}" -S "$(only 0 1)" "$KEY")
	wait_until 'key_held_by "$token" 0 1'
}

# loses HOW: server 1 does.
loses() {
	case $1 in
	flush) rcli 1 FLUSHALL ;;
	both) rcli 1 DEL "$KEY" "$(record)" ;;
	KEY) rcli 1 DEL "$KEY" ;;
	evict)
		rcli 1 CONFIG SET maxmemory-policy volatile-ttl
		rcli 1 CONFIG SET maxmemory 1
		rcli 1 SET something else || : # it has no room: what has an expiry goes first
		wait_until '[[ $(rcli 1 EXISTS "$KEY") == 0 ]]'
		rcli 1 CONFIG SET maxmemory 0
		;;
	esac >/dev/null
}

@test "a server that has lost KEY while another has it gives no vote: FLUSHALL, DEL, eviction" {
	local how i
	for how in flush both KEY evict; do
		servers_start 3
		proxies_start
		held_barely
		loses "$how"
		# who knows the holder answers last
		proxy 0 'delay 105'
		proxy 1 'delay 100'
		proxy 2 'delay 100'
		for i in 1 2; do
			redlock acquire --quarantine 0 -n -t 50s --server-timeout 3s -S "$(proxy_urls)" "$KEY"
			expect 75 '' "redlock: $KEY: held by .*"
		done
		wait_until 'key_held_by "$token" 0 && key_free 1 2'
	done
}

@test "a server that knows the holder is heard, though it is slow and the others are near" {
	local ms
	servers_start 3
	proxies_start
	for ms in 15 35; do
		held_barely
		loses flush
		proxy 0 "delay $ms"
		redlock acquire --quarantine 0 -n -t 6s --server-timeout $((3 * SLOW))s -S "$(proxy_urls)" "$KEY"
		expect 75 '' "redlock: $KEY: held by .*"
		proxy 0 pass
		redlock release "$KEY" "$token"
		rcli 2 FLUSHALL
	done
}

@test "it is heard as well if KEY was lost longer ago than a short ttl, as its holder may have a long one" {
	servers_start 3
	proxies_start
	redlock acquire --quarantine 0 "$KEY" && redlock release "$KEY" "$output" # all know KEY
	wait_until 'record_has_age 2 1500'
	held_barely 1h
	loses flush
	redlock acquire --quarantine 0 -n -t 1s "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	wait_until 'record_has_age 1 1000'
	proxy 0 'delay 35'
	redlock acquire --quarantine 0 -n -t 1s --server-timeout $((3 * SLOW))s -S "$(proxy_urls)" "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
}

# record_has_age I MS: server I has had KEY's record for so long.
record_has_age() {
	(($(date +%s%3N) - $(rcli "$1" HGET "$(record)" began) >= $2))
}

@test "a record that began before the clock was set back is young, and gets older" {
	servers_start 3
	clocked server_reload 0 1
	turn 600
	redlock acquire --quarantine 0 "$KEY" && redlock release "$KEY" "$output"
	wait_until 'record_has_age 2 2000'
	turn 0
	redlock acquire --quarantine 0 -n -t 2s "$KEY"
	expect 0 '[0-9a-f]{32}' "redlock: $KEY: still waiting: .*it has known KEY for only .*"
}

@test "the same with every kind of lock, and with --poll" {
	local kind
	servers_start 3
	held_barely
	loses flush
	for kind in -x -s -r '-P 1' '--poll=50ms'; do
		# shellcheck disable=SC2086 # two words
		redlock acquire --quarantine 0 $kind -w 300ms -t 3s "$KEY"
		expect 75 '' "redlock: $KEY: held by .*"
	done
	wait_until 'key_held_by "$token" 0 && key_free 1 2'
}

@test "a holder that shares KEY keeps others out, too, if a server has lost it" {
	local kind
	servers_start 3
	for kind in -s '-P 1' -r; do
		rcli 0 FLUSHALL
		# shellcheck disable=SC2086 # two words
		token=$("$REDLOCK" acquire --quarantine 0 -t 60s -S "$(only 0 1)" $kind "$KEY")
		wait_until 'known_for 1100 0'
		loses flush
		redlock acquire --quarantine 0 -n -t 3s "$KEY"
		expect 75 '' "redlock: $KEY: held by .*"
	done
}

@test "a waiter in line gets no lock from servers that have lost it, and gets it from the holder" {
	servers_start 3
	held_barely 15s
	spawn a "$REDLOCK" run --quarantine 0 -v -t 3s -w 60s "$KEY" touch "$TMP/ran"
	wait_until '[[ $(rcli 0 ZCARD "$(record):queue") == 1 ]]'
	loses flush
	wait_until '[[ $(rcli 1 EXISTS "$KEY") == 1 && $(rcli 2 EXISTS "$KEY") == 1 ]]'
	wait_until '[[ $(<"$TMP/a.err") == *"$(server_url 1): granted, "*"no vote until"* ]]'
	wait_until '(($(grep -c "$(server_url 0): held by another" "$TMP/a.err") > 3))'
	[[ ! -e $TMP/ran ]]
	key_held_by "$token" 0
	redlock release "$KEY" "$token"
	finish a
	[[ $status == 0 && -e $TMP/ran ]]
}

# The record is there, but the lease is not: only the others know.
forgotten_by_three() {
	servers_start 5
	proxies_start
	redlock run --quarantine 0 -t 2s "$KEY" true
	expect 0
	wait_until 'known_for 2500 0 1 2 3 4'
	for i in 0 1 2; do rcli "$i" SAVE; done
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
	wait_until 'key_held_by "$token" 0 1 2 3 4'
	server_reload 0 1 2
	key_free 0 1 2
	wait_until 'up_for 2000 0 1 2'
}

@test "three of five servers restarted with an older dump: the holder's ttl keeps a shorter one out" {
	forgotten_by_three
	redlock acquire --quarantine 2s -n -t 2s "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock acquire --quarantine 2s -w 1s -t 2s "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock acquire --quarantine 2s --poll -w 1s -t 2s "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	wait_until 'key_held_by "$token" 3 4 && key_free 0 1 2'
}

@test "servers that were just started do not count before the others have spoken" {
	forgotten_by_three
	proxy 3 'delay 200'
	proxy 4 'delay 200'
	redlock acquire --quarantine 2s -n -t 2s --server-timeout 5s -S "$(proxy_urls)" "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	proxy 3 hold # nobody else answers in time
	proxy 4 hold
	redlock acquire --quarantine 2s -n -t 2s --server-timeout 300ms -S "$(proxy_urls)" "$KEY"
	expect 0 '[0-9a-f]{32}'
}

@test "servers that were just started are waited for to the end of a round, and then there is time to raise a fence" {
	local i
	servers_start 3
	redlock run --quarantine 1s -w $((20 * SLOW))s "$KEY" true # until they have votes
	expect 0 '' '.*'
	for i in 0 1; do rcli "$i" HSET "$(record)" began 1 fence $(($(fence_at "$i") + i * 3600000)); done
	server_stop 2
	redlock run --quarantine 1s -n "$KEY" echo ran
	expect 0 ran
}

@test "a shorter ttl gets in once the holder's longest lease must be over" {
	local start
	servers_start 5
	start=$NOW
	token=$("$REDLOCK" acquire --quarantine 0 -t 6s "$KEY")
	wait_until 'key_held_by "$token" 0 1 2 3 4'
	server_restart 0 1 2
	redlock acquire --quarantine 1s -w 40s -t 2s "$KEY"
	expect 0 '[0-9a-f]{32}' '.*'
	((NOW - start >= 6000))
}

@test "by default a server that has been up for less than a minute has no vote, however short the ttl" {
	servers_start 3
	wait_until 'up_for 2000 0 1 2'
	redlock acquire -n -t 1s "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*no vote until it has been up for 1m00s.*"
}

@test "a server that is rebooted at night does not cost -n its run, nor does a second one" {
	servers_start 3
	redlock acquire --quarantine 0 -n -t 3s "$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock release "$KEY" "$output"
	wait_until 'known_for 3500 0 1 2'
	server_restart 1
	redlock run --quarantine 0 -n -t 3s "$KEY" true
	expect 0
	server_restart 2 # while 1 has not known KEY for long
	redlock run --quarantine 0 -n -t 3s "$KEY" touch "$TMP/ran"
	expect 0 '' "(redlock: $KEY: still waiting: no quorum: .*others for longer.*)?"
	[[ -e $TMP/ran ]]
}

@test "-n waits for servers that have lost the record, if no others can make a quorum, and says so" {
	servers_start 3
	redlock run --quarantine 0 -n -t 3s "$KEY" true
	expect 0
	wait_until 'known_for 3500 0 1 2'
	rcli 1 FLUSHALL
	rcli 2 FLUSHALL
	redlock run --quarantine 0 -n -t 3s "$KEY" touch "$TMP/ran"
	expect 0 '' "redlock: $KEY: still waiting: no quorum: 2 of 3 .*others for longer.*"
	known_for 2900 1 2
	# and no longer
	redlock run --quarantine 0 -n -t 3s "$KEY" true
	expect 0
}

@test "a KEY that no server knows counts at once, with a minority stopped, too" {
	local start
	servers_start 3
	server_stop 1
	start=$NOW
	redlock run --quarantine 0 -n -t 60s --server-timeout 9s -k 1s "$KEY" true
	expect 0
	((NOW - start < 5000))
}

# new_key OPTION...: a KEY that no server knows is had, after $took ms, without the start of redlock.
# With -w another program has it first, for a moment.
new_key() {
	local key=$KEY-$((++keys)) i
	if [[ $1 == -w ]]; then
		for i in 0 2; do rcli "$i" SET "$key" another-program PX 50 >/dev/null; done
	fi
	redlock run --quarantine 0 "$@" -t 60s --server-timeout 9s -k 1s --status-fd 1 "$key" true
	expect 0 '\{.*\}'
	took=$(jq .waited_ms <<<"$output")
}

# Servers 1 and 2 have what is left of two attempts. After these somebody has had KEY on servers 0 and 1; 1 has forgotten
# that, and 0 is away.
@test "an owner gets a fence by the clock if its servers do not agree on the one that it had" {
	local after i
	servers_start 3
	for i in 1 2; do
		"$REDLOCK" acquire -r --token owner -t 60s --quarantine 0 -S "$(server_url "$i")" "$KEY" >/dev/null
		rcli "$i" HINCRBY "$(record)" fence -$((i * 5000))
	done
	server_kill 0
	after=$(($(date +%s%3N)))
	fence() { "$REDLOCK" acquire -r --token owner -n --quarantine 0 --format json "$KEY" | jq .fence; }
	i=$(fence)
	((i >= after))
	[[ $(rcli 1 HGET "$(record)" fence) == "$i" && $(rcli 2 HGET "$(record)" fence) == "$i" ]]
	[[ $(fence) == "$i" ]] # it keeps that one
}

@test "a server that has not heard of a release costs the others no vote: they know who it was" {
	local token
	servers_start 3
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
	wait_until 'key_held_by "$token" 0 1 2'
	redlock release -S "$(only 0 1)" "$KEY" "$token"
	[[ $status == 0 ]] && key_held_by "$token" 2
	redlock run -n --quarantine 0 "$KEY" echo in
	expect 0 in
}

@test "a server that was silent delays one run, or one waiter, and is not waited for again" {
	local options keys=0 took
	export XDG_RUNTIME_DIR=$TMP/memory
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	servers_start 3
	new_key -n # all have said which server they are
	server_stop 1
	for options in -n '-w 60s'; do
		# shellcheck disable=SC2086 # two words
		new_key $options
		((took >= 190))
		wait_until 'new_key $options && ((took < 190))' 60
		rm "$XDG_RUNTIME_DIR"/redlock/silent*
	done
}

@test "a waiter that is granted KEY at once waits for a slow server that knows the holder" {
	local i
	servers_start 3
	held_barely
	loses flush
	proxies_start
	for i in 1 2; do rcli "$i" SET "$KEY" another-program PX 40 >/dev/null; done
	proxy 0 'delay 40'
	redlock run --quarantine 0 -t 3s -w $((2 * SLOW))s -S "$(proxy_urls)" "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	[[ ! -e $TMP/ran ]]
}

@test "wait is told that KEY is free when a run with the ttl of its settings could take it" {
	servers_start 3
	redlock run --quarantine 0 -n -t 3s "$KEY" true
	expect 0
	wait_until 'known_for 3500 0 1 2'
	rcli 1 FLUSHALL
	server_kill 2
	REDLOCK_TTL=3s redlock wait --quarantine 0 --server-timeout 9s "$KEY"
	expect 0 '' "redlock: $KEY: still waiting: no quorum: .*no vote until it has known KEY for 3s.*"
	# with a longer one not sooner than that, either
	servers_start 3
	printf 'ttl = 2m\n' >"$TMP/conf"
	redlock wait --config "$TMP/conf" -w 0 "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*no vote until it has been up for 2m00s.*"
	printf 'ttl = 2m\nmax-ttl = 1m\n' >"$TMP/conf"
	redlock wait --config "$TMP/conf" -w 0 "$KEY"
	expect 78 '' "redlock: a lease \\(-t\\) of 2m00s is longer than max-ttl, which is 1m00s .*"
}

@test "max-ttl is the quarantine, and no ttl is longer: in a file and in the environment" {
	servers_start 3
	printf 'max-ttl = 2h\n' >"$TMP/conf"
	redlock acquire --config "$TMP/conf" -n "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*no vote until it has been up for 2h00m.*"
	redlock acquire --config "$TMP/conf" -t 3h -n "$KEY"
	expect 64 '' "redlock: a lease \\(-t\\) of 3h00m is longer than max-ttl, which is 2h00m \\(max-ttl from .*/conf:1\\)"
	REDLOCK_MAX_TTL=1h redlock acquire --config "$TMP/conf" -t 90m -n "$KEY"
	expect 64 '' "redlock: a lease \\(-t\\) of 1h30m is longer than max-ttl, which is 1h00m \\(max-ttl from REDLOCK_MAX_TTL\\)"
	# -t was not typed
	printf 'max-ttl = 10s\nttl = 20s\n' >"$TMP/conf"
	redlock acquire --config "$TMP/conf" -n "$KEY"
	expect 78 '' 'redlock: a lease \(-t\) of 20s is longer than max-ttl, which is 10s \(ttl from .*/conf:2, max-ttl from .*/conf:1\)'
	REDLOCK_MAX_TTL=100ms redlock run -n "$KEY" true
	expect 78 '' 'redlock: a lease \(-t\) of 100 ms is too short to stop its holder in time: .*, and max-ttl is 100ms \(max-ttl from REDLOCK_MAX_TTL\)'
	REDLOCK_MAX_TTL=soon redlock acquire -n "$KEY"
	expect 78 '' "redlock: .*REDLOCK_MAX_TTL 'soon' is not a DURATION.*"
	REDLOCK_MAX_TTL=5s redlock acquire --quarantine 0 --format json -n "$KEY"
	[[ $status == 0 && $output =~ \"valid_ms\":([0-9]+) ]]
	((BASH_REMATCH[1] <= 5000))
	redlock acquire --max-ttl 1h "$KEY"
	expect 64 '' ".*--max-ttl.*"
}
