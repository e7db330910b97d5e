#!/usr/bin/env bats
# How long KEY is held: --min-hold and --max-hold; and what ps(1) shows of it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

# left_at_least MS, left_at_most MS: of KEY's life on server 0.
left_at_least() {
	local left
	left=$(rcli 0 PTTL "$KEY")
	((left >= $1)) || { echo "$left ms left" >&2 && false; }
}

left_at_most() {
	local left
	left=$(rcli 0 PTTL "$KEY")
	((left <= $1)) || { echo "$left ms left" >&2 && false; }
}

# status_says FILTER VALUE: in the line of --status-fd.
status_says() {
	[[ $(json "$1" "$TMP/status") == "$2" ]] || { cat "$TMP/status" && false; } >&2
}

# ---------------------------------------------------------------- --min-hold

@test "--min-hold keeps KEY that long when COMMAND ends sooner; redlock does not wait for it" {
	local code
	for code in 0 3; do
		KEY=$KEY-$code
		redlock run -t 30s --min-hold 300s "$KEY" sh -c "exit $code"
		expect "$code"
		left_at_least 240000
		left_at_most 300000
		redlock run -n -E 9 "$KEY" touch "$TMP/ran"
		expect 9 '' "redlock: $KEY: held by .* pid [0-9]+ 'sh -c exit $code' for [0-9.]+m?s, (4m[0-9]+s|5m00s) left"
	done
	[[ ! -e $TMP/ran ]]
}

