#!/usr/bin/env bats
# redis+sentinel://: the lock is where a majority of the Sentinels says that the master is, now.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables

load ../lib/helper
load ../lib/cli
load ../lib/discovery

# a set that is left as it is
setup_file() {
	sentinels_start 1
}

# another_master: one more server, which is nobody's replica.
another_master() {
	server_new "$SERVER_COUNT" && server_ready "$SERVER_COUNT" && ((++SERVER_COUNT))
}

# leaves_none STATUS PATTERN [OPTION...]: takes_none, and KEY is held nowhere.
leaves_none() {
	local i
	takes_none "$@" || return
	for ((i = 0; i < SERVER_COUNT; i++)); do wait_until "key_free $i" || return; done
}

# ---------------------------------------------------------------- one lock on the master

@test "KEY is taken on the master, and excludes those who name the master itself" {
	local token
	redlock acquire -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	token=$output
	key_held_by "$token" 0
	redlock acquire -n -S "$(server_url 0)" "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock release -S "$(server_url 0)" "$KEY" "$token"
	expect 0
	locks 0
}

@test "every command finds the master" {
	every_command_finds 0 "$(literal "$(sentinel_url | sed 's/,/:26379,/g; s,/main,:26379/main,')")"
	redlock doctor
	[[ $status == 0 && $output == *redis+sentinel://*": ok, at $(address 0):6379, "@(Redis|Valkey)" "* ]]
}

@test "whoever waits on the master is handed the lock, by whatever URL" {
	SERVER_COUNT=1
	take -S "$(server_url 0)"
	line_up a
	line_up b -S "$(server_url 0)"
	line_up c -s
	give_back
	all_end_well a b c
	ran a b c
	assert_exclusive "$TMP/stamps" 3
	wait_until 'no_trace 0'
}

@test "a database is chosen on the master" {
	redlock acquire -n -S "$(sentinel_url /main/3)" "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 -n 3 GET "$KEY") == "$output" ]]
	key_free 0
}

@test "it may be one of a quorum, beside servers that are named themselves" {
	local token
	sentinels_start 0
	another_master && another_master
	REDLOCK_SERVERS=$(server_urls 1),$REDLOCK_SERVERS,$(server_urls 2)
	token=$("$REDLOCK" acquire --quarantine 0 "$KEY")
	wait_until "((\$(servers_with $token GET $KEY) >= 2))"
	redlock release "$KEY" "$token"
	expect 0
	wait_until 'key_free 0 1 2'
	server_kill 2
	locks 0 --quarantine 0
	locks 1 --quarantine 0
	server_launch 2
	server_ready 2
	sentinels server_kill 0 1
	# a KEY that nobody knows: the server that was restarted has forgotten the other
	KEY=$KEY.new locks 1 --quarantine 0
	server_kill 2
	redlock acquire -n --quarantine 0 "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*: redis\\+sentinel://.*; $(server_url 2): Connection refused.*"
	wait_until 'key_free 0 1'
}

@test "beside its master's own address it is the same server, and no quorum" {
	leaves_none 78 '.*are the same server.*' --quarantine 0 -S "$(server_url 0)" -S "$(sentinel_url)"
}

@test "a file and the environment name it as the command line does" {
	echo "server = $REDLOCK_SERVERS" >"$TMP/lock.conf"
	(unset REDLOCK_SERVERS && locks 0 --config "$TMP/lock.conf")
	printf '[there]\nserver = %s\n' "$REDLOCK_SERVERS" >"$TMP/lock.conf"
	REDLOCK_SERVERS=$NOWHERE locks 0 --config "$TMP/lock.conf" --set there
	REDLOCK_SERVERS=$NOWHERE locks 0 -S "$(sentinel_url)"
}

@test "the example of redlock.conf(5) names the master by its Sentinels" {
	conf_example "s|//s1,s2,s3/|//$(sentinel_url / | sed 's|.*//||')|"
	REDLOCK_SERVERS=$NOWHERE locks 0 --config "$TMP/redlock.conf" --set main
}

@test "what is no such URL is refused, and no Sentinel asked" {
	local url
	for url in redis+sentinel://h redis+sentinel://h/ redis+sentinel:///main redis+sentinel://h,/main redis+sentinel://,h/main \
		redis+sentinel://h:0/main redis+sentinel://h:65536/main redis+sentinel://h/main/x redis+sentinel://h/main/-1 \
		redis+sentinel://h/main/65536 redis+sentinel://h/a%20b redis+sentinel://h,h/main redis+sentinel://h,h:26379/main \
		redis+sentinel://1,2,3,4,5,6,7,8,9/main 'redis+sentinel://h/ma\in' redis+sentinels://h/main \
		redis+cluster:// 'redis+cluster://h,' redis+cluster://h:0 redis+cluster://h/1 redis+cluster://h,h:6379 \
		redis+cluster://1,2,3,4,5,6,7,8,9 redis+sentinel://u:hunter2@/main redis+cluster://u:hunter2@h:x; do
		refuses 64 'server .*redis' run -S "$url" "$KEY" true
		run -1 shows_secret "$TMP/refused.err"
	done
	no_row_failed
}

# ---------------------------------------------------------------- what Sentinels say

@test "whichever Sentinel is stopped or gone, KEY is taken" {
	local i
	sentinels_start 0
	for i in 0 1 2; do
		sentinels server_stop "$i"
		locks 0
		rm -r "$PLACES"
		locks 0
		sentinels server_continue "$i"
	done
	sentinels server_kill 1
	locks 0
	rm -r "$PLACES"
	locks 0
}

@test "a Sentinel that is stopped is not felt, whether it is remembered where the master is or not" {
	local i up=() down=() known_up=() known_down=()
	sentinels_start 0
	for i in 0 1 2 0 1 2; do
		rm -rf "$PLACES"
		took up
		took known_up
		sentinels server_stop "$i"
		took known_down
		rm -r "$PLACES"
		took down
		sentinels server_continue "$i"
	done
	echo "medians: $(median "${up[@]}") us with all, $(median "${down[@]}") us without one"
	(($(median "${down[@]}") < 3 * $(median "${up[@]}") + 150000))
	echo "known: $(median "${known_up[@]}") us with all, $(median "${known_down[@]}") us without one"
	(($(median "${known_down[@]}") < 3 * $(median "${known_up[@]}") + 150000))
}

@test "with a majority of Sentinels gone it is 69 at once, with the causes, wherever the master was" {
	sentinels_start 0
	sentinels server_kill 0 2
	leaves_none 69 "redis\\+sentinel://.*/main: .*$(sentinel_address 0).*Connection refused.*"
	sentinels_start 0
	locks 0
	[[ -e $PLACES ]]
	sentinels server_kill 1 2
	# (it is not said to be where it was)
	leaves_none 69 "redis\\+sentinel://[^ ]*/main: no majority of its Sentinels names a master: .*$(sentinel_address 1).*Connection refused.*"
}

@test "with a majority of Sentinels stopped it is 69 after --server-timeout, and they are told" {
	local start
	sentinels_start 0
	sentinels server_stop 0 1
	start=$NOW
	leaves_none 69 "redis\\+sentinel://.*/main: .*$(sentinel_address 0):26379: no answer.*$(sentinel_address 1):26379: no answer.*" --server-timeout "$((300 * SLOW))ms"
	((NOW - start >= 290))
	[[ ! $(queue_at 0) ]]
}

@test "Sentinels that are stopped are waited for once in a status, whatever the number of KEYs" {
	local start
	sentinels_start 0
	sentinels server_stop 1 2
	start=$NOW
	redlock status --server-timeout 2s "$KEY" two three four five six seven eight
	((NOW - start < 8000))
	[[ $status == 69 && $(grep -c ': no majority of its Sentinels names a master: ' <<<"$stderr") == 8 ]]
}

@test "two Sentinels are no majority of their own when one of them is gone" {
	local both
	sentinels_start 0
	both="redis+sentinel://$(sentinel_address 0),$(sentinel_address 1)/main"
	locks 0 -S "$both"
	sentinels server_kill 1
	leaves_none 69 "redis\\+sentinel://.*/main: .*$(sentinel_address 1).*Connection refused.*" -S "$both"
	locks 0 -S "redis+sentinel://$(sentinel_address 0)/main"
}

@test "a master that the Sentinels do not know is said to be unknown" {
	leaves_none 69 'redis\+sentinel://.*/nobody: .*does not know a master of that name.*' -S "$(sentinel_url /nobody)"
	leaves_none 69 'redis\+sentinel://.*/Main: .*does not know a master of that name.*' -S "$(sentinel_url /Main)"
}

@test "Sentinels that name a master that is gone are not asked without end" {
	seeds_start 1
	# a name that is not known is none to wait for
	seed_says 0 SENTINEL '*-1\r\n'
	redlock run -w 60s -S "redis+sentinel://$(seed_address 0)/main" "$KEY" true
	expect 69 '' "redlock: $KEY: .*does not know a master of that name.*"
	seed_says 0 SENTINEL "$(place 127.0.0.1 1)"
	redlock run -w 2s -S "redis+sentinel://$(seed_address 0)/main" "$KEY" true
	expect 69 '' "redlock: $KEY: still waiting: .*
redlock: $KEY: .*"
	(($(grep -c SENTINEL "$SEEDS/0.log") < 80))
}

@test "a master that is removed and named anew meanwhile is waited for" {
	local others token
	sentinels_start 0
	token=$("$REDLOCK" acquire -t 60s "$KEY")
	spawn waiter "$REDLOCK" run -w 60s "$KEY" echo ran
	wait_until 'queued 1 0'
	sentinels_each SENTINEL REMOVE main
	others="no majority of its Sentinels names a master: .*it does not know a master of that name"
	wait_until '[[ $(<"$TMP/waiter.err") == *"does not know a master"* ]]'
	# one that begins now cannot know that there ever was one
	takes_none 69 "redis\\+sentinel://.*: $others.*: is the name after the last / in -S right\\?"
	all_name 0
	give_back
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: redis\\+sentinel://.*: $others.*: they knew it before; SENTINEL MONITOR there names it again"
}

@test "a Sentinel whose answer could change nothing is said not to have been waited for" {
	local i
	seeds_start 3
	for i in 0 1; do seed_says "$i" SENTINEL '*-1\r\n'; done
	seed_says 2 SENTINEL ''
	takes_none 69 "redis\\+sentinel://.*, $(seed_address 1): it does not know a master of that name, $(seed_address 2): not waited for: is the name .*" \
		-S "redis+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main" -t 5m --server-timeout 60s
	# it is silent when the time is over
	seed_says 1 SENTINEL ''
	takes_none 69 "redis\\+sentinel://.*, $(seed_address 1): no answer, $(seed_address 2): no answer: .*" \
		-S "redis+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main" --server-timeout "$((500 * SLOW))ms"
}

@test "of eight Sentinels as many are told as there is room for, each in whole, and the others are counted" {
	local i hosts='' said told more
	seeds_start 8
	said=$(printf 'x%.0s' {1..90})
	for i in {0..7}; do
		seed_says "$i" SENTINEL "-ERR $said\r\n"
		hosts+=,$(seed_address "$i")
	done
	takes_none 69 "redis\\+sentinel://[^ ]*: no majority of its Sentinels names a master((: |, )127\.0\.0\.1:[0-9]+: it refused the request \(ERR $said\))+, and [1-7] more: see redlock doctor, .*" \
		-S "redis+sentinel://${hosts#,}/main"
	told=$(grep -o "ERR $said" <<<"$stderr" | wc -l)
	more=$(grep -o 'and [1-7] more' <<<"$stderr" | tr -cd 1-7)
	((told > 1 && told + more == 8))
}

@test "one Sentinel that knows the master is not enough where two do not" {
	sentinels_start 0
	sentinels rcli 0 SENTINEL REMOVE main
	locks 0
	sentinels rcli 2 SENTINEL REMOVE main
	leaves_none 69 'redis\+sentinel://.*/main: .*'
}

@test "Sentinels that disagree are no majority: 69, and KEY is held on none of those that they name" {
	local i
	sentinels_start 0
	another_master && another_master
	for i in 1 2; do sentinel_names "$i" "$i"; done
	leaves_none 69 "redis\\+sentinel://.*/main: .*$(sentinel_address 0):26379: $(address 0):6379, $(
		)$(sentinel_address 1):26379: $(address 1):6379, .*"
	sentinel_names 1 0
	locks 0
	sentinel_names 1 1
	# nor on the one where it was before, which is asked in the meantime
	leaves_none 69 "redis\\+sentinel://.*/main: .*$(sentinel_address 2):26379: $(address 2):6379.*"
}

@test "a Sentinel that is left behind with an old master misleads nobody, whoever answers first" {
	local token
	sentinels_start 0
	another_master
	sentinel_names 0 1 && sentinel_names 1 1
	token=$("$REDLOCK" acquire -n "$KEY")
	key_held_by "$token" 1
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	sentinels proxies_start
	sentinels proxy 0 hold
	sentinels proxy 1 hold
	spawn second "$REDLOCK" acquire -n --server-timeout 60s \
		-S "redis+sentinel://$(proxy_addresses)/main" "$KEY"
	wait_until 'proxy_did 0 hold && proxy_did 1 hold && has_answered 2'
	is_running second
	sentinels proxy 0 pass
	sentinels proxy 1 pass
	finish second
	expect 75 '' "redlock: $KEY: held by .*"
	key_free 0
	redlock release "$KEY" "$token"
	expect 0
}

# has_answered SENTINEL: to somebody who waits for the others.
has_answered() {
	[[ $(sentinels rcli "$1" CLIENT LIST) =~ cmd=sentinel(\|get-master-addr-by-name)?' ' ]]
}

@test "a wait for Sentinels that are silent ends with the signal that ends it" {
	seeds_start 1
	seed_says 0 SENTINEL ''
	spawn waiter "$REDLOCK" acquire --server-timeout 60s -w 60s -S "redis+sentinel://$(seed_address 0)/main" "$KEY"
	wait_until 'grep SENTINEL "$SEEDS/0.log"'
	kill -TERM "$(pid waiter)"
	finish waiter
	expect 143
}

@test "with -w Sentinels that are away are asked until they are back" {
	sentinels_start 0
	sentinels server_stop 0 1
	spawn waiter "$REDLOCK" run --server-timeout "$((300 * SLOW))ms" -w 60s "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting: "* ]]'
	sentinels server_continue 0
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: .*"
}

