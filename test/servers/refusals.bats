#!/usr/bin/env bats
# What a server refuses is said in words, with what to do about it, wherever the server is.
# shellcheck disable=SC2016,SC2154 # text for inner shells; helpers set variables

load ../lib/helper
load ../lib/discovery

# A seed is a server that says what it is told to (tools/seed.py).
refusing() {
	seeds_start 3
	URL=redis://$(seed_address 0)
	SEVERAL=$URL,redis://$(seed_address 1),redis://$(seed_address 2)
}

# all_say REPLY: to every script, and to a Sentinel's or cluster's client.
all_say() {
	local i
	for i in 0 1 2; do
		seed_says "$i" EVAL "$1" EVALSHA "$1" SENTINEL "$1" CLUSTER "$1" EXISTS "$1" INFO \
			'$83\r\n# Server\r\nrun_id:'"$(printf %040d "$i")"'\r\nuptime_in_seconds:9999\r\n\r\n'
	done
}

# told STATUS WORDS REMEDY OPTION...: one line, that says both, and nothing that people cannot use.
told() {
	local status_wanted=$1 words=$2 remedy=$3
	shift 3
	redlock acquire -n "$@" "$KEY"
	[[ $status == "$status_wanted" && $output == '' && $stderr != *$'\n'* && $stderr == "redlock: $KEY: "*"$words"*": $remedy" &&
		$stderr != *script:* && $stderr != *user_script* ]] ||
		{ echo "$words: $* $status: $stderr" >&2 && ((++failed_rows)); }
}

no_row_failed() {
	((failed_rows == 0))
}

