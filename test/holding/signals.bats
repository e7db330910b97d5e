#!/usr/bin/env bats
# Signals: whenever one comes, redlock ends as it should, and nothing is left behind.
# bats file_tags=long

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

SIGNALS=(INT TERM HUP QUIT USR1 USR2)
# what else ends a process that is not prepared for it
RARE=(ALRM VTALRM PROF IO PWR STKFLT XCPU ABRT TRAP SYS BUS RTMIN RTMIN+7 RTMAX)

setup_file() {
	servers_start 1
}

# died_of SIGNAL: the last command did.
died_of() {
	[[ $status == $((128 + $(kill -l "$1"))) ]] || {
		echo "status $status, not by SIG$1" >&2
		return 1
	}
}

# sent_all NAME: the spawned redlock sleeps with a socket in hand: it has sent what it could, and waits.
sent_all() {
	local pid=${spawned[$1]}
	[[ $(readlink "/proc/$pid/fd"/*) == *socket:* && $(state "$pid") == S ]]
}

# ---------------------------------------------------------------- before COMMAND

@test "a signal while connecting to a server that does not answer ends redlock; nothing is started or left" {
	servers_start 1
	server_stop 0
	local signal
	for signal in "${SIGNALS[@]}"; do
		spawn "$signal" "$REDLOCK" run -v -t 5m --server-timeout 30s "$KEY" touch "$TMP/ran"
		wait_until "sent_all $signal"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ ! -s $TMP/$signal.out ]]
	done
	server_continue 0
	wait_until 'server_drained 0'
	key_free 0
	[[ ! -e $TMP/ran ]]
}

# A server reads 16 KiB at once, and drops what comes after a request that it can't answer any more.
@test "a signal while a server does not answer leaves nothing, of any kind, with long names" {
	local option key
	key=$KEY-$(printf '%0100d' 0)
	servers_start 1
	server_stop 0
	for option in -x -r -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		spawn "run${option%% *}" "$REDLOCK" run -t 5m --server-timeout 30s $option "$key" touch "$TMP/ran" "$(printf '%0250d' 0)"
		wait_until "sent_all run${option%% *}"
		kill -TERM "$(pid "run${option%% *}")"
		finish "run${option%% *}" 10
		died_of TERM
	done
	server_continue 0
	wait_until 'server_drained 0'
	[[ $(rcli 0 EXISTS "$key") == 0 ]]
	[[ ! -e $TMP/ran ]]
}

@test "with --replicas, too, a server reads an acquire and what takes it back at once" {
	local kind bytes
	local -A option=([exclusive]=-x [reentrant]=-r [shared]=-s [permits]='-P 2')
	for kind in "${!option[@]}"; do
		spawn "server-$kind" python3 -IS "$ROOT/test/lib/tools/silent.py" "$TMP/$kind"
		wait_until "[[ -S $TMP/$kind ]]"
		# shellcheck disable=SC2086 # words
		spawn "$kind" "$REDLOCK" run -S "unix://$TMP/$kind" --replicas 1 -t 5m --server-timeout 15s ${option[$kind]} \
			"$(printf '%060d' 0)" true "$(printf '%0250d' 0)"
		wait_until "sent_all $kind"
		kill -TERM "$(pid "$kind")"
		finish "$kind" 10
	done
	for kind in "${!option[@]}"; do
		finish "server-$kind" # until the process that gives KEY back after the run gives up
		bytes=$output
		echo "${option[$kind]}: $bytes bytes"
		((bytes > 12000 && bytes <= 16384))
	done
}

@test "a signal while a server is looked for behind a network that drops everything ends redlock" {
	net_servers_start 1
	net_drop both 0
	local signal
	for signal in INT TERM HUP QUIT; do
		net_spawn "$signal" "$REDLOCK" run -t 5m --server-timeout 30s "$KEY" touch "$TMP/ran"
		wait_until "sent_all $signal"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
	done
	net_heal
	key_free 0
	[[ ! -e $TMP/ran ]]
}

@test "a signal while a server that refuses is waited for ends redlock" {
	local signal
	for signal in "${SIGNALS[@]}"; do
		spawn "$signal" "$REDLOCK" run -w 1h -S "$NOWHERE" "$KEY" touch "$TMP/ran"
		wait_until "[[ -s $TMP/$signal.err ]]"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ $stderr == *"still waiting"* ]]
	done
	[[ ! -e $TMP/ran ]]
}

@test "a signal while KEY is waited for ends redlock; the holder is not touched" {
	hold
	local signal
	for signal in "${SIGNALS[@]}"; do
		spawn "$signal" "$REDLOCK" run -v "$KEY" touch "$TMP/ran"
		wait_until "is_waiting $signal"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ ! -s $TMP/$signal.out && $stderr != *started* ]]
	done
	[[ $(rcli 0 GET "$KEY") == somebody && ! -e $TMP/ran ]]
	# beside it is nothing but since when KEY is known here, and not for ever
	[[ $(rcli 0 HKEYS "$(record)") == began && $(rcli 0 PTTL "$(record)") -gt 0 ]]
	[[ $(rcli 0 EXISTS "$(record):queue" "$(record):wishes" "$(record):waits") == 0 ]]
}

# native: some signals are for valgrind itself
# bats test_tags=native
@test "a signal of any kind ends a waiter in order: nothing is left at the server" {
	hold
	local signal
	for signal in "${RARE[@]}"; do
		spawn "$signal" env --default-signal "$REDLOCK" run -v "$KEY" touch "$TMP/ran"
	done
	wait_until 'queued ${#RARE[@]} 0'
	for signal in "${RARE[@]}"; do
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
	done
	[[ $(rcli 0 EXISTS "$(record):queue") == 0 && ! -e $TMP/ran ]]
}

@test "a signal ends a long pause between two attempts at once" {
	hold
	local signal
	for signal in TERM INT; do
		spawn "$signal" "$REDLOCK" acquire -v --poll=1h "$KEY"
		wait_until "is_waiting $signal"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ ! -s $TMP/$signal.out ]]
	done
	[[ $(rcli 0 GET "$KEY") == somebody ]]
}

@test "a signal that was pending when redlock started ends it before COMMAND starts" {
	# perl raises it while it is blocked, and redlock inherits both
	local signal
	for signal in TERM INT; do
		died perl -MPOSIX -e '
			my $set = POSIX::SigSet->new(POSIX->can("SIG" . shift)->());
			sigprocmask(SIG_BLOCK, $set);
			kill shift, $$;
			exec @ARGV' "$signal" "$signal" "$REDLOCK" run "$KEY" touch "$TMP/ran"
		[[ $death == "signal $(kill -l "$signal")" ]]
	done
	[[ ! -e $TMP/ran ]]
	key_free 0
}

@test "a signal at any moment of a run ends in COMMAND's status or in that signal, and frees KEY" {
	# 60 runs, the signal coming a little later each time: before, at and after COMMAND's start
	run timeout -k 1 50 perl -e '
		my ($redlock, $key, $ran) = @ARGV;
		my %ends;
		for my $i (0 .. 59) {
			my $pid = fork;
			if (!$pid) {
				open STDERR, ">", "/dev/null";
				exec $redlock, "run", $key, "sh", "-c", "echo x >>$ran; exit 3";
			}
			select undef, undef, undef, $i * 0.0003;
			kill "TERM", $pid;
			waitpid $pid, 0;
			$ends{$? & 127 ? "signal " . ($? & 127) : "exit " . ($? >> 8)}++;
		}
		print join(", ", sort keys %ends), "\n";
	' "$REDLOCK" "$KEY" "$TMP/ran"
	[[ $status == 0 ]]
	[[ $output == 'exit 3, signal 15' || $output == 'signal 15' || $output == 'exit 3' ]]
	key_free 0
}

# ---------------------------------------------------------------- while COMMAND runs

@test "a signal to redlock ends COMMAND's whole group, and redlock dies of it" {
	local signal
	for signal in "${SIGNALS[@]}"; do
		spawn "$signal" "$REDLOCK" run "$KEY" sh -c "env --default-signal sleep 300 & echo \$!; exec sleep 300"
		wait_until "[[ -s $TMP/$signal.out ]]"
		# sh has become the second sleep
		wait_until "[[ \$(child_named $(pid "$signal") sleep) ]]"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ $stderr == '' ]]
		wait_until "is_over $output"
		key_free 0
	done
}

# native: some signals are for valgrind itself
# bats test_tags=native
@test "a signal of any kind ends COMMAND, and frees KEY" {
	local signal
	for signal in "${RARE[@]}"; do
		spawn "$signal" env --default-signal "$REDLOCK" run "$KEY-$signal" sh -c 'echo; exec sleep 300'
	done
	for signal in "${RARE[@]}"; do
		wait_until "[[ -s $TMP/$signal.out ]]"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ $stderr == '' && $(rcli 0 EXISTS "$KEY-$signal") == 0 ]]
	done
}

@test "a file that must not grow ends neither redlock nor the run: what COMMAND says goes on, KEY is released" {
	spawn holder "$REDLOCK" run -v "$KEY" sh -c 'echo; until [ -e "$0" ]; do sleep 0.02; done; exit 3' "$TMP/stop"
	wait_until '[[ -s $TMP/holder.out ]]'
	prlimit --fsize=0 --pid "$(pid holder)"
	touch "$TMP/stop"
	finish holder
	[[ $status == 3 ]]
	key_free 0
}

@test "each signal reaches COMMAND and its children once, in the order in which they came" {
	spawn holder "$REDLOCK" run "$KEY" perl "$HEAR" "$TMP/heard" "$TMP/stop" INT,TERM,HUP,QUIT,USR1,USR2,WINCH 3
	wait_until '[[ $(heard ready) == 3 ]]'
	local signal
	for signal in "${SIGNALS[@]}" WINCH; do
		kill "-$signal" "$(pid holder)"
		wait_until "((\$(heard $signal) >= 3))"
	done
	# handed on in order: what came twice would have come by now
	for signal in "${SIGNALS[@]}"; do
		[[ "$signal $(heard "$signal")" == "$signal 3" ]]
	done
	is_running holder
	[[ $(rcli 0 EXISTS "$KEY") == 1 ]]
	touch "$TMP/stop"
	finish holder
	expect 0
	key_free 0
}

@test "COMMAND's own handler decides the status" {
	spawn holder "$REDLOCK" run "$KEY" bash -c "exec 2>/dev/null; trap 'exit 7' TERM; touch $TMP/on; while :; do sleep 0.02; done"
	wait_until '[[ -e $TMP/on ]]'
	kill -TERM "$(pid holder)"
	finish holder
	expect 7
	key_free 0
}

# renewed: a lease of 6 s on KEY, which takes place every 2 s.
renewed() {
	wait_until '(($(rcli 0 PTTL "$KEY") < 4700))'
	wait_until '(($(rcli 0 PTTL "$KEY") > 5200))'
}

@test "a COMMAND that ignores TERM goes on, and keeps the lock until it ends" {
	spawn holder "$REDLOCK" run -t 6s -k 1s --server-timeout 1s "$KEY" \
		bash -c "trap '' TERM INT HUP; touch $TMP/on; until [[ -e $TMP/stop ]]; do sleep 0.02; done; exit 5"
	wait_until '[[ -e $TMP/on ]]'
	kill -TERM "$(pid holder)"
	kill -INT "$(pid holder)"
	kill -HUP "$(pid holder)"
	renewed
	is_running holder
	touch "$TMP/stop"
	finish holder
	expect 5
	key_free 0
}

@test "a COMMAND that exits at the very moment of a signal leaves its status or the signal, and a free KEY" {
	run timeout -k 1 50 perl -e '
		my ($redlock, $key) = @ARGV;
		my (%ends, $end);
		$end = time + 20;
		for (1 .. 50) {
			last if time > $end;
			system $redlock, "run", $key, "sh", "-c", "kill -TERM \$PPID; exit 3";
			$ends{$? & 127 ? "signal " . ($? & 127) : "exit " . ($? >> 8)}++;
		}
		print join(", ", sort keys %ends), "\n";
	' "$REDLOCK" "$KEY"
	[[ $status == 0 && $output == @('exit 3'|'signal 15'|'exit 3, signal 15') ]]
	key_free 0
}

@test "TSTP stops COMMAND's group, not the lease; CONT lets it go on" {
	spawn holder "$REDLOCK" run -t 6s -k 1s --server-timeout 1s "$KEY" perl "$HEAR" "$TMP/heard" "$TMP/stop" USR1 2
	wait_until '[[ $(heard ready) == 2 ]]'
	local pids
	mapfile -t pids < <(sed -n 's/^ready //p' "$TMP/heard")
	kill -TSTP "$(pid holder)"
	wait_until "[[ \$(state ${pids[0]})\$(state ${pids[1]}) == TT ]]"
	renewed
	[[ $(state "${pids[0]}")$(state "${pids[1]}") == TT ]]
	touch "$TMP/stop"
	kill -CONT "$(pid holder)"
	finish holder
	expect 0
	key_free 0
}

@test "a stopped COMMAND takes the HUP, INT, QUIT or TERM that is sent to redlock" {
	local signal command
	for signal in 1 2 3 15; do
		spawn holder "$REDLOCK" run "$KEY" sh -c 'echo; exec sleep 300'
		wait_until '[[ -s $TMP/holder.out && $(child_named "$(pid holder)" sleep) ]]'
		command=$(child_named "$(pid holder)" sleep)
		stop_process "$command"
		kill "-$signal" "$(pid holder)"
		finish holder 10
		((status == 128 + signal))
		key_free 0
	done
}

@test "a TSTP that comes together with HUP, INT, QUIT or TERM does not leave COMMAND stopped" {
	local signal
	# redlock waits for a member of its group that is sending signals, and so reads both at once
	for signal in HUP INT QUIT TERM; do
		spawn "$signal" perl -e '
			my ($signal, $heard, @run) = @ARGV;
			my $redlock = fork // die;
			exec @run if !$redlock;
			select undef, undef, undef, 0.02 until -s $heard;
			kill $_ => $redlock for "USR1", "TSTP", $signal;
			waitpid $redlock, 0;
			exit $? >> 8;
		' "$signal" "$TMP/heard$signal" "$REDLOCK" run "$KEY-$signal" perl "$HEAR" "$TMP/heard$signal" "$TMP/stop" "USR1,$signal"
	done
	for signal in HUP INT QUIT TERM; do
		wait_until "[[ \$(heard $signal $TMP/heard$signal) == 1 && \$(heard USR1 $TMP/heard$signal) == 1 ]]"
	done
	touch "$TMP/stop"
	for signal in HUP INT QUIT TERM; do
		finish "$signal"
		expect 0
	done
}

@test "HUP, INT, QUIT and TERM continue a COMMAND that has yet to take a TSTP" {
	local signal
	for signal in HUP INT QUIT TERM; do
		spawn holder "$REDLOCK" run "$KEY" "$TOOLS/vforks" "$TMP/never"
		wait_until '[[ -s $TMP/holder.out ]]'
		kill -TSTP "$(pid holder)"
		# its child has stopped
		wait_until '[[ $(state "$(child_named "$(child_named "$(pid holder)" vforks)" vforks)") == T ]]'
		kill "-$signal" "$(pid holder)"
		finish holder 10
		died_of "$signal"
		key_free 0
	done
}

@test "a storm of CONT and WINCH neither ends a run nor keeps it from being renewed" {
	spawn holder "$REDLOCK" run -t 6s -k 1s --server-timeout 1s "$KEY" sh -c "until [ -e $TMP/stop ]; do sleep 0.02; done; exit 3"
	wait_until '! key_free 0'
	local left before=6000
	while :; do
		is_running holder
		for _ in {1..50}; do
			kill -CONT "$(pid holder)"
			kill -WINCH "$(pid holder)"
		done
		left=$(rcli 0 PTTL "$KEY")
		((left > 0))
		((left <= before)) || break
		before=$left
	done
	touch "$TMP/stop"
	finish holder
	expect 3
	key_free 0
}

@test "two different signals both reach COMMAND" {
	spawn holder "$REDLOCK" run "$KEY" bash -c "
		exec 2>/dev/null
		trap 'echo INT' INT
		trap 'echo TERM; exit 4' TERM
		echo on
		while :; do sleep 0.02; done"
	wait_until '[[ -s $TMP/holder.out ]]'
	kill -INT "$(pid holder)"
	wait_until '[[ $(<"$TMP/holder.out") == *INT* ]]'
	kill -TERM "$(pid holder)"
	finish holder
	expect 4 'on
INT
TERM'
	key_free 0
}

@test "a signal to the whole of redlock's group does not end COMMAND's" {
	# as `timeout` and job control do it: COMMAND has a group of its own, and gets it from redlock
	spawn holder "$REDLOCK" run "$KEY" perl "$HEAR" "$TMP/heard" "$TMP/stop" TERM,USR1
	wait_until '[[ $(heard ready) == 1 ]]'
	kill -TERM -- "-$(pid holder)"
	wait_until '[[ $(heard TERM) == 1 ]]'
	kill -USR1 "$(pid holder)"
	wait_until '[[ $(heard USR1) == 1 ]]'
	[[ $(heard TERM) == 1 ]]
	touch "$TMP/stop"
	finish holder
	expect 0
	key_free 0
}

@test "a signal of timeout(1), which sends it to redlock and to its group, reaches COMMAND once, without a terminal" {
	local n
	for n in {1..12}; do
		spawn "$n" timeout 100 "$REDLOCK" run "$KEY-$n" perl "$HEAR" "$TMP/heard$n" "$TMP/stop" TERM,USR2
	done
	for n in {1..12}; do
		wait_until "grep -q ready $TMP/heard$n"
		kill -TERM "$(pid "$n")"
		wait_until "grep -q TERM $TMP/heard$n"
		kill -USR2 "$(pgrep -P "$(pid "$n")")" # it comes after whatever came before
		wait_until "grep -q USR2 $TMP/heard$n"
	done
	touch "$TMP/stop"
	[[ $(cat "$TMP"/heard* | grep -c TERM) == 12 ]]
}

# ---------------------------------------------------------------- behind COMMAND

# releasing NAME: its COMMAND, a shell, has ended.
releasing() {
	local command
	command=$(child_named "$(pid "$1")" sh)
	[[ ! $command || $(state "$command") == @(Z|) ]]
}

@test "a signal while releasing changes nothing: COMMAND's status, and KEY is released" {
	servers_start 1
	local signal
	for signal in "${SIGNALS[@]}"; do
		spawn "$signal" "$REDLOCK" run -t 5m --server-timeout 30s "$KEY" \
			sh -c 'kill -STOP "$1"; until [ "$(ps -o stat= -p "$1" | cut -c 1)" = T ]; do sleep 0.02; done; exit 3' - "$(server_pid 0)"
		wait_until "[[ \$(state $(server_pid 0)) == T ]] && releasing $signal"
		kill "-$signal" "$(pid "$signal")"
		server_continue 0
		finish "$signal" 10
		expect 3
		key_free 0
	done
}

# ---------------------------------------------------------------- acquire

@test "a signal while acquire waits ends it without a token, and nothing is left" {
	hold
	local signal
	for signal in "${SIGNALS[@]}"; do
		spawn "$signal" "$REDLOCK" acquire -v "$KEY"
		wait_until "is_waiting $signal"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal" 10
		died_of "$signal"
		[[ $output == '' ]]
	done
	[[ $(rcli 0 GET "$KEY") == somebody ]]
}

@test "a signal while acquire has asked and nobody answers leaves nothing at the server" {
	servers_start 1
	server_stop 0
	spawn waiter "$REDLOCK" acquire -t 5m --server-timeout 30s "$KEY"
	wait_until 'sent_all waiter'
	kill -TERM "$(pid waiter)"
	finish waiter 10
	expect 143
	server_continue 0
	wait_until 'server_drained 0'
	key_free 0
}

@test "a signal while the fence of what was granted is raised ends a waiter, and nothing is left" {
	local i
	servers_start 2
	proxies_start
	take
	spawn a "$REDLOCK" run -v -S "$(proxy_urls)" "$KEY" touch "$TMP/ran"
	wait_until 'queued 1'
	rcli 1 HSET "$(record)" fence 4000000000000
	for i in 0 1; do
		proxy_ears "$i" pass
		proxy "$i" still # only messages come through
	done
	give_back
	wait_until '[[ $(fence_at 0) == 4000000000001 ]]'
	is_running a
	kill -TERM "$(pid a)"
	finish a
	died_of TERM
	[[ ! -e $TMP/ran ]]
	wait_until no_trace 5 # where a lease would last for ten seconds
}

@test "a signal in the pause after a split vote ends a waiter, and nothing is left" {
	local signal
	servers_start 2
	proxies_start
	rcli 0 SET "$KEY" somebody PX 600000
	proxy 0 'delay 40' # so that it is known as the other's when the rest is ours
	for signal in TERM INT HUP; do
		spawn "$signal" "$REDLOCK" run -v -S "$(proxy_url 0),$(server_url 1)" "$KEY" touch "$TMP/ran"
		wait_until "((\$(grep -c 'split vote' \$TMP/$signal.err) > 5))"
		kill "-$signal" "$(pid "$signal")"
		finish "$signal"
		died_of "$signal"
	done
	[[ $(rcli 0 GET "$KEY") == somebody && ! -e $TMP/ran ]]
	wait_until 'no_trace 1'
}