@test "whatever Sentinels say that makes no sense is 69 with one line, in time" {
	local reply long
	long=$(printf 'a%.0s' {1..300})
	seeds_start 1
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=redis+sentinel://$(seed_address 0)/main
	for reply in "$(place 127.0.0.1 0)" "$(place 127.0.0.1 65536)" "$(place 127.0.0.1 -1)" "$(place 127.0.0.1 six)" \
		"$(place 127.0.0.1 '')" "$(place '' 6379)" "$(place "$long" 6379)" "$(place 127.0.0.1 "$long")" \
		'*2\r\n$9\r\n\x1b]0;boo\x07\x0a\r\n$4\r\n6379\r\n' '*2\r\n$7\r\n\x1b[31mno\r\n$4\r\n6379\r\n' \
		'*2\r\n$11\r\n127.0.0.1\0x\r\n$4\r\n6379\r\n' "$(place 'a b' 6379)" "$(place '127.0.0.1 ' 6379)" \
		'*2\r\n$-1\r\n$-1\r\n' '*2\r\n:1\r\n:2\r\n' '*-1\r\n' '$-1\r\n' '*0\r\n' '*1\r\n$9\r\n127.0.0.1\r\n' \
		'*3\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n$4\r\n6379\r\n' '*2\r\n*1\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n' \
		'+OK\r\n' ':1\r\n' '$4\r\n6379\r\n' '-ERR \x1b[31mno\r\n' '-IDONTKNOW Sentinel is not ready\r\n' \
		'HTTP/1.1 400 Bad Request\r\n\r\n' '*1000000000\r\n' '$1000000000\r\n' '*2\r\n$9\r\n127' ''; do
		seed_says 0 SENTINEL "$reply"
		refuses 69 "^redlock: $KEY: redis\\+sentinel://" run -n --server-timeout "$((500 * SLOW))ms" "$KEY" touch "$TMP/ran"
	done
	no_row_failed
	[[ ! -e $TMP/ran && ! $(find "$PLACES" -name 'places-*') ]]
	# and so where it means something
	seed_says 0 SENTINEL "$(place "$(address 0)" 6379)"
	locks 0
}

