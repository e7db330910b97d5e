#!/usr/bin/env bats
# The lock is renewed while the command runs, through what happens to servers
# and connections; and when it is lost all the same, the command is told.
# shellcheck disable=SC2016
# bats file_tags=long

load ../lib/helper

# start [OPTION...]: the run under test, with a stamp that ends when $TMP/end exists.
start() {
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run --quarantine 0 "$@" "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	token=$(rcli 0 GET "$KEY")
}

# survives: the command ends by itself, under the lock to the end.
survives() {
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 3
	wait_until 'key_free 0'
}

# lost: the command is stopped, and the run says why.
lost() {
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
}

@test "a run longer than its ttl is renewed, on one server" {
	servers_start 1
	start -t 2s
	renewals 4
	[[ $(rcli 0 GET "$KEY") == "$token" ]]
	survives
}

@test "a run longer than its ttl is renewed, on five servers" {
	servers_start 5
	start -t 2s
	renewals 4 4
	survives
}

# is_back_at I: the server has KEY again.
is_back_at() {
	wait_until 'key_held_by "$token" '"$1"
}

@test "a server that was restarted has the lock again long before the next renewal, so the next one may fail" {
	local i
	servers_start 3
	server_kill 2
	start -t 1h # renewed after 20 minutes
	for i in 2 1 0; do # each forgets all; the next one only when the one before has the lock again
		[[ $i == 2 ]] || server_kill "$i"
		server_launch "$i"
		is_back_at "$i"
	done
	server_kill 1
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 3
	wait_until 'key_free 0 2'
}

@test "two servers of three that were restarted at once do not get the lock back: it is lost" {
	servers_start 3
	start -t $((9 * SLOW))s
	renewals 1
	server_kill 1 2
	server_launch 1
	server_launch 2
	lost
}

@test "a server whose packets were lost has the lock again long before the next renewal" {
	net_servers_start 3
	net_unplug 0
	mkdir "$TMP/stamps"
	net_spawn run "$REDLOCK" run --quarantine 0 -t 1h "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	token=$(rcli 1 GET "$KEY")
	net_heal
	is_back_at 0
	touch "$TMP/end"
	finish run
	expect 3
}

@test "a keeper, too, gives the lock back to a server that was restarted" {
	servers_start 3
	server_kill 0
	token=$("$REDLOCK" acquire --quarantine 0 --pid $$ -t 1h "$KEY")
	server_launch 0
	is_back_at 0
	redlock release "$KEY" "$token"
	expect 0
	wait_until 'key_free 0 1 2'
}

@test "a server that is away is asked again and again, those that are there are not" {
	servers_start 3
	scripts_known
	server_kill 2
	start -v -t 1h
	wait_until '(($(grep -c "Connection refused" "$TMP/run.err") >= 10))'
	[[ $(scripts_run 0) == 2 && $(scripts_run 1) == 2 ]] # the acquire, and a renewal
	touch "$TMP/end"
	finish run
	[[ $status == 3 ]]
}

@test "a full memory ends no holder: every kind of lock is renewed, and released" {
	servers_start 1
	local kind
	for kind in -x -r -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		spawn "run${kind% *}" "$REDLOCK" run -t 2s $kind "$KEY$kind" -- sh -c 'until [ -e "$1" ]; do sleep 0.1; done; exit 3' - "$TMP/end"
		wait_until "[[ \$(rcli 0 EXISTS '$KEY$kind') == 1 ]]"
	done
	rcli 0 CONFIG SET maxmemory 1
	[[ $(rcli 0 SET some thing) == OOM* ]]
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 4000))'
	touch "$TMP/end"
	for kind in -x -r -s '-P 2'; do
		finish "run${kind% *}"
		expect 3
		[[ $(rcli 0 EXISTS "$KEY$kind") == 0 ]]
	done
}

