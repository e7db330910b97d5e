#!/usr/bin/env bats
# A server keeps its name and moves to another address: those who wait and those who hold follow it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

# named_start N: server I is sI.test to who runs behind "${NAMED[@]}".
named_start() {
	local i
	unshare --mount true || skip "mount namespaces can't be made here"
	set_new
	export SERVERS=$SET SERVER_COUNT=$1 REDLOCK_SERVERS=
	NET=127.$((1 + RANDOM % 250)).$((RANDOM % 250))
	NAMED=("${MOUNTS[@]}" sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$SERVERS/hosts")
	for ((i = 0; i < SERVER_COUNT; i++)); do
		mkdir "$SERVERS/$i"
		echo --appendonly no >"$SERVERS/$i/args"
		server_at "$i" $((i + 1)) || return
		REDLOCK_SERVERS+=,redis://s$i.test
	done
	REDLOCK_SERVERS=${REDLOCK_SERVERS#,}
	names_point
	"${NAMED[@]}" true || skip "an /etc/hosts of its own can't be made here"
}

# server_at I HOST: starts it, empty, at this address of $NET.
server_at() {
	echo "$NET.$2" >"$SERVERS/$1/kind"
	server_launch "$1"
	server_ready "$1"
}

# names_point: each name leads to its server.
names_point() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do
		echo "$(<"$SERVERS/$i/kind") s$i.test"
	done >"$SERVERS/hosts"
}

# move I: the name gets another server, which has no data; the old one has ended.
move() {
	server_at "$1" $((100 + $1)) && names_point
}

# has_told NAME...: each says that it waits through an outage.
has_told() {
	local name
	for name; do [[ $(<"$TMP/$name.err") == *'still waiting: '*s0.test* ]] || return; done
}

# held_at I: KEY is held there, as it was where $token is from.
held_at() {
	reply "$1" GET "$KEY" && [[ $token && $REPLY == "$token" ]]
}

@test "who waits follows a name that moves: run, run -w and wait" {
	named_start 1
	"${NAMED[@]}" "$REDLOCK" acquire --quarantine 0 -t 10m "$KEY"
	spawn a "${NAMED[@]}" "$REDLOCK" run --quarantine 0 "$KEY" echo ran
	spawn b "${NAMED[@]}" "$REDLOCK" run --quarantine 0 -w $((40 * SLOW))s "$KEY" echo ran
	spawn c "${NAMED[@]}" "$REDLOCK" wait --quarantine 0 "$KEY"
	wait_until 'queued 3'
	server_kill 0
	wait_until 'has_told a b c'
	move 0
	finish a
	expect 0 ran "redlock: $KEY: still waiting: redis://s0\\.test:6379: .*"
	finish b
	expect 0 ran "redlock: $KEY: still waiting: redis://s0\\.test:6379: .*"
	finish c
	expect 0 '' "redlock: $KEY: still waiting: redis://s0\\.test:6379: .*"
}

@test "who holds a lock follows names that move one after the other" {
	local token i
	named_start 3
	spawn holder "${NAMED[@]}" "$REDLOCK" run --quarantine 0 -t $((9 * SLOW))s "$KEY" sh -c 'until [ -e "$0" ]; do sleep 0.1; done; echo held' "$TMP/end"
	wait_until 'token=$(rcli 0 GET "$KEY") && held_at 0 && held_at 1 && held_at 2'
	for i in 0 1 2; do
		server_kill "$i"
		move "$i"
		wait_until 'held_at 0 && held_at 1 && held_at 2'
	done
	touch "$TMP/end"
	finish holder
	expect 0 held
}

@test "a name that moves to another one's server is found: who waits ends, who holds is warned once and goes on" {
	local token same
	named_start 3
	same='redis://s0\.test:6379 and redis://s1\.test:6379 are the same server: name it only once'
	spawn holder "${NAMED[@]}" "$REDLOCK" run --quarantine 0 -t $((9 * SLOW))s "$KEY" sh -c 'until [ -e "$0" ]; do sleep 0.1; done; echo held' "$TMP/end"
	wait_until 'token=$(rcli 0 GET "$KEY") && held_at 0 && held_at 1 && held_at 2'
	spawn waiter "${NAMED[@]}" "$REDLOCK" run --quarantine 0 "$KEY" echo ran
	wait_until 'queued 1'
	server_kill 1
	cp "$SERVERS/0/kind" "$SERVERS/1/kind"
	names_point
	finish waiter
	expect 78 '' "redlock: $KEY: $same"
	wait_until '[[ -s $TMP/holder.err ]]'
	wait_until '(($(rcli 0 PTTL "$KEY") < 7000 * SLOW))' # it is renewed every 3 s
	wait_until '(($(rcli 0 PTTL "$KEY") > 7000 * SLOW))'
	touch "$TMP/end"
	finish holder
	expect 0 held "redlock: $KEY: $same"
}

@test "a name that is not found any more leads where it led" {
	named_start 1
	"${NAMED[@]}" "$REDLOCK" acquire --quarantine 0 -t 10m "$KEY"
	spawn a "${NAMED[@]}" "$REDLOCK" run --quarantine 0 "$KEY" echo ran
	wait_until 'queued 1'
	: >"$SERVERS/hosts"
	server_kill 0
	wait_until 'has_told a'
	server_at 0 1
	finish a
	expect 0 ran "redlock: $KEY: still waiting: redis://s0\\.test:6379: .*"
}

@test "while nobody listens at the addresses of a name, it is looked up once a second at most; addresses never are" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	named_start 1
	local count start url
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	for url in redis://s0.test "redis://$(<"$SERVERS/0/kind")"; do
		"${NAMED[@]}" "$REDLOCK" acquire --quarantine 0 -t 10m "$KEY"
		start=$NOW
		spawn a "${NAMED[@]}" strace -f -qq -o "$TMP/trace" -e trace=openat "$REDLOCK" run --quarantine 0 -S "$url" "$KEY" echo ran
		wait_until 'queued 1'
		server_kill 0
		wait_until '((NOW > start + 5000))'
		server_at 0 1
		finish a
		[[ $status == 0 ]]
		# each look-up is a thread's; the connections for requests and for messages begin with one each
		count=$(grep -F '"/etc/hosts"' "$TMP/trace" | cut -d ' ' -f 1 | sort -u | wc -l)
		if [[ $url == *test ]]; then
			((count > 2 && count <= 3 + (NOW - start) / 1000))
		else
			((count == 0))
		fi
	done
}
