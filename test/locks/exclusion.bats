#!/usr/bin/env bats
# One holder at a time, fences that rise, and nobody else's value touched.
# shellcheck disable=SC2016

load ../lib/helper

setup_file() {
	servers_start 5
}

# contend URLS CONTENDERS ROUNDS: each takes KEY so many times, with a stamp as the command.
contend() {
	local i name
	mkdir -p "$TMP/stamps"
	for ((i = 0; i < $2; i++)); do
		spawn "contender$i" bash -c 'for ((i = 0; i < $1; i++)); do
			"$REDLOCK" run -S "$2" --quarantine 0 -t 10s "$3" "$STAMP" -d 10 "$4" || exit
		done' - "$3" "$1" "$KEY" "$TMP/stamps"
	done
	for ((i = 0; i < $2; i++)); do
		finish "contender$i" 60 && expect 0 || return
	done
	assert_exclusive "$TMP/stamps" $(($2 * $3))
}

@test "contenders on one server never overlap, and later holders have larger fences" {
	contend "$(server_url 0)" 6 4
}

@test "contenders on five servers never overlap, and later holders have larger fences" {
	contend "$(server_urls)" 5 3
}

@test "the key's ttl is there at every moment and never more than was asked for" {
	local url token i
	url=$(server_url 0)
	spawn sampler redis-cli -s "$SERVERS/0/redis.sock" -r -1 -i 0.0005 PTTL "$KEY"
	wait_until '[[ -s $TMP/sampler.out ]]'
	for i in {1..15}; do
		token=$("$REDLOCK" acquire -S "$url" -t 20s "$KEY")
		"$REDLOCK" extend -S "$url" -t 15s "$KEY" "$token"
		"$REDLOCK" extend -S "$url" -t 20s "$KEY" "$token"
		"$REDLOCK" release -S "$url" "$KEY" "$token"
	done
	kill "$(pid sampler)"
	finish sampler
	awk '$1 > 0 { held++ } $1 == -1 || $1 > 20000 { bad++ } END { exit bad || !held }' \
		"$TMP/sampler.out"
}

@test "the key's ttl is there at every moment of a contended run that is renewed" {
	local i
	spawn sampler redis-cli -s "$SERVERS/0/redis.sock" -r -1 -i 0.0005 PTTL "$KEY"
	wait_until '[[ -s $TMP/sampler.out ]]'
	mkdir "$TMP/stamps"
	for i in 1 2; do
		spawn "run$i" "$REDLOCK" run -S "$(server_url 0)" -t 2s --poll=5ms "$KEY" \
			"$STAMP" -d 1500 "$TMP/stamps"
	done
	finish run1 && expect 0
	finish run2 && expect 0
	kill "$(pid sampler)"
	finish sampler
	assert_exclusive "$TMP/stamps" 2
	awk '$1 > 0 { held++ } $1 == -1 || $1 > 2000 { bad++ } END { exit bad || !held }' \
		"$TMP/sampler.out"
}

@test "values of every type that others put there are left alone, and only a string is waited for" {
	local type before code line
	rcli 0 SET "$KEY-string" another-program
	rcli 0 RPUSH "$KEY-list" a b
	rcli 0 SADD "$KEY-set" a b
	rcli 0 ZADD "$KEY-zset" 1 a 2 b
	rcli 0 HSET "$KEY-hash" a b
	rcli 0 XADD "$KEY-stream" 1-1 a b
	for type in string list set zset hash stream; do
		before=$(rcli 0 --no-raw DUMP "$KEY-$type")
		code=65 line="redlock: $KEY-$type: $(server_url 0): KEY is a $type, which is not a lock: choose another KEY"
		case $type in
		string) code=75 line="redlock: $KEY-$type: held by another program, with no expiry" ;;
		hash) line=${line/a hash/a hash without an expiry} ;;
		zset) line=${line/a zset/a sorted set without an expiry} ;;
		esac
		redlock acquire -S "$(server_url 0)" -n "$KEY-$type"
		expect "$code" '' "$line"
		redlock run -S "$(server_url 0)" -w 50ms "$KEY-$type" touch "$TMP/ran"
		expect "$code" '' "$line"
		[[ ! -e $TMP/ran ]]
		code=65 line="redlock: $KEY-$type: KEY is not a lock: it is a $type"
		[[ $type != string ]] || code=1 line="redlock: $KEY-$type: not held by this token.*"
		redlock extend -S "$(server_url 0)" "$KEY-$type" 00112233445566778899aabbccddeeff
		expect "$code" '' "$line"
		redlock release -S "$(server_url 0)" "$KEY-$type" 00112233445566778899aabbccddeeff
		expect "$code" '' "$line"
		[[ $(rcli 0 --no-raw DUMP "$KEY-$type") == "$before" ]]
		[[ $(rcli 0 PTTL "$KEY-$type") == -1 ]]
	done
}