@test "a master may have a name, or an IPv6 address" {
	local port
	seeds_start 1
	servers_start_tcp 1
	REDLOCK_SERVERS=redis+sentinel://$(seed_address 0)/main
	port=$(<"$SERVERS/0/port")
	seed_says 0 SENTINEL "$(place localhost "$port")"
	locks 0 --server-timeout "${SLOW}s"
	locks 0 --server-timeout "${SLOW}s"
	rm -r "$PLACES"
	seed_says 0 SENTINEL "$(place redlock.invalid "$port")"
	leaves_none 69 'redis\+sentinel://.*'
	[[ -e /proc/net/if_inet6 && $(</proc/net/if_inet6) == *0000000000000001*lo* ]] || return 0
	rcli 0 CONFIG SET bind ::1
	seed_says 0 SENTINEL "$(place ::1 "$port")"
	locks 0 --server-timeout "${SLOW}s"
	locks 0 --server-timeout "${SLOW}s"
	rm -r "$PLACES"
	locks 0 -S "redis+sentinel://localhost:$(<"$SEEDS/0.port")/main"
}

# ---------------------------------------------------------------- failovers

@test "a command goes on while the Sentinels make a replica the master, and back" {
	sentinels_start 1
	sentinels_hurry
	start 0 -t 9s
	caught_up 1 0
	fail_over 0 1
	renewals 1 1
	caught_up 0 1
	fail_over 1 0
	goes_on 0
}

