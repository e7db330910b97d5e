#!/usr/bin/env bats
# -P N: up to N holders at a time, never more, each in a slot of its own.
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
	end=$((NOW + 3000))
	while ((deaths == 0 || NOW < end)); do
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

# bats test_tags=native
@test "never more than 1 holder of 1 permit, killed and stopped at random: one server" {
	never_more 1 1
}

# bats test_tags=native
@test "never more than 1 holder of 1 permit, killed and stopped at random: three servers" {
	never_more 1 3
}

# bats test_tags=native
@test "never more than 1 holder of 1 permit, killed and stopped at random: five servers" {
	never_more 1 5
}

# bats test_tags=native
@test "never more than 2 holders of 2 permits, killed and stopped at random: one server" {
	never_more 2 1
}

# bats test_tags=native
@test "never more than 2 holders of 2 permits, killed and stopped at random: three servers" {
	never_more 2 3
}

# bats test_tags=native
@test "never more than 2 holders of 2 permits, killed and stopped at random: five servers" {
	never_more 2 5
}

# bats test_tags=native
@test "never more than 3 holders of 3 permits, killed and stopped at random: one server" {
	never_more 3 1
}

# bats test_tags=native
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

@test "who comes one too many waits, and gets the next permit in its turn: one server" {
	in_turn 1
}

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

@test "a release takes what is left of others whose lease is over with it" {
	local kind
	use 1
	for kind in -s '-P 2'; do
		# shellcheck disable=SC2086 # two words
		redlock run $kind "$KEY" bash -c '
			redis-cli -s "$1/0/redis.sock" ZADD "$2" 5 dead
			redis-cli -s "$1/0/redis.sock" HSET "$3" holder:dead "since=1 -"
			redis-cli -s "$1/0/redis.sock" PEXPIRE "$2" 600000' - "$SERVERS" "$KEY" "$(record)"
		[[ $status == 0 ]]
		nothing_left 0
		[[ $(rcli 0 HEXISTS "$(record)" holder:dead) == 0 ]]
	done
}

@test "KEY is had at once when its last lease is over, though a longer one was given back before" {
	local option long i
	servers_start 3
	for option in '-P 2' -s; do
		# shellcheck disable=SC2086 # words
		redlock run --quarantine 0 $option "$KEY" true
		wait_until '(($(servers_with 1 HEXISTS "$(record)" began) == 3))'
		for i in 0 1 2; do knows_for "$i" 60; done
		# shellcheck disable=SC2086 # words
		long=$("$REDLOCK" acquire --quarantine 0 -q $option -t 10m \
			-S "$(server_url 0),$(server_url 1),$NOWHERE" "$KEY")
		# shellcheck disable=SC2086 # words
		redlock acquire --quarantine 0 -q $option -t 1s "$KEY"
		expect 0 '[0-9a-f]{32}'
		wait_until '(($(servers_with 1 HEXISTS "$(record)" "holder:$output") == 3))'
		redlock release "$KEY" "$long"
		expect 0
		wait_until '(($(rcli 0 ZCOUNT "$KEY" "$(server_ms 0)" +inf) + $(rcli 1 ZCOUNT "$KEY" "$(server_ms 1)" +inf) == 0))'
		# shellcheck disable=SC2086 # words
		redlock run --quarantine 0 -q $option -t 10m -w 5s "$KEY" true
		expect 0
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
	expect 0 5.25
	redlock run -s "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HGET "$(record)" permits
	expect 0 0
}

# minority_away COUNT DOWN: with a minority away both permits are had, and no third one.
minority_away() {
	local i up
	up=$(seq -s ' ' "$2" $(($1 - 1)))
	takes a -q -P 2 -t 4s --server-timeout 300ms
	takes b -q -P 2 -t 4s --server-timeout 300ms
	wait_until 'entered a b'
	# shellcheck disable=SC2086 # numbers
	wait_until "holders 2 $up"
	redlock run --quarantine 0 -n -P 2 --server-timeout 300ms "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	[[ ! -e $TMP/ran ]]
	takes c -q -P 2 -t 4s --server-timeout 300ms
	wait_until "queued 1 $up"
	renewals 2 "$2"
	[[ $(noted) != *+c* ]]
	ends a
	wait_until 'entered c'
	ends b c
	done_well a b c
	for i in $up; do wait_until "nothing_left $i"; done
}

