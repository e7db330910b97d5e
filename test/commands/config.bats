#!/usr/bin/env bats
# Configuration files: what they may say, what it changes, and which of them counts.
# bats file_tags=long

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2059,SC2154 # text for inner shells; tests are subshells; cli.bash uses it; formats; bats sets it

load ../lib/helper
load ../lib/cli
load ../lib/tls

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	FILE=$TMP/redlock.conf
	unset REDLOCK_SERVERS
}

# file FORMAT [ARGUMENT...]: what is in $FILE, as printf has it.
file() {
	printf "$@" >"$FILE"
	chmod 600 "$FILE"
}

# mistake LINE PATTERN FORMAT: what is wrong with a $FILE of this content, and in which line.
mistake() {
	file "$3"
	refuses 78 "^redlock: $(literal "$FILE"):$1: $2" acquire --config "$FILE" key
}

# fine FORMAT [ARGUMENT...]: a $FILE of this content is right: only the server is not there.
fine() {
	file "$@"
	refuses 69 "$(literal "$NOWHERE")" extend --config "$FILE" key token
}

# ends STATUS [OPTION...]: how `acquire` on $KEY does, with $FILE.
ends() {
	local want=$1
	shift
	redlock acquire --config "$FILE" "$@" "$KEY"
	[[ $status == "$want" ]] || { echo "$status: $stderr" >&2 && false; }
}

# figures TTL KILL_AFTER TIMEOUT [OPTION...]: what these are for `run`, with $FILE; the default of the last as for a lease that is long enough. If none of them is an option
# of the command line, it is the configuration that is wrong.
figures() {
	local ttl=$1 kill_after=$2 timeout=$3 code=78
	shift 3
	[[ " $* " != *' '@(-t|-k|--ttl|--kill-after|--server-timeout|--max-ttl)[' =']* ]] || code=64
	refuses "$code" "of $ttl ms .* $kill_after --kill-after .* 2 x $timeout --server-timeout" \
		run --config "$FILE" "$@" key true
}

# --- what is in a file ----------------------------------------------------

@test "lines NAME = VALUE, blanks, comments and sections are read" {
	local text
	for text in "server=$NOWHERE" "server = $NOWHERE" "\t server\t=  $NOWHERE \t" "server = $NOWHERE\n" \
		"server = $NOWHERE\r\n\r\nttl = 5s\r\n" "\xef\xbb\xbfserver = $NOWHERE\n" "\n\n# x\n  \t# = [\n#\nserver = $NOWHERE" \
		"server = $NOWHERE\n[a]\nserver = unix:///b\n [ b.c-D_9 ] \nttl = 5s" "server = $NOWHERE\n[empty]\n"; do
		fine "$text"
	done
	no_row_failed
}

@test "a line that is nothing of that is refused, with its number, and is not shown" {
	local line
	for line in hunter2 'server redis://:hunter2@host' 'server redis://:hunter2@host?a=b' 'password: hunter2' '= hunter2' \
		' =' 'pass word = hunter2' 'password# = hunter2' '; hunter2' "$(repeat x 65) = 1"; do
		mistake 3 'not NAME = VALUE, nor \[SECTION\], nor # COMMENT$' "# one\n\n$line\n"
		grep -H hunter2 "$TMP/refused.err" >&2 && ((++failed_rows))
	done
	no_row_failed
}

@test "a section's line that is none is refused" {
	local line
	for line in '[a' '[a] # b' '[a] b' '[' '[a]='; do mistake 2 'a section is \[NAME\], alone' "ttl = 5s\n$line\n"; done
	for line in '[]' '[ ]' '[a b]' '[a/b]' '[[a]]' '[\xc3\xa4]' "[$(repeat x 65)]"; do
		mistake 2 "a section's name is" "ttl = 5s\n$line\n"
	done
	mistake 5 'duplicate section \[a\]' '[a]\n[b]\n\n\n[a]\n'
	fine "server = $NOWHERE\n$(printf '[%d]\\n' {1..63})"
	mistake 65 'more than 63 sections' "server = $NOWHERE\n$(printf '[%d]\\n' {1..64})"
	no_row_failed
}

@test "control characters are refused, as nobody sees them" {
	mistake 2 'a control character \(0x00\)' 'ttl = 5s\nwait = 5s\0\n'
	mistake 1 'a control character \(0x00\)' '\0'
	mistake 1 'a control character \(0x0d\)' '# all of a file\rttl = 5s\r'
	mistake 1 'a control character \(0x1b\)' 'label = \x1b[31m'
	mistake 1 'a control character \(0x7f\)' 'label = a\x7f'
	mistake 1 'a control character \(0x00\)' '\xff\xfet\0t\0l\0'
	no_row_failed
}

@test "an unknown name is refused; a near miss is told what was meant" {
	mistake 2 "unknown option 'frobnicate'$" 'ttl = 5s\nfrobnicate = 5\n'
	mistake 1 "unknown option 'tll': did you mean ttl\?" 'tll = 5s'
	mistake 1 "unknown option 'nb': did you mean nonblock\?" 'nb = yes'
	mistake 1 "unknown option 'servers': did you mean server\?" 'servers = redis://a'
	mistake 1 "unknown option 'pasword': did you mean password\?" 'pasword = hunter2'
	mistake 2 "unknown option 'tll'" '[unused]\ntll = 5s'
	mistake 1 "'timeout' can mean two things: .*server-timeout .*wait " 'timeout = 500ms'
	mistake 2 "'timeout' can mean two things" '[unused]\ntimeout = 500ms'
	no_row_failed
}

REFUSED=(also config set token help yes foreign quiet command status-fd format conflict-exit-code exclusive shared permits reentrant pid
	once-in now reason output {max,warn}-{age,held,wait,queue})

@test "what a command does and answers is not a file's to say" {
	local name
	for name in "${REFUSED[@]}"; do
		mistake 2 "'$name' is for the command line only$" "ttl = 5s\n$name = 1\n"
	done
	no_row_failed
}

@test "a value that is none is refused and quoted, for every command" {
	mistake 1 "ttl '5x' is not a DURATION" 'ttl = 5x'
	mistake 1 "ttl '' is not a DURATION" 'ttl ='
	mistake 1 "ttl '5s # five' is not a DURATION" 'ttl = 5s # five'
	mistake 1 "ttl '25h' is not .*day" 'ttl = 25h'
	mistake 1 "min-hold '25h' is not .*day" 'min-hold = 25h'
	mistake 1 "tries '0' is not a number" 'tries = 0'
	mistake 1 "on-lost 'keep' is not kill, kill-group, warn" 'on-lost = keep'
	mistake 1 "label '' is not valid: it is empty" 'label ='
	mistake 1 "nonblock 'true' is not yes or no" 'nonblock = true'
	mistake 1 "verbose '' is not yes or no" 'verbose ='
	mistake 1 "poll '1x' is not a DURATION" 'poll = 1x'
	mistake 1 'the password is empty' 'password ='
	mistake 1 'an empty server address' 'server ='
	mistake 1 "server 'redis://host\.\.\.': the port" 'server = redis://host:0'
	mistake 2 '.*unix:///a.* is named twice' 'server = unix:///a\nserver = unix:///a\n'
	mistake 1 'more than 32 servers' "server = $(printf 'unix:///%d,' {1..32})unix:///33"
	mistake 2 "ttl '\\\\xff' is not a DURATION" '\nttl = \xff'
	mistake 1 "ttl 'x{64}\.\.\.' is not a DURATION" "ttl = $(repeat x 60000)"
	no_row_failed
}

