#!/usr/bin/env bats
# The command never outlives the lease: whatever happens to redlock, its
# command's whole group is dead before anybody else can have the key.
# shellcheck disable=SC2016,SC2153

load ../lib/helper
load ../lib/cli

# start: a run whose command has two children; all ignore SIGTERM.
start() {
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run --quarantine 0 -t 2s "$KEY" \
		"$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
}

# next_in_line: somebody waits for the key, over the servers' sockets.
next_in_line() {
	local i sockets=
	for ((i = 0; i < SERVER_COUNT; i++)); do sockets+=,unix://$SERVERS/$i/redis.sock; done
	spawn next "$REDLOCK" run -S "${sockets#,}" --quarantine 0 -t 2s -w 40s "$KEY" \
		"$STAMP" -d 20 "$TMP/stamps"
}

# dead_before_next: the next one got the key, and found nobody alive.
dead_before_next() {
	finish next
	[[ $status == 0 ]]
	assert_exclusive "$TMP/stamps" 2
}

guard_of() {
	child_named "$(pid "$1")" lease-guard
}

session_of() {
	local stat
	stat=$(<"/proc/$1/stat")
	read -r _ _ _ session _ <<<"${stat##*) }"
	echo "$session"
}

# is_guard PID
is_guard() {
	is_alive "$1" && [[ $(cat "/proc/$1/comm" 2>/dev/null) == lease-guard ]]
}

@test "redlock killed: the command's group is dead before anybody else gets the key" {
	servers_start 1
	start
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
}

@test "redlock's group killed: the command's group is dead before anybody else gets the key" {
	servers_start 5
	start
	next_in_line
	kill -KILL -- "-$(pid run)"
	dead_before_next
}

@test "redlock killed: the command is stopped at once, not when the lease ends" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 300s "$KEY" "$STAMP" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	kill -KILL "$(pid run)"
	wait_until 'nobody_lives "$TMP/stamps"'
}

@test "redlock killed at any moment of its start: no command lives when its lease is over" {
	local i killed
	servers_start 1
	mkdir "$TMP/stamps"
	for i in {1..24}; do
		spawn "run$i" "$REDLOCK" run -t 2s "$KEY-$i" "$STAMP" -t -c 1 "$TMP/stamps"
		sleep "$(printf 0.%04d $((i * 5)))" # up to 12 ms
		kill -KILL "$(pid "run$i")"
	done
	killed=$NOW
	wait_until '[[ -z $(rcli 0 KEYS "$KEY-*[0-9]") ]]'
	(($(last_beat "$TMP/stamps") < killed + 2000))
	is_still "$TMP/stamps"
}

@test "redlock killed: its key is free within the ttl" {
	local ttl
	servers_start 1
	start
	kill -KILL "$(pid run)"
	ttl=$(rcli 0 PTTL "$KEY")
	((ttl > 0 && ttl <= 2000))
	until key_free 0; do # and nobody prolongs it
		(($(rcli 0 PTTL "$KEY") <= ttl))
	done
}

@test "redlock killed: a stopped command is killed, too" {
	local stamp
	servers_start 1
	start
	stamp=$(beats "$TMP/stamps" | awk 'NR == 1 { print $4 }')
	stop_process "$stamp"
	kill -KILL "$(pid run)"
	wait_until "! is_alive $stamp" 2
}

@test "redlock killed: the command gets SIGTERM first, and time to tidy up" {
	servers_start 1
	spawn run "$REDLOCK" run -t 6s -k 2s "$KEY" bash -c '
		trap "echo tidied >>\"$0\"; exit" TERM; echo up
		while ((SECONDS < 60)); do sleep 0.01; done' "$TMP/file"
	wait_until '[[ -s $TMP/run.out ]]'
	kill -KILL "$(pid run)"
	wait_until '[[ -s $TMP/file ]]'
	[[ $(<"$TMP/file") == tidied ]]
}

@test "redlock stopped past its lease: the command's group is dead before the key changes hands" {
	servers_start 1
	start
	next_in_line
	stop_process "$(pid run)"
	dead_before_next
	kill -CONT "$(pid run)"
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
}

# stopped_before_its_end OPTION...: redlock is stopped, and goes on when its lease is over. Its command, of which
# COMMAND is the shell's text, ends by itself before that.
stopped_before_its_end() {
	spawn run "$REDLOCK" run -t $((3 * SLOW))s -k "${SLOW}s" --once-in 1h "$@" "$KEY" \
		sh -c "$COMMAND"' echo up; until [ -e "$0/end" ]; do sleep 0.01; done' "$TMP"
	wait_until '[[ -s $TMP/run.out ]]'
	stop_process "$(pid run)"
	touch "$TMP/end"
	wait_until 'key_free 0'
	kill -CONT "$(pid run)"
	finish run
}

