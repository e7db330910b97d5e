#!/usr/bin/env bats
# Other programs' locks on the same KEY: redis-py's, Redisson's, and plain SET NX PX.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # tests are subshells

load ../lib/helper

setup_file() {
	servers_start 1
}

# ---------------------------------------------------------------- redis-py

# python_start [NAME]: redis-py's Lock on KEY, to be told by `python`; skips the test where there is none.
python_start() {
	local python candidate
	for candidate in /usr/bin/python3 python3; do
		[[ ! $("$candidate" -c 'import redis.lock; print("yes")' 2>/dev/null) == yes ]] || python=$candidate
	done
	[[ ${python-} ]] || skip "needs redis-py (Debian's python3-redis)"
	mkfifo "$TMP/python.in"
	"$python" "$ROOT/test/lib/tools/foreign.py" "$SERVERS/0/redis.sock" "$KEY" \
		<>"$TMP/python.in" >"$TMP/python.out" 2>"$TMP/python.err" 3>&- 4>&- &
	# shellcheck disable=SC2034 # for helper.bash
	spawned[python]=$!
	answers=0
}

# tell WORD...: has it do something, and does not wait for that.
tell() {
	echo "$*" >"$TMP/python.in"
	((++answers))
}

# answer: of what it was told last, in $said.
answer() {
	wait_until "((\$(wc -l <$TMP/python.out) >= $answers))" 60 || return
	said=$(tail -n 1 "$TMP/python.out")
}

