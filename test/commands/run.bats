#!/usr/bin/env bats
# redlock run: COMMAND sees what it would see without redlock, and its user what COMMAND did.

# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

# ---------------------------------------------------------------- how it ends

@test "what flock(1) calls -n and -x means the same here" {
	redlock run -e "$KEY" "$REDLOCK" run --nb "$KEY-2" true
	expect 0
	hold
	redlock run --nb "$KEY" true
	[[ $status == 75 ]]
	redlock acquire -eE 3 --nb "$KEY"
	[[ $status == 3 ]]
	# it is the kind that excludes others
	redlock run -es "$KEY" true
	[[ $status == 64 && $stderr == *'-s cannot be used with -x'* || $stderr == *'-x cannot be used with -s'* ]]
}

@test "COMMAND's exit status is redlock's" {
	local code
	for code in 0 1 3 64 75 76 77 125 126 127 128 200 255; do
		redlock run "$KEY" sh -c "exit $code"
		expect "$code"
	done
	key_free 0
}

# kernel: qemu-user has handlers of its own for what is ignored, and ends by a signal in its own words
# native: valgrind dumps core by itself
# bats test_tags=kernel,native
@test "redlock dies of the signal that killed COMMAND, with no core of its own" {
	mkdir "$TMP/cwd"
	cd "$TMP/cwd"
	ulimit -c unlimited || true
	local row words
	while read -ra words; do
		died "$REDLOCK" run "$KEY" sh -c "ulimit -c 0; kill -${words[0]} \$\$"
		[[ "${words[0]} $death" == "${words[0]} signal ${words[1]}" ]]
		redlock run "$KEY" sh -c "ulimit -c 0; kill -${words[0]} \$\$"
		expect $((128 + words[1]))
	done <<-'ROWS'
		TERM 15
		KILL 9
		INT 2
		SEGV 11
		QUIT 3
		HUP 1
		ABRT 6
		PIPE 13
		USR1 10
	ROWS
	row=(*)
	[[ ${row[*]} == '*' ]]
	key_free 0
}

@test "a COMMAND that is not executable is 126, and KEY is free at once" {
	echo 'echo never' >"$TMP/plain"
	local command
	for command in "$TMP/plain" "$TMP"; do
		redlock run "$KEY" "$command"
		expect 126 '' "redlock: $KEY: .*$command.*: Permission denied: is it a program, and executable \\(chmod \\+x\\)\\?"
		key_free 0
	done
}

@test "keys that leave no room for COMMAND's environment are named as the reason" {
	local key also=()
	key=$(printf '%4080s' "$KEY")
	for i in {1..12}; do also+=(--also "$key.$i"); done
	redlock run "${also[@]}" "$KEY" true
	expect 126 '' "redlock: $KEY: cannot run 'true': Argument list too long: REDLOCK_HELD and REDLOCK_FENCES have each KEY, so there is less room for the rest"
	key_free 0
}

@test "a COMMAND that is not found is 127, and KEY is free at once" {
	local command
	for command in redlock-no-such-command "$TMP/none" -t; do
		redlock run "$KEY" -- "$command"
		expect 127 '' "redlock: $KEY: .*'$command'.*: No such file or directory(: it is not in PATH)?"
		key_free 0
	done
}

@test "if a directory may not be searched for COMMAND, that is said, and not that it lacks chmod +x" {
	local -a as=()
	((EUID != 0)) || as=(setpriv --inh-caps -all --bounding-set -all) # which may search all
	mkdir -m 0 "$TMP/closed"
	mkdir "$TMP/open"
	: >"$TMP/open/there"
	local -x PATH=$TMP/closed:$PATH:$TMP/open
	for command in "nowhere|it was not found in PATH, and a directory there may not be searched" \
		"$TMP/closed/nowhere|a directory in its path may not be searched" \
		"there|is it a program, and executable (chmod +x)?"; do
		run -126 --separate-stderr timeout -k 1 60 "${as[@]}" "$REDLOCK" run "$KEY" "${command%|*}"
		[[ $stderr == "redlock: $KEY: cannot run '${command%|*}': Permission denied: ${command#*|}" ]]
	done
}

@test "hostile bytes in a COMMAND that is not found are made visible" {
	redlock run "$KEY" $'a\e[31m\nb'
	expect 127 '' "redlock: $KEY: .*'a\\\\e\\[31m\\\\nb'.*"
}

@test "a script without an interpreter line is run by the shell" {
	echo 'echo "args $*"; exit 7' >"$TMP/script"
	chmod +x "$TMP/script"
	redlock run "$KEY" "$TMP/script" a 'b c'
	expect 7 'args a b c'
}

@test "a COMMAND is looked for in PATH, past one that is not executable" {
	mkdir "$TMP/first" "$TMP/second"
	echo 'exit 1' >"$TMP/first/tool"
	echo 'exit 9' >"$TMP/second/tool"
	chmod +x "$TMP/second/tool"
	PATH=$TMP/first:$TMP/second:$PATH redlock run "$KEY" tool
	expect 9
}