@test "values of every type on a majority keep five servers from granting, and are left alone" {
	local type i make code line
	for type in "string SET $KEY-string x" "list RPUSH $KEY-list x" "hash HSET $KEY-hash x y"; do
		read -r type make <<<"$type"
		code=65 line="redlock: $KEY-$type: [^ ]*: KEY is a $type.*, which is not a lock: choose another KEY"
		[[ $type != string ]] || code=75 line="redlock: $KEY-$type: held by another program, with no expiry"
		# shellcheck disable=SC2086
		for i in 0 2 4; do rcli "$i" $make; done
		redlock acquire --quarantine 0 -n "$KEY-$type"
		expect "$code" '' "$line"
		for i in 0 2 4; do [[ $(rcli "$i" TYPE "$KEY-$type") == "$type" ]]; done
		for i in 1 3; do wait_until "[[ \$(rcli $i EXISTS $KEY-$type) == 0 ]]"; done
	done
}

@test "a KEY that is not a lock is 65 at once, whatever is asked of it, -n -E 0 too" {
	local type option line
	rcli 0 RPUSH "$KEY-list" a b
	rcli 0 HSET "$KEY-hash" a b c d
	for type in 'list' 'hash without an expiry'; do
		line="redlock: $KEY-${type%% *}: $(server_url 0): KEY is a $type, which is not a lock: choose another KEY"
		for option in -x -s '-P 3' -r; do
			# shellcheck disable=SC2086 # words
			redlock run -S "$(server_url 0)" $option "$KEY-${type%% *}" touch "$TMP/ran"
			expect 65 '' "$line"
			# shellcheck disable=SC2086 # words
			redlock run -S "$(server_url 0)" $option -n -E 0 "$KEY-${type%% *}" touch "$TMP/ran"
			expect 65 '' "$line"
		done
		redlock wait -S "$(server_url 0)" "$KEY-${type%% *}"
		expect 65 '' "$line"
		[[ ! -e $TMP/ran && ! $(rcli 0 ZRANGE "$(record "$KEY-${type%% *}"):queue" 0 -1) ]]
	done
}

@test "data on a minority of the servers keeps nobody out, and stays" {
	rcli 1 RPUSH "$KEY" a
	redlock run --quarantine 0 "$KEY" true
	expect 0
	[[ $(rcli 1 LRANGE "$KEY" 0 -1) == a ]]
}

@test "a lock whose expiry was taken away is a lock, of every kind" {
	local option
	for option in -x -r -s '-P 3'; do
		# shellcheck disable=SC2086 # words
		redlock acquire -S "$(server_url 0)" $option "$KEY${option% *}"
		expect 0 '[0-9a-f]{32}'
		rcli 0 PERSIST "$KEY${option% *}"
		redlock acquire -S "$(server_url 0)" -n "$KEY${option% *}"
		expect 75 '' "redlock: $KEY${option% *}: held by .*"
	done
}

@test "a lock of another program keeps redlock out, and redlock's keeps the other out" {
	rcli 0 SET "$KEY" another-program NX PX 50000
	redlock acquire -S "$(server_url 0)" -n "$KEY"
	expect 75 '' "redlock: $KEY: held by another program, (4[0-9]|50)s left"
	[[ $(rcli 0 DEL "$KEY") == 1 ]]
	redlock acquire -S "$(server_url 0)" -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 SET "$KEY" another-program NX PX 60000) == '' ]]
	[[ $(rcli 0 GET "$KEY") == "$output" && $(rcli 0 TYPE "$KEY") == string ]]
}