# refused_for_50s: another program has KEY, and is said to have it for what is left of 50 s.
refused_for_50s() {
	expect 75 '' "redlock: $KEY: held by another program, [1-9][0-9]s left" || return
	local left=${stderr##*program, }
	left=${left%s left}
	((left <= 50 && (left + 1) * 1000 >= $(rcli 0 PTTL "$KEY")))
}

# python WORD...: both.
python() {
	tell "$@" && answer
}

@test "redis-py: its lock keeps redlock out, of every kind" {
	local option
	python_start
	python acquire 50
	[[ $said == got ]]
	for option in -x -s -r '-P 3'; do
		# shellcheck disable=SC2086 # words
		redlock run -n $option "$KEY" touch "$TMP/ran"
		refused_for_50s
	done
	redlock wait -w 50ms "$KEY"
	expect 75 '' "redlock: $KEY: held by another program, .*"
	[[ ! -e $TMP/ran ]]
	python owned
	[[ $said == yes ]]
	python release
	[[ $said == ok ]]
	nothing_left 0
}

@test "redis-py: redlock's lock keeps it out, while it is renewed, too" {
	python_start
	takes holder -t 2s
	wait_until 'entered holder'
	python acquire 50
	[[ $said == not ]]
	tell acquire 50 30
	renewals 4
	[[ $(noted) == +holder && $(wc -l <"$TMP/python.out") == 1 ]]
	ends holder
	done_well holder
	answer
	[[ $said == got ]]
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by another program, .* left"
	python release
	[[ $said == ok ]]
}

@test "redis-py: it and redlock hand the lock to and fro" {
	local i
	python_start
	for i in 1 2 3; do
		python acquire 50 10
		[[ $said == got ]]
		takes "run$i"
		wait_until 'queued 1 0'
		python release
		[[ $said == ok ]]
		wait_until "entered run$i"
		tell acquire 50 30
		wait_until '[[ $(rcli 0 GET "$KEY") ]]'
		ends "run$i"
		done_well "run$i"
		answer
		[[ $said == got ]]
		python release
		[[ $said == ok ]]
	done
	nothing_left 0
}

@test "redis-py: it extends and releases its own lock while redlock waits" {
	python_start
	python acquire 5
	[[ $said == got ]]
	takes waiter
	wait_until 'queued 1 0'
	python extend 60
	[[ $said == ok ]]
	(($(rcli 0 PTTL "$KEY") > 50000))
	python owned
	[[ $said == yes ]]
	is_running waiter
	[[ ! -e $TMP/order ]]
	python release
	[[ $said == ok ]]
	wait_until 'entered waiter'
	# and it can do neither to redlock's
	python extend 60
	[[ $said == Lock*Error ]]
	python release
	[[ $said == Lock*Error ]]
	ends waiter
	done_well waiter
}

@test "redis-py: redlock gets KEY when its lease ends" {
	python_start
	python acquire 0.7
	[[ $said == got ]]
	redlock run -w 20s "$KEY" true
	expect 0
	python release
	[[ $said == Lock*Error ]]
}

@test "redis-py: it can neither enter nor break a shared, a reentrant lock or one with permits" {
	local option
	python_start
	for option in -s -r '-P 2'; do
		rm -f "$TMP"/end.* "$TMP/order"
		# shellcheck disable=SC2086 # words
		takes holder $option
		wait_until 'entered holder'
		python acquire 50
		[[ $said == not ]]
		ends holder
		done_well holder
	done
	python acquire 50
	[[ $said == got ]]
}

# ---------------------------------------------------------------- SET NX PX

@test "SET NX PX: it keeps redlock out until its lease ends or it is deleted" {
	local option
	[[ $(rcli 0 SET "$KEY" v NX PX 50000) == OK ]]
	for option in -x -s -r '-P 3'; do
		# shellcheck disable=SC2086 # words
		redlock acquire -n $option "$KEY"
		refused_for_50s
		# shellcheck disable=SC2086 # words
		redlock acquire -w 30ms $option "$KEY"
		expect 75 '' "redlock: $KEY: held by another program, .* left"
	done
	[[ $(rcli 0 GET "$KEY") == v ]]
	takes waiter
	wait_until 'queued 1 0'
	rcli 0 DEL "$KEY"
	wait_until 'entered waiter'
	[[ $(rcli 0 SET "$KEY" v NX PX 50000) == '' ]]
	ends waiter
	done_well waiter
	[[ $(rcli 0 SET "$KEY" v NX PX 400) == OK ]]
	redlock run -w 20s "$KEY" true
	expect 0
	[[ $(rcli 0 SET "$KEY" v NX PX 50000) == OK ]]
}

@test "SET NX PX: no kind of redlock's locks lets it in" {
	local option
	for option in -x -s -r '-P 2'; do
		rm -f "$TMP"/end.* "$TMP/order"
		# shellcheck disable=SC2086 # words
		takes holder -t 2s $option
		wait_until 'entered holder'
		[[ $(rcli 0 SET "$KEY" v NX PX 50000) == '' ]]
		renewals 2
		[[ $(rcli 0 SET "$KEY" v NX PX 50000) == '' ]]
		ends holder
		done_well holder
	done
}

# ---------------------------------------------------------------- Redisson

REDISSON_LOCK="
	if (redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then
		redis.call('hincrby', KEYS[1], ARGV[2], 1)
		redis.call('pexpire', KEYS[1], ARGV[1])
		return nil
	end
	return redis.call('pttl', KEYS[1])"
REDISSON_UNLOCK="
	if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then
		return nil
	end
	local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1)
	if (counter > 0) then
		redis.call('pexpire', KEYS[1], ARGV[2])
		return 0
	else
		redis.call('del', KEYS[1])
		redis.call('publish', KEYS[2], ARGV[1])
		return 1
	end"
THREAD=0d1c3f5e-1b0a-4a0e-9b57-6f0d7e0b9f11:42

# redisson_lock MS, redisson_unlock: as Redisson's RLock does it; the lock answers nothing where it is granted,
# else the milliseconds to wait.
redisson_lock() {
	rcli 0 EVAL "$REDISSON_LOCK" 1 "$KEY" "$1" "$THREAD"
}

redisson_unlock() {
	rcli 0 EVAL "$REDISSON_UNLOCK" 2 "$KEY" "redisson_lock__channel:{$KEY}" 0 30000 "$THREAD"
}

@test "Redisson: its lock keeps every kind of redlock out, and is never changed" {
	local option before
	[[ $(redisson_lock 50000) == '' && $(redisson_lock 50000) == '' ]]
	before=$(rcli 0 --no-raw DUMP "$KEY")
	for option in -x -s -r '-P 3'; do
		# shellcheck disable=SC2086 # words
		redlock run -n $option "$KEY" touch "$TMP/ran"
		refused_for_50s
		# shellcheck disable=SC2086 # words
		redlock acquire -w 30ms $option "$KEY"
		expect 75 '' "redlock: $KEY: held by another program, .* left"
	done
	redlock release "$KEY" 00112233445566778899aabbccddeeff
	expect 1 '' "redlock: $KEY: not held by this token: .*"
	redlock extend -t 90s "$KEY" 00112233445566778899aabbccddeeff
	expect 1 '' "redlock: $KEY: not held by this token: .*"
	[[ ! -e $TMP/ran && $(rcli 0 --no-raw DUMP "$KEY") == "$before" && $(rcli 0 PTTL "$KEY") -le 50000 ]]
	[[ $(redisson_unlock) == 0 && $(redisson_unlock) == 1 ]]
	nothing_left 0
}

@test "Redisson: a hash with its owner's count keeps every kind out while it is there" {
	local option
	for option in -x -s -r '-P 3'; do
		rcli 0 HINCRBY "$KEY" "$THREAD" 1
		rcli 0 PEXPIRE "$KEY" 400
		# shellcheck disable=SC2086 # words
		redlock run -w 20s $option "$KEY" true
		expect 0
		nothing_left 0
	done
}

@test "Redisson: redlock -r keeps it out, and tells it of the end" {
	takes holder -r -t 20s
	wait_until 'entered holder'
	(($(redisson_lock 50000) > 0))
	[[ $(rcli 0 HLEN "$KEY") == 1 ]]
	spawn subscriber redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "redisson_lock__channel:{$KEY}"
	wait_until '[[ $(rcli 0 PUBSUB NUMSUB "redisson_lock__channel:{$KEY}") == *$'"'\n'"'1 ]]'
	ends holder
	done_well holder
	wait_until '[[ $(tail -n 1 "$TMP/subscriber.out") == 0 ]]'
	[[ $(redisson_lock 50000) == '' ]]
	redlock run -n -r "$KEY" true
	expect 75 '' "redlock: $KEY: held by another program, .* left"
	[[ $(redisson_unlock) == 1 ]]
}

@test "Redisson: a KEY with braces has its channel's name as Redisson has it" {
	KEY="$KEY{tag}"
	takes holder -r
	wait_until 'entered holder'
	spawn subscriber redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "redisson_lock__channel:$KEY"
	wait_until '[[ $(rcli 0 PUBSUB NUMSUB "redisson_lock__channel:$KEY") == *$'"'\n'"'1 ]]'
	ends holder
	finish holder
	[[ $status == 0 ]]
	wait_until '[[ $(tail -n 1 "$TMP/subscriber.out") == 0 ]]'
}

@test "Redisson: redlock -r waits for it, and has KEY as soon as it is given back" {
	[[ $(redisson_lock 50000) == '' ]]
	takes waiter -r
	wait_until 'queued 1 0'
	[[ $(redisson_unlock) == 1 ]]
	wait_until 'entered waiter'
	(($(redisson_lock 50000) > 0))
	ends waiter
	done_well waiter
	nothing_left 0
}

# listening_for_redisson COUNT [I]: so many listen there to what Redisson's waiters listen to.
listening_for_redisson() {
	[[ $(rcli "${2-0}" PUBSUB NUMSUB "redisson_lock__channel:{$KEY}") == *$'\n'"$1" ]]
}

# asks_at_each_message PUBLISH...: who waits asks far more often than it would by itself, twice a second.
asks_at_each_message() {
	local before i
	before=$(requests 0)
	for i in {1..40}; do
		"$@" >/dev/null
		pause 0.03
	done
	(($(requests 0) >= before + 20))
}

@test "Redisson: the first in line, and nobody else, listens to what its waiters listen to" {
	local option
	for option in -r -x -s -P2; do
		[[ $(redisson_lock 50000) == '' ]]
		rm -f "$TMP"/end.*
		takes "first$option" "$option"
		wait_until 'queued 1 0'
		wait_until 'listening_for_redisson 1'
		takes "second$option" "$option"
		wait_until 'queued 2 0'
		pause 0.3
		listening_for_redisson 1
		[[ $(redisson_unlock) == 1 ]]
		wait_until "entered first$option"
		ends "first$option" "second$option"
		done_well "first$option" "second$option"
		wait_until 'listening_for_redisson 0'
		nothing_left 0
	done
}

@test "Redisson: a message to its waiters has the first in line ask" {
	[[ $(redisson_lock 50000) == '' ]]
	takes waiter -r
	wait_until 'listening_for_redisson 1'
	monitor 0
	asks_at_each_message rcli 0 PUBLISH "redisson_lock__channel:{$KEY}" 0
	is_running waiter
	[[ $(redisson_unlock) == 1 ]]
	wait_until 'entered waiter'
	ends waiter
	done_well waiter
}

@test "Redisson: nobody listens to it while a lock of another kind is there" {
	[[ $(rcli 0 SET "$KEY" v NX PX 50000) == OK ]]
	takes waiter -r
	wait_until 'queued 1 0'
	pause 0.3
	listening_for_redisson 0
	rcli 0 DEL "$KEY"
	wait_until 'entered waiter'
	# nor while it is redlock's
	takes second -r
	wait_until 'queued 1 0'
	pause 0.3
	listening_for_redisson 0
	ends waiter second
	done_well waiter second
}

@test "Redisson: a server that lets nobody listen to its channel is looked at, as before" {
	servers_start 1
	rcli 0 ACL SETUSER app on nopass '~*' '&{*' +@all
	[[ $(redisson_lock 50000) == '' ]]
	export REDLOCK_SERVERS=unix://app:x@$SERVERS/0/redis.sock
	takes waiter -r
	wait_until 'queued 1 0'
	pause 0.3
	listening_for_redisson 0
	[[ $(redisson_unlock) == 1 ]]
	wait_until 'entered waiter'
	ends waiter
	done_well waiter
}