@test "redlock stopped past its lease, and the command had ended before: the status is its own, and that is no loss" {
	local COMMAND= option
	servers_start 1
	for option in kill USR1; do
		KEY+=-$option
		stopped_before_its_end --on-lost "$option"
		expect 0 up
		redlock history "$KEY"
		[[ $output == *' exit 0 '* ]]
		redlock run --once-in 1h "$KEY" true
		[[ $status == 75 ]]
		rm "$TMP/end"
	done
}

@test "redlock stopped past its lease, and the command had ended before, but has left a child: that is stopped, 76" {
	local COMMAND='"$STAMP" -t "$0/stamps" & '
	servers_start 1
	mkdir "$TMP/stamps"
	stopped_before_its_end
	expect 76 up "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
	redlock history "$KEY"
	[[ $output == *' lost '* ]]
}

# is_quiet PID: it has read nothing for half a second.
is_quiet() {
	local before
	before=$(<"/proc/$1/io")
	sleep 0.5
	[[ $(<"/proc/$1/io") == "$before" ]]
}

@test "redlock stopped for long: the guard has done its work, and looks no more" {
	local guard
	servers_start 1
	start
	guard=$(guard_of run)
	stop_process "$(pid run)"
	wait_until 'nobody_lives "$TMP/stamps"'
	wait_until "is_quiet $guard"
	is_guard "$guard"
	kill -CONT "$(pid run)"
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
}

@test "if all are stopped past the lease, what is killed once they go on is not said to run on without the lock" {
	local stopped
	servers_start 1
	spawn run "$REDLOCK" run -t 2s "$KEY" bash -c '
		trap "" TERM
		for i in {1..100}; do sleep 600 & done # they take a while to kill
		touch "$0"
		wait' "$TMP/ready"
	wait_until '[[ -e $TMP/ready ]]'
	stop_process "$(guard_of run)"
	stop_process "$(pid run)"
	stopped=$NOW
	wait_until "((NOW > $stopped + 3500))"
	kill -CONT "$(pid run)" # which continues its guard
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
}

@test "redlock stopped for less than its lease: nothing happens" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t $((6 * SLOW))s -k 200ms "$KEY" "$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	stop_process "$(pid run)"
	pause $((2 * SLOW + 1)) # past one renewal
	kill -CONT "$(pid run)"
	wait_until '(($(rcli 0 PTTL "$KEY") > 4500 * SLOW))'
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 0
}

@test "the only server stopped: the command's group is dead when the lease ends" {
	local stopped
	servers_start 1
	start
	next_in_line
	server_stop 0
	stopped=$NOW
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	(($(last_beat "$TMP/stamps") < stopped + 2000))
	server_continue 0
	dead_before_next
}

@test "three of five servers stopped: the command's group is dead when the lease ends" {
	local stopped
	servers_start 5
	start
	next_in_line
	server_stop 0 1 2
	stopped=$NOW
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	(($(last_beat "$TMP/stamps") < stopped + 2000))
	server_continue 0 1 2
	dead_before_next
}

# in_the_net: as start, over the network.
in_the_net() {
	mkdir "$TMP/stamps"
	net_servers_start "$1"
	net_spawn run "$REDLOCK" run --quarantine 0 -t 2s "$KEY" \
		"$STAMP" -t -c 2 -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
}

@test "cut off from all servers: the command's group is dead before anybody else gets the key" {
	in_the_net 5
	next_in_line
	net_drop both 0 1 2 3 4
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	dead_before_next
}

@test "replies of a majority dropped: the command's group is dead before the key changes hands" {
	in_the_net 5
	next_in_line
	net_drop in 0 2 4
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	dead_before_next
}

@test "the links of a majority down: the command's group is dead before anybody else gets the key" {
	in_the_net 3
	next_in_line
	net_unplug 0 1
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	dead_before_next
}

@test "cut off from a minority: nothing happens" {
	in_the_net 5
	net_drop both 0 1
	sleep 2.5 # past the end of the lease
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 0
	wait_until 'key_free 2 3 4'
}

