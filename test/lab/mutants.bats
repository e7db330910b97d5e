#!/usr/bin/env bats
# Each safety mechanism is there for a fault: redlock gets through it, and redlock without that
# mechanism (test/lab/mutants) does not. Who had noticed neither would know nothing of the mechanism.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables
# bats file_tags=long

load ../lib/helper
load ../lib/discovery

WHOLE=$REDLOCK
MUTANTS=$(dirname "$WHOLE")/mutant

setup_file() {
	# those that are not built are found missing by their tests
	local overrides=${MAKEFLAGS-}
	[[ $overrides == *'-- '* ]] || overrides='-- '
	# with the variables that redlock was built with, or it is built anew
	MAKEFLAGS="-- ${overrides##*-- }" make -s -k -j2 -C "$ROOT" SANITIZE="${SANITIZE-}" mutants >"$BATS_FILE_TMPDIR/make" 2>&1 || :
}

# needed NAME FAULT: FAULT is a function that has something happen to redlock and says by `verdict`
# what came of it.
needed() {
	local mutant=$MUTANTS/$1/build/redlock attempt
	if [[ ! $mutant -nt $ROOT/test/lab/mutants/$1.patch ]]; then
		cat "$BATS_FILE_TMPDIR/make"
		return 1
	fi
	under "$WHOLE" whole "$2" || return
	[[ $verdict == kept ]] || return
	# on a slow machine another mechanism may make up for it: it is needed if that is not always so
	for attempt in 1 2 3; do
		under "$mutant" "mutant$attempt" "$2" || return
		[[ $verdict != broken ]] || return 0
	done
	return 1
}

under() {
	verdict=
	export REDLOCK=$1
	KEY=key-$BATS_SUITE_TEST_NUMBER-$2 TMP=$BATS_TEST_TMPDIR/$2 LINE=0
	mkdir "$TMP"
	"$3" || {
		echo "$2: $3 did not come to an end" >&2
		return 1
	}
	echo "$2: $verdict"
	touch "$TMP"/{a,b}.end
	stop_everything "$BATS_TEST_TMPDIR"
	spawned=()
}

# verdict CONDITION...: what is promised is kept where CONDITION is so.
verdict() {
	if "$@"; then verdict=kept; else verdict=broken; fi
}

# stamps NAME [OPTION...]: a run whose command lives until $TMP/NAME.end exists, or it is told to end.
stamps() {
	local name=$1
	shift
	mkdir -p "$TMP/stamps"
	spawn "$name" "$REDLOCK" run --quarantine 0 "$@" "$KEY" \
		"$STAMP" -d 20000 -u "$TMP/$name.end" "$TMP/stamps"
}

# seen I: servers 0, 1 and 2, as one sees them who reaches only those I that are named.
seen() {
	local i list=
	for i in 0 1 2; do
		if [[ " $* " == *" $i "* ]]; then list+=,$(server_url "$i"); else list+=,unix://$SERVERS/$i/cut; fi
	done
	echo "${list#,}"
}

# acquires NAME OPTION...: $token where it gets KEY for a minute, else empty.
acquires() {
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$@" "$KEY" 2>>"$TMP/acquire.err") || :
}

# ---------------------------------------------------------------- leases

