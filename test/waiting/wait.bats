#!/usr/bin/env bats
# redlock wait: until KEY is free, in the queue's order; nothing is taken.
# shellcheck disable=SC2016,SC2154

load ../lib/helper
load ../lib/cli

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
}

setup_file() {
	servers_start 5
}

# waits NAME [OPTION...]: in the background.
waits() {
	local name=$1
	shift
	spawn "$name" "$REDLOCK" wait --quarantine 0 "$@" "$KEY"
}

# commands I: how many commands it has executed for clients, but for those that look at it.
commands() {
	rcli "$1" INFO commandstats | awk -F '[:=,]' '
		$1 ~ /cmdstat_(eval|evalsha|publish|subscribe)$/ { sum += $3 } END { print sum + 0 }'
}

@test "a free KEY: 0 at once, nothing said, nothing taken, nothing left" {
	local count
	for count in 1 3 5; do
		use "$count"
		redlock wait --quarantine 0 "$KEY"
		expect 0
		redlock wait --quarantine 0 -w 0 "$KEY"
		expect 0
	done
	# not even a record
	[[ $(servers_with 0 EXISTS "$KEY" "$(record)" "$(record):queue" "$(record):wishes" "$(record):waits") == 5 ]]
	redlock acquire --quarantine 0 -n "$KEY"
	expect 0 '[0-9a-f]{32}'
}

@test "the fence is as it was: waiting counts nothing" {
	local before
	use 1
	redlock run "$KEY" true
	before=$(rcli 0 --no-raw DUMP "$(record)")
	redlock wait "$KEY"
	expect 0
	[[ $(rcli 0 --no-raw DUMP "$(record)") == "$before" ]]
}

# held_by SERVERS OPTION...: it waits for a holder of this kind, is told when that ends, and asks for nothing
# meanwhile.
held_by() {
	local all before
	servers_start "$1" # where nobody else is counted
	all=$(seq -s ' ' 0 $(($1 - 1)))
	shift
	takes holder "$@"
	wait_until 'entered holder'
	waits waiter
	wait_until "queued 1 $all"
	before=$(commands 0)
	sleep 0.7 # a poll would show
	is_running waiter
	(($(commands 0) - before <= 1))
	ends holder
	finish waiter
	expect 0
	done_well holder
	wait_until "nothing_left $all"
}

@test "a held KEY is waited for, and its release is told: one server" {
	held_by 1
}

@test "a held KEY is waited for, and its release is told: five servers" {
	held_by 5
}

@test "a reentrant, a shared and a permit's holder are waited for alike" {
	local option
	for option in -r -s '-P 2'; do
		rm -f "$TMP"/end.* "$TMP/order"
		# shellcheck disable=SC2086 # words
		held_by 1 $option
	done
}

@test "all shared holders have to end" {
	use 1
	takes one -s
	takes two -s
	wait_until 'entered one two'
	waits waiter
	wait_until 'queued 1 0'
	ends one
	done_well one
	is_running waiter
	queued 1 0
	ends two
	finish waiter
	expect 0
	done_well two
	nothing_left 0
}

@test "a holder that dies is waited for until its lease ends" {
	local start count
	for count in 1 3; do
		use "$count"
		rm -f "$TMP"/end.* "$TMP/order"
		start=$NOW
		takes holder -t 2s
		wait_until 'entered holder'
		waits waiter
		wait_until 'queued 1 0'
		kill -KILL "$(pid holder)"
		finish waiter
		expect 0
		((NOW - start >= 1900 && NOW - start < 12000))
		finish holder
		wait_until "nothing_left $(seq -s ' ' 0 $((count - 1)))"
	done
}

@test "another program's lock is waited for, without its help" {
	use 1
	rcli 0 SET "$KEY" somebody
	waits waiter
	wait_until 'queued 1 0'
	is_running waiter
	rcli 0 DEL "$KEY"
	finish waiter
	expect 0
	rcli 0 SET "$KEY" somebody PX 300
	redlock wait "$KEY"
	expect 0
	nothing_left 0
}

@test "-w over: 75, and it says who holds KEY; -E is the status, and 0 is silent" {
	use 1
	redlock acquire --label 'the holder' "$KEY"
	redlock wait -w 50ms "$KEY"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'the holder' for [0-9.]+m?s, [0-9.]+s left"
	redlock wait -w 0 -E 3 "$KEY"
	expect 3 '' "redlock: $KEY: held by .*"
	redlock wait -w 50ms -E 0 "$KEY"
	expect 0
	# nobody is left in the queue
	[[ $(rcli 0 EXISTS "$(record):queue" "$(record):wishes" "$(record):waits") == 0 ]]
}

