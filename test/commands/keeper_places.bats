#!/usr/bin/env bats
# acquire --pid, wherever the process lives: under cron, behind ssh, at a terminal, in a container, in a
# unit's control group.
# bats file_tags=long

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for inner shells; tests are subshells; helpers set and use them

load ../lib/helper
load ../lib/cli
load ../lib/script

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$$-$BATS_SUITE_TEST_NUMBER # keepers of other runs are none of ours
	TMP=$BATS_TEST_TMPDIR
	GROUP=
	unset REDLOCK_TOKEN
	PATH=$PATH:/usr/sbin
}

teardown() {
	[[ ${BATS_TEST_COMPLETED:-} ]] || show_spawned
	stop_everything "$BATS_TEST_TMPDIR"
	[[ ! $GROUP ]] || group_remove
}

# cron_start LINE...: Debian's cron with these as the crontab of root, and with none of the system's. What
# is to run @reboot runs now.
cron_start() {
	((EUID == 0)) || skip "cron needs root"
	command -v cron >/dev/null || skip "needs Debian's cron"
	"${MOUNTS[@]}" true || skip "no mounts can be made here"
	mkdir "$TMP/crontabs"
	printf '%s\n' "TMP=$TMP" "KEY=$KEY" "REDLOCK=$REDLOCK" "REDLOCK_SERVERS=$REDLOCK_SERVERS" \
		"XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR" "$@" >"$TMP/crontabs/root"
	chmod 600 "$TMP/crontabs/root"
	chmod 1730 "$TMP/crontabs"
	spawn cron "${MOUNTS[@]}" sh -c '
		mount --bind "$1" /var/spool/cron/crontabs && mount -t tmpfs none /run || exit
		[ ! -e /etc/crontab ] || mount --bind /dev/null /etc/crontab || exit
		[ ! -d /etc/cron.d ] || mount -t tmpfs none /etc/cron.d || exit
		exec cron -f' - "$TMP/crontabs"
}

# cron's /bin/sh -c leads the group, and not every sh makes itself the script
@test "cron: a script after exec leads its group, so --on-lost kill-group stops all of it" {
	script_text >"$TMP/job.sh" <<-'end'
		"$REDLOCK" acquire --pid $$ -t 6s --on-lost kill-group "$KEY" >/dev/null || exit
		sleep 300 &
		said "$! $$"
		wait
	end
	cron_start "@reboot exec sh $TMP/job.sh"
	wait_until '[[ -s $TMP/said ]]'
	local child job
	read -r child job <"$TMP/said"
	is_held
	[[ $(ps -o args= "$(keepers)") == "redlock-keeper $KEY for $job" ]]
	rcli 0 SET "$KEY" another >/dev/null
	wait_until '! is_alive "$job"'
	wait_until '! is_alive "$child"'
	kill "$(pid cron)"
}

@test "cron: a job ends for cron while a keeper that it has made lives on, and ends with its process" {
	spawn other sleep 300
	script_text >"$TMP/job.sh" <<-'end'
		"$REDLOCK" acquire --pid "$1" -t 6s "$KEY" || exit
		said here
	end
	cron_start "@reboot sh $TMP/job.sh $(pid other)"
	wait_until 'has_said here'
	# cron reads what a job prints to its end, and waits for it, by a process for each
	wait_until '[[ ! $(child_named "$(pid cron)" cron) ]]'
	is_held
	[[ $(keepers) ]]
	kill "$(pid other)"
	wait_until '! is_held'
	kill "$(pid cron)"
}

