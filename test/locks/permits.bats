#!/usr/bin/env bats
# -P N: up to N holders at a time, never more.
# shellcheck disable=SC2016,SC2154

load ../lib/helper
load ../lib/cli
load ../lib/inspect

setup_file() {
	servers_start 5
}

# pick_victim NAME: $victim is the process of a contender's redlock, if it runs just now.
pick_victim() {
	local pid children comm
	victim=
	pid=$(pid "$1")
	read -ra children <"/proc/$pid/task/$pid/children" || : # there is no newline
	read -r comm <"/proc/${children[0]-none}/comm" || return 0
	[[ $comm != redlock ]] || victim=${children[0]}
} 2>/dev/null

# never_more PERMITS SERVERS: twelve who want one of so many permits for some seconds, while they are
# killed and stopped at random. The kernel counts who is in.
never_more() {
	local permits=$1 i victim stopped=() end deaths=0
	servers_start "$2"
	mkdir "$TMP/stamps"
	for i in {1..12}; do
		spawn "contender$i" bash -c 'until [[ -e $4 ]]; do
			"$REDLOCK" run -q --quarantine 0 -P "$1" -t 2s -k 100ms "$2" "$STAMP" -p "$1" -d $((RANDOM % 60)) "$3"
		done' - "$permits" "$KEY" "$TMP/stamps" "$TMP/stop"
	done
	end=$(($(now_ms) + 3000))
	while ((deaths == 0 || $(now_ms) < end)); do
		sleep 0.1
		pick_victim "contender$((RANDOM % 12 + 1))"
		[[ $victim ]] || continue
		if ((RANDOM % 4)); then
			kill -KILL "$victim" 2>/dev/null && ((++deaths))
		elif kill -STOP "$victim" 2>/dev/null; then
			# past the end of its lease
			stopped+=("$victim")
			if ((${#stopped[@]} > 2)); then
				kill -CONT "${stopped[0]}" 2>/dev/null || : # it has been killed
				stopped=("${stopped[@]:1}")
			fi
		fi
	done
	# shellcheck disable=SC2015 # they may all have ended
	((${#stopped[@]})) && kill -CONT "${stopped[@]}" 2>/dev/null || :
	# not before they were there all at once: the witness has had something to see
	wait_until '(($(peak "$TMP/stamps") >= permits))' 60
	touch "$TMP/stop"
	for i in {1..12}; do finish "contender$i" 60; done
	echo "$(beats "$TMP/stamps" | wc -l) holders, $deaths killed, $(peak "$TMP/stamps") at a time"
	if [[ -e $TMP/stamps/overlap ]]; then
		echo "one too many: $(<"$TMP/stamps/overlap")"
		return 1
	fi
	((deaths > 0))
}

# native, these nine: twelve that start over and over would leave no processor to the tests beside them

# bats test_tags=native,again
@test "never more than 1 holder of 1 permit, killed and stopped at random: one server" {
	never_more 1 1
}

# bats test_tags=native
@test "never more than 1 holder of 1 permit, killed and stopped at random: three servers" {
	never_more 1 3
}

# bats test_tags=native,again
@test "never more than 1 holder of 1 permit, killed and stopped at random: five servers" {
	never_more 1 5
}

# bats test_tags=native,again
@test "never more than 2 holders of 2 permits, killed and stopped at random: one server" {
	never_more 2 1
}

# bats test_tags=native
@test "never more than 2 holders of 2 permits, killed and stopped at random: three servers" {
	never_more 2 3
}

# bats test_tags=native,again
@test "never more than 2 holders of 2 permits, killed and stopped at random: five servers" {
	never_more 2 5
}

# bats test_tags=native,again
@test "never more than 3 holders of 3 permits, killed and stopped at random: one server" {
	never_more 3 1
}

# bats test_tags=native,again
@test "never more than 3 holders of 3 permits, killed and stopped at random: three servers" {
	never_more 3 3
}

# bats test_tags=native
@test "never more than 3 holders of 3 permits, killed and stopped at random: five servers" {
	never_more 3 5
}

# in_turn SERVERS: who comes when all permits are out waits for the next one that is given back.
in_turn() {
	local all
	all=$(seq -s ' ' 0 $(($1 - 1)))
	use "$1"
	takes a -q -P 2
	takes b -q -P 2
	wait_until 'entered a b'
	wait_until "holders 2 $all"
	takes c -q -P 2
	wait_until "queued 1 $all"
	takes d -q -P 2
	wait_until "queued 2 $all"
	ends b
	wait_until 'entered c'
	[[ $(noted) == *'-b +c' ]]
	wait_until "queued 1 $all"
	wait_until "holders 2 $all"
	ends a
	wait_until 'entered d'
	[[ $(noted) == *'-b +c -a +d' ]]
	ends c d
	done_well a b c d
	wait_until "nothing_left $all"
}

# bats test_tags=again
@test "who comes one too many waits, and gets the next permit in its turn: one server" {
	in_turn 1
}

# bats test_tags=again
@test "who comes one too many waits, and gets the next permit in its turn: three servers" {
	in_turn 3
}

@test "who comes one too many waits, and gets the next permit in its turn: five servers" {
	in_turn 5
}

@test "the permit of a holder that is killed comes back after its own ttl, while another goes on" {
	local count all
	for count in 1 3; do
		use "$count"
		all=$(seq -s ' ' 0 $((count - 1)))
		rm -f "$TMP"/end.* "$TMP/order"
		takes short -q -P 2 -t 2s
		takes long -q -P 2 -t 50s
		wait_until 'entered short long'
		kill -KILL "$(pid short)"
		finish short
		takes next -q -P 2 -t 20s
		wait_until 'entered next'
		[[ $(noted) != *-long* ]]
		wait_until "holders 2 $all"
		# KEY's own ttl would have kept it much longer
		(($(rcli 0 PTTL "$KEY") > 10000))
		ends long next
		done_well long next
		wait_until "nothing_left $all"
	done
}

@test "-n is 75 when all permits are out, and names a holder" {
	use 1
	takes a -P 2 -t 40s --label 'the first'
	wait_until 'entered a'
	takes b -P 2 -t 90s --label 'the second'
	wait_until 'entered b'
	redlock run -n -P 2 "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by 2 of 2, longest $(uname -n) pid [0-9]+ 'the first' for [0-9.]+m?s"
	redlock acquire -w 50ms -P 2 -E 9 "$KEY"
	expect 9 '' "redlock: $KEY: held by 2 of 2, longest $(uname -n) pid [0-9]+ 'the first' for .*"
	redlock acquire -n -E 0 -P 2 "$KEY"
	expect 0
	[[ ! -e $TMP/ran ]]
	holders 2 0
	ends a b
	done_well a b
}

@test "permits keep every other kind out, and every other kind keeps permits out" {
	use 1
	local kind
	takes one -P 3 --label 'one of three'
	wait_until 'entered one'
	for kind in -x -r; do
		redlock run -n $kind "$KEY" touch "$TMP/ran"
		expect 75 '' "redlock: $KEY: held by 1 of 3, $(uname -n) pid [0-9]+ 'one of three' for .*: use -P 3, as they do"
	done
	ends one
	done_well one
	for kind in -x -r; do
		takes "other$kind" $kind --label 'one only'
		wait_until "entered other$kind"
		redlock run -n -P 3 "$KEY" touch "$TMP/ran"
		expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'one only' for .*: that one was taken without -P: use it everywhere or nowhere"
		ends "other$kind"
		done_well "other$kind"
	done
	[[ ! -e $TMP/ran ]]
}

@test "another N is 65, and so is -s, with what holds and what was asked for" {
	local count
	for count in 1 3; do
		use "$count"
		rm -f "$TMP"/end.*
		takes two -q -P 2
		wait_until 'entered two'
		wait_until "holders 1 $(seq -s ' ' 0 $((count - 1)))"
		redlock run --quarantine 0 -n -q -P 3 "$KEY" touch "$TMP/ran"
		expect 65 '' "redlock: $KEY: .*held with -P 2 now, not with -P 3.*"
		redlock run --quarantine 0 -q -P 1 -w 10m "$KEY" touch "$TMP/ran"
		expect 65 '' "redlock: $KEY: .*held with -P 2 now, not with -P 1.*"
		redlock run --quarantine 0 -s -w 10m "$KEY" touch "$TMP/ran"
		expect 65 '' "redlock: $KEY: .*held with -P 2 now, not with -s.*"
		ends two
		done_well two
		wait_until "nothing_left $(seq -s ' ' 0 $((count - 1)))"
		takes reader -s
		wait_until 'entered reader'
		wait_until "holders 1 $(seq -s ' ' 0 $((count - 1)))"
		redlock run --quarantine 0 -q -P 2 "$KEY" touch "$TMP/ran"
		expect 65 '' "redlock: $KEY: .*held with -s now, not with -P 2.*"
		ends reader
		done_well reader
		wait_until "nothing_left $(seq -s ' ' 0 $((count - 1)))"
	done
	[[ ! -e $TMP/ran ]]
}

@test "when nobody holds KEY, the next one says how many permits there are" {
	use 1
	redlock run -P 2 "$KEY" true
	expect 0
	redlock run -P 5 "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HGET "$(record)" permits
	expect 0 5
	redlock run -s "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HGET "$(record)" permits
	expect 0 0
}

@test "doctor -P says if so many permits need all servers; a run says nothing of it" {
	local words warning
	servers_start 5
	# servers, permits, how many may be down
	while read -ra words; do
		use "${words[0]}"
		warning="warning: with -P ${words[1]} all ${words[0]} servers must be up: use fewer permits, or more servers (--accept permits)"
		((words[2] > 0 || words[0] == 1 || words[1] == 1)) && warning='none'
		redlock doctor --quarantine 0 -P "${words[1]}" "$KEY"
		[[ $status == 0 ]]
		[[ $(grep '^warning: with -P' <<<"$output" || echo none) == "$warning" ]]
		redlock run --quarantine 0 -n -P "${words[1]}" "$KEY" true
		expect 0
	done <<-'ROWS'
		1 1 0
		1 7 0
		2 1 0
		2 2 0
		3 1 1
		3 2 0
		3 3 0
		4 2 1
		5 1 2
		5 2 1
		5 3 1
		5 4 0
		5 100000 0
	ROWS
}

@test "two permits on three servers, one of them down: 69; one permit: held all the same" {
	servers_start 3
	server_kill 2
	redlock run --quarantine 0 -P 2 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: 1 of 3 servers gave no vote, 3 votes are needed: $(server_url 2): .*"
	[[ ! -e $TMP/ran ]]
	wait_until 'nothing_left 0 1'
	redlock run --quarantine 0 -P 1 "$KEY" true
	expect 0
	server_kill 1
	redlock run --quarantine 0 -P 1 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*"
	[[ ! -e $TMP/ran ]]
}

@test "a holder of two permits on three servers loses the lock with one server's entry: 76" {
	local token
	use 3
	takes stays -q -P 2 -t 3s
	takes loses -q -P 2 -t 3s
	wait_until 'entered stays loses'
	wait_until 'holders 2 0 1 2'
	token=$(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP/told.loses")
	[[ $(rcli 1 ZREM "$KEY" "$token") == 1 ]]
	finish loses
	expect 76 '' "redlock: $KEY: lock lost: .*: COMMAND is stopped"
	renewals 2
	ends stays
	done_well stays
	wait_until 'nothing_left 0 1 2'
}

@test "extend and release of a permit count the votes that its acquire needed" {
	local token
	servers_start 3
	redlock acquire --quarantine 0 -q -P 2 "$KEY"
	expect 0 '[0-9a-f]{32}'
	token=$output
	redlock extend "$KEY" "$token"
	expect 0
	server_kill 0
	redlock extend "$KEY" "$token"
	expect 69 '' "redlock: $KEY: no quorum: .*"
}

@test "a permit is extended and released by its token, and others' entries stay" {
	local first second
	use 1
	redlock acquire -P 2 -t 50s "$KEY"
	expect 0 '[0-9a-f]{32}'
	first=$output
	redlock acquire -P 2 -t 50s "$KEY"
	expect 0 '[0-9a-f]{32}'
	second=$output
	redlock acquire -n -P 2 "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock extend -t 90s "$KEY" "$first"
	expect 0
	(($(rcli 0 ZSCORE "$KEY" "$first") > $(server_ms 0) + 80000))
	(($(rcli 0 ZSCORE "$KEY" "$second") <= $(server_ms 0) + 50000))
	redlock release "$KEY" "$first"
	expect 0
	redlock release "$KEY" "$first"
	expect 1 '' "redlock: $KEY: not held by this token: .*"
	redlock acquire -n -P 2 "$KEY"
	expect 0 '[0-9a-f]{32}'
	holders 2 0
}

# leaderboard I [EXPIRY]: a sorted set of somebody else's, with scores as they may be.
leaderboard() {
	rcli "$1" ZADD "$KEY" 1 ann 250 bob 99999999999999 eve
	[[ ! ${2-} ]] || rcli "$1" PEXPIRE "$KEY" "$2"
}

# left_alone STATUS LINE: nobody enters KEY or changes it, whatever it is tried with.
left_alone() {
	local before status=$1 want=$2 option
	before=$(rcli 0 --no-raw DUMP "$KEY")
	for option in -s '-P 1' '-P 2' '-P 100' -x -r; do
		# shellcheck disable=SC2086 # words
		redlock run -n $option "$KEY" touch "$TMP/ran"
		expect "$status" '' "redlock: $KEY: $want"
		# shellcheck disable=SC2086 # words
		redlock acquire -w 30ms $option "$KEY"
		expect "$status" '' "redlock: $KEY: $want"
	done
	redlock wait -w 30ms "$KEY"
	expect "$status" '' "redlock: $KEY: $want"
	redlock release "$KEY" ann
	expect 65 '' "redlock: $KEY: KEY is not a lock: it is a zset"
	redlock extend "$KEY" bob
	expect 65 '' "redlock: $KEY: KEY is not a lock: it is a zset"
	[[ ! -e $TMP/ran && $(rcli 0 --no-raw DUMP "$KEY") == "$before" ]]
}

@test "a sorted set of somebody else's is neither entered nor changed" {
	use 1
	leaderboard 0
	left_alone 65 "$(server_url 0): KEY is a sorted set without an expiry, which is not a lock: choose another KEY"
	[[ $(rcli 0 PTTL "$KEY") == -1 ]]
}

@test "a sorted set of somebody else's, with an expiry, is neither entered nor changed" {
	use 1
	leaderboard 0 600000
	left_alone 75 'held by another program, .* left'
}

@test "a sorted set of somebody else's beside a record of ours is neither entered nor changed" {
	use 1
	local option
	for option in -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		redlock run $option "$KEY" true
		expect 0
		leaderboard 0
		left_alone 65 "$(server_url 0): KEY is a sorted set without an expiry, which is not a lock: choose another KEY"
		[[ $(rcli 0 PTTL "$KEY") == -1 ]]
		rcli 0 DEL "$KEY"
	done
}

@test "a sorted set of somebody else's, with an expiry and beside a record of ours, is left alone, too" {
	use 1
	local option
	for option in -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		redlock run $option "$KEY" true
		expect 0
		leaderboard 0 600000
		left_alone 75 'held by another program, .* left'
		rcli 0 DEL "$KEY"
	done
}

@test "a server that was restarted empty under holders of permits gets them back, and no more" {
	servers_start 5
	takes one -P 2 -t 4s
	takes two -P 2 -t 4s
	wait_until 'entered one two'
	wait_until 'holders 2 0 1 2 3 4'
	takes three -P 2 -t 4s
	wait_until 'queued 1 1'
	server_restart 0
	wait_until 'holders 2 0'
	[[ $(rcli 0 HGET "$(record)" permits) == 2 ]]
	[[ $(noted) != *+three* ]]
	ends one
	wait_until 'entered three'
	wait_until 'holders 2 0 1 2 3 4'
	ends two three
	done_well one two three
	wait_until 'nothing_left 0 1 2 3 4'
}

@test "a semaphore that is busy says how many hold it, and who has held it longest" {
	use 1
	hold_permit 0 3 one web1 11 'job one' 2
	hold_permit 0 3 two web2 22 'job two' 4
	hold_permit 0 3 three web3 33 'job three' 3
	# it ends last
	rcli 0 ZADD "$KEY" $(($(date_ms) + 36000000)) two
	redlock run -n -P 3 "$KEY" true
	expect 75 '' "redlock: $KEY: held by 3 of 3, longest web2 pid 22 'job two' for 4h0[0-9]m"
	takes waits -P 3 -v
	wait_until 'grep -q "held by 3 of 3, longest web2 pid 22 .job two. for .*, 1st in line, waiting" "$TMP/waits.err"'
	kill -TERM "$(pid waits)"
}

@test "a shared lock that is busy says how many hold it, and who has held it longest" {
	use 1
	hold_permit 0 0 one web1 11 'job one' 2
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by web1 pid 11 'job one' for 2h0[0-9]m, 9h5[0-9]m left"
	hold_permit 0 0 two web2 22 'job two' 4
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by 2, longest web2 pid 22 'job two' for 4h0[0-9]m"
}

@test "who forgets -P for a semaphore is told, at once and in words" {
	local option
	use 1
	takes a -P 3 --label 'job a'
	wait_until 'entered a'
	for option in -x -r; do
		redlock run $option -n "$KEY" true
		expect 75 '' "redlock: $KEY: held by 1 of 3, $(uname -n) pid [0-9]+ 'job a' for [0-9.]+m?s: use -P 3, as they do"
	done
	redlock wait -w 0 "$KEY"
	expect 75 '' "redlock: $KEY: held by 1 of 3, $(uname -n) pid [0-9]+ 'job a' for [0-9.]+m?s"
	takes forgetful
	wait_until 'grep -q "held by 1 of 3, .*, 1st in line, waiting for [0-9]*m*s: use -P 3, as they do$" "$TMP/forgetful.err"'
	in_terminal session "stty cols 200; $REDLOCK run $KEY true"
	wait_until 'grep -q "held by 1 of 3, .*, 2nd in line, waiting for [0-9]*m*s: use -P 3, as they do" "$TMP/session.out"'
	kill -TERM "$(pid forgetful)" "$(pid session)"
	ends a
	done_well a
}

@test "who uses -P, and finds KEY held by one who has forgotten it, is told" {
	use 1
	takes a --label 'job a'
	wait_until 'entered a'
	redlock run -P 3 -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'job a' for [0-9.]+m?s: that one was taken without -P: use it everywhere or nowhere"
	takes b -P 3
	wait_until 'grep -q "held by .*, 1st in line, waiting for [0-9]*m*s: that one was taken without -P: use it everywhere or nowhere$" "$TMP/b.err"'
	ends a b
	finish a
	finish b
	[[ $status == 0 ]]
}
