#!/usr/bin/env bats
# With a terminal redlock is no more in the way than flock(1): COMMAND has the terminal when redlock has it, and
# stops, goes on and ends with it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

# ---------------------------------------------------------------- stop, fg, bg

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "a full-screen program gives the prompt back at ^Z, and when it stops by itself; fg gives it the terminal" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY $SCREEN
		see UP
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see UP
		key z
		see Stopped(.|\n)*ready> $
		type fg
		see AGAIN
		key s
		see Stopped(.|\n)*ready> $
		type fg
		see AGAIN
		key x
		see key-x
		key q
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "started in the background and brought to the foreground, it gets the terminal" {
	# curses drops what was typed before it is back, so it has to have been continued, and stopped again
	cat >"$TMP/switches" <<-END
		awk '/ctxt/ { n += \$2 } END { print n }' "/proc/\$(pgrep -fx "$SCREEN.*")/status"
	END
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'touch $TMP/on; exec $SCREEN' &
		see ready> $
		run [[ -e $TMP/on ]]
		run [[ \$(ps -o stat= -p \$(pgrep -fx "$SCREEN.*")) == T* ]]
		type fg
		see UP
		key x
		see key-x
		key ^Z
		see Stopped(.|\n)*ready> $
		run bash $TMP/switches >$TMP/before
		type bg
		see ready> $
		run (( \$(bash $TMP/switches) > \$(<$TMP/before) ))
		run [[ \$(ps -o stat= -p \$(pgrep -fx "$SCREEN.*")) == T* ]]
		type fg
		see key-x
		key q
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "^Z stops the job of a COMMAND whose child, made by vfork(2), stops before exec; fg continues it" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY $TOOLS/vforks $TMP/go
		see UP
		key ^Z
		see Stopped(.|\n)*ready> $
		run touch $TMP/go
		type fg
		see vforks(.|\n)*ready> $
		type exit \$?
	STEPS
	[[ $status == 3 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "^Z stops the job of a COMMAND whose first thread has ended, and the lease; fg continues it" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run --quarantine 0 -t $((4 * SLOW))s $KEY $TOOLS/headless
		see UP
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see headless
		type word
		see word\r\nword\r\n
		key ^Z
		see Stopped(.|\n)*ready> $
		run [[ \$(redis-cli -s $SERVERS/0/redis.sock EXISTS $KEY) == 0 ]]
		type fg
		see lock lost
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 76 ]]
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "less, by itself and at the end of a pipeline, stops and goes on" {
	# which heeds ^Z once it waits for a key
	local waits="run [[ \$(ps -o stat= -p \$(pgrep -x less -s \$(<$TMP/shell))) == S* ]]"
	seq 1000 >"$TMP/numbers"
	at_terminal <<-STEPS
		see ready> $
		type echo \$\$ >$TMP/shell
		see ready> $
		type $REDLOCK run $KEY less $TMP/numbers
		see 23\r\n(.|\n)*numbers
		$waits
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see 23\r\n
		key G
		see 1000
		key q
		see ready> $
		type $REDLOCK run $KEY seq 100000 | less
		see 23\r\n:
		$waits
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see 23\r\n
		key G
		see 100000
		key q
		see ready> $
		type exit \${PIPESTATUS[0]}
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

@test "an interactive shell has its own jobs, ^C and ^Z, and can be suspended" {
	at_terminal <<-STEPS
		see ready> $
		type PS1='inner> ' $REDLOCK run $KEY bash --norc --noprofile --noediting -i
		see inner> $
		type sh -c 'echo u''p; exec sleep 300'
		see up
		key ^C
		see inner> $
		type sh -c 'echo u''p; exec cat'
		see up
		key ^Z
		see Stopped(.|\n)*inner> $
		type fg
		see cat
		type word
		see word\r\nword\r\n
		key ^D
		see inner> $
		type suspend
		see Stopped(.|\n)*ready> $
		type fg
		see bash
		type exit 5
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 5 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "a password is asked for at the terminal, also after ^Z and fg" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY python3 -Ic 'import getpass; print(getpass.getpass("Word: ")[::-1])'
		see Word: $
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see python3
		run [[ \$(ps -o stat= -p \$(pgrep -fx "python3 -Ic import getpass.*")) == S*+ ]]
		type secret
		see terces
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

@test "a COMMAND that stops and tells nobody stops redlock; in the background both go on" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'kill -STOP \$\$; touch $TMP/on; exit 4'
		see Stopped(.|\n)*ready> $
		type bg
		see ready> $
		run [[ -e $TMP/on ]]
		type wait %1
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 4 ]]
	key_free 0
}