@test "both of two permits are had with a minority down, and no third one: three servers" {
	servers_start 3
	server_kill 0
	minority_away 3 1
}

@test "both of two permits are had with a minority down, and no third one: five servers" {
	servers_start 5
	server_kill 0
	server_kill 1
	minority_away 5 2
}

@test "both of two permits are had with a minority silent, and no third one: three servers" {
	servers_start 3
	server_stop 0
	minority_away 3 1
}

@test "both of two permits are had with a minority silent, and no third one: five servers" {
	servers_start 5
	server_stop 0 1
	minority_away 5 2
}

@test "with a majority down there is no permit: 69" {
	servers_start 3
	server_kill 1
	server_kill 2
	redlock run --quarantine 0 -P 2 "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*"
	[[ ! -e $TMP/ran ]]
	wait_until 'nothing_left 0'
}

# a_slot_each PERMITS SERVERS: all slots are had, each by one, and each is told which.
a_slot_each() {
	local i all
	servers_start "$2"
	all=$(seq "$1")
	for ((i = 1; i <= $1; i++)); do
		spawn "h$i" "$REDLOCK" run --quarantine 0 -q -P "$1" "$KEY" sh -c 'echo "$REDLOCK_SLOT" >>"$1/slots"
			until [ -e "$1/end" ]; do sleep 0.05; done' - "$TMP"
	done
	wait_until "[[ \$(sort -n '$TMP/slots' 2>&1) == '$all' ]]"
	touch "$TMP/end"
	for ((i = 1; i <= $1; i++)); do finish "h$i" && expect 0; done
}

@test "each holder has a slot of its own, and is told which: one server" {
	a_slot_each 7 1
}

@test "each holder has a slot of its own, and is told which: three servers" {
	a_slot_each 7 3
}

@test "each holder has a slot of its own, and is told which: five servers" {
	a_slot_each 7 5
}

@test "REDLOCK_SLOT is that of KEY, and of nothing else" {
	local option
	use 1
	redlock run -P 1 "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
	expect 0 1
	for option in -x -s -r; do
		REDLOCK_SLOT=9 redlock run $option "$KEY" sh -c 'echo "${REDLOCK_SLOT-none}"'
		expect 0 none
		REDLOCK_SLOT=9 redlock acquire --format shell $option "$KEY$option"
		[[ $status == 0 && $output == *'unset REDLOCK_SLOT'* ]]
	done
	REDLOCK_SLOT=9 redlock run --also "$KEY-b" "$KEY" sh -c 'echo "${REDLOCK_SLOT-none}"'
	expect 0 none
	redlock acquire -P 1 --format shell "$KEY-c"
	[[ $status == 0 && $output == *$'REDLOCK_SLOT=\'1\'\nexport REDLOCK_SLOT'* ]]
	redlock acquire -P 1 --format json "$KEY-d"
	[[ $status == 0 && $(jq .slot <<<"$output") == 1 ]]
}

# knows_for I SECONDS: server I has known KEY for that long.
knows_for() {
	rcli "$1" HSET "$(record)" began $(($(server_ms "$1") - $2 * 1000))
}

# ghosts I SLOT...: somebody has these slots of three on server I, which has known KEY for a minute.
ghosts() {
	local i=$1 slot
	knows_for "$i" 60
	for slot in "${@:2}"; do
		rcli "$i" ZADD "$KEY" $(($(date_ms) + 36000000)) "ghost$slot"
		rcli "$i" PEXPIRE "$KEY" 36000000
		rcli "$i" HSET "$(record)" permits 3.25 fence 1700000000001 "slot:ghost$slot" "$slot" \
			"holder:ghost$slot" "since=$(server_ms "$i") -"$'\nhost=web\npid=1\ncommand=x\n' \
			"fence:ghost$slot" 1700000000001
	done
}

@test "votes for different slots are moved to one that is free" {
	local moved=0 i
	servers_start 3
	server_kill 2
	ghosts 0 1
	ghosts 1 2
	for i in {1..40}; do
		redlock run --quarantine 0 -v -n -P 3 "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
		[[ $status == 0 && $output == 3 ]]
		[[ $stderr != *'moved to slot 3'* ]] || ((++moved))
		((moved < 2)) || break
	done
	((moved == 2))
	holders 1 0 1
}