@test "the number of renewals is told" {
	servers_start 1
	exec 9>"$TMP/status"
	redlock run -t 2s --status-fd 9 "$KEY" sleep 2.5
	exec 9>&-
	expect 0
	[[ $(<"$TMP/status") =~ \"outcome\":\ ?\"done\".*\"renewals\":\ ?([0-9]+) ]]
	((BASH_REMATCH[1] >= 2))
}

# renewed_first [OPTION...]: a run whose SIGTERM would be due before a third of the ttl outlives that.
renewed_first() {
	servers_start 1
	start "$@"
	renewals 3
	[[ $(rcli 0 GET "$KEY") == "$token" ]]
	survives
}

@test "a run with a long --kill-after is renewed before COMMAND would be stopped" {
	renewed_first -t 12s -k 8s --server-timeout 1s
}

@test "a run with --on-lost warn and a long --kill-after is renewed before the lock would be lost" {
	renewed_first -t 12s -k 8s --server-timeout 1s --on-lost warn
}

@test "a fence that a server has counted on to is not the holder's at a renewal" {
	servers_start 1
	exec 9>"$TMP/status"
	spawn run "$REDLOCK" run -t 2s --status-fd 9 "$KEY" \
		bash -c 'echo "$REDLOCK_FENCE" >"$0"; until [[ -e $1 ]]; do sleep 0.02; done' "$TMP/fence" "$TMP/end"
	exec 9>&-
	wait_until '[[ -s $TMP/fence ]]'
	rcli 0 HINCRBY "{$KEY}:redlock" fence 50
	renewals 2
	touch "$TMP/end"
	finish run
	expect 0
	[[ $(<"$TMP/status") == *"\"fence\":$(<"$TMP/fence"),"* ]]
}

@test "a run keeps its lease, whatever is extended beside it" {
	local kind other
	servers_start 3
	for kind in -x -r -s '-P 1'; do
		other=-x
		[[ $kind != -r ]] || other=-r
		# shellcheck disable=SC2086 # words
		redlock run --quarantine 0 -t 20s $kind "$KEY" bash -c '
			"$REDLOCK" extend "$REDLOCK_KEY" && "$REDLOCK" extend --server-timeout 9s -t 300ms "$REDLOCK_KEY" || exit
			sleep 0.6 # past the end of the shorter one
			unset REDLOCK_HELD
			"$REDLOCK" run --quarantine 0 -n $1 "$REDLOCK_KEY" true
			[[ $? == 75 ]] && "$REDLOCK" status -q "$REDLOCK_KEY" "$REDLOCK_TOKEN"' - "$other"
		expect 0 '' "redlock: $KEY: held by .*"
	done
}

@test "an extend beside a run that names a longer ttl outlives it, but not its release" {
	servers_start 1
	start -t 2s
	redlock extend -t 10m "$KEY" "$token"
	expect 0
	rcli 0 CLIENT KILL TYPE normal SKIPME yes # and renewed on a fresh one
	wait_until '(($(scripts_run 0) >= 4))'
	(($(rcli 0 PTTL "$KEY") > 500000))
	survives
}

@test "a run survives that its connections are killed" {
	local i
	servers_start 3
	start -t 3s
	for i in 0 1 2; do rcli "$i" CLIENT KILL TYPE normal SKIPME yes; done
	renewals 1
	for i in 0 1 2; do rcli "$i" CLIENT KILL TYPE normal SKIPME yes; done
	renewals 1
	survives
}

@test "a run survives that its only server is stopped for less than the lease" {
	servers_start 1
	start -t 6s --server-timeout 500ms -k 200ms
	server_stop 0
	sleep 2.5 # one renewal is due in that time
	server_continue 0
	renewals 1
	survives
}

# busy, freed [I...]: these servers execute somebody's script, and refuse all else but PING; and do not any more.
busy() {
	local i
	for i; do
		rcli "$i" CONFIG SET lua-time-limit 1 >/dev/null
		spawn "script$i" rcli "$i" EVAL 'while true do end' 0
	done
	for i; do wait_until "[[ \$(rcli $i GET x 2>&1) == *BUSY* ]]"; done
	for i; do spawn "rests$i" rests "$(server_pid "$i")"; done
}

# rests PID: this process stands still most of the time, or it would take all of a processor. It answers in time
# all the same.
rests() {
	while kill -STOP "$1"; do
		pause 0.03
		kill -CONT "$1"
		pause 0.005
	done
}

freed() {
	local i
	for i; do
		kill "$(pid "rests$i")"
		finish "rests$i"
		server_continue "$i"
		rcli "$i" SCRIPT KILL >/dev/null
	done
	for i; do finish "script$i"; done
}

@test "a run survives that three servers are busy with a script, and refuse to say who they are" {
	servers_start 3
	start -v -t 15s --server-timeout 300ms
	busy 0 1 2
	# on a connection that was made meanwhile, too
	wait_until '(($(grep -c "not renewed: .*BUSY" "$TMP/run.err") >= 4))' 14
	freed 0 1 2
	wait_until 'grep -A 99 "not renewed: .*BUSY" "$TMP/run.err" | grep -q ": renewed, "' 10
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	[[ $status == 3 ]]
	wait_until 'key_free 0 1 2'
}

@test "a run that begins while three servers are busy with a script begins once they are not" {
	servers_start 3
	scripts_known
	busy 0 1 2
	spawn run "$REDLOCK" run -v --quarantine 0 -w 60s "$KEY" true
	wait_until '(($(grep -c "asked again" "$TMP/run.err") >= 9))'
	freed 0 1 2
	finish run
	[[ $status == 0 ]]
	wait_until 'key_free 0 1 2'
}

# released_when_free SERVERS: they are busy as the command ends.
released_when_free() {
	local all
	servers_start "$1"
	all=$(seq -s ' ' 0 $(($1 - 1)))
	start -v -t 2m --server-timeout 30s
	# shellcheck disable=SC2086 # numbers
	busy $all
	touch "$TMP/end"
	wait_until 'grep -q "BUSY.*: asked again" "$TMP/run.err"'
	# shellcheck disable=SC2086
	freed $all
	finish run
	[[ $status == 3 && $(<"$TMP/run.err") == *"$KEY: released"* ]]
	wait_until "key_free $all"
}

@test "a lock is released although its server is busy with a script when the command ends" {
	released_when_free 1
}

@test "a lock is released although its servers are busy with a script when the command ends" {
	released_when_free 3
}

@test "a minority that stays busy when the command has ended delays nothing, and is told of the release" {
	servers_start 3
	start -v -t 2m --server-timeout 30s
	busy 0 1
	touch "$TMP/end"
	wait_until '(($(grep -c "BUSY.*: asked again" "$TMP/run.err") == 2))'
	freed 1
	finish run
	[[ $status == 3 ]]
	freed 0
	wait_until 'key_free 0 1 2'
}

@test "whatever does not wait for KEY goes on as soon as its server is not busy any more" {
	servers_start 1
	local verb token=
	for verb in acquire status history check list extend release; do
		busy 0
		case $verb in
		extend | release) spawn "$verb" "$REDLOCK" "$verb" -v --server-timeout 30s "$KEY" "$token" ;;
		*) spawn "$verb" "$REDLOCK" "$verb" -v --server-timeout 30s "$KEY" ;;
		esac
		wait_until 'grep -q "BUSY.*: asked again" "$TMP/$verb.err"'
		freed 0
		finish "$verb"
		[[ $status == 0 ]]
		[[ $verb != acquire ]] || token=$output
	done
	key_free 0
}