@test "a waiter gets a key that another program held without expiry once it is deleted" {
	servers_start 1
	rcli 0 SET "$KEY" another-program
	spawn waiter "$REDLOCK" run "$KEY" echo 'got it'
	wait_until '[[ $(rcli 0 INFO commandstats) == *cmdstat_eval:* ]]'
	is_running waiter
	rcli 0 DEL "$KEY"
	finish waiter
	expect 0 'got it'
}

@test "a busy key says who holds it" {
	local token
	token=$("$REDLOCK" acquire -S "$(server_url 0)" -t 50s --label 'backup of /srv' "$KEY")
	redlock run -S "$(server_url 0)" -n "$KEY" touch "$TMP/ran"
	expect 75 '' \
		"redlock: $KEY: held by $(uname -n) pid [0-9]+ 'backup of /srv' for [0-9.]+m?s, (4[0-9]|50)s left"
	redlock run -S "$(server_url 0)" -n -E 0 "$KEY" touch "$TMP/ran"
	expect 0
	redlock run -S "$(server_url 0)" -n -E 42 "$KEY" touch "$TMP/ran"
	expect 42 '' "redlock: $KEY: held by .*"
	[[ ! -e $TMP/ran ]]
	key_held_by "$token" 0
}

@test "the record is named in the key's own hash slot" {
	local name
	for name in "$KEY" "$KEY{tag}more" "{$KEY-alone}"; do
		redlock acquire -S "$(server_url 0)" "$name"
		expect 0 '[0-9a-f]{32}'
		[[ $(rcli 0 GET "$name") == "$output" ]]
		[[ $(rcli 0 TYPE "$(record_of "$name")") == hash ]]
		[[ $(rcli 0 HEXISTS "$(record_of "$name")" "holder:$output") == 1 ]]
		# nothing else beside the key
		[[ $(rcli 0 KEYS "*${name//[\{\}]/?}*" | sort) == \
			"$(printf '%s\n' "$name" "$(record_of "$name")" | sort)" ]]
		redlock release -S "$(server_url 0)" "$name" "$output"
		expect 0
	done
}

@test "a key and the same key in braces are two locks with two records" {
	use 1
	redlock acquire "$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock acquire -n "{$KEY}"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 HEXISTS "$(record_of "{$KEY}")" "holder:$output") == 1 ]]
	[[ $(rcli 0 HEXISTS "$(record_of "$KEY")" "holder:$output") == 0 ]]
}

record_of() {
	if [[ $1 == \{?*\} ]]; then
		echo "$1redlock" # not the record of the name within
	elif [[ $1 == *\{?*\}* ]]; then echo "$1:redlock"; else echo "{$1}:redlock"; fi
}

@test "a lock in database 3 is there and nowhere else" {
	local url="unix://$SERVERS/0/redis.sock?db=3" token
	redlock acquire -S "$url" "$KEY"
	expect 0 '[0-9a-f]{32}'
	token=$output
	[[ $(rcli 0 -n 3 GET "$KEY") == "$token" && $(rcli 0 -n 3 EXISTS "$(record)") == 1 ]]
	[[ $(rcli 0 EXISTS "$KEY" "$(record)") == 0 ]]
	rcli 0 SET "$KEY" other-database
	redlock extend -S "$url" "$KEY" "$token"
	expect 0
	redlock release -S "$url" "$KEY" "$token"
	expect 0
	[[ $(rcli 0 -n 3 EXISTS "$KEY") == 0 && $(rcli 0 GET "$KEY") == other-database ]]
	redlock run -S "$url" "$KEY" true
	expect 0
}

