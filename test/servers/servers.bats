#!/usr/bin/env bats
# Servers: where they are, who we are to them, and that no secret gets out.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

# one server that asks for a password, also on TCP; its users are made by name below
setup_file() {
	servers_start_tcp 1
	rcli 0 ACL SETUSER bob on '>p@ss:w/rd%,x' '~*' '&*' +@all
	rcli 0 ACL SETUSER reader on '>hunter2' '~*' '&*' +@read +@connection +@scripting +info
	rcli 0 ACL SETUSER noeval on '>hunter2' '~*' '&*' +@all -eval -evalsha
	rcli 0 ACL SETUSER elsewhere on '>hunter2' '~other:*' '~{other:*' '&*' +@all
	# what redlock's scripts and its queue need, and no more
	rcli 0 ACL SETUSER least on '>hunter2' '~key-*' '~{key-*' '&{key-*' '&redisson_lock__channel:*' -@all \
		+eval +info +time +type +exists +hget +hset +hdel +hkeys +hexists +hlen +hincrby +pttl +pexpire \
		+getrange +set +del +zadd +zrem +zscore +zcard +zrange +zrank +zrangebyscore +publish +subscribe
	rcli 0 ACL SETUSER default resetpass '>sesame open' '~*' '&*' +@all
	export REDISCLI_AUTH='sesame open'
	local url
	url=$(server_url 0)
	# shellcheck disable=SC2153 # SERVERS is helper.bash's
	export ADDRESS=${url#redis://} SOCKET=$SERVERS/0/redis.sock
	export PORT=${ADDRESS##*:}
	unset REDLOCK_SERVERS
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	unset REDLOCK_TOKEN REDLOCK_PASSWORD REDLOCK_PASSWORD_FILE
}

# locks ARGUMENT...: redlock takes and releases KEY with these options.
locks() {
	redlock run -n "$@" "$KEY" redis-cli -s "$SOCKET" EXISTS "$KEY"
	expect 0 1
	key_free 0
}

# ---------------------------------------------------------------- where they are

@test "a server is reached over TCP and over a Unix socket" {
	export REDLOCK_PASSWORD='sesame open'
	locks -S "redis://$ADDRESS"
	locks -S "redis://$ADDRESS/"
	locks -S "redis://localhost:$PORT"
	locks -S "unix://$SOCKET"
	locks -S "unix://$SOCKET?db=0"
}

@test "an IPv6 address is reached" {
	[[ -e /proc/net/if_inet6 && $(</proc/net/if_inet6) == *0000000000000001*lo* ]] || skip "no IPv6 loopback here"
	set_new
	mkdir "$SET/six"
	local port=$((10000 + RANDOM % 20000))
	"$TOOLS/start" -k redis-server --port "$port" --bind ::1 --save '' --dir "$SET/six" \
		--pidfile "$SET/six/pid" --daemonize no </dev/null >"$SET/six/log" 2>&1 3>&- 4>&- &
	echo $! >"$SET/six/pid"
	disown
	wait_until "[[ \$(redis-cli -h ::1 -p $port --no-auth-warning PING 2>&1) == *PONG* ]]"
	redlock run -S "redis://[::1]:$port" "$KEY" true
	expect 0
	redlock acquire -S "redis://[::1]:$port" "$KEY"
	redlock acquire -n -S "redis://[::1]:$port" -v "$KEY"
	[[ $status == 75 && $stderr == *"redis://[::1]:$port"* ]]
}

@test "several servers come from -S again, from commas, and from REDLOCK_SERVERS" {
	servers_start_tcp 3
	unset REDLOCK_SERVERS REDISCLI_AUTH
	local all token
	all=$(server_urls)
	redlock acquire --quarantine 0 -S "$(server_url 0)" -S "unix://$SERVERS/1/redis.sock" --server="$(server_url 2)" "$KEY-a"
	[[ $status == 0 && $(servers_with "$output" GET "$KEY-a") == 3 ]]
	redlock acquire --quarantine 0 -S "$all" "$KEY-b"
	[[ $status == 0 && $(servers_with "$output" GET "$KEY-b") == 3 ]]
	redlock acquire --quarantine 0 -S "$(server_urls 0 1)" -S "$(server_url 2)" "$KEY-c"
	[[ $status == 0 && $(servers_with "$output" GET "$KEY-c") == 3 ]]
	REDLOCK_SERVERS=$all redlock acquire --quarantine 0 "$KEY-d"
	[[ $status == 0 && $(servers_with "$output" GET "$KEY-d") == 3 ]]
	token=$output
	REDLOCK_SERVERS=$all redlock release "$KEY-d" "$token"
	[[ $status == 0 && $(servers_with 0 EXISTS "$KEY-d") == 3 ]]
}

@test "-S stands instead of REDLOCK_SERVERS, not beside it" {
	export REDLOCK_PASSWORD='sesame open'
	REDLOCK_SERVERS=$NOWHERE locks -S "redis://$ADDRESS"
	REDLOCK_SERVERS=redis://$ADDRESS redlock run -n -S "$NOWHERE" "$KEY" true
	expect 69 '' "redlock: $KEY: $NOWHERE: .*"
	REDLOCK_SERVERS=redis://$ADDRESS locks
}

@test "one server by two names is no quorum: it is refused, and both names are told" {
	export REDLOCK_PASSWORD='sesame open'
	local other
	for other in "redis://localhost:$PORT" "unix://$SOCKET" "redis://$ADDRESS/1"; do
		redlock run --quarantine 0 -S "redis://$ADDRESS" -S "$other" "$KEY" touch "$TMP/ran"
		expect 78 '' "redlock: .*"
		[[ $stderr == *"redis://$ADDRESS"*"$other"* || $stderr == *"$other"*"redis://$ADDRESS"* ]]
		key_free 0
		[[ $(rcli 0 -n 1 EXISTS "$KEY") == 0 ]]
	done
	[[ ! -e $TMP/ran ]]
}

@test "a database is chosen by its number, and no other is touched" {
	export REDLOCK_PASSWORD='sesame open'
	redlock acquire -S "redis://$ADDRESS/3" "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 -n 3 GET "$KEY") == "$output" ]]
	key_free 0
	[[ $(rcli 0 EXISTS "$(record)") == 0 ]]
	redlock acquire -n -S "unix://$SOCKET?db=3" "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	local token
	token=$(rcli 0 -n 3 GET "$KEY")
	redlock extend -S "redis://$ADDRESS" "$KEY" "$token"
	expect 1 '' '.*'
	redlock extend -S "redis://$ADDRESS/3" "$KEY" "$token"
	expect 0
	redlock release -S "unix://$SOCKET?db=3" "$KEY" "$token"
	expect 0
	[[ $(rcli 0 -n 3 EXISTS "$KEY") == 0 ]]
}

@test "a database that the server does not have leaves the key in no other, and is named" {
	export REDLOCK_PASSWORD='sesame open'
	redlock run -w 10m -S "redis://$ADDRESS/99" "$KEY" touch "$TMP/ran"
	expect 78 '' "redlock: $KEY: redis://$ADDRESS/99: it does not have this database \(ERR DB index is out of range\): .*"
	key_free 0
	[[ ! -e $TMP/ran ]]
}

@test "the default server is 127.0.0.1:6379, and where nobody listens there local: is mentioned" {
	unset REDLOCK_SERVERS
	local isolated=()
	if [[ $(id -u) == 0 ]] && unshare -n ip link set lo up; then
		isolated=(unshare -n sh -c 'ip link set lo up && exec "$@"' -)
	elif listens_on 6379; then
		skip "somebody listens on 6379"
	fi
	run --separate-stderr timeout -k 1 20 "${isolated[@]}" "$REDLOCK" run "$KEY" true
	expect 69 '' "redlock: $KEY: redis://127\\.0\\.0\\.1:6379: Connection refused: .*local:.*"
}

@test "a server that is away is named with the cause; several with each one's own" {
	redlock run -S "redis://127.0.0.1:1" "$KEY" true
	expect 69 '' "redlock: $KEY: redis://127\\.0\\.0\\.1:1: Connection refused.*"
	[[ $stderr != *local:* ]]
	redlock run -S "redis://127.0.0.1:1,$NOWHERE,redis://redlock.invalid" "$KEY" true
	expect 69 '' "redlock: $KEY: no quorum: .* 2 .*: redis://127\\.0\\.0\\.1:1: Connection refused; $NOWHERE: No such file or directory.*"
}

@test "-w waits for a server that is not there yet, and no longer than that" {
	set_new
	mkdir "$SET/0"
	redlock run -w 100ms -S "unix://$SET/0/redis.sock" "$KEY" true
	[[ $status == 69 ]]
	spawn waiter "$REDLOCK" run -w 40 -S "unix://$SET/0/redis.sock" "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting"* ]]'
	"$TOOLS/start" -k redis-server --port 0 --unixsocket "$SET/0/redis.sock" --save '' --dir "$SET/0" \
		</dev/null >"$SET/0/log" 2>&1 3>&- 4>&- &
	echo $! >"$SET/0/pid"
	disown
	finish waiter
	[[ $status == 0 && $output == ran ]]
}