@test "a master that is read only is asked again where the Sentinels name another, however it says so" {
	local reply
	seeds_start 2
	servers_start_tcp 1
	export REDLOCK_SERVERS="redis+sentinel://$(seed_address 0)/main"
	for reply in "-READONLY You can't write against a read only replica." \
		"-ERR Error running script (call to f_1): @user_script:7: -READONLY You can't write against a read only replica."; do
		seed_says 0 SENTINEL "$(place 127.0.0.1 "$(<"$SEEDS/1.port")")"
		seed_says 1 EVAL "$reply\r\n" EVALSHA "$reply\r\n"
		: >"$SEEDS/1.log"
		spawn waiter "$REDLOCK" run --server-timeout "${SLOW}s" -w 60s "$KEY" echo ran
		wait_until '(($(grep -c "EVAL" "$SEEDS/1.log") > 4))'
		seed_says 0 SENTINEL "$(place 127.0.0.1 "$(<"$SERVERS/0/port")")"
		finish waiter
		expect 0 ran "(redlock: $KEY: still waiting: .*READONLY.*)?"
	done
}

@test "a command goes on when the master is killed and a replica has its data" {
	sentinels_start 1
	sentinels_hurry
	start 0 -t 15s
	caught_up 1 0
	fail 0 1
	goes_on 1
}

# falls_behind I: from now on this replica hears nothing of its master.
falls_behind() {
	rcli "$1" CONFIG SET masteruser nobody masterauth wrong
	rcli 0 CLIENT KILL TYPE replica
	wait_until "[[ \$(rcli $1 INFO replication) == *master_link_status:down* ]]"
}

# forgets I: it has lost what it knew of KEY, too.
forgets() {
	falls_behind "$1"
	rcli "$1" CONFIG SET replica-read-only no
	rcli "$1" DEL "$KEY" "$(record)"
	rcli "$1" CONFIG SET replica-read-only yes
}

# waits MS: so long the Sentinels wait for a silent master.
waits() {
	sentinels_each SENTINEL SET main down-after-milliseconds "$1"
}

@test "doctor warns of Sentinels that wait longer for a master than a run does" {
	local says="redis\\+sentinel://.*/main: warning: its Sentinels wait" i
	sentinels_start 1 --appendonly yes
	waits 30000
	redlock doctor
	[[ $status == 0 && $output =~ $says' 30s for a silent master, too long for a run with a ttl of 30s: set down-after-milliseconds to 12000 at most, or use -t 66s' ]]
	redlock doctor -t 5s
	[[ $status == 0 && $output =~ $says' 30s for a silent master, too long for a run with a ttl of 5s: use -t 66s' ]]
	redlock doctor -q -t 66s
	[[ $status == 0 && $output != *Sentinels* ]]
	waits 12000
	redlock doctor -q
	[[ $status == 0 && $output != *Sentinels* ]]
	waits 12001
	redlock doctor -q
	[[ $status == 0 && $output == *Sentinels* ]]
	# as redlock-servers(7) would have it
	page_block redlock-servers.7 'Sy "shortest ttl" Ta Sy down-after-milliseconds' >"$TMP/set.sh"
	for i in 0 1 2; do
		[[ $(sed "s/^redis-cli/& -h $(sentinel_address "$i")/" "$TMP/set.sh" | sh) == OK ]]
	done
	redlock doctor -q
	[[ $status == 0 && $output != *Sentinels* ]]
	# one of them is enough, as it may be that one whose vote is needed
	waits 2000
	sentinels rcli 1 SENTINEL SET main down-after-milliseconds 30000
	redlock doctor -q
	[[ $status == 0 && $output == *'Sentinels wait 30s'* ]]
	# who does not say it is not waited for after the time of a round
	sentinels server_stop 1
	redlock doctor -q
	[[ $status == 0 && $output != *'Sentinels wait'* && $output == *'1 of 3 Sentinels did not answer: '* ]]
	sentinels server_continue 1
	redlock doctor --format json -q
	[[ $(jq -r '.servers[0].warnings[]' <<<"$output") == *'Sentinels wait 30s'* ]]
}

@test "a lock that was released is held again until its lease ends, where the new master has not heard of it" {
	sentinels_start 1
	sentinels_hurry
	redlock acquire -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	caught_up 1 0
	rcli 1 CONFIG SET masteruser nobody masterauth wrong
	rcli 0 CLIENT KILL TYPE replica
	wait_until "[[ \$(rcli 1 INFO replication) == *master_link_status:down* ]]"
	redlock release "$KEY" "$output"
	expect 0
	fail 0 1
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	(($(rcli 1 PTTL "$KEY") <= 60000))
}

@test "a command is stopped before its lease ends when the new master has not got its lock" {
	local killed
	sentinels_start 1
	sentinels_hurry
	start 0 -t 9s
	forgets 1
	killed=$NOW
	fail 0 1
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
	(($(last_beat "$TMP/stamps") - killed < 9000))
	key_free 1
}

@test "a command is stopped before its lease ends when the master is gone and no other is found" {
	local killed
	sentinels_start 0
	start 0 -t 3s
	killed=$NOW
	server_kill 0
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	(($(last_beat "$TMP/stamps") - killed < 3000))
}

@test "a command goes on while all Sentinels are gone, and while the master is connected to again" {
	sentinels_start 0
	start 0 -t 3s
	sentinels server_kill 0 1
	renewals 2
	is_running run
	sentinel_launch 0
	sentinel_launch 1
	sentinel_ready 0
	sentinel_ready 1
	rcli 0 CLIENT KILL TYPE normal SKIPME yes
	goes_on 0
}

# taken_over: server 1, a replica, is the master for all Sentinels; server 0 has not been told, and goes on.
taken_over() {
	caught_up 1 0
	rcli 1 REPLICAOF NO ONE
	all_name 1
}

@test "a command goes on where the Sentinels have another master, with its data, and the old one does as well" {
	sentinels_start 1
	start 0 -t 6s
	taken_over
	goes_on 1
}