# sshd_prepare: `remote COMMAND` runs it by ssh and by an sshd of its own for each connection, without a port.
sshd_prepare() {
	local sshd
	{ sshd=$(type -P sshd) && command -v ssh >/dev/null; } || skip "needs ssh and sshd"
	id -un >/dev/null || skip "sshd knows no user without a name"
	ssh-keygen -q -t ed25519 -N '' -f "$TMP/host"
	ssh-keygen -q -t ed25519 -N '' -f "$TMP/user"
	cat >"$TMP/sshd_config" <<-end
		HostKey $TMP/host
		AuthorizedKeysFile $TMP/user.pub
		StrictModes no
		UsePAM no
		PermitRootLogin yes
		SetEnv TMP=$TMP KEY=$KEY REDLOCK=$REDLOCK REDLOCK_SERVERS=$REDLOCK_SERVERS XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR
	end
	echo "exec $sshd -i -f $TMP/sshd_config" >"$TMP/sshd.sh"
	SSHD="sh $TMP/sshd.sh"
	if ((EUID == 0)); then # its empty directory
		"${MOUNTS[@]}" true || skip "no mounts can be made here"
		sed -i '1i mount -t tmpfs none /run && mkdir -m 755 /run/sshd || exit' "$TMP/sshd.sh"
		SSHD="${MOUNTS[*]} $SSHD"
	fi
	REMOTE=(ssh -F /dev/null -i "$TMP/user" -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR
		-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o "ProxyCommand=$SSHD" host)
	remote true || skip "sshd does not let us in here: $stderr" # an account may be locked
}

remote() {
	run --separate-stderr timeout -k 1 60 "${REMOTE[@]}" "$@"
	return "$status"
}

@test "ssh: acquire --pid does not hold the connection open, and another one releases the lock" {
	sshd_prepare
	spawn job sleep 300
	remote "\$REDLOCK acquire --pid $(pid job) -t 6s \$KEY"
	[[ $output == "$(rcli 0 GET "$KEY")" ]]
	[[ $(ps -o args= "$(keepers)") == "redlock-keeper $KEY for $(pid job)" ]]
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 6500))'
	is_held
	remote "\$REDLOCK release -v \$KEY $output"
	[[ $stderr == *'given back by its keeper'* ]]
	run ! is_held
	is_running job
}

@test "ssh: a script without a terminal lives on when the connection is over, and so does its keeper" {
	sshd_prepare
	script_text >"$TMP/job.sh" <<-'end'
		"$REDLOCK" acquire --pid $$ -t 6s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	remote "sh \$TMP/job.sh </dev/null >\$TMP/job.out 2>&1 &"
	wait_until 'has_said here'
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 6500))'
	is_held
	step 1
	wait_until '! is_held'
	[[ ! -s $TMP/job.out ]]
}

@test "ssh: a terminal whose connection breaks ends the script, and that the lock" {
	sshd_prepare
	script_text >"$TMP/job.sh" <<-'end'
		"$REDLOCK" acquire --pid $$ -t 1h "$KEY" >/dev/null || exit
		said here
		step 1
	end
	spawn ssh "${REMOTE[@]:0:${#REMOTE[@]}-1}" -tt host 'sh $TMP/job.sh'
	wait_until 'has_said here'
	is_held
	kill -9 "$(pid ssh)"
	wait_until '! is_held'
	wait_until '[[ ! $(keepers) ]]'
}

@test "a terminal: ^C and ^Z in an interactive shell leave the keeper alone, and exit releases the lock" {
	at_terminal <<-STEPS
		see ready> $
		type $REDLOCK acquire --pid \$\$ -t 6s $KEY
		see [0-9a-f]+\r\n(.|\n)*ready> $
		type sleep 300
		run pgrep -fx 'sleep 300' -s \$(ps -o sid= -p \$(ps -o args= -p \$(pgrep -f '^redlock-keeper $KEY ') | sed 's/.* //'))
		key ^C
		see ready> $
		type sleep 7
		see ready> $
		type $REDLOCK status -q $KEY && echo it is st''ill held
		see still held(.|\n)*ready> $
		type exit 3
	STEPS
	[[ $status == 3 ]]
	wait_until '! is_held'
	wait_until '[[ ! $(keepers) ]]'
}

# container NAME: a script as the first process of a container.
container() {
	local container=(unshare --pid --fork --mount-proc --kill-child)
	((EUID == 0)) || container+=(--map-current-user --keep-caps)
	"${container[@]}" true || skip "no pid namespace can be made here"
	script "$1" "${container[*]} sh"
}

