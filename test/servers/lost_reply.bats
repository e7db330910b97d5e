#!/usr/bin/env bats
# A reply that is lost, or late, after the server has done what it was asked:
# nothing is orphaned, nothing is released twice.
# shellcheck disable=SC2016,SC2154
# bats file_tags=long

load ../lib/helper

# behind_proxies COUNT: redlock sees the servers through proxies; $DIRECT has their own URLs.
behind_proxies() {
	servers_start "$1"
	scripts_known
	DIRECT=$REDLOCK_SERVERS
	proxies_start
	REDLOCK_SERVERS=$(proxy_urls)
	export REDLOCK_SERVERS
}

# held_or_free: as the exit status of an acquire of one minute has it.
held_or_free() {
	case $status in
	0)
		expect 0 '[0-9a-f]{32}' && key_held_by "$output" 0
		;;
	*)
		expect 69 '' "redlock: $KEY: $(proxy_url 0): .*" && wait_until 'key_free 0'
		;;
	esac
}

# expect_after_outage STATUS [OUTPUT [STDERR]]: as expect; a wait may have said that it goes on.
expect_after_outage() {
	stderr=$(grep -v "^redlock: $KEY: still waiting: " <<<"$stderr") || :
	expect "$@"
}

# acquire: $token owns KEY, by way of the servers themselves.
acquire() {
	token=$("$REDLOCK" acquire -S "$DIRECT" --quarantine 0 -t 60s "$KEY")
}

@test "acquire: the reply lost, the connection closed: the lock is known or gone" {
	behind_proxies 1
	proxy 0 'close 1'
	redlock acquire -t 60s "$KEY"
	proxy_did 0 lost
	held_or_free
}

@test "acquire: the reply lost, the connection silent: the lock is gone" {
	behind_proxies 1
	proxy 0 mute
	redlock acquire -t 60s --server-timeout 300ms "$KEY"
	proxy_did 0 lost
	expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	wait_until 'key_free 0'
	[[ $(rcli 0 EXISTS "$(record)") == 1 ]] # it was granted
}

@test "a waiter whose first connection stays silent gets KEY on another one" {
	behind_proxies 1
	proxy 0 'mute 1'
	redlock run --server-timeout 300ms -w 9s "$KEY" true
	proxy_did 0 lost
	expect 0 '' "redlock: $KEY: still waiting: .*"
	wait_until 'key_free 0'
}

@test "acquire: every reply lost, the connection closed: the lock is gone" {
	behind_proxies 1
	proxy 0 close
	redlock acquire -t 60s "$KEY"
	proxy_did 0 lost
	expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	wait_until 'key_free 0'
}

@test "acquire: the request lost, the connection reset: nothing happened" {
	behind_proxies 1
	proxy 0 reset
	redlock acquire -S "$(proxy_tcp_url 0)" -t 60s "$KEY"
	proxy_did 0 reset
	expect 69 '' "redlock: $KEY: $(proxy_tcp_url 0): .*"
	[[ $(rcli 0 DBSIZE) == 0 ]]
}

@test "acquire -w: the reply lost, the connection closed: one lock, and its token is known" {
	behind_proxies 1
	proxy 0 'close 1'
	redlock acquire -t 60s -w 20s "$KEY"
	proxy_did 0 lost
	expect_after_outage 0 '[0-9a-f]{32}'
	key_held_by "$output" 0
}

@test "acquire -w: the reply lost, the connection silent: one lock, and its token is known" {
	behind_proxies 1
	proxy 0 'mute 1'
	redlock acquire -t 60s -w 20s --server-timeout 300ms "$KEY"
	proxy_did 0 lost
	expect_after_outage 0 '[0-9a-f]{32}'
	key_held_by "$output" 0
}