@test "a current directory that has been deleted is no obstacle" {
	mkdir "$TMP/gone"
	cd "$TMP/gone"
	rmdir "$TMP/gone"
	redlock run "$KEY" sh -c 'exit 3' 2>/dev/null
	[[ $status == 3 && $output == '' ]]
	redlock run "$KEY" ./here
	expect 127 '' "redlock: $KEY: .*'./here'.*"
	cd "$TMP"
	key_free 0
}

@test "what COMMAND leaves behind keeps no lock, is not waited for and is not killed" {
	redlock run "$KEY" sh -c "sleep 300 </dev/null >/dev/null 2>&1 3>&- 4>&- & echo \$!"
	expect 0 '[0-9]+'
	key_free 0
	wait_until '[[ $(state "$output") == S ]]'
	kill "$output"
}

@test "nothing of redlock's is left once it has ended" {
	spawn holder "$REDLOCK" run "$KEY" sh -c "until [ -e $TMP/stop ]; do sleep 0.02; done"
	wait_until '[[ $(child_named "$(pid holder)" lease-guard) && $(child_named "$(pid holder)" sh) ]]'
	local guard command
	guard=$(child_named "$(pid holder)" lease-guard)
	command=$(child_named "$(pid holder)" sh)
	[[ $(wc -w <<<"$guard") == 1 && $(wc -w <<<"$command") == 1 ]]
	touch "$TMP/stop"
	finish holder
	expect 0
	is_gone "$guard" "$command"
	key_free 0
}

@test "COMMAND's status stands when the release fails; a line says when the lease ends" {
	servers_start 1
	redlock run -t 20s "$KEY" sh -c "kill -KILL $(server_pid 0); exit 3"
	expect 3 '' "redlock: $KEY: .*release.* 1[0-9](\\.[0-9])?s: .*$SERVERS/0/redis.sock.*"
}

@test "COMMAND's status stands when the server does not answer the release" {
	servers_start 1
	redlock run -t 20s --server-timeout 300ms "$KEY" sh -c "kill -STOP $(server_pid 0); exit 3"
	expect 3 '' "redlock: $KEY: .*release.* 1[0-9](\\.[0-9])?s: .*$SERVERS/0/redis.sock.*"
	server_continue 0
	# the release was on its way, and counts when it arrives
	wait_until 'key_free 0'
}

# ---------------------------------------------------------------- what COMMAND sees

@test "COMMAND finds its lock in the environment, set over what was inherited" {
	REDLOCK_KEY=bogus REDLOCK_TOKEN=bogus REDLOCK_FENCE=bogus REDLOCK_HELD='' \
		redlock run "$KEY" sh -c "env | grep ^REDLOCK_ | grep -v _SERVERS= | sort; redis-cli -s $SERVERS/0/redis.sock get $KEY"
	local token=${lines[4]}
	[[ $token =~ ^[0-9a-f]{32}$ ]]
	expect 0 "REDLOCK_FENCE=$(fence_at 0)
REDLOCK_HELD=$KEY=$token
REDLOCK_KEY=$KEY
REDLOCK_TOKEN=$token
$token"
}

@test "nested runs hold two keys, and REDLOCK_HELD names both" {
	redlock run "$KEY" sh -c 'echo "$REDLOCK_HELD"; exec "$@"' - \
		"$REDLOCK" run "$KEY-inner" sh -c "echo \"\$REDLOCK_HELD\"; echo \"\$REDLOCK_KEY\"
			redis-cli -s $SERVERS/0/redis.sock exists $KEY $KEY-inner; exit 6"
	local token='=[0-9a-f]{32}'
	expect 6 "$KEY$token
$KEY$token $KEY-inner$token
$KEY-inner
2"
	[[ ${lines[1]} == "${lines[0]} "* ]]
	key_free 0
	KEY=$KEY-inner key_free 0
}

@test "standard input, output and error are COMMAND's alone" {
	run --separate-stderr timeout -k 1 20 "$REDLOCK" run "$KEY" sh -c 'cat; echo problem >&2; exit 3' <<<'some input'
	expect 3 'some input' 'problem'
}

@test "COMMAND reads on where others have stopped reading" {
	printf 'one\ntwo\nthree\n' >"$TMP/input"
	run timeout -k 1 20 sh -c 'read -r line; "$1" run "$2" sh -c "read -r line; echo got \$line"; read -r line; echo then $line' \
		- "$REDLOCK" "$KEY" <"$TMP/input"
	[[ $status == 0 && $output == $'got two\nthen three' ]]
}

# whether descriptors 0, 1 and 2 are open, into FILE
LOOK_AT_STANDARD='for fd in 0 1 2; do
	found=closed
	[ ! -e /proc/$$/fd/$fd ] || found=open
	echo $found >>"$1"
done
exit 4'