@test "what has a socket but is no Redis server is said to be none" {
	set_new
	"$TOOLS/start" -k perl -MSocket -e '
		socket my $s, AF_UNIX, SOCK_STREAM, 0 or die;
		bind $s, sockaddr_un("$ARGV[0].new") or die;
		listen $s, 5;
		rename "$ARGV[0].new", $ARGV[0];
		while (accept my $c, $s) { sysread $c, my $x, 1; syswrite $c, "HTTP/1.1 400 \e[31mBad\r\n\r\n" }
	' "$SET/sock" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	local server=$!
	wait_until "[[ -S $SET/sock ]]"
	redlock run -S "unix://$SET/sock" "$KEY" true
	kill "$server"
	expect 69 '' "redlock: $KEY: unix://$SET/sock: .*[Rr]edis.*"
	[[ $stderr != *$'\e'* ]]
}

# ---------------------------------------------------------------- names

@test "a name that no look-up finds is said so" {
	redlock run -S redis://redlock.invalid "$KEY" true
	expect 69 '' "redlock: $KEY: redis://redlock\\.invalid:6379: .+"
}

@test "a name server that never answers takes no longer than --server-timeout" {
	[[ $(id -u) == 0 ]] || skip "needs root for a name server of its own"
	unshare -m true || skip "needs a mount namespace"
	# port 53 of an address of its own: whoever asks there is never answered
	"$TOOLS/start" -k perl -MSocket -e '
		socket my $s, AF_INET, SOCK_DGRAM, 0 or die;
		bind $s, sockaddr_in(53, inet_aton(shift)) or exit 1;
		open my $f, ">", shift;
		sleep 60;
	' "127.53.$((RANDOM % 250)).53" "$TMP/bound" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	local server=$! address start took
	wait_until "[[ -e $TMP/bound ]] || ! is_alive $server"
	[[ -e $TMP/bound ]] || skip "port 53 can't be had"
	address=$(tr '\0' '\n' <"/proc/$server/cmdline" | grep '^127\.53')
	printf 'nameserver %s\noptions timeout:30 attempts:1\n' "$address" >"$TMP/resolv.conf"
	printf 'hosts: dns\n' >"$TMP/nsswitch.conf"
	start=$NOW
	run --separate-stderr timeout -k 1 60 unshare -m sh -c '
		mount --bind "$1/resolv.conf" /etc/resolv.conf && mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf || exit 99
		shift
		exec "$@"' - "$TMP" "$REDLOCK" run --server-timeout 300ms -S redis://redlock.invalid "$KEY" true
	took=$((NOW - start))
	kill "$server"
	[[ $status != 99 ]] || skip "mounts are not allowed here"
	expect 69 '' "redlock: $KEY: redis://redlock\\.invalid:6379: .*300 ?ms.*|redlock: $KEY: redis://redlock\\.invalid:6379: .*"
	((took < 10000))
}