@test "a container: its first process is refused, as nothing in there could stop it; run works there" {
	container job <<-'end'
		"$REDLOCK" acquire --pid $$ "$KEY"
		said "$$: status $?"
		exec "$REDLOCK" run -t 6s "$KEY" sh -c 'echo "under $PPID" >>"$TMP/said"; sleep 300'
	end
	wait_until 'has_said "under 1"'
	has_said '1: status 64'
	rcli 0 SET "$KEY" another >/dev/null
	finish job
	[[ $status == 76 && $stderr == "redlock: --pid 1: the first process of a container"*' cannot be stopped from within: '* ]]
}

@test "a container: with --on-lost warn its first process has a keeper, which is killed as it ends" {
	container job <<-'end'
		"$REDLOCK" acquire --pid $$ --on-lost warn -t 6s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 6500))'
	is_held
	rcli 0 PEXPIRE "$KEY" 600000 >/dev/null
	step 1
	finish job
	expect 0
	is_held # until its lease ends: so the script is to release it
	[[ ! $(keepers) ]]
	rcli 0 DEL "$KEY" "$(record)" >/dev/null
	rm "$TMP"/{said,step1}
	container job <<-'end'
		token=$("$REDLOCK" acquire --pid $$ --on-lost warn -t 1h "$KEY") || exit
		trap '"$REDLOCK" release "$KEY" "$token"' EXIT
		exit 5
	end
	finish job
	[[ $status == 5 ]]
	run ! is_held
}

@test "a container: a script that is not its first process is stopped by its keeper" {
	container job <<-'end'
		(
			"$REDLOCK" acquire --pid "$(exec sh -c 'echo $PPID')" -t 6s "$KEY" >/dev/null || exit
			said here
			step 1
		)
		said "status $?"
	end
	wait_until 'has_said here'
	rcli 0 SET "$KEY" another >/dev/null
	finish job
	has_said 'status 143'
}

# bats test_tags=kernel
@test "a container with the /proc of another: acquire --pid says that it does not show the process" {
	[[ $(id -u) == 0 ]] || skip "a pid namespace needs root"
	unshare --pid --fork true || skip "no pid namespace can be made here"
	# which on a machine are init, a thread of the kernel's and, mostly, nobody
	spawn job unshare --pid --fork --kill-child sh -c 'sleep 300 &
		for pid in 1 $! 32000; do
			"$1" acquire --on-lost warn --pid "$pid" "$2"
			echo "$?"
		done' - "$REDLOCK" "$KEY"
	finish job
	expect 0 $'64\n64\n64' "redlock: --pid 1: /proc does not show it
redlock: --pid 2: /proc does not show it
redlock: --pid 32000: there is no such process"
	run ! is_held
}