# A server whose clock is 1 % fast ends a lease of 600 seconds after 594.
fast_clock() {
	servers_start 1
	redlock acquire --format json -t 600s "$KEY"
	[[ $status == 0 && $output =~ \"valid_ms\":([0-9]+) ]] || return
	verdict test "${BASH_REMATCH[1]}" -lt 594000
}

@test "the drift is left for a server whose clock is fast" {
	needed no-drift fast_clock
}

# The command is told to end long before the lease does: what is looked for here is not how fast.
stopped() {
	servers_start 1
	stamps a -t 4s -k 2s
	wait_until 'stamped "$TMP/stamps"' || return
	touch "$TMP/b.end"
	stamps b -w 30s
	stop_process "$(pid a)" || return
	finish b || return
	[[ $status == 0 ]] || return
	verdict assert_exclusive "$TMP/stamps" 2
}

@test "the guard stops the command of a redlock that is stopped itself" {
	needed no-guard stopped
}

# What COMMAND has started is a chain of processes, each of which has lost its parent.
forked() {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn a "$REDLOCK" run -t 4s -k 1s "$KEY" "$STAMP" -t -d 12000 -c 1 -g 3 "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps" 2' || return
	next_after_kill
}

# redlock is killed, and the next one takes the key: nobody is left by then.
next_after_kill() {
	touch "$TMP/b.end"
	stamps b -w 30s
	kill -KILL "$(pid a)"
	finish b || return
	[[ $status == 0 ]] || return
	verdict assert_exclusive "$TMP/stamps" 2
}

@test "the guard looks for who has lost its parent since" {
	needed parents-only forked
}

# COMMAND ends when it is told to, what it has started does not, and nobody can be seen.
unseen() {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn a unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' - \
		"$REDLOCK" run -t 3s -k 1s "$KEY" sh -c '"$STAMP" -t -d 12000 "$0" & wait' "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"' || return
	next_after_kill
}

@test "the guard kills the group where /proc shows nobody" {
	[[ $(id -u) == 0 ]] || skip "a mount namespace needs root"
	needed blind-is-empty unseen
}

# The answer to the request comes when the lease is over, and the key another's.
late_answer() {
	servers_start 1
	scripts_known
	proxies_start
	proxy 0 still
	spawn first "$REDLOCK" acquire -S "$(proxy_url 0)" --server-timeout 50s -n -t 2s "$KEY"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]' || return
	stamps a -w 30s
	wait_until 'stamped "$TMP/stamps"' || return
	proxy 0 pass
	finish first || return
	wait_until 'is_beating $TMP/stamps' || return
	verdict test "$status" != 0
}

@test "validity counts from the request where the answer is late" {
	needed validity-from-reply late_answer
}

# What one has to say whose lease is over, and whose key is another's by now.
over() {
	local first
	servers_start 1
	acquires
	first=$token
	rcli 0 PEXPIRE "$KEY" 1
	wait_until 'key_free 0' || return
	acquires
	[[ $token ]] || return
	redlock "$1" "$KEY" "$first"
}

over_and_released() {
	over release || return
	verdict key_held_by "$token" 0
}

@test "a release compares, where another holds the key by now" {
	needed release-anybody over_and_released
}

# What is true when it is looked at need not be true any more when it is acted upon.
released_late() {
	local first scripts
	servers_start 1
	proxies_start
	acquires
	first=$token
	scripts=$(scripts_run 0)
	proxy 0 still
	spawn release "$REDLOCK" release -S "$(proxy_url 0)" --server-timeout 50s "$KEY" "$first"
	wait_until "((\$(scripts_run 0) > $scripts))" || return
	rcli 0 PEXPIRE "$KEY" 1
	wait_until 'key_free 0' || return
	acquires
	[[ $token ]] || return
	proxy 0 pass
	finish release
	verdict key_held_by "$token" 0
}

@test "a release is one command, that compares and deletes" {
	needed get-then-del released_late
}

over_and_extended() {
	over extend || return
	key_held_by "$token" 0 || return
	verdict test "$status" == 1
}

@test "an extension compares, where another holds the key by now" {
	needed extend-anybody over_and_extended
}

# Who takes the lock after a break finds nobody in it.
broken_and_kept() {
	servers_start 1
	stamps a -t 3s
	wait_until 'stamped $TMP/stamps' || return
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until '[[ $(rcli 0 HKEYS "$(record)") == *break:* ]] || ! is_running break' || return
	stamps b -w 40s
	wait_until 'stamped $TMP/stamps 2' 40 || return
	touch "$TMP"/{a,b}.end
	finish b || return
	verdict assert_exclusive "$TMP/stamps" 2
}

@test "a renewal of a lock that is broken is not answered with kept" {
	needed keeps-broken broken_and_kept
}

extended_by_less() {
	servers_start 1
	stamps a -t 20s
	wait_until 'stamped $TMP/stamps' || return
	redlock extend -t 300ms "$KEY" "$(rcli 0 GET "$KEY")"
	[[ $status == 0 ]] || return
	sleep 0.6 # past the end of the shorter lease
	redlock run -n "$KEY" true
	wait_until 'is_beating $TMP/stamps' || return
	verdict test "$status" == 75
}

@test "an extension never makes the lease of a run shorter" {
	needed extend-shortens extended_by_less
}

succeeded() {
	servers_start 1
	redlock run --once-in 1h "$KEY" true
	[[ $status == 0 ]] || return
	redlock run --once-in 1h "$KEY" touch "$TMP/again"
	verdict test ! -e "$TMP/again"
}

@test "a run that has succeeded keeps the next from running" {
	needed once-anyway succeeded
}

# ---------------------------------------------------------------- quorums

# The first has the votes of 0 and 1 with fences of their own when its lock is broken; the next has 1
# and 2, and by 2 the same fence; then the first hears of its vote from 1, and raises it.
# (With -n it tries again until the time of a round is over.)
broken_in_between() {
	local i first
	servers_start 3
	scripts_known
	proxies_start
	# records that are old: an answer that is a second late makes none seem younger than the others
	for i in 0 2; do rcli "$i" HSET "$(record)" began 1 fence 4000000000000 || return; done
	rcli 1 HSET "$(record)" began 1 fence 1000000000000
	proxy 1 still
	spawn first "$REDLOCK" acquire -S "$(server_url 0),$(proxy_url 1),unix://$SERVERS/2/cut" \
		--quarantine 0 --server-timeout 20s -n -t 60s "$KEY"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 && $(rcli 1 EXISTS "$KEY") == 1 ]]' || return
	redlock break -y --now -S "$(seen 0 1)" "$KEY"
	[[ $status == 0 ]] || return
	key_free 0 1 || return
	acquires -S "$(seen 1 2)"
	[[ $token && $(fence_at 1) == 4000000000001 ]] || return
	key_held_by "$token" 1 2 || return
	proxy 1 pass
	finish first || return
	verdict test "$status" != 0
}