@test "a database that the server does not have never means database 0" {
	servers_start_tcp 1 --databases 2
	redlock run -S "$(server_url 0)/3" -n "$KEY" touch "$TMP/ran"
	expect 78 '' "redlock: $KEY: $(server_url 0)/3: .*DB index.*"
	[[ ! -e $TMP/ran && $(rcli 0 DBSIZE) == 0 ]]
	redlock acquire -S "$(server_url 0)/1" -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 DBSIZE) == 0 && $(rcli 0 -n 1 GET "$KEY") == "$output" ]]
}

@test "the fence outlives the release by seven days and rises with the next grant" {
	local first ttl week=$((7 * 24 * 3600 * 1000))
	redlock run -S "$(server_url 0)" -t 20s "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]+'
	first=$output
	[[ $(rcli 0 EXISTS "$KEY") == 0 && $(fence_at 0) == "$first" ]]
	ttl=$(rcli 0 PTTL "$(record)")
	((ttl > week - 60000 && ttl <= (week + 20000) * 65 / 64))
	redlock run -S "$(server_url 0)" "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]+'
	((output > first))
}

@test "fences go on rising after all data was lost" {
	servers_start 1
	local fences=() i
	for i in 1 2 3; do
		fences+=("$("$REDLOCK" run "$KEY" sh -c 'echo $REDLOCK_FENCE')")
	done
	rcli 0 FLUSHALL
	fences+=("$("$REDLOCK" run "$KEY" sh -c 'echo $REDLOCK_FENCE')")
	server_restart 0
	fences+=("$("$REDLOCK" run "$KEY" sh -c 'echo $REDLOCK_FENCE')")
	[[ $(printf '%s\n' "${fences[@]}" | sort -nu) == "$(printf '%s\n' "${fences[@]}")" ]]
}

@test "fences go on rising after a restart from an older dump" {
	local fences=() i
	servers_start 1
	for i in {1..8}; do
		((i != 3)) || rcli 0 SAVE
		((i != 7)) || server_restart 0
		fences+=("$("$REDLOCK" run "$KEY" sh -c 'echo $REDLOCK_FENCE')")
	done
	[[ $(printf '%s\n' "${fences[@]}" | sort -nu) == "$(printf '%s\n' "${fences[@]}")" ]]
}

@test "a fence is the clock's where that is larger than the stored one, and a day ahead at most" {
	local before now
	servers_start 1
	rcli 0 HSET "$(record)" fence 5
	before=$(server_ms 0)
	"$REDLOCK" run "$KEY" true
	now=$(fence_at 0)
	((now >= before && now <= $(server_ms 0)))
	# as by a client whose clock is years ahead
	rcli 0 ZADD "$(record):queue" 1 token
	rcli 0 HSET "$(record):wishes" token $'2000 string 0 9000000000000 - 1 9000000000000\nx'
	spawn heard redis-cli -s "$SERVERS/0/redis.sock" SUBSCRIBE "$(record):token"
	wait_until 'grep -q subscribe $TMP/heard.out'
	before=$(server_ms 0)
	redlock release "$KEY" nobody # settles
	wait_until 'key_held_by token 0'
	now=$(fence_at 0)
	((now >= before + 86400000 && now <= $(server_ms 0) + 86400000))
	rcli 0 DEL "$KEY"
	"$REDLOCK" run "$KEY" true
	[[ $(fence_at 0) == $((now + 1)) ]]
}

@test "a record that is no record is 65, and the key is not taken" {
	rcli 0 SET "$(record)" something
	redlock acquire -S "$(server_url 0)" "$KEY"
	expect 65 '' "redlock: $KEY: .*"
	redlock run -S "$(server_url 0)" "$KEY" touch "$TMP/ran"
	expect 65 '' "redlock: $KEY: .*"
	[[ ! -e $TMP/ran && $(rcli 0 EXISTS "$KEY") == 0 && $(rcli 0 GET "$(record)") == something ]]
}

@test "records that are no records on a majority are 65, and nothing is left on the others" {
	local i
	for i in 0 1 2; do rcli "$i" SET "$(record)" something; done
	redlock acquire --quarantine 0 "$KEY"
	expect 65 '' "redlock: $KEY: .*"
	wait_until 'key_free 0 1 2 3 4'
}