@test "votes for different slots are no permit, and are given back" {
	local i
	servers_start 3
	server_kill 2
	ghosts 0 1 3
	ghosts 1 2 3
	for i in {1..5}; do
		redlock run --quarantine 0 -n -P 3 --server-timeout $((100 * SLOW))ms "$KEY" touch "$TMP/ran"
		expect 75 '' "redlock: $KEY: others try to get it, too, and nobody has enough votes"
	done
	[[ ! -e $TMP/ran ]]
	holders 2 0 1
}

@test "if all permits are held, each on another majority, the message says by whom" {
	local i slot
	servers_start 3
	for i in 0 1 2; do
		for slot in 1 2 3; do
			((slot == i + 1)) || {
				hold_permit "$i" 3 "token$slot" "web$slot" "1$slot" "job $slot" "$slot"
				rcli "$i" HSET "$(record)" "slot:token$slot" "$slot"
			}
		done
		knows_for "$i" 60
	done >/dev/null
	redlock run --quarantine 0 -n -P 3 --server-timeout $((100 * SLOW))ms "$KEY" true
	expect 75 '' "redlock: $KEY: held by 3 of 3, longest web3 pid 13 'job 3' for 3h0[0-9]m"
	redlock run --quarantine 0 -w 1 -P 3 --server-timeout $((100 * SLOW))ms "$KEY" true
	expect 75 '' "redlock: $KEY: held by 3 of 3, longest web3 pid 13 'job 3' for 3h0[0-9]m"
}

@test "without -w, votes for different slots are asked for again for longer than a round" {
	local start i
	servers_start 3
	server_kill 2
	ghosts 0 1 3
	ghosts 1 2 3
	start=$NOW
	spawn run "$REDLOCK" run --quarantine 0 -n -P 3 --server-timeout 1s "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
	wait_until "((NOW - $start > 2500))"
	is_running run
	for i in 0 1; do "$REDLOCK" release -S "$(server_url "$i")" "$KEY" ghost3; done
	finish run
	expect 0 3
}

@test "a server that was not needed gets the slot that the others have given" {
	local i
	for i in {1..6}; do
		[[ $i == 1 ]] && servers_start 3 && ghosts 0 1 && ghosts 1 && ghosts 2
		redlock run --quarantine 0 -n -P 3 "$KEY" bash -c '
			slot=$REDLOCK_SLOT
			for i in 0 1 2; do
				[[ $slot$i != 10 ]] || continue # a ghost has it
				has=$(redis-cli -s "$SERVERS/$i/redis.sock" HGET "$1" "slot:$REDLOCK_TOKEN")
				((has % (1 << 20) == slot)) || exit 3
			done' - "$(record)"
		expect 0
	done
}

# slot_on I TOKEN: its slot on server I.
slot_on() {
	echo $(($(rcli "$1" HGET "$(record)" "slot:$2") % (1 << 20)))
}

# gets_theirs TOKEN: server 2 has the token in the slot 2 that the others gave it.
gets_theirs() {
	wait_until "[[ \$(slot_on 2 $1) == 2 ]]"
	[[ $(slot_on 0 "$1")$(slot_on 1 "$1") == 22 ]]
	redlock release "$KEY" "$1"
	expect 0
}

@test "a server whose grant does not count gets the slot of the others, too" {
	local i
	servers_start 3
	ghosts 0 1 3
	ghosts 1 1 3
	for i in {1..6}; do
		redlock acquire --quarantine 0 -P 3 -t 10m "$KEY"
		expect 0 '[0-9a-f]{32}'
		gets_theirs "$output"
	done
}

@test "a server that was silent gets the slot of the others, too" {
	local i
	servers_start 3
	ghosts 0 1 3
	ghosts 1 1 3
	for i in {1..6}; do
		server_stop 2
		redlock acquire --quarantine 0 -P 3 -t 10m "$KEY"
		expect 0 '[0-9a-f]{32}'
		server_continue 2
		gets_theirs "$output"
	done
}