@test "acquire: the replies of a majority lost: the lock is gone on every server" {
	local i fault
	behind_proxies 5
	for fault in close mute; do
		for i in 0 2 3; do proxy "$i" "$fault"; done
		redlock acquire --quarantine 0 -t 60s --server-timeout 500ms "$KEY"
		expect 69 '' "redlock: $KEY: no quorum: [^:]+: .*"
		for i in 0 2 3; do proxy_did "$i" lost; done
		wait_until 'key_free 0 1 2 3 4'
	done
}

@test "the replies of a minority lost: acquire and release are done, everywhere" {
	local i fault
	behind_proxies 5
	for fault in close mute; do
		for i in 1 4; do proxy "$i" "$fault"; done
		redlock acquire --quarantine 0 -t 60s "$KEY"
		expect 0 '[0-9a-f]{32}'
		redlock release "$KEY" "$output"
		expect 0
		wait_until 'key_free 0 1 2 3 4'
	done
}

@test "acquire: interrupted while its request is on the way: nothing is left behind" {
	local signal number
	behind_proxies 1
	for signal in TERM INT; do
		proxy 0 hold
		spawn acquire "$REDLOCK" acquire -t 60s --server-timeout 500ms "$KEY"
		wait_until 'proxy_did 0 hold'
		kill "-$signal" "$(pid acquire)"
		finish acquire
		number=$((128 + $(kill -l "$signal")))
		expect "$number"
		proxy 0 pass
		wait_until 'server_drained 0'
		[[ $(rcli 0 EXISTS "$(record)") == 1 ]] # the request did arrive
		key_free 0
		: >"$PROXIES/0.log"
	done
}

@test "run: the reply to its acquire lost: the command runs once, and the key is free afterwards" {
	behind_proxies 1
	proxy 0 'close 1'
	redlock run -t 60s -w 20s "$KEY" sh -c 'echo ran'
	proxy_did 0 lost
	expect_after_outage 0 ran
	key_free 0
}

@test "extend: the reply lost, the connection closed: it is never called not held" {
	behind_proxies 1
	acquire
	proxy 0 'close 1'
	redlock extend -t 600s "$KEY" "$token"
	proxy_did 0 lost
	[[ $status == 0 ]] || expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	(($(rcli 0 PTTL "$KEY") > 60000))
	key_held_by "$token" 0
}

@test "extend: the reply lost, the connection silent: 69, and the lock is kept" {
	behind_proxies 1
	acquire
	proxy 0 mute
	redlock extend -t 600s --server-timeout 300ms "$KEY" "$token"
	proxy_did 0 lost
	expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	(($(rcli 0 PTTL "$KEY") > 60000))
	key_held_by "$token" 0
}

@test "release: the reply lost, the connection closed: it is never called not held" {
	behind_proxies 1
	acquire
	proxy 0 'close 1'
	redlock release "$KEY" "$token"
	proxy_did 0 lost
	[[ $status == 0 ]] || expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	key_free 0
}

@test "release: a server that is away for a moment is asked again in the same round" {
	behind_proxies 1
	acquire
	proxy 0 'reset 4'
	redlock release --server-timeout 20s "$KEY" "$token"
	expect 0
	key_free 0
}

@test "release: servers that are away for a moment are asked again in the same round" {
	behind_proxies 3
	acquire
	proxy 0 'reset 4'
	proxy 1 'reset 6'
	redlock release --server-timeout 20s "$KEY" "$token"
	expect 0
	wait_until 'key_free 0 2'
}

@test "release: a server that is away is asked again with pauses, and not after the round" {
	behind_proxies 1
	acquire
	proxy 0 reset
	redlock release --server-timeout 1s "$KEY" "$token"
	expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	proxy_did 0 reset 2
	! proxy_did 0 reset 50 || false
}

