#!/usr/bin/env bats
# --syslog: what the system's log is told, by a log of the test's own.
# bats file_tags=long

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$$-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	unset REDLOCK_TOKEN
	"${MOUNTS[@]}" true || skip "mounts cannot be made here"
	mkdir "$TMP/dev"
	# it writes a line each into $TMP/log, until it is killed
	cat >"$TMP/log.pl" <<-'end'
		use Socket;
		my $type = $ENV{STREAM} ? SOCK_STREAM : SOCK_DGRAM;
		socket(LOG, AF_UNIX, $type, 0) && bind(LOG, pack_sockaddr_un("/dev/log")) || die;
		$ENV{STREAM} and listen(LOG, 5);
		open(OUT, ">>", "$ENV{TMP}/log");
		OUT->autoflush(1);
		my $pid = fork;
		exec @ARGV if !$pid;
		$SIG{CHLD} = sub { waitpid($pid, 0); $status = $?; };
		$SIG{TERM} = sub { exit 0 };
		open(READY, ">", "$ENV{TMP}/ready");
		while (1) {
			my $from = LOG;
			if ($ENV{STREAM}) { accept($from = undef, LOG) or next }
			my $line;
			until (defined recv($from, $line, 8192, 0)) { $!{EINTR} or die } # by SIGCHLD, which loses nothing
			$line =~ s/\n/ /g;
			$line =~ s/\0$//;
			print OUT "$line\n";
		}
	end
	cat >"$TMP/inside.sh" <<-'end'
		mount --rbind /dev "$TMP/dev" && mount -t tmpfs -o mode=755 none /dev || exit
		for name in null urandom; do : >"/dev/$name" && mount --bind "$TMP/dev/$name" "/dev/$name" || exit; done
		exec perl "$TMP/log.pl" sh -c 'until [ -e "$TMP/ready" ]; do sleep 0.02; done; . "$TMP/job.sh"; : >"$TMP/over"'
	end
	export TMP KEY REDLOCK
}

# logged_by <SCRIPT: runs it where /dev/log is ours, and waits for its end.
logged_by() {
	[[ ! -e $TMP/over ]] || kill "$(pid job)" # the log of the script before
	rm -f "$TMP"/{log,ready,over}
	: >"$TMP/log"
	cat >"$TMP/job.sh"
	spawn job "${MOUNTS[@]}" sh "$TMP/inside.sh"
	wait_until '[[ -e $TMP/over ]]'
}

# has LINE: as a regular expression that stands after the key.
has() {
	wait_until "grep -qE '^<[0-9]+>[A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} redlock\\[[0-9]+\\]: $KEY: $1\$' '$TMP/log'"
}

# on_one_and_three FUNCTION: with a KEY of its own each.
on_one_and_three() {
	local base=$KEY
	KEY=$base-one "$@"
	servers_start 3
	KEY=$base-three REDLOCK_QUARANTINE=0 "$@"
}

tells_of_runs() {
	logged_by <<-'end'
		"$REDLOCK" run --syslog "$KEY" sh -c 'echo "$REDLOCK_FENCE" >"$TMP/fence"; exit 3'
		"$REDLOCK" run --syslog "$KEY" sh -c 'kill -9 $$'
		REDLOCK_SYSLOG=yes "$REDLOCK" run --max-hold 100ms "$KEY" sleep 300
		"$REDLOCK" run --syslog --min-hold 100ms "$KEY" true
		"$REDLOCK" run "$KEY" true
	end
	has "acquired after [^ ]*, fence $(<"$TMP/fence")"
	has "released after [^ ]*, fence $(<"$TMP/fence"): exit 3"
	has 'released after [^ ]*, fence [0-9]*: signal 9'
	has 'released after [^ ]*, fence [0-9]*: signal 15, --max-hold is over'
	has 'released after [^ ]*, fence [0-9]*: exit 0, held for [0-9]*ms more [(]--min-hold[)]'
	[[ $(wc -l <"$TMP/log") == 8 ]]
	# facility cron, severity info
	[[ $(cut -c 1-4 "$TMP/log" | sort -u) == '<78>' ]]
}

@test "run tells the log when it has acquired and released, how COMMAND ended, and with which fence" {
	on_one_and_three tells_of_runs
}

tells_of_success() {
	logged_by <<-'end'
		"$REDLOCK" run --syslog --once-in 1h "$KEY" true
		"$REDLOCK" run --syslog --once-in 1h "$KEY" true
	end
	has "not run: $(uname -n) ran it [^ ]* ago for [^ ]*, exit 0; --once-in lets it run again in [^ ]*"
	has 'released after [^ ]*, fence [0-9]*: exit 0'
	[[ $(wc -l <"$TMP/log") == 3 && $(cut -c 1-4 "$TMP/log" | sort -u) == '<78>' ]]
}

@test "a run that --once-in refuses tells the log which run has succeeded" {
	on_one_and_three tells_of_success
}

