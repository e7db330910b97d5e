#!/usr/bin/env bats
# redlock run --unreachable run: for jobs that may run twice rather than never.

# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

# two_stop: three servers of the test's own, which have forgotten nothing; two are stopped.
two_stop() {
	export REDLOCK_QUARANTINE=0
	servers_start 3
	server_stop 1 2
}

SAYS='COMMAND runs without the lock'

# One server, and three, that are nowhere.
NOBODY=("$NOWHERE" "${NOWHERE}0,${NOWHERE}1,${NOWHERE}2")

@test "where no server is reached, COMMAND runs without the lock, and one line says why" {
	local servers without
	for servers in "${NOBODY[@]}"; do
		redlock run --unreachable run -S "$servers" "$KEY" sh -c 'echo ran; exit 7'
		expect 7 ran "redlock: $KEY: .*: $SAYS"
		redlock run -S "$servers" "$KEY" echo ran
		expect 69 '' "redlock: $KEY: .*[^k]"
		without=$stderr
		redlock run --unreachable fail -S "$servers" "$KEY" echo ran
		[[ $status == 69 && ! $output && $stderr == "$without" ]]
		REDLOCK_UNREACHABLE=run redlock run -n -S "$servers" -c 'echo ran' "$KEY"
		expect 0 ran "redlock: $KEY: .*: $SAYS"
	done
	refuses 64 "--unreachable 'ran' is not fail or run" run --unreachable ran "$KEY" true
}

@test "two of three that do not answer are too few, and what the third granted is given back" {
	two_stop
	redlock run -n --unreachable run --server-timeout 300ms "$KEY" sh -c 'echo ran'
	expect 0 ran "redlock: $KEY: .*: $SAYS"
	key_free 0
	server_continue 1 2
	wait_until '"$REDLOCK" run -n "$KEY" true'
}

@test "it finds REDLOCK_KEY and REDLOCK_UNLOCKED in its environment, and no token or fence of others" {
	local servers
	for servers in "${NOBODY[@]}"; do
		REDLOCK_TOKEN=t REDLOCK_FENCE=1 REDLOCK_FENCES=x=1 REDLOCK_VALID_UNTIL=1 \
			redlock run --unreachable run -S "$servers" "$KEY" sh -c 'env | grep ^REDLOCK_ | grep -v _SERVERS= | sort'
		expect 0 "REDLOCK_HELD==[0-9a-f]{32}
REDLOCK_KEY=$KEY
REDLOCK_UNLOCKED=1" ".*: $SAYS"
	done
	# one that has its lock is not told so
	redlock run --unreachable run -S "$NOWHERE" "$KEY" "$REDLOCK" run "$KEY" sh -c 'echo "${REDLOCK_UNLOCKED-} $REDLOCK_FENCE"'
	expect 0 ' [0-9]+' ".*: $SAYS"
}

