#!/usr/bin/env bats
# --also: several keys, all or none.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for inner shells; tests are subshells; helpers use and set variables

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 3
}

# The keys of a test, in their order.
setup() {
	KEY=key-$$-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	A=$KEY.a B=$KEY.b C=$KEY.c
	unset REDLOCK_TOKEN
}

# use COUNT: so many servers.
use() {
	SERVER_COUNT=$1
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=$(server_urls $(seq 0 $(($1 - 1))))
}

# have EXISTS KEY...: whether these keys are held, on every server: 1, or 0.
have() {
	local want=$1 i key
	shift
	for key; do
		for ((i = 0; i < SERVER_COUNT; i++)); do [[ $(rcli "$i" EXISTS "$key") == "$want" ]] || return; done
	done
}

# nobody_waits KEY...: nor is anybody's place left.
nobody_waits() {
	local i key
	for key; do
		for ((i = 0; i < SERVER_COUNT; i++)); do
			[[ $(rcli "$i" ZCARD "{$key}:redlock:queue") == 0 ]] || return
		done
	done
}

# somebody KEY [SECONDS]: another program has it, on every server, for ten minutes.
somebody() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do rcli "$i" SET "$1" somebody PX "${2:-600}000" >/dev/null; done
}

# nobody KEY: has it any more.
nobody() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do rcli "$i" DEL "$1" >/dev/null; done
}

all_or_none() {
	use "$1"
	redlock run --quarantine 0 --also "$C" --also "$A" "$B" touch "$TMP/ran"
	expect 0
	[[ -e $TMP/ran ]]
	rm "$TMP/ran"
	wait_until 'have 0 "$A" "$B" "$C"'
	somebody "$B"
	redlock run -n --quarantine 0 --also "$C" --also "$A" "$B" touch "$TMP/ran"
	expect 75 '' "redlock: $B: held .*"
	redlock run -n -E 3 --quarantine 0 --also "$B" --also "$A" "$C" touch "$TMP/ran"
	expect 3 '' "redlock: $B: held .*"
	redlock run -n -E 0 --quarantine 0 --also "$A" --also "$C" "$B" touch "$TMP/ran"
	expect 0
	redlock run -w 100ms --quarantine 0 --also "$C" --also "$B" "$A" touch "$TMP/ran"
	expect 75 '' "redlock: $B: held .*"
	redlock run --tries 2 --quarantine 0 --also "$C" --also "$B" "$A" touch "$TMP/ran"
	expect 75 '' "redlock: $B: held .*"
	[[ ! -e $TMP/ran ]]
	wait_until 'have 0 "$A" "$C"'
	nobody_waits "$A" "$B" "$C"
}

@test "all keys are held, or none, and the one that others hold is named: one server" {
	all_or_none 1
}

@test "all keys are held, or none, and the one that others hold is named: three servers" {
	all_or_none 3
}