@test "a signal ends it, and nothing is left" {
	local signal
	use 3
	redlock acquire --quarantine 0 "$KEY"
	for signal in TERM INT HUP; do
		waits waiter
		wait_until 'queued 1 0 1 2'
		kill "-$signal" "$(pid waiter)"
		finish waiter
		expect $((128 + $(kill -l "$signal")))
		wait_until 'queued 0 0 1 2'
		[[ $(servers_with 0 EXISTS "$(record):wishes" "$(record):waits") == 5 ]]
	done
	waits waiter
	wait_until 'queued 1 0 1 2'
	kill -KILL "$(pid waiter)"
	finish waiter
	# one that is dead holds up nobody
	redlock release "$KEY" "$(rcli 0 GET "$KEY")"
	redlock run --quarantine 0 -w 20s "$KEY" true
	expect 0
	wait_until 'nothing_left 0 1 2'
}

# line SERVERS: runs and waits in the queue; each is served in its turn, and a wait is over in an instant.
line() {
	local all
	use "$1"
	all=$(seq -s ' ' 0 $(($1 - 1)))
	takes first
	wait_until 'entered first'
	waits w1
	wait_until "queued 1 $all"
	takes r1
	wait_until "queued 2 $all"
	waits w2
	wait_until "queued 3 $all"
	waits w3
	wait_until "queued 4 $all"
	takes r2
	wait_until "queued 5 $all"
	ends first
	finish w1
	expect 0
	wait_until 'entered r1'
	# these have come behind r1
	is_running w2
	is_running w3
	wait_until "queued 3 $all"
	ends r1
	finish w2
	expect 0
	finish w3
	expect 0
	wait_until 'entered r2'
	ends r2
	done_well first r1 r2
	[[ $(noted) == '+first -first +r1 -r1 +r2 -r2' ]]
	wait_until "nothing_left $all"
}

@test "waits and runs are served in the order in which they came: one server" {
	line 1
}

@test "waits and runs are served in the order in which they came: three servers" {
	line 3
}

# is_told NAME: some server has told it that KEY was free.
is_told() {
	grep -qE ': free(,|$)' "$TMP/$1.err"
}

# is_refused NAME: more often than $refused.
is_refused() {
	(($(grep -c 'held by another' "$TMP/$1.err") > refused))
}

# holds_everywhere I...: one holder has KEY on all of these servers.
holds_everywhere() {
	local token
	token=$(rcli "$1" GET "$KEY")
	[[ $token ]] && key_held_by "$token" "$@"
}

# crosses SERVERS FIRST: the last server's message that KEY was free crosses with another request, which is refused,
# as the next one holds KEY by then; FIRST of these to come is the message or the refusal.
crosses() {
	local last=$(($1 - 1)) all i
	all=$(seq -s ' ' 0 "$last")
	servers_start "$1"
	proxies_start
	takes first
	wait_until 'entered first'
	waits waiter -v -S "$(proxy_urls)"
	wait_until "queued 1 $all"
	for i in $all; do proxy_ears "$i" hold; done
	takes next
	wait_until "queued 2 $all"
	ends first
	wait_until 'entered next'
	# on every server: one that has not heard of it would answer, rightly, that KEY is free
	wait_until "queued 0 $all && holds_everywhere $all"
	refused=$(grep -c 'held by another' "$TMP/waiter.err")
	proxy "$last" still
	rcli "$last" CLIENT KILL TYPE normal SKIPME yes # so it asks again
	wait_until "queued 1 $last"
	if [[ $2 == message ]]; then
		proxy_ears "$last" pass
		wait_until "is_told waiter || ! is_running waiter"
	fi
	proxy "$last" pass
	wait_until "is_refused waiter || ! is_running waiter"
	if (($1 > 1)); then
		is_running waiter
		# the vote that is still needed
		proxy_ears "$last" pass
		wait_until 'is_told waiter'
		is_running waiter
		proxy_ears 0 pass
	fi
	proxy_ears "$last" pass
	finish waiter
	[[ $status == 0 ]]
	is_running next
	wait_until "queued 0 $all"
	ends next
	done_well first next
	wait_until "nothing_left $all"
}

