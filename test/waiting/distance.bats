#!/usr/bin/env bats
# Servers that are not equally far: a plain delay in between, and no fault anywhere. Whoever waits is
# served, wherever it stands; a server that has stopped is not felt.
# shellcheck disable=SC2016,SC2154
# bats file_tags=long

load ../lib/helper

setup_file() {
	local i
	servers_start 3
	for i in 0 1 2; do delay_start "$i" 80; done
}

# delay_start I MS: server I is at this round trip, too.
delay_start() {
	local socket=$SERVERS/$1/redis.sock far=$SERVERS/$1/far-$2
	"$TOOLS/start" -k "$TOOLS/delay" $(($2 * 500)) $(($2 * 500)) "$far" "$socket" \
		</dev/null >/dev/null 2>&1 3>&- 4>&- &
	disown $!
	wait_until "[[ -S $far ]]"
}

# region MS...: $urls are the servers at these round trips.
region() {
	local i=0 ms
	urls=
	for ms; do
		urls+=,unix://$SERVERS/$((i++))/
		((ms == 0)) && urls+=redis.sock || urls+=far-$ms
	done
	urls=${urls#,}
}

# loop COUNT NAME [OPTION...]: in the background so many runs, one after the other, of a section of
# 5 ms; it ends with the status of the first that was not served.
loop() {
	local count=$1 name=$2
	shift 2
	mkdir -p "$TMP/stamps"
	spawn "$name" bash -c 'for ((i = 0; i < $1; i++)); do
			"$REDLOCK" run --quarantine 0 -S "$2" "${@:4}" "$STAMP" -d 5 "$3" || exit
		done' - "$count" "$urls" "$TMP/stamps" -w $((10 * SLOW))s "$@" "$KEY"
}

@test "a lock that comes free far away is had, though a near server grants it long before" {
	region 0 80 80
	rcli 1 SET "$KEY" another-program PX 1000
	rcli 2 SET "$KEY" another-program PX 1000
	redlock run --quarantine 0 -S "$urls" -w $((10 * SLOW))s "$KEY" true
	expect 0
	wait_until 'nothing_left 0 1 2'
}

@test "two loops are both served by one server near and two at 80 ms" {
	region 0 80 80
	loop 15 one
	loop 15 two
	done_well one two
	assert_exclusive "$TMP/stamps" 30
}

@test "loops are served wherever they are, each with another server near" {
	region 0 80 80
	loop 8 here
	region 80 0 80
	loop 8 there
	region 80 80 0
	loop 8 elsewhere
	done_well here there elsewhere
	assert_exclusive "$TMP/stamps" 24
}

@test "loops of several kinds are served by one server near and two at 80 ms" {
	region 0 80 80
	loop 10 one
	loop 10 two -s
	loop 10 three -s
	loop 10 four -r
	done_well one two three four
}

# four_loops: how long it takes them until the last is served, in ms, in $took.
four_loops() {
	local start name
	start=$NOW
	for name in one two three four; do loop 10 "$name"; done
	done_well one two three four || return
	took=$((NOW - start))
}

@test "four loops are as fast with one of five servers stopped" {
	local all=() four=() i
	servers_start 5
	for i in {1..3}; do
		region 0 0 0 0 0
		four_loops
		all+=("$took")
		server_stop 4
		four_loops
		four+=("$took")
		server_continue 4
		wait_until 'server_drained 4'
	done
	echo "medians: $(median "${all[@]}") ms with all, $(median "${four[@]}") ms without one"
	(($(median "${four[@]}") < 3 * $(median "${all[@]}") + 500))
}
