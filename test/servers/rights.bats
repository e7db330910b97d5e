#!/usr/bin/env bats
# A user who lacks a right is told which one before COMMAND runs, or does not miss it: no lock is
# taken that its holder cannot renew, give back and hand on, and nobody waits for what never comes.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # one name is a command; tests are subshells; helpers set variables
# bats file_tags=long

load ../lib/helper

# the commands of the recipe, each as ACL SETUSER takes it
recipe() {
	sed -n '/^commands="/,/"$/p' "$ROOT/man/redlock-servers.7" | tr -d '"' | sed 's/^commands=//' | xargs -n 1
}

# users LIST: for each of these rights a user who lacks only that one of the recipe's, by its name
users() {
	local right all
	mapfile -t all < <(recipe)
	((${#all[@]} >= 30)) || return
	for right; do
		[[ $(rcli 0 ACL SETUSER "lacks-${right//|/_}" on '>pw' '~*' '&*' -@all "${all[@]/#/+}" "-$right") == OK ]]
	done
}

as() {
	echo "unix://lacks-${1//|/_}:pw@$SERVERS/0/redis.sock"
}

# is_told RIGHT: 77, and the right is named.
is_told() {
	[[ $status == 77 && $stderr == *"its user lacks +$1: see the server's ACL: ACL SETUSER grants it" ]] ||
		[[ $status == 77 && $1 == eval && $stderr == *"run the 'eval' command"* ]]
}

# lock RIGHT OPTION: who lacks RIGHT has the whole life of a lock, or is told before anything happens.
# Prints which.
lock() {
	local right=$1 option=$2 key=$KEY$1$2 token
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=$(as "$right")
	# shellcheck disable=SC2086 # words
	redlock run -w 20 -t 10s $option "$key" touch "$TMP/ran.$right$option"
	if [[ $status == 77 ]]; then
		is_told "$right" && [[ ! -e $TMP/ran.$right$option && $(rcli 0 EXISTS "$key") == 0 ]] || return
		[[ $(rcli 0 PTTL "{$key}:redlock") != -1 ]] || return # nothing stays for ever
		echo told
		return
	fi
	[[ $status == 0 && -e $TMP/ran.$right$option && $(rcli 0 EXISTS "$key") == 0 ]] || return
	# shellcheck disable=SC2086 # words
	token=$("$REDLOCK" acquire -n -t 10s $option "$key") &&
		"$REDLOCK" extend -t 20s "$key" "$token" && (($(rcli 0 PTTL "$key") > 15000)) &&
		"$REDLOCK" release "$key" "$token" && [[ $(rcli 0 EXISTS "$key") == 0 ]] || return
	# shellcheck disable=SC2086 # words
	redlock run -n -t 10s --min-hold 100ms $option "$key" true
	[[ $status == 0 && ! $stderr ]] || return
	echo held
}

@test "a right that is missing is named before COMMAND runs, or is not missed, for each kind of lock" {
	local right option rights outcome wrong=
	servers_start 1
	mapfile -t rights < <(recipe)
	users "${rights[@]}"
	for option in -x -r -s '-P 2'; do
		for right in "${rights[@]}"; do
			outcome=$(lock "$right" "$option") || { echo "$right $option: $status $stderr" >&2 && wrong=yes; }
			[[ $outcome != told ]] || echo "$option $right"
		done
	done >"$TMP/told"
	[[ ! $wrong ]]
	for option in -x -r -s '-P 2'; do
		sed -n "s/^$option //p" "$TMP/told" | sort | xargs
	done >"$TMP/lists"
	diff "$TMP/lists" - <<-end
		del eval exists getrange hdel hget hkeys hset pexpire pttl set time type zrange zrem
		eval exists hdel hget hincrby hkeys hset pexpire pttl time type zrange zrem
		eval exists hdel hget hkeys hset pexpire pttl time type zadd zrange zrem zscore
		eval exists hdel hget hkeys hset pexpire pttl time type zadd zcard zrange zrem zscore
	end
}

# has_asked NAME: it was refused KEY, or has ended.
has_asked() {
	! is_running "$1" || grep -q 'held by another' "$TMP/$1.err"
}

# turns OPTION: KEY of each right is held; then who lacks the right waits, and behind it who lacks none.
# Prints who had no turn.
turns() {
	local option=$1 right key name
	local -A token
	for right in "${rights[@]}"; do
		key=$KEY$right$option
		token[$right]=$("$REDLOCK" acquire -t 10m "$key") || return
		# shellcheck disable=SC2086 # words
		spawn "${right//|/_}" "$REDLOCK" run -v -S "$(as "$right")" -t 10s $option "$key" touch "$TMP/ran.$right"
	done
	for right in "${rights[@]}"; do
		name=${right//|/_}
		wait_until "has_asked $name"
		spawn "after-$name" "$REDLOCK" run -v -t 10s "$KEY$right$option" true
	done
	for right in "${rights[@]}"; do
		wait_until "has_asked after-${right//|/_}"
		"$REDLOCK" release "$KEY$right$option" "${token[$right]}"
	done
	for right in "${rights[@]}"; do
		name=${right//|/_}
		finish "$name"
		if [[ $status == 0 && $stderr != *'not released'* ]]; then
			rm "$TMP/ran.$right"
		else
			is_told "$right" && [[ ! -e $TMP/ran.$right ]]
		fi || echo "$right $option: $status $(tail -n 1 <<<"$stderr")"
		finish "after-$name"
		[[ $status == 0 && $(rcli 0 EXISTS "$KEY$right$option") == 0 ]] || echo "after $right $option: $status $stderr"
	done
}

@test "who lacks a right and has to wait is told at once or has its turn, and so has the next" {
	local option rights
	servers_start 1
	mapfile -t rights < <(recipe)
	users "${rights[@]}"
	for option in -x -r -s '-P 2'; do turns "$option"; done >"$TMP/wrong"
	[[ ! -s $TMP/wrong ]] || { cat "$TMP/wrong" && return 1; }
}

@test "wait: who lacks a right is told at once, or waits until KEY is free" {
	local right rights token
	servers_start 1
	mapfile -t rights < <(recipe)
	users "${rights[@]}"
	token=$("$REDLOCK" acquire -t 10m "$KEY")
	for right in "${rights[@]}"; do
		spawn "${right//|/_}" "$REDLOCK" wait -v -S "$(as "$right")" "$KEY"
	done
	for right in "${rights[@]}"; do wait_until "has_asked ${right//|/_}"; done
	"$REDLOCK" release "$KEY" "$token"
	for right in "${rights[@]}"; do
		finish "${right//|/_}"
		[[ $status == 0 ]] || is_told "$right" || echo "$right: $status $stderr"
	done >"$TMP/wrong"
	[[ ! -s $TMP/wrong ]] || { cat "$TMP/wrong" && return 1; }
	[[ $(rcli 0 ZCARD "$(record):waits") == 0 ]]
}

@test "who lacks what looking at a lock or breaking it needs is refused that, and doctor names it" {
	local right kind refused command got all
	servers_start 1
	all=$REDLOCK_SERVERS
	users hgetall zcount lrange scan
	while read -r right kind refused; do
		rcli 0 FLUSHALL >/dev/null
		redlock run "$KEY.once" true
		redlock acquire -t 10m "$kind" "$KEY"
		REDLOCK_SERVERS=$(as "$right") got=
		for command in "status $KEY" "status -q $KEY" list "history $KEY" "check --max-age 1h $KEY" \
			"run --once-in 1h $KEY.once true" "break -y --now $KEY"; do
			# shellcheck disable=SC2086 # words
			redlock $command
			[[ $status != @(77|3) ]] || got+=" ${command%% *}"
		done
		redlock doctor
		REDLOCK_SERVERS=$all
		[[ $got == " $refused" ]] || echo "$right $kind: $got"
		[[ $output =~ 'warning: its user lacks +'$right', which waiters, '(.*)' need: see its ACL' ]]
		for command in ${refused//run/--once-in}; do
			[[ " ${BASH_REMATCH[1]//,/}" == *" $command"* ]] || echo "$right: no $command"
		done
	done <<-end >"$TMP/wrong"
		hgetall -r status status list check break
		zcount -s status status list check break
		zcount -P2 status status list check break
		lrange -x history check run
		scan -x list
	end
	[[ ! -s $TMP/wrong ]] || { cat "$TMP/wrong" && return 1; }
}

# Of the servers that can be asked for a right some do not mind how many words it is asked for with.
@test "a right is asked for with as many words as its command can have" {
	local kind record=redlock:{k}
	local strict='
		local server, redis = redis, setmetatable({}, {__index = redis})
		function redis.acl_check_cmd(...)
			local arity = server.call("command", "info", (...))[1][2]
			if arity > 0 and #{...} ~= arity or #{...} < -arity then
				error((...) .. ": Wrong number of args", 0)
			end
			return server.acl_check_cmd(...)
		end
		local clustered = true
	'
	servers_start 1
	[[ $(rcli 0 EVAL 'return redis.acl_check_cmd and 1 or 0' 0) == 1 ]] || skip 'since Redis 7'
	run -0 rcli 0 EVAL "$strict$(<"$ROOT/src/lock/lua/rights.lua")" 0 1 '' k "$record" "$record:queue" \
		"$record:wishes" "$record:waits" 1
	[[ $output =~ ^1[[:space:]]*$ ]]
	for kind in string hash zset none; do
		run -0 rcli 0 EVAL "$strict$(<"$ROOT/src/lock/lua/needs.lua") return 'ok'" 3 k "$record" "$record:queue" \
			0 token 3 4 5 6 $kind
		[[ $output == ok ]]
	done
}

@test "on three servers, too, the right is named, once for all that refuse" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli $i ACL SETUSER ann on '>pw' '~*' '&*' +@all -del -hincrby; done
	redlock run -w 10m -S "${REDLOCK_SERVERS//unix:\/\//unix://ann:pw@}" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: no quorum: [23] of 3 servers gave no vote, 2 votes are needed: ([^ ]*: its user lacks \+del \+hincrby(; )?){2,3}: see the server's ACL: ACL SETUSER grants it"
	[[ ! -e $TMP/ran ]]
	rcli 0 ACL SETUSER ann +del
	rcli 1 ACL SETUSER ann +del
	redlock run --quarantine 0 -n -S "${REDLOCK_SERVERS//unix:\/\//unix://ann:pw@}" "$KEY" touch "$TMP/ran"
	[[ $status == 0 && -e $TMP/ran ]]
	key_free 0 1 2
}

# The name stands in what Redis 7.2 and later say, in front of what tells.
@test "whatever the user is called, it is 77 and the right that is named" {
	local name
	servers_start 1
	for name in NOPERM OOM -LOADING "'time'" channel key '@user_script:3:-READONLY' '"' '$(x)' 'a:b'; do
		rcli 0 ACL SETUSER "$name" on '>pw' '~*' '&*' +@all -time -publish
		REDLOCK_SERVERS=unix://$(jq -rn --arg name "$name" '$name | @uri'):pw@$SERVERS/0/redis.sock
		redlock run -w 10m "$KEY" true
		expect 77 '' "redlock: $KEY: .*: its user lacks \+time: see the server's ACL: ACL SETUSER grants it"
		redlock doctor
		[[ $status == 77 && $output == *'error: its user lacks +time: '* ]]
		redlock status "$KEY"
		[[ $status == 77 ]]
		rcli 0 ACL SETUSER "$name" +time
		redlock doctor
		[[ $status == 0 && $output == *'warning: its user lacks +publish, which'* ]]
	done
}

@test "a user is not refused who may touch exactly the keys of KEY, or the queue by a rule of its own" {
	local commands option
	servers_start 1
	rcli 0 ACL SETUSER exact on '>pw' resetkeys +@all "~$KEY" "~$(record)" "~$(record):queue" \
		"~$(record):wishes" "~$(record):waits"
	rcli 0 ACL SETUSER exact '&*' || : # since Redis 6.2
	for option in -x -r -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		redlock run -n -S "unix://exact:pw@$SERVERS/0/redis.sock" $option "$KEY" true
		expect 0
	done
	[[ $(rcli 0 ACL SETUSER selected on '>pw' '(+ping)') == OK ]] || return 0 # since Redis 7
	mapfile -t commands < <(recipe | grep -vxE 'hdel|zrem')
	rcli 0 ACL SETUSER selected '~*' '&*' -@all "${commands[@]/#/+}" "(~$(record)* +hdel +zrem)"
	redlock run -n -S "unix://selected:pw@$SERVERS/0/redis.sock" "$KEY" true
	expect 0
	# and who may do so with KEY only
	rcli 0 ACL SETUSER selected clearselectors "(~$KEY +hdel +zrem)"
	redlock run -n -S "unix://selected:pw@$SERVERS/0/redis.sock" "$KEY" touch "$TMP/ran"
	[[ $status == 77 && ! -e $TMP/ran && $(rcli 0 EXISTS "$KEY") == 0 ]]
}