@test "a link-local address has its zone, as ip(8) and as a URL writes it" {
	unset REDISCLI_AUTH
	net_servers_start 1
	local address zone
	wait_until '! ip -n "$NET_CLIENT" -6 -o addr show dev to0 | grep -q tentative &&
		address=$(ip -n "$NET-0" -6 -o addr show dev up0 scope link | grep -v tentative | grep -o "fe80[0-9a-f:]*")' ||
		skip "there is no IPv6 here"
	for zone in %to0 %25to0; do
		run -0 --separate-stderr net_run timeout -k 1 20 "$REDLOCK" run -n -v -S "redis://[$address$zone]" "$KEY" echo got it
		[[ $output == 'got it' && $stderr == *"redis://[$address%to0]:6379: granted"* ]]
	done
	run -69 --separate-stderr net_run timeout -k 1 20 "$REDLOCK" run -n -S "redis://[$address%nowhere]" "$KEY" true
}

@test "the first 16 addresses of a name are tried" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	local i
	for i in {1..20}; do echo "127.7.0.$i many.test"; done >"$TMP/hosts"
	unshare -m mount --bind "$TMP/hosts" /etc/hosts || skip "an /etc/hosts of its own can't be made here"
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	run -69 --separate-stderr timeout -k 1 20 unshare -m sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' - "$TMP/hosts" \
		strace -f -qq -o "$TMP/trace" -e trace=connect "$REDLOCK" acquire -n --server-timeout 10s -S redis://many.test:1 "$KEY"
	# (the C library asks for a route to each, to sort them)
	[[ $(grep -c 'htons(1).*= -1' "$TMP/trace") == 16 ]]
}