@test "a command is stopped before its lease ends when it is renewed by a master that the Sentinels have given up" {
	local given_up
	sentinels_start 0
	another_master
	start 0 -t 3s
	all_name 1
	given_up=$NOW
	"$REDLOCK" acquire -n -t 60s "$KEY"
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
	(($(last_beat "$TMP/stamps") - given_up < 3000))
}

@test "a command goes on while a minority of the Sentinels names another master, and the others say nothing" {
	local i
	sentinels_start 0
	another_master
	seeds_start 3
	for i in 0 1 2; do seed_says "$i" SENTINEL "$(place "$(address 0)" 6379)"; done
	REDLOCK_SERVERS=redis+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main
	start 0 -t 3s
	seed_says 0 SENTINEL "$(place "$(address 1)" 6379)"
	for i in 1 2; do seed_says "$i" SENTINEL ''; done
	renewals 3
	for i in 1 2; do seed_says "$i" SENTINEL "$(place "$(address 0)" 6379)"; done
	goes_on 0
}

@test "what a master that hung answers after it was replaced does not count" {
	sentinels_start 1
	locks 0
	caught_up 1 0
	server_stop 0
	spawn acquire "$REDLOCK" acquire -n -t 60s --server-timeout 60s "$KEY"
	# its request is there, unread, and then for longer than answers usually take
	wait_until 'ss -tnH src "$(address 0)" | awk "\$2 > 400" | grep -q .'
	pause 1.2
	rcli 1 REPLICAOF NO ONE
	all_name 1
	is_running acquire
	server_continue 0
	finish acquire
	expect 0 '[0-9a-f]{32}'
	key_held_by "$output" 1
}

@test "a message of a master that hung and was replaced starts nobody" {
	sentinels_start 1
	take_there
	wait_turn a
	wait_until 'queued 1 0 && listening 1 0'
	caught_up 1 0
	server_stop 0
	spawn release "$REDLOCK" release --server-timeout 60s -S "$(server_url 0)" "$KEY" "$token"
	wait_until 'ss -tnH src "$(address 0)" | awk "\$2 > 300" | grep -q .'
	pause 1.2
	rcli 1 REPLICAOF NO ONE
	all_name 1
	server_continue 0
	finish release
	expect 0
	wait_until 'listening 1 1'
	key_held_by "$token" 1
	run ! ran a
	give_back
	all_are_served a
	ran a
}

# has_unread NAME: server 0 has not read what this process has sent to it.
has_unread() {
	ss -tnpH | awk -v process="pid=$(pid "$1")," -v server="$(address 0):" '
		index($5, server) == 1 && index($0, process) { sent[$4] }
		index($4, server) == 1 && $2 > 0 { unread[$5] }
		END { for (end in sent) if (end in unread) exit 0; exit 1 }'
}

# ticks NAME: hundredths of a second for which this process has had a processor.
ticks() {
	local stat
	stat=$(<"/proc/$(pid "$1")/stat")
	read -ra stat <<<"${stat##*) }"
	echo $((stat[11] + stat[12]))
}

@test "a late answer of a master, while the Sentinels refuse, keeps no waiter busy" {
	local began ticks
	sentinels_start 0
	take_there
	wait_turn a -t 9s
	wait_until 'queued 1 0 && listening 1 0'
	server_stop 0
	wait_until 'has_unread a'
	sentinels server_kill 0 1 2
	pause 1.2 # longer than answers usually take
	ticks=$(ticks a)
	began=$NOW
	server_continue 0
	wait_until '! has_unread a && ((NOW - began > 2000))'
	(($(ticks a) - ticks < (NOW - began) / 50))
	for i in 0 1 2; do sentinel_launch "$i"; done
	for i in 0 1 2; do sentinel_ready "$i"; done
	give_back
	all_are_served a
}

@test "whoever waits on a master that the Sentinels have given up waits on the other one soon" {
	sentinels_start 1
	take_there
	wait_turn a
	wait_until 'queued 1 0 && listening 1 0'
	taken_over
	wait_until 'listening 1 1 && listening 0 0' 30
	give_back
	all_are_served a
	wait_until 'no_trace 1'
}

# take_there: $token has KEY, for a minute.
take_there() {
	token=$("$REDLOCK" acquire -t 60s "$KEY")
}

@test "whoever waits is served behind a failover, in turn" {
	sentinels_start 1
	sentinels_hurry
	touch "$TMP/a.stay"
	wait_turn a -t 30s
	wait_until 'stamped "$TMP/stamps"'
	wait_turn b -t 30s
	wait_until 'queued 1 0'
	wait_turn c -t 30s
	wait_until 'queued 2 0'
	spawn wait "$REDLOCK" wait "$KEY"
	wait_until 'queued 3 0'
	caught_up 1 0
	fail 0 1
	wait_until 'listening 3 1'
	queued 3 1
	touch "$TMP/a.end"
	all_are_served a b c wait
	ran a b c
	assert_exclusive "$TMP/stamps" 3
	wait_until 'no_trace 1'
}

@test "whoever waits is served where nobody on the new master has heard of them" {
	sentinels_start 1
	sentinels_hurry
	take
	wait_turn b -t 9s
	wait_until 'queued 1 0'
	forgets 1
	rcli 1 CONFIG SET replica-read-only no
	rcli 1 DEL "$(record):queue" "$(record):wishes"
	fail 0 1
	all_are_served b
	ran b
	wait_until 'no_trace 1'
}

@test "fences rise across failovers, with the data and without" {
	local fences=()
	sentinels_start 1
	sentinels_hurry
	took_fence
	took_fence
	caught_up 1 0
	fail_over 0 1
	took_fence
	rcli 1 DEL "$(record)" # as where it had not come through
	caught_up 0 1
	fail_over 1 0
	took_fence
	[[ $(printf '%s\n' "${fences[@]}" | sort -n | uniq | xargs) == "${fences[*]}" ]]
}

@test "fences rise when a replica that has fallen behind becomes the master" {
	local fences=()
	sentinels_start 1
	sentinels_hurry
	took_fence
	caught_up 1 0
	falls_behind 1
	took_fence
	took_fence
	took_fence
	fail 0 1
	took_fence
	took_fence
	[[ $(printf '%s\n' "${fences[@]}" | sort -n | uniq | xargs) == "${fences[*]}" ]]
}