@test "that KEY was free is believed however late it is heard, behind a refusal: one server" {
	crosses 1 refusal
}

@test "that KEY was free is believed however late it is heard, behind a refusal: three servers" {
	crosses 3 refusal
}

@test "that KEY was free is believed, whatever comes behind it: one server" {
	crosses 1 message
}

@test "that KEY was free is believed, whatever comes behind it: three servers" {
	crosses 3 message
}

@test "many waits at the head are all told at once" {
	local i names=()
	use 1
	takes first
	wait_until 'entered first'
	for i in {1..8}; do
		names+=("w$i")
		waits "w$i"
	done
	wait_until 'queued 8 0'
	takes last
	wait_until 'queued 9 0'
	ends first
	wait_until 'entered last'
	done_well "${names[@]}" first
	ends last
	done_well last
	nothing_left 0
}

@test "a wait stands beside the queue, and status shows it" {
	use 1
	takes first
	wait_until 'entered first'
	waits waiter
	wait_until 'queued 1 0'
	takes last
	wait_until 'queued 2 0'
	[[ $(rcli 0 ZCARD "$(record):queue") == 1 && $(rcli 0 ZCARD "$(record):waits") == 1 ]]
	redlock status --format json "$KEY"
	[[ $(jq -c '[.queue[].wants]' <<<"$output") == '["none","exclusive"]' ]]
	ends first last
	done_well first waiter last
	nothing_left 0
}

@test "more waits than one request tells are all told" {
	local i names=()
	local -x REDLOCK_SERVER_TIMEOUT=9s # they all wake at once
	use 1
	takes first
	wait_until 'entered first'
	for i in {1..130}; do
		names+=("w$i")
		waits "w$i"
		((i % 10)) || wait_until "queued $i 0" # not all of them start at once
	done
	ends first
	done_well "${names[@]}" first
	nothing_left 0
}

@test "a wait behind a writer that waits for readers waits for both, and lets the readers behind it in" {
	use 1
	takes reader -s
	wait_until 'entered reader'
	takes writer
	wait_until 'queued 1 0'
	waits waiter
	wait_until 'queued 2 0'
	takes later -s
	wait_until 'queued 3 0'
	ends reader
	wait_until 'entered writer'
	is_running waiter
	ends writer
	wait_until 'entered later'
	ends later
	finish waiter
	expect 0
	done_well reader writer later
	nothing_left 0
}

@test "a server that takes no writes does not say that KEY is free" {
	servers_start 1
	refused() {
		redlock wait "$KEY"
		expect 69 '' "redlock: $KEY: .*\($1\).*"
		redlock run -n "$KEY" true
		expect 69 '' "redlock: $KEY: .*\($1\).*"
	}
	rcli 0 CONFIG SET maxmemory 1
	refused OOM
	rcli 0 CONFIG SET maxmemory 0
	rcli 0 CONFIG SET min-replicas-to-write 1
	refused NOREPLICAS
	rcli 0 CONFIG SET min-replicas-to-write 0
	rcli 0 REPLICAOF 127.0.0.1 1
	refused READONLY
	rcli 0 REPLICAOF NO ONE
	redlock wait -w 1s "$KEY"
	expect 0
	nothing_left
}

@test "one server of three down: it waits, and is told; all down: 69" {
	servers_start 3
	server_kill 1
	redlock wait --quarantine 0 "$KEY"
	expect 0
	takes holder
	wait_until 'entered holder'
	waits waiter
	wait_until 'queued 1 0 2'
	ends holder
	finish waiter
	[[ $status == 0 && $output == '' ]]
	done_well holder
	wait_until 'nothing_left 0 2'
	server_kill 0
	redlock wait --quarantine 0 "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*"
	server_kill 2
	redlock wait --quarantine 0 "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: 3 of 3 servers gave no vote, 2 votes are needed: .*"
	use 1
	redlock wait "$KEY"
	expect 69 '' "redlock: $KEY: $(server_url 0): .*"
}

@test "a server that is stopped during the wait does not delay it" {
	local start
	servers_start 3
	takes holder
	wait_until 'entered holder'
	waits waiter
	wait_until 'queued 1 0 1 2'
	server_stop 2
	start=$NOW
	ends holder
	finish waiter
	[[ $status == 0 && $output == '' ]]
	((NOW - start < 2500))
	server_continue 2
	done_well holder
}