# noted_late SERVERS: the servers are stopped as the command ends; its success is noted when they go on.
noted_late() {
	local all
	servers_start "$1"
	scripts_known
	all=$(seq -s ' ' 0 $(($1 - 1)))
	export REDLOCK_QUARANTINE=0
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run --once-in 1h -t 60s --server-timeout 300ms "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	# shellcheck disable=SC2086 # numbers
	server_stop $all
	touch "$TMP/end"
	wait_until 'grep -q ": not released yet, trying for .* more: .*no answer" "$TMP/run.err"'
	# shellcheck disable=SC2086
	server_continue $all
	finish run
	[[ $status == 0 && $(<"$TMP/run.err") != *"the lock was gone"* && $(<"$TMP/run.err") != *"not released;"* ]]
	wait_until "key_free $all"
	redlock run -n --once-in 1h "$KEY" touch "$TMP/again"
	[[ $status == 75 && ! -e $TMP/again ]]
}

@test "--once-in: a success that no server has heard of is told until they have: one server" {
	noted_late 1
}

@test "--once-in: a success that no server has heard of is told until they have: three servers" {
	noted_late 3
}

# In a rolling restart: one server never had the lock, and another is away as the command ends.
@test "--once-in: a success that only a minority has noted is told on, until a majority has" {
	servers_start 3 --appendonly yes --appendfsync always
	export REDLOCK_QUARANTINE=0
	mkdir "$TMP/stamps"
	server_kill 2
	spawn run "$REDLOCK" run --once-in 1h -t 60s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	server_restart 2
	server_kill 0
	touch "$TMP/end"
	wait_until 'grep -q ": released, but its success is not noted yet, trying for .* more: " "$TMP/run.err"'
	server_restart 0
	finish run
	[[ $status == 0 ]]
	[[ $(rcli 0 LLEN "$(record):runs") == 1 && $(rcli 1 LLEN "$(record):runs") == 1 ]]
	server_kill 1
	redlock run -w 20s --once-in 1h -t 2s "$KEY" touch "$TMP/again"
	[[ $status == 75 && ! -e $TMP/again ]]
}

@test "--once-in: a connection that is silent as the command ends is replaced, and its success noted" {
	behind_proxies 1
	scripts_known
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run --once-in 1h -t 60s --server-timeout 2s "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	proxy 0 'mute 1' pass
	touch "$TMP/end"
	finish run
	[[ $status == 0 && $(<"$TMP/run.err") != *"not released;"* ]]
	key_free 0
	[[ $(rcli 0 LLEN "$(record):runs") == 1 ]]
}

@test "--once-in: what --max-hold has stopped is no success, and is not told on" {
	servers_start 1
	export REDLOCK_QUARANTINE=0 TMP
	spawn run "$REDLOCK" run --once-in 1h --max-hold 2s -t 60s --server-timeout 300ms "$KEY" \
		sh -c 'trap "touch \"$TMP/told\"; until [ -e \"$TMP/end\" ]; do sleep 0.05; done; exit 0" TERM; while :; do sleep 0.05; done'
	wait_until '[[ -e $TMP/told ]]'
	server_stop 0
	touch "$TMP/end"
	finish run
	server_continue 0
	[[ $status == 124 && $(<"$TMP/run.err") != *"not released yet"* && $(<"$TMP/run.err") == *"not released;"* ]]
}

@test "--once-in: a signal ends the telling of a success, and a failure is not told so long" {
	servers_start 1
	export REDLOCK_QUARANTINE=0
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run --once-in 1h -t 60s --server-timeout 300ms "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	server_kill 0
	touch "$TMP/end"
	wait_until 'grep -q ": not released yet" "$TMP/run.err"'
	kill -TERM "$(pid run)"
	finish run
	[[ $status == 0 && $(<"$TMP/run.err") == *": not released; the lease ends by itself in "* ]]
	server_restart 0
	mkdir "$TMP/stamps2"
	spawn failed "$REDLOCK" run --once-in 1h -t 60s --server-timeout 300ms "$KEY" "$STAMP" -u "$TMP/end2" -x 3 "$TMP/stamps2"
	wait_until 'stamped $TMP/stamps2'
	server_kill 0
	touch "$TMP/end2"
	finish failed
	[[ $status == 3 && $(<"$TMP/failed.err") != *"not released yet"* ]]
}