# closing WHICH COMMAND...: with these of the descriptors 0, 1 and 2 closed.
closing() {
	local which=$1
	shift
	case $which in
	0) "$@" <&- ;;
	1) "$@" >&- ;;
	2) "$@" 2>&- ;;
	01) "$@" <&- >&- ;;
	02) "$@" <&- 2>&- ;;
	12) "$@" >&- 2>&- ;;
	012) "$@" <&- >&- 2>&- ;;
	esac </dev/null >"$TMP/closing.out" 2>"$TMP/closing.err"
}

# kernel: qemu-user has its program open, as the first descriptor that is free
# bats test_tags=kernel
@test "closed standard descriptors are closed for COMMAND, and hurt nobody" {
	servers_start 1
	scripts_known
	local which fd code
	for which in 0 1 2 01 02 12 012; do
		rm -f "$TMP/found" "$TMP/expected"
		for fd in 0 1 2; do
			[[ $which == *$fd* ]] && echo closed || echo open
		done >"$TMP/expected"
		code=0
		# -v so that much is said to descriptor 2, whatever that may be
		closing "$which" timeout -k 1 20 "$REDLOCK" run -v "$KEY" sh -c "$LOOK_AT_STANDARD" - "$TMP/found" || code=$?
		echo "$which closed: $code $(tr '\n' ' ' <"$TMP/found")"
		[[ $code == 4 && $(<"$TMP/found") == "$(<"$TMP/expected")" ]]
		key_free 0
	done
	# no line of redlock's was taken for a command
	[[ $(rcli 0 INFO errorstats) != *errorstat_* ]]
}

@test "an error with standard error closed goes nowhere else" {
	hold
	local which code
	for which in 2 02 12 012; do
		code=0
		closing "$which" timeout -k 1 20 "$REDLOCK" run -v -w 50ms "$KEY" true || code=$?
		echo "$which closed: $code"
		[[ $code == 75 && ! -s $TMP/closing.out && $(rcli 0 GET "$KEY") == somebody ]]
	done
}

@test "COMMAND gets the descriptors that the user passes on, and none of redlock's" {
	local without with
	local list='cd /proc/$$/fd && echo *'
	without=$(sh -c "$list" 9</dev/null 12>"$TMP/twelve" </dev/null)
	with=$(timeout -k 1 20 "$REDLOCK" run "$KEY" sh -c "$list" 9</dev/null 12>"$TMP/twelve" </dev/null)
	[[ $with == "$without" && " $with " == *" 9 "* && " $with " == *" 12 "* ]]
	with=$(timeout -k 1 20 "$REDLOCK" run --status-fd 13 "$KEY" sh -c "$list" 9</dev/null 12>"$TMP/twelve" 13>"$TMP/status" </dev/null)
	[[ $with == "$without" ]]
}

# signal_state COMMAND...: the mask and the dispositions that a COMMAND finds.
signal_state() {
	local name mask
	timeout -k 1 20 "$@" grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status |
		while read -r name mask; do
			# without the two that belong to the C library's threads
			printf '%s %016x\n' "$name" $((0x$mask & ~0x180000000))
		done
}

# kernel: qemu-user has handlers of its own for what is ignored, and ends by a signal in its own words
# bats test_tags=kernel
@test "COMMAND has the signal mask and dispositions that redlock was started with" {
	local row words without with
	while read -ra words; do
		without=$(signal_state env --default-signal "${words[@]}")
		with=$(signal_state env --default-signal "${words[@]}" "$REDLOCK" run "$KEY")
		[[ $with == "$without" ]] || {
			printf '%s: not\n%s\nbut\n%s\n' "${words[*]}" "$without" "$with"
			return 1
		}
	done <<-'ROWS'
		env
		env --ignore-signal=HUP
		env --ignore-signal=CHLD
		env --ignore-signal=PIPE
		env --block-signal=TERM
		env --block-signal=CHLD
		env --ignore-signal=HUP,INT,QUIT,PIPE,TERM,USR1,USR2,CHLD,TSTP,TTIN,TTOU,CONT,WINCH
		env --block-signal --ignore-signal=PIPE
	ROWS
	# and the rows do differ
	[[ $with != "$(signal_state env --default-signal)" ]]
}

@test "COMMAND's status arrives though the parent ignores or blocks SIGCHLD" {
	local option
	for option in --ignore-signal=CHLD --block-signal=CHLD --block-signal; do
		died env "$option" "$REDLOCK" run "$KEY" sh -c 'exit 3'
		[[ "$option $death" == "$option exit 3" ]]
		died env "$option" "$REDLOCK" run "$KEY" sh -c 'kill -KILL $$'
		[[ "$option $death" == "$option signal 9" ]]
	done
	key_free 0
}

# kernel: qemu-user has handlers of its own for what is ignored, and ends by a signal in its own words
# bats test_tags=kernel
@test "a HUP that nohup has set to be ignored ends neither redlock nor COMMAND" {
	spawn holder env --ignore-signal=HUP "$REDLOCK" run "$KEY" sh -c "touch $TMP/on; until [ -e $TMP/stop ]; do sleep 0.02; done; exit 3"
	wait_until '[[ -e $TMP/on ]]'
	kill -HUP "$(pid holder)"
	kill -HUP "$(child_named "$(pid holder)" sh)"
	touch "$TMP/stop"
	finish holder
	expect 3
}