# keeper_notes NAMESPACE: of KEY's keeper in there, by the number of this pid namespace, which may have been that
# of another one whose keepers have left theirs.
keeper_notes() {
	local note
	note=$(grep -lxF -- "$KEY" "$XDG_RUNTIME_DIR/redlock/keeper-$1-"*) &&
		ls -d "$note" "${note/keeper-/servers-}"
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native,kernel
@test "a container with the /proc of another: release says that it does not show the keeper, and leaves its notes" {
	[[ $(id -u) == 0 ]] || skip "a pid namespace needs root"
	unshare --pid --fork --mount-proc true || skip "no pid namespace can be made here"
	local before inside namespace
	script_text >"$TMP/job.sh" <<-'end'
		token=$("$REDLOCK" acquire --pid $$ -t 1h "$KEY") || exit
		said "$token"
		step 1
	end
	# not the first process, which is refused
	spawn job unshare --pid --fork --mount-proc --kill-child sh -c 'sh "$1"; exit' - "$TMP/job.sh"
	# its first renewal would find that KEY is gone
	wait_until '[[ -s $TMP/said && $(rcli 0 HGET "$(record)" "holder:$(<"$TMP/said")") == *keeper=* ]]'
	inside=$(pgrep -P "$(pid job)")
	namespace=$(stat -Lc %i "/proc/$inside/ns/pid")
	before=$(keeper_notes "$namespace")
	[[ $before == */keeper-*/servers-* ]]
	# LeakSanitizer would look for it in /proc, which shows other processes
	ASAN_OPTIONS=detect_leaks=0 run --separate-stderr nsenter --target "$inside" --pid "$REDLOCK" release "$KEY" "$(<"$TMP/said")"
	expect 0 '' "redlock: $KEY: its keeper, if it has one, could not be looked for: /proc does not show pid [0-9]+"
	[[ $(keeper_notes "$namespace") == "$before" ]]
	run ! is_held
	step 1
	finish job
}

@test "release says that it cannot look for a keeper where the directory of its note cannot be used" {
	local -x XDG_RUNTIME_DIR=$TMP/runtime
	local token
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	token=$("$REDLOCK" acquire "$KEY")
	redlock release "$KEY" "$token"
	expect 0
	token=$("$REDLOCK" acquire "$KEY")
	chmod 755 "$XDG_RUNTIME_DIR/redlock"
	redlock release "$KEY" "$token"
	expect 0 '' "redlock: $KEY: its keeper, if it has one, could not be looked for: $XDG_RUNTIME_DIR/redlock can be entered by others .*"
	run ! is_held
	# where it cannot be made there is none
	rmdir "$XDG_RUNTIME_DIR/redlock"
	[[ $(id -u) != 0 ]] || return 0
	token=$("$REDLOCK" acquire "$KEY")
	chmod 500 "$XDG_RUNTIME_DIR"
	redlock release "$KEY" "$token"
	expect 0
}

@test "a keeper's notes do not grow old: what cleans a directory up leaves them" {
	local -x XDG_RUNTIME_DIR=$TMP/runtime
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	sleep 600 3>&- 4>&- &
	"$REDLOCK" acquire --pid $! -t 1s --server-timeout 200ms "$KEY"
	[[ $(find "$XDG_RUNTIME_DIR/redlock" -type f | wc -l) == 2 ]]
	find "$XDG_RUNTIME_DIR/redlock" -type f -exec touch -d '9 days ago' '{}' +
	wait_until '[[ ! $(find "$XDG_RUNTIME_DIR/redlock" -type f -mtime +1) ]]'
	kill $!
	wait_until '! is_held'
}

# group_make: $GROUP is a control group of its own, as a unit has.
group_make() {
	local root
	((EUID == 0)) || skip "a control group needs root"
	root=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
	{ [[ $root ]] && mkdir "$root/redlock-test-$$"; } || skip "no control group can be made here"
	export GROUP=$root/redlock-test-$$
}

group_remove() {
	local pid
	for pid in $(<"$GROUP/cgroup.procs"); do kill -9 "$pid" || :; done
	wait_until '[[ ! $(<"$GROUP/cgroup.procs") ]]'
	rmdir "$GROUP"
}

@test "a unit: what ends all of its control group ends the keeper, and with SIGTERM the lock" {
	local signal pid
	group_make
	for signal in TERM KILL; do
		script job <<-'end'
			echo $$ >"$GROUP/cgroup.procs" || exit
			"$REDLOCK" acquire --pid $$ -t 1h "$KEY" >/dev/null || exit
			said here
			step 1
		end
		wait_until 'has_said here'
		grep -qx "$(keepers)" "$GROUP/cgroup.procs"
		grep -qx "$(pid job)" "$GROUP/cgroup.procs"
		for pid in $(<"$GROUP/cgroup.procs"); do kill -"$signal" "$pid" || :; done # it may have ended
		finish job
		wait_until '[[ ! $(<"$GROUP/cgroup.procs") ]]'
		[[ $signal == KILL ]] || run ! is_held
		rcli 0 DEL "$KEY" "$(record)" >/dev/null # held until its lease ends, if its keeper was killed first
		rm "$TMP/said"
	done
}