@test "release: the reply lost, the connection silent: 69, and the lock is gone" {
	behind_proxies 1
	acquire
	proxy 0 mute
	redlock release --server-timeout 300ms "$KEY" "$token"
	proxy_did 0 lost
	expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	key_free 0
}

@test "release: the reply lost, the lock taken by another: a repeated release leaves it alone" {
	local slow
	behind_proxies 1
	acquire
	slow=$token
	proxy 0 'close 1' hold
	spawn release "$REDLOCK" release --server-timeout 20s "$KEY" "$slow"
	wait_until 'proxy_did 0 lost'
	acquire
	[[ $token != "$slow" ]]
	proxy 0 pass
	finish release
	[[ $status == 0 ]] || expect 1 '' "redlock: $KEY: not held by this token.*"
	key_held_by "$token" 0
}

# long_run [OPTION...]: a run whose command ends when $TMP/end exists.
long_run() {
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run "$@" "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
}

ends_well() {
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 3
	wait_until 'key_free 0'
}

@test "run: the reply to a renewal lost, the connection closed: renewed on another one" {
	behind_proxies 1
	long_run -t 3s -k 200ms
	proxy 0 'close 1'
	wait_until 'proxy_did 0 lost'
	renewals 2
	ends_well
}

@test "run: the reply to a renewal lost, the connection silent: renewed on another one" {
	behind_proxies 1
	long_run -t 3s -k 200ms --server-timeout 300ms
	proxy 0 'mute 1'
	wait_until 'proxy_did 0 lost'
	renewals 2
	ends_well
}

@test "run: every reply to renewals lost: stopped before the lease that is known of ends" {
	local fault end
	for fault in close mute; do
		behind_proxies 1
		rm -rf "$TMP/stamps"
		long_run -t 2s
		proxy 0 "$fault"
		end=$((NOW + 2000))
		finish run
		expect 76 '' "redlock: $KEY: lock lost: .*"
		(($(last_beat "$TMP/stamps") < end))
		wait_until 'key_free 0'
	done
}

@test "acquire -w: replies that come too late are not taken for answers to the next request" {
	behind_proxies 1
	proxy 0 'delay 200'
	redlock acquire -t 60s -w 3s --server-timeout 300ms "$KEY"
	case $status in
	0) key_held_by "$output" 0 ;;
	*) expect_after_outage 69 '' "redlock: $KEY: $(proxy_url 0): .*" && wait_until 'key_free 0' ;;
	esac
}

@test "run: late replies are not taken for answers to what was asked later" {
	behind_proxies 1
	long_run -t 6s -k 200ms --server-timeout 300ms
	proxy 0 'delay 400'
	renewals 1 # the request arrives, the reply does after the time-out
	proxy 0 pass
	renewals 1
	ends_well
}

# native: somebody's lease of a second has to outlast redlock's start, and no more
# bats test_tags=native
@test "run: an answer that has come late out of the queue is no reason to give up" {
	local away
	servers_start 1
	for away in 1.5 1.7 1.9; do
		rcli 0 SET "$KEY" somebody PX 1000
		spawn waiter "$REDLOCK" run -t 2s -k 100ms "$KEY" echo ran
		wait_until '[[ $(rcli 0 ZCARD "$(record):queue") == 1 ]]'
		server_stop 0
		sleep "$away" # a request is on its way, and the lease that it asks for all but over
		server_continue 0
		finish waiter
		expect_after_outage 0 ran
	done
}

@test "run: validity counts from the renewal's request, not from its reply" {
	behind_proxies 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 3s -k 200ms --server-timeout 900ms "$KEY" "$STAMP" -t "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	spawn next "$REDLOCK" run -S "$DIRECT" -t 3s -w 40s "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	proxy 0 'delay 350'
	renewals 1
	sleep 0.4 # the reply is there, too
	proxy 0 hold # and no other
	finish next
	[[ $status == 0 ]]
	assert_exclusive "$TMP/stamps" 2
	finish run
	[[ $status == 76 ]]
}