@test "one that has stopped in the background gets the terminal at the first fg" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'echo \$\$ >$TMP/pid; kill -STOP \$\$; exec cat' & echo \$! >$TMP/own
		run [[ \$(ps -o stat= -p \$(<$TMP/pid)) == T* && \$(ps -o stat= -p \$(<$TMP/own)) == T* ]]
		type fg
		see cat'\r\n
		type word
		see word\r\nword\r\n
		key ^D
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

@test "a COMMAND that somebody else stops, for longer than its ttl, and continues has kept its lock and its terminal" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run -v --quarantine 0 -t 2s $KEY sh -c 'echo \$\$ >$TMP/pid; echo u''p; exec cat'
		see up
		run kill -STOP \$(<$TMP/pid)
		see (renewed(.|\n)*){5}
		run kill -CONT \$(<$TMP/pid)
		type word
		see word\r\n(.|\n)*word\r\n
		key ^D
		see released(.|\n)*ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

@test "a COMMAND that is slowed down by stops, as cpulimit(1) does, stays in the foreground" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'echo \$\$ >$TMP/pid; echo u''p; exec cat'
		see up
		run for i in {1..30}; do kill -STOP \$(<$TMP/pid); sleep 0.02; kill -CONT \$(<$TMP/pid); sleep 0.01; done
		type word
		see word\r\nword\r\n
		key ^D
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "^Z stops the job of a COMMAND that somebody else has stopped; fg continues both" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'echo \$\$ >$TMP/pid; echo u''p; exec cat'
		see up
		run kill -STOP \$(<$TMP/pid)
		run [[ \$(ps -o stat= -p \$(<$TMP/pid)) == T* ]]
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see cat'\r\n
		type word
		see word\r\nword\r\n
		key ^D
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "after ^Z, redlock goes on if only COMMAND is continued, which gets one SIGCONT; and it ends if COMMAND is killed" {
	local own="run [[ \$(ps -o stat= -p \$(pgrep -fx '$REDLOCK run $KEY perl.*')) == "
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY perl $HEAR $TMP/heard $TMP/stop CONT
		run [[ \$(grep -c ready $TMP/heard) == 1 ]]
		key ^Z
		see Stopped(.|\n)*ready> $
		run pkill -CONT -fx 'perl $HEAR $TMP/heard .*'
		${own}S* ]]
		run [[ \$(grep -c CONT $TMP/heard) == 1 ]]
		type fg
		see perl
		# bash names the job before it gives it the terminal
		${own}S*+ ]]
		key ^Z
		see Stopped(.|\n)*ready> $
		run pkill -KILL -fx 'perl $HEAR $TMP/heard .*'
		run [[ -z \$(pgrep -fx '$REDLOCK run $KEY perl.*') ]]
		type wait %1
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 137 ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "^Z after a loss stops redlock with a COMMAND that was only sent a signal" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run --on-lost USR1 -t 2s --server-timeout 200ms $KEY perl -e '\$SIG{USR1} = sub { print "lo", "st\\n" }; \$SIG{CONT} = sub { print "on\\n" }; \$| = 1; print "u", "p\\n"; sleep 1 while 1'
		see up
		run redis-cli -s $SERVERS/0/redis.sock DEL $KEY
		# what COMMAND says; the signal is followed by SIGCONT, which would take ^Z back
		see \nlost\r\n
		see on\r\n
		key ^Z
		see Stopped(.|\n)*ready> $
		type fg
		see perl
		# bash names the job before it gives it the terminal
		run [[ \$(ps -o stat= -p \$(pgrep -fx '$REDLOCK run .* $KEY perl.*')) == S*+ ]]
		key ^C
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 76 ]]
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "^Z stops the lease, too: COMMAND is dead when it ends, and fg says that it was lost" {
	mkdir "$TMP/stamps"
	cat >"$TMP/steps" <<-STEPS
		see ready> $
		type $REDLOCK run -t 2s $KEY $STAMP -t -c 1 $TMP/stamps
		run [[ \$($STAMP -l $TMP/stamps | wc -l) == 2 ]]
		key ^Z
		see Stopped(.|\n)*ready> $
		run [[ -e $TMP/next ]]
		type fg
		see lock lost
		see ready> $
		type exit \$?
	STEPS
	session() { at_terminal <"$TMP/steps"; exit "$status"; }
	spawn session session
	wait_until 'stamped $TMP/stamps 2'
	redlock run --quarantine 0 -t 2s -w 20s "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	expect 0
	assert_exclusive "$TMP/stamps" 2
	touch "$TMP/next"
	finish session
	[[ $status == 76 ]]
}