@test "cut off for less than the lease: nothing happens" {
	mkdir "$TMP/stamps"
	net_servers_start 3
	net_spawn run "$REDLOCK" run --quarantine 0 -t $((12 * SLOW))s -k 200ms "$KEY" \
		"$STAMP" -u "$TMP/end" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	net_drop both 0 1 2
	pause $((4 * SLOW + 1)) # past one renewal
	net_heal
	wait_until '(($(rcli 0 PTTL "$KEY") > 9000 * SLOW))'
	touch "$TMP/end"
	finish run
	expect 0
}

@test "the guard is gone after a normal run" {
	local guard
	servers_start 1
	spawn run "$REDLOCK" run "$KEY" sh -c 'until [ -e "$0" ]; do sleep 0.01; done; exit 5' "$TMP/end"
	wait_until '[[ $(guard_of run) ]]'
	guard=$(guard_of run)
	[[ $(session_of "$guard") == "$guard" && $(session_of "$(pid run)") != "$guard" ]]
	touch "$TMP/end"
	finish run
	expect 5
	wait_until "! is_guard $guard" 2
}

@test "the guard is gone after it has done its work" {
	local guard
	servers_start 1
	start
	guard=$(guard_of run)
	is_guard "$guard"
	kill -KILL "$(pid run)"
	wait_until "! is_guard $guard" 5
	is_still "$TMP/stamps"
}

# native: what pgrep finds are valgrind's arguments
# bats test_tags=native
@test "pkill -f 'redlock run' does not hit the guard" {
	local guard
	servers_start 1
	mkdir "$TMP/stamps"
	KEY+=${TMP//\//-}- # nobody else's
	spawn run "$REDLOCK" run -t 300s "$KEY" "$STAMP" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	guard=$(guard_of run)
	[[ $(pgrep -f "redlock run -t 300s $KEY") == "$(pid run)" ]]
	[[ $(ps -o args= -p "$guard") == lease-guard ]]
	pkill -KILL -f "redlock run -t 300s $KEY"
	wait_until "! is_guard $guard" # it has done its work
	is_still "$TMP/stamps"
}

@test "processes that the command left behind are left alone after a normal run" {
	local guard
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" sh -c '
		"$STAMP" -u "$0/end" "$0/stamps" >/dev/null 2>&1 &
		until [ -e "$0/go" ]; do sleep 0.01; done' "$TMP"
	wait_until 'stamped $TMP/stamps'
	guard=$(guard_of run)
	touch "$TMP/go"
	finish run
	expect 0
	key_free 0
	wait_until "! is_guard $guard" 5
	sleep 2.2 # past what would have been the end of the lease
	is_beating "$TMP/stamps"
	touch "$TMP/end"
}

# lose: the lock of `run` goes to somebody else's value.
lose() {
	rcli 0 SET "$KEY" other >/dev/null
}

@test "a lost lock: what the command has left in its group is dead before the run ends" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 6s -k 500ms "$KEY" sh -c '
		"$STAMP" -t "$0/stamps" & until [ -e "$0/go" ]; do sleep 0.01; done' "$TMP"
	wait_until 'stamped $TMP/stamps'
	lose
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*someone else: COMMAND is stopped"
	is_still "$TMP/stamps"
	[[ $(rcli 0 GET "$KEY") == other ]]
}

@test "a lost lock: a nested run's command, in a group of its own, is dead before the run ends" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 6s -k 500ms "$KEY" \
		"$REDLOCK" run -t 600s "$KEY-inner" "$STAMP" -t -c 1 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 2'
	lose
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
}

@test "a lost lock: redlock killed as well, a nested run's command is dead all the same" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" \
		"$REDLOCK" run -t 600s "$KEY-inner" "$STAMP" -t -c 1 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 2'
	kill -KILL "$(pid run)"
	wait_until 'key_free 0'
	is_still "$TMP/stamps"
}

@test "a lost lock: a daemon that the command has started lives on" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 6s -k 500ms "$KEY" sh -c '
		(setsid "$STAMP" -u "$0/end" "$0/stamps" >/dev/null 2>&1 &)
		until [ -e "$0/go" ]; do sleep 0.01; done' "$TMP"
	wait_until 'stamped $TMP/stamps'
	lose
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_beating "$TMP/stamps"
	touch "$TMP/end"
}

@test "a lease that is over before the command is started: 69, not started, nothing left" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	servers_start 1
	# the second process that redlock makes is for the command's group
	ASAN_OPTIONS=detect_leaks=0 run --separate-stderr timeout -k 1 60 strace -qq -o /dev/null \
		-e trace=clone -e inject=clone:delay_enter=2500000:when=2 \
		"$REDLOCK" run -t 2s --status-fd 1 "$KEY" touch "$TMP/ran"
	expect 69 '\{"outcome":"not-started","child_exit":null,.*' \
		"redlock: $KEY: the lease was over before COMMAND could be started"
	[[ ! -e $TMP/ran ]]
	key_free 0
}