@test "a script that runs without its lock and takes another has that one, and REDLOCK_UNLOCKED is not set meanwhile" {
	PATH=${REDLOCK%/*}:$PATH redlock run --unreachable run -S "$NOWHERE" "$KEY" sh -c '
		show() { sh -c "echo \${REDLOCK_KEY##*-} \${REDLOCK_UNLOCKED-taken}"; }
		. "$0/scripts/redlock.sh"
		redlock_with "$1-with" -- show
		show
		eval "$(redlock acquire --format shell "$1-eval")"
		show' "$ROOT" "$KEY"
	expect 0 "with taken
${KEY##*-} 1
eval taken" ".*: $SAYS"
}

@test "below a run that has KEY, what runs without it does not hide that: -r enters again, and others do not wait for themselves" {
	outage=("$REDLOCK" run --unreachable run -S "$NOWHERE")
	redlock run -r "$KEY" "${outage[@]}" -r "$KEY" "$REDLOCK" run -r -w 15s "$KEY" echo inner
	expect 0 inner "redlock: $KEY: .*: $SAYS"
	redlock run "$KEY" "${outage[@]}" "$KEY" "$REDLOCK" run -w 15s "$KEY" echo inner
	expect 75 '' "redlock: $KEY: .*: $SAYS
redlock: $KEY: held by an ancestor of this process, .*"
}

@test "a KEY that is busy, is no lock, or is refused is not one that cannot be reached" {
	local i
	hold
	redlock run -n --unreachable run "$KEY" echo ran
	expect 75 '' '.*'
	unhold
	rcli 0 LPUSH "$KEY-list" x
	redlock run -n --unreachable run "$KEY-list" echo ran
	expect 65 '' '.*'
	redlock run -n --unreachable run -S "$NOWHERE" --max-hold 1s --min-hold 2s "$KEY" echo ran
	expect 64 '' '.*'
	redlock run -n --unreachable run -S "$NOWHERE,$NOWHERE" "$KEY" echo ran
	expect 78 '' '.*'
	for i in 1 3; do
		servers_start "$i"
		redlock run -n --unreachable run --config /nonexistent "$KEY" echo ran
		expect 78 '' '.*'
		for ((i--; i >= 0; i--)); do rcli "$i" CONFIG SET requirepass hunter2; done
		redlock run -n --unreachable run "$KEY" echo ran
		expect 77 '' '.*'
	done
}

@test "-n does not wait for the longest lease, where too few votes count as yet, but for ten rounds" {
	export REDLOCK_QUARANTINE=0
	servers_start 3
	server_stop 1
	redlock run -n "$KEY" true # the two others know KEY
	server_continue 1
	wait_until '(($(server_ms 2) - $(rcli 2 HGET "$(record)" began) > 1500))'
	redlock acquire -S "$(server_url 1)" "$KEY" # and then the third
	redlock release -S "$(server_url 1)" "$KEY" "$output"
	server_stop 2
	redlock run -n -t 1h --server-timeout 300ms --unreachable run "$KEY" echo ran
	expect 0 ran "redlock: $KEY: still waiting: .*: it has known KEY for only .*
redlock: $KEY: .*: it has known KEY for only .*: $SAYS"
	redlock run -n -t 4s --server-timeout 300ms --unreachable run "$KEY" sh -c 'echo "$REDLOCK_UNLOCKED"'
	[[ $status == 0 && ! $output ]]
}

@test "-w says how long servers are waited for first" {
	two_stop
	spawn run "$REDLOCK" run --unreachable run --server-timeout 300ms -w 60s "$KEY" sh -c 'echo "${REDLOCK_UNLOCKED-locked}"'
	wait_until 'grep -q "still waiting" "$TMP/run.err"'
	server_continue 1 2
	finish run
	[[ $status == 0 && $(<"$TMP/run.out") == locked ]]
	redlock run --unreachable run -S "$NOWHERE" -w 300ms "$KEY" sh -c 'echo "${REDLOCK_UNLOCKED-locked}"'
	expect 0 1 "(.*still waiting.*
)?redlock: $KEY: .*: $SAYS"
}

@test "a signal that comes before COMMAND ends redlock, which does not say that COMMAND runs" {
	died env --block-signal=TERM sh -c 'kill -TERM $$; exec "$0" run -n --unreachable run -S "$1" "$2" echo ran' "$REDLOCK" "$NOWHERE" "$KEY"
	[[ $death == 'signal 15' && ! -s $TMP/died.out ]]
	[[ $(<"$TMP/died.err") != *"$SAYS"* ]]
}

# held_back NAME [WHY]: COMMAND was not run beside the holder that servers had named: 75, and a line says both.
held_back() {
	finish "$1"
	stderr=$(grep 'when last heard' <<<"$stderr")
	expect 75 '' "redlock: $KEY: when last heard: held by .*; now: .*${2-}"
	[[ ! -e $TMP/ran ]]
}

# seen_busy NAME OPTION...: a run with these that is refused KEY, has time, and would run without the lock.
seen_busy() {
	spawn "$1" "$REDLOCK" run -v -w $((6 * SLOW))s --unreachable run --server-timeout 300ms "${@:2}" "$KEY" touch "$TMP/ran"
	wait_until "grep -q ': held by another' '$TMP/$1.err'"
}

# what_was_busy N: N servers that die once KEY was seen to be busy.
what_was_busy() {
	local name names=(queue poll tries shared permits reentrant also)
	servers_start "$1"
	take
	seen_busy queue --status-fd 9 9>"$TMP/status"
	seen_busy poll --poll
	seen_busy shared -s
	seen_busy permits -P 3
	seen_busy reentrant -r
	seen_busy also --also "$KEY-2"
	seen_busy quiet -E 0
	seen_busy tries --poll="${SLOW}s" --tries 5
	wait_until 'queued 6'
	eval "server_kill {0..$(($1 - 1))}"
	for name in "${names[@]}"; do held_back "$name"; done
	[[ $(json .outcome "$TMP/status") == '"busy"' ]]
	finish quiet
	[[ $status == 0 && ! -e $TMP/ran && $stderr != *'when last heard'* ]]
}

@test "once KEY was seen to be busy, an outage until the wait is over is no reason to run beside its holder: one server" {
	what_was_busy 1
}

@test "once KEY was seen to be busy, an outage until the wait is over is no reason to run beside its holder: three servers" {
	what_was_busy 3
}

@test "nor is a server without memory for a place in its queue, or that has lost the holder and has no vote yet" {
	local count i key=$KEY
	for count in 1 3; do
		servers_start "$count"
		KEY=$key-lost
		take
		seen_busy "lost$count" --quarantine 1000s
		wait_until 'queued 1'
		eval "server_restart {0..$((count - 1))}"
		wait_until '! key_free 0' # its own, and no vote
		servers_start "$count"
		KEY=$key-full
		take
		for ((i = 0; i < count; i++)); do rcli "$i" CONFIG SET maxmemory 1; done
		seen_busy "full$count"
	done
	for count in 1 3; do
		KEY=$key-lost held_back "lost$count" 'up for only .*'
		KEY=$key-full held_back "full$count" memory.*
	done
}

# native: a title, which valgrind keeps
# bats test_tags=native
@test "ps does not show it as one that waits" {
	local name key=$KEY also=()
	servers_start 1 # which have no vote yet when their holders are gone
	for name in one both; do
		KEY=$key-$name
		take
		spawn $name "$REDLOCK" run --unreachable run --quarantine 1000s -w $((6 * SLOW))s "${also[@]}" "$KEY" sh -c ': >"$0"; exec sleep 300' "$TMP/$name.on"
		wait_until 'queued 1 && grep -q "waiting" "/proc/$(pid $name)/cmdline"'
		give_back
		also=(--also "$key-more")
	done
	for name in one both; do
		wait_until '[[ -e $TMP/$name.on ]]'
		[[ $(tr -d '\0' <"/proc/$(pid $name)/cmdline") == "redlock: $key-$name: without the lock" ]]
		kill "$(pid $name)"
		finish $name
		[[ $status == 143 ]]
	done
}

@test "--max-hold stops it, with what has left its session, and signals reach it" {
	redlock run --unreachable run -S "$NOWHERE" -k 1s --max-hold 500ms "$KEY" sh -c 'setsid sleep 300 & echo $! >"$0"; exec sleep 300' "$TMP/pid"
	expect 124 '' ".*: $SAYS
redlock: $KEY: stopped after --max-hold 500ms"
	wait_until '! is_alive "$(<"$TMP/pid")"'
	spawn run "$REDLOCK" run --unreachable run -S "$NOWHERE" "$KEY" sh -c 'trap "echo told; exit 9" USR1; : >"$0"; while :; do sleep 0.05; done' "$TMP/there"
	wait_until '[[ -e $TMP/there ]]'
	kill -USR1 "$(pid run)"
	finish run
	[[ $status == 9 && $(<"$TMP/run.out") == told ]]
}

@test "--status-fd says unlocked, and how COMMAND ended" {
	local servers
	for servers in "${NOBODY[@]}"; do
		redlock run --unreachable run -S "$servers" --status-fd 9 "$KEY" sh -c 'exit 3' 9>"$TMP/status"
		[[ $status == 3 ]]
		[[ $(json '[.outcome, .child_exit, .held_ms, .token, .fence]' "$TMP/status") == '["unlocked",3,0,null,null]' ]]
	done
	redlock run --unreachable run -S "$NOWHERE" --status-fd 9 --also "$KEY-2" "$KEY" redlock-no-such-command 9>"$TMP/status"
	[[ $status == 127 ]]
	[[ $(json '[.outcome, .child_exit, .fences]' "$TMP/status") == '["not-started",null,null]' ]]
}