# took_fence: one more holder has been there.
took_fence() {
	redlock run -n "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]{13}' && fences+=("$output")
}

# ---------------------------------------------------------------- logins

# shows_secret FILE...
shows_secret() {
	grep -aE 'sesame|hunter' "$@"
}

@test "a password is for the master, whether Sentinels have one or not, or know the user" {
	sentinels_start 0
	rcli 0 ACL SETUSER bob on '>hunter2' '~*' '&*' +@all
	rcli 0 CONFIG SET requirepass sesame
	export REDISCLI_AUTH=sesame
	local url
	url=$(sentinel_url)
	locks 0 -S "${url/:\/\//://:sesame@}"
	locks 0 -S "${url/:\/\//://default:sesame@}"
	locks 0 -S "${url/:\/\//://bob:hunter2@}"
	REDLOCK_PASSWORD=sesame locks 0
	leaves_none 77 'redis\+sentinel://.*/main: .*NOAUTH.*'
	leaves_none 77 'redis\+sentinel://.*/main: .*WRONGPASS.*' -S "${url/:\/\//://bob:sesame@}"
	# now the Sentinels have the same one
	sentinels_require sesame
	locks 0 -S "${url/:\/\//://:sesame@}"
	rm -r "$PLACES"
	locks 0 -S "${url/:\/\//://:sesame@}"
	redlock run -v -S "${url/:\/\//://:sesame@}" "$KEY" true
	[[ $status == 0 ]]
	run -1 shows_secret "$TMP/redlock.out" "$TMP/redlock.err"
	run -1 shows_secret -r "$PLACES"
	leaves_none 77 'redis\+sentinel://.*/main: .*NOAUTH.*'
	rm -r "$PLACES"
	leaves_none 77 'redis\+sentinel://.*/main: .*NOAUTH.*'
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "no password shows in what ps tells" {
	local url
	url=redis+sentinel://bob:hunter2@$(sentinel_address 0),$(sentinel_address 1)/main
	spawn waiter "$REDLOCK" run -w 60s -S "$NOWHERE,$url,redis://:sesame@127.0.0.1:1" --server="${url/main/other}/3" \
		-S redis+cluster://:sesame@127.0.0.1:1,127.0.0.1:2 "$KEY" true
	wait_until '[[ -s $TMP/waiter.err ]]'
	[[ $(ps -o args= -p "$(pid waiter)") == *redlock*run*"$KEY"* ]]
	run -1 shows_secret "/proc/$(pid waiter)/cmdline" "$TMP/waiter.err"
	kill -TERM "$(pid waiter)"
	finish waiter
}

# sentinels_require PASSWORD
sentinels_require() {
	local i
	for i in 0 1 2; do
		[[ $(unset REDISCLI_AUTH && sentinels rcli "$i" ACL SETUSER default resetpass ">$1") == OK ]] || return
	done
}

@test "Sentinels that want a password of their own refuse: 77, and it is said who did" {
	sentinels_start 0
	local i
	for i in 0 1; do sentinels rcli "$i" ACL SETUSER default resetpass '>other'; done
	leaves_none 77 "redis\\+sentinel://.*/main: .*$(sentinel_address 0).*NOAUTH.*"
	leaves_none 77 "redis\\+sentinel://.*/main: .*$(sentinel_address 0).*(NOAUTH|WRONGPASS).*" \
		-S "$(sentinel_url | sed 's,://,://:sesame@,')"
	run -1 shows_secret "$TMP/redlock.err"
}

@test "a set's passwords are for its master and Sentinels, be they unencrypted and REDLOCK_SERVERS all TLS" {
	sentinels_start 0
	rcli 0 CONFIG SET requirepass sesame
	export REDISCLI_AUTH=sesame
	printf '[a]\nserver = %s\npassword = sesame\n' "$(sentinel_url)" >"$TMP/redlock.conf"
	chmod 600 "$TMP/redlock.conf"
	REDLOCK_SERVERS=rediss://other locks 0 --config "$TMP/redlock.conf" --set a
	echo 'sentinel-password = hunter2' >>"$TMP/redlock.conf"
	sentinels_require hunter2
	REDLOCK_SERVERS=rediss://other locks 0 --config "$TMP/redlock.conf" --set a
}

# is_waited_out STATUS REFUSAL: what Sentinel 2 says, while Sentinel 1 is down for a while.
is_waited_out() {
	local both="no majority of its Sentinels names a master: .*Connection refused.*$2.*"
	locks 0 || return
	sentinels server_kill 1
	leaves_none 69 "redis\\+sentinel://.*/main: $both" || return
	spawn waiter "$REDLOCK" run -w 60s "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting: "* ]]' || return
	sentinel_launch 1
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: .*$both" || return
	# with one more that says so there is nothing to wait for
	sentinels server_kill 1
	refuse_at 0
	redlock run -w 60s "$KEY" true
	expect "$1" '' "redlock: $KEY: redis\\+sentinel://.*/main: $both"
}

@test "one Sentinel that refuses ends no wait while another one is down, but two do" {
	refuse_at() { sentinels rcli "$1" SENTINEL REMOVE main; }
	sentinels_start 0
	refuse_at 2
	is_waited_out 69 "does not know a master of that name"
	refuse_at() { sentinels rcli "$1" ACL SETUSER default resetpass '>other'; }
	sentinels_start 0
	refuse_at 2
	is_waited_out 77 NOAUTH
}