@test "a lease that is over before the command is started: the guard that has acted does not wait for its end" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	servers_start 1
	# it says goodbye only after the guard has seen that the time is up
	ASAN_OPTIONS=detect_leaks=0 run --separate-stderr timeout -k 1 12 strace -qq -o /dev/null \
		-e trace=clone,wait4 -e inject=clone:delay_enter=2600000:when=2 \
		-e inject=wait4:delay_enter=100000 \
		"$REDLOCK" run -t 18s -k 15s --server-timeout 200ms "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: the lease was over before COMMAND could be started"
	[[ ! -e $TMP/ran ]]
	key_free 0
}

@test "a guard that was killed is replaced, and the new one keeps the promise" {
	local guard
	servers_start 1
	start
	guard=$(guard_of run)
	is_guard "$guard"
	kill -KILL "$guard"
	wait_until '[[ $(guard_of run) && $(guard_of run) != '"$guard"' ]]'
	next_in_line
	sleep 0.7 # a renewal, so that the new guard has heard of the lease
	is_beating "$TMP/stamps"
	kill -KILL "$(pid run)"
	dead_before_next
}

@test "a guard that was killed does not end the command" {
	local guard
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" "$STAMP" -u "$TMP/end" -x 4 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	guard=$(guard_of run)
	kill -KILL "$guard"
	renewals 4 # which is more than one lease
	touch "$TMP/end"
	finish run
	[[ $status == 4 && -z $output ]]
	key_free 0
}

@test "a guard that was stopped for longer than a lease has heard of the renewals" {
	local guard
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" "$STAMP" -u "$TMP/end" -x 4 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	guard=$(guard_of run)
	stop_process "$guard"
	sleep 2.5 # more than the lease that it knows of
	kill -CONT "$guard"
	sleep 0.2
	touch "$TMP/end"
	finish run
	expect 4
}

@test "a guard that is stopped when the command ends does not say that it was stopped" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 2s "$KEY" "$STAMP" -u "$TMP/end" -x 4 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	stop_process "$(guard_of run)"
	sleep 2.5 # more than the lease that it knows of
	touch "$TMP/end"
	finish run
	expect 4
	key_free 0
}

@test "a guard that is stopped when the lock is lost goes on, and stops the command" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 3s -k 300ms "$KEY" "$STAMP" -t -d 60000 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	stop_process "$(guard_of run)"
	rcli 0 SET "$KEY" another PX 60000 >/dev/null
	finish run
	[[ $status == 76 && $stderr == *": COMMAND is stopped" ]]
	nobody_lives "$TMP/stamps"
}

# killed_in_time SINCE: the lease of 3 s was renewed last by then; redlock has ended, and nobody has lived on.
killed_in_time() {
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*: COMMAND is stopped"
	(($(last_beat "$TMP/stamps") < $1 + 3000))
	is_still "$TMP/stamps"
}

@test "a guard that is stopped after its SIGTERM goes on when it is time to kill" {
	local stopped
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 3s -k 300ms "$KEY" bash -c '
		trap "kill -STOP \$(<\"\$0/guard\")" TERM; "$STAMP" -t "$0/stamps" &
		while :; do wait; done' "$TMP"
	wait_until 'stamped $TMP/stamps'
	guard_of run >"$TMP/guard"
	server_stop 0
	stopped=$NOW
	killed_in_time "$stopped"
}

# native: valgrind's are other calls
# bats test_tags=native
@test "if the guard does not go on, redlock itself kills the command in time" {
	local guard stopped
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 3s -k 300ms "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
	guard=$(guard_of run)
	spawn tracer strace -qq -o /dev/null -p "$guard" -e trace=kill -e inject=kill:delay_enter=600000000
	wait_until "! grep -q '^TracerPid:.0' /proc/$guard/status"
	server_stop 0
	stopped=$NOW
	wait_until 'nobody_lives "$TMP/stamps"'
	kill -KILL "$(pid tracer)"
	killed_in_time "$stopped"
}