@test "^S keeps no lock from being renewed, and COMMAND runs on; ^Q shows how many lines were dropped" {
	local before
	mkdir "$TMP/stamps"
	cat >"$TMP/scripts" <<-'END' # that the server has run
		redis-cli -s "$SERVERS/0/redis.sock" INFO commandstats |
			awk -F '[=,]' '/^cmdstat_eval(sha)?:/ { scripts += $2 } END { print scripts + 0 }'
	END
	before=$(bash "$TMP/scripts")
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run -v -t $((2 * SLOW))s $KEY $STAMP -u $TMP/end $TMP/stamps
		see started
		key ^S
		run (( \$(bash $TMP/scripts) > $before + 8 ))
		key ^Q
		see lines dropped here, as standard error was full: [0-9]+\r\nredlock: [0-9.]+s: $KEY: renewed
		run touch $TMP/end
		see released
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 0 ]]
	key_free 0
}

@test "a COMMAND that is stopped in order to be killed is no stopped job" {
	mkdir "$TMP/stamps"
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run --max-hold 1s -k 300ms -t 6s $KEY $STAMP -t -c 1 $TMP/stamps
		see stopped after --max-hold 1s\r\n
		see ^ready> $
		type echo \$?
		see 124\r\n
		see ready> $
		type $REDLOCK run -t 2s -k 300ms --server-timeout 200ms $KEY-lost $STAMP -t -c 1 $TMP/stamps
		run [[ \$($STAMP -l $TMP/stamps | wc -l) == 4 ]]
		run redis-cli -s $SERVERS/0/redis.sock DEL $KEY-lost
		see lock lost: .*\r\n
		see ^ready> $
		type exit \$?
	STEPS
	[[ $status == 76 ]]
}

@test "with stty tostop, no message of redlock's stops its job in the background: not that of a wait, of --max-hold, or of a loss" {
	at_terminal <<-STEPS
		see ready> $
		type stty tostop
		see ready> $
		type $REDLOCK run --on-lost warn -t $((4 * SLOW))s $KEY sh -c 'until [ -e $TMP/go ]; do sleep 0.05; done; exit 5' &
		see ready> $
		run $REDLOCK status $KEY >$TMP/status
		type $REDLOCK run -v -w 60s --max-hold 1s -k 300ms $KEY sh -c 'trap "" TERM; sleep 300; :' &
		see 1st in line
		run redis-cli -s $SERVERS/0/redis.sock DEL $KEY
		see lock lost: .*: COMMAND runs on without it\r\n
		type wait %2; echo status \$?
		see status 124\r\n
		run touch $TMP/go
		type wait %1; exit \$?
	STEPS
	[[ $status == 5 ]]
}

# shell_script: a script whose COMMAND is an interactive shell, that reads on after it.
shell_script() {
	cat >"$TMP/script" <<-STEPS
		PS1='inner> ' $REDLOCK run -k 300ms --server-timeout 200ms \$* $KEY bash --norc --noprofile --noediting -i
		echo "ended: \$?"
		until [ -e $TMP/go ]; do sleep 0.05; done
		read word && echo "read \$word"
	STEPS
}