# rejected I: how many requests it has refused.
rejected() {
	rcli "$1" INFO commandstats | awk -F '[,=:]' '/^cmdstat_eval/ { for (i = 1; i < NF; i++) if ($i == "rejected_calls") n += $(i + 1) } END { print n + 0 }'
}

@test "a server that stays busy is asked again for the time of a round, not while the command runs" {
	servers_start 3
	scripts_known
	local begun
	busy 2
	start -t 6s -k 200ms --server-timeout 200ms
	begun=$NOW
	wait_until '((NOW > begun + 4000))' # one renewal, or two
	freed 2
	(($(rejected 2) > 0 && $(rejected 2) <= 25)) || { rejected 2 >&2 && false; }
	survives
}

@test "a server that does not let its user in is asked for a login once a second, however often the others are asked" {
	servers_start 3
	local i urls
	export REDLOCK_QUARANTINE=0 REDLOCK_PASSWORD=pw
	for i in 0 1 2; do rcli $i ACL SETUSER ann on '>pw' '~*' '&*' +@all; done
	rcli 2 ACL SETUSER ann off
	urls=$(server_urls | sed 's,unix://,&ann@,g')
	redlock acquire -S "$urls" "$KEY"
	rcli 2 CONFIG RESETSTAT
	redlock run -S "$urls" -w 2s --poll=10ms "$KEY" true
	[[ $status == 75 ]]
	i=$(rcli 2 INFO stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p')
	((i > 1 && i <= 10)) || { echo "$i" >&2 && false; }
}

# locked_out SERVERS: their user may not log in for a while, and has no connection.
locked_out() {
	local i all
	servers_start "$1"
	all=$(seq -s ' ' 0 $(($1 - 1)))
	for i in $all; do rcli "$i" ACL SETUSER ann on '>pw' '~*' '&*' +@all; done
	export REDLOCK_PASSWORD=pw
	start -v -t 15s -S "$(server_urls | sed 's,unix://,&ann@,g')"
	for i in $all; do
		rcli "$i" ACL SETUSER ann off
		rcli "$i" CLIENT KILL USER ann
	done
	wait_until 'grep -q "not renewed: .*WRONGPASS" "$TMP/run.err"' 14
	for i in $all; do rcli "$i" ACL SETUSER ann on; done
	wait_until 'grep -A 99 "not renewed: .*WRONGPASS" "$TMP/run.err" | grep -q ": renewed, "' 10
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	[[ $status == 3 ]]
	wait_until "key_free $all"
}

@test "a run survives that its user may not log in for a while: one server" {
	locked_out 1
}

@test "a run survives that its user may not log in for a while: three servers" {
	locked_out 3
}

@test "a run survives SCRIPT FLUSH" {
	servers_start 1
	start -t 2s
	rcli 0 SCRIPT FLUSH
	renewals 1
	survives
}

@test "a run survives that two of five servers restart empty, and gives them the lock again" {
	local fence
	servers_start 5
	start -t 3s
	fence=$(fence_at 0)
	server_restart 3 4
	wait_until 'key_held_by $token 3 4'
	(($(fence_at 3) >= fence && $(fence_at 4) >= fence))
	(($(rcli 3 PTTL "$KEY") > 0))
	survives
	wait_until 'key_free 3 4'
}

@test "a run survives that all five servers restart empty one after another" {
	local i fence
	servers_start 5
	start -t 3s
	fence=$(fence_at 0)
	for i in 0 1 2 3 4; do
		server_restart "$i"
		wait_until "key_held_by $token $i"
		(($(fence_at "$i") >= fence))
	done
	survives
}

@test "a server that answers last is given the lock again, too" {
	servers_start 3
	proxies_start
	start -S "$(proxy_urls)" -t 3s
	proxy 2 'delay 50'
	rcli 2 DEL "$KEY"
	wait_until 'key_held_by $token 2'
	survives
}

@test "a run survives a server that is down for good" {
	servers_start 3
	start -t 2s
	server_kill 2
	renewals 3
	survives
}

@test "a key that was deleted means the lock is lost: the command is stopped, 76" {
	servers_start 1
	start -t 2s
	rcli 0 DEL "$KEY"
	lost
	key_free 0
}

@test "a key that was deleted on a majority means the lock is lost" {
	local i
	servers_start 5
	start -t 6s
	# no renewal comes in between, which would put back the first of them
	stop_process "$(pid run)"
	for i in 0 2 4; do rcli "$i" DEL "$KEY"; done
	kill -CONT "$(pid run)"
	lost
	wait_until 'key_free 0 1 2 3 4'
}

@test "a key that was taken over means the lock is lost, and the other's value is untouched" {
	servers_start 1
	start -t 2s
	rcli 0 SET "$KEY" another-program PX 300000
	lost
	key_held_by another-program 0
	(($(rcli 0 PTTL "$KEY") > 100000))
}

@test "a key that was taken over on a majority by a value without expiry is lost and untouched" {
	local i
	servers_start 5
	start -t 2s
	for i in 0 1 2; do rcli "$i" SET "$KEY" another-program; done
	lost
	key_held_by another-program 0 1 2
	[[ $(rcli 1 PTTL "$KEY") == -1 ]]
}

@test "a key that was taken over on a minority is not lost, and the other's value is untouched" {
	servers_start 3
	start -t 2s
	rcli 2 SET "$KEY" another-program
	renewals 2
	survives
	key_held_by another-program 2
}

@test "a majority that is down for the whole lease means the lock is lost before it ends" {
	local end
	servers_start 3
	start -t 2s
	server_kill 1 2
	end=$((NOW + 2000))
	lost
	(($(last_beat "$TMP/stamps") < end))
	wait_until 'key_free 0'
}

@test "a lost lock stops a command that ignores SIGTERM" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" "$STAMP" -t -c 1 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 2'
	rcli 0 DEL "$KEY"
	lost
}

