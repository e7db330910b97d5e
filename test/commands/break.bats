#!/usr/bin/env bats
# break --now: a lock is taken away from whoever holds it. break_asks.bats has the break that asks first.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

# held_everywhere: by web3, on every server.
held_everywhere() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do hold_exclusive "$i" token web3 812 backup.sh 4; done
}

BREAKS="until 'broken'" # a proxy's line: what follows holds from the request that takes KEY away
EVICTED="evicted web3 pid 812 'backup.sh', held for 4h0[0-9]m"

@test "a lock is taken away everywhere, and it is told from whom" {
	held_everywhere
	redlock break --now -y "$KEY"
	expect 0 "$KEY: $EVICTED"
	key_free 0 1 2
	# the fence stays, the holder's description does not
	[[ $(servers_with 0 HEXISTS "$(record)" holder:token) == 3 ]]
	[[ $(servers_with 1700000000001 HGET "$(record)" fence) == 3 ]]
	redlock acquire --quarantine 0 --format json "$KEY"
	[[ $status == 0 ]] && (($(of .fence) > 1700000000001))
}

@test "a KEY that nobody holds is 1" {
	redlock break --yes "$KEY"
	expect 1 '' "redlock: $KEY: not held"
	only 0
	redlock break --now -y "$KEY"
	expect 1 '' "redlock: $KEY: not held"
	hold_permit 0 0 over web4 44 'read four' 5
	rcli 0 ZADD "$KEY" $(($(date_ms) - 1)) over
	redlock break --now -y "$KEY"
	expect 1 '' "redlock: $KEY: not held"
}

@test "without a terminal and without -y nothing is touched, and it is 64" {
	held_everywhere
	redlock break "$KEY"
	expect 64 '' "redlock: $KEY: .*-y.*"
	key_held_by token 0 1 2
	# not even a server is asked
	redlock break -S "$NOWHERE" "$KEY"
	expect 64 '' "redlock: $KEY: .*-y.*"
}

@test "-q does it without a word" {
	held_everywhere
	redlock break --now -qy "$KEY"
	expect 0
	key_free 0 1 2
}

@test "all holders of a shared lock are evicted, and all are told" {
	only 0
	hold_permit 0 0 one web1 11 'read one' 2
	hold_permit 0 0 two web2 22 'read two' 3
	hold_permit 0 0 over web4 44 'read four' 5
	rcli 0 ZADD "$KEY" $(($(date_ms) - 1)) over
	redlock break --now -y "$KEY"
	expect 0 "$KEY: evicted web2 pid 22 'read two', held for 3h0[0-9]m
$KEY: evicted web1 pid 11 'read one', held for 2h0[0-9]m"
	key_free 0
	[[ $(rcli 0 HEXISTS "$(record)" fence) == 1 && $(rcli 0 HKEYS "$(record)") != *holder:* ]]
}