@test "Sentinels that know no password: what passes is waited for, and a refusal told with the login's" {
	seeds_start 1
	servers_start_tcp 1
	rcli 0 CONFIG SET requirepass sesame
	export REDISCLI_AUTH=sesame REDLOCK_SERVERS="redis+sentinel://:sesame@$(seed_address 0)/main"
	seed_says 0 AUTH '-ERR Client sent AUTH, but no password is set\r\n' SENTINEL '-LOADING Redis is loading\r\n'
	spawn waiter "$REDLOCK" run --server-timeout "${SLOW}s" -w 60s "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting: "*LOADING* ]]'
	seed_says 0 AUTH '-ERR Client sent AUTH, but no password is set\r\n' SENTINEL "$(place 127.0.0.1 "$(<"$SERVERS/0/port")")"
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: .*"
	rm -r "$PLACES"
	seed_says 0 AUTH '-WRONGPASS invalid username-password pair\r\n' SENTINEL '-NOAUTH Authentication required.\r\n'
	redlock run -w 60s "$KEY" true
	expect 77 '' "redlock: $KEY: redis\\+sentinel://.*WRONGPASS.*"
	[[ $stderr != *NOAUTH* ]]
}

# ---------------------------------------------------------------- remembered places

@test "the place is remembered: a request is sent there while the Sentinels are still asked" {
	local url i
	sentinels_start 0
	sentinels proxies_start
	url=redis+sentinel://$(proxy_addresses)/main
	locks 0 -S "$url"
	for i in 0 1 2; do proxy "$i" hold; done
	spawn acquire "$REDLOCK" acquire -n --server-timeout 60s -S "$url" "$KEY"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	# but nobody believes it before they have answered
	for i in 0 1 2; do wait_until "proxy_did $i hold"; done
	is_running acquire
	[[ ! -s $TMP/acquire.out ]]
	proxy 0 pass
	wait_until 'has_answered 0'
	is_running acquire
	[[ ! -s $TMP/acquire.out ]]
	proxy 1 pass
	finish acquire
	expect 0 '[0-9a-f]{32}'
	key_held_by "$output" 0
}

@test "where no place is remembered nothing is sent before a majority of Sentinels has answered" {
	local url i before
	sentinels_start 0
	sentinels proxies_start
	url=redis+sentinel://$(proxy_addresses)/main
	for i in 0 1 2; do proxy "$i" hold; done
	before=$(scripts_run 0)
	spawn acquire "$REDLOCK" acquire -n --server-timeout 60s -S "$url" "$KEY"
	for i in 0 1 2; do wait_until "proxy_did $i hold"; done
	proxy 0 pass
	wait_until 'has_answered 0'
	[[ $(scripts_run 0) == "$before" ]]
	is_running acquire
	proxy 1 pass
	finish acquire
	expect 0 '[0-9a-f]{32}'
	key_held_by "$output" 0
}

@test "where the remembered place is right it is asked once, and so is each Sentinel" {
	local before i
	seeds_start 3
	for i in 0 1 2; do seed_says "$i" SENTINEL "$(place "$(address 0)" 6379)"; done
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=redis+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main
	locks 0
	for i in 0 1 2; do asked "$i" 1; done
	monitor 0
	redlock acquire -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(requests 0) == 1 ]]
	for i in 0 1 2; do asked "$i" 2; done
}

# asked SEED COUNT: so often, where the master is.
asked() {
	wait_until "((\$(grep -c SENTINEL '$SEEDS/$1.log') == $2))"
}

@test "a remembered place that is a replica now is passed over" {
	sentinels_start 1
	sentinels_hurry
	locks 0
	fail_over 0 1
	redlock acquire -n --server-timeout 9s "$KEY"
	expect 0 '[0-9a-f]{32}'
	key_held_by "$output" 1
	caught_up 0 1
	redlock release "$KEY" "$output"
	expect 0
	caught_up 0 1
	key_free 0 1
}

@test "a remembered place that refuses is passed over" {
	sentinels_start 0
	another_master
	locks 0
	all_name 1
	server_kill 0
	locks 1
}

@test "what the remembered place grants or denies does not count where it is no longer the master" {
	local token
	sentinels_start 0
	another_master
	locks 0
	all_name 1
	# it is busy where it counts
	rcli 1 SET "$KEY" somebody PX 600000
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by another program.*"
	rcli 1 DEL "$KEY"
	# and busy where it does not
	KEY=$KEY-other
	remembers 1
	rcli 1 SET "$KEY" somebody
	redlock acquire -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	key_held_by "$output" 0
	key_held_by somebody 1
}

@test "what the remembered place has granted is given back if the Sentinels then end" {
	local i
	seeds_start 3
	for i in 0 1 2; do seed_says "$i" SENTINEL "$(place "$(address 0)" 6379)"; done
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=redis+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main
	locks 0
	for i in 0 1 2; do seed_says "$i" SENTINEL ''; done
	spawn acquire "$REDLOCK" acquire -n -t 10m --server-timeout 60s "$KEY"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	kill -KILL "$(<"$SEEDS/pid")"
	finish acquire
	expect 69 '' "redlock: $KEY: .*: no majority of its Sentinels names a master: .*"
	wait_until 'nothing_left 0'
}

@test "a remembered place where somebody else is now is passed over" {
	sentinels_start 0
	another_master
	locks 0
	all_name 1
	rcli 0 CONFIG SET requirepass theirs
	locks 1
	rcli 0 -a theirs --no-auth-warning CONFIG SET requirepass ''
	remembers 0
	server_kill 0
	spawn web python3 -m http.server 6379 --bind "$(address 0)"
	wait_until '(exec 5<>"/dev/tcp/$(address 0)/6379")'
	locks 1
}

# remembers I: that the master is there, although it is the other one of two.
remembers() {
	all_name "$1" && KEY=$KEY-before locks "$1" && all_name "$((1 - $1))"
}

# in_net STATUS OPTION...: redlock run in the network ends with it.
in_net() {
	local want=$1
	shift
	run --separate-stderr timeout -k 1 60 ip netns exec "$NET_CLIENT" "$REDLOCK" run "$@" "$KEY" true
	expect "$want"
}

@test "a remembered place from which nothing comes back is not waited for" {
	local i start
	net_servers_start 2
	seeds_start 3 ip netns exec "$NET_CLIENT"
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=redis+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main
	for i in 0 1 2; do seed_says "$i" SENTINEL "$(place 10.9.0.2 6379)"; done
	in_net 0
	[[ $(rcli 0 EXISTS "$(record)") == 1 ]]
	for i in 0 1 2; do seed_says "$i" SENTINEL "$(place 10.9.1.2 6379)"; done
	net_drop both 0
	start=$NOW
	in_net 0 -t 5m --server-timeout 50s
	((NOW - start < 20000))
	[[ $(rcli 1 EXISTS "$(record)") == 1 ]]
}