@test "a name that stands twice in a section is refused, but for server" {
	mistake 3 "'ttl' is given twice" 'ttl = 5s\n\nttl = 5s\n'
	mistake 3 "'nonblock' is given twice" '[a]\nnonblock = no\nnonblock = no\n'
	fine "ttl = 5s\nserver = unix:///nonexistent/a\nserver = $NOWHERE\n[a]\nttl = 6s\n[b]\nttl = 7s"
	no_row_failed
}

@test "names that contradict each other in a section are refused" {
	mistake 2 "'wait' cannot be used with 'nonblock'" 'nonblock = yes\nwait = 5s'
	mistake 2 "'nonblock' cannot be used with 'poll'" 'poll = yes\nnonblock = yes'
	mistake 3 "'nonblock' cannot be used with 'tries'" '[a]\ntries = 3\nnonblock = yes'
	fine "server = $NOWHERE\nnonblock = no\nwait = 5s\n[a]\nnonblock = yes"
	no_row_failed
}

@test "no error of a file shows a password" {
	local line
	for line in 'password = hunter2\npassword = hunter2' 'server = redis://bob:hunter2@' 'server = redis://:hunter2@host:0' \
		'server = redis://:hunter2,x@host' 'server = redis:bob:hunter2@host'; do
		mistake '[12]' '' "$line"
		grep -H hunter2 "$TMP/refused.err" >&2 && ((++failed_rows))
	done
	no_row_failed
}

# --- what may be a file ---------------------------------------------------

@test "a --config that is not there or no regular file is a wrong configuration, at once" {
	refuses 78 "$(literal "$TMP/missing"): No such file or directory$" acquire --config "$TMP/missing" key
	refuses 78 "$(literal "$TMP"): not a regular file" acquire --config "$TMP" key
	mkfifo "$TMP/fifo"
	refuses 78 "$(literal "$TMP/fifo"): not a regular file" acquire --config "$TMP/fifo" key
	refuses 78 '/dev/zero: not a regular file' acquire --config /dev/zero key
	refuses 78 'a\\n\\e\[31m: No such file' acquire --config $'/nonexistent/a\n\e[31m' key
	refuses 69 '127\.0\.0\.1:1' acquire --config /dev/null -S redis://127.0.0.1:1 key
	no_row_failed
}

