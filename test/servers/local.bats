#!/usr/bin/env bats
# local: is this user's own redis-server: started once, trusted only where it may be, never a stand-in.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	unset REDLOCK_SERVERS REDISCLI_AUTH
	set_new
	export XDG_RUNTIME_DIR=$SET
	HOME_DIR=$SET/redlock
	SOCKET=$HOME_DIR/redis.sock
}

teardown() {
	local pid
	# who waits, or holds a lock, would start another
	for pid in "${spawned[@]}"; do kill -KILL "$pid" && wait "$pid"; done 2>/dev/null
	[[ ! -e $HOME_DIR/lock ]] || flock "$HOME_DIR/lock" true
	for pid in $(servers_in "$SET") ${OTHER_HOME:+$(servers_in "$OTHER_HOME")}; do kill -KILL "$pid"; done
	[[ ! ${OTHER_HOME-} ]] || rm -rf "$OTHER_HOME"
	[[ ${BATS_TEST_COMPLETED:-} ]] || show_spawned
	stop_everything "$BATS_TEST_TMPDIR"
}

# servers_in DIRECTORY: the process ids of the servers that live below it.
servers_in() {
	# shellcheck disable=SC2046 # numbers
	pwdx $(pgrep -x "(redis|valkey)-server") 2>/dev/null | sed -nE "s#^([0-9]+): $1(/.*)?\$#\1#p"
}

lcli() {
	timeout 10 redis-cli -s "$SOCKET" "$@" </dev/null
}

# all_at_the_gate: what was spawned are shells that sleep, as they do in opening it.
all_at_the_gate() {
	local i
	for i in "${spawned[@]}"; do
		[[ $(<"/proc/$i/comm") == sh && $(state "$i") == S ]] || return
	done
}

@test "if there are too few descriptors, the message says so, or names a log that is not empty" {
	local n said=0
	for n in {6..16}; do
		run -126 --separate-stderr bash -c 'exec 3>&- 4>&-; ulimit -n "$0"; "$@" || exit 126' "$n" \
			"$REDLOCK" wait -S local: "$KEY"
		case $stderr in
		*'Too many open files') said=$((said + 1)) ;;
		*"ended at once: see $HOME_DIR/redis.log") [[ -s $HOME_DIR/redis.log ]] ;;
		*) false ;;
		esac
	done
	((said > 0))
}

@test "twenty processes that use it first at once start exactly one server" {
	local i
	# all of them wait for somebody who writes into the gate, and are let go together
	mkfifo "$TMP/gate"
	for i in {1..20}; do
		spawn "$i" sh -c ': <"$0"; exec "$@"' "$TMP/gate" "$REDLOCK" acquire -S local: "$KEY-$i"
	done
	wait_until all_at_the_gate
	exec 8>"$TMP/gate"
	for i in {1..20}; do
		finish "$i"
		[[ $status == 0 && $stderr == '' ]]
		echo "$output" >"$TMP/token.$i"
	done
	exec 8>&-
	[[ $(servers_in "$SET" | wc -l) == 1 ]]
	# and all have met there
	for i in {1..20}; do
		[[ $(lcli GET "$KEY-$i") == "$(<"$TMP/token.$i")" ]]
	done
}

@test "it holds a lock like any server: the second comer is told who has it" {
	spawn holder "$REDLOCK" run -S local: --label first "$KEY" sleep 300
	wait_until '[[ $(child_named "$(pid holder)" sleep) ]]'
	redlock run -n -S local: "$KEY" true
	expect 75 '' "redlock: $KEY: held by .* pid $(pid holder) 'first' for .*"
	kill -TERM "$(pid holder)"
	finish holder
	redlock run -n -S local: "$KEY" true
	expect 0
	REDLOCK_SERVERS=local: redlock run -n -v "$KEY" true
	[[ $status == 0 && $stderr == *local:*granted* ]]
}

@test "its server listens on no port, keeps nothing, and is its user's alone" {
	umask 000
	redlock run -S local: "$KEY" true
	expect 0
	[[ $(lcli CONFIG GET port) == $'port\n0' ]]
	[[ $(lcli CONFIG GET save) == $'save\n' || $(lcli CONFIG GET save) == save ]]
	[[ $(lcli CONFIG GET appendonly) == $'appendonly\nno' ]]
	[[ $(stat -c %a "$HOME_DIR") == 700 ]]
	[[ $(stat -c %a "$SOCKET") == @(700|600) ]]
	[[ $(ss -tlnpH 2>/dev/null) != *"pid=$(servers_in "$SET"),"* ]]
}