@test "COMMAND learns the token and the fence of KEY, and all fences" {
	use 1
	local odd="$KEY z=%1"
	redlock run --also "$odd" --also "$A" "$B" sh -c '
		printf "%s\n" "$REDLOCK_KEY" "$REDLOCK_TOKEN" "$REDLOCK_FENCE" "$REDLOCK_FENCES" "$REDLOCK_HELD"
		for key; do "$TOOLS/ask" "$SERVERS/0/redis.sock" GET "$key"; done
		for key; do "$TOOLS/ask" "$SERVERS/0/redis.sock" HGET "{$key}:redlock" fence; done
	' - "$B" "$odd" "$A"
	[[ $status == 0 && ${#lines[@]} == 11 ]]
	[[ ${lines[0]} == "$B" && ${lines[1]} == "${lines[5]}" && ${lines[2]} == "${lines[8]}" ]]
	odd="$KEY%20z%3D%251"
	[[ ${lines[3]} == "$B=${lines[8]} $odd=${lines[9]} $A=${lines[10]}" ]]
	[[ ${lines[4]} == "$B=${lines[5]} $odd=${lines[6]} $A=${lines[7]}" ]]
	# what is inherited is about other locks
	REDLOCK_FENCES=x=1 redlock run "$A" sh -c 'echo "<$REDLOCK_FENCES>"'
	expect 0 '<>'
}

# waits_between COUNT: whoever waits for B holds and renews A, and lets others have C.
waits_between() {
	local token i
	use "$1"
	somebody "$B"
	spawn waits "$REDLOCK" run --quarantine 0 -t 6s --also "$C" --also "$B" "$A" sh -c 'echo "$REDLOCK_TOKEN"; exec sleep 600'
	wait_until 'have 1 "$A" && KEY=$B queued 1 && have 0 "$C"'
	token=$(rcli 0 GET "$A")
	[[ $token =~ ^[0-9a-f]{32}$ ]]
	redlock run -n --quarantine 0 "$C" true
	expect 0
	# beyond its lease
	i=$NOW
	wait_until '((NOW > i + 8000))' 30
	[[ $(rcli 0 GET "$A") == "$token" ]]
	[[ ! -s $TMP/waits.out ]]
	nobody "$B"
	wait_until '[[ -s $TMP/waits.out ]]' 40
	[[ $(<"$TMP/waits.out") == "$token" ]]
	wait_until 'have 1 "$A" "$B" "$C"'
	kill -TERM "$(pid waits)"
	finish waits
	[[ $status == 143 ]]
	wait_until 'have 0 "$A" "$B" "$C"'
}

@test "while one key is waited for, those before it are held and renewed, and those after it free: one server" {
	waits_between 1
}

@test "while one key is waited for, those before it are held and renewed, and those after it free: three servers" {
	waits_between 3
}

# in_turns COUNT TIMES: runs that name their keys in different orders.
in_turns() {
	local i
	use "$1"
	# two at once, or a key that is not held: the directory is there, or is not
	run_all() {
		for ((i = 0; i < $1; i++)); do
			"$REDLOCK" run --quarantine 0 "${@:2}" sh -c 'mkdir "$1" && rmdir "$1"' - "$TMP/in" || return
		done
	}
	spawn up run_all "$2" --also "$B" --also "$C" "$A"
	spawn down run_all "$2" --also "$B" --also "$A" "$C"
	spawn two run_all "$2" --also "$A" "$C"
	for i in up down two; do
		finish "$i" 300
		[[ $status == 0 ]]
	done
	wait_until 'have 0 "$A" "$B" "$C"'
	nobody_waits "$A" "$B" "$C"
}

@test "runs that name their keys in different orders do not lock each other out: one server" {
	in_turns 1 50
}

@test "runs that name their keys in different orders do not lock each other out: three servers" {
	in_turns 3 15
}

# together N: three runs, for the same keys in different orders; who ran is in $TMP/ran.N.
together() {
	local order pids=()
	for order in "$A $B $C" "$B $C $A" "$C $A $B"; do
		# shellcheck disable=SC2086 # words
		set -- "$1" $order
		"$REDLOCK" run -n --server-timeout 5s --also "$3" --also "$4" "$2" sh -c 'echo ran >>"$1"' - "$TMP/ran.$1" &
		pids+=($!)
	done
	for order in "${pids[@]}"; do wait "$order" || [[ $? == 75 ]] || return; done
}

@test "of runs that come at once and do not wait, one has its keys" {
	local i
	use 1
	for i in {1..15}; do
		together "$i"
		[[ -s $TMP/ran.$i ]]
	done
}

@test "-w is one time for all keys" {
	use 1
	somebody "$A"
	somebody "$B"
	exec 5>"$TMP/status"
	spawn waits "$REDLOCK" run -w 6s --status-fd 5 --also "$B" "$A" true
	exec 5>&-
	wait_until 'KEY=$A queued 1'
	pause 4
	nobody "$A"
	finish waits
	expect 75 '' "redlock: $B: held .*"
	# a time for each would be ten seconds
	jq -e '.outcome == "busy" and .waited_ms >= 5990 and .waited_ms < 9500' "$TMP/status"
	have 0 "$A"
}

@test "with -n the time to wait for keys that were just taken is one for all of them" {
	use 1
	local first second
	first=$("$REDLOCK" acquire "$B")
	spawn run "$REDLOCK" run -n --server-timeout 3s --also "$B" --also "$C" "$A" true
	wait_until 'KEY=$B queued 1'
	second=$("$REDLOCK" acquire "$C")
	pause 5
	"$REDLOCK" release "$B" "$first"
	wait_until 'KEY=$C queued 1 || ! is_running run'
	pause 5
	"$REDLOCK" release "$C" "$second"
	finish run
	# a time for each would be enough
	expect 75 '' "redlock: ($B|$C): held .*"
	have 0 "$A"
}

@test "a signal during the wait gives all back" {
	use 3
	somebody "$B"
	spawn waits "$REDLOCK" run --quarantine 0 --also "$C" --also "$B" "$A" true
	wait_until 'have 1 "$A" && KEY=$B queued 1'
	kill -TERM "$(pid waits)"
	finish waits
	[[ $status == 143 ]]
	wait_until 'have 0 "$A" "$C" && nobody_waits "$A" "$B" "$C"'
}

@test "redlock killed during the wait: what it held is free when the lease ends" {
	use 1
	somebody "$B"
	spawn waits "$REDLOCK" run -t 6s --also "$B" "$A" true
	wait_until 'have 1 "$A" && KEY=$B queued 1'
	kill -KILL "$(pid waits)"
	finish waits
	[[ $status == 137 ]]
	wait_until 'have 0 "$A"'
}

@test "a key whose lease was over during the wait is taken anew, with a fence of its own, though it is there again" {
	local token other
	use 1
	somebody "$B"
	spawn waits "$REDLOCK" run -t 6s --also "$B" "$A" sh -c 'echo "$REDLOCK_FENCE"'
	wait_until 'have 1 "$A" && KEY=$B queued 1'
	token=$(rcli 0 GET "$A")
	stop_process "$(pid waits)"
	redlock run -w 60s "$A" sh -c 'echo "$REDLOCK_FENCE"'
	other=$output
	# as if a late request of the stopped one had come now
	rcli 0 SET "$A" "$token" PX 600000
	nobody "$B"
	kill -CONT "$(pid waits)"
	finish waits
	expect 0 '[0-9]+' '.*'
	((output > other))
	have 0 "$A" "$B"
}

@test "a key that is lost while another is waited for is taken anew at once, and the place in line is kept" {
	local token
	use 1
	somebody "$B"
	spawn waits "$REDLOCK" run -t 6s --also "$B" "$A" sh -c 'echo waits >>"$1"' - "$TMP/order"
	wait_until 'have 1 "$A" && KEY=$B queued 1'
	token=$(rcli 0 GET "$A")
	spawn next "$REDLOCK" run "$B" sh -c 'echo next >>"$1"' - "$TMP/order"
	wait_until 'KEY=$B queued 2'
	nobody "$A"
	wait_until 'have 1 "$A" && KEY=$B queued 2'
	[[ $(rcli 0 GET "$A") != "$token" ]]
	nobody "$B"
	finish waits
	expect 0
	finish next
	expect 0
	[[ $(<"$TMP/order") == $'waits\nnext' ]]
}

# stays_in_line COUNT: an acquire has nothing to stop, so kill-after does not matter, and a lease may be short.
stays_in_line() {
	local i ttl began
	use "$1"
	somebody "$B"
	for ttl in 30s 100ms; do
		for ((i = 0; i < SERVER_COUNT; i++)); do rcli "$i" CONFIG RESETSTAT >/dev/null; done
		began=$NOW
		REDLOCK_KILL_AFTER=30s redlock acquire --quarantine 0 --server-timeout 9s -w 3s -t "$ttl" --also "$B" "$A"
		[[ $status == 75 && $stderr == *"redlock: $B: held "* ]]
		for ((i = 0; i < SERVER_COUNT; i++)); do
			# a lease of 100 ms is renewed, and asked for, after a third
			[[ $ttl == 30s ]] || (($(scripts_run "$i") < (NOW - began) * 10 / 33))
			[[ $ttl != 30s ]] || (($(scripts_run "$i") < 20 && $(connections "$i") < 15))
		done
	done
	wait_until 'have 0 "$A" && nobody_waits "$A" "$B"'
	nobody "$B"
}

# connections I: that it has accepted.
connections() {
	rcli "$1" INFO stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'
}

@test "an acquire that holds one key and waits for another stays in line, and asks as seldom as for one: one server" {
	stays_in_line 1
}

@test "an acquire that holds one key and waits for another stays in line, and asks as seldom as for one: three servers" {
	stays_in_line 3
}

@test "an acquire that holds one key and waits for another has it before those who come later, whatever kill-after is" {
	local i token
	use 3
	for i in 1 2 3 4 5; do
		KEY=$B take
		REDLOCK_KILL_AFTER=30s spawn waits "$REDLOCK" acquire --quarantine 0 -t 30s --also "$B" "$A"
		wait_until 'have 1 "$A" && KEY=$B queued 1'
		spawn next "$REDLOCK" run --quarantine 0 -w 60s "$B" touch "$TMP/next"
		wait_until 'KEY=$B listening 2'
		KEY=$B give_back
		finish waits
		expect 0 '.+'
		[[ ! -e $TMP/next ]]
		"$REDLOCK" release --also "$B" "$A" "$output"
		finish next
		expect 0
		rm "$TMP/next"
	done
}

@test "if one of the locks is lost COMMAND is stopped, the key is named, and the others are released" {
	use 1
	spawn run "$REDLOCK" run -t 6s -k 500ms --also "$B" "$A" sleep 600
	wait_until 'have 1 "$A" "$B"'
	rcli 0 SET "$B" somebody
	finish run
	expect 76 '' "redlock: $B: lock lost: .*: KEY is held by someone else: COMMAND is stopped"
	have 0 "$A"
	[[ $(rcli 0 GET "$B") == somebody ]]
}

@test "redlock stopped: COMMAND is dead before any of the keys changes hands" {
	use 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 6s -k 500ms --also "$B" "$A" "$STAMP" "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	stop_process "$(pid run)"
	redlock run -w 60s --also "$A" "$B" sh -c 'cat /proc/uptime'
	[[ $status == 0 ]]
	local uptime=${output%% *}
	(($(last_beat "$TMP/stamps") <= ${uptime/./}0 + 10))
	kill -CONT "$(pid run)"
	finish run
	[[ $status == 76 ]]
}

@test "COMMAND is renewed for all its keys, and --min-hold keeps all" {
	use 1
	local begun
	spawn run "$REDLOCK" run -t 6s --min-hold 12s --also "$B" "$A" sh -c 'read -r uptime _ </proc/uptime; until [ -e "$1" ]; do sleep 0.1; done' - "$TMP/end"
	wait_until 'have 1 "$A" "$B"'
	begun=$NOW
	wait_until '((NOW > begun + 8000))' 30
	have 1 "$A" "$B"
	touch "$TMP/end"
	finish run
	expect 0
	have 1 "$A" "$B"
	wait_until 'have 0 "$A" "$B"'
}

@test "--min-hold keeps none if one was lost while COMMAND ran, even if nobody noticed" {
	local count
	for count in 1 3; do
		use "$count"
		redlock run --quarantine 0 --min-hold 10m --also "$B" "$A" sh -c 'for i in $1; do "$TOOLS/ask" "$SERVERS/$i/redis.sock" DEL "$2"; done' - "$(seq -s ' ' 0 $((count - 1)))" "$B"
		[[ $status == 0 && $stderr == "redlock: $B: the lock was gone before COMMAND ended: "* ]]
		wait_until 'have 0 "$A" "$B"'
	done
}

# ---------------------------------------------------------------- acquire, release, extend

@test "acquire prints one token for all; extend and release take it, whatever the order of the keys" {
	local token what
	use 1
	redlock acquire -t 60s --also "$C" --also "$A" "$B"
	expect 0 '[0-9a-f]{32}=[0-9a-f]{32}=[0-9a-f]{32}'
	token=$output
	[[ $token == "$(rcli 0 GET "$A")=$(rcli 0 GET "$B")=$(rcli 0 GET "$C")" ]]
	redlock extend -t 10m --also "$B" --also "$A" "$C" "$token"
	expect 0
	for key in "$A" "$B" "$C"; do (($(rcli 0 PTTL "$key") > 300000)); done
	redlock status -q --also "$A" --also "$C" "$B" "$token"
	expect 0
	redlock status -q --also "$A" "$B" "${token%=*}"
	expect 0
	redlock status -q --also "$C" "$B" "${token%=*}"
	expect 1
	redlock release --also "$B" "$A" "$token"
	expect 64 '' 'redlock: release: TOKEN is for 3 keys, but 2 are named: see redlock release --help'
	REDLOCK_TOKEN=$token redlock release --also "$B" "$A"
	expect 64 '' 'redlock: release: REDLOCK_TOKEN is for 3 keys, but 2 are named: see redlock release --help'
	for what in release extend 'status -q'; do
		# shellcheck disable=SC2086 # words
		redlock $what "$A" "$token"
		expect 64 '' "redlock: ${what% *}: TOKEN is for 3 keys, but only one is named: see redlock ${what% *} --help"
	done
	REDLOCK_TOKEN=$token redlock release "$A"
	expect 64 '' 'redlock: release: REDLOCK_TOKEN is for 3 keys, but only one is named: see redlock release --help'
	have 1 "$A" "$B" "$C"
	REDLOCK_TOKEN=$token redlock release --also "$A" --also "$C" "$B"
	expect 0
	have 0 "$A" "$B" "$C"
}

@test "release and extend do what they can for each key, with a line for each that fails" {
	local token
	use 1
	token=$("$REDLOCK" acquire --also "$B" --also "$C" "$A")
	rcli 0 SET "$B" somebody
	redlock extend -t 10m --also "$B" --also "$C" "$A" "$token"
	expect 1 '' "redlock: $B: not held by this token: .*: KEY is held by someone else"
	(($(rcli 0 PTTL "$C") > 300000))
	rcli 0 DEL "$A"
	redlock release --also "$B" --also "$C" "$A" "$token"
	expect 1 '' "redlock: $A: not held by this token: .*
redlock: $B: not held by this token: .*"
	have 0 "$C"
	[[ $(rcli 0 GET "$B") == somebody ]]
}

@test "the token of an owner is each key's" {
	use 1
	redlock acquire -r --token me --also "$B" "$A"
	expect 0 me
	redlock acquire -r --token me --also "$A" "$B"
	expect 0 me
	redlock release --also "$B" "$A" me
	expect 0
	have 1 "$A" "$B"
	redlock release --also "$B" "$A" me
	expect 0
	have 0 "$A" "$B"
}

@test "a run under another with the same keys enters with -r, and without says which key is held above" {
	use 1
	redlock run -r --also "$B" "$A" "$REDLOCK" run -n -r --also "$A" --also "$C" "$B" echo in
	expect 0 in
	redlock run --also "$B" "$A" "$REDLOCK" run --also "$B" "$C" echo in
	expect 75 '' "redlock: $B: held by an ancestor of this process, which waits for it: use -r in both to enter KEY again"
	have 0 "$A" "$B" "$C"
}

@test "many hold several keys that are shared, or have room" {
	use 1
	redlock run -s --also "$B" "$A" "$REDLOCK" run -n -s --also "$A" "$B" echo in
	expect 0 in
	redlock run -P 2 --also "$B" "$A" "$REDLOCK" run -n -P 2 --also "$A" "$B" "$REDLOCK" run -n -P 2 "$B" echo in
	expect 75 '' "redlock: $B: .*"
}

@test "acquire's output is for eval: the token of all, and what was another lock's is gone" {
	use 1
	REDLOCK_SERVERS=$REDLOCK_SERVERS REDLOCK_FENCES=old bash -c '
		set -eu
		eval "$("$REDLOCK" acquire --format shell --also "$2" "$1")"
		[[ $REDLOCK_KEY == "$1" && $REDLOCK_FENCES == "$1=$REDLOCK_FENCE $2="* ]]
		[[ $REDLOCK_HELD == " $1=${REDLOCK_TOKEN%=*}  $2=${REDLOCK_TOKEN#*=}" ]]
		"$REDLOCK" extend --also "$1" "$2"
		"$REDLOCK" release --also "$2" "$1"
		eval "$("$REDLOCK" acquire --format shell "$1")"
		[[ ! ${REDLOCK_FENCES+set} ]]
		"$REDLOCK" release "$1"
	' - "$A" "$B"
	have 0 "$A" "$B"
	somebody "$B"
	redlock acquire -n --format shell --also "$B" "$A"
	expect 75 '\(exit 75\)' "redlock: $B: held .*"
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "one keeper renews all keys, and the end of the process releases all" {
	use 1
	local keeper begun
	spawn job sh -c '"$REDLOCK" acquire --pid $$ -t 6s --also "$1" "$2" && until [ -e "$3" ]; do sleep 0.1; done' - "$A" "$B" "$TMP/end"
	wait_until '[[ -s $TMP/job.out ]]'
	[[ $(<"$TMP/job.out") == "$(rcli 0 GET "$A")=$(rcli 0 GET "$B")" ]]
	keeper=$(pgrep -f "^redlock-keeper $B, $A for $(pid job)\$")
	begun=$NOW
	wait_until '((NOW > begun + 8000))' 30
	have 1 "$A" "$B"
	touch "$TMP/end"
	finish job
	wait_until 'have 0 "$A" "$B" && is_over '"$keeper"
}

@test "release of all keys ends their keeper; the loss of one stops the process" {
	use 1
	spawn job sh -c 'token=$("$REDLOCK" acquire --pid $$ --also "$1" "$2") || exit
		"$REDLOCK" release -v --also "$2" "$1" "$token" && echo released && until [ -e "$3" ]; do sleep 0.1; done' - "$A" "$B" "$TMP/end"
	wait_until '[[ -s $TMP/job.out ]]'
	[[ $(<"$TMP/job.err") == *'given back by its keeper'* ]]
	is_running job
	touch "$TMP/end"
	finish job
	[[ $status == 0 ]]
	spawn job sh -c '"$REDLOCK" acquire --pid $$ -t 6s -k 500ms --also "$1" "$2" && exec sleep 600' - "$A" "$B"
	wait_until '[[ -s $TMP/job.out ]] && have 1 "$A" "$B"'
	rcli 0 SET "$B" somebody
	finish job
	[[ $status == 143 && $stderr == *"redlock: $B: lock lost: "* ]]
	wait_until 'have 0 "$A"'
}

# ---------------------------------------------------------------- mistakes

@test "what cannot be several keys is refused" {
	local many=() i
	use 1
	for i in {1..16}; do many+=(--also "k$i"); done
	refuses 64 "run: KEY '$A' is named twice: see" run --also "$A" "$A" true
	refuses 64 "release: KEY '$B' is named twice: see" release --also "$B" --also "$B" "$A" token
	refuses 64 "run: --also 'k16' is not taken: 16 keys are as many as can be taken together" run "${many[@]}" "$A" true
	refuses 64 "acquire: --also '' is not a KEY of 1 to 4096 bytes" acquire --also '' "$A"
	refuses 64 "run: KEY '\{x\}:redlock' could be the record of another KEY" run --also '{x}:redlock' "$A" true
	refuses 64 "status: --also is for status -q" status --also "$B" "$A"
	refuses 64 "wait: option '--also' is for other commands" wait --also "$B" "$A"
	refuses 64 "release: TOKEN '=x' must be 1 to 256 bytes long" release --also "$B" "$A" =x
	printf 'also = %s\n' "$B" >"$TMP/conf"
	refuses 78 "conf:1: .*also" run --config "$TMP/conf" "$A" true
	no_row_failed
	REDLOCK_ALSO=$B redlock run "$A" true
	[[ $status == 0 && $stderr == *REDLOCK_ALSO* ]]
	unset 'many[-1]' 'many[-1]'
	redlock run "${many[@]}" "$A" sh -c 'set -- $REDLOCK_FENCES; echo $#'
	expect 0 16
}

@test "no quorum for a key is an error like that of one key, and nothing is left" {
	use 1
	redlock run -S unix:///nonexistent/s --also "$B" "$A" true
	expect 69 '' "redlock: $A: unix:///nonexistent/s: No such file or directory.*"
	rcli 0 LPUSH "$B" x
	redlock run --also "$B" "$A" true
	expect 65 '' "redlock: $B: .*"
	have 0 "$A"
}