@test "a fence is raised only where the token owns the key" {
	needed raise-always broken_in_between
}

# permit I SLOT TOKEN: server I has given this one of two slots away, for a minute.
permit() {
	rcli "$1" ZADD "$KEY" $(($(server_ms "$1") + 60000)) "$3"
	rcli "$1" PEXPIRE "$KEY" 60000
	rcli "$1" HSET "$(record)" permits 2.25 fence 1700000000001 "slot:$3" "$2" \
		"holder:$3" $'since=1 -\nhost=web1\npid=1\nttl=60000\nbreak=stops\ncommand=x\n' "fence:$3" 1700000000001
}

# Two hold both of two permits, each with another server and with the one that both have.
crossed() {
	servers_start 3
	permit 0 1 one
	permit 2 1 one
	permit 1 2 two
	permit 2 2 two
	acquires -n -P 2 --server-timeout 300ms
	verdict test ! "$token"
}

@test "votes for different slots make no permit" {
	needed slots-together crossed
}

# A holder of slot 1 has slot 2 on one server, and nothing on another.
strayed() {
	servers_start 3
	permit 0 1 mine
	permit 1 2 mine
	redlock extend "$KEY" mine
	verdict test "$status" != 0
}

@test "a renewal counts where the token has its slot" {
	needed slot-unchecked strayed
}

# Two servers of three that are asked, but never answer in time.
silent() {
	servers_start 3
	scripts_known
	server_stop 1 2
	acquires -n --server-timeout 300ms
	[[ ! $token ]] || return
	server_continue 1 2
	wait_until 'server_drained 1 && server_drained 2' || return
	[[ $(rcli 1 EXISTS "$(record)") == 1 ]] || return
	verdict key_free 0 1 2
}