@test "redlock.conf(5) names each file that is made beside the socket" {
	local file name
	"$REDLOCK" acquire -S local: --pid $$ "$KEY" >/dev/null
	sed -n '/^\.Sh FILES/,/^\.Sh EXAMPLES/s/^\.It Pa //p' "$ROOT/man/redlock.conf.5" | sed 's/ , /\n/g; s#.*/##' >"$TMP/names"
	for file in "$HOME_DIR"/*; do
		while read -r name; do
			# shellcheck disable=SC2053 # a pattern
			[[ ${file##*/} != $name ]] || continue 2
		done <"$TMP/names"
		echo "$file" >&2
		return 1
	done
	[[ -e $HOME_DIR/lock ]]
	"$REDLOCK" release -S local: "$KEY" "$(lcli GET "$KEY")"
}

@test "its server is in a session of its own, with nothing of the caller's open" {
	redlock run -S local: "$KEY" true 9>"$TMP/nine" 200>"$TMP/twohundred"
	expect 0
	local server
	server=$(servers_in "$SET")
	[[ $(ps -o sid=,tty= -p "$server" | tr -s ' ') =~ ^\ *$server\ \?$ ]]
	[[ $(ps -o ppid= -p "$server" | tr -d ' ') != "$$" ]]
	readlink "/proc/$server/fd"/* >"$TMP/fds"
	cat "$TMP/fds"
	run -1 grep -E "nine|twohundred|^pipe:|$BATS_RUN_TMPDIR" <(grep -v 'pipe:' "$TMP/fds")
	# three of them are /dev/null; Redis's own pipes and sockets aside, nothing else
	[[ $(readlink "/proc/$server/fd/0" "/proc/$server/fd/1" "/proc/$server/fd/2" | sort -u) == /dev/null ]]
}

@test "a substitution that started it returns at once, with the token" {
	local token
	token=$(timeout -k 1 20 "$REDLOCK" acquire -S local: "$KEY")
	[[ $token =~ ^[0-9a-f]{32}$ && $(lcli GET "$KEY") == "$token" ]]
	is_alive "$(servers_in "$SET")"
}

@test "it starts with signals as it should have them, whatever the caller has blocked or ignored" {
	run --separate-stderr timeout -k 1 20 env --block-signal --ignore-signal=TERM,CHLD "$REDLOCK" run -S local: "$KEY" true
	expect 0
	local server
	server=$(servers_in "$SET")
	[[ $(grep SigBlk "/proc/$server/status") == *$'\t0000000000000000' ]]
	kill -TERM "$server"
	wait_until "! is_alive $server"
}

# limit NAME PID: "SOFT HARD" of that process, as proc(5) names it.
limit() {
	sed -nE "s/^$1 +([a-z0-9]+) +([a-z0-9]+) .*/\1 \2/p" "/proc/$2/limits"
}

@test "its server has nothing of the soft limits and the priority of who starts it, as far as these may be undone" {
	local server name nice
	# whether a nice value can be undone
	nice=$(nice -n 5 sh -c 'renice -n 0 $$ >/dev/null 2>&1; nice')
	run --separate-stderr nice -n 5 chrt --batch 0 bash -c 'ulimit -S -t 60 -n 48 -v $((1 << 46)) -d $((1 << 46)) -f 100 -s 4096
		exec "$@"' - "$REDLOCK" run -S local: "$KEY" true
	expect 0
	server=$(servers_in "$SET")
	for name in 'cpu time' 'open files' 'address space' 'data size' 'file size' 'stack size'; do
		read -r soft hard < <(limit "Max $name" "$server")
		[[ $soft == "$hard" ]]
	done
	[[ $(limit 'Max core file size' "$server") == "$(limit 'Max core file size' $$)" ]]
	[[ $(ps -o ni=,cls= -p "$server") =~ ^\ *$nice\ +TS$ ]]
}