# What finds neither: a bare chroot on a kernel of before 2020.
# native: valgrind needs both
# bats test_tags=native
@test "without /proc and close_range(2) there is a guard, and without /dev/null, too" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	"${MOUNTS[@]}" true || skip "no mounts can be made here"
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer reads /proc"
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run strace -f -qq -o "$TMP/trace" -e trace=close_range -e inject=close_range:error=ENOSYS \
		"${MOUNTS[@]}" sh -c 'mount -t tmpfs none /proc && mount -t tmpfs none /dev && exec "$@"' - \
		"$REDLOCK" run -t 3s -k 300ms "$KEY" "$STAMP" -t -d 60000 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	rcli 0 SET "$KEY" another PX 60000 >/dev/null
	finish run
	[[ $status == 76 && $stderr == *": COMMAND is stopped"* ]]
	nobody_lives "$TMP/stamps"
	[[ $(grep -c close_range "$TMP/trace") -lt 10 ]]
}

# refusing CALL: `refusing` is a wrapper that refuses it to redlock and its children.
refusing() {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	refusing=(env ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o "$TMP/trace" -e trace="$1" -e inject="$1:error=EPERM")
}

# native: valgrind does not know what strace does to it
# bats test_tags=native
@test "where the working directory cannot be changed, a guard keeps the promise" {
	local refusing redlock
	servers_start 1
	mkdir "$TMP/stamps"
	refusing chdir
	spawn run "${refusing[@]}" "$REDLOCK" run --quarantine 0 -t 3s "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
	redlock=$(child_named "$(pid run)" redlock)
	is_guard "$(child_named "$redlock" lease-guard)"
	[[ $(grep -c 'chdir(' "$TMP/trace") == 1 ]]
	next_in_line
	kill -KILL "$redlock"
	dead_before_next
}

# native: as above
# bats test_tags=native
@test "a guard that ends at once is made again once a second, which is said once, and redlock itself stops COMMAND" {
	local refusing begun made
	servers_start 1
	mkdir "$TMP/stamps"
	refusing '?dup2,dup3'
	begun=$NOW
	spawn run "${refusing[@]}" "$REDLOCK" run --quarantine 0 -t 3s -k 300ms "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
	wait_until '(($(grep -c "dup[23](" "$TMP/trace") > 4))'
	made=$(grep -c 'dup[23](' "$TMP/trace")
	# before COMMAND, and at its start, and the first time that it is missed
	((made <= 3 + (NOW - begun) / 1000))
	rcli 0 SET "$KEY" another PX 60000 >/dev/null
	finish run
	expect 76 '' "redlock: $KEY: the process that stops COMMAND if redlock is killed has died, and cannot be made again yet: it ends at once
redlock: $KEY: lock lost: .*: COMMAND is stopped"
	nobody_lives "$TMP/stamps"
}

# native: valgrind has a library of its own to preload
# bats test_tags=native
@test "a guard that needs long to find COMMAND's tree, as among thousands of processes, kills it in time" {
	local failing
	servers_start 1
	failing 1:opendir:0:late
	mkdir "$TMP/stamps"
	spawn run "${failing[@]}" "$REDLOCK" run -t 4s -k 1s "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
	next_in_line
	stop_process "$(pid run)"
	dead_before_next
}

# bats test_tags=native
@test "what COMMAND starts while it is stopped is found when that is killed, whatever its group" {
	local failing
	servers_start 1
	failing 1:opendir:0:late # so it is not found by chance
	mkdir "$TMP/stamps"
	spawn run "${failing[@]}" "$REDLOCK" run -t 8s -k 4s "$KEY" bash -c '
		trap "setsid \"\$STAMP\" -t \"\$0\" &" TERM; echo up
		for ((;;)); do sleep 0.01; done' "$TMP/stamps"
	wait_until '[[ -s $TMP/run.out ]]'
	next_in_line
	stop_process "$(pid run)"
	wait_until 'stamped $TMP/stamps'
	dead_before_next
	# for that it looks when it begins, before it kills and until they are gone; not all the time, which is
	# 13 times before it kills, as each takes 300 ms
	(($(od -An -t d4 -j 8 -N 4 "$TMP/report") <= 10))
}

# bats test_tags=native
@test "what COMMAND starts while it is first looked for is dead before the key changes hands, though COMMAND ends at SIGTERM" {
	local failing
	servers_start 1
	failing 1:closedir:1:late # after the names of all processes have been read
	mkdir "$TMP/stamps"
	spawn run "${failing[@]}" "$REDLOCK" run -t 4s -k 1s "$KEY" bash -c \
		'for ((;;)); do setsid "$STAMP" -s "$0" & sleep 0.03; done' "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
}