@test "each refusal is told in words, with a remedy, of one server and of several" {
	refusing
	local status_wanted words remedy reply failed_rows=0
	while IFS='|' read -r status_wanted words remedy reply; do
		all_say "-$reply\r\n"
		told "$status_wanted" "$URL: $words" "$remedy" -S "$URL"
		told "$status_wanted" "$words" "$remedy" -S "$SEVERAL"
	done <<-'ROWS'
		77|it requires a password (NOAUTH)|set REDLOCK_PASSWORD|ERR Protocol error: unauthenticated multibulk length
		77|it requires a password (NOAUTH)|set REDLOCK_PASSWORD|NOAUTH Authentication required.
		77|its user may not do this (NOPERM this user has no permissions to run the 'eval' command)|see redlock doctor, and ACL SETUSER there|NOPERM this user has no permissions to run the 'eval' command
		69|its memory is full (OOM)|raise maxmemory there, or make room|OOM command not allowed when used memory > 'maxmemory'. script: 3f0a, on @user_script:75.
		69|its memory is full (OOM)|raise maxmemory there, or make room|ERR Error running script (call to f_3f0a): @user_script:75: @user_script: 75: -OOM command not allowed
		69|it is a replica, which takes no locks (READONLY)|name its master, or its Sentinels (redis+sentinel://)|READONLY You can't write against a read only replica. script: 3f0a, on @user_script:2.
		69|it is a replica that has lost its master (MASTERDOWN)|name its master, or its Sentinels (redis+sentinel://)|MASTERDOWN Link with MASTER is down
		69|it takes no writes, as it cannot save its data (MISCONF)|is its disk full? See the server's log|MISCONF Redis is configured to save RDB snapshots. script: 3f0a, on @user_script:2.
		69|it is starting, and still loads its data (LOADING)|try again soon|LOADING Redis is loading the dataset in memory
		69|a client's script keeps it busy (BUSY)|SCRIPT KILL there ends it|BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
		69|it takes no more clients (ERR max number of clients reached)|raise maxclients there|ERR max number of clients reached
		69|it is in protected mode: it has no password, so only its own host may use it (DENIED)|set requirepass, or protected-mode no, there|DENIED Redis is running in protected mode
		69|the cluster is down, or lacks the node for KEY (CLUSTERDOWN)|see CLUSTER INFO there|CLUSTERDOWN Hash slot not served
		69|it is one node of a cluster (MOVED, ASK)|use redis+cluster://|MOVED 15495 127.0.0.1:23065
		69|it has too few replicas to take writes (NOREPLICAS)|see min-replicas-to-write there|NOREPLICAS Not enough good replicas to write.
		69|it does not know a script that it was sent (NOSCRIPT)|is -S a proxy? Name the server itself|NOSCRIPT No matching script.
		69|it refused a transaction, and redlock makes none (EXECABORT)|is -S a proxy? Name the server itself|EXECABORT Transaction discarded because of previous errors.
		69|it lacks a command that locks need (ERR unknown command 'EVAL')|is it a Sentinel (redis+sentinel://), a proxy, or too old?|ERR unknown command 'EVAL', with args beginning with: 'x'
		78|it does not have this database (ERR DB index is out of range)|use a smaller number in the URL, or raise databases there|ERR DB index is out of range script: 3f0a, on @user_script:2.
		78|a cluster has only database 0|use redis+cluster://, without a number|ERR SELECT is not allowed in cluster mode
		65|KEY, or the record beside it, is not a lock (WRONGTYPE)|choose another KEY|WRONGTYPE Operation against a key holding the wrong kind of value
		65|KEY is held with 3 permits now, not with 2|use the same of -x, -s, -r and -P everywhere|PERMITS KEY is held with 3 permits now, not with 2
		65|KEY is held by an earlier redlock, whose permits have no slots|install this version on all hosts|NOSLOTS KEY
		65|KEY is used by a newer redlock (protocol 2)|install the newer version here, too|PROTOCOL protocol 2
		69|it refused the request (UNKILLABLE Sorry)|see redlock doctor, and the server's log|UNKILLABLE Sorry
	ROWS
	no_row_failed
}

@test "each refusal of Sentinels, and of a cluster's nodes, is told in the same words" {
	refusing
	local status_wanted words remedy reply url failed_rows=0
	while IFS='|' read -r status_wanted words remedy reply; do
		all_say "-$reply\r\n"
		for url in redis+sentinel://"${SEVERAL//redis:\/\//}"/main redis+cluster://"${SEVERAL//redis:\/\//}"; do
			[[ $url == redis+cluster* ]] || told "$status_wanted" "$words" "${remedy/_PASS/_SENTINEL_PASS}" -S "$url"
			[[ $url != redis+cluster* ]] || told "$status_wanted" "$words" "$remedy" -S "$url"
		done
	done <<-'ROWS'
		77|it requires a password (NOAUTH)|set REDLOCK_PASSWORD|NOAUTH Authentication required.
		77|its user may not do this (NOPERM no)|see redlock doctor, and ACL SETUSER there|NOPERM no
		69|it is starting, and still loads its data (LOADING)|try again soon|LOADING Redis is loading the dataset in memory
		69|it takes no more clients (ERR max number of clients reached)|raise maxclients there|ERR max number of clients reached
		69|it lacks a command that locks need (ERR unknown command 'x')|is it a Sentinel (redis+sentinel://), a proxy, or too old?|ERR unknown command 'x'
	ROWS
	no_row_failed
}

@test "a plain server that is named as a Sentinel is told so" {
	refusing
	local failed_rows=0 quoted
	for quoted in "'SENTINEL'" '`SENTINEL`'; do # Redis 7, and 6
		all_say "-ERR unknown command $quoted, with args beginning with: 'get-master-addr-by-name' 'main'\r\n"
		told 69 'it is not a Sentinel' 'use redis:// for a single server' -S "redis+sentinel://${SEVERAL//redis:\/\//}/main"
	done
	no_row_failed
}

@test "a password that is missing or wrong, and one that nobody wants, are told apart everywhere" {
	servers_start 3
	local i failed_rows=0 url
	for i in 0 1 2; do rcli $i CONFIG SET requirepass hunter2; done
	for url in "$(server_url 0)" "$(server_urls)"; do
		told 77 'it requires a password (NOAUTH)' 'set REDLOCK_PASSWORD' -S "$url"
		REDLOCK_PASSWORD=wrong told 77 "the password or the user's name is wrong (WRONGPASS)" \
			"see the server's ACL, and REDLOCK_PASSWORD" -S "$url"
	done
	for i in 0 1 2; do REDISCLI_AUTH=hunter2 rcli $i --no-auth-warning CONFIG SET requirepass ''; done
	for url in "$(server_url 0)" "$(server_urls)"; do
		REDLOCK_PASSWORD=x told 77 'it has no password, but was sent one' 'set requirepass there, or send none' -S "$url"
	done
	no_row_failed
}

@test "of several servers, too, another number of permits is told, and no quorum is missed" {
	servers_start 3
	local failed_rows=0
	redlock acquire --quarantine 0 -P 3 -q "$KEY"
	expect 0 '[0-9a-f]{32}'
	told 65 'KEY is held with' 'use the same of -x, -s, -r and -P everywhere' --quarantine 0 -q -P 2
	told 65 'KEY is held with' 'use the same of -x, -s, -r and -P everywhere' --quarantine 0 -s
	[[ $stderr != *quorum* ]]
	no_row_failed
}

@test "without a descriptor for a server it is 71, which is no server's fault" {
	servers_start 1
	# the search for leaks needs descriptors of its own
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
	run -71 --separate-stderr bash -c 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3)) || exec {fd}>&-; done
		ulimit -n 4
		exec "$@"' - "$REDLOCK" acquire -n -S redis://127.0.0.1:1 "$KEY"
	[[ $stderr == "redlock: $KEY: redis://127.0.0.1:1: Too many open files: redlock may open no more files: raise ulimit -n" ]]
}

@test "an address of a kind that this machine does not have says nothing of the server" {
	unshare --net --mount true || skip "namespaces can't be made here"
	set_new
	printf '%s both.test\n' 127.0.0.1 ::1 >"$SET/hosts"
	# shellcheck disable=SC2016 # the inner shell's
	run --separate-stderr timeout -k 1 20 unshare --net --mount sh -c 'ip link set lo up
		[ ! -d /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
		mount --bind "$0" /etc/hosts && exec "$@"' "$SET/hosts" \
		"$REDLOCK" acquire -n -S redis://both.test:7001 "$KEY"
	[[ $status == 69 ]]
	[[ $stderr == "redlock: $KEY: redis://both.test:7001: Connection refused: is it up, and is -S right?" ]]
}
