#!/usr/bin/env bats
# The recipe of redlock-servers(7): its commands are run as they stand there, and lead to what the
# page says. As there is one machine only,
#  - each host is a directory of $SET: ssh and scp take /etc, /var and /run to be there
#  - lock1.example and so on are loopback addresses, also in certificates and where a server binds
#  - apt-get installs Debian's settings only, systemctl does what its redis-server.service does, and
#    chown does nothing.

# shellcheck disable=SC2030,SC2031,SC2154 # tests are subshells; helpers set them

load ../lib/helper

PAGE=$ROOT/man/redlock-servers.7

setup() {
	TMP=$BATS_TEST_TMPDIR
	KEY=key-$BATS_SUITE_TEST_NUMBER
	NET=127.$((RANDOM % 200 + 20)).$((RANDOM % 256))
	unset REDLOCK_SERVERS
	mapfile -t -d $'\f' blocks < <(sed -n '/^\.Sh THREE SERVERS/,/^\.Sh RUNNING THEM/p' "$PAGE" |
		sed -n '/^\.Bd -literal/,/^\.Ed/{ /^\.Bd/d; s/^\.Ed/\f/; s/\\e/\\/g; p; }' |
		sed "s/lock\([123]\)\.example/$NET.\1/g; s/DNS:/IP:/")
	set_new
	cd "$SET" || return
}

# on HOST: text that names files of it.
on() {
	sed "s#/\(etc\|run\|var\)/#$SET/$1&#g; s/^bind .*/bind $1/"
}