# bats test_tags=native
@test "what COMMAND starts while it is looked for is not left behind" {
	local failing
	servers_start 1
	failing 1:closedir:0:late
	mkdir "$TMP/stamps"
	spawn run "${failing[@]}" "$REDLOCK" run -t 4s -k 1s "$KEY" bash -c '
		"$STAMP" -s -t "$0" & trap told=1 TERM
		for ((;;)); do
			if [[ $told ]]; then setsid "$STAMP" -s -t "$0" & fi
			sleep 0.03
		done' "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	next_in_line
	stop_process "$(pid run)"
	dead_before_next
}

@test "a chain of processes that live for 3 ms, each in a session of its own, is dead before the key changes hands" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 4s -k 1s "$KEY" "$STAMP" -t -d 15000 -c 1 -g 3 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 2'
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
	is_still "$TMP/stamps"
}

@test "a chain that COMMAND starts when it is told to end is dead before the key changes hands" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 4s -k 1s "$KEY" bash -c '
		trap "\"\$STAMP\" -t -d 15000 -c 1 -g 3 \"\$0\" & sleep 60" TERM; echo up
		for ((;;)); do sleep 0.01; done' "$TMP/stamps"
	wait_until '[[ -s $TMP/run.out ]]'
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
	is_still "$TMP/stamps"
}

@test "500 processes, each in a session of its own, are dead before the key changes hands" {
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run "$REDLOCK" run -t 10s -k 1s "$KEY" "$STAMP" -t -c 500 -g 600000 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 501'
	next_in_line
	stop_process "$(pid run)"
	dead_before_next
}

@test "a process that has got COMMAND's number, or that of its group, is not hit" {
	local inside='
		STAMP=$1 TMP=$2 KEY=$3
		wait_for() { until eval "$1"; do sleep 0.05; done; }
		"$REDLOCK" run -t 60s -k 4s "$KEY" sh -c "setsid \"\$0\" -t \"\$1/stamps\" & echo \$\$; exec sleep 60" "$STAMP" "$TMP" >"$TMP/pid" &
		run=$!
		wait_for "[[ -s \$TMP/pid ]] && compgen -G \"\$TMP/stamps/beats.*\" >/dev/null"
		command=$(<"$TMP/pid") guard=$(pgrep -x lease-guard)
		group=$(ps -o pgid= -p "$command")
		numbers=$(printf "%d\n" "$command" "$group" | sort -nu)
		kill -KILL "$run"
		wait_for "[[ ! -e /proc/\$command ]]"
		for number in $numbers; do
			echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
			setsid sleep 60 &
			[[ $! == "$number" ]] || echo "$! instead of $number" >>"$TMP/hit"
		done
		[[ -e /proc/$guard ]] || echo "too late" >>"$TMP/hit"
		wait_for "[[ ! -e /proc/\$guard ]]"
		for number in $numbers; do
			[[ $(</proc/$number/stat) == *") S "* ]] || echo "$number" >>"$TMP/hit"
		done
		touch "$TMP/over"
		exec sleep 60'
	[[ $(id -u) == 0 ]] || skip "a pid namespace needs root"
	unshare --pid --fork --mount-proc sh -c 'echo 100 >/proc/sys/kernel/ns_last_pid' || skip "pids cannot be chosen here"
	servers_start 1
	mkdir "$TMP/stamps"
	spawn inside unshare --pid --fork --kill-child --mount-proc bash -c "$inside" - "$STAMP" "$TMP" "$KEY"
	wait_until '[[ -e $TMP/over ]]'
	is_still "$TMP/stamps"
	run ! cat "$TMP/hit"
	kill -KILL "$(pid inside)"
}

# without_proc SCRIPT ARGUMENT...: as spawn of redlock with these, where SCRIPT has been run before.
without_proc() {
	[[ $(id -u) == 0 ]] || skip "a mount namespace needs root"
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run unshare --mount sh -c "$1"' && exec "$@"' - "$REDLOCK" "${@:2}" "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
}

# native: valgrind itself needs /proc
# bats test_tags=native
@test "without /proc: redlock killed, COMMAND's group is dead before anybody else gets the key" {
	without_proc 'mount -t tmpfs none /proc' run -t 3s
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
}

# native: valgrind itself needs /proc
# bats test_tags=native
@test "without /proc: a lost lock, and --max-hold, end COMMAND" {
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer reads /proc"
	without_proc 'mount -t tmpfs none /proc' run -t 3s
	lose
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
	rm -r "$TMP/stamps"
	without_proc 'mount -t tmpfs none /proc' run -t 6s -k 300ms --max-hold 1s
	finish run
	expect 124 '' "redlock: $KEY: stopped after --max-hold 1s"
	is_still "$TMP/stamps"
	key_free 0
}