# limited OPTION ON: redlock under this limit (ulimit) does not start the server, as it is one on ON.
limited() {
	local why="redlock: local:: a limit on $2 (ulimit ${1% *}) could end its server while locks are held there: start it without that limit, as by redlock status -S local: KEY"
	run --separate-stderr bash -c 'ulimit $0; exec "$@"' "$1" "$REDLOCK" run -S local: "$KEY" touch "$TMP/ran"
	[[ $status == 69 && ! $output && $stderr == "$why" ]]
	[[ ! -e $TMP/ran && ! $(servers_in "$SET") ]]
}

@test "no server is started under a limit that could end it while locks are held; one that runs can be used under it" {
	limited '-t 600' 'processor time'
	limited '-s 1000' 'the stack below 1 MiB'
	redlock status -S local: "$KEY"
	expect 0 "$KEY: free"$'\n.*'
	run --separate-stderr bash -c 'ulimit -t 600; exec "$@"' - "$REDLOCK" run -S local: "$KEY" echo ran
	expect 0 ran
}

# native: valgrind's own needs are beyond such limits
# bats test_tags=native
@test "no server is started under a limit of memory that it could reach" {
	[[ $REDLOCK == */build/redlock ]] || skip "a sanitizer needs more"
	limited '-v 200000' 'memory below 256 MiB'
	limited '-d 200000' 'memory below 256 MiB'
}

@test "a limit on open files is named when the server is started, and only then" {
	local token
	run --separate-stderr bash -c 'ulimit -n 64; exec "$@"' - "$REDLOCK" acquire -S local: "$KEY"
	expect 0 '[0-9a-f]{32}' 'redlock: local:: a limit on open files \(ulimit -n\) lets its server serve fewer than 64 clients at once, as long as it runs'
	token=$output
	run --separate-stderr bash -c 'ulimit -n 64; exec "$@"' - "$REDLOCK" release -S local: "$KEY" "$token"
	expect 0
}

@test "a limit on the size of files costs its server the log, and no lock" {
	redlock run -S local: "$KEY" true
	kill -KILL "$(servers_in "$SET")"
	wait_until '[[ ! $(servers_in "$SET") ]]'
	[[ $(stat -c %s "$HOME_DIR/redis.log") -gt 100 ]]
	run --separate-stderr prlimit --fsize=100:100 "$REDLOCK" run -S local: "$KEY" true
	expect 0
	[[ $(lcli PING) == PONG ]]
}

@test "it outlives the terminal and the session of who started it" {
	in_terminal session "$REDLOCK acquire -S local: $KEY >$TMP/token; echo done >$TMP/done; sleep 300"
	wait_until '[[ -e $TMP/done ]]'
	[[ -s $TMP/token ]]
	local server
	server=$(servers_in "$SET")
	# the terminal hangs up
	kill -KILL "$(pid session)"
	wait_until "! is_running session"
	wait_until "[[ ! \$(pgrep -f 'sleep 300; *echo $TMP') ]]"
	is_alive "$server"
	redlock release -S local: "$KEY" "$(<"$TMP/token")"
	expect 0
}

@test "a server that was killed is started again, by the next who comes" {
	redlock acquire -S local: "$KEY"
	expect 0 '[0-9a-f]{32}'
	local server
	server=$(servers_in "$SET")
	kill -KILL "$server"
	wait_until "! is_alive $server" # its last thread has closed the socket
	[[ -S $SOCKET ]]
	redlock run -n -S local: "$KEY" echo again
	expect 0 again
	[[ $(servers_in "$SET" | wc -w) == 1 && $(servers_in "$SET") != "$server" ]]
}

# waiting RUNS WAITS: so many stand in the queue, and beside it.
waiting() {
	[[ $(lcli ZCARD "{$KEY}:redlock:queue") == "$1" && $(lcli ZCARD "{$KEY}:redlock:waits") == "$2" ]]
}

@test "a server that was killed is started again by those who wait, once, and all of them are served" {
	local i server
	redlock acquire -S local: -t 1h "$KEY"
	server=$(servers_in "$SET")
	for i in {1..8}; do spawn "$i" "$REDLOCK" run -S local: "$KEY" echo ran; done
	spawn wait "$REDLOCK" wait -S local: "$KEY"
	wait_until 'waiting 8 1'
	kill -KILL "$server"
	for i in {1..8}; do
		finish "$i"
		[[ $status == 0 && $output == ran ]]
	done
	finish wait
	[[ $status == 0 ]]
	[[ $(servers_in "$SET" | wc -w) == 1 && $(servers_in "$SET") != "$server" ]]
	[[ $(grep -c oO0OoO0OoO0Oo "$HOME_DIR/redis.log") == 2 ]]
}