@test "a lost lock is told with SIGTERM first, and the command may tidy up" {
	servers_start 1
	spawn run "$REDLOCK" run -t 4s -k 1s "$KEY" \
		bash -c 'trap "echo tidied; exit 0" TERM; exec 2>&-; echo up
			while ((SECONDS < 60)); do sleep 0.01; done'
	wait_until '[[ -s $TMP/run.out ]]'
	rcli 0 DEL "$KEY"
	finish run
	expect 76 $'up\ntidied' "redlock: $KEY: lock lost: .*"
}

@test "--on-lost warn says it, and the exit status is the command's" {
	servers_start 1
	start -t 2s --on-lost warn
	rcli 0 SET "$KEY" another-program
	wait_until '[[ -s $TMP/run.err ]]'
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 3 '' "redlock: $KEY: lock lost: .*"
	key_held_by another-program 0
}

@test "--on-lost USR1 sends that signal once, and exits 76" {
	servers_start 1
	spawn run "$REDLOCK" run -t 2s --on-lost USR1 "$KEY" \
		bash -c 'trap "echo told" USR1; exec 2>&-; echo up
			until [[ -e $0 || SECONDS -gt 60 ]]; do sleep 0.01; done; exit 3' \
		"$TMP/end"
	wait_until '[[ -s $TMP/run.out ]]'
	rcli 0 SET "$KEY" another-program
	wait_until 'grep -q told $TMP/run.out'
	sleep 2.2 # past the end of the lease, when a second one might come
	touch "$TMP/end"
	finish run
	expect 76 $'up\ntold' "redlock: $KEY: lock lost: .*: COMMAND is sent the signal of --on-lost"
	key_held_by another-program 0
}