@test "a /proc of another pid namespace shows nobody, and COMMAND's group is dead all the same" {
	[[ $(id -u) == 0 ]] || skip "a pid namespace needs root"
	servers_start 1
	mkdir "$TMP/stamps"
	spawn run unshare --pid --fork --kill-child sh -c '"$@" & run=$!
		until [ -e "$0" ]; do sleep 0.05; done; kill -KILL $run; sleep 60' "$TMP/go" \
		"$REDLOCK" run -t 3s "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps 3'
	next_in_line
	touch "$TMP/go"
	dead_before_next
}

# unstoppable OPTION...: a run whose COMMAND may not be signalled by it, and is process $sleeper.
unstoppable() {
	[[ $(id -u) == 0 ]] || skip "another user to be needs root"
	servers_start 1
	spawn run setpriv --bounding-set -kill --inh-caps -kill "$REDLOCK" run "$@" "$KEY" \
		setpriv --reuid 61234 --regid 61234 --clear-groups sh -c 'echo $$; exec sleep 600'
	wait_until '[[ -s $TMP/run.out && $(child_named "$(pid run)" sleep) ]]'
	sleeper=$(<"$TMP/run.out")
}

@test "what could not be stopped is named, by pid and user, and the run ends with it: 76" {
	local sleeper
	unstoppable -t 3s -k 300ms
	lose
	wait_until '[[ $(<"$TMP/run.err") == *"could not be stopped"* ]]'
	is_alive "$sleeper"
	is_running run
	kill -KILL "$sleeper"
	finish run
	expect 76 "$sleeper" "redlock: $KEY: lock lost: .*someone else: COMMAND is stopped
redlock: $KEY: could not be stopped, and runs on without the lock: pid $sleeper of user 61234 'sleep'"
}

@test "what COMMAND has left and could not be stopped is named at once, not when the lease ends" {
	local sleeper
	[[ $(id -u) == 0 ]] || skip "another user to be needs root"
	servers_start 1
	spawn run setpriv --bounding-set -kill --inh-caps -kill "$REDLOCK" run -t $((6 * SLOW))s -k 300ms "$KEY" \
		sh -c 'setpriv --reuid 61234 --regid 61234 --clear-groups sleep 600 & echo $!; wait'
	wait_until '[[ -s $TMP/run.out && $(<"/proc/$(<"$TMP/run.out")/comm") == sleep ]]'
	sleeper=$(<"$TMP/run.out")
	lose
	wait_until '[[ $(<"$TMP/run.err") == *"could not be stopped"* ]]'
	[[ $(child_named "$(pid run)" lease-guard) ]]
	kill -KILL "$sleeper"
	finish run
	expect 76 "$sleeper" "redlock: $KEY: lock lost: .*someone else: COMMAND is stopped
redlock: $KEY: could not be stopped, and runs on without the lock: pid $sleeper of user 61234 'sleep'"
}

# as_nobody COMMAND...: by the user nobody, who may do anything with sudo.
as_nobody() {
	printf '%s\n' 'Defaults !use_pty' 'nobody ALL = (root) NOPASSWD: ALL' >"$TMP/sudoers"
	chmod 440 "$TMP/sudoers"
	spawn run unshare --mount sh -c 'mount --bind "$0" /etc/sudoers && exec setpriv --reuid nobody --clear-groups "$@"' \
		"$TMP/sudoers" "$@"
	wait_until '[[ -s $TMP/run.out ]]'
	lose
	finish run
}

# native: what sudo starts is this program, and no other in its place
# bats test_tags=native
@test "sudo passes SIGTERM on to its program, and what that has started is named as not stopped" {
	[[ $(type -P sudo) ]] || skip "needs sudo"
	reachable
	servers_start_tcp 1
	as_nobody "$REDLOCK" run -t 3s -k 300ms "$KEY" sudo -n sh -c 'sleep 600 & echo $!; wait'
	kill -KILL "$output"
	expect 76 '[0-9]+' "redlock: $KEY: lock lost: .*someone else: COMMAND is stopped
redlock: $KEY: could not be stopped, and runs on without the lock: pid $output of root 'sleep'"
}

# native: the same
# bats test_tags=native
@test "a redlock that sudo has started stops all that its command has started" {
	[[ $(type -P sudo) ]] || skip "needs sudo"
	reachable
	servers_start_tcp 1
	as_nobody sudo -n "$REDLOCK" run -S "$REDLOCK_SERVERS" -t 3s -k 300ms "$KEY" \
		sh -c 'trap "" TERM; sleep 600 & echo $!; wait'
	! is_alive "$output" || false
	expect 76 '[0-9]+' "redlock: $KEY: lock lost: .*someone else: COMMAND is stopped"
}