@test "of very many holders the first are told, and how many more there were" {
	local i until
	only 0
	hold_permit 0 2000 one web1 11 'read one' 2
	until=$(($(date_ms) + 36000000))
	for ((i = 0; i < 200; i++)); do echo "ZADD $KEY $until token$i"; done | fill 0
	redlock break --now -y "$KEY"
	[[ $status == 0 && ${#lines[@]} == 61 && ${lines[60]} == "$KEY: evicted 141 more" ]]
	key_free 0
}

@test "a reentrant lock is broken whole" {
	only 0
	hold_reentrant 0 token 3 web3 812 backup.sh 4
	redlock break --now -y "$KEY"
	expect 0 "$KEY: $EVICTED"
	key_free 0
}

@test "another program's lock is broken, its secret is not shown" {
	only 0
	rcli 0 SET "$KEY" their-secret NX PX 36000000
	redlock break --now -y "$KEY"
	expect 0 "$KEY: evicted another program"
	key_free 0
	rcli 0 HSET "$KEY" 285475da-9152-4c83-822a-67ee2f116a79:52 2
	rcli 0 PEXPIRE "$KEY" 36000000
	spawn heard redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "redisson_lock__channel:{$KEY}"
	wait_until 'grep -q subscribe $TMP/heard.out'
	redlock break --now -y "$KEY"
	expect 0 "$KEY: evicted another program"
	key_free 0
	# those of its kind that wait are woken
	wait_until '[[ $(tail -n 1 $TMP/heard.out) == 0 ]]'
}

@test "what is no lock stays as it is, and it is 65" {
	local key
	only 0
	rcli 0 RPUSH "$KEY-list" element
	rcli 0 SADD "$KEY-set" element
	rcli 0 XADD "$KEY-stream" '*' name value
	rcli 0 ZADD "$KEY-zset" 1 member
	rcli 0 ZADD "$KEY-lasting" 1 member
	rcli 0 HSET "$(record "$KEY-lasting")" permits 0
	rcli 0 HSET "$KEY-hash" name ann
	rcli 0 SET "$KEY-string" text
	rcli 0 HSET "$(record "$KEY-string")" fence 1
	for key in list set stream zset lasting hash string; do
		redlock break --now -y "$KEY-$key"
		expect 65 '' "redlock: $KEY-$key: $(server_url 0): KEY is a [a-z ]*, which is not a lock: it stays as it is; --foreign deletes it"
		[[ $(rcli 0 EXISTS "$KEY-$key") == 1 ]]
	done
	[[ $(rcli 0 ZCARD "$KEY-lasting") == 1 ]]
	for key in list set stream zset lasting hash string; do
		redlock break --now -y --foreign "$KEY-$key"
		expect 0 "$KEY-$key: deleted a ${key/lasting/zset}, which was not a lock"
		[[ $(rcli 0 EXISTS "$KEY-$key") == 0 ]]
	done
}

@test "what has an expiry is a lock, whoever made it" {
	local key
	only 0
	rcli 0 SET "$KEY-string" token PX 36000000
	rcli 0 HSET "$KEY-hash" name 1
	rcli 0 ZADD "$KEY-zset" 1 member
	rcli 0 PEXPIRE "$KEY-hash" 36000000
	rcli 0 PEXPIRE "$KEY-zset" 36000000
	for key in string hash zset; do
		redlock break --now -y "$KEY-$key"
		expect 0 "$KEY-$key: evicted another program"
		[[ $(rcli 0 EXISTS "$KEY-$key") == 0 ]]
	done
}

@test "a record that is something else does not save a lock, and stays as it is" {
	local options
	only 0
	rcli 0 SET "$(record)" nonsense
	rcli 0 SET "$(record):queue" nonsense
	rcli 0 SET "$KEY" token PX 3000
	redlock extend "$KEY" token
	[[ $status == 0 && $(rcli 0 PTTL "$(record)") == -1 ]]
	for options in --now --foreign ''; do
		rcli 0 SET "$KEY" token PX 3000
		# shellcheck disable=SC2086 # words
		redlock break $options -y "$KEY"
		[[ $status == 0 && $output == "$KEY: "*"another program"* ]]
		key_free 0
		[[ $(rcli 0 GET "$(record)") == nonsense && $(rcli 0 PTTL "$(record)") == -1 ]]
	done
}

@test "if KEY is no lock and is deleted, the fence, the history and the queue beside it stay" {
	local fence
	only 0
	redlock run "$KEY" true
	fence=$(rcli 0 HGET "$(record)" fence)
	rcli 0 SET "$KEY" text
	spawn next "$REDLOCK" run "$KEY" true
	wait_until 'queued 1 0'
	redlock break --foreign -y "$KEY"
	expect 0 "$KEY: deleted a string, which was not a lock"
	finish next
	expect 0
	(($(rcli 0 HGET "$(record)" fence) > fence))
	[[ $("$REDLOCK" history --format json "$KEY" | jq '.runs | length') == 2 ]]
}

@test "what a holder on too few servers has is taken away as well" {
	hold_exclusive 1 token web3 812 backup.sh 4
	redlock break --now -y "$KEY"
	expect 0 "$KEY: $EVICTED"
	key_free 0 1 2
}

@test "holders that differ between servers are all evicted" {
	hold_exclusive 0 token web3 812 backup.sh 4
	hold_exclusive 1 other web4 99 backup.sh 3
	redlock break --now -y "$KEY"
	expect 0 "$KEY: $EVICTED
$KEY: evicted web4 pid 99 'backup.sh', held for 3h0[0-9]m"
	key_free 0 1 2
}

@test "a run whose lock is broken stops its command: 76" {
	local servers
	for servers in 1 3; do
		use "$servers"
		spawn run "$REDLOCK" run --quarantine 0 -t 3s --label 'a job' "$KEY" sleep 60
		wait_until '[[ $(servers_with 1 EXISTS $KEY) == "$servers" ]]'
		redlock break --now -y "$KEY"
		expect 0 "$KEY: evicted .* pid [0-9]+ 'a job', held for $TIME: it may run on for up to 1s"
		finish run
		expect 76 '' "redlock: $KEY: lock lost: broken by [^ ]*@[^ ]*: COMMAND is stopped"
		key_free 0 1 2
	done
}

@test "the first in the queue is given the lock, with the next fence, and told" {
	only 0
	hold_exclusive 0 token web3 812 backup.sh 4
	queue_up 0 second 1 'string 0' web5 5 'second'
	queue_up 0 first 2 'string 0' web4 4 'first'
	spawn heard redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "$(record):first"
	wait_until 'grep -q subscribe $TMP/heard.out'
	redlock break --now -y "$KEY"
	expect 0 "$KEY: $EVICTED"
	wait_until '[[ $(tail -n 1 $TMP/heard.out) =~ ^7\ 1700000000002\ 3000\ -(\ [0-9]+)?$ ]]'
	key_held_by first 0
	[[ ! $(rcli 0 ZRANGE "$(record):queue" 0 -1) ]] # nobody listens for the second
}

@test "the reply lost, the request repeated: only one holder is evicted" {
	only 0
	proxies_start
	hold_exclusive 0 token web3 812 backup.sh 4
	queue_up 0 next 1 'string 0' web4 4 'next'
	spawn heard redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "$(record):next"
	wait_until 'grep -q subscribe $TMP/heard.out'
	proxy 0 "$BREAKS" 'close 1'
	redlock break --now -y -S "$(proxy_url 0)" "$KEY"
	expect 0 "$KEY: $EVICTED"
	proxy_did 0 close
	key_held_by next 0
}

@test "the reply lost: the second one says the same, of each kind of lock, and for how long a command may run on" {
	local options what
	only 0
	proxies_start
	for options in -x '-P 2' -s -r; do
		KEY+=${options// /}
		# shellcheck disable=SC2086 # words
		spawn run "$REDLOCK" run $options -t 3s --label 'a job' "$KEY" sleep 60
		wait_until '[[ $(rcli 0 EXISTS $KEY) == 1 ]]'
		proxy 0 "$BREAKS" 'close 1'
		redlock break --now -y -S "$(proxy_url 0)" "$KEY"
		what=': it may run on for up to 1s'
		[[ $options != -r ]] || what='.*'
		expect 0 "$KEY: evicted .* pid [0-9]+ 'a job', held for $TIME$what"
		proxy_did 0 close
		finish run
	done
	# all of them, if there are many
	KEY+=-many
	printf 'ZADD %s 9999999999999 %s\n' $(for i in {1..200}; do echo "$KEY" "reader$i"; done) | fill 0
	rcli 0 PEXPIRE "$KEY" 36000000
	rcli 0 HSET "$(record)" fence 5 permits 0 holder:reader1 "$(described web1 11 'read')"
	proxy 0 "$BREAKS" 'close 1'
	redlock break --now -y -S "$(proxy_url 0)" "$KEY"
	[[ $status == 0 && ${#lines[@]} == 61 && ${lines[60]} == "$KEY: evicted 140 more" ]]
}

@test "the reply lost, and KEY held by the next: that somebody was evicted is said" {
	only 0
	proxies_start
	hold_exclusive 0 token web3 812 backup.sh 4
	# between the two
	proxy 0 "$BREAKS" 'close 1' hold
	spawn break "$REDLOCK" break --now -y -S "$(proxy_url 0)" --server-timeout 10s "$KEY"
	wait_until '[[ $(rcli 0 HEXISTS "$(record)" broken) == 1 ]]'
	redlock run "$KEY" true
	expect 0
	proxy 0 pass
	finish break
	expect 0 "$KEY: evicted somebody: the answer that says whom was lost; a command may run on"
}

@test "a minority that is down changes nothing" {
	servers_start 3
	held_everywhere
	server_kill 2
	redlock break --now -y "$KEY"
	expect 0 "$KEY: $EVICTED"
	key_free 0 1
}

@test "without a quorum it is 69, and nobody is called evicted" {
	servers_start 3
	held_everywhere
	server_kill 1 2
	redlock break --now -y "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*"
	key_held_by token 0
}

@test "if a quorum says who holds KEY, but does not take it away, it is 69, and KEY may still be taken away" {
	servers_start 3
	proxies_start
	held_everywhere
	proxy 1 "$BREAKS" reset
	proxy 2 "$BREAKS" reset
	redlock break --now -y -S "$(proxy_urls)" "$KEY"
	[[ $status == 69 && $stderr == "redlock: $KEY: taken away on 1 of 3 servers only, and its holder may put that right: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: "* ]]
	[[ $stderr != *"it may still be taken away" ]]
	key_free 0
}

@test "a request that comes late takes KEY only from those who held it when break looked" {
	local before
	only 0
	proxies_start
	hold_exclusive 0 token web3 812 backup.sh 4
	proxy 0 "$BREAKS" hold
	redlock break --now -y --server-timeout 200ms -S "$(proxy_url 0)" "$KEY"
	expect 69 '' "redlock: $KEY: unix:.*: no answer within .*; it may still be taken away"
	rcli 0 DEL "$KEY"
	hold_exclusive 0 next web4 44 next.sh 1
	before=$(scripts_run 0)
	proxy 0 pass
	wait_until "((\$(scripts_run 0) > $before))"
	key_held_by next 0
}

@test "without its only server it is 69, and says which and why" {
	servers_start 1
	server_kill 0
	redlock break --now -y "$KEY"
	expect 69 '' "redlock: $KEY: $(server_url 0): Connection refused.*"
}

@test "a server that refuses is 77" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	redlock break --now -y "$KEY"
	expect 77 '' "redlock: $KEY: $(server_url 0): .*"
}

@test "hostile bytes are visible" {
	only 0
	hold_exclusive 0 token $'we\e[31mb\xff' 812 $'a\r\x01' 4
	redlock break --now -y "$KEY"
	expect 0 "$KEY: evicted we\\\\e\\[31mb\\\\xff pid 812 'a\\\\r\\\\x01', held for 4h0[0-9]m"
}

sessions=0

# asked [NAME]: the question is on the terminal.
asked() {
	wait_until 'grep -qF "[y/N]" $TMP/'"${1-session}.out"
}

# answered KEYS: what the terminal shows when KEYS are typed is in $TMP/shown.
answered() {
	local name=session-$((++sessions))
	in_terminal "$name" "$REDLOCK break --now $KEY; echo end: \$?"
	asked "$name"
	type_keys "$name" "$1"
	wait_until 'grep -q "end: " $TMP/'"$name.out"
	tr -d '\r' <"$TMP/$name.out" >"$TMP/shown"
}

@test "on a terminal it is asked first, and done where the answer is yes" {
	local answer
	for answer in y Y yes YES; do
		held_everywhere
		answered "$answer\\n"
		grep -qE "^break $KEY now, held by web3 pid 812 'backup.sh' for 4h0[0-9]m\? \[y/N\] " "$TMP/shown"
		grep -qxE "$KEY: $EVICTED" "$TMP/shown"
		grep -qx 'end: 0' "$TMP/shown"
		key_free 0 1 2
	done
}

@test "what cannot be on its way any more is not said to come" {
	servers_start 3
	held_everywhere
	in_terminal session "$REDLOCK break --now $KEY; echo end: \$?"
	asked
	server_kill 1 2
	type_keys session 'y\n'
	wait_until 'grep -q "end: 69" $TMP/session.out'
	grep -q "taken away on 1 of 3 servers only" "$TMP/session.out"
	run ! grep "may still" "$TMP/session.out"
}

@test "a server that has not said who holds KEY is waited for once, and is asked to take it away all the same" {
	local began
	servers_start 3
	held_everywhere
	server_stop 2
	began=$NOW
	redlock break --now -y --server-timeout 5s "$KEY"
	expect 0 "$KEY: $EVICTED"
	((NOW - began < 10000))
	pause 0.5
	server_continue 2
	wait_until 'key_free 0 1 2'
}

# members N NAME: so many shared holders, NAME1 and so on, more than an answer has room for.
members() {
	local i
	rcli 0 DEL "$KEY"
	for ((i = 1; i <= $1; i++)); do echo "ZADD $KEY 9999999999999 $2$i"; done | fill 0
	rcli 0 PEXPIRE "$KEY" 36000000
	rcli 0 HSET "$(record)" fence 5 permits 0 "holder:${2}1" "$(described web1 11 'read')"
}

@test "of many holders one that was seen is enough; if all are others, nothing is broken" {
	only 0
	proxies_start
	members 900 before
	proxy 0 "$BREAKS" hold
	spawn break "$REDLOCK" break --now -y --server-timeout 60s -S "$(proxy_url 0)" "$KEY"
	wait_until 'grep -q hold $PROXIES/0.log'
	members 900 after
	proxy 0 pass
	finish break
	expect 1 '' "redlock: $KEY: someone else holds it now: nothing was broken"
	[[ $(rcli 0 ZCARD "$KEY") == 900 ]]
	proxy 0 "$BREAKS" hold
	spawn again "$REDLOCK" break --now -y -q --server-timeout 60s -S "$(proxy_url 0)" "$KEY"
	wait_until '(($(grep -c hold $PROXIES/0.log) == 2))'
	members 900 a # which come before
	rcli 0 ZADD "$KEY" 9999999999999 after5
	proxy 0 pass
	finish again
	expect 0
	key_free 0
}

@test "any other answer is no: 1, and nothing is touched" {
	local answer
	held_everywhere
	for answer in '\n' 'n\n' 'no\n' 'yn\n' 'yes yes yes yes yes yes\n' '\004'; do
		answered "$answer"
		grep -qE "end: 1" "$TMP/shown"
		run -1 grep evicted "$TMP/shown"
		key_held_by token 0 1 2
	done
}

@test "^C at the question ends it, and nothing is touched" {
	held_everywhere
	in_terminal session "trap : INT; $REDLOCK break --now $KEY; echo end: \$?"
	asked
	type_keys session '\003'
	wait_until 'grep -q "end: 130" $TMP/session.out'
	key_held_by token 0 1 2
}

@test "-y does not ask, on a terminal either" {
	held_everywhere
	in_terminal session "$REDLOCK break --now -y $KEY; echo end: \$?"
	wait_until 'grep -q "end: 0" $TMP/session.out'
	run -1 grep -F '[y/N]' "$TMP/session.out"
	key_free 0 1 2
}

@test "of several holders the question tells one, and how many more there are" {
	hold_permit 0 0 one web1 11 'read one' 2
	hold_permit 0 0 two web2 22 'read two' 3
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=$(server_url 0)
	answered 'n\n'
	grep -qE "^break $KEY now, held by web2 pid 22 'read two' for 3h0[0-9]m, and 1 more\? \[y/N\] " "$TMP/shown"
}

@test "--foreign: the question says that KEY is not a lock, and of what type it is" {
	servers_start 1
	rcli 0 RPUSH "$KEY" element
	in_terminal session "$REDLOCK break --foreign -S $(server_url 0) $KEY; echo end: \$?"
	asked
	type_keys session 'y\n'
	wait_until 'grep -q "end: " $TMP/session.out'
	tr -d '\r' <"$TMP/session.out" >"$TMP/shown"
	grep -qF "break $KEY, a list, which is not a lock? [y/N] " "$TMP/shown"
	grep -qx "$KEY: deleted a list, which was not a lock" "$TMP/shown"
	grep -qx 'end: 0' "$TMP/shown"
}

@test "there is no question where there is nothing to break" {
	in_terminal session "$REDLOCK break --now $KEY; echo end: \$?"
	wait_until 'grep -q "end: 1" $TMP/session.out'
	[[ $(tr -d '\r' <"$TMP/session.out") == "redlock: $KEY: not held"$'\n'"end: 1" ]]
	rcli 0 RPUSH "$KEY-list" element
	in_terminal list "$REDLOCK break -S $(server_url 0) $KEY-list; echo end: \$?"
	wait_until 'grep -q "end: 65" $TMP/list.out'
	[[ $(rcli 0 EXISTS "$KEY-list") == 1 ]]
}

@test "a lock that changed hands while it was asked stays as it is" {
	local i
	held_everywhere
	in_terminal session "$REDLOCK break --now $KEY; echo end: \$?"
	asked
	for i in 0 1 2; do hold_exclusive "$i" other web4 99 backup.sh; done
	type_keys session 'y\n'
	wait_until 'grep -q "end: 1" $TMP/session.out'
	grep -q "^redlock: $KEY: someone else holds it now: nothing was broken" "$TMP/session.out"
	key_held_by other 0 1 2
}

@test "a question that stands for long is no reason to fail" {
	local i
	held_everywhere
	in_terminal session "$REDLOCK break --now $KEY; echo end: \$?"
	asked
	# the servers have hung up meanwhile
	for i in 0 1 2; do rcli "$i" CLIENT KILL TYPE normal SKIPME yes; done
	type_keys session 'y\n'
	wait_until 'grep -q "end: 0" $TMP/session.out'
	key_free 0 1 2
}

@test "on a narrow terminal what break tells is broken between words" {
	local line
	only 0
	hold_exclusive 0 token web3 812 '/usr/local/bin/backup.sh --all --to backup.example.com:/srv/data nightly' 4
	at_columns 60 break --now -y "$KEY"
	((${#lines[@]} > 1))
	for line in "${lines[@]}"; do ((${#line} <= 60)); done
	[[ ${lines[1]} == '    '[!\ ]* && $(tr -s ' \n' ' ' <<<"$output") == *"--to backup.example.com:/srv/data nightly"* ]]
}