@test "a file is 64 KiB at most" {
	file "server = $NOWHERE\n#"
	truncate -s 65535 "$FILE"
	tr '\0' x <"$FILE" >"$TMP/full"
	echo >>"$TMP/full"
	refuses 69 "$(literal "$NOWHERE")" acquire --config "$TMP/full" key
	echo >>"$TMP/full"
	refuses 78 "$(literal "$TMP/full"): more than 65536 bytes" acquire --config "$TMP/full" key
	no_row_failed
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "a file that may not be read is a wrong configuration; a home that may not be entered has none" {
	reachable
	TRACER=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	mkdir -m 755 "$SET/home"
	install -m 600 /dev/null "$SET/home/redlock.conf"
	refuses 78 'home/redlock.conf: Permission denied' acquire --config "$SET/home/redlock.conf" key
	export XDG_CONFIG_HOME=$SET/home REDLOCK_SERVERS=$NOWHERE
	refuses 78 'home/redlock.conf: Permission denied' acquire key
	chmod 700 "$SET/home"
	refuses 69 "$(literal "$NOWHERE")" acquire key
	refuses 78 'home/redlock.conf: Permission denied' acquire --config "$SET/home/redlock.conf" key
	no_row_failed
}

@test "a link that leads nowhere is a wrong configuration, and not passed over" {
	mkdir "$TMP/xdg"
	ln -s "$TMP/none" "$TMP/xdg/redlock.conf"
	export XDG_CONFIG_HOME=$TMP/xdg REDLOCK_SERVERS=$NOWHERE
	local what='xdg/redlock.conf: No such file or directory: it is a symbolic link to a file that is not there$'
	refuses 78 "$what" acquire key
	refuses 78 "$what" acquire --config "$TMP/xdg/redlock.conf" key
	echo 'ttl = 1h' >"$TMP/none"
	refuses 69 "$(literal "$NOWHERE")" acquire key
	no_row_failed
}

@test "a password in a file that others can read is pointed out, and not shown" {
	local mode text
	for text in 'password = hunter2\nserver = redis://127.0.0.1:1\n' 'server = redis://:hunter2@127.0.0.1:1\n' \
		'server = redis://127.0.0.1:1\n[other]\npassword = hunter2' \
		'server = redis://127.0.0.1:1\n[other]\nserver = redis://:hunter2@b'; do
		file "$text"
		for mode in 604 644; do
			chmod "$mode" "$FILE"
			redlock acquire --config "$FILE" "$KEY"
			[[ $status == 69 && $stderr == "redlock: $FILE: others can read the password"*$'\n'* && $stderr != *hunter2* ]]
			redlock acquire -q --config "$FILE" "$KEY"
			[[ $status == 69 && $stderr != *"$FILE"* ]]
		done
		chmod 600 "$FILE"
		redlock acquire --config "$FILE" "$KEY"
		[[ $status == 69 && $stderr != *"$FILE"* ]]
	done
	# no password, nothing to hide; and one of the environment's is not the file's
	file 'server = redis://127.0.0.1:1\n'
	chmod 644 "$FILE"
	REDLOCK_PASSWORD=hunter2 redlock acquire --config "$FILE" "$KEY"
	[[ $status == 69 && $stderr != *"$FILE"* ]]
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "a password that a group can read is pointed out, but for root's file" {
	reachable
	printf 'password = hunter2\nserver = redis://127.0.0.1:1\n' >"$SET/redlock.conf"
	chmod 640 "$SET/redlock.conf"
	chgrp 65534 "$SET/redlock.conf"
	local -a as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	run -69 --separate-stderr "${as_nobody[@]}" "$REDLOCK" acquire --config "$SET/redlock.conf" "$KEY"
	[[ $stderr != *"$SET/redlock.conf"* ]]
	chown 65534 "$SET/redlock.conf"
	run -69 --separate-stderr "${as_nobody[@]}" "$REDLOCK" acquire --config "$SET/redlock.conf" "$KEY"
	[[ $stderr == *"$SET/redlock.conf: others can read"* ]]
}

@test "a file that others may write is a wrong configuration, wherever it is" {
	local mode
	mkdir "$TMP/xdg"
	file 'server = %s\n' "$NOWHERE"
	cp "$FILE" "$TMP/xdg/redlock.conf"
	for mode in 620 660 602 606 777; do
		chmod "$mode" "$FILE" "$TMP/xdg/redlock.conf"
		refuses 78 "$(literal "$FILE"): others may write it" acquire --config "$FILE" key
		XDG_CONFIG_HOME=$TMP/xdg refuses 78 "xdg/redlock.conf: others may write it" acquire -S "$NOWHERE" key
	done
	chmod 644 "$FILE"
	refuses 69 "$(literal "$NOWHERE")" acquire --config "$FILE" key
	no_row_failed
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "a file of another user's is a wrong configuration, root's is none, and sudo does not take the caller's" {
	reachable
	install -d "$SET/home/.config"
	echo "server = $NOWHERE" >"$SET/home/.config/redlock.conf"
	chmod 644 "$SET/home/.config/redlock.conf"
	TRACER=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	HOME=$SET/home refuses 69 "$(literal "$NOWHERE")" acquire key
	chown 65533 "$SET/home/.config/redlock.conf"
	HOME=$SET/home refuses 78 "redlock.conf: it is neither yours nor root's" acquire key
	chown 65534 "$SET/home/.config/redlock.conf"
	HOME=$SET/home refuses 69 "$(literal "$NOWHERE")" acquire key
	# root, with the HOME of the one who has become root
	TRACER=()
	HOME=$SET/home refuses 78 "redlock.conf: it is neither yours nor root's: chown it, or name another by --config" acquire key
	refuses 78 "redlock.conf: it is neither yours nor root's" acquire --config "$SET/home/.config/redlock.conf" key
	no_row_failed
}

# --- what it changes ------------------------------------------------------

@test "server: all of them make the quorum" {
	servers_start 3
	file 'quarantine = 0\nserver = %s\nserver = %s,%s\n' "$(server_url 0)" "$(server_url 1)" "$(server_url 2)"
	unset REDLOCK_SERVERS
	ends 0
	[[ $(servers_with 1 EXISTS "$KEY") == 3 ]]
}

@test "ttl, kill-after, server-timeout: the lease and what it must have room for" {
	file 'ttl = 1s\nkill-after = 900ms\nserver-timeout = 300ms\n'
	figures 1000 900 300
	[[ $(<"$TMP/refused.err") == *"(server-timeout from $FILE:3, ttl from $FILE:1, kill-after from $FILE:2)" ]]
	figures 800 900 300 -t 800ms
	[[ $(<"$TMP/refused.err") == *"(server-timeout from $FILE:3, kill-after from $FILE:2)" ]]
	figures 1000 800 200 -k 800ms --server-timeout 200ms
	REDLOCK_SERVER_TIMEOUT=250ms figures 1000 900 250
	REDLOCK_SERVER_TIMEOUT=250ms figures 1000 800 200 -k 800ms --server-timeout 200ms
	REDLOCK_SERVER_TIMEOUT='' figures 1000 900 300
	REDLOCK_SERVER_TIMEOUT=soon refuses 78 "^redlock: REDLOCK_SERVER_TIMEOUT 'soon' is not a DURATION" acquire key
	servers_start 1
	redlock acquire --config "$FILE" --format json -t 45 "$KEY-1"
	expect 0 '.*"ttl_ms":45000,.*'
	file 'ttl = 45s\n'
	redlock acquire --config "$FILE" --format json "$KEY-2"
	expect 0 '.*"ttl_ms":45000,.*'
	no_row_failed
}

@test "nonblock, wait, poll, tries: how long others are waited for" {
	servers_start 1
	hold
	file 'nonblock = yes\n'
	ends 75
	file 'wait = 50ms\n'
	ends 75
	file 'tries = 2\n'
	ends 75
	redlock wait --config "$FILE" -w 50ms "$KEY"
	expect 75 '' 'redlock: .*'
	file 'wait = 50ms\npoll = 10ms\nnonblock = no\n'
	ends 75 -v
	redlock wait --config "$FILE" "$KEY"
	expect 75 '' 'redlock: .*'
	rcli 0 CONFIG RESETSTAT
	file 'poll = yes\nwait = 500ms\n'
	ends 75
	(($(scripts_run 0) > 0))
	[[ $(rcli 0 INFO commandstats) != *cmdstat_subscribe:* ]]
}

@test "poll = no, verbose = no: as if they were not there" {
	servers_start 1
	redlock acquire "$KEY"
	expect 0 '.+'
	rcli 0 CONFIG RESETSTAT
	file "poll = no\nverbose = no\nwait = $((500 * SLOW))ms\n"
	ends 75
	[[ $stderr == 'redlock: '*held* && $stderr != *$'\n'* ]]
	# it has subscribed, which who polls does not
	[[ $(rcli 0 INFO commandstats) == *cmdstat_subscribe:* ]]
}

@test "quarantine, label, verbose" {
	servers_start 1
	file 'quarantine = 1h\n'
	ends 69 -w 50ms
	[[ $stderr == *quarantine* ]]
	file 'label = a "b" # c\nverbose = yes\n'
	ends 0
	[[ $stderr == "redlock: 0."*"s: settings: $FILE"$'\n'*"settings: server from REDLOCK_SERVERS, label from $FILE:1, verbose from $FILE:2"$'\n'* ]]
	redlock status "$KEY"
	[[ $status == 0 && $output == *"'a \"b\" # c'"* ]]
}

@test "min-hold, max-hold, on-lost: what becomes of COMMAND" {
	servers_start 1
	file 'min-hold = 60s\n'
	redlock run --config "$FILE" "$KEY" true
	expect 0
	redlock status -q "$KEY"
	expect 0
	file 'max-hold = 100ms\n'
	redlock run --config "$FILE" "$KEY-1" sleep 60
	[[ $status == 124 ]]
	file 'on-lost = warn\nttl = 1500ms\n'
	redlock run --config "$FILE" "$KEY-2" sh -c "redis-cli -s $SERVERS/0/redis.sock DEL $KEY-2 >&2; sleep 2; exit 5"
	[[ $status == 5 && $stderr == *lost* ]]
	file 'min-hold = 60s\n'
	refuses 64 '--min-hold is longer than --max-hold \(min-hold from .*:1\)' \
		run --config "$FILE" --max-hold 5s key true
	no_row_failed
}

# a server whose password is hunter2, and is $SERVER
server_with_password() {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	SERVER=$(server_url 0)
	unset REDLOCK_SERVERS
}

# sent OPTION...: the server is sent the password. withheld WHY OPTION...: it is not, and WHY is said.
sent() {
	redlock run --config "$FILE" "$@" "$KEY" true
	[[ $status == 0 ]] || { echo "$* $status: $stderr" >&2 && ((++failed_rows)); }
}

withheld() {
	local why=$1
	shift
	redlock run --config "$FILE" "$@" "$KEY" true
	[[ $status == 77 && $stderr =~ ^"redlock: $KEY: unix:"[^$'\n']*NOAUTH[^$'\n']*": $why"$ && $stderr != *hunter2* ]] ||
		{ echo "$* $status: $stderr" >&2 && ((++failed_rows)); }
}

@test "password: for servers of the same section whose URL has none" {
	server_with_password
	file 'server = %s\n' "$SERVER"
	withheld "set password in $FILE"
	file 'server = %s\npassword = hunter2\n' "$SERVER"
	sent
	file 'password = hunter2\n\nserver = %s\n' "$SERVER"
	sent
	file 'server = unix://:hunter2@%s\npassword = wrong\n' "$SERVERS/0/redis.sock"
	sent
	file 'server = unix://default@%s\npassword = hunter2\n' "$SERVERS/0/redis.sock"
	sent
	printf 'password = a b#c=d\nserver = %s\n' "$SERVER" >"$FILE"
	REDISCLI_AUTH=hunter2 rcli 0 --no-auth-warning CONFIG SET requirepass 'a b#c=d'
	sent
	redlock acquire --password=x "$KEY"
	expect 64 '' "redlock: .*unknown option '--password'.*"
	no_row_failed
}

@test "password-file: the same from a file's first line, which is read only where it is sent" {
	server_with_password
	echo hunter2 >"$TMP/secret"
	chmod 444 "$TMP/secret"
	file 'server = %s\npassword-file = %s\n' "$SERVER" "$TMP/secret"
	sent
	file 'password-file = /nonexistent\n[a]\nserver = %s\npassword-file = %s\n' "$SERVER" "$TMP/secret"
	sent --set a
	echo wrong >"$TMP/wrong"
	file 'server = %s\npassword-file = %s\n[a]\nserver = %s\npassword = wrong\n' "$SERVER" "$TMP/wrong" "$SERVER"
	refuses 77 "WRONGPASS.*and the password in $(literal "$TMP/wrong")\$" acquire --config "$FILE" key
	refuses 77 "WRONGPASS.*and the password in $(literal "$FILE [a]")\$" acquire --config "$FILE" --set a key
	file 'server = %s\npassword-file = /nonexistent\n' "$SERVER"
	refuses 78 "^redlock: $(literal "$FILE"):2: password-file: /nonexistent: No such file" acquire --config "$FILE" key
	file 'server = %s\n[a]\nsentinel-password-file = /nonexistent\nserver = %s\n' "$SERVER" "$SERVER"
	refuses 78 "^redlock: $(literal "$FILE"):3: sentinel-password-file: /nonexistent: No such file" \
		acquire --config "$FILE" --set a key
	chmod 666 "$TMP/secret"
	file 'server = %s\npassword-file = %s\n' "$SERVER" "$TMP/secret"
	refuses 78 "$(literal "$TMP/secret"): others may write it" acquire --config "$FILE" key
	mistake 2 "'password-file' cannot be used with 'password'" 'password = hunter2\npassword-file = /x\n'
	no_row_failed
}

@test "a file's password is for nobody but the servers of that file and section" {
	server_with_password
	local of="the password of $FILE was not used: it is for the servers that are named there, and this is one of"
	file 'password = hunter2\n[a]\nserver = %s\n' "$SERVER"
	withheld "$of -S" -S "$SERVER"
	REDLOCK_SERVERS=$SERVER withheld "$of REDLOCK_SERVERS"
	withheld "$of $FILE [a]" --set a
	file 'server = %s\n[a]\nserver = %s\npassword = hunter2\n' "$SERVER" "$SERVER"
	withheld "set password in $FILE"
	sent --set a
	withheld "set REDLOCK_PASSWORD" -S "$SERVER"
	# a user is not logged in by another place's password either
	file 'password = hunter2\n'
	refuses 78 "a user without a password: the password of $(literal "$FILE") was not used" \
		acquire --config "$FILE" -S "unix://default@$SERVERS/0/redis.sock" key
	file 'server = unix://default@/path\n'
	refuses 78 "a user without a password: set password in $(literal "$FILE")" acquire --config "$FILE" key
	no_row_failed
}

@test "the environment's password is for servers of -S and REDLOCK_SERVERS, and no file's" {
	server_with_password
	echo hunter2 >"$TMP/secret"
	file 'server = %s\n[a]\nserver = %s\n' "$SERVER" "$SERVER"
	local variable value of
	for variable in REDLOCK_PASSWORD=hunter2 REDLOCK_PASSWORD_FILE="$TMP/secret"; do
		value=${variable#*=}
		variable=${variable%%=*}
		of="the password of $variable was not used: it is for the servers of -S and REDLOCK_SERVERS, and this is one of"
		export "$variable=$value"
		sent -S "$SERVER"
		sent -S "unix://default@$SERVERS/0/redis.sock"
		REDLOCK_SERVERS=$SERVER sent
		REDLOCK_SERVERS=$NOWHERE sent -S "$SERVER"
		withheld "$of $FILE"
		withheld "$of $FILE [a]" --set a
		REDLOCK_SERVERS=$SERVER withheld "$of $FILE [a]" --set a
		unset "$variable"
	done
	# and what it has is over none of theirs
	file 'server = %s\npassword = hunter2\n' "$SERVER"
	REDLOCK_PASSWORD=wrong sent
	REDLOCK_PASSWORD_FILE=/nonexistent sent
	no_row_failed
}

@test "why a password was not used is said once where several servers want one" {
	servers_start 3
	local i why="the password of REDLOCK_PASSWORD was not used: it is for the servers of -S and REDLOCK_SERVERS"
	for i in 0 1 2; do rcli $i CONFIG SET requirepass hunter2; done
	file 'server = %s\n' "$(server_urls)"
	unset REDLOCK_SERVERS
	REDLOCK_PASSWORD=hunter2 redlock acquire --config "$FILE" "$KEY"
	expect 77 '' "redlock: $KEY: no quorum: .*NOAUTH.*: $why, and this is one of $FILE"
	[[ $stderr != *"$why"*"$why"* ]]
}

@test "no password goes to the default server, which nobody has named" {
	unshare -n true || skip "network namespaces can't be made here"
	set_new
	file 'password = hunter2\n'
	# whoever comes first has that port
	local -a listener=(unshare -n sh -c 'ip link set lo up
		: >"$0/log"
		redis-server --port 6379 --save "" --requirepass hunter2 --dir "$0" >>"$0/log" 2>&1 &
		while ! grep -q "Ready to accept" "$0/log"; do sleep 0.05; done
		"$@"; status=$?; kill $!; exit $status' "$SET")
	REDLOCK_PASSWORD=hunter2 run -77 --separate-stderr timeout -k 1 20 "${listener[@]}" "$REDLOCK" run --config "$FILE" "$KEY" true
	[[ $stderr == "redlock: $KEY: redis://127.0.0.1:6379: it requires a password (NOAUTH)"*": the password of REDLOCK_PASSWORD was not used: "* ]]
	[[ $stderr == *', and this is the default one' ]]
	run -77 --separate-stderr timeout -k 1 20 "${listener[@]}" "$REDLOCK" run --config "$FILE" "$KEY" true
	[[ $stderr == *"the password of $FILE was not used: "*', and this is the default one' ]]
	REDLOCK_PASSWORD=hunter2 run -0 --separate-stderr timeout -k 1 20 "${listener[@]}" \
		"$REDLOCK" run --config "$FILE" -S redis://127.0.0.1 "$KEY" true
}

@test "an option of another command is no mistake and changes nothing" {
	servers_start 1
	file 'kill-after = 2s\nmin-hold = 3s\nwait = 1s\nlabel = x\nttl = 45s\nquarantine = 0\n'
	ends 0
	local token=$output
	redlock extend --config "$FILE" "$KEY" "$token"
	expect 0
	redlock status --config "$FILE" -q "$KEY" "$token"
	expect 0
	redlock list --config "$FILE"
	[[ $status == 0 ]]
	redlock release --config "$FILE" "$KEY" "$token"
	expect 0
	redlock wait --config "$FILE" "$KEY"
	expect 0
	redlock break --config "$FILE" -y "$KEY"
	[[ $status == 1 ]]
}

# --- which of them counts -------------------------------------------------

@test "an option of the command line overrules what it excludes in a file" {
	servers_start 1
	hold
	file 'nonblock = yes\n'
	rcli 0 PEXPIRE "$KEY" 1500
	ends 0 -w 60s
	KEY+=-2
	hold
	file 'wait = 60s\npoll = 10ms\ntries = 1000\n'
	ends 75 -n
	file 'nonblock = yes\n'
	ends 75 --tries 2
	ends 75 --poll -w 100ms
	file 'verbose = yes\n'
	ends 75 -q -n
	[[ $stderr != *settings* ]]
}

@test "the command line's servers are over the environment's, and these over a file's" {
	file 'server = unix:///nonexistent/file\n'
	refuses 69 ': unix:///nonexistent/file: [^;]*$' acquire --config "$FILE" key
	export REDLOCK_SERVERS=unix:///nonexistent/environment
	refuses 69 ': unix:///nonexistent/environment: [^;]*$' acquire --config "$FILE" key
	refuses 69 ': unix:///nonexistent/line: [^;]*$' acquire --config "$FILE" -S unix:///nonexistent/line key
	REDLOCK_SERVERS='' refuses 69 ': unix:///nonexistent/line: [^;]*$' acquire --config "$FILE" -S unix:///nonexistent/line key
	unset REDLOCK_SERVERS
	refuses 69 ': unix:///nonexistent/file: [^;]*$' acquire --config "$FILE" key
	no_row_failed
}

@test "the user's file is in XDG_CONFIG_HOME, else in ~/.config, and --config takes its place" {
	mkdir -p "$TMP/xdg" "$TMP/home/.config"
	echo 'server = unix:///nonexistent/xdg' >"$TMP/xdg/redlock.conf"
	echo 'server = unix:///nonexistent/home' >"$TMP/home/.config/redlock.conf"
	export HOME=$TMP/home
	refuses 69 ': unix:///nonexistent/home: [^;]*$' acquire key
	XDG_CONFIG_HOME=$TMP/xdg refuses 69 ': unix:///nonexistent/xdg: [^;]*$' acquire key
	XDG_CONFIG_HOME='' refuses 69 ': unix:///nonexistent/home: [^;]*$' acquire key
	cd "$TMP"
	XDG_CONFIG_HOME=xdg refuses 69 ': unix:///nonexistent/home: [^;]*$' acquire key
	XDG_CONFIG_HOME=$TMP/none REDLOCK_SERVERS=$NOWHERE refuses 69 "$(literal "$NOWHERE")" acquire key
	echo 'server = unix:///nonexistent/file' >"$FILE"
	refuses 69 ': unix:///nonexistent/file: [^;]*$' acquire --config "$FILE" key
	echo 'tll = 5' >"$TMP/home/.config/redlock.conf"
	refuses 78 "$(literal "$TMP/home/.config/redlock.conf"):1: unknown" acquire key
	refuses 69 ': unix:///nonexistent/file: [^;]*$' acquire --config "$FILE" key
	mkfifo "$TMP/xdg/fifo"
	mv "$TMP/xdg/fifo" "$TMP/xdg/redlock.conf"
	XDG_CONFIG_HOME=$TMP/xdg refuses 78 'xdg/redlock.conf: not a regular file' acquire key
	no_row_failed
}

@test "an empty REDLOCK_SERVERS is a wrong configuration, as a script has lost its value" {
	file 'server = unix:///nonexistent/file\n[a]\nserver = unix:///nonexistent/a\n'
	export REDLOCK_SERVERS='' REDLOCK_TOKEN=token
	local command
	for command in acquire release extend status list wait break doctor; do
		refuses 78 '^redlock: REDLOCK_SERVERS is empty: name the servers, or unset it$' "$command" key
	done
	refuses 78 'REDLOCK_SERVERS is empty' run --config "$FILE" key true
	refuses 69 ': unix:///nonexistent/a: [^;]*$' run --config "$FILE" --set a key true
	refuses 69 ': unix:///nonexistent/line: [^;]*$' run -S unix:///nonexistent/line key true
	no_row_failed
}

@test "what a file may say a variable may say: over a file, and below the command line" {
	file 'ttl = 2s\nkill-after = 1900ms\nwait = 60s\nserver = unix:///nonexistent/file\n'
	local -a options=(-S "$NOWHERE")
	REDLOCK_TTL=1s figures 1000 1900 507
	REDLOCK_TTL=1s REDLOCK_KILL_AFTER=950ms figures 1000 950 266
	REDLOCK_TTL=1s REDLOCK_KILL_AFTER=950ms figures 900 950 266 -t 900ms
	REDLOCK_TTL='' figures 2000 1900 507
	servers_start 1
	REDLOCK_LABEL=named REDLOCK_TTL=45s redlock acquire --format json "$KEY"
	expect 0 '.*"ttl_ms":45000,.*'
	redlock status "$KEY"
	[[ $status == 0 && $output == *"'named'"* ]]
	# what excludes another place's word overrules it, as in files
	REDLOCK_NONBLOCK=yes ends 75
	REDLOCK_NONBLOCK=yes ends 75 -w 50ms
	REDLOCK_WAIT=50ms ends 75
	[[ $stderr != *'still waiting'* ]]
	no_row_failed
}

@test "a variable that is wrong is named, for every command" {
	export REDLOCK_SERVERS=$NOWHERE REDLOCK_TOKEN=token
	local command
	for command in acquire release extend status list wait break doctor; do
		REDLOCK_TTL=5x refuses 78 "^redlock: REDLOCK_TTL '5x' is not a DURATION" "$command" key
	done
	REDLOCK_TRIES=0 refuses 78 "REDLOCK_TRIES '0' is not a number" acquire key
	REDLOCK_NONBLOCK=1 refuses 78 "REDLOCK_NONBLOCK '1' is not yes or no" acquire key
	REDLOCK_ON_LOST=keep refuses 78 "REDLOCK_ON_LOST 'keep' is not kill, kill-group, warn" run key true
	REDLOCK_WAIT=5 REDLOCK_NONBLOCK=yes refuses 78 'REDLOCK_(WAIT|NONBLOCK) cannot be used with REDLOCK_(WAIT|NONBLOCK)$' acquire key
	REDLOCK_WAIT=0 REDLOCK_NONBLOCK=no refuses 69 nonexistent acquire key
	no_row_failed
}

# ignores NAME=VALUE PATTERN: what is said of it, once, and what -q does not say.
ignores() {
	run --separate-stderr timeout -k 1 20 env "$1" "$REDLOCK" acquire -S "$NOWHERE" key
	[[ $status == 69 && ${#stderr_lines[@]} == 2 && ${stderr_lines[0]} =~ ^redlock:\ ${1%%=*}\ is\ ignored$2$ ]] ||
		{ echo "$1: $stderr" >&2 && ((++failed_rows)); }
	[[ $stderr != *hunter2* ]]
	run --separate-stderr timeout -k 1 20 env "$1" "$REDLOCK" acquire -q -S "$NOWHERE" key
	[[ $status == 69 && ${#stderr_lines[@]} == 1 ]]
}

@test "a variable that redlock does not know is pointed out, with the nearest name" {
	ignores REDLOCK_SERVER=redis://:hunter2@a ': did you mean REDLOCK_SERVERS\?'
	ignores REDLOCK_PASWORD=hunter2 ': did you mean REDLOCK_PASSWORD\?'
	ignores REDLOCK_KEYFILE=a ': did you mean REDLOCK_KEY_FILE\?'
	ignores REDLOCK_TTLL=5 ': did you mean REDLOCK_TTL\?'
	ignores REDLOCK_TTl=5 ': did you mean REDLOCK_TTL\?'
	ignores REDLOCK_kill_after=5 ': did you mean REDLOCK_KILL_AFTER\?'
	ignores REDLOCK_TIMEOUT=5 ': did you mean REDLOCK_WAIT .* or REDLOCK_SERVER_TIMEOUT .*\?'
	ignores REDLOCK_NB=yes ': did you mean REDLOCK_NONBLOCK\?'
	ignores REDLOCK_URL=redis://a ': did you mean REDLOCK_SERVERS\?'
	ignores REDLOCK_LEASE=5 ': did you mean REDLOCK_TTL\?'
	ignores REDLOCK_SHARED=yes ': --shared is for the command line only'
	ignores REDLOCK_INSECURE=yes ': --insecure is for the command line and files only'
	ignores REDLOCK_FROBNICATE=hunter2 ', as it is no setting of redlock: see ENVIRONMENT in redlock\(1\)'
	ignores REDLOCK_PLACE=1 ', as it is no setting of redlock: .*'
	ignores REDLOCK_= ', as it is no setting of redlock: .*'
	ignores "REDLOCK_$(repeat X 5000)=1" ', as it is no setting of redlock: .*'
	no_row_failed
}

@test "what redlock sets itself, and Kubernetes for a service called redlock, is known" {
	local name
	for name in KEY TOKEN FENCE FENCES SLOT HELD UNLOCKED VALID_UNTIL SERVICE_HOST SERVICE_PORT SERVICE_PORT_REDIS \
		MASTER_SERVICE_HOST PORT_6379_TCP PORT_6379_TCP_ADDR PORT; do
		run --separate-stderr timeout -k 1 20 env "REDLOCK_$name=tcp://10.0.0.1:6379" "$REDLOCK" acquire -S "$NOWHERE" key
		[[ $status == 69 && ${#stderr_lines[@]} == 1 ]] || { echo "$name: $stderr" >&2 && ((++failed_rows)); }
	done
	servers_start 1
	redlock run "$KEY" "$REDLOCK" run "$KEY-2" true
	expect 0
	no_row_failed
}

@test "doctor and -v say where each setting is from, and no secret" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	mkdir "$TMP/xdg"
	file 'ttl = 20s\nwait = 5s\n[a]\nlabel = x\nserver = %s\npassword = hunter2\n' "$REDLOCK_SERVERS"
	cp "$FILE" "$TMP/xdg/redlock.conf"
	export XDG_CONFIG_HOME=$TMP/xdg REDLOCK_PASSWORD=hunter2 REDLOCK_MAX_TTL=1m
	redlock doctor --quarantine 0
	[[ $status == 0 && ${lines[0]} == "settings: server from REDLOCK_SERVERS, password from REDLOCK_PASSWORD, ttl from $XDG_CONFIG_HOME/redlock.conf:1, wait from $XDG_CONFIG_HOME/redlock.conf:2, quarantine from the command line, max-ttl from REDLOCK_MAX_TTL" ]]
	redlock doctor --config "$FILE" --set a -t 3s
	[[ $status == 0 && ${lines[0]} == "settings: server from $FILE:5, password from $FILE:6, ttl from the command line, wait from $FILE:2, max-ttl from REDLOCK_MAX_TTL, label from $FILE:4" ]]
	redlock doctor -q
	[[ $status == 0 && $output != *settings* ]]
	redlock doctor --format json
	python3 - "$output" "$XDG_CONFIG_HOME/redlock.conf:1" <<-'END'
		import json, sys
		assert json.loads(sys.argv[1])["settings"] == {"server": "REDLOCK_SERVERS", "password": "REDLOCK_PASSWORD",
			"ttl": sys.argv[2], "wait": sys.argv[2][:-1] + "2", "max-ttl": "REDLOCK_MAX_TTL"}
	END
	redlock run -v -S "$(server_url 0)" "$KEY" true
	[[ $status == 0 && $stderr == *"s: settings: server from the command line, password from REDLOCK_PASSWORD, ttl from $XDG_CONFIG_HOME/redlock.conf:1, wait from $XDG_CONFIG_HOME/redlock.conf:2, max-ttl from REDLOCK_MAX_TTL, verbose from the command line"$'\n'* ]]
	[[ $stderr != *hunter2* ]]
}

# sample NAME: a value of this setting; and what it needs besides, a line of a file each.
sample() {
	case $1 in
	server) echo "$NOWHERE" ;;
	cert) printf '%s\n' "$TMP/a.pem" "key-file = $TMP/a.pem" "server = rediss://127.0.0.1:1" ;;
	key-file) printf '%s\n' "$TMP/a.pem" "cert = $TMP/a.pem" "server = rediss://127.0.0.1:1" ;;
	cacert | crl) printf '%s\n' "$TMP/a.pem" "server = rediss://127.0.0.1:1" ;;
	sni) printf '%s\n' host "server = rediss://127.0.0.1:1" ;;
	insecure) printf '%s\n' yes "server = rediss://127.0.0.1:1" ;;
	password | sentinel-password) printf '%s\n' hunter2 "server = $NOWHERE" ;;
	password-file | sentinel-password-file) printf '%s\n' "$TMP/a.pem" "server = $NOWHERE" ;;
	server-timeout | ttl | wait | max-ttl | quarantine | min-hold | max-hold | remember | poll) echo 30s ;;
	kill-after) echo 1s ;;
	tries | replicas) echo 3 ;;
	accept) echo rights ;;
	label) echo text ;;
	on-lost) echo warn ;;
	unreachable) echo run ;;
	nonblock | syslog | verbose) echo yes ;;
	*) echo "no sample of $1" >&2 && return 1 ;;
	esac
}