@test "what the parent ignores neither ends a wait nor is handed on to COMMAND" {
	spawn first "$REDLOCK" run "$KEY" sh -c "touch $TMP/on; until [ -e $TMP/stop ]; do sleep 0.02; done"
	wait_until '[[ -e $TMP/on ]]'
	spawn second env --ignore-signal=HUP,RTMIN+3,TSTP "$REDLOCK" run "$KEY" \
		perl -e '$SIG{HUP} = $SIG{NUM37} = sub { exit 9 }; open F, ">", shift; select undef, undef, undef, 0.02 until -e $ARGV[0]; exit 3' "$TMP/second" "$TMP/end"
	wait_until 'queued 1'
	kill -HUP "$(pid second)"
	kill -RTMIN+3 "$(pid second)"
	kill -TSTP "$(pid second)"
	touch "$TMP/stop"
	finish first
	wait_until '[[ -e $TMP/second ]]'
	kill -HUP "$(pid second)"
	kill -RTMIN+3 "$(pid second)"
	touch "$TMP/end"
	finish second
	expect 3
}

@test "away from a terminal's foreground COMMAND has a process group of its own, that it does not lead" {
	spawn holder "$REDLOCK" run "$KEY" sh -c "sleep 300 & echo \$!; wait"
	wait_until '[[ -s $TMP/holder.out ]]'
	local command child group session
	command=$(child_named "$(pid holder)" sh)
	child=$(<"$TMP/holder.out")
	read -r group session <<<"$(ps -o pgid=,sid= -p "$command")"
	[[ $session == "$(pid holder)" && $group != "$command" && $group != "$session" ]]
	[[ $(ps -o pgid= -p "$child" | tr -d ' ') == "$group" ]]
	# who made the group is gone
	[[ ! -e /proc/$group ]]
	kill -TERM "$(pid holder)"
	finish holder
	expect 143 "$child"
	wait_until "is_over $child"
}

@test "setsid(1) as COMMAND: KEY is held until what it started ends, and that gets redlock's signals" {
	local command
	spawn holder "$REDLOCK" run "$KEY" setsid sh -c "touch $TMP/on; until [ -e $TMP/stop ]; do sleep 0.02; done; exit 3"
	wait_until '[[ -e $TMP/on ]]'
	command=$(child_named "$(pid holder)" sh)
	[[ $(ps -o sid= -p "$command" | tr -d ' ') == "$command" ]]
	[[ $(rcli 0 EXISTS "$KEY") == 1 ]]
	touch "$TMP/stop"
	finish holder
	expect 3
	key_free 0
	spawn holder "$REDLOCK" run "$KEY" setsid sh -c 'sleep 300 & echo $!; wait'
	wait_until '[[ -s $TMP/holder.out ]]'
	kill -TERM "$(pid holder)"
	finish holder
	[[ $status == 143 ]]
	wait_until "is_over $output"
	key_free 0
}

@test "in a terminal's foreground COMMAND stays in redlock's group, and ^C reaches it once" {
	# a shell between the two, as script(1) itself does things when its child is stopped
	in_terminal session "trap : INT; $REDLOCK run $KEY perl $HEAR $TMP/heard $TMP/stop INT,USR1 2; exit \$?"
	wait_until '[[ $(heard ready) == 2 ]]'
	local command redlock
	command=$(awk '$1 == "ready" { print $2; exit }' "$TMP/heard")
	redlock=$(rcli 0 HVALS "$(record)" | sed -n 's/^pid=//p')
	[[ $redlock ]]
	[[ $(ps -o pgid= -p "$command") == $(ps -o pgid= -p "$redlock") ]]
	# stopped, so that what redlock might add comes after the first, and not at the same moment
	stop_process "$redlock"
	type_keys session '\003'
	wait_until '[[ $(heard INT) == 2 ]]'
	# signals are handed on in order: a second INT would come before this
	kill -USR1 "$redlock"
	kill -CONT "$redlock"
	wait_until '(($(heard USR1) >= 1))'
	[[ $(heard INT) == 2 ]]
	touch "$TMP/stop"
	finish session
	[[ $status == 0 ]]
	key_free 0
}

@test "in a terminal ^C ends COMMAND, and redlock dies of it like any program" {
	in_terminal session "$REDLOCK run $KEY sh -c 'touch $TMP/on; exec sleep 300'; echo \"after: \$?\""
	wait_until '[[ -e $TMP/on ]]'
	type_keys session '\003'
	finish session
	[[ $status == 130 || $output == *'after: 130'* ]]
	key_free 0
}