# forgotten: of three servers 0 knows that $token has $slot, 1 has forgotten it, and 2 has never heard of it. No
# server is too young to vote.
forgotten() {
	servers_start 3 --appendonly yes --appendfsync always
	token=$("$REDLOCK" acquire -P 2 -t 10m "$KEY")
	wait_until 'holders 1 0 1 2'
	slot=$(slot_on 0 "$token")
	"$REDLOCK" release -S "$(server_url 2)" "$KEY" "$token"
	rcli 1 FLUSHALL
	"$REDLOCK" run -S "$(server_url 1)" -P 2 "$KEY" true
}

# had_once: nobody else gets $slot, and the other one is free.
had_once() {
	local i
	for i in {1..12}; do
		redlock run -n -P 2 -t 5s "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
		expect 0 $((3 - slot))
	done
}

@test "a slot is not had twice if its lease is longer, and one of three servers has forgotten it" {
	forgotten
	knows_for 0 60
	knows_for 1 30 # longer than the ttl below
	knows_for 2 60
	had_once
}

@test "a slot is not had twice if records are of one age, and one of three servers has forgotten it" {
	forgotten
	of_one_age "$token"
	had_once
}

@test "a waiter whose votes are moved goes on without a server that dies then" {
	local i
	servers_start 3
	proxies_start
	proxy 0 'delay 750'
	proxy 2 'delay 700' # it is not the only one that is far: else it is not waited for
	ghosts 0 2
	ghosts 1 1
	ghosts 2 1 2 3
	for _ in {1..30}; do
		# those who begin at slot 1 have 1 on server 0, and 2 on server 1
		spawn waits "$REDLOCK" run --quarantine 0 -v -P 3 -t 10m --server-timeout 5s \
			-S "$(proxy_url 0),$(server_url 1),$(proxy_url 2)" "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
		wait_until 'grep -q "$(literal "$(proxy_url 0)"): granted, slot" "$TMP/waits.err"'
		if grep -q "$(literal "$(proxy_url 0)"): granted, slot 1," "$TMP/waits.err"; then
			server_kill 0
			break
		fi
		kill -TERM "$(pid waits)"
		finish waits
	done
	wait_until 'grep -q "moved to slot 3" "$TMP/waits.err"'
	"$REDLOCK" release -S "$(server_url 2)" "$KEY" ghost2
	finish waits
	[[ $status == 0 && $output == 2 ]]
}

# waits_near NAME NEAR FAR: who waits with the URL NEAR for server 0 or 2, and FAR for the other.
waits_near() {
	spawn "$1" "$REDLOCK" run -q --quarantine 0 -P 3 -t 10m --server-timeout 5s \
		-S "$2,$(server_url 1),$3" "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
}

@test "of two who wait for the vote of a server that has forgotten, one gives way where it is for two slots" {
	servers_start 3
	proxies_start
	proxy 0 'delay 300'
	proxy 2 'delay 300'
	ghosts 0 2 3
	ghosts 2 2 3
	knows_for 0 3600
	knows_for 2 3600
	# each has slot 1 where it is near, and on server 1 only one of them has it
	waits_near a "$(server_url 0)" "$(proxy_url 2)"
	waits_near b "$(proxy_url 0)" "$(server_url 2)"
	finish a
	expect 0 1
	finish b
	expect 0 1
}

# asks TOKEN SLOT MOVES [FENCE]: asks server 0 for one of three slots; its answer, a value a line, in $said. With a
# FENCE it is put back; with $in_line it waits.
asks() {
	local sha record
	record=$(record)
	sha=$(sed -n 's/^#define BOTH_SHA1 "\(.*\)"$/\1/p' "${REDLOCK%/*}/scripts.h")
	said=$(rcli 0 EVALSHA "$sha" 5 "$KEY" "$record" "$record:queue" "$record:wishes" "$record:waits" 0 "$1" 60000 \
		"$(server_ms 0)" $'host=web1\npid=812\nuser=bob\nttl=60000\nbreak=stops\ncommand=x.sh\n' "${4-0}" zset \
		"3/$2/$3" - "${in_line-0}" "${in_line-0}" 0 '')
}

# said_slot SLOT: the last request was granted this slot; $fence is its fence.
said_slot() {
	local values
	mapfile -t values <<<"$said"
	fence=${values[1]}
	[[ ${values[0]} == 1 && ${values[4]} == "$1" ]] || { echo "not slot $1 but: $said" >&2 && false; }
}