# is_from WHERE NAME ARGUMENT...: redlock says so, by -v or as doctor does.
is_from() {
	local where=$1 name=$2
	shift 2
	run --separate-stderr timeout -k 1 60 "$REDLOCK" "$@"
	[[ "$output, $stderr, " == *" $name from $where"[,$'\n']* ]] ||
		{ echo "$name: not from $where: $*: $output $stderr" >&2 && ((++failed_rows)); }
}

@test "each setting is taken from a file, a variable and the command line, the last one first, and doctor and -v say so" {
	local name variable command value rest names doctor
	echo hunter2 >"$TMP/a.pem"
	chmod 600 "$TMP/a.pem"
	mkdir "$TMP/xdg"
	export XDG_CONFIG_HOME=$TMP/xdg
	mapfile -t names < <(sed -n '/^\.Ss Settings/,/^\.Ss Server/s/^\.It Li \([a-z-]*\)$/\1/p' "$ROOT/man/redlock.conf.5")
	((${#names[@]} > 25))
	for name in "${names[@]}"; do
		sample "$name" >"$TMP/sample"
		{ read -r value && rest=$(cat); } <"$TMP/sample"
		printf '%s\n' "$name = $value" "$rest" >"$XDG_CONFIG_HOME/redlock.conf"
		chmod 600 "$XDG_CONFIG_HOME/redlock.conf"
		variable=REDLOCK_${name^^}
		variable=${variable//-/_}
		[[ $name != server ]] || variable+=S
		# a certificate that is none ends it before it says more
		doctor=(doctor)
		[[ $rest != *rediss:* ]] || doctor+=(-v)
		# the command that takes it, or any
		for command in status release extend wait doctor run; do
			[[ $("$REDLOCK" "$command" --help=all) != *"--$name"[\ =,[]* ]] || break
		done
		local words=("$command" -v)
		[[ $name != verbose ]] || words=("$command")
		local tail=(key)
		[[ $command != release ]] || tail+=(token)
		[[ $command != extend ]] || tail+=(token)
		[[ $command != run ]] || tail+=(true)
		is_from "$XDG_CONFIG_HOME/redlock.conf:1" "$name" "${words[@]}" "${tail[@]}"
		is_from "$XDG_CONFIG_HOME/redlock.conf:1" "$name" "${doctor[@]}"
		[[ $name != insecure ]] || continue
		export "$variable=$value"
		if [[ $name == *password* ]]; then
			# it is for the servers of the environment only
			is_from "$XDG_CONFIG_HOME/redlock.conf:1" "$name" "${words[@]}" "${tail[@]}"
			REDLOCK_SERVERS=$NOWHERE is_from "$variable" "$name" "${words[@]}" "${tail[@]}"
			REDLOCK_SERVERS=$NOWHERE is_from "$variable" "$name" "${doctor[@]}"
		else
			is_from "$variable" "$name" "${words[@]}" "${tail[@]}"
			is_from "$variable" "$name" "${doctor[@]}"
		fi
		if [[ $("$REDLOCK" "$command" --help=all) == *"--$name"[\ =,[]* ]]; then
			[[ $value != yes ]] || value=
			is_from 'the command line' "$name" "${words[@]}" -S rediss://127.0.0.1:1 "--$name${value:+=$value}" "${tail[@]}"
		fi
		unset "$variable"
	done
	no_row_failed
}

# system_file: from now on ${SYSTEM[@]} COMMAND... runs where /etc/redlock.conf is $TMP/system, of
# which each call makes a copy.
system_file() {
	mkdir -p "$TMP/etc"
	find /etc -maxdepth 1 -type f -readable -exec cp -t "$TMP/etc" {} +
	SYSTEM=("${MOUNTS[@]}" sh -c 'cp "$0/system" "$0/etc/redlock.conf" && mount --bind "$0/etc" /etc && exec "$@"' "$TMP")
	"${SYSTEM[@]}" true || skip "mounts can't be made here"
}

@test "the user's file is over the system's, option by option" {
	: >"$TMP/system"
	system_file
	printf 'ttl = 1s\nkill-after = 900ms\nserver-timeout = 100ms\nserver = unix:///nonexistent/system\n' >"$TMP/system"
	mkdir "$TMP/xdg"
	TRACER=("${SYSTEM[@]}")
	refuses 78 'of 1000 ms .* 900 --kill-after .* 2 x 100 --server-timeout' run key true
	refuses 69 ': unix:///nonexistent/system: [^;]*$' acquire key
	export XDG_CONFIG_HOME=$TMP/xdg
	printf 'server-timeout = 300ms\nserver = unix:///nonexistent/user\n' >"$TMP/xdg/redlock.conf"
	refuses 78 'of 1000 ms .* 900 --kill-after .* 2 x 300 --server-timeout' run key true
	refuses 69 ': unix:///nonexistent/user: [^;]*$' acquire key
	# --config is instead of both
	echo 'server = unix:///nonexistent/file' >"$FILE"
	refuses 69 ': unix:///nonexistent/file: [^;]*$' run --config "$FILE" key true
	echo 'tll = 5' >"$TMP/system"
	refuses 78 '^redlock: /etc/redlock.conf:1: unknown' acquire key
	# what excludes an option is overruled like it
	printf 'nonblock = yes\n[a]\nserver = unix:///nonexistent/system\nserver-timeout = 100ms\n' >"$TMP/system"
	echo "wait = $((50 * SLOW))ms" >"$TMP/xdg/redlock.conf"
	redlock_there() { run --separate-stderr "${SYSTEM[@]}" "$REDLOCK" "$@"; }
	redlock_there acquire -S "$NOWHERE" key
	[[ $status == 69 && $stderr == *'still waiting'* ]]
	printf 'wait = 50ms\nserver-timeout = 300ms\n[a]\nttl = 1s\nkill-after = 900ms\n' >"$TMP/xdg/redlock.conf"
	refuses 69 ': unix:///nonexistent/system: [^;]*$' extend --set a key token
	refuses 78 'of 1000 ms .* 900 --kill-after .* 2 x 100 --server-timeout' run --set a key true
	printf '[a]\nserver = unix:///nonexistent/user\n' >"$TMP/xdg/redlock.conf"
	refuses 69 ': unix:///nonexistent/user: [^;]*$' extend --set a key token
	refuses 78 "--set 'c': no configuration file has this section: $(literal "$TMP/xdg/redlock.conf"), /etc/redlock.conf$" \
		status --set c key
	no_row_failed
}

@test "a user's nonblock = no takes that of the system back" {
	printf 'nonblock = yes\n' >"$TMP/system"
	system_file
	servers_start 1
	hold
	mkdir "$TMP/xdg"
	export XDG_CONFIG_HOME=$TMP/xdg
	printf 'nonblock = no\n' >"$TMP/xdg/redlock.conf"
	rcli 0 PEXPIRE "$KEY" 1500
	run --separate-stderr "${SYSTEM[@]}" "$REDLOCK" acquire "$KEY"
	[[ $status == 0 ]]
	run --separate-stderr "${SYSTEM[@]}" "$REDLOCK" acquire --config "$TMP/system" "$KEY"
	[[ $status == 75 ]]
	# and leaves what nonblock would have excluded
	printf 'wait = 50ms\n' >"$TMP/system"
	run --separate-stderr "${SYSTEM[@]}" "$REDLOCK" acquire "$KEY"
	[[ $status == 75 ]]
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "who runs with more rights than the caller reads no file of the caller's choice" {
	reachable
	echo 'tll = 5' >"$SET/redlock.conf"
	chmod 644 "$SET/redlock.conf"
	export XDG_CONFIG_HOME=$SET REDLOCK_SERVERS=$NOWHERE
	TRACER=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	refuses 78 'redlock.conf:1: unknown' acquire key
	chmod u+s "$SET/redlock"
	install -m 4755 "$(command -v id)" "$SET/id"
	[[ $("${TRACER[@]}" "$SET/id" -u) == 0 ]] || skip "there are no set-user-ID programs here"
	refuses 69 "$(literal "$NOWHERE")" acquire key
	no_row_failed
}

@test "without a file there are two opens and two looks, and no look-up of the user" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 REDLOCK_SERVERS=$NOWHERE
	TRACER=(strace -f -qq -o "$TMP/trace" -e trace=%file)
	refuses 69 "$(literal "$NOWHERE")" acquire key
	grep redlock.conf "$TMP/trace" | grep -v execve >"$TMP/opens"
	[[ $(wc -l <"$TMP/opens") == 4 && $(grep -c ENOENT "$TMP/opens") == 4 ]]
	[[ ! $(grep -E 'passwd|nsswitch' "$TMP/trace") ]]
	# where there is no HOME, the home is looked up
	TRACER=(env -u HOME "${TRACER[@]}")
	refuses 69 "$(literal "$NOWHERE")" acquire key
	grep -qF "\"$(getent passwd "$(id -u)" | cut -d : -f 6)/.config/redlock.conf\"" "$TMP/trace"
	refuses 69 "$(literal "$NOWHERE")" acquire --config /dev/null key
	[[ ! $(grep -E '/redlock.conf|passwd|nsswitch' "$TMP/trace") ]]
	no_row_failed
}

@test "help needs no file" {
	mkdir "$TMP/.config"
	echo 'tll = 5' >"$TMP/.config/redlock.conf"
	export HOME=$TMP
	local how
	for how in help --version '--help' 'run --help' 'run --config /nonexistent --help' 'help run'; do
		# shellcheck disable=SC2086 # words
		redlock $how
		[[ $status == 0 && $stderr == '' ]]
	done
}

# --- server sets ----------------------------------------------------------

@test "--set NAME takes the servers of [NAME], over the environment, for every command" {
	file 'server = unix:///nonexistent/main\n[a]\nserver = unix:///nonexistent/a\n[b]\nserver = unix:///nonexistent/b\n'
	export REDLOCK_TOKEN=token
	local command
	for command in acquire release extend list wait 'break -y'; do
		# shellcheck disable=SC2086 # words
		refuses 69 ': unix:///nonexistent/b: [^;]*$' $command --config "$FILE" --set b key
	done
	redlock status --config "$FILE" --set a key
	[[ $status == 69 && $stderr == *nonexistent/a:* ]]
	refuses 69 ': unix:///nonexistent/a: [^;]*$' run --config "$FILE" --set a key true
	refuses 69 ': unix:///nonexistent/main: [^;]*$' run --config "$FILE" key true
	REDLOCK_SERVERS=$NOWHERE refuses 69 ': unix:///nonexistent/a: [^;]*$' run --config "$FILE" --set a key true
	REDLOCK_SERVERS=nonsense refuses 69 ': unix:///nonexistent/a: [^;]*$' run --config "$FILE" --set a key true
	no_row_failed
}

@test "what else is in a set's section is over what stands before the sections" {
	file 'ttl = 1s\nkill-after = 900ms\nnonblock = yes\n[a]\nserver = %s\nkill-after = 950ms\nwait = 1s\n' "$NOWHERE"
	figures 1000 950 266 --set a
	figures 1000 900 254
	figures 1000 970 271 --set a -k 970ms
	no_row_failed
}

@test "a set's password is for its servers, over that of the environment" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	unset REDLOCK_SERVERS
	file 'password = wrong\n[a]\nserver = %s\npassword = hunter2\n[b]\nserver = %s\n' "$(server_url 0)" "$(server_url 0)"
	REDLOCK_PASSWORD=wrong REDLOCK_PASSWORD_FILE=/nonexistent ends 0 --set a
	REDLOCK_PASSWORD=hunter2 ends 77 --set b
}

@test "a set's password is for its servers, be they unencrypted and REDLOCK_SERVERS all TLS" {
	servers_start_tcp 1
	local url login secret
	local -a set=(--config "$FILE" --set a)
	url=$(server_url 0)
	rcli 0 ACL SETUSER bob on '>hunter2' '~*' '&*' +@all
	rcli 0 CONFIG SET requirepass hunter2
	echo hunter2 >"$TMP/secret"
	export REDLOCK_SERVERS=rediss://other REDLOCK_PASSWORD=wrong
	for login in '' bob@; do
		for secret in "password = hunter2" "password-file = $TMP/secret"; do
			file '[a]\nserver = %s\n%s\n' "redis://$login${url#redis://}" "$secret"
			redlock run "${set[@]}" "$KEY" echo ran
			expect 0 ran
			redlock list "${set[@]}"
			expect 0
			redlock doctor "${set[@]}"
			[[ $status == 0 && $output == *': ok, '* ]]
		done
	done
}

@test "a password is not shown to others where the command line of the calling script has it" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	# shellcheck disable=SC2016
	sh -c 'REDLOCK_PASSWORD=hunter2 "$REDLOCK" acquire "$1"; true' sh "$KEY" ||
		true
	REDLOCK_PASSWORD=hunter2 redlock run -n "$KEY" -- true
	[[ $status == 75 && $stderr == *"REDLOCK_PASSWORD=*** "* ]]
	[[ $stderr != *hunter2* ]]
	rcli_says=$(REDISCLI_AUTH=hunter2 rcli 0 HGETALL "{$KEY}:redlock")
	[[ -n $rcli_says && $rcli_says != *hunter2* ]]
}

@test "a set that is in no file is a wrong configuration; a near miss is told what was meant" {
	file 'ttl = 5s\n[prod]\nserver = unix:///a\n[empty]\nttl = 5s\n'
	refuses 78 "--set 'prdo': no configuration file has this section: $(literal "$FILE"): did you mean prod\?" \
		status --config "$FILE" --set prdo key
	refuses 78 "--set 'x': no configuration file has this section: $(literal "$FILE")$" acquire --config "$FILE" --set x key
	refuses 78 "--set 'x': no configuration file has this section$" acquire --set x key
	refuses 78 "--set 'empty': \[empty\] has no server" acquire --config "$FILE" --set empty key
	refuses 78 "a\\\\n\\\\e\[31m" acquire --config "$FILE" --set $'a\n\e[31m' key
	no_row_failed
}

@test "a set's name of any length is compared with sections of any length" {
	local name length
	name=$(printf '%064d' 0)
	file '[%s]\nserver = unix:///a\n' "$name"
	for length in 1 31 32 33 62 63; do
		refuses 78 "--set '0{$length}': no configuration file has this section: $(literal "$FILE")" \
			status --config "$FILE" --set "${name:0:length}" key
	done
	refuses 78 "did you mean $name\?" status --config "$FILE" --set "${name:0:62}" key
	refuses 78 "--set '0{64}\.\.\.': no" status --config "$FILE" --set "${name}00" key
	no_row_failed
}

# --- what is said of it ---------------------------------------------------

@test "redlock.conf(5) names every option, as one that a file has or as one that it has not" {
	local name manual=$ROOT/man/redlock.conf.5
	for name in $(for command in run acquire release extend status list history check wait break doctor; do
		"$REDLOCK" "$command" --help=all
	done | grep -oE -- '--[a-z-]+' | cut -c 3- | sort -u) password password-file; do
		if [[ " ${REFUSED[*]} " == *" $name "* ]]; then
			grep -qE "^\\.Fl -?.*\\b$name\\b" "$manual"
		else
			grep -qE "^\\.(It )?Li $name\\b" "$manual"
		fi || { echo "$name" >&2 && ((++failed_rows)); }
	done
	no_row_failed
}

@test "every section of the example of redlock.conf(5) is used by a test" {
	local name
	conf_example ''
	for name in $(sed -n 's/^\[\(.*\)\]$/\1/p' "$FILE"); do
		grep -q -e '--config "$TMP/redlock.conf" --set '"$name" "$ROOT"/test/*/*.bats || { echo "$name" >&2 && ((++failed_rows)); }
	done
	[[ $name ]]
	no_row_failed
}

@test "the example of redlock.conf(5): a lock of the fleet is on three servers, with a lease of 60 s" {
	local url i=0
	servers_start 3
	for url in ${REDLOCK_SERVERS//,/ }; do echo "s|redis://lock$((++i))\$|$url|"; done >"$TMP/sed"
	unset REDLOCK_SERVERS
	conf_example "$(<"$TMP/sed")"
	redlock acquire -n --config "$TMP/redlock.conf" --quarantine 0 --format json "$KEY"
	[[ $status == 0 && $output == *'"ttl_ms":60000,'* ]]
	wait_until '(($(servers_with 1 EXISTS "$KEY") == 3))'
}

@test "the example of redlock.conf(5): the cloud's server is reached over TLS, by its authority" {
	local host=127.$((RANDOM % 200 + 20)).$((RANDOM % 256)).1
	CERTS=$TMP
	authority ca
	certificate_of "$TMP/server" "IP:$host"
	set_new
	set_serves redis-server --bind "$host" --port 0 --tls-port 6380 --save '' --dir "$SET" --tls-auth-clients no \
		--tls-cert-file "$TMP/server.pem" --tls-key-file "$TMP/server.key" --tls-ca-cert-file "$TMP/ca.pem"
	wait_until "(: </dev/tcp/$host/6380)"
	conf_example "s|locks\.example|$host|; s|/etc/redlock/ca\.pem|$TMP/ca.pem|"
	redlock run --config "$TMP/redlock.conf" --set cloud --server-timeout 5s "$KEY" echo ran
	expect 0 ran
}

@test "the example of redlock.conf(5): a password may contain a blank and a number sign" {
	servers_start 1
	conf_example "s|redis://127\.0\.0\.1:6380|$REDLOCK_SERVERS|"
	rcli 0 CONFIG SET requirepass 'pa#ss word'
	redlock run --config "$TMP/redlock.conf" --set lab "$KEY" echo ran
	expect 0 ran
}

# completes WORD...: what bash makes of the last WORD.
completes() {
	bash -c '
		compopt() { :; }
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$* COMP_POINT=${#COMP_LINE}
		_redlock
		printf "%s\n" "${COMPREPLY[@]}"
	' "$ROOT/scripts/redlock.bash-completion" "$REDLOCK" "$@" | sort | xargs
}

@test "the completion knows --config, --set and the sections" {
	file '[prod]\n [ lab ] \n#[no]\nttl = [x]\n[precious]\n'
	[[ $(completes run --config "$TMP/redlock.c") == "$FILE" ]]
	[[ $(completes run --config "$FILE" --set p) == 'precious prod' ]]
	[[ $(completes acquire --config="$FILE" --set '') == 'lab precious prod' ]]
	[[ $(XDG_CONFIG_HOME=$TMP completes run --set pro) == prod ]]
	[[ $(completes run --confi) == --config && $(completes list --set) == --set ]]
	[[ $(completes run --insecure --cacert "$TMP/redlock.c") == "$FILE" && $(completes wait --key) == --key-file ]]
}