@test "--max-hold: what could not be stopped is named, and keeps KEY until it ends" {
	local sleeper
	unstoppable -t 3s -k 300ms --max-hold 1s
	wait_until '[[ $(<"$TMP/run.err") == *"could not be stopped"* ]]'
	renewals 2
	kill -KILL "$sleeper"
	finish run
	expect 124 "$sleeper" "redlock: $KEY: stopped after --max-hold 1s
redlock: $KEY: could not be stopped: pid $sleeper of user 61234 'sleep'"
	key_free 0
}

no_guard() {
	echo "redlock: $KEY: the process that stops COMMAND if redlock is killed has died, and cannot be made again yet: Resource temporarily unavailable"
}

# native: valgrind has a library of its own to preload
# bats test_tags=native
@test "a guard that cannot be replaced at once is when there is another chance" {
	local guard failing
	servers_start 1
	failing 0:fork:2:11
	mkdir "$TMP/stamps"
	spawn run "${failing[@]}" "$REDLOCK" run -t 5s "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	guard=$(guard_of run)
	kill -KILL "$guard"
	wait_until '[[ $(guard_of run) ]]'
	[[ $(<"$TMP/run.err") == "$(no_guard)" ]]
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
}

# native: as above
# bats test_tags=native
@test "while no guard can be made, redlock itself stops COMMAND and its children before the lease ends, or when KEY is gone" {
	local failing loss
	servers_start 1
	for loss in silence deletion; do
		rm -rf "$TMP/stamps"
		failing 0:fork:-2:11
		mkdir "$TMP/stamps"
		spawn run "${failing[@]}" "$REDLOCK" run --quarantine 0 -t 2s "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
		wait_until 'stamped $TMP/stamps 3'
		kill -KILL "$(guard_of run)"
		wait_until '[[ $(<"$TMP/run.err") == $(no_guard) ]]'
		renewals 4 # which is more than one lease
		if [[ $loss == silence ]]; then
			next_in_line
			server_stop 0
		else
			rcli 0 DEL "$KEY"
		fi
		finish run
		expect 76 '' "$(no_guard)
redlock: $KEY: lock lost: .*: COMMAND is stopped"
		is_still "$TMP/stamps"
		if [[ $loss == silence ]]; then
			server_continue 0
			dead_before_next
		fi
	done
}

# waits_guarded [WRAPPER...]: `run` waits for KEY, and $guard is its guard.
waits_guarded() {
	servers_start 1
	take
	mkdir "$TMP/stamps"
	spawn run "$@" "$REDLOCK" run -t 2s "$KEY" "$STAMP" -t -c 2 "$TMP/stamps"
	wait_until 'queued 1 0 && [[ $(guard_of run) ]]'
	guard=$(guard_of run)
	is_guard "$guard"
}

@test "one who waits has its guard already, and it is the command's" {
	local guard
	waits_guarded
	give_back
	wait_until 'stamped $TMP/stamps 3'
	[[ $(guard_of run) == "$guard" ]]
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
}

@test "a guard that was killed while the key was waited for is replaced before the command starts" {
	local guard
	waits_guarded
	kill -KILL "$guard"
	wait_until "! is_guard $guard"
	give_back
	wait_until 'stamped $TMP/stamps 3'
	[[ $(guard_of run) && $(guard_of run) != "$guard" ]]
	next_in_line
	kill -KILL "$(pid run)"
	dead_before_next
}

# native: valgrind has a library of its own to preload
# bats test_tags=native
@test "a guard that was killed while the key was waited for, and cannot be replaced, starts no command" {
	local guard failing
	failing 0:fork:2:11
	waits_guarded "${failing[@]}"
	kill -KILL "$guard"
	wait_until "! is_guard $guard"
	give_back
	finish run
	expect 71 '' 'redlock: .*Resource temporarily unavailable.*'
	! stamped "$TMP/stamps"
	key_free 0
}

@test "one who has waited in vain leaves no guard, killed or not" {
	local guard signal
	for signal in TERM KILL; do
		waits_guarded
		kill "-$signal" "$(pid run)"
		finish run
		[[ $signal == KILL ]] || ! is_alive "$guard"
		wait_until "! is_alive $guard"
		rm -r "$TMP/stamps"
	done
}