@test "who holds a lock at a server that was killed has it started, and finds the lock lost" {
	local server
	spawn holder "$REDLOCK" run -S local: -t $((6 * SLOW))s "$KEY" sleep 300
	wait_until '[[ $(child_named "$(pid holder)" sleep) ]]'
	server=$(servers_in "$SET")
	kill -KILL "$server"
	finish holder
	[[ $status == 76 && $stderr == *"$KEY: lock lost: "*"gone"* ]]
	[[ $(servers_in "$SET" | wc -w) == 1 && $(servers_in "$SET") != "$server" ]]
}

@test "who waits starts no second server while the first one lives and its socket was removed" {
	local server
	redlock acquire -S local: -t 1h "$KEY"
	expect 0 '[0-9a-f]{32}'
	server=$(servers_in "$SET")
	spawn a "$REDLOCK" run -S local: "$KEY" echo ran
	wait_until 'waiting 1 0'
	mv "$SOCKET" "$SOCKET.away"
	timeout 10 redis-cli -s "$SOCKET.away" CLIENT KILL TYPE normal SKIPME yes
	timeout 10 redis-cli -s "$SOCKET.away" CLIENT KILL TYPE pubsub
	wait_until '[[ -s $TMP/a.err ]]'
	wait_until 'flock -n "$HOME_DIR/lock" true'
	[[ ! -e $SOCKET && $(servers_in "$SET") == "$server" ]]
	mv "$SOCKET.away" "$SOCKET"
	redlock release -S local: "$KEY" "$output"
	finish a
	expect 0 ran "redlock: $KEY: still waiting: local:: No such file or directory: .*"
	[[ $(servers_in "$SET") == "$server" ]]
}

@test "a stopped server is not replaced by a second one" {
	redlock run -S local: "$KEY" true
	local server
	server=$(servers_in "$SET")
	stop_process "$server"
	redlock run -S local: --server-timeout 200ms "$KEY" true
	expect 69 '' "redlock: $KEY: local:: .*"
	kill -CONT "$server"
	[[ $(servers_in "$SET") == "$server" ]]
	redlock run -S local: "$KEY" true
	expect 0
}

# no_second: while KEY is held at a server to which nobody can connect any more, redlock starts no second one;
# the first one's pid is in $server.
no_second() {
	redlock run -n -S local: "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: local:: its server, pid $server, runs, but $SOCKET is gone, or in another mount namespace \(PrivateTmp\): when no lock is held there, kill $server"
	[[ ! -e $TMP/ran && $(servers_in "$SET") == "$server" ]]
}

@test "while a server lives whose socket or directory was removed, no second one is started" {
	local server
	spawn one "$REDLOCK" run -S local: "$KEY" sh -c ': >"$0.began"; until [ -e "$0" ]; do sleep 0.05; done' "$TMP/go"
	wait_until '[[ -e $TMP/go.began ]]'
	server=$(servers_in "$SET")
	rm "$SOCKET"
	no_second
	XDG_RUNTIME_DIR=$SET// redlock run -n -S local: "$KEY" touch "$TMP/ran"
	[[ $status == 69 && ! -e $TMP/ran && $(servers_in "$SET") == "$server" ]]
	rm -r "$HOME_DIR"
	no_second
	: >"$TMP/go"
	finish one
	expect 0
	kill "$server"
	redlock run -n -S local: "$KEY" echo again
	expect 0 again
	[[ $(servers_in "$SET" | wc -w) == 1 && $(servers_in "$SET") != "$server" ]]
}

@test "no second server is started in another mount namespace; a container that only shares the network has its own" {
	unshare --mount true && unshare --mount --pid --fork --mount-proc true || skip "no namespaces can be made here"
	local server
	redlock acquire -S local: "$KEY"
	expect 0 '[0-9a-f]{32}'
	server=$(servers_in "$SET")
	run --separate-stderr unshare --mount sh -c 'mount -t tmpfs -o mode=700 none "$XDG_RUNTIME_DIR" &&
		exec "$@"' - "$REDLOCK" run -n -S local: "$KEY" echo second
	expect 69 '' "redlock: local:: its server, pid $server, runs, .*"
	run --separate-stderr unshare --mount --pid --fork --kill-child --mount-proc sh -c '
		mount -t tmpfs -o mode=700 none "$XDG_RUNTIME_DIR" && "$@"' - \
		"$REDLOCK" run -n -S local: "$KEY" echo apart
	expect 0 apart
	[[ $(servers_in "$SET") == "$server" ]]
}