@test "after an interactive COMMAND that was killed, a script reads on at the terminal" {
	local job="sh -c 'trap \"\" TERM; echo u''p; exec sleep 300'"
	shell_script
	touch "$TMP/go"
	at_terminal <<-STEPS
		see ready> $
		# a job of its own has the terminal
		type sh $TMP/script -t 2s
		see inner> $
		type $job
		see up\r\n
		run redis-cli -s $SERVERS/0/redis.sock DEL $KEY
		see ended: 76\r\n
		type first
		see read first\r\nready> $
		# the shell itself has it
		type sh $TMP/script --quarantine 0 --max-hold 1s
		see ended: 124\r\n
		type second
		see read second\r\nready> $
		type sh $TMP/script --quarantine 0
		see inner> $
		type kill -KILL \$\$
		see ended: 137\r\n
		type third
		see read third\r\nready> $
		type exit 3
	STEPS
	[[ $status == 3 ]]
	key_free 0
}

@test "after a COMMAND that was killed, the terminal is set as it was before; what one that ends by itself sets is kept" {
	echo "stty raw -echo; echo \$\$ >$TMP/pid; echo up; exec sleep 300" >"$TMP/raw"
	# as an interactive shell, it gives each command a job of its own
	cat >"$TMP/script" <<-STEPS
		set -m
		stty -g >$TMP/before
		$REDLOCK run -k 300ms --server-timeout 200ms --quarantine 0 \$*
		echo "ended: \$?"
		stty -g | diff $TMP/before - && read word && echo "read \$word"
	STEPS
	at_terminal <<-STEPS
		see ready> $
		type sh $TMP/script --max-hold 1s $KEY sh $TMP/raw
		see ended: 124\r\n
		type first
		see read first\r\nready> $
		type sh $TMP/script -t 2s $KEY sh $TMP/raw
		see up\n
		run redis-cli -s $SERVERS/0/redis.sock DEL $KEY
		see ended: 76\r\n
		type second
		see read second\r\nready> $
		type sh $TMP/script $KEY sh $TMP/raw
		see up\n
		run kill -KILL \$(<$TMP/pid)
		see ended: 137\r\n
		type third
		see read third\r\nready> $
		# a shell that edits lines, in a group of its own
		type sh $TMP/script --max-hold 1s $KEY bash --norc --noprofile -i
		see ended: 124\r\n
		type fourth
		see read fourth\r\nready> $
		type $REDLOCK run $KEY stty -echo
		see ready> $
		type stty -a | grep -ow -e -echo; stty echo
		see -echo\r\n(.|\n)*ready> $
		type exit 3
	STEPS
	[[ $status == 3 ]]
	key_free 0
}

@test "what another part of a pipeline has set at the terminal stays when COMMAND is killed" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run --max-hold 1s -k 300ms $KEY sh -c 'echo; sleep 300; :' | sh -c 'read x; stty -echo </dev/tty; cat; stty -a </dev/tty | grep -ow -e -echo; stty echo </dev/tty'
		see stopped after --max-hold 1s\r\n-echo\r\n
		see ready> $
		type exit \${PIPESTATUS[0]}
	STEPS
	[[ $status == 124 ]]
	key_free 0
}

@test "what a script has set at the terminal stays when its run in the background ends, be it no echo or echo" {
	local job="$REDLOCK run --quarantine 0 -k 300ms $KEY sh -c 'touch $TMP/on; exec sleep 300' & until [ -e $TMP/on ]; do sleep 0.05; done"
	cat >"$TMP/script" <<-STEPS
		tty >$TMP/tty
		$job; echo \$! >$TMP/pid
		read -rs -p Password: word
		echo "read \$word"
		rm $TMP/on; stty -echo
		$job
		stty echo; kill \$!; wait
		stty -a | grep -ow -e '-*echo'
	STEPS
	at_terminal <<-STEPS
		see ready> $
		type bash $TMP/script
		see Password:
		run kill \$(<$TMP/pid)
		run [[ -z \$(pgrep -f '^$REDLOCK run .*$TMP/on;') ]]
		run stty -a -F \$(<$TMP/tty) | grep -qw -e -echo
		type secret
		see read secret\r\n(.*\n)*echo\r\nready> $
		type exit 3
	STEPS
	[[ $status == 3 ]]
	key_free 0
}

