#!/usr/bin/env bats
# An earlier redlock on another host. lib/redlock-0.1 has the scripts that redlock 0.1 sends, byte by byte, so
# this needs neither its program nor its history. `make mixed OLD=COMMIT` has the programs, at random.
# shellcheck disable=SC2016,SC2154

load ../lib/helper

setup_file() {
	servers_start 3
}

# earlier SCRIPT TOKEN ARGUMENT...: a request of 0.1 about $KEY, at server $AT (0); its answer, a value a line, in $said.
earlier() {
	local script=$1 record
	shift
	record=$(record)
	said=$(rcli "${AT-0}" EVAL "$(<"$ROOT/test/lib/redlock-0.1/$script.lua")" 5 \
		"$KEY" "$record" "$record:queue" "$record:wishes" "$record:waits" 0 "$@")
}

# takes_earlier TOKEN [KIND [PERMITS [HOLD [REQUEST WAIT WAITED]]]]: 0.1 asks for KEY, with a lease of a minute.
takes_earlier() {
	earlier acquire "$1" 60000 "$(server_ms 0)" "$SINCE"$'host=web1\npid=812\nuser=bob\nttl=60000\ncommand=old.sh\n' \
		0 "${2-string}" "${3-0}" "${4--}" "${5-0}" "${6-0}" "${7-0}" ''
}

SINCE= # in front of the description: of another hold, that it has lost meanwhile

# lines_up_earlier TOKEN REQUEST [WAITED]: 0.1 waits for KEY; what it is told goes to $TMP/TOKEN.out.
lines_up_earlier() {
	spawn "$1" redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "$(record):$1"
	wait_until "[[ \$(rcli 0 PUBSUB NUMSUB '$(record):$1') == *1 ]]"
	takes_earlier "$1" string 0 - "$2" 1 "${3-0}"
	[[ ${said%%$'\n'*} == 0 && $(rcli 0 ZSCORE "$(record):queue" "$1") ]]
}

# grabs OPTION...: this one has KEY for a minute, with $token; gives_back.
grabs() {
	token=$("$REDLOCK" acquire -t 60s "$@" "$KEY")
}

gives_back() {
	"$REDLOCK" release "$KEY" "$token"
}

# said_first WANT: the first value of the last answer.
said_first() {
	[[ ${said%%$'\n'*} == "$1" ]] || { echo "not $1 but: $said" >&2 && false; }
}

# said_no: the answer was that it holds nothing, and not that there was none.
said_no() {
	[[ ${said%%$'\n'*} == @(0|-1) ]]
}