@test "a server in a container that only shares the network is none of ours, even if we see it" {
	unshare --mount --pid --fork --mount-proc true || skip "no namespaces can be made here"
	spawn container unshare --mount --pid --fork --kill-child --mount-proc sh -c '
		mount -t tmpfs -o mode=700 none "$XDG_RUNTIME_DIR" && "$@"' - \
		"$REDLOCK" run -S local: "$KEY" sh -c ': >"$0"; until [ -e "$0.end" ]; do sleep 0.05; done' "$TMP/began"
	wait_until '[[ -e $TMP/began ]]'
	redlock run -n -S local: "$KEY" echo ours
	: >"$TMP/began.end"
	expect 0 ours
	finish container
	expect 0
}

# refused_home: local: does not go where XDG_RUNTIME_DIR/redlock is, says so, and leaves it as it is.
refused_home() {
	redlock run -S local: "$KEY" touch "$TMP/ran"
	expect 78 '' "redlock: .*local:.*$HOME_DIR.*"
	[[ ! -e $TMP/ran && ! -e $SOCKET ]]
	[[ ! $(servers_in "$SET") ]]
}

@test "a directory that others can enter is refused" {
	local mode
	mkdir "$HOME_DIR"
	for mode in 755 750 701 720 777 1777; do
		chmod "$mode" "$HOME_DIR"
		refused_home
		[[ $(stat -c %a "$HOME_DIR") == "$mode" ]]
	done
	chmod 700 "$HOME_DIR"
	redlock run -S local: "$KEY" true
	expect 0
}

@test "a directory that is a symbolic link, or a file, is refused" {
	mkdir -m 700 "$SET/elsewhere"
	ln -s elsewhere "$HOME_DIR"
	refused_home
	rm "$HOME_DIR"
	ln -s nowhere "$HOME_DIR"
	refused_home
	rm "$HOME_DIR"
	touch "$HOME_DIR"
	refused_home
}

@test "a directory that belongs to somebody else is refused" {
	[[ $(id -u) == 0 ]] || skip "needs root to make one"
	mkdir -m 700 "$HOME_DIR"
	chown 65534 "$HOME_DIR"
	refused_home
}