@test "an interactive COMMAND that was killed leaves the terminal to its job that runs on" {
	shell_script
	at_terminal <<-STEPS
		see ready> $
		type sh $TMP/script
		see inner> $
		type echo \$\$ >$TMP/shell; sh -c 'echo \$\$ >$TMP/job; exec cat'
		run [[ \$(ps -o comm= -p \$(<$TMP/job)) == cat ]]
		run kill -KILL \$(<$TMP/shell)
		see ended: 137\r\n
		run [[ \$(ps -o stat= -p \$(<$TMP/job)) == S*+ ]]
		type word
		see word\r\nword\r\n
		hangup
	STEPS
	[[ $status == 129 ]]
}

@test "an interactive COMMAND that is killed in the background leaves the terminal to the shell" {
	at_terminal <<-STEPS
		see ready> $
		type PS1='inner> ' $REDLOCK run $KEY bash --norc --noprofile --noediting -i
		see inner> $
		type echo \$\$ >$TMP/shell; suspend
		see Stopped(.|\n)*ready> $
		run kill -KILL \$(<$TMP/shell)
		run [[ -z \$(pgrep -f '^$REDLOCK run $KEY bash') ]]
		type wait %1
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 137 ]]
	key_free 0
}

# ---------------------------------------------------------------- signals

@test "a signal to the whole job reaches COMMAND once, and so does one to redlock alone" {
	local signal round=0
	cat >"$TMP/steps" <<-STEPS
		see ready> $
		type $REDLOCK run $KEY perl $HEAR $TMP/heard $TMP/stop INT,TERM,HUP,USR1,USR2 2 & echo \$! >$TMP/pid
		run [[ \$(grep -c ready $TMP/heard) == 2 ]]
	STEPS
	# redlock is stopped, so that what it might add is a signal of its own; what is handed on keeps its order
	for signal in INT TERM HUP USR1; do
		((++round))
		cat >>"$TMP/steps" <<-STEPS
			run kill -STOP \$(<$TMP/pid)
			type kill -$signal %1
			run [[ \$(grep -c ^$signal $TMP/heard) == 2 ]]
			run kill -CONT \$(<$TMP/pid)
			type kill -USR2 \$(<$TMP/pid)
			run [[ \$(grep -c ^USR2 $TMP/heard) == $round ]]
			run [[ \$(grep -c ^$signal $TMP/heard) == 2 ]]
		STEPS
	done
	printf '%s\n' "run touch $TMP/stop" 'type wait %1' 'see ready> $' 'type exit $?' >>"$TMP/steps"
	at_terminal <"$TMP/steps"
	[[ $status == 0 ]]
	key_free 0
}

@test "a signal of timeout(1), which sends it to redlock and to the whole job, reaches COMMAND once" {
	local round
	echo 'see ready> $' >"$TMP/steps"
	for round in {1..10}; do
		# what is handed on keeps its order
		cat >>"$TMP/steps" <<-STEPS
			type timeout 100 $REDLOCK run $KEY perl $HEAR $TMP/heard-$round $TMP/stop-$round TERM,USR2 & echo \$! >$TMP/pid
			run [[ \$(grep -c ready $TMP/heard-$round) == 1 ]]
			run kill -TERM \$(<$TMP/pid)
			run [[ \$(grep -c TERM $TMP/heard-$round) -ge 1 ]]
			run kill -USR2 \$(pgrep -P \$(<$TMP/pid))
			run [[ \$(grep -c USR2 $TMP/heard-$round) == 1 ]]
			run touch $TMP/stop-$round
			type wait
			see ready> $
		STEPS
	done
	echo 'type exit' >>"$TMP/steps"
	at_terminal <"$TMP/steps"
	[[ $(cat "$TMP"/heard-* | grep -c TERM) == 10 ]]
	key_free 0
}

# in_namespace NAME COMMAND: in_terminal, COMMAND in a pid namespace of its own, where the terminal, the session and
# the process group are those of outside, and have no numbers.
in_namespace() {
	[[ $(id -u) == 0 ]] || skip "a pid namespace needs root"
	in_terminal "$1" "unshare --pid --fork --kill-child --mount-proc sh -c '$2'${3-}"
}

# hearer FILE: the process id, out here, of the first tools/hear.pl of one signal that writes this file; and of its parent.
hearer() {
	pgrep -ofx "perl $HEAR $1 [^ ]* [A-Z0-9]+( [0-9])?"
}