# later [I...]: the record of KEY is of protocol 2 on these servers (0).
later() {
	local i
	(($#)) || set -- 0
	for i; do rcli "$i" HSET "$(record)" fence 'v2 1700000000001'; done
}

NEWER='redlock: [^:]*: ([^ ]*: )?(no quorum.*)?KEY is used by a newer redlock \(protocol 2\): install the newer version here, too'

@test "what 0.1 holds keeps this one out, which says who it is" {
	use 1
	for kind in string hash zset; do
		takes_earlier old "$kind"
		said_first 1
		for option in -x -s -r '-P 2'; do
			[[ $kind != zset || $option != -s ]] || continue
			# shellcheck disable=SC2086 # words
			redlock run -n $option "$KEY" touch "$TMP/ran"
			[[ $status == 75 && $stderr == *"held by web1 pid 812 'old.sh'"* || $status == 65 && $kind == zset ]]
		done
		redlock status --format json "$KEY"
		[[ $(jq -c '[.state, .holders[0].host, .holders[0].protocol]' <<<"$output") == '["held","web1",null]' ]]
		earlier release old - 0
		said_first 1
	done
	[[ ! -e $TMP/ran ]]
	redlock run -n "$KEY" touch "$TMP/ran"
	expect 0
}

@test "what this one holds keeps 0.1 out, which is told who it is" {
	use 1
	for option in -x -s -r '-P 2'; do
		# shellcheck disable=SC2086 # words
		grabs $option --label new.sh
		for kind in string hash zset; do
			[[ $kind$option != zset-[sP]* ]] || continue # they share it, or say PERMITS
			takes_earlier old "$kind"
			said_first 0
			[[ $said == *host=*v=1*command=new.sh* ]]
		done
		earlier inspect '' 0 0
		[[ $said == 1$'\n'*command=new.sh* ]]
		gives_back
	done
	takes_earlier old
	said_first 1
	earlier release old - 0
}

@test "readers of both share a lock" {
	use 1
	takes_earlier old zset 0
	grabs -s
	holders 2 0
	gives_back
	earlier release old - 0
	nothing_left 0
}

@test "0.1 knows no slots: permits of both are not mixed, and either says so" {
	use 1
	takes_earlier one zset 2
	said_first 1
	redlock run -P 2 "$KEY" touch "$TMP/ran"
	expect 65 '' "redlock: .*: KEY is held by an earlier redlock, whose permits have no slots: install this version on all hosts"
	earlier release one - 0
	nothing_left 0
	grabs -P 2
	takes_earlier one zset 2
	[[ $said == 'PERMITS KEY is held with -P 2.25 now, not with -P 2' ]]
	takes_earlier one zset 0
	[[ $said == 'PERMITS KEY is held with -P 2.25 now, not with -s' ]]
	holders 1 0
	earlier inspect '' 0 0
	[[ $(sed -n 3p <<<"$said") == 2 ]] # permits
	gives_back
	nothing_left 0
	[[ ! -e $TMP/ran ]]
}

@test "waiters for permits of 0.1 and of this one get no permit of the other's kind" {
	use 1
	grabs -x
	spawn new "$REDLOCK" run -P 2 "$KEY" touch "$TMP/ran"
	wait_until 'queued 1 0'
	takes_earlier old zset 2 - 1 1
	[[ ${said%%$'\n'*} == 0 ]]
	wait_until 'queued 2 0'
	gives_back # this one grants no permit without a slot
	finish new
	expect 0
	[[ -e $TMP/ran ]]
	wait_until '[[ ! $(rcli 0 ZSCORE "$(record):queue" old) ]]'
	[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
	takes_earlier old string
	spawn new "$REDLOCK" run -t 3s -P 2 "$KEY" true
	wait_until 'queued 1 0'
	earlier release old - 0 # 0.1 cannot read the wish: it grants nothing, and the waiter asks again
	finish new
	expect 0
}

@test "an owner holds a reentrant lock with both, and it ends with the last hold of either" {
	use 1
	takes_earlier owner hash 0 1234
	said_first 1
	redlock acquire -r --token owner "$KEY"
	expect 0 owner
	counted 2 owner 0
	earlier release owner 1234 0
	said_first 1
	counted 1 owner 0
	takes_earlier other hash 0 99
	said_first 0
	redlock release "$KEY" owner
	expect 0
	nothing_left 0
}

@test "a release by 0.1 grants the lock to the one that waits here, by message" {
	local waiter
	use 1
	takes_earlier old
	takes new -w 60s
	wait_until 'queued 1 0'
	waiter=$(queue_at 0)
	earlier release old - 0
	said_first 1
	key_held_by "$waiter" 0
	wait_until 'entered new'
	ends new
	done_well new
}

@test "a release by this one grants the lock to the 0.1 that waits, by a message that it understands" {
	local before
	use 1
	grabs
	before=$(fence_at 0)
	lines_up_earlier old 7
	gives_back
	key_held_by old 0
	wait_until "grep -qE '^7 [0-9]+ [0-9]+ -( [0-9]+)?$' $TMP/old.out"
	(($(awk '/^7 / { print $2 }' "$TMP/old.out") > before))
	(($(awk '/^7 / { print $3 }' "$TMP/old.out") <= 60000))
	earlier release old - 0
	nothing_left 0
}

@test "whoever waits with what it was told of another hold has KEY from now on" {
	use 1
	grabs
	SINCE=$'since=1700000000001 -\n' lines_up_earlier old 7
	gives_back
	wait_until 'grep -q "^7 " "$TMP/old.out"'
	redlock status --format json "$KEY"
	[[ $(jq '.holders[0] | .host == "web1" and .held_ms < 60000' <<<"$output") == true ]]
}

@test "both wait in one queue, first come first" {
	use 1
	grabs
	lines_up_earlier one 1 3000
	takes two -w 60s
	wait_until 'queued 2 0'
	takes_earlier three string 0 - 0 0
	said_first 0
	gives_back
	key_held_by one 0
	[[ ! -e $TMP/order ]]
	earlier release one - 0
	wait_until 'entered two'
	takes_earlier three
	said_first 0
	ends two
	done_well two
	takes_earlier three
	said_first 1
	earlier release three - 0
}

@test "each extends, releases and breaks the locks of the other" {
	use 1
	grabs
	earlier extend "$token" 90000 - 0
	said_first 1
	(($(rcli 0 PTTL "$KEY") > 80000))
	earlier extend old 90000 - 0
	said_first 0
	earlier release old - 0
	said_first 0
	earlier release "$token" - 0
	said_first 1
	takes_earlier old
	redlock extend -t 5m "$KEY" old
	expect 0
	(($(rcli 0 PTTL "$KEY") > 200000))
	redlock release "$KEY" old
	expect 0
	takes_earlier old
	redlock break --now -y "$KEY"
	expect 0 '.*web1 pid 812.*'
	grabs
	earlier break 0123 '' 0
	said_first 1
	redlock extend "$KEY" "$token"
	[[ $status == 1 ]]
	nothing_left 0
}

@test "on three servers a quorum of 0.1 keeps this one out, and fences rise from one to the other" {
	local fence AT
	use 3
	for AT in 0 2; do takes_earlier old; done
	fence=$(fence_at 2)
	redlock run -n --quarantine 0 "$KEY" true
	[[ $status == 75 ]]
	for AT in 0 2; do earlier raise old $((fence + 5)); done
	for AT in 0 2; do earlier release old - 0; done
	redlock acquire --quarantine 0 --format json "$KEY"
	[[ $status == 0 ]]
	(($(jq .fence <<<"$output") > fence + 5))
	for AT in 0 1 2; do
		takes_earlier old
		said_first 0
	done
}

@test "a record of a later protocol: nothing is taken, by this one or by 0.1, and 65 says why" {
	local command
	use 1
	later
	# shellcheck disable=SC2086 # words
	for command in 'run -w 1h' 'run -n' 'run -s' 'run -r' 'run -P 2' 'acquire -w 1h' 'run --poll -w 1h'; do
		redlock $command "$KEY" touch "$TMP/ran"
		[[ $command != acquire* ]] || redlock $command "$KEY"
		expect 65 '' "$NEWER"
	done
	redlock wait -w 1h "$KEY"
	expect 65 '' "$NEWER"
	redlock status -q "$KEY"
	expect 65 '' "$NEWER"
	redlock break -y "$KEY"
	expect 65 '' "$NEWER"
	for kind in string hash zset none; do
		takes_earlier old "$kind"
		[[ $said == 'WRONGTYPE the record holds no fence'* ]]
	done
	[[ ! -e $TMP/ran && $(fence_at 0) == 'v2 1700000000001' ]]
	nothing_left 0
}

@test "status shows what servers say of a later protocol" {
	use 1
	later
	redlock status "$KEY"
	expect 65 "$KEY: unknown, 0 of 1 servers answered
  server  [^ ]*  KEY is used by a newer redlock \(protocol 2\)" "$NEWER"
}

@test "list says where a quorum has a record of a later protocol" {
	use 3
	grabs --quarantine 0
	KEY=$KEY-later later 0 1
	KEY=$KEY-minority later 2
	redlock list "$KEY*"
	expect 0 "$KEY: exclusive, held by .*
$KEY-later: unknown, used by a newer redlock \(protocol 2\)"
	redlock list --format json "$KEY-*"
	[[ $status == 0 && $(jq -c 'del(..|nulls)' <<<"$output") == "{\"key\":\"$KEY-later\",\"protocol\":2}" ]]
	gives_back
}

@test "when a later protocol comes, no release grants the lock to those that wait: they end with 65" {
	local how
	use 1
	for how in this earlier; do
		grabs
		takes "$how" -w 1h
		wait_until 'queued 1 0'
		lines_up_earlier "old-$how" 3
		later
		if [[ $how == this ]]; then gives_back; else earlier release "$token" - 0; fi
		key_free 0
		finish "$how"
		expect 65 '' "(redlock: .*held by.*)?$NEWER"
		key_free 0
		rcli 0 DEL "$(record)" "$(record):queue" "$(record):wishes"
		[[ ! -s $TMP/order ]]
	done
}

@test "a server whose record is of a later protocol has no vote, and a majority of them ends a run with 65" {
	use 3
	redlock run --quarantine 0 "$KEY" true
	expect 0
	later 1
	redlock run -n --quarantine 0 "$KEY" true
	expect 0
	later 1 2
	redlock run -w 1h --quarantine 0 "$KEY" true
	expect 65 '' "$NEWER"
	[[ $(fence_at 1) == v2* && $(fence_at 2) == v2* ]]
	nothing_left 0 1 2
}

@test "break: 0.1 loses its lease at its next renewal, and this one has KEY when that lease is over" {
	local servers kind
	for servers in 1 3; do
		use "$servers"
		for kind in string hash zset; do
			for ((AT = 0; AT < servers; AT++)); do
				takes_earlier old "$kind"
				said_first 1
			done
			AT=0
			spawn break "$REDLOCK" break -y "$KEY"
			wait_until 'earlier extend old 60000 -; said_no'
			earlier release old - 0
			said_no
			[[ $(rcli 0 EXISTS "$KEY") == 1 ]]
			takes_earlier other "$kind"
			[[ ${said%%$'\n'*} == 0 || $kind == zset ]]
			earlier release other - 0
			redlock run -n "$KEY" true
			[[ $status == 75 && $stderr == *"held by web1 pid 812 'old.sh'"* ]]
			for ((AT = 0; AT < servers; AT++)); do # the lease is over
				rcli "$AT" PEXPIRE "$KEY" 1
			done
			finish break
			[[ $status == 0 && $output == "$KEY: web1 pid 812 'old.sh' cannot be asked to stop, as its redlock is older;"*" ended after "* ]]
			redlock run --quarantine 0 -w 20s "$KEY" true
			expect 0
		done
	done
}