# somebody: a user id of the test's own, with whom redlock goes to /tmp/redlock-UID
somebody() {
	[[ $(id -u) == 0 ]] || skip "needs root to be somebody else"
	SOMEBODY=$((400000 + $$ % 100000))
	# teardown removes it: only where it is ours
	[[ ! -e /tmp/redlock-$SOMEBODY ]]
	OTHER_HOME=/tmp/redlock-$SOMEBODY
	# a copy that they can reach: this tree may be in /root
	chmod 755 "$SET"
	install -m 755 "$REDLOCK" "$SET/program"
	# who cannot look into the directory of this test run
	as_somebody=(env PATH="${PATH%":$VALKEY"}" setpriv --reuid="$SOMEBODY" --regid="$SOMEBODY" --clear-groups)
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "without XDG_RUNTIME_DIR it is in /tmp/redlock-UID, and refused where that is another's" {
	somebody
	unset XDG_RUNTIME_DIR
	cd /
	mkdir -m 700 "$OTHER_HOME"
	run --separate-stderr timeout -k 1 20 "${as_somebody[@]}" "$SET/program" run -S local: "$KEY" true
	expect 78 '' "redlock: .*local:.*$OTHER_HOME.*"
	[[ ! -e $OTHER_HOME/redis.sock ]]
	rmdir "$OTHER_HOME"
	run --separate-stderr timeout -k 1 20 "${as_somebody[@]}" "$SET/program" run -S local: "$KEY" true
	expect 0
	[[ -S $OTHER_HOME/redis.sock && $(stat -c '%a %u' "$OTHER_HOME") == "700 $SOMEBODY" ]]
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "a lock file made under a umask that takes the owner's rights keeps nobody from starting the server" {
	somebody
	unset XDG_RUNTIME_DIR
	cd /
	local user=("${as_somebody[@]}" sh -c 'umask 477; exec "$@"' - "$SET/program")
	run --separate-stderr timeout -k 1 20 "${user[@]}" run -S local: "$KEY" true
	expect 0
	[[ $(stat -c %a "$OTHER_HOME/lock") == 600 ]]
	kill -KILL "$(servers_in "$OTHER_HOME")"
	wait_until '[[ ! $(servers_in "$OTHER_HOME") ]]'
	chmod 0 "$OTHER_HOME/lock"
	run --separate-stderr timeout -k 1 20 "${user[@]}" run -S local: "$KEY" true
	expect 0
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "without XDG_RUNTIME_DIR root's is in /run/redlock, where nobody can take its name, and another user's is another" {
	somebody
	unshare -mn mount -t tmpfs none /run || skip "a /run of its own can't be made here"
	unset XDG_RUNTIME_DIR
	cd /
	run --separate-stderr timeout -k 1 40 unshare -mn sh -c '
		program=$1 key=$2
		shift 2
		mount -t tmpfs -o mode=755 none /run || exit 99
		! "$@" mkdir /run/redlock 2>/dev/null || exit 98
		"$program" acquire -S local: "$key" || exit 97
		stat -c "%a %u" /run/redlock
		"$program" acquire -n -S local: "$key" && exit 96
		# root has it, and somebody gets one of a server of their own
		"$@" "$program" acquire -n -S local: "$key" || exit 95
		"$@" ls /run/redlock 2>/dev/null && exit 94
		redis-cli -s /run/redlock/redis.sock shutdown nosave
		exit 0' - "$SET/program" "$KEY" "${as_somebody[@]}"
	[[ $status == 0 && ${#lines[@]} == 3 && ${lines[1]} == '700 0' ]]
	[[ -S $OTHER_HOME/redis.sock ]]
}

@test "its log is for its user only, whatever the umask, and so is one that was there" {
	umask 000
	redlock run -S local: "$KEY" true
	expect 0
	[[ -s $HOME_DIR/redis.log && $(stat -c %a "$HOME_DIR/redis.log") == 600 ]]
	local server
	server=$(servers_in "$SET")
	kill -KILL "$server"
	wait_until "! is_alive $server"
	chmod 644 "$HOME_DIR/redis.log"
	redlock run -S local: "$KEY" true
	expect 0
	[[ $(stat -c %a "$HOME_DIR/redis.log") == 600 ]]
}

@test "a directory that others can replace is refused" {
	chmod 777 "$SET"
	refused_home
	chmod 1777 "$SET"
	redlock run -S local: "$KEY" true
	expect 0
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "cron, a login and a foreign XDG_RUNTIME_DIR all meet at the same server" {
	somebody
	cd /
	local runtime
	for runtime in '' "/run/user/$SOMEBODY" relative "$SET" /nonexistent; do
		run --separate-stderr timeout -k 1 20 "${as_somebody[@]}" env ${runtime:+XDG_RUNTIME_DIR="$runtime"} \
			"$SET/program" acquire -S local: "$KEY-$runtime"
		expect 0 '[0-9a-f]{32}'
		[[ $(redis-cli -s "$OTHER_HOME/redis.sock" GET "$KEY-$runtime") == "$output" ]]
		unset XDG_RUNTIME_DIR
	done
	[[ $(servers_in "$OTHER_HOME" | wc -l) == 1 ]]
	unshare -m mount -t tmpfs none /run || skip "the login's own directory can't be made here"
	# a login's directory that is there, and the user's
	run --separate-stderr timeout -k 1 20 unshare -m sh -c '
		mount -t tmpfs none /run && mkdir -p "$1" && chown "$2" "$1" && chmod 700 "$1" || exit 99
		export XDG_RUNTIME_DIR="$1"
		shift 2
		exec "$@"' - "/run/user/$SOMEBODY" "$SOMEBODY" "${as_somebody[@]}" "$SET/program" acquire -S local: "$KEY-login"
	expect 0 '[0-9a-f]{32}'
	[[ $(redis-cli -s "$OTHER_HOME/redis.sock" GET "$KEY-login") == "$output" ]]
}

# programs NAME...: only these, all of them the server's program, are in the PATH $TMP/bin.
programs() {
	mkdir "$TMP/bin"
	local name
	for name; do ln -s "$(type -P redis-server)" "$TMP/bin/$name"; done
}

# name_of_server: as its process is called.
name_of_server() {
	cat "/proc/$(servers_in "$SET")/comm"
}

@test "valkey-server is started if there is no redis-server" {
	programs valkey-server
	run -0 timeout -k 1 20 env PATH="$TMP/bin" "$REDLOCK" run -S local: "$KEY" /bin/echo ran
	[[ $output == ran && $(name_of_server) == valkey-server ]]
}

@test "redis-server is started if both are there" {
	programs valkey-server redis-server
	run -0 timeout -k 1 20 env PATH="$TMP/bin" "$REDLOCK" run -S local: "$KEY" /bin/echo ran
	[[ $output == ran && $(name_of_server) == redis-server ]]
}

@test "a redis-server that may not be executed is told, and no other is taken for it" {
	programs valkey-server
	touch "$TMP/bin/redis-server"
	run -71 --separate-stderr timeout -k 1 20 env PATH="$TMP/bin" "$REDLOCK" run -S local: "$KEY" /bin/true
	[[ $stderr == "redlock: local:: cannot run redis-server or valkey-server: Permission denied" ]]
	[[ ! $(servers_in "$SET") ]]
}

@test "a missing server program is said so, with the packages' names" {
	run --separate-stderr timeout -k 1 20 env PATH="$TMP" "$REDLOCK" run -S local: "$KEY" /bin/touch "$TMP/ran"
	expect 78 '' "redlock: local:: there is no redis-server or valkey-server program: install the package redis-server or valkey-server .*"
	[[ ! -e $TMP/ran ]]
	# nothing that was prepared stands in the way of the next
	redlock run -S local: "$KEY" true
	expect 0
}

@test "a server program that ends at once is said so, at once" {
	mkdir "$TMP/bin"
	printf '#!/bin/sh\nexit 1\n' >"$TMP/bin/redis-server"
	chmod +x "$TMP/bin/redis-server"
	local started
	started=$NOW
	PATH=$TMP/bin:$PATH redlock run -S local: "$KEY" true
	expect 69 '' "redlock: local:: the server has ended at once: see .*/redis.log"
	((NOW - started < 9000)) # it would be waited for ten seconds
	# for --unreachable it is as one that is away
	PATH=$TMP/bin:$PATH redlock run --unreachable run -S local: "$KEY" echo ran
	expect 0 ran "redlock: local:: the server has ended at once: see .*/redis.log
redlock: $KEY: local:: .*: COMMAND runs without the lock"
	PATH=$TMP/bin:$PATH REDLOCK_UNREACHABLE=run redlock acquire -S local: "$KEY"
	expect 69 '' "redlock: local:: the server has ended at once: see .*/redis.log"
}

@test "a signal to all while its server starts ends redlock at once, and --status-fd has one line" {
	mkdir "$TMP/bin"
	mkfifo "$TMP/silent"
	printf '#!/bin/sh\n: >%s; read x <>%s\n' "$TMP/started" "$TMP/silent" >"$TMP/bin/redis-server"
	chmod +x "$TMP/bin/redis-server"
	spawn run env PATH="$TMP/bin:$PATH" "$REDLOCK" run -S local: --status-fd 1 "$KEY" true
	wait_until '[[ -e $TMP/started ]]'
	kill -TERM -- "-$(pid run)"
	finish run
	expect 143 '\{"outcome":"interrupted",.*\}'
}

@test "a path that is too long for a socket is refused" {
	local long
	long=$SET/$(repeat x 100)
	mkdir -m 700 "$long"
	XDG_RUNTIME_DIR=$long redlock run -S local: "$KEY" true
	expect 78 '' "redlock: .*local:.*XDG_RUNTIME_DIR.*"
}

@test "a configured server that is away is never replaced by local:" {
	local where
	for where in "$NOWHERE" redis://127.0.0.1:1 redis://redlock.invalid "$NOWHERE,redis://127.0.0.1:1"; do
		redlock run -S "$where" "$KEY" touch "$TMP/ran"
		[[ $status == 69 ]]
		REDLOCK_SERVERS=$where redlock acquire "$KEY"
		[[ $status == 69 ]]
	done
	[[ ! -e $HOME_DIR && ! -e $TMP/ran ]]
}