tells_of_trouble() {
	printf 'syslog = yes\n' >"$TMP/redlock.conf"
	chmod 600 "$TMP/redlock.conf"
	logged_by <<-'end'
		export XDG_CONFIG_HOME=$TMP
		token=$("$REDLOCK" acquire --label first "$KEY") || exit
		"$REDLOCK" run -n -E 0 "$KEY" true
		"$REDLOCK" break --now --reason why -y "$KEY"
		sleep 300 &
		token=$("$REDLOCK" acquire --pid $! "$KEY") || exit
		"$REDLOCK" release "$KEY" "$token"
		token=$("$REDLOCK" acquire --pid $! -t 2s "$KEY") || exit
		"$REDLOCK" break -q -y "$KEY"
		wait
		"$REDLOCK" run -t 2s "$KEY" sh -c '"$REDLOCK" break -q -y "$KEY"; exec sleep 300'
	end
	has "busy: held by .* .first. for .*"
	has "broken by [^ ]*@[^ ]*: .why., fence [1-9][0-9]*: held by .* .first. for .*"
	has "asked to stop by [^ ]*@[^ ]*, fence [1-9][0-9]*: held by .* for .*"
	has 'released after [^ ]*, fence [0-9]*: by release'
	wait_until '(($(grep -c ": lost after [^ ]*, fence [0-9]*: " "$TMP/log") == 2))'
	[[ $(grep -c ": acquired after" "$TMP/log") == 4 ]]
	[[ $(grep ": lost after" "$TMP/log" | cut -c 1-4 | sort -u) == '<76>' ]]
}

@test "busy, lost and broken are told, by acquire and its keeper, too" {
	on_one_and_three tells_of_trouble
}

tells_of_one_that_ends() {
	rm -f "$TMP"/{on,end}
	logged_by <<-'end'
		"$REDLOCK" run -t 5m --label itself "$KEY" sh -c 'touch "$TMP/on"; until [ -e "$TMP/end" ]; do sleep 0.05; done' &
		until [ -e "$TMP/on" ]; do sleep 0.05; done
		"$REDLOCK" break --syslog -q -y --reason why "$KEY" &
		until grep -q 'asked to stop' "$TMP/log"; do sleep 0.05; done
		touch "$TMP/end"
		wait
	end
	has "asked to stop by [^ ]*@[^ ]*: .why., fence [1-9][0-9]*: held by .* .itself. for .*"
	has "asked .* pid [0-9]* .itself. to stop; released after [^ ]*, fence [1-9][0-9]*"
	[[ $(wc -l <"$TMP/log") == 2 ]]
	[[ $("$REDLOCK" history "$KEY") == *' exit 0 '* ]]
}

@test "break tells the log that a holder which it asked to stop has released KEY, not that it was broken" {
	on_one_and_three tells_of_one_that_ends
}

@test "what break deletes that is not a lock is told without a holder" {
	rcli 0 RPUSH "$KEY" element
	logged_by <<<'"$REDLOCK" break --syslog -y --foreign --reason why "$KEY"'
	has "broken by [^ ]*@[^ ]*: .why., fence 0"
}

@test "what break --now took from a minority of servers is logged" {
	local i
	servers_start 3
	proxies_start
	token=$("$REDLOCK" acquire "$KEY")
	for i in 1 2; do proxy "$i" "until 'broken'" reset; done
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=$(proxy_urls)
	logged_by <<-'end'
		"$REDLOCK" break --now -q -y --syslog "$KEY" 2>/dev/null
		echo $? >"$TMP/status"
	end
	[[ $(<"$TMP/status") == 69 ]]
	has "broken by [^ ]*, fence [1-9][0-9]*: held by .*"
}

# A server that is paused reads nothing until then.
@test "what could not be released is told so, with a warning, by run, by the keeper and by release" {
	local -x SOCKET=$SERVERS/0/redis.sock
	logged_by <<-'end'
		"$REDLOCK" run --syslog --server-timeout 500ms "$KEY" redis-cli -s "$SOCKET" CLIENT PAUSE 4000
	end
	has 'not released after [^ ]*, fence [0-9]*: exit 0: .*no answer within .*'
	[[ $(grep ': not released' "$TMP/log" | cut -c 1-4) == '<76>' ]]
	run ! grep ': released' "$TMP/log"
	KEY+=-2 # the other one has a lease left
	logged_by <<-'end'
		sleep 300 &
		"$REDLOCK" acquire --pid $! --syslog --server-timeout 500ms -w 20s "$KEY" >/dev/null || exit
		redis-cli -s "$SOCKET" CLIENT PAUSE 4000 >/dev/null
		kill $!
	end
	has 'not released after [^ ]*, fence [0-9]*: the process has ended: .*no answer within .*'
	run ! grep ': released' "$TMP/log"
	redis-cli -s "$SOCKET" PING >/dev/null # for the next one, the pause is over
	KEY+=-3
	logged_by <<-'end'
		sleep 300 &
		token=$("$REDLOCK" acquire --pid $! --syslog -w 20s "$KEY") || exit
		redis-cli -s "$SOCKET" CLIENT PAUSE 4000 >/dev/null
		"$REDLOCK" release --server-timeout 500ms "$KEY" "$token" 2>/dev/null
		echo $? >"$TMP/status"
	end
	[[ $(<"$TMP/status") == 69 ]]
	has 'not released after [^ ]*, fence [1-9][0-9]*: by release: .*no answer within .*'
	run ! grep ': released' "$TMP/log"
	redis-cli -s "$SOCKET" PING >/dev/null # for the next test, the pause is over
}

