#!/usr/bin/env bats
# shellcheck shell=bash
# What a server says is not trusted: whatever it is, redlock ends in time with
# one clear line and the right status, starts nothing, and does not grow.

load helper

HOSTILE=$ROOT/test/tools/hostile.py

# hostile CASE: a server that behaves like that, on $TMP/socket
hostile() {
	rm -f "$TMP/socket"
	setpriv --pdeathsig KILL python3 "$HOSTILE" "$TMP/socket" "$1" \
		>/dev/null 2>&1 3>&- 4>&- &
	server=$!
	wait_until "[[ -S $TMP/socket ]]"
}

# attempt ARGUMENT ...: redlock with little time and, where that can be set,
# little memory; $status, $output (stderr)
attempt() {
	local limit=400000
	[[ $REDLOCK != */address,undefined/* && $REDLOCK != */thread/* ]] ||
		limit=unlimited
	status=0
	(
		ulimit -v "$limit"
		exec timeout -k 1 15 "$REDLOCK" "$@"
	) >"$TMP/out" 2>"$TMP/err" 3>&- 4>&- || status=$?
	output=$(<"$TMP/err")
}

# One line that names KEY and holds no byte that a terminal might act on.
is_one_clean_line() {
	[[ $(wc -l <"$TMP/err") -eq 1 && $output == "redlock: $KEY: "* ]] &&
		! LC_ALL=C grep -q '[^ -~]' "$TMP/err"
}

# judge STATUS CASE: what must be so after an attempt
judge() {
	if [[ $status -ne $1 || -e $TMP/ran || -s $TMP/out ]] ||
		! is_one_clean_line; then
		echo "case '$2': status $status instead of $1: $output"
		return 1
	fi
}

# each_case COMMAND: four quarters of them at a time.
each_case() {
	local quarter wrong=0 quarters=()
	setpriv --pdeathsig KILL python3 "$HOSTILE" "$TMP" >/dev/null 2>&1 3>&- 4>&- &
	server=$!
	wait_until "[[ -e $TMP/list ]]"
	for quarter in 0 1 2 3; do
		some_cases "$quarter" "$@" 3>&- 4>&- &
		quarters+=($!)
	done
	for quarter in "${quarters[@]}"; do wait "$quarter" || wrong=1; done
	kill "$server"
	return "$wrong"
}

some_cases() {
	local quarter=$1 all=$TMP/list want socket case wrong=0
	shift
	TMP=$TMP/$quarter
	COMMAND=("${COMMAND[@]/%\/ran//$quarter/ran}")
	mkdir "$TMP"
	while read -r want socket case; do
		wait_until "[[ -S $socket ]]"
		attempt "$@" -t 3s --timeout 300ms -S "unix://$socket" \
			"$KEY" "${COMMAND[@]}"
		judge "$want" "$case" || wrong=1
	done < <(awk -v quarter="$quarter" 'NR % 4 == quarter' "$all")
	return "$wrong"
}

@test "run: whatever one server says, COMMAND is not started" {
	COMMAND=(-- touch "$TMP/ran")
	each_case run -n
}

@test "acquire: whatever one server says, no token is printed" {
	COMMAND=()
	each_case acquire -n
}

@test "a hostile minority of three different kinds does not disturb a quorum" {
	servers_start 4
	local case i=0 urls=$REDLOCK_SERVERS
	for case in 'replies without end' 'one byte each half second' \
		'a bulk of 2 GiB'; do
		hostile "$case"
		mv "$TMP/socket" "$TMP/hostile$i"
		urls+=,unix://$TMP/hostile$i
		i=$((i + 1))
	done
	run -3 timeout -k 1 20 "$REDLOCK" run --quarantine 0 -t 3s \
		-S "$urls" "$KEY" -- sh -c 'exit 3'
	[ "$output" = "" ]
}

@test "three hostile servers of five: 69, with three causes in one line" {
	servers_start 2
	local case i=0 urls=$REDLOCK_SERVERS
	for case in 'HTTP' 'hangs up after the request' 'a fence beyond 2^53'; do
		hostile "$case"
		mv "$TMP/socket" "$TMP/hostile$i"
		urls+=,unix://$TMP/hostile$i
		i=$((i + 1))
	done
	attempt run -n --quarantine 0 -t 3s -S "$urls" "$KEY" -- touch "$TMP/ran"
	judge 69 'three of them'
	[[ $output == *"no quorum: 3 of 5 servers gave no vote, 3 votes are needed: "* ]]
	[[ $output == *"hostile0: not what a Redis server says"* ]]
	[[ $output == *"hostile1: it hung up"* ]]
	[[ $output == *"hostile2: its INFO cannot be read"* ]]
}

@test "status: a server that goes silent between two pages has not answered" {
	hostile 'a page of the holders and silence'
	attempt status --timeout 200ms -S "unix://$TMP/socket" "$KEY"
	[ "$status" -eq 69 ]
	is_one_clean_line
	[[ $output == *"no answer within 2"*ms* ]]
	[[ $(<"$TMP/out") == "$KEY: unknown, 0 of 1 servers answered"* ]]
}

@test "a server that has too many clients has not refused the login" {
	hostile 'has too many clients, unasked'
	REDLOCK_PASSWORD=secret attempt run -n -S "unix://$TMP/socket" "$KEY" -- touch "$TMP/ran"
	judge 69 'too many'
	[[ $output == *": ERR max number of clients reached" ]]
}