# native: valgrind does not stop what it runs by SIGTSTP or SIGTTOU
# bats test_tags=native
@test "in a terminal ^Z stops redlock and COMMAND, and fg goes on with both" {
	cat >"$TMP/scene" <<-SCENE
		set -m
		$REDLOCK run $KEY perl $HEAR $TMP/heard $TMP/stop USR1
		echo "first: \$?"
		touch $TMP/stopped
		fg
		echo "then: \$?"
	SCENE
	in_terminal session "bash $TMP/scene"
	wait_until '[[ $(heard ready) == 1 ]]'
	type_keys session '\032'
	wait_until '[[ -e $TMP/stopped ]]'
	touch "$TMP/stop"
	finish session
	[[ $output == *'first: 148'* || $output == *'first: 147'* ]]
	[[ $output == *'then: 0'* ]]
	key_free 0
}

# native: valgrind, as a first process, breaks off if a signal does not end it
# bats test_tags=native
@test "as the first process of a container redlock reaps what is left to it, and ends on TERM" {
	[[ $(id -u) == 0 ]] || skip "pid namespaces need root"
	redlock_first() { exec setsid unshare --pid --fork --kill-child --mount-proc "$REDLOCK" run "$KEY" "$@"; }
	spawn holder redlock_first sh -c 'for i in 1 2 3 4 5; do (sleep 0.01 &); done
		until [ "$(ps -o stat= --ppid 1 | grep -c .)" = 2 ]; do sleep 0.02; done; exit 3'
	finish holder
	expect 3
	spawn holder redlock_first sh -c 'echo; exec sleep 300'
	wait_until '[[ -s $TMP/holder.out ]]'
	kill -TERM "$(pgrep -P "$(pid holder)")"
	finish holder
	expect 143
	key_free 0
}

@test "as the first process of a container redlock reaps what is left to it while it waits for KEY, too" {
	[[ $(id -u) == 0 ]] || skip "pid namespaces need root"
	redlock acquire -t 5m "$KEY"
	expect 0 '[^ ]+'
	local token=$output
	spawn holder unshare --pid --fork --kill-child --mount-proc sh -c '
		(until [ -e "$3/waits" ]; do sleep 0.02; done; (sleep 0.02 &)) &
		until [ -e "$3/waits" ]; do sleep 0.02; done &
		exec "$1" run -v -w 5m "$2" sh -c "exit 3"' - "$REDLOCK" "$KEY" "$TMP"
	wait_until "is_waiting holder"
	touch "$TMP/waits"
	# the guard
	wait_until '[[ $(ps -o comm= --ppid "$(pgrep -P "$(pid holder)")") == lease-guard ]]'
	redlock release "$KEY" "$token"
	finish holder
	[[ $status == 3 ]]
	key_free 0
}

@test "children that were there before are neither waited for nor taken for COMMAND" {
	spawn holder bash -c '
		(until [ -e "$3/on" ]; do sleep 0.02; done; exit 9) &
		sleep 300 &
		echo $!
		exec "$1" run "$2" bash -c "touch \"$3/on\"; until [[ \$(ps -o stat= -p $(jobs -p %1)) == @(Z*|) ]]; do sleep 0.02; done; exit 3"
	' - "$REDLOCK" "$KEY" "$TMP"
	finish holder
	expect 3 '[0-9]+'
	kill "$output"
	key_free 0
}

@test "COMMAND may have 300 kB of arguments" {
	local word
	word=$(repeat x 100000)
	redlock run "$KEY" sh -c 'printf %s "$@" | wc -c' - "$word" "$word" "$word"
	expect 0 300000
	key_free 0
}

@test "COMMAND may have arguments that are empty, and a name of any bytes" {
	ln -s "$(type -P printf)" "$TMP/"$'a \e\xff'
	redlock run "$KEY" "$TMP/"$'a \e\xff' '<%s>' '' ' ' $'\n' --help
	expect 0 '<>< ><
><--help>'
}

# ---------------------------------------------------------------- options

@test "-c runs a line through \$SHELL, or /bin/sh where that is not set" {
	redlock run -c 'echo "$((1 + 1)) $0"; exit 4' "$KEY"
	[[ $status == 4 && $output == '2 '* && $stderr == '' ]]
	printf '#!/bin/sh\necho "shell: $*"\n' >"$TMP/shell"
	chmod +x "$TMP/shell"
	SHELL=$TMP/shell redlock run -c 'a  b' "$KEY"
	expect 0 'shell: -c a  b'
	(
		unset SHELL
		redlock run --command='echo $0' "$KEY"
		expect 0 '.*/?sh'
	)
	SHELL=$TMP/none redlock run -c true "$KEY"
	expect 127 '' "redlock: $KEY: .*$TMP/none.*"
	key_free 0
}

@test "--label is what others see; without it the command line is" {
	redlock run --label $'web\ndeploy' "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HVALS "$(record)"
	[[ $status == 0 && $'\n'$output$'\n' == *$'\n''command=web\ndeploy'$'\n'* ]]
	redlock run "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HVALS "$(record)"
	[[ $status == 0 && $'\n'$output$'\n' == *$'\n'"command=redis-cli -s $SERVERS/0/redis.sock HVALS $(record)"$'\n'* ]]
	redlock run -c "redis-cli -s $SERVERS/0/redis.sock HVALS '$(record)'" "$KEY"
	[[ $status == 0 && $'\n'$output$'\n' == *$'\n'"command=redis-cli -s $SERVERS/0/redis.sock HVALS '$(record)'"$'\n'* ]]
}