# tells_of_none SERVERS WHY
tells_of_none() {
	REDLOCK_SERVERS=$1 logged_by <<<'"$REDLOCK" run --syslog --unreachable run "$KEY" true'
	has "COMMAND runs without the lock: $2"
	[[ $(cut -c 1-4 "$TMP/log") == '<76>' ]]
}

@test "a COMMAND that runs without its lock is told of, with a warning, and no end of the lock" {
	tells_of_none unix:///nonexistent/s 'unix:///nonexistent/s: .*'
	tells_of_none unix:///nonexistent/s,unix:///nonexistent/t,unix:///nonexistent/u \
		'no quorum: 3 of 3 servers gave no vote, .*'
}

@test "a log that is a stream is told as well" {
	STREAM=yes logged_by <<<'"$REDLOCK" run --syslog "$KEY" true'
	has 'released after [^ ]*, fence [0-9]*: exit 0'
}

@test "without a log nothing is said, and without --syslog none is looked for" {
	redlock run --syslog "$KEY" true
	expect 0
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # it cannot be traced
	strace -f -qq -o "$TMP/trace" -e trace=%network,%file "$REDLOCK" run --syslog "$KEY" true
	grep -qF '"/dev/log"' "$TMP/trace"
	strace -f -qq -o "$TMP/trace" -e trace=%network,%file "$REDLOCK" run "$KEY" true
	run ! grep -F '/dev/log' "$TMP/trace"
}

@test "with several keys each has its lines, and the one that is held by others is named" {
	logged_by <<-'end'
		"$REDLOCK" run --syslog --also "$KEY:2" "$KEY" "$REDLOCK" run --syslog -n -E 0 --also "$KEY:2" "$KEY:3" true
		sleep 300 &
		"$REDLOCK" acquire --syslog --pid $! --also "$KEY:2" "$KEY" >/dev/null
		"$REDLOCK" break -q -y --syslog "$KEY:2"
	end
	has "acquired after [^ ]*, fence $(fence_at 0 "$KEY")"
	KEY+=:2
	has 'busy: held by .*'
	has 'released after [^ ]*, fence [0-9]*: exit 0'
	has 'asked to stop by [^ ]*, fence [0-9]*: held by .*'
	has 'broken by [^ ]*, fence [0-9]*: held by .*'
	has 'lost after [^ ]*, fence [0-9]*: broken by .*'
	run ! grep -E "$KEY: released after .*: the process has ended" "$TMP/log"
	KEY=${KEY%:2}
	has 'released after [^ ]*, fence [0-9]*: exit 0'
	has 'released after [^ ]*, fence [0-9]*: another lock is lost'
	run ! grep -F "$KEY:3: " "$TMP/log"
}

@test "if the standard error of a process is a full pipe, the log has why it is stopped, and nobody waits for the pipe" {
	logged_by <<-'end'
		mkfifo "$TMP/pipe"
		exec 9<>"$TMP/pipe"
		dd if=/dev/urandom of="$TMP/pipe" oflag=nonblock bs=1k 2>/dev/null # until it is full
		sleep 300 2>"$TMP/pipe" &
		"$REDLOCK" acquire --pid $! -t 2s "$KEY" >/dev/null
		"$REDLOCK" break -q -y "$KEY"
		wait
	end
	wait_until 'grep -q ": $KEY: lock lost: .*: pid [0-9]* is stopped" "$TMP/log"'
	[[ $(wc -l <"$TMP/log") == 1 ]]
}

@test "a KEY cannot forge a line of the log, nor can one that the keeper tells of" {
	logged_by <<-'end'
		key=$KEY'
		<0>Jan  1 00:00:00 kernel: %n%s'
		"$REDLOCK" run --syslog "$key" true
		sleep 300 2>&- &
		"$REDLOCK" acquire --pid $! -t 2s "$key" >/dev/null
		"$REDLOCK" break -q -y "$key"
		wait
	end
	wait_until 'grep -q "lock lost" "$TMP/log"'
	[[ $(wc -l <"$TMP/log") == 3 ]]
	[[ $(grep -cF "$KEY\\n<0>Jan  1 00:00:00 kernel: %n%s: " "$TMP/log") == 3 ]]
}
