#!/usr/bin/env bats
# doctor: whether servers would grant a lock, and what is not as it should be.
# shellcheck disable=SC2016,SC2154 # text for inner shells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

# where the server is from
BY_LINE='settings: server from the command line'
BY_VARIABLE='settings: server from REDLOCK_SERVERS'
WELL='ok, (Redis|Valkey) [0-9.]+, up for [0-9a-z]+, answers in under [0-9.a-z]+, clock [+-][0-9]+ms, maxmemory-policy noeviction'
FORGETS='warning: in a restart it forgets its locks, and grants them anew: set appendonly yes, or use --quarantine \(--accept restart\)'

# is_empty I...: no key is there.
is_empty() {
	local i
	for i; do [[ $(rcli "$i" DBSIZE) == 0 ]] || return; done
}

# is_older I SECONDS: it says that it is up for more than that.
is_older() {
	[[ $(rcli "$1" INFO server) =~ uptime_in_seconds:([0-9]+) ]] && ((BASH_REMATCH[1] > $2))
}

# finds WHAT: so one of the lines begins, behind the server's name.
finds() {
	[[ $'\n'$output == *$'\n'"${2-$(server_url 0)}: $1"* ]] || { printf 'no %s in:\n%s\n' "$1" "$output" >&2 && false; }
}

# lacks WHAT: no line does.
lacks() {
	[[ $'\n'$output != *"$1"* ]] || { printf 'with %s:\n%s\n' "$1" "$output" >&2 && false; }
}

@test "a server that has all it needs is well, and nothing is left on it" {
	servers_start 1 --appendonly yes --appendfsync always
	redlock doctor
	expect 0 "$BY_VARIABLE
$(server_url 0): $WELL, appendfsync always
1 of 1 servers would grant a lock, 1 needed: 0 more may fail"
	is_empty 0
	redlock doctor -q
	expect 0
	redlock doctor -v
	[[ $status == 0 && $stderr == *': rights'*': acquire'*': hand over'* ]]
}

@test "for programs it is one JSON object" {
	servers_start 3 --appendonly yes --appendfsync always
	server_kill 2
	redlock doctor --format json
	expect 0 '.*'
	python3 - "$output" <<-'END'
		import json, sys
		told = json.loads(sys.argv[1])
		one, _, dead = told.pop("servers")
		assert told == {"would_grant": 2, "needed": 2, "quorum": True, "warnings": [],
			"settings": {"server": "REDLOCK_SERVERS"}}, told
		assert one["server"].startswith("unix:///") and one["error"] is None
		assert one["version"].count(".") == 2
		assert one["uptime_ms"] >= 0 and one["round_trip_ms"] >= 0 and abs(one["clock_ms"]) < 60000
		assert (one["maxmemory_policy"], one["appendonly"], one["appendfsync"], one["snapshots"]) == \
			("noeviction", True, "always", False), one
		assert one["warnings"] == []
		assert dead["error"].startswith(("Connection refused: ", "No such file")), dead
		assert set(dead) == set(one) and dead["version"] is dead["clock_ms"] is dead["appendonly"] is None
	END
	rcli 0 CONFIG SET appendonly no
	redlock doctor --format json -S "$(server_url 0),$(server_url 1)"
	python3 - "$output" <<-'END'
		import json, sys
		told = json.loads(sys.argv[1])
		assert told["quorum"] is True and len(told["warnings"]) == 1, told
		assert [len(one["warnings"]) for one in told["servers"]] == [1, 0]
	END
}

@test "a server that is not there is told with the remedy, and is 69" {
	redlock doctor -S unix:///nonexistent/sock
	expect 69 "$BY_LINE
unix:///nonexistent/sock: error: No such file or directory: is it up, and is -S right\?" \
		'redlock: 0 of 1 servers would grant a lock, 1 needed'
	redlock doctor -q -S unix:///nonexistent/sock
	expect 69 'unix:///nonexistent/sock: error: .*' 'redlock: 0 of 1 .*'
}