@test "a request moves a token once, and none that came before it, or comes twice, moves it again" {
	use 1
	redlock run -P 3 "$KEY" true
	asks a 2 0
	said_slot 2
	asks a 3 0
	said_slot 2
	asks a 3 1
	said_slot 3
	asks a 2 0
	said_slot 3
	asks a 1 1
	said_slot 3
	asks b 1 0
	said_slot 1
	# it could not be moved, and is not moved by the same request later
	asks a 1 2
	said_slot 3
	redlock release "$KEY" b
	asks a 1 2
	said_slot 3
}

@test "a renewal settles a holder in its slot: no request that asks for a move comes late" {
	use 1
	redlock run -P 3 "$KEY" true
	asks a 2 0
	redlock extend "$KEY" a
	expect 0
	asks a 3 1
	said_slot 2
	asks a 3 2
	said_slot 2
	asks a 3 0 1700000000001
	said_slot 3
	asks a 1 2
	said_slot 3
}

@test "a message to a waiter has its slot, and the longest ttl of those who hold others" {
	local slot
	use 1
	redlock run -P 3 "$KEY" true
	for slot in 1 2 3; do asks "$slot" "$slot" 0; done
	redlock extend -t 10m "$KEY" 2
	spawn heard redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "$(record):w"
	wait_until 'grep -q subscribe "$TMP/heard.out"'
	in_line=1 asks w 2 0
	redlock release "$KEY" 3
	wait_until 'grep -qE "^1 [0-9]+ [0-9]+ - [0-9]+ 3 600000$" "$TMP/heard.out"'
}

@test "what is put back gets its slot, or none" {
	use 1
	redlock run -P 3 "$KEY" true
	asks a 2 0
	asks b 3 0
	asks a 1 3 1700000000001
	said_slot 1
	asks b 1 3 1700000000001
	[[ $said == 0$'\n'* ]]
	holders 1 0
	asks b 1 3 1700000000001
	[[ $said == 0$'\n'* ]]
	asks b 2 3 1700000000001
	said_slot 2
	holders 2 0
}

@test "whoever is moved to a slot gets a larger fence than its last holder" {
	local moved
	use 1
	redlock run -P 3 "$KEY" true
	asks a 2 0
	asks b 3 0
	said_slot 3
	redlock release "$KEY" b
	moved=$fence
	asks a 3 1
	said_slot 3
	((fence > moved))
	[[ $(rcli 0 HGET "$(record)" fence:a) == "$fence" ]]
}

@test "the slot of a holder is not had before its lease is over, nor kept after it" {
	use 1
	redlock acquire -P 1 -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	token=$output
	redlock run -n -P 1 "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	rcli 0 ZADD "$KEY" XX $(($(server_ms 0) + 500)) "$token"
	rcli 0 PEXPIRE "$KEY" 500
	redlock run -P 1 "$KEY" sh -c 'echo "$REDLOCK_SLOT"'
	expect 0 1
}

@test "what an earlier redlock holds without slots is refused in words" {
	use 1
	hold_permit 0 2 one web1 11 'job one' 2
	rcli 0 HSET "$(record)" permits 2
	redlock run -P 2 "$KEY" true
	expect 65 '' "redlock: $KEY: .*KEY is held by an earlier redlock, whose permits have no slots: install this version on all hosts"
}