# slow DIRECTION: no more than 5 KB a second get through to the server (out), or from it (in).
slow() {
	local -A link=([out]="$NET_CLIENT to0" [in]="$NET-0 up0")
	read -r namespace device <<<"${link[$1]}"
	ip netns exec "$namespace" tc qdisc add dev "$device" root tbf rate 40kbit burst 2000 limit 1000000
}

@test "a link that is too slow is told from a server that is away" {
	[[ $(command -v tc) ]] || skip "needs tc (iproute2)"
	unset REDISCLI_AUTH
	net_servers_start 1
	local advised
	TRACER=(ip netns exec "$NET_CLIENT")
	slow out || skip "there is no way to slow a link down here"
	refuses 69 'a slow link: [0-9]+ bytes were not delivered within [0-9.]+(ms|s): give it more time with --server-timeout$' acquire -w 0 key
	net_run timeout -k 1 60 "$REDLOCK" run --server-timeout 20s -t 5m "$KEY" true
	# the server has the script now: what redlock-servers(7) advises is enough
	page_block redlock-servers.7 'and a ttl that has room for it:' >"$TMP/advised"
	read -ra advised <"$TMP/advised"
	[[ ${advised[*]} == 'redlock run '*' KEY -- COMMAND' ]]
	net_run timeout -k 1 60 "$REDLOCK" "${advised[@]:1:${#advised[@]}-4}" "$KEY" true
	server_stop 0
	refuses 69 'no answer within [^:]*: is it up, and is -S right\?$' extend -S unix://"$SERVERS/0/redis.sock" key token
	server_continue 0
	no_row_failed
}

@test "an answer that comes too slowly is told from none" {
	[[ $(command -v tc) ]] || skip "needs tc (iproute2)"
	unset REDISCLI_AUTH
	net_servers_start 1
	slow in || skip "there is no way to slow a link down here"
	run -69 --separate-stderr net_run timeout -k 1 20 "$REDLOCK" doctor --server-timeout 600ms
	[[ $output == *': error: a slow link: its answer was still coming after '*'ms: give it more time with --server-timeout' ]]
	net_drop in 0
	run -69 --separate-stderr net_run timeout -k 1 20 "$REDLOCK" doctor --server-timeout 600ms
	[[ $output == *'no connection within '* ]]
}