@test "an attempt that failed is taken back where no answer has come, too" {
	needed silent-unreleased silent
}

# known N: N servers that have known KEY for longer than leases of 2 s, and keep that on disk.
known() {
	local i
	servers_start "$1"
	redlock run --quarantine 0 -t 2s "$KEY" true
	wait_until "known_for 2500 $(seq -s ' ' 0 $(($1 - 1)))" || return
	for ((i = 0; i < $1; i++)); do [[ $(rcli "$i" SAVE) == OK ]] || return; done
}

# forgets I...: KEY has a holder, and these servers restart as they were before that.
forgets() {
	acquires
	[[ $token ]] || return
	wait_until '[[ $(servers_with "$token" GET "$KEY") == "$SERVER_COUNT" ]]' || return
	server_reload "$@"
}

restarted() {
	known 3 && forgets 1 2 || return
	redlock acquire -n -t 60s "$KEY"
	verdict test "$status" != 0
}

@test "servers that have forgotten a lease have no vote" {
	needed no-quarantine restarted
}

restarted_before_a_minute() {
	known 3 && forgets 1 2 || return
	wait_until 'up_for 2000 1 2' || return
	server_kill 0
	redlock acquire -n -t 2s "$KEY"
	verdict test "$status" != 0
}

@test "the quarantine is a minute, whatever the ttl is" {
	needed short-quarantine restarted_before_a_minute
}