@test "a holder of two permits on three servers keeps its lock without one server's entry, and gets it back there" {
	local token
	use 3
	takes stays -q -P 2 -t 3s
	takes other -q -P 2 -t 3s
	wait_until 'entered stays other'
	wait_until 'holders 2 0 1 2'
	token=$(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP/told.stays")
	[[ $(rcli 1 ZREM "$KEY" "$token") == 1 ]]
	wait_until 'holders 2 1'
	ends stays other
	done_well stays other
	wait_until 'nothing_left 0 1 2'
}

@test "a holder of two permits on three servers loses the lock with two servers' entries: 76" {
	local token
	use 3
	takes stays -q -P 2 -t 3s
	takes loses -q -P 2 -t 3s
	wait_until 'entered stays loses'
	wait_until 'holders 2 0 1 2'
	token=$(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP/told.loses")
	while is_running loses; do # until no renewal has put it back in between
		rcli 1 ZREM "$KEY" "$token"
		rcli 2 ZREM "$KEY" "$token"
	done
	finish loses
	expect 76 '' "redlock: $KEY: lock lost: .*: COMMAND is stopped"
	renewals 2
	ends stays
	done_well stays
	wait_until 'nothing_left 0 1 2'
}

# in_other_slot I TOKEN: server I has the token in the other slot of two.
in_other_slot() {
	local slot
	slot=$((3 - $(rcli "$1" HGET "$(record)" "slot:$2") % (1 << 20)))
	rcli "$1" HSET "$(record)" "slot:$2" "$slot"
}

@test "a renewal counts only servers where the token has its slot" {
	local token
	use 3
	token=$("$REDLOCK" acquire --quarantine 0 -q -P 2 -t 60s "$KEY")
	wait_until 'holders 1 0 1 2'
	in_other_slot 1 "$token"
	redlock extend "$KEY" "$token"
	expect 0
	rcli 2 DEL "$KEY"
	redlock extend "$KEY" "$token"
	expect 1 '' "redlock: $KEY: .*"
}

@test "a server where a holder has another slot gets its own at the next renewal" {
	local token slot
	use 3
	takes a -q -P 2 -t 3s
	wait_until 'entered a'
	wait_until 'holders 1 0 1 2'
	token=$(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP/told.a")
	slot=$(($(rcli 0 HGET "$(record)" "slot:$token") % (1 << 20)))
	in_other_slot 1 "$token"
	wait_until "(( \$(rcli 1 HGET '$(record)' 'slot:$token') % (1 << 20) == $slot ))"
	ends a
	done_well a
	wait_until 'nothing_left 0 1 2'
}

@test "extend and release of a permit go on with a minority down" {
	local token
	servers_start 3
	redlock acquire --quarantine 0 -q -P 2 "$KEY"
	expect 0 '[0-9a-f]{32}'
	token=$output
	server_kill 0
	redlock extend "$KEY" "$token"
	expect 0
	redlock release "$KEY" "$token"
	expect 0
	wait_until 'nothing_left 1 2'
	token=$("$REDLOCK" acquire --quarantine 0 -q -P 2 "$KEY")
	server_kill 1
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
	local before code=$1 want=$2 option
	before=$(rcli 0 --no-raw DUMP "$KEY")
	for option in -s '-P 1' '-P 2' '-P 100' -x -r; do
		# shellcheck disable=SC2086 # words
		redlock run -n $option "$KEY" touch "$TMP/ran"
		expect "$code" '' "redlock: $KEY: $want"
		# shellcheck disable=SC2086 # words
		redlock acquire -w 30ms $option "$KEY"
		expect "$code" '' "redlock: $KEY: $want"
	done
	redlock wait -w 30ms "$KEY"
	expect "$code" '' "redlock: $KEY: $want"
	redlock release "$KEY" ann
	# without an expiry it is data, and nobody holds it
	want='KEY is not a lock: it is a zset'
	[[ $code == 65 ]] || code=1 want="not held by this token: $(server_url 0): KEY is held by someone else"
	expect "$code" '' "redlock: $KEY: $want"
	redlock extend "$KEY" bob
	expect "$code" '' "redlock: $KEY: $want"
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
	[[ $(rcli 0 HGET "$(record)" permits) == 2.25 ]]
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

@test "of more holders than a refusal looks at one is named, and not called the longest" {
	use 1
	hold_permit 0 100 old web2 22 'job two' 4
	rcli 0 ZADD "$KEY" $(($(date_ms) + 37000000)) old # it ends last
	for ((i = 1; i < 50; i++)); do
		rcli 0 ZADD "$KEY" $(($(date_ms) + 36000000)) "token$i"
		rcli 0 HSET "$(record)" "slot:token$i" $((i + 1)) "holder:token$i" "$(described web1 11 'job one' 2)"
	done
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by 50 of 100, longest web2 pid 22 'job two' for 4h0[0-9]m: use -P 100, as they do"
	hold_permit 0 100 young web3 33 'job three' 1
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by 51 of 100, among them web[123] pid [123]+ 'job (one|three)' for [12]h0[0-9]m: use -P 100, as they do"
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