@test "how many servers may fail is told, dead ones being none" {
	servers_start 5 --appendonly yes --appendfsync always
	redlock doctor
	[[ $status == 0 && $output == *$'\n5 of 5 servers would grant a lock, 3 needed: 2 more may fail' ]]
	server_kill 1 3
	redlock doctor
	[[ $status == 0 && $output == *$'\n3 of 5 servers would grant a lock, 3 needed: 0 more may fail' ]]
	finds 'error: Connection refused' "$(server_url 3)"
	redlock doctor -q
	expect 0 "$(server_url 1): error: .*
$(server_url 3): error: .*"
	server_kill 0
	redlock doctor
	[[ $status == 69 && $stderr == 'redlock: 2 of 5 servers would grant a lock, 3 needed' ]]
	is_empty 2 4
}

@test "a silent server delays the others by one round, and is named" {
	local began
	servers_start 3 --appendonly yes --appendfsync always
	server_stop 1
	began=$NOW
	redlock doctor --server-timeout 3s
	((NOW - began < 8000))
	[[ $status == 0 && $output == *$'\n2 of 3 servers would grant a lock, 2 needed: 0 more may fail' ]]
	finds 'error: no answer within 3' "$(server_url 1)"
	server_continue 1
	wait_until 'server_drained 1'
	is_empty 0 1 2
}

@test "a refused login is 77, and no password is shown" {
	servers_start 1
	rcli 0 CONFIG SET requirepass secret
	redlock doctor
	expect 77 "settings: .*
.*: error: it requires a password .NOAUTH.: set REDLOCK_PASSWORD" 'redlock: 0 of 1 .*'
	REDLOCK_PASSWORD=hunter2 redlock doctor
	expect 77 "settings: .*
.*: error: .*WRONGPASS.: see the server's ACL, and REDLOCK_PASSWORD" 'redlock: 0 of 1 .*'
	[[ $output$stderr != *hunter2* ]]
	REDLOCK_PASSWORD=secret redlock doctor
	[[ $status == 0 ]]
}

# allow RULE...: the user of $REDLOCK_SERVERS may do this.
allow() {
	rcli 0 ACL SETUSER ann reset on '>pw' "$@"
	export REDLOCK_SERVERS=unix://ann:pw@$SERVERS/0/redis.sock
}