@test "--min-hold: the time that is left is shown, however little it is, and nobody runs on if KEY is taken away" {
	redlock run -t 30s --min-hold 28s "$KEY" true
	expect 0
	redlock status "$KEY"
	[[ $output =~ ' for '[0-9.]+m?s', '2[0-9.]+s' left  '\'true\' ]]
	redlock break -y --now "$KEY"
	expect 0 "$KEY: evicted .* 'true', held for [0-9.]+m?s"
}

@test "--min-hold counts from when KEY was granted, and ends by itself" {
	redlock run --min-hold 4s "$KEY" sleep 0.5
	expect 0
	left_at_least 1
	left_at_most 3500
	redlock run "$KEY" true
	expect 0
	key_free 0
}

@test "--min-hold keeps nothing where COMMAND has run longer" {
	redlock run --min-hold 20ms "$KEY" sleep 0.05
	expect 0
	key_free 0
	redlock run --min-hold 0 "$KEY" true
	expect 0
	key_free 0
}

@test "--min-hold keeps KEY on a quorum of servers, and the next fence is larger" {
	servers_start 3
	redlock run --quarantine 0 --min-hold 300s "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]+'
	local i fence=$output
	for i in 0 1 2; do (($(rcli "$i" PTTL "$KEY") > 240000)); done
	redlock run --quarantine 0 -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	for i in 0 1 2; do rcli "$i" DEL "$KEY"; done
	redlock run --quarantine 0 "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]+'
	((output > fence))
}

@test "--min-hold keeps KEY when a signal has ended COMMAND" {
	spawn holder "$REDLOCK" run --min-hold 300s "$KEY" sh -c 'echo on; exec sleep 300'
	wait_until '[[ -s $TMP/holder.out && $(child_named "$(pid holder)" sleep) ]]'
	kill -TERM "$(pid holder)"
	finish holder
	expect 143 on
	left_at_least 240000
}

@test "--min-hold keeps nothing where COMMAND was not started" {
	redlock run --min-hold 300s "$KEY" redlock-no-such-command
	[[ $status == 127 ]]
	key_free 0
	redlock run --min-hold 300s "$KEY" "$TMP"
	[[ $status == 126 ]]
	key_free 0
}

@test "--min-hold keeps nothing where a signal has ended the waiting" {
	hold
	spawn waiter "$REDLOCK" run -v --min-hold 300s "$KEY" touch "$TMP/ran"
	wait_until 'is_waiting waiter'
	kill -TERM "$(pid waiter)"
	finish waiter
	[[ $status == 143 && ! -e $TMP/ran ]]
	unhold
	key_free 0
}

@test "--min-hold keeps nothing of a lost lock, not even on the servers that still have it" {
	servers_start 3
	redlock run --quarantine 0 -t 3s -k 200ms --server-timeout 500ms --min-hold 300s "$KEY" \
		sh -c "redis-cli -s $SERVERS/0/redis.sock SET $KEY thief; redis-cli -s $SERVERS/1/redis.sock SET $KEY thief; exec sleep 60"
	[[ $status == 76 ]]
	KEY=$KEY key_free 2
	[[ $(rcli 0 GET "$KEY") == thief && $(rcli 0 PTTL "$KEY") == -1 ]]
	# and where nobody has noticed before COMMAND ended
	KEY=$KEY-again
	redlock run --quarantine 0 --min-hold 300s "$KEY" \
		sh -c "redis-cli -s $SERVERS/0/redis.sock SET $KEY thief; redis-cli -s $SERVERS/1/redis.sock SET $KEY thief"
	expect 0 $'OK\nOK' "redlock: $KEY: the lock was gone before COMMAND ended: .*"
	key_free 2
}

# nested_min_hold OPTION: a run in another run of the same owner, which ends sooner.
nested_min_hold() {
	local outer how
	export REDLOCK_QUARANTINE=0
	# shellcheck disable=SC2016 # the inner shell's
	redlock run -v -r "$KEY" sh -c '"$REDLOCK" run -v -r --min-hold 300s "$1" true 2>"$2"' - "$KEY" "$TMP/inner.err"
	[[ $status == 0 && $stderr =~ "$KEY: kept for "(5m00s|4m5[0-9]s)" more" && $(<"$TMP/inner.err") == *"$KEY: released"* ]]
	left_at_least 240000
	redlock run -n -r "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	# the longer wish counts
	# shellcheck disable=SC2016 # the inner shell's
	redlock run -r --min-hold 200s "$KEY-2" sh -c '"$REDLOCK" run -r --min-hold 300s "$1" true
		"$REDLOCK" run -r --min-hold 100s "$1" true' - "$KEY-2"
	KEY=$KEY-2 left_at_least 240000
	# what is given back by hand is free, whether somebody keeps it or not; the end of what is kept is none
	for how in none keeper ends; do
		[[ $how == none ]] || spawn kept sleep 300
		outer=$("$REDLOCK" acquire -r $([[ $how == none ]] || echo --pid "$(pid kept)") "$KEY-$how")
		REDLOCK_HELD="$KEY-$how=$outer" redlock run -r --min-hold 300s "$KEY-$how" true
		if [[ $how == ends ]]; then
			kill "$(pid kept)"
			finish kept
			KEY=$KEY-$how wait_until 'left_at_least 240000 2>/dev/null'
		else
			redlock release "$KEY-$how" "$outer"
			expect 0
			redlock run -n "$KEY-$how" true
			expect 0
		fi
	done
}

@test "--min-hold of a run in another one of its owner: the outer one's end keeps KEY" {
	nested_min_hold
}

@test "--min-hold of a run in another one of its owner, on three servers" {
	servers_start 3
	nested_min_hold
}

@test "--min-hold of a run in another one of its owner is kept though the server has no memory left" {
	servers_start 1
	redlock run -r "$KEY" sh -c '"$REDLOCK" run -r --min-hold 300s "$1" "$TOOLS/ask" "$2" CONFIG SET maxmemory 1
		"$TOOLS/ask" "$2" CONFIG SET maxmemory 0' - "$KEY" "$SERVERS/0/redis.sock"
	[[ $status == 0 ]]
	left_at_least 240000
}

@test "--min-hold of a run in another one of its owner keeps KEY no longer if the server's clock is set back" {
	local clock
	set_new
	clock=$SET/clock
	perl -e 'print pack "q3", 0, 0, 0' >"$clock"
	CLOCK=$clock LD_PRELOAD=$TOOLS/clock.so servers_start 1
	spawn outer "$REDLOCK" run -r --quarantine 0 "$KEY" sh -c '"$REDLOCK" run -r --min-hold 300s "$1" true
		touch "$2"; until [ -e "$3" ]; do sleep 0.1; done' - "$KEY" "$TMP/kept" "$TMP/end"
	wait_until '[[ -e $TMP/kept ]]'
	perl -e 'print pack "q3", -3_600_000_000_000, 0, 0' 1<>"$clock"
	touch "$TMP/end"
	finish outer
	expect 0
	left_at_least 240000
	left_at_most 300000
}

@test "--min-hold: -v says how long KEY is kept, and an error that it is not" {
	redlock run -v --min-hold 300s "$KEY" true
	[[ $status == 0 && $stderr =~ "$KEY: kept for "(5m00s|4m5[0-9]s)" more" && $stderr != *released* ]]
	servers_start 1
	redlock run --min-hold 300s "$KEY" sh -c "kill -KILL $(server_pid 0); exit 3"
	expect 3 '' "redlock: $KEY: not held for the last (5m00s|4m5[0-9]s) of --min-hold: .*$SERVERS/0/redis.sock.*"
}

# The hosts of a cron line: host I (0, 1, 2), whose clock is I thirds of a PERIOD late, at each of its
# ticks. `late` says by how many ms at most a run has begun or ended behind its tick.
PERIOD=6000

host() {
	local i=$1 began=$2 n tick
	for n in 0 1 2; do
		tick=$((began + n * PERIOD + i * PERIOD / 3))
		wait_until "((NOW >= $tick))" 60
		"$REDLOCK" run -n -E 0 --min-hold 5s "$KEY" sh -c "echo $n >>$TMP/ran" || echo "status $?"
		echo "$((NOW - tick))" >>"$TMP/late"
	done
}

# native: it is about starts that are on time
# bats test_tags=native
@test "run -n -E 0 --min-hold: one run a period on three hosts whose clocks are a third of it apart" {
	local attempt began i
	for attempt in 1 2 3; do
		rcli 0 DEL "$KEY"
		rm -f "$TMP/ran" "$TMP/late"
		began=$((NOW + 300))
		for i in 0 1 2; do spawn "host$i" host "$i" "$began"; done
		for i in 0 1 2; do
			finish "host$i" 60
			expect 0
		done
		# a machine so slow that the clocks were further apart tells nothing
		(($(sort -n "$TMP/late" | tail -n 1) >= 900)) || break
	done
	echo "attempt $attempt: ran $(tr '\n' ' ' <"$TMP/ran")late $(tr '\n' ' ' <"$TMP/late")" >&2
	[[ $(wc -l <"$TMP/late") == 9 && $(<"$TMP/ran") == $'0\n1\n2' ]]
}

# ---------------------------------------------------------------- --max-hold

@test "--max-hold stops COMMAND with 124, whatever it returns, and frees KEY" {
	redlock run --max-hold 200ms --status-fd 9 "$KEY" sleep 300 9>"$TMP/status"
	expect 124 '' "redlock: $KEY: stopped after --max-hold 200ms"
	status_says '[.outcome, .child_exit, .child_signal, (.held_ms >= 200), .token != null]' '["overdue",null,15,true,true]'
	key_free 0
	redlock run -q --max-hold 1.5 --status-fd 9 "$KEY" bash -c "exec 2>/dev/null; trap 'exit 0' TERM; while :; do sleep 0.02; done" 9>"$TMP/status"
	expect 124 '' "redlock: $KEY: stopped after --max-hold 1.5s"
	status_says '[.outcome, .child_exit, .child_signal]' '["overdue",0,null]'
	key_free 0
}

@test "a COMMAND that ends by itself within --max-hold is not touched" {
	redlock run --max-hold 300s --status-fd 9 "$KEY" sh -c 'exit 5' 9>"$TMP/status"
	expect 5
	status_says '[.outcome, .child_exit]' '["done",5]'
	key_free 0
	# nor is what it leaves behind
	redlock run --max-hold 300ms "$KEY" sh -c 'sleep 300 </dev/null >/dev/null 2>&1 3>&- 4>&- & echo $!'
	expect 0 '[0-9]+'
	wait_until '[[ $(state "$output") == S ]]' # it may have just begun
	kill "$output"
}

@test "a COMMAND that has exited while redlock was stopped past --max-hold is not 124" {
	spawn holder "$REDLOCK" run --max-hold 4s -t 60s "$KEY" sh -c "until [ -e $TMP/stop ]; do sleep 0.02; done; exit 3"
	wait_until '[[ $(child_named "$(pid holder)" sh) ]]'
	local held
	held=$NOW
	stop_process "$(pid holder)"
	touch "$TMP/stop"
	wait_until "is_over $(child_named "$(pid holder)" sh)"
	wait_until "((NOW > $held + 4100))"
	kill -CONT "$(pid holder)"
	finish holder
	expect 3
	key_free 0
}

@test "--max-hold: who ignores TERM is killed --kill-after later, KEY held until then" {
	mkdir "$TMP/stamps"
	spawn holder "$REDLOCK" run --max-hold 1500ms -k 3s -t 12s --status-fd 1 "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until '[[ $(<"$TMP/holder.err") == *max-hold* ]]'
	# told at SIGTERM, while all of them run
	is_running holder
	[[ $(rcli 0 EXISTS "$KEY") == 1 ]]
	finish holder
	[[ $status == 124 && $output == '{"outcome":"overdue","child_exit":null,"child_signal":9,'* ]]
	(($(jq .held_ms <<<"$output") >= 4500))
	is_still "$TMP/stamps"
	[[ $(beats "$TMP/stamps" | wc -l) == 3 ]]
	key_free 0
}

@test "--max-hold: all of COMMAND's group is gone before KEY is free, also what outlives COMMAND" {
	mkdir "$TMP/stamps"
	# COMMAND ends of TERM at once, its children take none
	spawn holder "$REDLOCK" run --max-hold 1500ms -k 400ms -t 12s "$KEY" sh -c '"$0" -t -c 1 "$1"; exit' "$STAMP" "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps" 2'
	spawn next "$REDLOCK" run -w 60s "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	finish holder
	expect 124 '' "redlock: $KEY: stopped after --max-hold 1.5s"
	finish next
	expect 0
	assert_exclusive "$TMP/stamps" 2
}

# native: valgrind has a library of its own to preload
# bats test_tags=native
@test "--max-hold: what COMMAND starts while it is first looked for is gone before KEY is free, though COMMAND ends at SIGTERM" {
	local failing
	failing 0:closedir:1:late # after the names of all processes have been read
	mkdir "$TMP/stamps"
	spawn holder "${failing[@]}" "$REDLOCK" run --max-hold 1500ms -t 12s "$KEY" bash -c \
		'for ((;;)); do setsid "$STAMP" -s "$0" & sleep 0.03; done' "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	spawn next "$REDLOCK" run -w 60s "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	finish holder
	expect 124 '' "redlock: $KEY: stopped after --max-hold 1.5s"
	finish next
	expect 0
	assert_exclusive "$TMP/stamps" 2
}

@test "--max-hold longer than the lease: it is renewed until then" {
	redlock run -t 3s --max-hold 4s --status-fd 9 "$KEY" sleep 300 9>"$TMP/status"
	expect 124 '' "redlock: $KEY: stopped after --max-hold 4s"
	status_says '[.outcome, .renewals > 0]' '["overdue",true]'
	key_free 0
}

@test "--max-hold stops a COMMAND that is stopped" {
	spawn holder "$REDLOCK" run --max-hold 1s -t 60s -k 10s "$KEY" sh -c 'kill -STOP $$'
	finish holder 10
	expect 124 '' "redlock: $KEY: stopped after --max-hold 1s"
	key_free 0
}

@test "--max-hold: a nested run passes the TERM on, and both keys are free" {
	local most=1.5s
	((SLOW == 1)) || most=8s
	redlock run --max-hold "$most" -t 60s -k 10s "$KEY" "$REDLOCK" run "$KEY-inner" \
		bash -c "exec 2>/dev/null; trap 'echo tidied; exit 4' TERM; while :; do sleep 0.02; done"
	expect 124 tidied "redlock: $KEY: stopped after --max-hold $most"
	key_free 0
	KEY=$KEY-inner key_free 0
}

@test "--max-hold: a nested run's COMMAND that takes no TERM is gone as well" {
	mkdir "$TMP/stamps"
	local most=1.5s
	((SLOW == 1)) || most=8s
	redlock run --max-hold "$most" -k 300ms -t 6s "$KEY" "$REDLOCK" run "$KEY-inner" "$STAMP" -t -c 1 "$TMP/stamps"
	expect 124 '' "redlock: $KEY: stopped after --max-hold $most"
	stamped "$TMP/stamps" 2
	is_still "$TMP/stamps"
	key_free 0
}

@test "--max-hold in a terminal's foreground: COMMAND and its children, not redlock nor the pipeline" {
	mkdir "$TMP/stamps"
	cat >"$TMP/scene" <<-SCENE
		set -m
		$REDLOCK run --max-hold 2s -k 300ms -t 6s $KEY $STAMP -t -c 2 $TMP/stamps |
			sh -c 'trap "echo hit >>$TMP/hit" TERM CONT; cat; until [ -e $TMP/stop ]; do sleep 0.02; done; echo whole'
		echo "statuses: \${PIPESTATUS[*]}"
	SCENE
	in_terminal session "bash $TMP/scene"
	wait_until '[[ $(<"$TMP/session.out") == *max-hold* ]]'
	wait_until 'key_free 0'
	is_still "$TMP/stamps"
	[[ $(beats "$TMP/stamps" | wc -l) == 3 ]]
	touch "$TMP/stop"
	finish session
	[[ $output == *"stopped after --max-hold 2s"*whole*"statuses: 124 0"* ]]
	[[ ! -e $TMP/hit ]]
}

@test "a lock that was lost before --max-hold is 76; one lost while COMMAND is being stopped is 124" {
	redlock run -t 3s -k 200ms --server-timeout 500ms --max-hold 30s "$KEY" \
		sh -c "redis-cli -s $SERVERS/0/redis.sock SET $KEY thief XX; exec sleep 60"
	expect 76 OK "redlock: $KEY: lock lost: .*"
	rcli 0 DEL "$KEY"
	spawn holder "$REDLOCK" run -t 6s -k 4s --server-timeout 500ms --max-hold 1500ms --status-fd 1 "$KEY" \
		bash -c "trap '' TERM; while :; do sleep 0.02; done"
	wait_until '[[ $(<"$TMP/holder.err") == *max-hold* ]]'
	rcli 0 SET "$KEY" thief XX
	finish holder
	expect 124 '\{"outcome":"overdue","child_exit":null,"child_signal":9,.*' "redlock: $KEY: stopped after --max-hold 1.5s
redlock: $KEY: the lock was gone before COMMAND ended: .*"
}

@test "--max-hold ends a COMMAND that goes on without the lock" {
	redlock run -t 3s --on-lost warn --max-hold 4s "$KEY" \
		sh -c "redis-cli -s $SERVERS/0/redis.sock SET $KEY thief XX; exec sleep 60"
	expect 124 OK "redlock: $KEY: lock lost: .*: COMMAND runs on without it
redlock: $KEY: stopped after --max-hold 4s"
}

@test "a signal while COMMAND is being stopped goes to it, and it stays 124" {
	spawn holder "$REDLOCK" run -t 60s -k 30s --max-hold 2s "$KEY" \
		bash -c "exec 2>/dev/null; trap '' TERM; trap 'exit 6' USR1; while :; do sleep 0.02; done"
	wait_until '[[ $(<"$TMP/holder.err") == *max-hold* ]]'
	kill -USR1 "$(pid holder)"
	finish holder 10
	[[ $status == 124 ]]
	key_free 0
}

@test "--min-hold and --max-hold together: never kept past --min-hold" {
	redlock run --min-hold 1s --max-hold 1s "$KEY" sleep 300
	expect 124 '' "redlock: $KEY: stopped after --max-hold 1s"
	key_free 0
	redlock run --min-hold 200s --max-hold 300s "$KEY" true
	expect 0
	left_at_least 140000
}

# ---------------------------------------------------------------- the process title

# title NAME: what ps shows of a spawned process.
title() {
	ps -o args= -p "$(pid "$1")"
}

CLOCK='[0-2][0-9]:[0-5][0-9]:[0-5][0-9]'

# titled NAME PATTERN: its title is wholly like that.
titled() {
	[[ $(title "$1") =~ ^$2$ ]]
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "ps shows how long the lease is good, once it was renewed" {
	# shellcheck disable=SC2016 # the inner shell's
	LC_ALL=C spawn holder "$REDLOCK" run -t 6s "$KEY" sh -c 'ps -o args= -p $PPID >"$0"; exec sleep 300' "$TMP/before"
	wait_until '[[ -s $TMP/before ]]'
	[[ $(<"$TMP/before") == "$REDLOCK run -t 6s $KEY sh -c "* ]]
	wait_until 'titled holder "redlock: $KEY: held, renewed $CLOCK, lease until $CLOCK"'
	local from until before
	before=$(title holder)
	read -r from until < <(sed -E 's/.*renewed (.*), lease until (.*)/\1 \2/' <<<"$before")
	# midnight may lie between them
	[[ $((($(date -d "$until" +%s) - $(date -d "$from" +%s) + 86400) % 86400)) == 6 ]]
	# and again
	wait_until '[[ $(title holder) != '"'$before'"' ]]'
	titled holder "redlock: $KEY: held, renewed $CLOCK, lease until $CLOCK"
	kill -TERM "$(pid holder)"
	finish holder
	expect 143
	key_free 0
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "hostile bytes in KEY are made visible in the title" {
	local key=$'a\n\e[31m\x7f\xff z'
	LC_ALL=C spawn holder "$REDLOCK" run -t 2s "$key" sleep 300
	wait_until 'titled holder "redlock: $(literal "a\\n\\e[31m\\x7f\\xff z"): held, .*"'
	kill -TERM "$(pid holder)"
	finish holder
	expect 143
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "a password never shows in the title, and hiding it leaves room for one" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2-and-more-of-it
	# next to no environment that could give room
	spawn holder env -i PATH="$PATH" "$REDLOCK" run -t 2s -S "unix://:hunter2-and-more-of-it@$SERVERS/0/redis.sock" key-of-mine sleep 300
	wait_until 'titled holder "redlock: key-of-mine: held, renewed $CLOCK, lease until $CLOCK"'
	run ! grep -a hunter2 "/proc/$(pid holder)/cmdline" "/proc/$(pid holder)/environ"
	kill -TERM "$(pid holder)"
	finish holder
	expect 143
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "what redlock and others know is what it was before the title" {
	spawn holder "$REDLOCK" run -v -t 3s --label 'a label' --status-fd 1 -c "until [ -e $TMP/stop ]; do sleep 0.02; done; exit 7" "$KEY"
	wait_until 'titled holder "redlock: $KEY: held, .*"'
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .* 'a label' for .*"
	touch "$TMP/stop"
	finish holder
	[[ $status == 7 && $stderr == *": $KEY: released" ]]
	[[ $(jq -r .key <<<"$output") == "$KEY" ]]
	key_free 0
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "a guard that comes after the title does not bear it" {
	spawn holder "$REDLOCK" run -t 3s "$KEY" sleep 300
	wait_until 'titled holder "redlock: $KEY: held, .*"'
	local guard
	guard=$(child_named "$(pid holder)" lease-guard)
	kill -KILL "$guard"
	wait_until "! is_alive $guard"
	wait_until '[[ $(ps -o args= -p "$(child_named "$(pid holder)" lease-guard)") == lease-guard ]]'
	kill -TERM "$(pid holder)"
	finish holder
	expect 143
	key_free 0
}