# forgotten I: the client's connections to server I get no packet through any more, in either direction.
forgotten() {
	local from
	while read -r _ _ from _; do
		net_filter -A OUTPUT -p tcp --sport "${from##*:}" -j DROP || return
		net_filter -A INPUT -p tcp --dport "${from##*:}" -j DROP || return
	done < <(net_run ss -Htn state established dst "10.9.$1.2")
}

@test "a firewall that forgets connections leaves no lock behind: the release is sent again on a new one" {
	local servers
	unset REDISCLI_AUTH
	export TMP
	net_servers_start 3
	for servers in "$(server_url 0)" "$REDLOCK_SERVERS"; do
		KEY+=-again
		net_spawn run "$REDLOCK" run -S "$servers" -t 10m --quarantine 0 "$KEY" \
			sh -c 'echo in; until [ -e "$TMP/end" ]; do sleep 0.01; done'
		wait_until '[[ -s $TMP/run.out ]]'
		[[ $(net_run ss -Htno dst 10.9.0.2) == *timer:\(keepalive,* ]]
		forgotten 0
		forgotten 1
		forgotten 2
		touch "$TMP/end"
		finish run
		expect 0 in
		net_heal
		nothing_left 0 1 2
		rm "$TMP/end"
	done
}

@test "a link that loses every large packet is none, however it began" {
	unset REDISCLI_AUTH
	net_servers_start 1
	net_filter -A OUTPUT -d 10.9.0.2 -m length --length 200:65535 -j DROP
	TRACER=(ip netns exec "$NET_CLIENT")
	refuses 69 'no answer within [^:]*: is it up, and is -S right\?$' acquire -w 0 --server-timeout 1s key
	no_row_failed
}

# ---------------------------------------------------------------- logins

@test "a password comes from the URL, from REDLOCK_PASSWORD, or from a file" {
	locks -S "redis://:sesame%20open@$ADDRESS"
	locks -S "redis://default:sesame%20open@$ADDRESS"
	locks -S "unix://:sesame%20open@$SOCKET"
	REDLOCK_PASSWORD='sesame open' locks -S "redis://$ADDRESS"
	(
		umask 077
		echo 'sesame open' >"$TMP/password"
		printf 'sesame open' >"$TMP/no-newline"
		printf 'sesame open\r\nnote\n' >"$TMP/note"
	)
	REDLOCK_PASSWORD_FILE=$TMP/password locks -S "redis://$ADDRESS"
	REDLOCK_PASSWORD_FILE=$TMP/no-newline locks -S "redis://$ADDRESS"
	REDLOCK_PASSWORD_FILE=$TMP/note locks -S "redis://$ADDRESS"
	export REDLOCK_SERVERS=redis://:sesame%20open@$ADDRESS
	locks
}

@test "a URL's own password goes before the environment's" {
	REDLOCK_PASSWORD=wrong locks -S "redis://:sesame%20open@$ADDRESS"
	REDLOCK_PASSWORD='sesame open' redlock run -n -S "redis://:wrong@$ADDRESS" "$KEY" true
	expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*"
}

@test "a user of the server's ACL logs in with a name, percent-encoded where need be" {
	locks -S "redis://bob:p%40ss%3Aw%2frd%25%2Cx@$ADDRESS"
	REDLOCK_PASSWORD='p@ss:w/rd%,x' locks -S "redis://bob@$ADDRESS"
	REDLOCK_PASSWORD='p@ss:w/rd%,x' locks -S "unix://bob@$SOCKET"
	redlock run -n -S "redis://bob:hunter2@$ADDRESS" "$KEY" true
	expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*"
}

@test "a wrong or a missing password is 77 at once, whatever there is to wait for" {
	local login
	for login in '' :hunter2@ nobody:hunter2@ bob:hunter2@; do
		redlock run -w 10m -S "redis://$login$ADDRESS" "$KEY" touch "$TMP/ran"
		expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*"
		redlock acquire -S "unix://$login$SOCKET" "$KEY"
		expect 77 '' "redlock: $KEY: unix://$SOCKET: .*"
		redlock release -S "redis://$login$ADDRESS" "$KEY" token
		expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*"
		redlock extend -S "redis://$login$ADDRESS" "$KEY" token
		expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*"
	done
	REDLOCK_PASSWORD=hunter2 redlock acquire -S "redis://$ADDRESS" "$KEY"
	expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*"
	[[ ! -e $TMP/ran ]]
	key_free 0
}

@test "a failed login never acts as the user without one" {
	servers_start_tcp 1
	unset REDISCLI_AUTH
	# this server's default user needs no password
	redlock acquire -S "redis://nobody:hunter2@$(server_url 0 | sed 's,redis://,,')" "$KEY"
	[[ $status == 77 && $output == '' ]]
	wait_until 'server_drained 0'
	key_free 0
}

@test "a permission that the user lacks is 77 at once, and nothing is left" {
	local user
	for user in reader noeval elsewhere; do
		redlock run -w 10m -S "redis://$user:hunter2@$ADDRESS" "$KEY" touch "$TMP/ran"
		expect 77 '' "redlock: $KEY: redis://$ADDRESS: .*(NOPERM|permission|can't run|ACL).*"
		[[ $stderr != *hunter2* ]]
	done
	[[ ! -e $TMP/ran ]]
	key_free 0
	# and where the keys fit, the same user may
	redlock run -n -S "redis://elsewhere:hunter2@$ADDRESS" "other:$KEY" true
	expect 0
}

@test "a user with the least permissions that are needed may hold, wait for and renew every kind" {
	local option names=() name
	export REDLOCK_SERVERS=redis://least:hunter2@$ADDRESS
	for option in -x -s -r '-P 1'; do
		name=${option// /}
		# shellcheck disable=SC2086 # words
		spawn "first$name" "$REDLOCK" run -t 2s $option "$KEY$name" "$ROOT/test/lib/tools/note" "$TMP" "first$name"
		wait_until "entered first$name"
		spawn "next$name" "$REDLOCK" run "$KEY$name" true
		wait_until "KEY=$KEY$name queued 1"
		spawn "wait$name" "$REDLOCK" wait "$KEY$name"
		wait_until "KEY=$KEY$name queued 2"
		names+=("first$name" "next$name" "wait$name")
		KEY=$KEY$name renewals 1
	done
	ends first-x first-s first-r first-P1
	done_well "${names[@]}"
	redlock acquire -r --token me "$KEY"
	expect 0 me
	redlock acquire -n -r --token you "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock extend "$KEY" me
	expect 0
	redlock release "$KEY" me
	expect 0
	redlock acquire -s "$KEY"
	[[ $status == 0 ]]
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock extend "$KEY" "$(rcli 0 ZRANGE "$KEY" 0 0)"
	expect 0
	redlock release "$KEY" "$(rcli 0 ZRANGE "$KEY" 0 0)"
	expect 0
	key_free 0
}

# ---------------------------------------------------------------- secrets

# whether a text that the test has collected shows any of the secrets
shows_secret() {
	grep -aE 'hunter2|sesame|p@ss|p%40ss' "$@"
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "no password shows in what ps tells of redlock or its guard" {
	export REDLOCK_SERVERS=$NOWHERE
	spawn holder "$REDLOCK" run -S "redis://:sesame%20open@$ADDRESS" --server="redis://bob:hunter2@localhost:1" \
		-S "redis://bob:hunter2@127.0.0.2:1,redis://bob:hunter2@127.0.0.3:1" -w 10 "$KEY" sleep 300
	wait_until '[[ -s $TMP/holder.err ]]'
	[[ $(ps -o args= -p "$(pid holder)") == *redlock*run*"$KEY"* ]]
	run -1 shows_secret "/proc/$(pid holder)/cmdline" "$TMP/holder.err"
	kill -TERM "$(pid holder)"
	finish holder
	spawn holder "$REDLOCK" run "-Sredis://:sesame%20open@$ADDRESS" "$KEY" sleep 300
	wait_until '[[ $(child_named "$(pid holder)" sleep) && $(child_named "$(pid holder)" lease-guard) ]]'
	run -1 shows_secret "/proc/$(pid holder)/cmdline" "/proc/$(child_named "$(pid holder)" lease-guard)/cmdline"
	kill -TERM "$(pid holder)"
	finish holder
}

@test "no password shows in errors, steps or the record" {
	local login
	for login in :sesame%20open@ bob:p%40ss%3Aw%2frd%25%2Cx@ bob:hunter2@; do
		redlock run -v -S "redis://$login$ADDRESS" "$KEY" redis-cli -s "$SOCKET" HVALS "$(record)"
		[[ $status == @(0|77) && $stderr == *"$ADDRESS"* ]]
		run -1 shows_secret "$TMP/redlock.out" "$TMP/redlock.err"
	done
	hold
	redlock run -n -S "redis://bob:p%40ss%3Aw%2frd%25%2Cx@$ADDRESS" "$KEY" true
	expect 75 '' "redlock: $KEY: .*"
	run -1 shows_secret "$TMP/redlock.err"
	redlock run -S "redis://:hunter2@127.0.0.1:1" "$KEY" true
	expect 69 '' "redlock: $KEY: redis://127\\.0\\.0\\.1:1: .*"
	redlock run -S "redis://:hunter2@127.0.0.1:1,$NOWHERE,redis://:hunter2@redlock.invalid" "$KEY" true
	expect 69 '' "redlock: $KEY: .*"
	[[ $stderr != *hunter2* ]]
}

@test "no password of a URL in COMMAND shows in steps, the record or status" {
	local url=postgres://bob:hunter2@db/x
	redlock run -v -S "redis://:sesame%20open@$ADDRESS" "$KEY" sh -c 'redis-cli -s "$0" HVALS "$1"' "$SOCKET" "$(record)" "$url"
	[[ $status == 0 && $output == *'postgres://***@db/x'* ]]
	run -1 shows_secret "$TMP/redlock.out" "$TMP/redlock.err"
	redlock run -v -S "redis://:sesame%20open@$ADDRESS" -c "redis-cli -s $SOCKET HVALS '$(record)' # '$url'" "$KEY"
	[[ $status == 0 && $output == *"# 'postgres://***@db/x'"* ]]
	run -1 shows_secret "$TMP/redlock.out" "$TMP/redlock.err"
	# COMMAND has it
	redlock run -S "redis://:sesame%20open@$ADDRESS" "$KEY" printf %s "$url"
	[[ $status == 0 && $output == "$url" ]]
}

@test "neither a token nor a password with a quote in a URL of COMMAND shows in status, as text or JSON" {
	export REDLOCK_SERVERS="redis://:sesame%20open@$ADDRESS"
	redlock run "$KEY" sh -c '"$REDLOCK" status "$0" && "$REDLOCK" status --format json "$0"' "$KEY" \
		https://ghp_hunter2@h/a "amqp://u:it's-hunter2@db/v" x@y
	[[ $status == 0 && $output == *'https://***@h/a amqp://***@db/v x@y'*'https://***@h/a amqp://***@db/v x@y"'* ]]
	[[ $output != *hunter2* ]]
}

@test "the password from the environment does not reach a server that is local:" {
	set_new
	export XDG_RUNTIME_DIR=$SET
	REDLOCK_PASSWORD=hunter2 redlock run -S local: "$KEY" true
	cp "$SET/redlock/redis.log" "$TMP/" || true
	timeout 5 redis-cli -s "$SET/redlock/redis.sock" SHUTDOWN NOSAVE || true
	expect 0
}
