#!/usr/bin/env bats
# What a new user types, used to flock, timeout, consul lock, redis-cli and cron: each mistake is told
# in one line that names it and says what to do, before anything has run.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for inner shells; tests are subshells; cli.bash uses it; helpers set variables

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start_tcp 2
	rcli 1 CONFIG SET requirepass hunter2
	mkdir "$BATS_FILE_TMPDIR/bin"
	printf '#!/bin/sh\nexec %q "$@"\n' "$REDLOCK" >"$BATS_FILE_TMPDIR/bin/redlock"
	chmod +x "$BATS_FILE_TMPDIR/bin/redlock"
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	PATH=$BATS_FILE_TMPDIR/bin:$PATH
	export REDLOCK_SERVERS URL GUARDED
	URL=$(server_url 0) GUARDED=$(server_url 1)
	REDLOCK_SERVERS=$URL
	unset REDLOCK_TOKEN
	cd "$TMP" || return
}

# told <ROWS: each row is STATUS|PATTERN|COMMAND LINE: bash ends so, with that one line on standard error,
# which the extended regular expression fits, and nothing on standard output. Rows that are not so are
# shown and counted.
told() {
	local wanted pattern line got text
	while IFS='|' read -r wanted pattern line; do
		got=0
		text=$(timeout -k 1 $((60 * SLOW)) bash -c "$line" 2>&1 </dev/null) || got=$?
		[[ $got != "$wanted" || $text == *$'\n'* || ! $text =~ ^redlock:.*$pattern ]] || continue
		((++failed_rows))
		printf '%s\n    status %s, not %s; not like /%s/:\n    %s\n' "$line" "$got" "$wanted" "$pattern" "$text" >&2
	done
}

@test "a wrong COMMAND of redlock's names the right one" {
	told <<-'ROWS'
		64|a command is missing: see redlock help|redlock
		64|'lock': did you mean run, or acquire\?|redlock lock deploy -- true
		64|'rnu': did you mean run\?|redlock rnu k true
		64|'RUN': did you mean run\?|redlock RUN k true
		64|'aquire': did you mean acquire\?|redlock aquire k
		64|'unlock': did you mean release\?|redlock unlock k
		64|'ttl': did you mean status, or extend\?|redlock ttl k
		64|'expire': did you mean extend\?|redlock expire k 60
		64|'exists': did you mean status -q\?|redlock exists k
		64|'scan': did you mean list\?|redlock scan 0
		64|'redlock': see redlock help|redlock redlock run k true
		64|'nightly': did you mean redlock run nightly|redlock nightly report.sh
		64|'/tmp/k.lock': did you mean redlock run /tmp/k.lock|redlock /tmp/k.lock ls
		64|'-n' stands before the command|redlock -n /tmp/k.lock ls
		64|--version: one argument too many: 'x'|redlock --version x
		64|-V: one argument too many: 'run'|redlock -V run k true
		64|help: one argument too many: 'k'|redlock help run k
		64|unknown command 'rn': did you mean run|redlock help rn
	ROWS
	no_row_failed
}