# threadless COMMAND...: $threadless runs it where no thread can be started (test/lab/inject/inject.c).
threadless() {
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer's runtime has to come first"
	: >"$TMP/report"
	threadless=(env LD_PRELOAD="$TOOLS/inject.so" INJECT=0:pthread_create:0:11 INJECT_REPORT="$TMP/report" "$@")
}

# native: valgrind has a library of its own to preload
# bats test_tags=native
@test "without a thread to be had the lock is renewed all the same, and its loss is seen" {
	local threadless
	servers_start 3
	mkdir "$TMP/stamps"
	threadless "$REDLOCK" run --quarantine 0 -t 3s --status-fd 1 "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	spawn run "${threadless[@]}"
	wait_until 'stamped $TMP/stamps'
	renewals 4
	server_stop 0
	renewals 2 1
	server_continue 0
	touch "$TMP/end"
	finish run
	[[ $status == 3 && ! $stderr ]]
	(($(jq .renewals <<<"$output") >= 5))
	wait_until 'key_free 0'
	rm -r "$TMP/stamps" "$TMP/end"
	mkdir "$TMP/stamps"
	threadless "$REDLOCK" run --quarantine 0 -t 3s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	spawn run "${threadless[@]}"
	wait_until 'stamped $TMP/stamps'
	renewals 2
	rcli 0 DEL "$KEY"
	rcli 1 DEL "$KEY"
	lost
}

# native: the sanitizers' and valgrind's own needs are beyond any limit
# bats test_tags=native
@test "a command that fills the limit of processes keeps its lock" {
	[[ $REDLOCK == */build/redlock ]] || skip "a sanitizer needs more"
	[[ $(id -u) == 0 ]] || skip "another user to be needs root"
	# a user that has no other process anywhere
	local as=(setpriv --reuid $((100000 + BASHPID)) --regid 61234 --clear-groups)
	"${as[@]}" test -x "$REDLOCK" || skip "other users may not run $REDLOCK"
	servers_start_tcp 1
	spawn run "${as[@]}" bash -c 'ulimit -u 8 && exec "$@"' - \
		"$REDLOCK" run -t 3s -v --status-fd 1 "$KEY" perl -e '
			sub fill { while (defined(my $pid = fork)) { $pid or sleep(9), exit } }
			fill; $| = 1; print "full\n";
			for (1 .. 600) { fill; select undef, undef, undef, 0.01 } # what ends makes no room for a thread
			exit 3'
	wait_until '[[ $(<"$TMP/run.out") == *full* ]]'
	finish run
	[[ $status == 3 && $stderr == *"no thread to renew the lock"* && $stderr != *lost* ]]
	(($(grep outcome <<<"$output" | jq .renewals) >= 3))
}

# native: as above
# bats test_tags=native
@test "a limit of memory leaves room for the thread that renews" {
	[[ $REDLOCK == */build/redlock ]] || skip "a sanitizer needs more"
	servers_start 1
	spawn run bash -c 'ulimit -s 4000000 && ulimit -v 1000000 && exec "$@"' - \
		"$REDLOCK" run -v -t 2s "$KEY" sh -c "until [ -e $TMP/end ]; do sleep 0.05; done; exit 3"
	wait_until '[[ $(<"$TMP/run.err") == *renewed* ]]'
	touch "$TMP/end"
	finish run
	[[ $status == 3 && $stderr != *thread* ]]
}