@test "it has the options that it needs, and no others" {
	local option
	export REDLOCK_SERVERS=$NOWHERE
	for option in -n -t5 --ttl=5 -x -s -P2 -r --token=x --poll --tries=2 --label=a -k1 --on-lost=kill -ctrue \
		--status-fd=1 --format=json --nonblock --shared --reentrant --permits=2; do
		refuses 64 "$(sed 's/^\(-[a-zA-Z]\)[0-9a-z].*/\1/; s/=.*//' <<<"$option")" wait "$option" key
	done
	for option in -w0 --wait=0 -E0 --conflict-exit-code=3 --server-timeout=1 --quarantine=0 -S"$NOWHERE"; do
		refuses 69 nonexistent wait "$option" key
	done
	refuses 64 KEY wait
	refuses 64 KEY wait ''
	refuses 64 other wait key other
	refuses 64 "'1e3'" wait -w 1e3 key
	refuses 64 "'256'" wait -E 256 key
	no_row_failed
}

# ---------------------------------------------------------------- what is told of a wait

# told NAME LINE...: what it has said of its wait is these lines, each an extended regular expression.
told() {
	local name=$1 line n=0 lines
	shift
	mapfile -t lines < <(grep ', waiting for ' "$TMP/$name.err")
	((${#lines[@]} == $#)) || return
	for line; do [[ ${lines[n++]} =~ ^redlock:\ $KEY:\ $line$ ]] || return; done
}

@test "off a terminal a wait is told of after 10 s: who has KEY, for how long, our place; with -q it is not" {
	local holder
	use 3
	holder="held by $(uname -n) pid [0-9]+ '.*/note .* holder' for 1[0-9.]+s"
	takes holder
	wait_until 'entered holder'
	takes first
	wait_until 'queued 1 0 1 2'
	takes second
	wait_until 'queued 2 0 1 2'
	takes silent -q
	takes again --poll=300ms
	takes seldom --poll=2m
	waits waiter
	wait_until 'queued 4 0 1 2'
	told first # nothing yet
	wait_until 'told waiter "$holder, waiting for 1[0-9]s"' 30
	wait_until 'told first "$holder, 1st in line, waiting for 1[0-9]s"'
	wait_until 'told second "$holder, 2nd in line, waiting for 1[0-9]s"'
	wait_until 'told again "$holder, waiting for 1[0-9]s"'
	wait_until 'told seldom "$holder, waiting for 1[0-9]s"'
	[[ ! -s $TMP/silent.err ]]
	kill -TERM "$(pid seldom)" "$(pid again)"
	ends holder first second silent
	done_well holder first second silent waiter
}

@test "the line about a wait names who holds KEY then, not who held it when servers were last asked" {
	local start=$NOW
	use 3
	takes first --label 'the first'
	wait_until 'entered first'
	takes second --label 'the second'
	wait_until 'queued 1 0 1 2'
	start=$NOW
	waits waiter
	takes run
	wait_until 'queued 3 0 1 2'
	wait_until '((NOW - start >= 7000))' # they have asked again, and do so again after the line only
	ends first
	wait_until 'entered second'
	if [[ ! -s $TMP/waiter.err && ! -s $TMP/run.err ]]; then # else it took that long
		wait_until "told waiter \"held by .* 'the second' for [0-9.]+m?s, waiting for 1[0-9]s\"" 30
		wait_until "told run \"held by .* 'the second' for [0-9.]+m?s, 1st in line, waiting for 1[0-9]s\""
	fi
	ends second run
	done_well first second run
	finish waiter
	[[ $status == 0 ]]
}

@test "with -v a wait is told of at once" {
	use 1
	takes holder --label 'the holder'
	wait_until 'entered holder'
	waits waiter -v
	wait_until "told waiter \"held by $(uname -n) pid [0-9]+ 'the holder' for [0-9.]+m?s, waiting for [0-9]+ms\""
	ends holder
	done_well holder
	finish waiter
	[[ $status == 0 ]]
}

@test "a wait that is told of asks the servers for nothing more" {
	local before
	servers_start 1 # where nobody else is counted
	takes holder
	wait_until 'entered holder'
	waits waiter -v
	wait_until 'grep -q ", waiting for " "$TMP/waiter.err"'
	before=$(commands 0)
	sleep 0.7 # a poll would show
	(($(commands 0) - before <= 1))
	ends holder
	done_well holder
	finish waiter
	[[ $status == 0 ]]
}