# is_guessed I: what is remembered is asked before Sentinels have said where the master is; not_guessed I.
is_guessed() {
	local before
	before=$(scripts_run "$1")
	redlock run -n "$KEY" true
	expect 0 && (($(scripts_run "$1") > before))
}

not_guessed() {
	local before
	before=$(scripts_run "$1")
	redlock run -n "$KEY" true
	expect 0 && (($(scripts_run "$1") == before))
}

@test "what is remembered of one master is not taken for another's" {
	local main other before
	sentinels_start 0
	another_master
	all_name 1 other
	main=$(sentinel_url)
	other=$(sentinel_url /other)
	locks 0 -S "$main"
	before=$(scripts_run 0)
	locks 1 -S "$other"
	locks 1 -S "$other"
	(($(scripts_run 0) == before))
	before=$(scripts_run 1)
	locks 0 -S "$main"
	(($(scripts_run 1) == before))
}

# remembered_wrongly: two masters; the second one is the right one, the first is remembered.
remembered_wrongly() {
	sentinels_start 0
	another_master
	remembers 0
	FILE=$(echo "$PLACES"/places-*)
	[[ -f $FILE ]]
}

@test "what is remembered is its user's alone" {
	umask 000
	sentinels_start 0
	locks 0
	[[ $(stat -c %a "$PLACES") == 700 ]]
	[[ $(stat -c %a "$PLACES"/places-*) == 600 ]]
}

@test "garbage in the file is passed over, and replaced" {
	local garbage
	remembered_wrongly
	cp "$FILE" "$TMP/wrong"
	is_guessed 0
	cp "$FILE" "$TMP/right"
	for garbage in 'true' 'head -c 100000 /dev/urandom' 'head -c 100000 /dev/zero' 'yes 127.0.0.1:6379' 'yes $(address 0)' \
		'head -c 20 "$TMP/wrong"' 'tr 0-9 5 <"$TMP/wrong"' 'tr 0-9 9 <"$TMP/wrong"' 'tr . : <"$TMP/wrong"' \
		'tr . "\033" <"$TMP/wrong"' 'tr -d . <"$TMP/wrong"' 'tr "\n\0" ".." <"$TMP/wrong"' 'sed s/6379/0/ "$TMP/wrong"' \
		'sed "s/127/ 127/" "$TMP/wrong"' 'yes "" | paste -s -d - | tr "\n" -'; do
		eval "$garbage" | head -c 2000000 >"$FILE"
		redlock run -n -t 5m --server-timeout 50s "$KEY" true
		expect 0
		if ! cmp -s "$TMP/right" "$FILE"; then
			echo "after: $garbage"
		fi
		cp "$TMP/wrong" "$FILE"
		is_guessed 0
	done
}

@test "what was found more than two hours ago, or is to be found one day, is passed over" {
	local age
	remembered_wrongly
	cp "$FILE" "$TMP/wrong"
	for age in 7300 -100 6000; do
		sed -E "s/^[0-9]+/$(($(date +%s) - age))/" "$TMP/wrong" >"$FILE"
		((age == 6000)) || not_guessed 0
	done
	is_guessed 0
}

@test "a file that is no file, another's, or not to be read or written is passed over" {
	local i
	remembered_wrongly
	rm "$FILE"
	mkdir "$FILE"
	not_guessed 0
	rmdir "$FILE"
	mkfifo "$FILE"
	not_guessed 0
	rm "$FILE"
	ln -s /dev/zero "$FILE"
	not_guessed 0
	ln -sf nowhere "$FILE"
	not_guessed 0
	ln -sf "$TMP/elsewhere" "$FILE"
	not_guessed 0
	[[ ! -e $TMP/elsewhere ]]
}

# in_mounts 'SHELL COMMANDS': redlock run, in a mount namespace in which they have been run, with $1 as $PLACES.
in_mounts() {
	"${MOUNTS[@]}" true || skip "needs a mount namespace"
	run --separate-stderr timeout -k 1 60 "${MOUNTS[@]}" sh -c "($1) || exit 99"'; shift; exec "$@"' - "$PLACES" \
		"$REDLOCK" run -n "$KEY" true
	[[ $status != 99 ]] || skip "cannot be mounted here"
	expect 0
}

@test "where a place cannot be kept nobody is told" {
	remembered_wrongly
	in_mounts 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'
	is_guessed 0
	in_mounts 'mount -t tmpfs -o size=4k,mode=700 none "$1" && ! head -c 9000 /dev/zero 2>/dev/null >"$1/full"'
	in_mounts 'mount -t tmpfs -o nr_inodes=1,mode=700 none "$1"'
	XDG_RUNTIME_DIR=$SET/$(repeat x 120) not_guessed 0
}

# left_alone: the directory is not used, and stays as it is.
left_alone() {
	local before
	before=$(cd "$SET" && find . -printf '%p %m %u %l %TY-%Tm-%Td %TT\n' | sort)
	not_guessed 0 && [[ $(cd "$SET" && find . -printf '%p %m %u %l %TY-%Tm-%Td %TT\n' | sort) == "$before" ]]
}

@test "a directory that others can enter or own, or that is a link, is not used" {
	local mode
	remembered_wrongly
	SET=$XDG_RUNTIME_DIR
	for mode in 755 750 701 720 777 1777; do
		chmod "$mode" "$PLACES"
		left_alone
	done
	chmod 700 "$PLACES"
	if [[ $(id -u) == 0 ]]; then
		chown 65534 "$PLACES"
		left_alone
		chown 0 "$PLACES"
	fi
	mv "$PLACES" "$SET/moved"
	ln -s moved "$PLACES"
	left_alone
	rm "$PLACES"
	touch "$PLACES"
	left_alone
	rm "$PLACES"
	mv "$SET/moved" "$PLACES"
	is_guessed 0
}