@test "run: the reply to its release lost: the exit status is the command's, and the key is free" {
	local fault
	for fault in 'close 1' close mute; do
		behind_proxies 1
		rm -rf "$TMP/stamps" "$TMP/end"
		long_run -t 60s --server-timeout 300ms
		proxy 0 "$fault"
		touch "$TMP/end"
		finish run
		[[ $status == 3 && $stderr == @(|"redlock: $KEY: "*) && $stderr != *$'\n'* ]]
		key_free 0
	done
}

@test "run: no server answers the release: it says when the lease will end" {
	servers_start 1
	long_run -t 60s --server-timeout 300ms
	server_stop 0
	touch "$TMP/end"
	finish run
	expect 3 '' "redlock: $KEY: .*(5[0-9]|60)s.*"
	server_continue 0
	wait_until 'key_free 0' # the release was on its way
}

@test "replies that come byte by byte are replies" {
	behind_proxies 3
	local i
	for i in 0 1 2; do proxy "$i" drip; done
	redlock acquire --quarantine 0 -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock extend -t 90s "$KEY" "$output"
	[[ $status == 0 ]]
	redlock run --quarantine 0 -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
}

@test "an extend that is answered when the new lease is over already has failed: 69" {
	local token i
	behind_proxies 3
	token=$("$REDLOCK" acquire -S "$DIRECT" --quarantine 0 -t $((1000 * SLOW))ms "$KEY")
	for i in 0 1 2; do proxy "$i" "delay $((600 * SLOW))"; done
	redlock extend --server-timeout 20s "$KEY" "$token"
	expect 69 '' "redlock: $KEY: the servers extended it too late: the lease was over when the answers came"
	token=$("$REDLOCK" acquire -S "$DIRECT" --quarantine 0 -t 1h "$KEY")
	redlock extend -v --server-timeout 20s "$KEY" "$token"
	[[ $status == 0 && $stderr == *"$KEY: extended, 59m"*s' left' ]]
}

@test "validity counts from the request, not from the reply" {
	behind_proxies 1
	proxy 0 'delay 300'
	redlock acquire --format json -t 60s --server-timeout 10s "$KEY"
	[[ $status == 0 && $output =~ \"valid_ms\":\ ?([0-9]+) ]]
	((BASH_REMATCH[1] <= 60000 - 600 - 602)) # the way there and back, the drift
}

@test "answers that come when the lease is over are no lock" {
	behind_proxies 1
	proxy 0 'delay 300'
	redlock acquire -t 400ms --server-timeout 10s "$KEY"
	expect 69 '' "redlock: $KEY: the servers granted it too late: .*"
	redlock run -n -t 30s -S "$DIRECT" "$KEY" true
	expect 0
}

# native: strace would stop valgrind
# bats test_tags=native
@test "run: a release reaches a server that has not written its answer to a renewal yet" {
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	servers_start 3 --appendonly yes --appendfsync always
	takes first
	wait_until 'entered first'
	takes next -t 1h
	wait_until 'queued 1'
	ends first
	done_well first
	wait_until 'entered next && (($(rcli 2 PTTL "$KEY") > 3000))' # renewed, for the first time
	# each answer waits for the disk; meanwhile redlock has ended
	spawn strace strace -f -qq -p "$(<"$SERVERS/2/pid")" -e trace=fdatasync,fsync \
		-e inject=fdatasync,fsync:delay_enter=400000 -o "$TMP/trace"
	wait_until 'grep -q "^TracerPid:.[1-9]" "/proc/$(<"$SERVERS/2/pid")/status"'
	rcli 0 PUBLISH "$(rcli 0 PUBSUB CHANNELS "$(record):*")" '0 0 0 -'
	wait_until '[[ -s $TMP/trace ]]'
	ends next
	done_well next
	wait_until 'key_free 0 1 2'
	[[ $(grep -c fdatasync "$TMP/trace") -gt 0 ]]
	kill "$(pid strace)"
}