@test "a busy KEY tells who has it: host, process, what it does, how long" {
	spawn holder "$REDLOCK" run -t 60s --label backup.sh "$KEY" sleep 300
	wait_until '! key_free 0'
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid $(pid holder) 'backup.sh' for [0-9.]+m?s"
	kill -TERM "$(pid holder)"
	finish holder
	rcli 0 SET "$KEY" foreign PX 600000
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by another program, (9m5[0-9]s|10m00s) left"
	rcli 0 PERSIST "$KEY"
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by another program, with no expiry"
	rcli 0 DEL "$KEY"
	rcli 0 RPUSH "$KEY" list
	redlock run -n "$KEY" true
	expect 65 '' "redlock: $KEY: $(server_url 0): KEY is a list, which is not a lock: choose another KEY"
	[[ $(rcli 0 LLEN "$KEY") == 1 ]]
}

@test "-n does not wait, and COMMAND is not run" {
	hold
	redlock run -n "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	[[ ! -e $TMP/ran && $(rcli 0 GET "$KEY") == somebody ]]
	unhold
	redlock run -n "$KEY" touch "$TMP/ran"
	expect 0
	[[ -e $TMP/ran ]]
}

@test "-E says what a busy KEY is; -E 0 says it in silence" {
	hold
	local code
	for code in 1 75 76 255; do
		redlock run -n -E "$code" "$KEY" touch "$TMP/ran"
		expect "$code" '' "redlock: $KEY: held by .*"
	done
	redlock run -n -E 0 "$KEY" touch "$TMP/ran"
	expect 0
	redlock run -w 30ms -E 0 "$KEY" touch "$TMP/ran"
	expect 0
	[[ ! -e $TMP/ran ]]
	unhold
	# it is not for COMMAND's own status, nor for other trouble
	redlock run -n -E 9 "$KEY" sh -c 'exit 75'
	expect 75
	redlock run -n -E 0 -S "$NOWHERE" "$KEY" true
	expect 69 '' 'redlock: .*'
}

@test "-w waits no longer than that" {
	hold
	redlock run -w 80ms "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock run -w 0 "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	[[ ! -e $TMP/ran && $(rcli 0 GET "$KEY") == somebody ]]
}

@test "who waits gets KEY once it is free" {
	local option
	for option in '' -w40 --poll --poll=10ms --tries=100000; do
		hold
		# shellcheck disable=SC2086 # none or one
		spawn waiter "$REDLOCK" run -v $option "$KEY" echo ran
		wait_until 'is_waiting waiter'
		[[ ! -s $TMP/waiter.out ]]
		unhold
		finish waiter
		[[ $status == 0 && $output == ran ]]
	done
	key_free 0
}

@test "--tries N gives up after N attempts" {
	servers_start 1
	hold
	scripts_known
	redlock run --poll=1ms --tries 7 "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	[[ ! -e $TMP/ran ]]
	[[ $(scripts_run 0) == 7 ]]
	redlock run --tries 1 "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by .*"
	[[ $(scripts_run 0) == 8 ]]
}

@test "--poll=DURATION pauses as long as it says between two attempts" {
	servers_start 1
	hold
	scripts_known
	redlock run --poll=100ms -w 450ms "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	local calls
	calls=$(scripts_run 0)
	echo "$calls attempts" >&2
	# at 0, 100, 200, 300, 400 and, for the last time, 450 ms
	((calls >= 2 && calls <= 6))
}