@test "a full pipe that nobody reads keeps no lock from being renewed; how many lines were dropped is said" {
	servers_start 1
	mkfifo "$TMP/log"
	mkdir "$TMP/stamps"
	exec 9<>"$TMP/log"
	server_stop 0
	spawn run sh -c 'exec "$@" 2>"$0" 9>&-' "$TMP/log" "$REDLOCK" run -v -t $((6 * SLOW))s \
		--server-timeout $((2 * SLOW))s "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	read -r <&9 # it has asked
	[[ $REPLY == *": settings: "* ]]
	run ! dd if=/dev/zero of="$TMP/log" oflag=nonblock bs=1k # until it is full
	server_continue 0
	wait_until 'stamped $TMP/stamps'
	renewals 3
	is_beating "$TMP/stamps"
	spawn reader sh -c 'exec cat "$0" 9>&-' "$TMP/log"
	wait_until '[[ -s $TMP/reader.out ]]' # it has opened it
	exec 9>&-
	wait_until 'tr -d "\0" <"$TMP/reader.out" | grep -q ": $KEY: renewed"'
	touch "$TMP/end"
	finish run
	expect 3
	finish reader
	output=$(tr -d '\0' <"$TMP/reader.out")
	[[ $output == "redlock: lines dropped here, as standard error was full: "[1-9]*"
redlock: "*": $KEY: renewed, "*": $KEY: released" ]]
	key_free 0
}

@test "a full pipe keeps no error from its reader: that the lock was lost is said once there is room" {
	servers_start 1
	mkfifo "$TMP/log"
	exec 9<>"$TMP/log"
	spawn run sh -c 'exec "$@" 2>"$0" 9>&-' "$TMP/log" "$REDLOCK" run -v -t $((3 * SLOW))s "$KEY" \
		sh -c 'echo $$ && exec sleep 600'
	wait_until '[[ -s $TMP/run.out ]]'
	run ! dd if=/dev/zero of="$TMP/log" oflag=nonblock bs=1k # until it is full
	rcli 0 SET "$KEY" other
	wait_until '! is_alive "$(<"$TMP/run.out")"'
	spawn reader sh -c 'exec cat "$0" 9>&-' "$TMP/log"
	wait_until '[[ -s $TMP/reader.out ]]' # it has opened it
	exec 9>&-
	finish run
	[[ $status == 76 ]]
	finish reader
	tr -d '\0' <"$TMP/reader.out" | grep "redlock: $KEY: lock lost: "
}

@test "a full pipe keeps nobody from stopping COMMAND: --max-hold kills it, and after a loss signals reach it" {
	servers_start 1
	mkfifo "$TMP/log"
	exec 9<>"$TMP/log"
	cat >"$TMP/command" <<-'END'
		exec 2>/dev/null
		trap '' TERM
		trap 'exit 3' HUP
		trap 'touch "$0.lost"' USR1
		echo $$
		while :; do sleep 0.1; done
	END
	spawn held sh -c 'exec "$@" 2>"$0" 9>&-' "$TMP/log" "$REDLOCK" run --max-hold 1s "$KEY" sh "$TMP/command"
	spawn lost sh -c 'exec "$@" 2>"$0" 9>&-' "$TMP/log" "$REDLOCK" run -t 3s --on-lost USR1 "$KEY-2" sh "$TMP/command"
	run ! dd if=/dev/zero of="$TMP/log" oflag=nonblock bs=1k # until it is full
	wait_until '[[ -s $TMP/held.out && -s $TMP/lost.out ]]'
	wait_until '! is_alive "$(<"$TMP/held.out")"'
	rcli 0 SET "$KEY-2" other
	wait_until '[[ -e $TMP/command.lost ]]'
	kill -HUP "$(pid lost)"
	wait_until '! is_alive "$(<"$TMP/lost.out")"'
	spawn reader sh -c 'exec cat "$0" 9>&-' "$TMP/log"
	wait_until '[[ -s $TMP/reader.out ]]' # it has opened it
	exec 9>&-
	finish held
	[[ $status == 124 ]]
	finish lost
	[[ $status == 76 ]]
	finish reader
	output=$(tr -d '\0' <"$TMP/reader.out")
	[[ $output == *"redlock: $KEY: stopped after --max-hold 1s"* ]]
	[[ $output == *"redlock: $KEY-2: lock lost: "* ]]
}