ssh() {
	local host=${1#root@}
	eval "$(on "$host" <<<"$2")"
}

scp() {
	local files=("${@:1:$#-1}") host path file
	IFS=: read -r host path <<<"${*: -1}"
	host=${host#root@}
	for file in "${files[@]}"; do
		on "$host" <"$file" >"$SET/$host${path/%\//\/$file}"
	done
}

apt-get() {
	mkdir -p "$SET/$host"/{etc/redis,var/{lib,log}/redis}
	on "$host" >"$SET/$host/etc/redis/redis.conf" <<-'end'
		bind 127.0.0.1 -::1
		port 6379
		daemonize yes
		logfile /var/log/redis/redis-server.log
		dir /var/lib/redis
		appendonly no
		appendfsync everysec
	end
}

chown() { :; }

systemctl() {
	local home=$SET/$host
	[[ $1 == start ]] || server_ends "$host" TERM
	[[ $1 != stop ]] || return 0
	rm -f "$home/var/log/redis/redis-server.log"
	"$TOOLS/start" -k redis-server "$home/etc/redis/redis.conf" --daemonize no </dev/null >"$home/out" 2>&1 3>&- 4>&- &
	echo $! >"$home/pid"
	disown $!
	wait_until "grep -q 'Ready to accept connections' $home/var/log/redis/redis-server.log"
}

# server_ends HOST SIGNAL: if it runs.
server_ends() {
	[[ -f $SET/$1/pid ]] || return 0
	! is_alive "$(<"$SET/$1/pid")" || kill "-$2" "$(<"$SET/$1/pid")"
	wait_until "! is_alive $(<"$SET/$1/pid")"
}

# follow: the recipe up to the question whether all is well, with the blanks that man(1) puts before each line; then
# redlock runs on web1.example.
follow() {
	eval "$(printf '%s\n' "${blocks[@]:0:5}" | sed 's/^/     /')" 2>"$TMP/recipe.err"
	export XDG_CONFIG_HOME=$SET/web1.example/etc
	[[ ${blocks[5]} == *$'\nredlock doctor\n' ]]
}

# as_on_page: what redlock prints here as it stands there, without figures.
as_on_page() {
	sed -e "s|$SET/web1.example||g" -e 's/\(Redis\|Valkey\) [0-9.]*/Redis N/; s/up for [0-9a-z]*/up for N/' \
		-e 's/under [0-9.a-z]*/under N/; s/clock [+-][0-9]*ms/clock N/'
}

# bats test_tags=native
# the page has no --server-timeout for handshakes that take seconds
@test "whoever follows the recipe has three servers on which all is well, and one may fail" {
	follow
	redlock doctor
	[[ $status == 0 && ! $stderr ]]
	diff <(tr '\n' '\f' <<<"${blocks[6]}" | sed 's/\f  / /g' | tr '\f' '\n' | grep . | as_on_page) <(as_on_page <<<"$output")
	redlock() { "$REDLOCK" "$@"; }
	eval "${blocks[7]}" >"$TMP/out" 2>"$TMP/err"
	diff - "$TMP/out" <<-end
		it works
		it works without lock1, too
	end
	[[ ! -s $TMP/err ]]
	"$REDLOCK" doctor -q >"$TMP/out"
	[[ ! -s $TMP/out ]]
}

# bats test_tags=native
# the same
@test "the servers of the recipe keep a lock, and vote at once, when all of them are killed" {
	local i
	follow
	export REDLOCK_SERVER_TIMEOUT=9s
	redlock acquire -t 10m "$KEY"
	expect 0 '[0-9a-f]+'
	for i in 1 2 3; do server_ends "$NET.$i" KILL; done
	for i in 1 2 3; do ssh "root@$NET.$i" 'systemctl start redis-server'; done
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock acquire -n "$KEY-free"
	expect 0 '[0-9a-f]+'
}

# bats test_tags=native
# the same
@test "with a user default that has no rights they would forget it: they have no vote when all were killed" {
	local i
	follow
	export REDLOCK_SERVER_TIMEOUT=9s
	for i in 1 2 3; do
		sed -i 's/^user default .*/user default off/' "$SET/$NET.$i/etc/redis/locks/users.acl"
		ssh "root@$NET.$i" 'systemctl restart redis-server'
	done
	redlock acquire -t 10m --quarantine 0 "$KEY"
	expect 0 '[0-9a-f]+'
	for i in 1 2 3; do server_ends "$NET.$i" KILL; done
	for i in 1 2 3; do ssh "root@$NET.$i" 'systemctl start redis-server'; done
	redlock acquire -n "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*up for only .*"
	redlock doctor -q --quarantine 0
	[[ $status == 0 && $output == *": warning: in a restart it may forget its locks: its user default lacks rights: "*"(--accept default)"* ]]
}

# bats test_tags=native
# the same
@test "the servers of the recipe let in nobody without the password" {
	follow
	redlock acquire -S "rediss://$NET.1" --cacert ca.pem "$KEY"
	expect 77 '' "redlock: $KEY: rediss://$NET.1:6379: .*NOAUTH.*"
	redlock acquire -S "redis://$NET.1" "$KEY"
	[[ $status == 69 ]]
}

@test "what the page shows after the recipe is tried by other tests" {
	local text tried shown=0
	tried=$(grep -rhoE "page_(block redlock-servers\.7|settings [^']*) '[^']+'" "$ROOT"/test/{lib,servers} | sed "s/^[^']*'//; s/'$//" |
		while IFS= read -r text; do page_block redlock-servers.7 "$text" | md5sum; done)
	while IFS= read -rd $'\f' text; do
		((++shown))
		[[ $tried == *"$(md5sum <<<"$text")"* ]] || { echo "no test tries: $text" && false; }
	done < <(sed -n '/^\.Sh RUNNING THEM/,$p' "$PAGE" | sed -n '/^\.Bd/,/^\.Ed/{ /^\.Bd/d; s/^\.Ed/\f/; s/\\e/\\/g; s/^\\&//; p; }' | sed -z 's/\n\f\n/\f/g')
	((shown >= 5))
}

@test "the user of the recipe may do what redlock needs, and nothing else" {
	local commands command
	eval "${blocks[1]}"
	servers_start 1 --appendonly yes --appendfsync always
	# shellcheck disable=SC2046 # the words of its line
	[[ $(rcli 0 ACL SETUSER $(sed -n 's/^user redlock/redlock/p' users.acl)) == OK ]]
	export REDLOCK_SERVERS=${REDLOCK_SERVERS/unix:\/\//unix://redlock@} REDLOCK_PASSWORD_FILE=$PWD/password
	redlock doctor -q --quarantine 10m
	expect 0
	for command in $commands; do
		[[ $command != @(unsubscribe|wait) ]] || continue # doctor has no waiter that lives on, and no replica
		[[ $(rcli 0 ACL SETUSER redlock "-$command") == OK ]]
		redlock doctor -q --quarantine 10m
		[[ $output ]] || echo "$command is not needed"
		[[ $(rcli 0 ACL SETUSER redlock "+$command") == OK ]]
	done >"$TMP/idle"
	[[ ! -s $TMP/idle ]]
}