@test "an option that is wrong, misplaced or of another program is told in our words" {
	told <<-'ROWS'
		64|KEY is missing|redlock run
		64|COMMAND is missing: 'k' is KEY|redlock run k
		64|COMMAND is missing: 'true' is KEY|redlock run $UNSET true
		64|KEY is empty|redlock run "$UNSET" true
		64|options come before KEY: '-n'|redlock run k -n true
		64|options come before KEY: '-c'|redlock run -n k -c true
		64|options come before KEY: '--ttl=60'|redlock run k --ttl=60 true
		64|-h means help|redlock run -h 127.0.0.1 -p 6379 k true
		64|'--nonblocking': did you mean --nonblock\?|redlock run --nonblocking k true
		64|'--NONBLOCK': did you mean --nonblock\?|redlock run --NONBLOCK k true
		64|'--once': did you mean --once-in\?|redlock run --once 20h k true
		64|'--retry-count': did you mean --tries\?|redlock run --retry-count 3 k true
		64|unknown option '--no-fork', which is not needed: COMMAND never inherits the lock:|redlock run --no-fork k true
		64|FENCE '-1' must be a number from 1|redlock fence file -1
		64|unknown option '--max' \(put -- before a FILE that begins with '-'\)|redlock fence --max file 1
		64|unknown option '--heartbeat', which is not needed: run does so anyway:|redlock run --heartbeat 5 k true
		64|unknown option '--foreground', which is not needed: run does so anyway:|redlock run --foreground k true
		64|'--env' \(put -- before a KEY|redlock run --env A=1 k true
		64|'--all' \(put -- before a KEY|redlock list --all
		64|'-ttl' has one dash|redlock run -ttl 60 k true
		64|'-wait' has one dash|redlock run -wait 60 k true
		64|option '--tt' could be --ttl|redlock run --tt 60 k true
		64|-n takes no value|redlock run -n=3 k true
		64|-n takes no value|redlock run -qn=3 k true
		64|-t '=60s' is not a DURATION|redlock run -t=60s k true
		64|'–n' begins with a dash that is not '-'|redlock run –n k true
		64|'—ttl' begins with a dash|redlock acquire —ttl 60 k
		64|'−w' begins with a dash|redlock run −w 60 k true
		64|-n cannot be used with -w|redlock run -nw 5 k true
		64|-s cannot be used with -P|redlock run -P 3 -s k true
		64|-q cannot be used with -v|redlock run -q -v k true
		64|option -v is given twice|redlock run -vv k true
		64|-E 'k' is not a number|redlock run -E k true
		64|-E '300' is not a number from 0 to 255|redlock run -E 300 k true
		64|-P 'k' is not a number|redlock run -P k true
		64|-P '0' is not a number from 1|redlock run -P 0 k true
		64|-w 'k' is not a DURATION|redlock run -w k true
		64|-w 'forever' is not a DURATION|redlock run -w forever k true
		64|-t '60000' is not clear: 60000ms or 60000s\?|redlock run -t 60000 k true
		64|-t '1hour' is not a DURATION|redlock run -t 1hour k true
		64|-t '5M' is not a DURATION|redlock run -t 5M k true
		64|-t '60s,' is not a DURATION|redlock run -t 60s, k true
		64|too short to stop its holder in time|redlock run -t 100ms k true
		64|too short to stop its holder in time|redlock run -k 60 k true
		64|longer than --max-hold|redlock run --min-hold 1h --max-hold 1m k true
		64|--poll takes a time after '='|redlock run --poll 5 k true
		64|--on-lost 'ignore' is not kill, kill-group, warn|redlock run --on-lost ignore k true
		64|--status-fd 'out.json' is not the number|redlock run --status-fd out.json k true
		64|both -c and COMMAND 'hi'|redlock run -c echo k hi
		64|redlock run KEY COMMAND holds KEY|redlock acquire k -- true
		64|option '-n' is for other commands|redlock wait -n k
		64|unknown option '-p': did you mean -S|redlock run -p 6379 k true
		64|put PATTERN in quotes|touch a b; redlock list *
	ROWS
	no_row_failed
}

@test "a server that is written wrong is told what is wrong with it" {
	told <<-'ROWS'
		64|a URL is redis://host:port|redlock run -S k true
		64|a URL is redis://host:port|redlock run -S localhost:6379 k true
		64|a URL is redis://host:port|redlock run -S http://localhost k true
		64|a URL is redis://host:port|redlock run -S redis:/localhost k true
		64|a URL is redis://host:port|redlock run -S sentinel://localhost/main k true
		64|a URL is redis://host:port|redlock run -S /run/redis.sock k true
		64|a socket is unix:///path|redlock run -S redis:///run/redis.sock k true
		64|a socket's path starts with '/'|redlock run -S unix://redis.sock k true
		64|separate servers by commas, not ';'|redlock run -S "redis://a;redis://b" k true
		64|separate servers by commas, not ';'|redlock run -S "redis://a/0;redis://b/0" k true
		64|separate servers by commas, not ';'|redlock run -S "unix:///a;unix:///b" k true
		64|separate servers by commas, not ';'|redlock run -S "unix:///a;rediss://b" k true
		64|separate servers by commas, not ';'|redlock run -S "unix:///a?db=1;unix://u:p@/b" k true
		69|No such file or directory|redlock run -S "unix:///a;b" k true
		64|blanks: separate servers by commas|redlock run -S "redis://a redis://b" k true
		64|an empty server address: is there a comma too many, or a blank|redlock run -S redis://a, redis://b k true
		64|'redis://b' stands where KEY belongs|redlock run -S redis://a redis://b k true
		64|'rediss\+cluster://b' stands where KEY belongs|redlock run -S redis://a rediss+cluster://b k true
		64|'rediss\+sentinel://b\.\.\.' stands where KEY belongs|redlock run rediss+sentinel://b/m k true
		64|--also 'redis://b\.\.\.' is not a KEY, but the URL of a server: put -S before it|redlock run --also redis://:pw@b k true
		64|write the URL without quotes|redlock run -S '"redis://a"' k true
		78|REDLOCK_SERVERS: .* write the URL without quotes|REDLOCK_SERVERS=\'redis://a\' redlock run k true
		64|the port is not a number|redlock run -S redis://a:637900 k true
		64|'\?' cannot follow this: a database is redis://host:port/N|redlock run -S redis://a?db=1 k true
		64|'\?' cannot follow this|redlock run -S redis://a/0?timeout=5 k true
		64|the database is not a number|redlock run -S redis://a/db1 k true
		64|the master's name is missing: redis\+sentinel://host:port/name|redlock run -S redis+sentinel://a k true
		64|the master's name is missing: rediss\+sentinel://host:port/name|redlock run -S rediss+sentinel://a k true
		64|is for rediss:// servers|redlock run --cacert ca.pem k true
		78|REDLOCK_SERVERS is empty|REDLOCK_SERVERS= redlock run k true
		78|named twice|redlock run -S $URL,$URL k true
		78|are the same server: name it only once|redlock run -S $URL,$URL/1 k true
		78|it does not have this database|redlock run -S $URL/99 k true
		69|Name or service not known: is it up|redlock run -S redis://nosuchhost.invalid k true
		69|No such file or directory: is it up|redlock run -S unix:///nope.sock k true
		69|Connection refused: is it up|redlock run -n -S redis://127.0.0.1:1 k true
		69|it is not a Sentinel: use redis:// for a single server|redlock run -n -S ${URL/redis:/redis+sentinel:}/main k true
		69|TLS.* \(is it redis://\?\)|redlock run -n --server-timeout 300ms -S ${URL/redis:/rediss:} k true
	ROWS
	no_row_failed
}

@test "a server where a FILE belongs is an error, and its password is not shown" {
	local option url=redis://:hunter2@h
	for option in config cacert crl cert key-file; do
		redlock run --$option $url k true
		expect 64 '' "redlock: run: --$option 'redis://h\.\.\.' is not a FILE, but the URL of a server"
	done
	redlock list --format prometheus --output $url
	expect 64 '' "redlock: list: --output 'redis://h\.\.\.' is not a FILE, but the URL of a server"
	redlock fence $url 5
	expect 64 '' "redlock: fence: FILE 'redis://h\.\.\.' is the URL of a server: see redlock fence --help"
	REDLOCK_CACERT=$url redlock run k true
	expect 78 '' "redlock: REDLOCK_CACERT 'redis://h\.\.\.' is not a FILE, but the URL of a server"
	REDLOCK_PASSWORD_FILE=$url redlock run k true
	expect 78 '' 'redlock: REDLOCK_PASSWORD_FILE: redis://h\.\.\.: No such file or directory'
	echo "password-file = $url" >file.conf
	redlock run --config file.conf k true
	expect 78 '' "redlock: file\.conf:1: password-file 'redis://h\.\.\.' is not a FILE, but the URL of a server"
}

@test "a server that wants TLS is told of when it hangs up" {
	local port
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost 2>/dev/null
	for _ in {1..50}; do
		port=$((10000 + RANDOM % 20000))
		[[ $(rcli 0 CONFIG SET tls-port $port tls-auth-clients no tls-cert-file "$TMP/cert.pem" tls-key-file "$TMP/key.pem" \
			tls-ca-cert-file "$TMP/cert.pem") != OK ]] || break
	done
	redlock run -n -S "redis://127.0.0.1:$port" "$KEY" true
	expect 69 '' "redlock: $KEY: redis://127.0.0.1:$port: it hung up at once \(is it rediss://\?\): is it up, and is -S right\?"
	redlock doctor -S "redis://127.0.0.1:$port"
	[[ $status == 69 && $output$stderr == *'it hung up at once (is it rediss://?)'* ]]
}

@test "a password that is missing, wrong or in the wrong place is told where it belongs" {
	printf 'hunter3\n' >wrong
	printf 'hunter2\n' >open && chmod 666 open
	: >empty
	told <<-'ROWS'
		77|requires a password \(NOAUTH\): set REDLOCK_PASSWORD$|redlock run -S $GUARDED k true
		77|is wrong \(WRONGPASS\): .* and REDLOCK_PASSWORD$|REDLOCK_PASSWORD=x redlock run -S $GUARDED k true
		77|is wrong \(WRONGPASS\): .* and REDLOCK_PASSWORD_FILE$|REDLOCK_PASSWORD_FILE=wrong redlock run -S $GUARDED k true
		77|is wrong \(WRONGPASS\): .* and the password in its URL$|redlock run -S ${GUARDED/:\/\//://:x@} k true
		77|it has no password, but was sent one|REDLOCK_PASSWORD=x redlock run k true
		78|a user without a password: set REDLOCK_PASSWORD \(put ':' before a password without a user\)$|redlock run -S ${GUARDED/:\/\//://hunter2@} k true
		78|REDLOCK_PASSWORD_FILE: nope: No such file|REDLOCK_PASSWORD_FILE=nope redlock run -S $GUARDED k true
		78|REDLOCK_PASSWORD_FILE: .: Is a directory|REDLOCK_PASSWORD_FILE=. redlock run -S $GUARDED k true
		78|REDLOCK_PASSWORD_FILE: empty: its first line is empty|REDLOCK_PASSWORD_FILE=empty redlock run -S $GUARDED k true
		78|REDLOCK_PASSWORD_FILE: open: others may write it: chmod go-w|REDLOCK_PASSWORD_FILE=open redlock run -S $GUARDED k true
		64|'--password': did you mean REDLOCK_PASSWORD|redlock run --password hunter2 -S $GUARDED k true
		64|'-a': did you mean REDLOCK_PASSWORD|redlock run -a hunter2 -S $GUARDED k true
	ROWS
	no_row_failed
}

# native: an exec that fails ends valgrind
# bats test_tags=native
@test "a COMMAND that cannot be run is told why, as far as can be seen" {
	touch plain
	printf '#!/nope/sh\n' >nowhere && printf '#!/bin/sh\r\n' >from-dos && chmod +x nowhere from-dos
	told <<-'ROWS'
		127|cannot run 'report.sh': No such file or directory: it is not in PATH$|redlock run k report.sh
		127|cannot run './report.sh': No such file or directory$|redlock run k ./report.sh
		127|cannot run 'echo hi': .*: a command of the shell needs -c$|redlock run k 'echo hi'
		127|cannot run 'a.sh && b.sh': .*: a command of the shell needs -c$|redlock run k 'a.sh && b.sh'
		127|cannot run 'A=1': .*: a command of the shell needs -c$|redlock run k A=1 true
		127|cannot run './nowhere': .*: it exists, but the program in its first line \(#!\) does not$|redlock run k ./nowhere
		127|cannot run './from-dos': .*: it exists, but the program in its first line \(#!\) does not$|redlock run k ./from-dos
		126|cannot run './plain': Permission denied: is it a program, and executable \(chmod \+x\)\?$|redlock run k ./plain
		127|cannot run '/nope': No such file or directory$|SHELL=/nope redlock run -c true k
		127| s: cannot run 'k'|redlock run -t 60 s k true
	ROWS
	no_row_failed
}

@test "a KEY that is data, a wrong token and a nested run are told" {
	rcli 0 RPUSH list 1
	rcli 0 HSET hash field 1
	rcli 0 ZADD zset 1 member
	rcli 0 SET held other PX 600000
	told <<-'ROWS'
		65|list: .*KEY is a list, which is not a lock: choose another KEY|redlock run -n -E 0 list true
		65|hash: .*KEY is a hash without an expiry, which is not a lock|redlock run hash true
		65|zset: .*KEY is a sorted set without an expiry, which is not a lock|redlock acquire zset
		65|list: .*which is not a lock|redlock wait list
		65|list: KEY is not a lock: it is a list$|redlock release list token
		65|hash: KEY is not a lock: it is a hash$|redlock release hash token
		65|hash: KEY is not a lock: it is a hash$|redlock extend hash token
		65|list: KEY is not a lock: it is a list$|redlock extend list token
		65|hash: .*it stays as it is; --foreign deletes it|redlock break -y hash
		64|break needs -y|redlock break held
		1|nothing: not held|redlock break -y nothing
		75|held: held by another program, .* left$|redlock run -n held true
		75|held: held by another program|redlock run -w 0 held true
		64|TOKEN is missing, and REDLOCK_TOKEN is not set|redlock release held
		64|TOKEN '' must be 1 to 256 bytes|redlock release held "$UNSET"
		64|REDLOCK_TOKEN '' must be|REDLOCK_TOKEN= redlock release held
		1|not held by this token: .*: KEY is gone|redlock release nothing token
		1|not held by this token: .*: KEY is held by someone else|redlock release held token
		1|not held by this token: .*: KEY is held by someone else|redlock extend held 60s
		75|use -r in both to enter KEY again|redlock run n1 -- redlock run n1 true
		75|which waits for it$|redlock run -P 2 n11 -- redlock run n11 true
		75|which waits for it$|redlock run -s n12 -- redlock run n12 true
		75|use -r there, too|redlock run n2 -- redlock run -r n2 true
		75|which waits for it|redlock run n3 -- redlock wait n3
		75|which waits for it|redlock run n4 -- redlock run n5 -- redlock acquire n4
		75|for .*: that one was taken without -P: use it everywhere or nowhere|redlock run n6 -- env -u REDLOCK_HELD redlock run -n -P 3 n6 true
		75|held by 1 of 3, .*: use -P 3, as they do|redlock run -P 3 n7 -- env -u REDLOCK_HELD redlock run -n n7 true
		65|held with -P 3 now, not with -P 2|redlock run -P 3 n8 -- env -u REDLOCK_HELD redlock run -n -P 2 n8 true
		65|held with -P 3 now, not with -s|redlock run -P 3 n9 -- env -u REDLOCK_HELD redlock run -n -s n9 true
		124|stopped after --max-hold 100ms|redlock run --max-hold 100ms n10 sleep 60
	ROWS
	no_row_failed
}

@test "a file or a variable that is wrong is named" {
	echo 'sever = redis://a' >unknown
	echo 'ttl = "60s"' >quoted
	echo 'server: redis://a' >colons
	echo 'ttl = 100ms' >short
	printf '%s\n' 'ttl = 20s' 'max-ttl = 10s' >long
	told <<-'ROWS'
		78|nope: No such file|redlock run --config nope k true
		78|unknown:1: unknown option 'sever': did you mean server\?|redlock run --config unknown k true
		78|quoted:1: ttl '"60s"' is not a DURATION|redlock run --config quoted k true
		78|colons:1: not NAME = VALUE|redlock run --config colons k true
		78|too short to stop its holder in time: .*\(ttl from short:1\)$|redlock run --config short k true
		64|too short to stop its holder in time|redlock run --config short -t 90ms k true
		78|longer than max-ttl, .*\(ttl from long:1, max-ttl from long:2\)$|redlock run --config long k true
		64|longer than max-ttl, .*\(max-ttl from long:2\)$|redlock run --config long -t 30s k true
		78|--min-hold is longer than --max-hold|REDLOCK_MIN_HOLD=2m REDLOCK_MAX_HOLD=1m redlock run k true
		64|--once-in is longer than --remember \(remember from REDLOCK_REMEMBER\)$|REDLOCK_REMEMBER=1h redlock run --once-in 2h k true
		78|--set 'lab': no configuration file has this section|redlock run --set lab k true
		78|REDLOCK_TTL '60000' is not clear|REDLOCK_TTL=60000 redlock run k true
		0|REDLOCK_INSECURE is ignored: --insecure is for the command line and files only$|REDLOCK_INSECURE=yes redlock run k true
		0|REDLOCK_TLL is ignored: did you mean REDLOCK_TTL\?|REDLOCK_TLL=60s redlock run k true
		0|REDLOCK_SERVER is ignored: did you mean REDLOCK_SERVERS\?|REDLOCK_SERVER=$URL redlock run k true
		0|REDLOCK_TIMEOUT is ignored: did you mean REDLOCK_WAIT|REDLOCK_TIMEOUT=5 redlock run k true
		0|REDLOCK_PASWORD is ignored: did you mean REDLOCK_PASSWORD\?|REDLOCK_PASWORD=x redlock run k true
		0|REDLOCK_PASS is ignored: did you mean REDLOCK_PASSWORD\?|REDLOCK_PASS=x redlock run k true
		0|REDLOCK_TIMOUT is ignored: did you mean REDLOCK_WAIT|REDLOCK_TIMOUT=5 redlock run k true
	ROWS
	no_row_failed
}

@test "an eval of what was mistyped fails, so set -e ends the script there" {
	rcli 0 SET "$KEY" other PX 600000
	export KEY
	local shell
	for shell in bash dash ksh; do
		export SHELL_UNDER_TEST=$shell
		told <<-'ROWS'
			75|held by another program|$SHELL_UNDER_TEST -c 'set -e; eval "$(redlock acquire -n --format shell "$KEY")"; echo on'
			64|'aquire': did you mean acquire|$SHELL_UNDER_TEST -c 'set -e; eval "$(redlock aquire --format shell k)"; echo on'
			64|'--nonblok': did you mean --nonblock|$SHELL_UNDER_TEST -c 'set -e; eval "$(redlock acquire --nonblok --format shell k)"; echo on'
			64|--format 'bash' is not shell or json|$SHELL_UNDER_TEST -c 'set -e; eval "$(redlock acquire --format bash k)"; echo on'
			64|-t '1x' is not a DURATION|$SHELL_UNDER_TEST -c 'set -e; eval "$(redlock acquire -t 1x --format=shell k)"; echo on'
			78|REDLOCK_SERVERS is empty|REDLOCK_SERVERS= $SHELL_UNDER_TEST -c 'set -e; eval "$(redlock acquire --format shell k)"; echo on'
			69|Connection refused|$SHELL_UNDER_TEST -c 'set -e; eval "$(redlock acquire -n -S redis://127.0.0.1:1 --format shell k)"; echo on'
		ROWS
	done
	no_row_failed
}

@test "output that is closed or full is told, and the lock given back" {
	export KEY
	told <<-'ROWS'
		71|the token cannot be written, so the lock is given back: Bad file descriptor|redlock acquire -n "$KEY" >&-
		71|the token cannot be written, so the lock is given back: No space left|redlock acquire -n "$KEY" >/dev/full
		71|standard output: Bad file descriptor|redlock status "$KEY" >&-
		71|standard output: No space left|redlock status "$KEY" >/dev/full
		71|standard output: No space left|redlock acquire -n "$KEY" >/dev/null; redlock break --now -y "$KEY" >/dev/full
		0|--status-fd: No space left|redlock run --status-fd 3 k true 3>/dev/full
		64|--status-fd '7' is not the number of a descriptor that is open|redlock run --status-fd 7 k true
	ROWS
	no_row_failed
	key_free 0
}