@test "-v tells each step with its time, -q only errors" {
	redlock run -v "$KEY" true
	[[ $status == 0 && $output == '' ]]
	local line count=0
	while read -r line; do
		[[ $line =~ ^redlock:\ [0-9]+\.[0-9]{3}s:\ . ]]
		((++count))
	done <<<"$stderr"
	((count >= 3))
	[[ $stderr == *"$SERVERS/0"*granted*started*\'true\'*released* ]]
	redlock run -q "$KEY" true
	expect 0
	redlock run -q "$KEY" redlock-no-such-command
	expect 127 '' "redlock: $KEY: .*"
	redlock run "$KEY" true
	expect 0
}

@test "a lease far longer than COMMAND keeps nobody waiting" {
	redlock run -t 1d "$KEY" true
	expect 0
	key_free 0
	redlock run -n "$KEY" true
	expect 0
}

# ---------------------------------------------------------------- --status-fd

# status_is OUTCOME EXIT SIGNAL HAS_TOKEN: what the line in $TMP/status says.
status_is() {
	local got
	got=$(json '[.outcome, .child_exit, .child_signal, (.token != null and .fence != null), .key, (keys | length)]' "$TMP/status")
	[[ $got == "[\"$1\",$2,$3,$4,\"$KEY\",10]" ]] || {
		echo "$got: $(<"$TMP/status")" >&2
		return 1
	}
	[[ $(json '[.waited_ms, .held_ms, .renewals] | map(type == "number" and . >= 0) | all' "$TMP/status") == true ]]
}

@test "--status-fd: done" {
	redlock run --status-fd 9 "$KEY" sh -c 'echo $REDLOCK_TOKEN $REDLOCK_FENCE; exit 3' 9>"$TMP/status"
	expect 3 '.+'
	status_is "done" 3 null true
	[[ $(jq -r '"\(.token) \(.fence)"' "$TMP/status") == "$output" ]]
	redlock run --status-fd 9 "$KEY" sh -c 'kill -KILL $$' 9>"$TMP/status"
	expect 137
	status_is "done" null 9 true
}

@test "--status-fd may be standard output or standard error" {
	redlock run --status-fd 1 "$KEY" true
	[[ $status == 0 && $stderr == '' ]]
	echo "$output" >"$TMP/status"
	status_is "done" 0 null true
	redlock run --status-fd 2 "$KEY" true
	[[ $status == 0 && $output == '' ]]
	echo "$stderr" >"$TMP/status"
	status_is "done" 0 null true
}

@test "--status-fd: a signal ends a run whose line nobody reads; the exit status is COMMAND's" {
	mkfifo "$TMP/pipe"
	exec 9<>"$TMP/pipe"
	run ! dd if=/dev/zero of="$TMP/pipe" oflag=nonblock bs=1k # until it is full
	spawn run sh -c 'exec "$@" >"$0" 9>&-' "$TMP/pipe" "$REDLOCK" run --status-fd 1 "$KEY" sh -c 'touch "$0"; exit 3' "$TMP/ran"
	wait_until '[[ -e $TMP/ran && $(rcli 0 EXISTS "$KEY") == 0 ]]'
	kill -TERM "$(pid run)"
	finish run 10
	expect 3 '' "redlock: $KEY: --status-fd: nobody has read it"
	# one that was COMMAND's as well is enough
	spawn run sh -c 'exec "$@" >"$0" 9>&-' "$TMP/pipe" "$REDLOCK" run --status-fd 1 "$KEY" sh -c 'touch "$0"; exec sleep 300' "$TMP/runs"
	wait_until '[[ -e $TMP/runs ]]'
	kill -TERM "$(pid run)"
	finish run 10
	expect 143 '' "redlock: $KEY: --status-fd: nobody has read it"
	rcli 0 SET "$KEY" other >/dev/null
	spawn run sh -c 'exec "$@" >"$0" 9>&-' "$TMP/pipe" "$REDLOCK" run --status-fd 1 "$KEY" true
	wait_until '(($(rcli 0 ZCARD "{$KEY}:redlock:queue") == 1))'
	kill -TERM "$(pid run)"
	finish run 10
	expect 143
	exec 9>&-
}

@test "--status-fd: busy, with the time that was waited" {
	hold
	redlock run --status-fd 9 -n "$KEY" true 9>"$TMP/status"
	expect 75 '' '.*'
	status_is busy null null false
	redlock run --status-fd 9 -w 120ms -E 0 "$KEY" true 9>"$TMP/status"
	expect 0
	status_is busy null null false
	[[ $(json '.waited_ms >= 100' "$TMP/status") == true ]]
	redlock run --status-fd 9 -n -E 127 "$KEY" true 9>"$TMP/status"
	expect 127 '' '.*'
	status_is busy null null false
}

@test "--status-fd: unreachable" {
	redlock run --status-fd 9 -S "$NOWHERE" "$KEY" true 9>"$TMP/status"
	expect 69 '' '.*'
	status_is unreachable null null false
}

@test "--status-fd: refused" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	redlock run --status-fd 9 "$KEY" true 9>"$TMP/status"
	expect 77 '' '.*'
	status_is refused null null false
}

@test "--status-fd: lost" {
	redlock run --status-fd 9 -t 3s -k 200ms --server-timeout 500ms "$KEY" sh -c "redis-cli -s $SERVERS/0/redis.sock SET $KEY thief XX; exec sleep 60" 9>"$TMP/status"
	expect 76 OK "redlock: $KEY: lock lost: .*"
	status_is lost null 15 true
	[[ $(rcli 0 GET "$KEY") == thief ]]
}

@test "--status-fd: interrupted" {
	hold
	spawn waiter bash -c 'exec 9>"$1"; shift; exec "$@"' - "$TMP/status" \
		"$REDLOCK" run -v --status-fd 9 "$KEY" true
	wait_until 'is_waiting waiter'
	kill -TERM "$(pid waiter)"
	finish waiter
	[[ $status == 143 ]]
	status_is interrupted null null false
}

@test "a mistake that nobody reads, and then a signal: --status-fd has its line, and eval fails" {
	local options
	mkfifo "$TMP/full"
	exec 7<>"$TMP/full"
	dd if=/dev/zero bs=1M count=1 oflag=nonblock >&7 2>/dev/null || :
	for options in 'run --status-fd 1' 'acquire --format shell'; do
		# shellcheck disable=SC2086 # words
		spawn redlock sh -c 'exec "$@" 2>"$0"' "$TMP/full" "$REDLOCK" $options -S bogus:// "$KEY" true
		wait_until '((0x$(sed -n "s/^SigCgt:.//p" "/proc/$(pid redlock)/status") & 1 << 14))' # a handler of SIGTERM
		kill -TERM "$(pid redlock)"
		finish redlock
		case $options in
		run*) expect 143 '\{"outcome":"interrupted",.*\}' ;;
		*) expect 143 '\(exit 143\)' ;;
		esac
	done
}

