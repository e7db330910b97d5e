# shellcheck shell=bash
# What the tests share: redis-servers of their own, faults, processes, checks.
#
#	load ../lib/helper
#	setup_file() { servers_start 5; }	# once, for every test of the file
#	@test "..." { servers_start 3; ... }	# a set of the test's own
#
# Call functions that start something in the test's (or setup_file's) own
# shell, never under `run` or in $(...): what they start dies with its parent.
# Everything is stopped and removed by teardown and teardown_file below.
#
# Tags of tests: `native` cannot run, or proves nothing, under valgrind or another machine's processor;
# `kernel` needs more of the system than qemu-user has.
# Of files: `long` ones are started first.
#
# For each test: $KEY is a key name of its own, $TMP a directory of its own.

bats_require_minimum_version 1.5.0

# Before each command, in every function, bats looks at the whole stack, which takes longer than most
# commands. The line of the test itself is enough to say where it failed. And it starts date(1) for each test.
if [[ ${BATS_TEST_NAME-} ]]; then
	tracing=$(declare -f bats_setup_tracing)
	eval "${tracing%\}}"'
		set +T
		declare -ft "$BATS_TEST_NAME"
		BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
		# in one line, as lines count here, too; line 1 is that of traps
		trap "((LINENO == 1)) || BATS_DEBUG_LAST_STACK_TRACE=(\"\$LINENO \$BATS_TEST_NAME \$BATS_TEST_SOURCE\")" DEBUG
	}'
	# shellcheck disable=SC2034 # bats reads it
	bats_error_trap() { bats_check_status_from_trap; }
	get_mills_since_epoch() { echo $((${EPOCHREALTIME//[!0-9]/} / 1000)); }
fi

# This is read for each test: it starts nothing.
ROOT=${BASH_SOURCE[0]%/test/*}
if [[ -L $ROOT/test/lib ]]; then # beside a part of a file (scripts/run-tests)
	cd -P "$ROOT/test/lib" || return
	ROOT=${PWD%/test/lib}
	cd "$OLDPWD" || return
fi
REDLOCK=${REDLOCK:-$ROOT/build/redlock}
[[ $REDLOCK == /* ]] || REDLOCK=$PWD/$REDLOCK
TOOLS=${REDLOCK%/*}/test
STAMP=$TOOLS/stamp
enable -f "$TOOLS/ask.so" ask # and $NOW, milliseconds of CLOCK_BOOTTIME
enable -f "$TOOLS/at_most.so" at_most
for program in mkdir mktemp rm; do enable -f "$program" "$program" 2>/dev/null || :; done # if bash has them
export ROOT REDLOCK TOOLS STAMP
# How slow this machine is, from 1 to 5, as run-tests has measured it: times that only have to outlast
# some starts, and about which a test says nothing, are longer by as much. Promises are not.
export SLOW=${SLOW:-1}
PATH=/usr/bin:/bin:$PATH # the system's own python3, not a shim that is a script
VALKEY=$BATS_RUN_TMPDIR/valkey
if ! type -P redis-server >/dev/null; then # Valkey, then, by the names that tests have for it
	PATH=$PATH:$VALKEY
	[[ -d $VALKEY ]] || {
		mkdir "$VALKEY"
		ln -s "$(type -P valkey-server)" "$VALKEY/redis-server"
		ln -s "$(type -P valkey-cli)" "$VALKEY/redis-cli"
	}
fi
unset LANGUAGE
export LC_ALL=C.UTF-8 # where what is not ASCII is shown, wherever this runs
unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_HELD REDLOCK_PASSWORD REDLOCK_PASSWORD_FILE
# nobody's ~/.config/redlock.conf; run-tests sees to that of /etc
unset XDG_CONFIG_HOME
export HOME=$BATS_RUN_TMPDIR
export XDG_RUNTIME_DIR=$BATS_RUN_TMPDIR # what processes remember for each other

# what each test runs of redlock, for `make repeats`
[[ ! ${COVERED-} || ! ${BATS_TEST_NAME-} ]] || export GCOV_PREFIX=$COVERED/${BATS_TEST_FILENAME##*/}/$BATS_TEST_NAME

declare -gA spawned=()

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
}

teardown() {
	[[ ${BATS_TEST_COMPLETED:-} ]] || show_spawned
	stop_everything "$BATS_TEST_TMPDIR"
}

teardown_file() {
	stop_everything "$BATS_FILE_TMPDIR"
}

# page_block PAGE TEXT: the display after a line with TEXT in this page of the manual.
page_block() {
	TEXT=$2 awk '
		/^\.Bd / && found { shown = 1; next }
		/^\.Ed/ && shown { exit }
		shown
		index($0, ENVIRON["TEXT"]) { found = 1 }
	' "$ROOT/man/$1" | sed 's/\\e/\\/g; s/^\\&//'
}

# conf_example SED: the file that redlock.conf(5) shows, in $TMP/redlock.conf, changed by these commands of sed.
conf_example() {
	page_block redlock.conf.5 '.Sh EXAMPLES' | sed "$1" >"$TMP/redlock.conf"
	chmod 600 "$TMP/redlock.conf"
}

# ---------------------------------------------------------------- time

# pause SECONDS: without the start of a process, as tests do it all the time.
NEVER=$BATS_RUN_TMPDIR/never # says anything
[[ -p $NEVER ]] || mkfifo "$NEVER" 2>/dev/null || :
pause() {
	read -rt "$1" <>"$NEVER" || :
}

# wait_until CONDITION [SECONDS]: until the shell text CONDITION is true; fails after SECONDS
# (20, and more where it is slow, unless told).
wait_until() {
	local limit=${2:-$((20 * SLOW))} end
	end=$((NOW + limit * 1000))
	until eval "$1" 2>/dev/null; do
		if ((NOW >= end)); then
			echo "not within $limit s: $1" >&2
			return 1
		fi
		pause 0.05
	done
}

# ---------------------------------------------------------------- processes

# spawn NAME COMMAND...: in the background, in a session of its own (so never in the foreground
# of a terminal), with signals as a login shell has them. Output to $TMP/NAME.out and NAME.err.
spawn() {
	local name=$1
	shift
	if declare -F "$1" >/dev/null; then
		"$@" &
	else
		"$TOOLS/start" -s "$@" &
	fi </dev/null >"$TMP/$name.out" 2>"$TMP/$name.err" 3>&- 4>&-
	spawned[$name]=$!
}

pid() {
	echo "${spawned[$1]}"
}

# is_alive PID: it runs; a zombie that init has not yet reaped does not. One with threads that still
# end has its sockets.
is_alive() {
	local stat threads
	read -r stat 2>/dev/null <"/proc/$1/stat" || return
	[[ $stat == *') '[ZX]' '* ]] || return 0
	threads=("/proc/$1/task"/*)
	((${#threads[@]} > 1))
}

is_running() {
	is_alive "${spawned[$1]}"
}

# finish NAME [SECONDS]: waits for its end; then $status, $output and $stderr are as after `run`.
finish() {
	wait_until "! is_running $1" "${2:-$((40 * SLOW))}" || return
	status=0
	wait "${spawned[$1]}" 2>/dev/null || status=$?
	output=$(<"$TMP/$1.out")
	stderr=$(<"$TMP/$1.err")
	forget_long_waits
	unset "spawned[$1]"
}

# forget_long_waits: $stderr without the lines about a wait of 10 s or more: on a slow machine there are some.
forget_long_waits() {
	[[ $stderr != *', waiting for '* ]] ||
		stderr=$(grep -vE '^redlock: .*, waiting for ([1-9][0-9]+s|[0-9]+[mh].*)$' <<<"$stderr") || :
}

# redlock ARGUMENT...: runs it to its end, bounded; $status, $output, $lines and $stderr are as after
# `run`, which takes 16 ms and has advice about status 127.
redlock() {
	status=0
	at_most $((60 * SLOW)) "$TMP/redlock.out" "$TMP/redlock.err" "$REDLOCK" "$@" || status=$?
	output=$(<"$TMP/redlock.out")
	stderr=$(<"$TMP/redlock.err")
	forget_long_waits
	mapfile -t lines <"$TMP/redlock.out"
}

# expect STATUS [OUTPUT [STDERR]]: how the last command ended. OUTPUT and STDERR are extended
# regular expressions for the whole text, with as many lines as the text.
expect() {
	local wrong=
	[[ $status == "$1" ]] || wrong="status $status instead of $1"
	matches "$output" "${2-}" || wrong+=" output not like '${2-}'"
	matches "$stderr" "${3-}" || wrong+=" stderr not like '${3-}'"
	[[ $wrong ]] || return 0
	printf '%s\nstatus: %s\noutput: %s\nstderr: %s\n' "$wrong" "$status" "$output" "$stderr" >&2
	return 1
}

matches() {
	[[ $1 =~ ^$2$ ]] && have_as_many_lines "$1" "$2"
}

# Where characters have several bytes, this takes bash half a second for 20 KB.
have_as_many_lines() {
	local LC_ALL=C
	local one=${1//[!$'\n']/} other=${2//[!$'\n']/}
	[[ ${#one} == "${#other}" ]]
}

# failing CALL: `failing` is a wrapper that makes it fail so (test/lab/inject/inject.c).
failing() {
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer's runtime has to come first"
	: >"$TMP/report"
	# shellcheck disable=SC2034 # the caller's
	failing=(env LD_PRELOAD="$TOOLS/inject.so" INJECT="$1" INJECT_REPORT="$TMP/report")
}

# stop_process PID: SIGSTOP, and it has stopped.
stop_process() {
	kill -STOP "$1" && wait_until "[[ \$(</proc/$1/stat) == *') T '* ]]"
}

# child_named PID NAME: the process ids of PID's children whose name (comm) is NAME.
child_named() {
	local child
	local children
	read -ra children -d '' < <(cat "/proc/$1"/task/*/children 2>/dev/null) || :
	for child in "${children[@]}"; do
		if [[ $(cat "/proc/$child/comm" 2>/dev/null) == "$2" ]]; then echo "$child"; fi
	done
}

show_spawned() {
	local file
	for file in "$BATS_TEST_TMPDIR"/*.err "$BATS_TEST_TMPDIR"/*.out; do
		[[ -s $file ]] || continue
		echo "--- ${file##*/}"
		if (($(wc -c <"$file") > 1800)); then head -c 600 "$file" && printf "\n[...]\n" && tail -c 1200 "$file"; else cat "$file"; fi
	done
}

# stop_everything DIRECTORY: what was started by the test (or file) whose directory this is.
stop_everything() {
	local pid set
	for pid in "${spawned[@]}"; do
		is_alive "$pid" && { kill -KILL "$pid"; wait "$pid"; } 2>/dev/null
	done
	[[ -f $1/sets ]] || return 0
	while read -r set; do
		set_stop "$set"
	done <"$1/sets"
}

set_stop() {
	local comm file namespace pid
	for file in "$1"/pid "$1"/*/pid; do
		if [[ -f $file ]]; then
			pid=$(<"$file")
			read -r comm 2>/dev/null <"/proc/$pid/comm" || comm=
			case $comm in
			redis-server | python3) kill -KILL "$pid" ;;
			postgres) kill -QUIT "$pid" && wait_until "! is_alive $pid" ;; # it removes its shared memory
			esac
		fi
	done
	if [[ -f $1/namespaces ]]; then
		while read -r namespace; do ip netns del "$namespace"; done <"$1/namespaces"
	fi
	rm -rf "$1"
}

# In front of a command that is to have mounts of its own, as an ordinary user may, too.
MOUNTS=(unshare --mount)
((EUID == 0)) || MOUNTS+=(--map-current-user --keep-caps)

# set_new: a directory $SET with a short name (a socket's path has 107 bytes), removed in the end
# with all that runs in it.
set_new() {
	SET=$(mktemp -d "${TMPDIR:-/tmp}/rl.XXXXXX")
	echo "$SET" >>"${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/sets"
}

# set_serves COMMAND...: runs it in the background, for the set $SET and as long as that.
set_serves() {
	"$TOOLS/start" -k "$@" </dev/null >"$SET/out" 2>&1 3>&- 4>&- &
	echo $! >"$SET/pid"
	disown $!
}

# ---------------------------------------------------------------- servers
#
# A set of servers is the directory $SERVERS, where server i (from 0) lives in $SERVERS/i with its
# socket `redis.sock`, `pid`, `args`, `url` and `log`. Starting a set makes it the current one and
# exports REDLOCK_SERVERS with all its URLs. Servers always have a Unix socket, whatever their URL
# is: `rcli` reaches them through every fault but SIGSTOP.

# servers_start N [OPTION...]: N of them on Unix sockets, with redis-server OPTIONs; ready.
servers_start() {
	servers_new unix "$@"
}

# servers_start_tcp N [OPTION...]: the same on ports of 127.0.0.1.
servers_start_tcp() {
	servers_new tcp "$@"
}

servers_new() {
	local kind=$1 count=$2 i
	shift 2
	set_new
	export SERVERS=$SET SERVER_COUNT=$count
	for ((i = 0; i < count; i++)); do
		mkdir "$SERVERS/$i"
		printf '%s\n' "$@" >"$SERVERS/$i/args"
		echo "$kind" >"$SERVERS/$i/kind"
		server_launch "$i"
	done
	for ((i = 0; i < count; i++)); do server_ready "$i" || return; done
	# shellcheck disable=SC2119
	REDLOCK_SERVERS=$(server_urls)
	export REDLOCK_SERVERS
}

# server_launch I: starts it with the data it has, on a new port unless it had one; not ready yet.
server_launch() {
	local home=$SERVERS/$1 kind prefix=() args
	mapfile -t args <"$home/args"
	[[ ${args[*]} ]] || args=()
	read -r kind <"$home/kind"
	case $kind in
	unix)
		args+=(--port 0)
		echo "unix://$home/redis.sock" >"$home/url"
		;;
	tcp)
		[[ -f $home/port ]] || echo $((10000 + RANDOM % 20000)) >"$home/port"
		args+=(--port "$(<"$home/port")" --bind 127.0.0.1)
		echo "redis://127.0.0.1:$(<"$home/port")" >"$home/url"
		;;
	127.*) # an address of its own
		args+=(--port 6379 --bind "$kind")
		echo "redis://$kind:6379" >"$home/url"
		;;
	*) # the name of a network namespace
		prefix=(ip netns exec "$kind")
		args+=(--port 6379 --protected-mode no)
		echo "redis://10.9.$1.2:6379" >"$home/url"
		;;
	esac
	"${prefix[@]}" "$TOOLS/start" -k redis-server --save '' --appendonly no --dir "$home" \
		--unixsocket "$home/redis.sock" "${args[@]}" </dev/null >>"$home/log" 2>&1 3>&- 4>&- &
	echo $! >"$home/pid"
	disown $!
}

# server_ready I: it has loaded its data, answers on its address, and is ours. It gets another port where somebody
# else has this one.
server_ready() {
	local home=$SERVERS/$1
	while [[ $(<"$home/kind") == tcp ]]; do
		wait_until "! is_alive $(<"$home/pid") || answers $1 $(<"$home/port")" || return
		is_alive "$(<"$home/pid")" && break
		rm "$home/port"
		server_launch "$1"
	done
	wait_until "reply $1 PING && [[ \$REPLY != LOADING* ]] && reply $1 INFO server && is_ours $1"
}

answers() {
	REPLY=$(timeout $((5 * SLOW)) redis-cli -p "$2" INFO server </dev/null) && is_ours "$1"
}

# is_ours I: what INFO says, $REPLY, is of the process that server I is.
is_ours() {
	local pid
	read -r pid <"$SERVERS/$1/pid"
	[[ $REPLY == *$'\n'"process_id:$pid"$'\r\n'* ]]
}

server_url() {
	echo "$(<"$SERVERS/$1/url")"
}

# server_urls [I...]: with commas; of all servers, or of these.
# shellcheck disable=SC2120
server_urls() {
	local i list=
	(($#)) || eval "set -- {0..$((SERVER_COUNT - 1))}"
	for i; do list+=,$(<"$SERVERS/$i/url"); done
	echo "${list#,}"
}

# rcli I ARGUMENT...: redis-cli on server I; without options what is as good and starts faster.
rcli() {
	local socket=$SERVERS/$1/redis.sock
	shift
	if [[ $1 == -* ]]; then
		timeout $((10 * SLOW)) redis-cli -s "$socket" "$@" </dev/null
	else
		ask "$socket" "$@"
	fi
}

# reply I WORD...: the same, and the answer is $REPLY. No process is started: use it in what is waited for.
reply() {
	ask -v REPLY "$SERVERS/$1/redis.sock" "${@:2}"
}

# scripts_run I: how many scripts it has been asked to run, in full or by their SHA1.
scripts_run() {
	rcli "$1" INFO commandstats | awk -F '[:=,]' '/^cmdstat_eval(sha)?:/ { sum += $3 } END { print sum + 0 }'
}

# scripts_known [I...]: these servers, or all, know the script that takes a lock: the first request that
# comes is executed. Nothing else has changed there, and the statistics begin anew.
scripts_known() {
	local i
	(($#)) || eval "set -- {0..$((SERVER_COUNT - 1))}"
	for i; do
		"$REDLOCK" wait -S "$(server_url "$i")" "$KEY-known" && rcli "$i" CONFIG RESETSTAT >/dev/null || return
	done
}

server_pid() {
	echo "$(<"$SERVERS/$1/pid")"
}

# server_stop I..., server_continue I...: SIGSTOP and SIGCONT.
server_stop() {
	local i
	for i; do stop_process "$(server_pid "$i")" || return; done
}

server_continue() {
	local i pids=()
	for i; do pids+=("$(server_pid "$i")"); done
	kill -CONT "${pids[@]}"
}

# server_kill I...: SIGKILL, and they are gone.
server_kill() {
	local i
	for i; do kill -KILL "$(server_pid "$i")"; done
	for i; do wait_until "! is_alive $(server_pid "$i")" || return; done
}

# server_restart I...: all killed at once, then started again: empty, but for what an append-only
# file keeps.
server_restart() {
	local i
	server_kill "$@" || return
	for i; do server_launch "$i"; done
	for i; do server_ready "$i" || return; done
}

# server_reload I...: all killed at once, then started with what they had at their last SAVE.
server_reload() {
	server_kill "$@"
	for i; do server_launch "$i"; done
	for i; do server_ready "$i"; done
}

# known_for MS I...: these servers have known KEY for MS.
known_for() {
	local i ms=$1
	shift
	for i; do
		reply "$i" HGET "{$KEY}:redlock" began || return
		((${EPOCHREALTIME//[!0-9]/} / 1000 - REPLY > ms)) || return
	done
}

# up_for MS I...: these servers have been up for MS, as they say it.
up_for() {
	local i ms=$1
	shift
	for i; do
		reply "$i" INFO server || return
		[[ $REPLY =~ uptime_in_seconds:([0-9]+) ]]
		(((BASH_REMATCH[1] - 1) * 1000 > ms)) || return
	done
}

# server_drained I: nobody but this redis-cli is connected: everything that was sent by processes
# that are gone has been executed.
server_drained() {
	reply "$1" INFO clients && [[ $REPLY == *connected_clients:1$'\r'* ]]
}

# servers_with ANSWER COMMAND...: how many servers answer the redis-cli COMMAND so.
servers_with() {
	local answer=$1 i count=0
	shift
	for ((i = 0; i < SERVER_COUNT; i++)); do
		reply "$i" "$@" && [[ $REPLY == "$answer" ]] && ((++count))
	done
	echo "$count"
}

# ---------------------------------------------------------------- a network of one's own
#
# Each server in a network namespace of its own, behind a veth pair to the namespace $NET_CLIENT,
# in which `net_run` runs commands.

# net_servers_start N [OPTION...]: skips the test where that can't be had.
net_servers_start() {
	local count=$1 i
	shift
	[[ $(id -u) == 0 ]] || skip "network namespaces need root"
	[[ $(command -v ip) && $(command -v iptables) ]] || skip "needs ip (iproute2) and iptables"
	set_new
	export SERVERS=$SET SERVER_COUNT=$count NET=${SET##*/}
	export NET_CLIENT=$NET-c
	net_namespace "$NET_CLIENT" || skip "network namespaces can't be made here"
	for ((i = 0; i < count; i++)); do
		net_namespace "$NET-$i"
		ip link add "to$i" netns "$NET_CLIENT" type veth peer name up0 netns "$NET-$i"
		ip -n "$NET_CLIENT" addr add "10.9.$i.1/30" dev "to$i"
		ip -n "$NET-$i" addr add "10.9.$i.2/30" dev up0
		ip -n "$NET_CLIENT" link set dev "to$i" up
		ip -n "$NET-$i" link set dev up0 up
		mkdir "$SERVERS/$i"
		printf '%s\n' "$@" >"$SERVERS/$i/args"
		echo "$NET-$i" >"$SERVERS/$i/kind"
		server_launch "$i"
	done
	for ((i = 0; i < count; i++)); do
		server_ready "$i" || return
		wait_until "net_run timeout 5 redis-cli -h 10.9.$i.2 PING" || return
	done
	# shellcheck disable=SC2119
	REDLOCK_SERVERS=$(server_urls)
	export REDLOCK_SERVERS
}

net_namespace() {
	ip netns add "$1" || return
	echo "$1" >>"$SERVERS/namespaces"
	ip -n "$1" link set dev lo up
}

# net_run COMMAND...: where the servers are reached over the network; `net_spawn` as spawn,
# with the process id of COMMAND.
net_run() {
	ip netns exec "$NET_CLIENT" "$@"
}

net_spawn() {
	local name=$1
	shift
	spawn "$name" ip netns exec "$NET_CLIENT" "$@"
}

net_filter() {
	net_run iptables -w "$@"
}

# net_drop both|out|in I...: packets vanish; out: requests, in: replies.
net_drop() {
	local direction=$1 i
	shift
	for i; do
		[[ $direction == in ]] || net_filter -A OUTPUT -d "10.9.$i.2" -j DROP || return
		[[ $direction == out ]] || net_filter -A INPUT -s "10.9.$i.2" -j DROP || return
	done
}

# net_reject I...: every packet to it is answered by a reset.
net_reject() {
	local i
	for i; do
		ip netns exec "$NET-$i" iptables -w -A INPUT -p tcp -j REJECT --reject-with tcp-reset || return
	done
}

# net_unplug I...: the link is down, on the server's side.
net_unplug() {
	local i
	for i; do ip -n "$NET-$i" link set dev up0 down || return; done
}

# net_heal: everything gets through again.
net_heal() {
	local i
	net_filter -F
	for ((i = 0; i < SERVER_COUNT; i++)); do
		ip netns exec "$NET-$i" iptables -w -F
		ip -n "$NET-$i" link set dev up0 up
	done
}

# ---------------------------------------------------------------- a proxy that misbehaves

# proxies_start: one before each server of the set; see tools/proxy.py for the modes.
proxies_start() {
	local i targets=()
	for ((i = 0; i < SERVER_COUNT; i++)); do targets+=("$SERVERS/$i/redis.sock"); done
	set_new
	PROXIES=$SET
	set_serves python3 -IS "$ROOT/test/lib/tools/proxy.py" "$PROXIES" "${targets[@]}"
	wait_until "[[ -e $PROXIES/ready ]]"
}

# proxy I MODE [THEN...]: from the next byte on.
proxy() {
	local mode=$PROXIES/$1.mode
	shift
	printf '%s\n' "$@" >"$mode.new" && mv "$mode.new" "$mode"
}

# proxy_ears I MODE [THEN...]: the same for connections that have subscribed.
proxy_ears() {
	local mode=$PROXIES/$1.ears
	shift
	printf '%s\n' "$@" >"$mode.new" && mv "$mode.new" "$mode"
}

proxy_url() {
	echo "unix://$PROXIES/$1.sock"
}

proxy_tcp_url() {
	echo "redis://127.0.0.1:$(<"$PROXIES/$1.port")"
}

proxy_urls() {
	local i list=
	for ((i = 0; i < SERVER_COUNT; i++)); do list+=,$(proxy_url "$i"); done
	echo "${list#,}"
}

# proxy_did I WHAT [COUNT]: its log says WHAT at least COUNT times (1).
proxy_did() {
	(($(grep -c "^[0-9.]* $2 " "$PROXIES/$1.log") >= ${3:-1}))
}

# ---------------------------------------------------------------- the witness (tools/stamp.c)

# beats DIR: a line "FENCE FIRST LAST PID" for each stamp process, by its first proof of life (in
# microseconds).
beats() {
	"$STAMP" -l "$1"
}

# stamped DIR [COUNT]: at least COUNT (1) stamp processes live or have lived there.
stamped() {
	local lines files=("$1"/beats.*)
	[[ -e ${files[0]} ]] || return
	mapfile -t lines < <(beats "$1")
	((${#lines[@]} >= ${2:-1}))
}

# last_beat DIR: milliseconds of CLOCK_BOOTTIME.
last_beat() {
	beats "$1" | awk '$3 > last { last = $3 } END { printf "%d\n", last / 1000 }'
}

# is_beating DIR: somebody in there is alive, and has run within 2 s, however busy the machine.
is_beating() {
	local before i
	before=$(beats "$1")
	for ((i = 0; i < 40 * SLOW; i++)); do
		pause 0.05
		[[ $(beats "$1") == "$before" ]] || return 0
	done
	return 1
}

# is_still DIR: nobody in there has run for 50 ms.
is_still() {
	local before
	before=$(beats "$1")
	pause 0.05
	[[ $(beats "$1") == "$before" ]]
}

# nobody_lives DIR: all that were in there are dead, and not only without a processor for a while.
nobody_lives() {
	flock -n "$1/witness" true
}

# assert_exclusive DIR COUNT: COUNT holders were there, never two at a time, their fences rising.
assert_exclusive() {
	if [[ -s $1/overlap ]]; then
		echo "overlap: $(<"$1/overlap")" >&2
		return 1
	fi
	beats "$1" | awk -v want="$2" '
		$1 != fence {
			if ($1 <= fence) { print "fence " $1 " after " fence; bad = 1 }
			if ($2 <= last) { print "fence " $1 " began before " fence " ended"; bad = 1 }
			fence = $1; holders++
		}
		$3 > last { last = $3 }
		END {
			if (holders != want) { print holders + 0 " holders instead of " want; bad = 1 }
			exit bad
		}' >&2
}

# peak DIR: how many stamp processes were alive at one time, at most.
peak() {
	beats "$1" | awk '{ print $2, 1; print $3, -1 }' | sort -k 1,1n -k 2,2n |
		awk '{ alive += $2 } alive > most { most = alive } END { print most + 0 }'
}

# ---------------------------------------------------------------- holders that come and go

# takes NAME OPTION...: `redlock run` with these (KEY among them where it is not $KEY) in the
# background. Its command notes "+NAME" in $TMP/order, lives until `ends NAME`, notes "-NAME".
takes() {
	local name=$1
	shift
	spawn "$name" "$REDLOCK" run --quarantine 0 "$@" "$KEY" "$ROOT/test/lib/tools/note" "$TMP" "$name"
}

ends() {
	local name
	for name; do touch "$TMP/end.$name"; done
}

# entered NAME...: their commands have begun.
entered() {
	local name
	for name; do grep -qxF "+$name" "$TMP/order" || return; done
}

# noted: what is in $TMP/order, in one line.
noted() {
	xargs <"$TMP/order"
}

# done_well NAME...: they end with 0 and have nothing to say.
done_well() {
	local name
	for name; do finish "$name" && expect 0 || return; done
}

# ---------------------------------------------------------------- what servers keep

# record [KEY]: the name of KEY's record.
record() {
	echo "{${1-$KEY}}:redlock"
}

# fence_at I [KEY]: the fence in the record.
fence_at() {
	rcli "$1" HGET "$(record "${2-$KEY}")" fence
}

# key_free I..., key_held_by TOKEN I...
key_free() {
	local i
	for i; do reply "$i" EXISTS "$KEY" && [[ $REPLY == 0 ]] || return; done
}

key_held_by() {
	local token=$1 i
	shift
	for i; do reply "$i" GET "$KEY" && [[ $REPLY == "$token" ]] || return; done
}

# ---------------------------------------------------------------- the queue

# take [OPTION...]: $token has KEY, on all servers, for a minute or more; give_back.
take() {
	token=$("$REDLOCK" acquire --quarantine 0 -t "${TAKEN_FOR:-$((60 * SLOW))s}" --server-timeout 9s "$@" "$KEY") || return
	wait_until "[[ \$(servers_with $token GET $KEY) == $SERVER_COUNT ]]"
}

give_back() {
	"$REDLOCK" release --server-timeout 9s "$@" "$KEY" "$token"
}

# wait_turn NAME [OPTION...]: a run that writes its name to $TMP/order and then stamps for 20 ms,
# or until $TMP/NAME.end exists where $TMP/NAME.stay does.
# shellcheck disable=SC2016 # the inner shell's
wait_turn() {
	local name=$1
	shift
	mkdir -p "$TMP/stamps"
	spawn "$name" "$REDLOCK" run --quarantine 0 "$@" "$KEY" sh -c 'echo "$1" >>"$2/order"
		if [ -e "$2/$1.stay" ]; then exec "$STAMP" -u "$2/$1.end" "$2/stamps"; fi
		exec "$STAMP" -d 20 "$2/stamps"' - "$name" "$TMP"
}

# line_up NAME [OPTION...]: wait_turn, and it is in the queue of every server, after LINE others.
LINE=0
line_up() {
	wait_turn "$@"
	wait_until "queued $((++LINE))"
}

# ran NAME...: these have run, in this order, and nobody else.
ran() {
	[[ $(cat "$TMP/order" 2>/dev/null) == "$(printf '%s\n' "$@")" ]]
}

# all_end_well NAME...: with status 0 and not a word.
all_end_well() {
	local name
	for name; do finish "$name" && expect 0 || return; done
}

# all_are_served NAME...: with status 0; they may have told of an outage.
all_are_served() {
	local name
	for name; do
		finish "$name" || return
		stderr=$(grep -v "^redlock: $KEY: still waiting: " <<<"$stderr") || :
		expect 0 || return
	done
}

# queued COUNT [I...]: COUNT waiters are in the queue of these servers, or of all, or only wait there.
# shellcheck disable=SC2120
queued() {
	local count=$1 i in_line
	shift
	(($#)) || eval "set -- {0..$((SERVER_COUNT - 1))}"
	for i; do
		reply "$i" ZCARD "{$KEY}:redlock:queue" && in_line=$REPLY &&
			reply "$i" ZCARD "{$KEY}:redlock:waits" && ((in_line + REPLY == count)) || return
	done
}

# queue_at I: the tokens in its queue.
queue_at() {
	rcli "$1" ZRANGE "$(record):queue" 0 -1
}

# listening COUNT [I...]: COUNT waiters are subscribed for KEY.
listening() {
	local count=$1 i
	shift
	(($#)) || eval "set -- {0..$((SERVER_COUNT - 1))}"
	for i; do
		reply "$i" PUBSUB CHANNELS "{$KEY}:redlock:*" || return
		# shellcheck disable=SC2086 # names without blanks
		set -- $REPLY
		(($# == count)) || return
	done
}

channels() {
	rcli "$1" PUBSUB CHANNELS "$(record):*"
}

# no_trace [I...]: KEY is free there, and nobody waits.
no_trace() {
	local i
	(($#)) || eval "set -- {0..$((SERVER_COUNT - 1))}"
	for i; do
		nothing_left "$i" && reply "$i" PUBSUB CHANNELS "{$KEY}:redlock:*" && [[ ! $REPLY ]] || return
	done
}

# first_beat [N]: of the Nth holder (1), in milliseconds of CLOCK_BOOTTIME.
first_beat() {
	beats "$TMP/stamps" | awk -v n="${1:-1}" 'NR == n { printf "%d\n", $2 / 1000 }'
}

# use COUNT: REDLOCK_SERVERS names the first COUNT servers of the set only.
use() {
	# shellcheck disable=SC2046 # numbers
	REDLOCK_SERVERS=$(server_urls $(seq 0 $(($1 - 1))))
	export REDLOCK_SERVERS
	KEY=key-$BATS_SUITE_TEST_NUMBER-$1 # servers that know it no longer than others have no vote
}

# holders COUNT I...: COUNT are in KEY there, which is a shared lock or one with permits.
holders() {
	local count=$1 i
	shift
	for i; do reply "$i" ZCARD "$KEY" && [[ $REPLY == "$count" ]] || return; done
}

# of_one_age TOKEN: the records of three servers are of nearly one age, 30 s: of 2, then of 0, then of 1. Between the
# last two TOKEN has got KEY, on server 0.
of_one_age() {
	local now text
	now=$(server_ms 0)
	rcli 2 HSET "$(record)" began $((now - 30400))
	rcli 0 HSET "$(record)" began $((now - 30000))
	text=$(rcli 0 HGET "$(record)" "holder:$1")
	rcli 0 HSET "$(record)" "holder:$1" "since=$((now - 29900)) ${text#* }"$'\n'
	rcli 1 HSET "$(record)" began $((now - 29600))
}

# counted COUNT TOKEN I...: so often TOKEN holds KEY there, which is a reentrant lock.
counted() {
	local count=$1 token=$2 i
	shift 2
	for i; do reply "$i" HGET "$KEY" "$token" && [[ $REPLY == "$count" ]] || return; done
}

# clocked COMMAND...: the servers that it starts have a clock of their own, which can be turned.
clocked() {
	CLOCK_FILE=$TMP/clock
	[[ -e $CLOCK_FILE ]] || perl -e 'print pack "q3", 0, 0, 0' >"$CLOCK_FILE"
	CLOCK=$CLOCK_FILE LD_PRELOAD=$TOOLS/clock.so "$@"
}

# turn SECONDS: that clock, from the true time.
turn() {
	perl -e 'open F, "+<", $ARGV[0]; syswrite F, pack "q3", $ARGV[1] * 1e9, 0, 0' "$CLOCK_FILE" "$1"
}

# server_ms I: its clock, in milliseconds since 1970.
server_ms() {
	rcli "$1" TIME | awk '{ t[NR] = $1 } END { printf "%.0f\n", t[1] * 1000 + int(t[2] / 1000) }'
}

# nothing_left I...: neither KEY nor anybody who waits for it.
nothing_left() {
	local i
	for i; do
		reply "$i" EXISTS "$KEY" "{$KEY}:redlock:"{queue,wishes,waits} && [[ $REPLY == 0 ]] || return
	done
}

# renewals COUNT [I]: server I (0) sees COUNT of them from now on.
renewals() {
	local count=$1 last_ttl
	last_ttl=$(rcli "${2:-0}" PTTL "$KEY")
	while ((count-- > 0)); do wait_until "ttl_rose ${2:-0}" || return; done
}

# monitor I: all that it is asked from now on is in $TMP/monitorI.out; requests I: how many of that are
# scripts for KEY.
monitor() {
	spawn "monitor$1" redis-cli -s "$SERVERS/$1/redis.sock" MONITOR
	wait_until "[[ -s \$TMP/monitor$1.out ]]"
}

requests() {
	local mark=$KEY-$EPOCHREALTIME
	rcli "$1" ECHO "$mark" >/dev/null
	wait_until "grep -q '\"ECHO\" \"$mark\"' \"\$TMP/monitor$1.out\"" || return
	grep -ciE "\"EVAL(SHA)?\".*\"$KEY\"" "$TMP/monitor$1.out" || :
}

# ttl_rose I: since the last look.
ttl_rose() {
	local before=$last_ttl
	reply "$1" PTTL "$KEY" || return
	last_ttl=$REPLY
	((last_ttl > before))
}

# median NUMBER...
median() {
	printf '%s\n' "$@" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
}