parent_of_hearer() {
	ps -o ppid= -p "$(hearer "$1")" | xargs
}

@test "in a pid namespace of the same job a signal to redlock alone reaches COMMAND alone" {
	in_namespace session "$REDLOCK run $KEY perl $HEAR $TMP/heard $TMP/stop USR1; echo \$? >$TMP/status" \
		" | perl $HEAR $TMP/beside $TMP/stop USR1,USR2"
	wait_until '[[ $(heard ready) == 1 && $(heard ready "$TMP/beside") == 1 ]]'
	kill -USR1 "$(parent_of_hearer "$TMP/heard")"
	wait_until '[[ $(heard USR1) == 1 ]]'
	# perl takes USR1 first
	kill -USR2 "$(pgrep -fx "perl $HEAR $TMP/beside .*")"
	wait_until '[[ $(heard USR2 "$TMP/beside") == 1 ]]'
	[[ $(heard USR1 "$TMP/beside") == 0 ]]
	touch "$TMP/stop"
	finish session
	[[ $status == 0 && $(<"$TMP/status") == 0 ]]
	key_free 0
}

@test "in a pid namespace of the same job all of COMMAND gets SIGTERM, and SIGKILL: after --max-hold, a loss, and if redlock is killed or stopped" {
	local way option ways=(hold loss kill stop)
	# one of its processes has lost its parent
	cat >"$TMP/command" <<-END
		(perl $HEAR \$1 $TMP/never TERM,INT &)
		exec perl $HEAR \$1 $TMP/never TERM 2
	END
	for way in "${ways[@]}"; do
		option=
		[[ $way != hold ]] || option="--max-hold $((4 * SLOW))s"
		in_namespace "$way" "$REDLOCK run --quarantine 0 -t $((9 * SLOW))s -k $((2 * SLOW))s $option $KEY-$way \
			sh $TMP/command $TMP/heard-$way; echo \$? >$TMP/status-$way
			until [ -e $TMP/end ]; do sleep 0.05; done"
	done
	for way in "${ways[@]}"; do wait_until "[[ \$(heard ready $TMP/heard-$way) == 3 ]]"; done
	rcli 0 DEL "$KEY-loss"
	kill -KILL "$(parent_of_hearer "$TMP/heard-kill")"
	local stopped
	stopped=$(parent_of_hearer "$TMP/heard-stop")
	stop_process "$stopped"
	for way in "${ways[@]}"; do
		wait_until "[[ \$(heard TERM $TMP/heard-$way) == 3 ]]"
		wait_until "! pgrep -fx 'perl $HEAR $TMP/heard-$way .*'"
	done
	kill -CONT "$stopped"
	touch "$TMP/end"
	for way in "${ways[@]}"; do finish "$way"; done
	[[ $(cat "$TMP"/status-{hold,loss,kill,stop} | xargs) == '124 76 137 76' ]]
}

@test "a COMMAND that sends redlock signals all the time keeps its lock" {
	at_terminal "$REDLOCK" run --quarantine 0 -t 2s "$KEY" perl -e '$SIG{USR1} = "IGNORE"; my $end = time + 4;
		kill USR1 => getppid while time < $end; exit 6' </dev/null
	[[ $status == 6 ]]
	key_free 0
}