# Their files have everything, but they may not execute it again.
barred_from_files() {
	printf 'user %s\n' 'default on nopass -@all +info' 'ann on >pw ~* &* +@all' >"$TMP/users.acl"
	servers_start 3 --appendonly yes --appendfsync always --aclfile "$TMP/users.acl"
	export REDLOCK_SERVERS=${REDLOCK_SERVERS//unix:\/\//unix://ann:pw@}
	acquires
	[[ $token ]] && server_restart 0 1 2 || return
	redlock acquire -n -t 60s "$KEY"
	verdict test "$status" != 0
}

@test "a server that keeps a file is only believed if its user default may do what is in it" {
	needed trusts-file barred_from_files
}

longer_lease() {
	known 5 && forgets 0 1 2 || return
	wait_until 'up_for 2000 0 1 2' || return
	redlock acquire -n -t 2s --quarantine 2s "$KEY"
	verdict test "$status" != 0
}

@test "a longer lease that others tell of is the quarantine" {
	needed no-learning longer_lease
}

told_late() {
	known 5 && forgets 0 1 2 || return
	proxies_start
	proxy 3 'delay 200'
	proxy 4 'delay 200'
	wait_until 'up_for 2000 0 1 2' || return
	redlock acquire -n -t 2s --quarantine 2s --server-timeout 5s -S "$(proxy_urls)" "$KEY"
	verdict test "$status" != 0
}

@test "servers that were just started count once the others have been heard" {
	needed no-hearing told_late
}

# The holder has a bare quorum, one of which loses it, and who is left answers last.
emptied() {
	scripts_known
	proxies_start
	acquires -S "$(seen 0 1)"
	[[ $token ]] && key_held_by "$token" 0 1 || return
	"$@"
	proxy 0 'delay 105'
	proxy 1 'delay 100'
	proxy 2 'delay 100'
	redlock acquire -n -t 2s --quarantine 0 --server-timeout 1s -S "$(proxy_urls)" "$KEY"
	verdict test "$status" != 0
}

flushed() {
	servers_start 3
	emptied rcli 1 FLUSHALL
}

evicted() {
	known 3 || return # the third one has a record, too
	emptied rcli 1 DEL "$KEY"
}

@test "a server that has lost the record of KEY has no vote" {
	needed no-record flushed
}

@test "a server that has lost KEY begins its record anew" {
	needed no-until evicted
}

# The lock is lost by one server, where somebody has asked since, so that its record is older than a
# ttl of 2 s, but not than a minute; who knows the holder's answers last.
asked_since() {
	servers_start 3 --appendonly yes --appendfsync always
	scripts_known
	proxies_start
	acquires -S "$(seen 0 1)"
	[[ $token ]] && key_held_by "$token" 0 1 || return
	rcli 1 FLUSHALL
	redlock acquire --quarantine 0 -n -t 200ms -S "$(seen 1 2)" "$KEY"
	wait_until 'known_for 2500 1 2 && key_free 1 2' || return
	proxy 0 'delay 40'
	# who answers after 200 ms is not waited for: on a slow machine not every attempt shows it
	for _ in 1 2 3 4; do
		redlock acquire -n -t 2s --server-timeout "$((3 * SLOW))s" -S "$(proxy_urls)" "$KEY"
		[[ $status == 0 ]] || break
		"$REDLOCK" release -S "$(seen 1 2)" "$KEY" "$output" || return
	done
	verdict test "$status" != 0
}

@test "records younger than the quarantine are no reason not to hear the others" {
	needed young-is-old asked_since
}

# Server 1 has granted KEY with a small fence, and is asked to raise it, which it never hears of; then
# comes the message of server 2, whose fence is as small. COMMAND notes the fences that it finds.
granted_meanwhile() {
	local i first
	servers_start 3
	proxies_start
	rcli 0 HSET "$(record)" fence 2000000000000000
	take
	rcli 1 HSET "$(record)" fence 7
	rcli 2 HSET "$(record)" fence 7
	for i in 0 1 2; do proxy_ears "$i" pass; done
	spawn a "$REDLOCK" run -v --quarantine 0 -S "$(proxy_urls)" -t 20s --server-timeout 3s "$KEY" bash -c '
		for i in 1 2; do redis-cli -s "$1/$i/redis.sock" HGET "$2" fence; done >"$3.new"
		echo "$REDLOCK_FENCE" >>"$3.new" && mv "$3.new" "$3"' - "$SERVERS" "$(record)" "$TMP/ran"
	wait_until 'queued 1' || return
	proxy_ears 2 hold
	wait_until '(($(grep -c "held by another" "$TMP/a.err") >= 3))' || return
	proxy 1 hold
	give_back || return
	wait_until '(($(grep -c ": granted, fence" "$TMP/a.err") >= 2))' || return
	first=$(rcli 0 GET "$KEY")
	proxy_ears 2 pass
	wait_until '[[ -e $TMP/ran || $(rcli 0 GET "$KEY") != "$first" ]]' || return
	proxy 1 pass
	finish a || return
	mapfile -t i <"$TMP/ran"
	verdict test "$((i[0] > i[1] ? i[0] : i[1]))" -ge "${i[2]}"
}

@test "a grant by message counts for no fence that is being raised" {
	needed reads-on granted_meanwhile
}

# ---------------------------------------------------------------- late news

# The first attempt has its answer so late that it was taken back, the next one is on its way, and
# the key another's.
late_reply() {
	local before
	servers_start 1
	scripts_known
	proxies_start
	spawn monitor redis-cli -s "$SERVERS/0/redis.sock" MONITOR
	wait_until '[[ $(<"$TMP/monitor.out") == OK* ]]' || return
	proxy 0 still
	spawn first "$REDLOCK" acquire -S "$(proxy_url 0)" --poll --label late -w 30s --server-timeout 3s -t 60s "$KEY"
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]' || return
	acquires -w 30s
	[[ $token ]] || return
	before=$(attempts)
	wait_until '(($(attempts) > before))' || return
	proxy 0 pass
	wait_until '(($(attempts) > before + 1)) || ! is_running first' || return
	key_held_by "$token" 0 || return
	verdict is_running first
}

# attempts: how many of the first have arrived.
attempts() {
	grep -ciE '"eval(sha)?".*command=late' "$TMP/monitor.out"
}

@test "a late reply is none to the next request" {
	needed late-reply late_reply
}