@test "each command that the scripts use is named where the user lacks it" {
	local command commands
	servers_start 1 --appendonly yes
	commands=$(sed -n 's/ -- .*//; s/^ *--.*//; p' "$ROOT"/src/lock/lua/*.lua | tr '\n' ' ' |
		grep -oE "\\b(call|try|redis\\.p?call)\\('[a-z]+'" | grep -oE "[a-z]+'$" | tr -d "'" | sort -u)
	[[ $(wc -l <<<"$commands") -ge 25 ]]
	for command in $(grep -vxE 'cluster|spublish' <<<"$commands"); do # which are for clusters
		allow '~*' '&*' +@all "-$command"
		redlock doctor -S "$REDLOCK_SERVERS?db=1"
		case $command in
		publish | pubsub | scan | dbsize | info | hgetall | zcount | lrange | rpush | ltrim)
			[[ $status == 0 ]]
			finds "warning: its user lacks +$command, which" "$(server_url 0)?db=1"
			;;
		*)
			[[ $status == 77 ]]
			finds "error: its user lacks +$command: see the server's ACL" "$(server_url 0)?db=1"
			;;
		esac
	done
	is_empty_soon
}

@test "a command that the server does not have is no missing right: doctor says what run says, with the same status" {
	local command
	for command in TYPE PEXPIRE HSET; do
		servers_start 1 --rename-command "$command" ''
		redlock run -n "$KEY" true
		expect 69 '' "redlock: $KEY: $(server_url 0): it lacks a command that locks need .*"
		redlock doctor
		[[ $status == 69 && $output != *'its user'* ]]
		finds "error: it lacks commands that locks need: ${command,,}: is it a Sentinel" "$(server_url 0)"
	done
}

is_empty_soon() {
	wait_until 'is_empty 0' 40
}

@test "what else a user may lack is named, too" {
	servers_start 1 --appendonly yes
	allow '~*' '&*' +@all -eval
	redlock doctor
	[[ $status == 77 ]]
	finds 'error: its user may not do this (NOPERM '
	[[ $output == *" has no permissions to run the 'eval' command): see redlock doctor, and ACL SETUSER there"* ]]
	allow '~*' '&*' +@all -subscribe
	redlock doctor
	[[ $status == 0 ]]
	finds 'warning: no subscription: its user may not do this (NOPERM '
	[[ $output == *" has no permissions to run the 'subscribe' command): "* ]]
	allow '~*' '&*' +@all -publish
	redlock doctor
	[[ $status == 0 ]]
	finds 'warning: a waiter was not told that it was its turn'
	allow '~*' '&*' +@all -client
	redlock doctor
	[[ $status == 0 ]]
	lacks warning
	allow '~*' '&*' +@all -info
	redlock doctor
	[[ $status == 0 && $output != *Redis* && $output == *'maxmemory-policy unknown, appendfsync everysec'* ]]
	redlock doctor --quarantine 1ms # which asks who it is
	[[ $status == 77 ]]
	finds 'error: its user may not do this (NOPERM '
	[[ $output == *" has no permissions to run the 'info' command): "* ]]
	allow '~*' '&*' +@all -config
	redlock doctor
	[[ $status == 0 && $output == *'appendfsync unknown'* ]]
	allow '~*' '&*' +@all -config -info
	redlock doctor
	[[ $status == 0 ]]
	finds 'warning: in a restart it may forget its locks'
}

@test "a user default that may not do what is in the file is warned of, and that our user may not ask" {
	servers_start 1 --appendonly yes --appendfsync always
	allow '~*' '&*' +@all
	redlock doctor -q --quarantine 1ms
	expect 0
	wait_until 'is_older 0 1'
	rcli 0 ACL SETUSER default -hset
	redlock doctor --quarantine 1ms
	[[ $status == 0 ]]
	finds "warning: in a restart it may forget its locks: its user default lacks rights: give it ~* &* +@all in the server's ACL, even if it is off (--accept default)"
	[[ $output == *', no vote for 1ms after a restart'* ]]
	redlock doctor -q --accept default
	expect 0
	rcli 0 CONFIG SET appendfsync everysec
	redlock doctor
	finds 'warning: in a restart it may forget its locks: its user default lacks rights: '
	rcli 0 ACL SETUSER default +@all
	allow '~*' '&*' +@all '-acl|getuser'
	redlock doctor
	[[ $status == 0 ]]
	finds 'warning: in a restart it may forget its locks: its user default may lack rights, which our user may not ask for: allow it +acl|getuser (--accept default)'
	rcli 0 CONFIG SET appendonly no
	redlock doctor -q --quarantine 1ms
	expect 0
}

@test "keys and channels that the user may not use are named as patterns" {
	servers_start 1 --appendonly yes
	allow '~lock:*' '~{lock:*' '&{lock:*' '&redisson_lock__channel:{lock:*' +@all
	redlock doctor lock:nightly
	[[ $status == 0 ]]
	lacks warning
	redlock doctor
	[[ $status == 77 ]]
	finds "error: its user lacks ~redlock* ~{redlock*: see the server's ACL"
	allow '~lock:*' '%R~{lock:*' '&*' +@all
	redlock doctor lock:nightly
	[[ $status == 77 ]]
	finds "error: its user lacks ~{lock:nightly*: see"
	allow '~*' '&{lock:*' +@all
	redlock doctor lock:nightly
	[[ $status == 0 ]]
	finds "warning: its user lacks &redisson_lock__channel:{lock:nightly*, which"
	allow '~*' '&redisson*' +@all
	redlock doctor lock:nightly
	finds "warning: its user lacks &{lock:nightly*, which"
	finds "warning: no subscription: its user may not do this (NOPERM"
	redlock doctor 'a{b}c'
	finds "warning: its user lacks &a{b}c*, which"
}

# grant: what doctor has named.
grant() {
	local rights
	mapfile -t rights < <(tr ' ' '\n' <<<"$output" | grep '^[+~&]' | sed 's/[:,]$//')
	[[ $(rcli 0 ACL SETUSER ann "${rights[@]}") == OK ]]
}

@test "commands and keys that the user lacks are named at once, and channels once these are granted" {
	servers_start 1 --appendonly yes
	[[ $(rcli 0 EVAL 'return redis.acl_check_cmd and 1 or 0' 0) == 1 ]] || skip 'since Redis 7'
	allow '~lim*' +eval +time
	redlock run -n lim true
	[[ $status == 77 && $stderr == *' +set ~{lim}:redlock*: see'* ]]
	redlock doctor -q --accept restart,default lim
	[[ $status == 77 && $output == *" +set ~{lim*: see the server's ACL"* ]]
	finds 'warning: its user lacks +publish '
	grant
	redlock doctor -q --accept restart,default lim
	expect 0 '.*: warning: its user lacks &\{lim\* &redisson_lock__channel:\{lim\*, which .*
.*: warning: no subscription: .* .subscribe. command.*'
	grant
	rcli 0 ACL SETUSER ann +subscribe +unsubscribe
	redlock doctor -q --accept restart,default lim
	expect 0
}

@test "a lock on KEY is not touched" {
	local token before
	servers_start 1
	token=$("$REDLOCK" acquire -t 10m "$KEY")
	before=$(rcli 0 KEYS '*' | sort && rcli 0 HGETALL "$(record)")
	redlock doctor "$KEY"
	[[ $status == 0 ]]
	[[ $(rcli 0 KEYS '*' | sort && rcli 0 HGETALL "$(record)") == "$before" ]]
	key_held_by "$token" 0
}

@test "any KEY will do" {
	local key
	servers_start 1 --appendonly yes
	for key in "$(head -c 4096 /dev/zero | tr '\0' x)" ' ' $'\xff\xfe\x01\n\e[31m' '{a}{b}' 'a{b}c' '{x}' '%s%n' "'" ':doctor:'; do
		redlock doctor -q "$key"
		expect 0
	done
	is_empty 0
}

@test "a replica, and a node of a cluster, are no servers for locks" {
	servers_start 3 --appendonly yes --appendfsync always
	rcli 1 REPLICAOF 127.0.0.1 1
	redlock doctor
	[[ $status == 0 ]]
	finds 'error: a replica: name its master' "$(server_url 1)"
	redlock doctor -S "$(server_url 1)"
	expect 69 'settings: .*
.*: error: a replica: name its master' 'redlock: 0 of 1 .*'
	rcli 1 CONFIG SET replica-read-only no
	redlock doctor -S "$(server_url 1)"
	[[ $status == 69 ]]
	servers_start_tcp 1 --cluster-enabled yes
	redlock doctor
	expect 69 'settings: .*
.*: error: a node of a cluster: name it redis\+cluster://host:port' 'redlock: 0 of 1 .*'
	is_empty 0
}

# fake FACT=VALUE...: $FAKE is the URL of a server that tells other facts of itself.
fake() {
	set_new
	"$TOOLS/start" -k python3 -c '
import sys
sys.path.insert(0, sys.argv[1] + "/test/lib/tools")
from hostile import FACTS, LOOP, Server, bulk
facts = FACTS
for fact in sys.argv[3:]:
    name, value = fact.split("=", 1)
    before, rest = facts.split(name + ":", 1)
    facts = before + name + ":" + value + "\r\n" + rest.split("\r\n", 1)[1]
Server(sys.argv[2] + "/sock", {"facts": bulk(facts)})
LOOP.run()
' "$ROOT" "$SET" "$@" 3>&- 4>&- &
	echo $! >"$SET/pid"
	disown $!
	FAKE=unix://$SET/sock
	wait_until '[[ -S $SET/sock ]]'
}

@test "a version that is too old is refused, and what a server tells is shown as it is" {
	fake redis_version=4.0.14
	redlock doctor -S "$FAKE"
	expect 69 'settings: .*
.*: error: too old: locks need Redis 5 or later' 'redlock: 0 of 1 .*'
	fake redis_version=10.0.1
	redlock doctor -S "$FAKE"
	[[ $status == 0 && $output == *': ok, Redis 10.0.1, '* ]]
	fake redis_version=$'7.2.4\r\nvalkey_version:9.1.2'
	redlock doctor -S "$FAKE"
	[[ $status == 0 && $output == *': ok, Valkey 9.1.2, '* ]]
	redlock doctor --format json -S "$FAKE"
	[[ $(jq -c '.servers[0] | [.software, .version]' <<<"$output") == '["Valkey","9.1.2"]' ]]
	fake redis_version=$'\e[31m8.0' uptime_in_seconds=99999999999999999999 maxmemory=1 maxmemory_policy=$'all\x01keys'
	redlock doctor -S "$FAKE"
	[[ $status == 0 && $output == *': ok, Redis \e[31m8.0, answers'*'it may evict locks: maxmemory-policy is all\x01keys: set'* ]]
	fake role=slave
	redlock doctor -S "$FAKE"
	expect 69 'settings: .*
.*: error: a replica: name its master' 'redlock: 0 of 1 .*'
}

@test "two names of one server are 78, as for a lock" {
	servers_start 3 --appendonly yes --appendfsync always
	ln -s "$SERVERS/0/redis.sock" "$SERVERS/alias"
	redlock doctor -S "unix://$SERVERS/alias" -S "$(server_urls)"
	[[ $status == 78 && $stderr == "redlock: unix:///"*" and unix:///"*" are the same server: name it only once" ]]
	[[ $output == *": error: unix:///"*" are the same server: name it only once"* ]]
	is_empty 0 1 2
}

@test "an even number of servers is advised against" {
	servers_start 4 --appendonly yes --appendfsync always
	redlock doctor -q
	expect 0 'warning: an even number of servers tolerates no more failures than one server fewer \(--accept even\)'
}

@test "a lease with which run would be refused is warned of, with the reason of run, and servers are tested" {
	local why
	servers_start 1 --appendonly yes
	printf 'ttl = 2s\nkill-after = 5s\n' >"$TMP/short.conf"
	redlock run --config "$TMP/short.conf" "$KEY" true
	expect 78 '' 'redlock: a lease \(-t\) of 2000 ms is too short to .* \(ttl from .*:1, kill-after from .*:2\)'
	why=${stderr#redlock: }
	redlock doctor --config "$TMP/short.conf"
	[[ $status == 0 && $output == *$'\n1 of 1 servers would grant a lock, 1 needed: 0 more may fail' ]]
	finds "run and acquire --pid would be refused: $why (--accept ttl)" warning
	redlock doctor --config "$TMP/short.conf" --format json
	[[ $status == 0 && $(jq -r '.warnings[]' <<<"$output") == *" would be refused: $why" ]]
	redlock doctor -q -t 150ms --server-timeout 1s
	expect 0 'warning: run and acquire --pid would be refused: a lease \(-t\) of 150 ms is too short .*'
	redlock doctor -q -t 150ms --server-timeout 1s --accept ttl
	expect 0
	redlock doctor -q -t 30s --config "$TMP/short.conf"
	expect 0
}

@test "evictions are warned of where there is a limit to memory" {
	servers_start 1 --appendonly yes
	rcli 0 CONFIG SET maxmemory-policy volatile-lru
	redlock doctor -q
	expect 0
	rcli 0 CONFIG SET maxmemory 100mb
	redlock doctor -q
	expect 0 '.*: warning: it may evict locks: maxmemory-policy is volatile-lru: set it to noeviction \(--accept eviction\)'
	rcli 0 CONFIG SET maxmemory-policy noeviction
	redlock doctor -q
	expect 0
	rcli 0 CONFIG SET maxmemory 1
	redlock doctor
	[[ $status == 69 ]]
	finds 'error: its memory is full (OOM)'
}

@test "what a restart means is told: for one server, and for three" {
	servers_start 3
	redlock doctor -q -S "$(server_url 0)"
	expect 0 "$(server_url 0): $FORGETS"
	rcli 0 CONFIG SET save '3600 1'
	redlock doctor -S "$(server_url 0)"
	expect 0 "settings: .*
.*, appendonly no, snapshots
.*: warning: in a restart it forgets its latest locks, and .*
1 of 1 .*"
	rcli 0 CONFIG SET appendonly yes
	redlock doctor -S "$(server_url 0)"
	expect 0 "settings: .*
.*, appendfsync everysec
1 of 1 .*"
	wait_until 'is_older 1 2'
	redlock doctor -S "$(server_url 1)" --quarantine 1ms
	expect 0 "settings: .*
.*, appendonly no, no vote for 1ms after a restart
1 of 1 .*"
}

@test "a server that has just been started has no vote, and it is told until when" {
	servers_start 3
	redlock doctor
	[[ $status == 69 && $stderr == 'redlock: 0 of 3 servers would grant a lock, 2 needed' ]]
	finds 'error: up for '
	[[ $output == *'it may have forgotten leases and has no vote until it has been up for 1m00s (--quarantine)'* ]]
	redlock doctor -t 1h
	[[ $output == *'has no vote until it has been up for 1h'*' (--quarantine)'* ]]
	redlock doctor --quarantine 0
	[[ $status == 0 ]]
	wait_until 'is_older 0 3 && is_older 1 3 && is_older 2 3'
	redlock doctor -t 2s --quarantine 2s
	[[ $status == 0 && $output == *$'\n3 of 3 servers would grant a lock, 2 needed: 1 more may fail' ]]
}

@test "of three servers the one that was restarted empty has no vote" {
	servers_start 3 --appendonly yes --appendfsync always
	rcli 1 CONFIG SET appendonly no
	redlock doctor -q -t 1h
	expect 0 "$(server_url 1): error: up for only .*: it may have forgotten leases and has no vote until it has been up for 1h.* \(--quarantine\)"
	redlock doctor -t 1h
	[[ $status == 0 && $output == *$'\n2 of 3 servers would grant a lock, 2 needed: 0 more may fail' ]]
	server_restart 0
	redlock doctor -q -t 1h
	[[ $status == 0 ]]
}

@test "clocks that differ are warned of, by how much" {
	set_new
	perl -e 'print pack "q3", 7_000_000_000, 0, 0' >"$SET/clock"
	CLOCK=$SET/clock LD_PRELOAD=$TOOLS/clock.so servers_start 1 --appendonly yes
	redlock doctor
	[[ $status == 0 && $output =~ ,\ clock\ \+(6[89]|7[01])[0-9][0-9]ms, ]]
	finds 'warning: its clock and ours are '
	[[ $output == *'s apart: fences may decrease if data is lost: set both clocks by NTP'* ]]
	servers_start 1 --appendonly yes
	redlock doctor
	[[ $status == 0 ]]
	lacks 'apart'
}

@test "at no moment is there a key without an end, and a doctor that is killed leaves none for long" {
	local left key
	servers_start 1 --appendonly yes
	proxies_start
	proxy 0 'delay 60'
	spawn doctor "$REDLOCK" doctor --server-timeout 2s -S "$(proxy_url 0)"
	while is_running doctor; do
		for key in $(rcli 0 KEYS '*'); do
			left=$(rcli 0 PTTL "$key")
			echo "$left" >>"$TMP/left"
			((left != -1 && left <= 60000)) || { echo "$key: $left" && false; }
		done
	done
	finish doctor
	[[ $status == 0 && -s $TMP/left ]]
	is_empty 0
	rcli 0 CONFIG SET notify-keyspace-events Ez
	spawn queues timeout 60 redis-cli -s "$SERVERS/0/redis.sock" PSUBSCRIBE '__keyevent@0__:zadd'
	wait_until 'grep -q psubscribe "$TMP/queues.out"'
	spawn doctor "$REDLOCK" doctor --server-timeout 2s -S "$(proxy_url 0)"
	until grep -q doctor "$TMP/queues.out" || ! is_running doctor; do :; done
	kill -KILL "$(pid doctor)"
	wait_until 'grep -q doctor "$TMP/queues.out"'
	for key in $(rcli 0 KEYS '*'); do
		left=$(rcli 0 PTTL "$key")
		((left != -1 && left <= 60000))
	done
}

# F12 of old: it cannot be prevented, but it is foretold
@test "one server that forgets, restarted at once, grants a lock twice: doctor has warned" {
	servers_start 1
	redlock doctor -q --quarantine 0
	expect 0 "$(server_url 0): $FORGETS"
	mkdir "$TMP/stamps"
	spawn first "$REDLOCK" run -t 30s --quarantine 0 "$KEY" "$STAMP" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	server_restart 0
	redlock run -n --quarantine 0 "$KEY" "$STAMP" -d 10 "$TMP/stamps"
	[[ $status == 0 ]]
	run assert_exclusive "$TMP/stamps" 2
	[[ $status == 1 && $output == overlap:* ]]
}

@test "what is no usage of it is 64, and an output that cannot be written 71" {
	servers_start 1 --appendonly yes
	redlock doctor a b
	expect 64 '' "redlock: doctor: one argument too many: 'b': see redlock doctor --help"
	redlock doctor ''
	expect 64 '' 'redlock: doctor: KEY is empty.*'
	redlock doctor --format shell
	expect 64 '' "redlock: doctor: --format 'shell' is not json or prometheus"
	redlock doctor -n
	expect 64 '' "redlock: doctor: option '-n' is for other commands.*"
	run sh -c 'timeout 20 "$REDLOCK" doctor >/dev/full'
	[[ $status == 71 ]]
}

@test "on a narrow terminal doctor's lines are broken between words, and nothing is lost" {
	servers_start 2
	wraps doctor
	[[ ${#lines[@]} -gt 8 && ${lines[2]} == '    '[!\ ]* ]]
}

@test "a warning that is accepted is not told, in a text, in JSON and by the settings; its name is" {
	servers_start 2
	redlock doctor -q --quarantine 0 --accept restart
	expect 0 'warning: an even number of servers .* \(--accept even\)'
	redlock doctor -q --quarantine 0 --accept 'even, restart'
	expect 0
	redlock doctor --quarantine 0 --accept even,restart --format json
	[[ $status == 0 && $(jq -c '[.warnings, .servers[].warnings]' <<<"$output") == '[[],[],[]]' ]]
	printf 'accept = even,restart\n' >"$TMP/accepts.conf"
	redlock doctor -q --quarantine 0 --config "$TMP/accepts.conf"
	expect 0
	redlock doctor --accept evne
	expect 64 '' "redlock: doctor: --accept 'evne' is not one of rights, .*even"
	redlock doctor --accept ''
	expect 64 '' 'redlock: doctor: --accept .*'
}