# native: under valgrind, what ^C ends just before exec counts as not started
# bats test_tags=native
@test "^C at any moment of a start ends redlock by SIGINT, and no COMMAND runs on" {
	# exec, as a shell that is just about to wait for a child may miss a ^C by itself
	touch "$TMP/command"
	run timeout -k 1 100 python3 -IS "$ROOT/test/lib/tools/interrupt.py" 100 \
		"$REDLOCK" run "$KEY" sh -c 'echo up; exec tail -f "$0"' "$TMP/command"
	[[ $status == 0 && $output == 'signal 2: 100' ]]
	run ! pgrep -f "$TMP/command"
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "^Z at any moment of a start stops redlock, and after that it goes on" {
	run timeout -k 1 100 python3 -IS "$ROOT/test/lib/tools/suspend.py" 200 $((10 * SLOW)) \
		"$REDLOCK" run -q --quarantine 0 "$KEY" sleep 300
	[[ $status == 0 && $output == 'well: 200' ]]
	key_free 0
}

@test "a terminal that hangs up ends COMMAND and frees KEY, with redlock as the session's leader and below a shell" {
	at_terminal "$REDLOCK" run "$KEY" sh -c "echo up; exec sleep 300" <<-STEPS
		see up
		hangup
	STEPS
	[[ $status == 129 ]]
	key_free 0
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'echo u''p; exec sleep 300'
		see up
		hangup
	STEPS
	wait_until 'key_free 0'
}

@test "a COMMAND that stops itself as redlock leads the session: nobody could continue both; the lock is kept, and ^C ends both" {
	at_terminal "$REDLOCK" run -t 2s -k 300ms "$KEY" sh -c 'echo $$ >"$1"; kill -STOP $$; sleep 300; :' - "$TMP/pid" <<-STEPS
		run [[ \$(ps -o state= -p \$(<$TMP/pid)) == T ]]
		run $REDLOCK status --format json $KEY | jq -e '.holders[0].held_ms > 3000'
		key ^C
	STEPS
	[[ $status == 130 ]]
	key_free 0
	at_terminal "$REDLOCK" run "$KEY" sh -c 'echo $$ >"$1"; exec "$2" 19' - "$TMP/pid" "$TOOLS/headless" <<-STEPS
		see UP
		run grep -q ') T ' /proc/\$(<$TMP/pid)/task/*/stat
		key ^C
	STEPS
	[[ $status == 130 ]]
	key_free 0
}

@test "^C and kill %1 end a COMMAND that somebody else has stopped" {
	local stop="run kill -STOP \$(<$TMP/pid) && [[ \$(ps -o state= -p \$(<$TMP/pid)) == T ]]"
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run $KEY sh -c 'echo \$\$ >$TMP/pid; exec sleep 300'
		$stop
		key ^C
		see ready> $
		type echo status \$?; rm $TMP/pid
		see status 130\r\nready> $
		type $REDLOCK run $KEY sh -c 'echo \$\$ >$TMP/pid; exec sleep 300' &
		$stop
		type kill %1; wait %1
		see ready> $
		type exit \$?
	STEPS
	[[ $status == 143 ]]
	key_free 0
}

@test "nothing of redlock's stays in a job whose redlock was killed" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK run -k 100ms $KEY sh -c 'touch $TMP/on; exec sleep 300' & echo \$! >$TMP/pid
		run [[ -e $TMP/on && \$(pgrep -g \$(<$TMP/pid) | wc -l) == 3 ]]
		run kill -KILL \$(<$TMP/pid)
		run [[ -z \$(pgrep -g \$(<$TMP/pid)) ]]
		type exit
	STEPS
	[[ $status == 0 ]]
}

# native: the sanitizers and valgrind have descriptors of their own
# bats test_tags=native
@test "with too few descriptors to see the terminal it is 71, not a COMMAND that waits for it for ever" {
	local few
	[[ $REDLOCK == */build/redlock ]] || skip "a sanitizer needs more"
	for few in {4..12}; do
		at_terminal <<-STEPS
			see ready> $
			type prlimit --nofile=$few $REDLOCK run $KEY sh -c 'read x; echo got \$x' || echo status \$?
			type line
			see (got line|status 71|Too many open files|cannot open shared object|status 127)(.|\n)*ready> $
			type exit 0
		STEPS
		[[ $status == 0 ]]
	done
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "where /dev/tty is missing, or may not be opened, COMMAND has the terminal all the same, which is on its descriptors" {
	local without
	for without in 'mount -t tmpfs none /dev' 'mount --bind /dev/tty /dev/tty && mount -o remount,bind,nodev /dev/tty'; do
		at_terminal "${MOUNTS[@]}" sh -c "$without"' && exec bash --norc --noprofile --noediting -i' <<-STEPS
			see ready> $
			type $REDLOCK run $KEY cat
			type word
			see word\r\nword\r\n
			key ^Z
			see Stopped(.|\n)*ready> $
			type fg
			see cat\r\n
			type again
			see again\r\nagain\r\n
			key ^C
			see ready> $
			type exit \$?
		STEPS
		[[ $status == 130 ]]
		key_free 0
	done
}