# A grant by a message that comes when the lease is over, the key another's, and that has been said.
late_message() {
	local refused
	servers_start 1
	proxies_start
	take
	stamps a -v -S "$(proxy_url 0)" -t 3s
	wait_until 'queued 1' || return
	proxy 0 hold
	give_back || return
	stamps b -w 30s
	wait_until 'stamped "$TMP/stamps"' || return
	refused=$(grep -c 'held by another' "$TMP/a.err")
	proxy_ears 0 hold
	proxy 0 pass
	wait_until '(($(grep -c "held by another" "$TMP/a.err") > refused))' || return
	proxy_ears 0 pass
	wait_until '[[ $(<"$TMP/a.err") == *"a stale message"* ]] || stamped "$TMP/stamps" 2' || return
	wait_until 'is_beating $TMP/stamps' || return
	verdict assert_exclusive "$TMP/stamps" 1
}

@test "a message is believed only while the request that it answers is the last one answered" {
	needed stale-message late_message
}

# master_hangs NAME BYTES REQUEST...: the master is stopped, has more than so many BYTES of this request for more
# than a second without reading them, and is replaced by the time it goes on.
master_hangs() {
	local name=$1 unread=$2
	shift 2
	caught_up 1 0 && server_stop 0 || return
	spawn "$name" "$REDLOCK" "$@"
	wait_until "ss -tnH src \"\$(address 0)\" | awk '\$2 > $unread' | grep -q ." || return
	pause 1.2
	rcli 1 REPLICAOF NO ONE
	all_name 1 && is_running "$name" && server_continue 0
}

hung_answer() {
	sentinels_start 1
	# the place is remembered: the request is there before the Sentinels have answered
	redlock run -n "$KEY" true
	[[ $status == 0 ]] || return
	master_hangs acquire 400 acquire -n -t 60s --server-timeout 60s "$KEY" || return
	finish acquire || return
	[[ $status == 0 ]] || return
	verdict key_held_by "$output" 1
}

@test "what a master that hung answers after it was replaced does not count" {
	needed hung-answer hung_answer
}

hung_message() {
	sentinels_start 1
	token=$("$REDLOCK" acquire -t 60s "$KEY")
	wait_turn a
	wait_until 'queued 1 0 && listening 1 0' || return
	# it must not hear from the Sentinels before the message is there
	stop_process "$(pid a)" || return
	master_hangs release 300 release --server-timeout 60s -S "$(server_url 0)" "$KEY" "$token" || return
	finish release || return
	kill -CONT "$(pid a)"
	wait_until 'listening 1 1 || ran a' || return
	verdict test ! -e "$TMP/order"
}

@test "a message of a master that hung and was replaced does not count" {
	needed hung-message hung_message
}

# ---------------------------------------------------------------- replicas, and other versions

behind() {
	addresses_new
	SERVER_COUNT=2 REDLOCK_SERVERS=redis://$(address 0)
	export REDLOCK_SERVERS
	server_new 0 && server_new 1 --replicaof "$(address 0)" 6379 && all_ready || return
	wait_until "[[ \$(redis-cli -s $SERVERS/0/redis.sock <<<\$'SET probe 1 PX 1\nWAIT 1 100') == *1 ]]" || return
	server_stop 1
	# half of it is for the replica
	acquires -n --replicas 1 --server-timeout 4s
	verdict test ! "$token"
}

@test "a grant that replicas do not acknowledge is none" {
	needed unacknowledged behind
}

later_record() {
	servers_start 1
	rcli 0 HSET "$(record)" fence 'v2 1700000000001'
	acquires -n
	verdict test ! "$token"
}

@test "a record of a later protocol is not ours" {
	needed later-is-ours later_record
}

@test "there is no mechanism whose absence is not looked for" {
	local patch count=0
	for patch in "$ROOT"/test/lab/mutants/*.patch; do
		grep -q "^	needed $(basename "$patch" .patch) " "$BATS_TEST_FILENAME"
		((++count))
	done
	[[ $(grep -c '^	needed ' "$BATS_TEST_FILENAME") == "$count" ]]
}