@test "--status-fd: interrupted, before any server was asked" {
	local signal
	mkfifo "$TMP/password"
	export REDLOCK_PASSWORD_FILE=$TMP/password
	for signal in TERM INT HUP QUIT; do
		# one that is ignored stays so
		spawn run sh -c 'trap "" USR1; exec "$@" 9>"$0"' "$TMP/status" "$REDLOCK" run --status-fd 9 "$KEY" true
		wait_until '[[ $(readlink "/proc/$(pid run)/fd/"*) == *"$TMP/password"* ]]'
		kill -USR1 "$(pid run)"
		kill "-$signal" "$(pid run)"
		finish run
		expect $((128 + $(kill -l "$signal")))
		[[ $(wc -l <"$TMP/status") == 1 ]]
		status_is interrupted null null false
	done
}

@test "--status-fd: not-started" {
	redlock run --status-fd 9 "$KEY" redlock-no-such-command 9>"$TMP/status"
	expect 127 '' '.*'
	[[ $(json '[.outcome, .child_exit, .child_signal]' "$TMP/status") == '["not-started",null,null]' ]]
	redlock run --status-fd 9 "$KEY" "$TMP" 9>"$TMP/status"
	expect 126 '' '.*'
	[[ $(json '[.outcome, .child_exit, .child_signal]' "$TMP/status") == '["not-started",null,null]' ]]
	# which COMMAND's own 127 is not
	redlock run --status-fd 9 "$KEY" sh -c 'exit 127' 9>"$TMP/status"
	expect 127
	status_is "done" 127 null true
}

@test "--status-fd: misused" {
	rcli 0 SET "$(record)" 'no hash'
	redlock run --status-fd 9 "$KEY" touch "$TMP/ran" 9>"$TMP/status"
	expect 65 '' "redlock: $KEY: .*"
	status_is misused null null false
	[[ ! -e $TMP/ran && $(rcli 0 GET "$(record)") == 'no hash' ]]
	key_free 0
}

@test "--status-fd: error, also where an option or a setting is wrong" {
	local row
	for row in "78 --config $TMP/none" "64 -t 100ms" "64 -S foo" "78 --set none" \
		"78 --cert $TMP/none --key-file $TMP/none -S rediss://127.0.0.1:1"; do
		# shellcheck disable=SC2086 # words
		redlock run --status-fd 9 ${row#* } "$KEY" touch "$TMP/ran" 9>"$TMP/status"
		expect "${row%% *}" '' 'redlock: .*'
		status_is error null null false
	done
	REDLOCK_TTL=x redlock run --status-fd 9 "$KEY" touch "$TMP/ran" 9>"$TMP/status"
	expect 78 '' 'redlock: REDLOCK_TTL .*'
	status_is error null null false
	redlock run --status-fd 9 -n "$KEY" 9>"$TMP/status"
	expect 64 '' 'redlock: run: COMMAND is missing.*'
	status_is error null null false
	redlock run --status-fd 9 --nonsense "$KEY" touch "$TMP/ran" 9>"$TMP/status"
	expect 64 '' 'redlock: run: unknown option.*'
	[[ $(json '[.outcome, .child_exit, .key, .token, (keys | length)]' "$TMP/status") == '["error",null,null,null,10]' ]]
	redlock run --status-fd 9 --also "$KEY" "$KEY" touch "$TMP/ran" 9>"$TMP/status"
	expect 64 '' 'redlock: run: KEY .* is named twice.*'
	[[ $(json '[.outcome, .key, .fences, (keys | length)]' "$TMP/status") == "[\"error\",\"$KEY\",null,11]" ]]
	[[ ! -e $TMP/ran ]]
	redlock run --status-fd 9 --nonsense "$KEY" true 9>/dev/full
	expect 64 '' $'redlock: run: unknown option.*\nredlock: run: --status-fd: No space left on device'
}

@test "--status-fd: a KEY of any bytes still makes valid JSON" {
	redlock run --status-fd 9 $'"\\\n\x01\xff'"$KEY" true 9>"$TMP/status"
	expect 0
	[[ $(json .key "$TMP/status") == "$(printf '"\\"\\\\\\n\\u0001\xef\xbf\xbd%s"' "$KEY")" ]]
}

@test "--status-fd: a descriptor that takes nothing does not change COMMAND's status" {
	redlock run --status-fd 9 "$KEY" sh -c 'exit 3' 9>/dev/full
	expect 3 '' "redlock: $KEY: .*No space left on device"
	key_free 0
}
