#!/usr/bin/env bats
# acquire, release and extend: a lock from a shell, without a COMMAND.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	unset REDLOCK_TOKEN
}

@test "acquire prints the token, alone on a line" {
	redlock acquire "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 GET "$KEY") == "$output" ]]
	[[ $(wc -lc <"$TMP/redlock.out" | tr -s ' ') == *'1 33' ]]
	local left
	left=$(rcli 0 PTTL "$KEY")
	((left > 0 && left <= 30000))
}

@test "each acquire has a token of its own and a larger fence" {
	local last_fence=0 fence tokens=()
	for _ in 1 2 3; do
		redlock acquire --format json "$KEY"
		[[ $status == 0 ]]
		tokens+=("$(jq -r .token <<<"$output")")
		fence=$(jq -r .fence <<<"$output")
		((fence > last_fence))
		last_fence=$fence
		redlock release "$KEY" "${tokens[-1]}"
		expect 0
	done
	[[ ${tokens[0]} != "${tokens[1]}" && ${tokens[1]} != "${tokens[2]}" ]]
}

@test "what acquire prints is kept in a substitution, and its status too" {
	local token
	token=$(timeout -k 1 20 "$REDLOCK" acquire "$KEY")
	run timeout -k 1 20 bash -c 'token=$("$1" acquire -n "$2") || exit; echo never' - "$REDLOCK" "$KEY"
	[[ $status == 75 && $output != *never* ]]
	redlock release "$KEY" "$token"
	expect 0
}

@test "--format shell can be evaluated, whatever is in KEY" {
	cd "$TMP"
	local key shell fence
	for key in "a'b \$(touch x)\`touch x\`;touch x" $'\n\\\t"! *' "''" $'-e \xff\e[31m' "$KEY"; do
		for shell in sh bash; do
			redlock acquire -t 40s --format shell -- "$key"
			[[ $status == 0 && $stderr == '' ]]
			fence=$(rcli 0 HGET "{$key}:redlock" fence)
			KEY_WANTED=$key TOKEN_WANTED=$(rcli 0 GET "$key") FENCE_WANTED=$fence TEXT=$output "$shell" -c '
				eval "$TEXT" || exit 1
				[ "$REDLOCK_KEY" = "$KEY_WANTED" ] || exit 2
				[ "$REDLOCK_TOKEN" = "$TOKEN_WANTED" ] || exit 3
				[ "$REDLOCK_FENCE" = "$FENCE_WANTED" ] || exit 4
				now=$(date +%s)
				[ "$REDLOCK_VALID_UNTIL" -gt "$now" ] && [ "$REDLOCK_VALID_UNTIL" -le $((now + 40)) ] || exit 5
				# exported
				exec sh -c '\''[ "$REDLOCK_TOKEN" = "$TOKEN_WANTED" ] && [ "$REDLOCK_KEY" = "$KEY_WANTED" ]'\''
			' 3>&- 4>&-
			redlock release -- "$key" "$(rcli 0 GET "$key")"
			expect 0
		done
	done
	[[ ! -e x ]]
}

@test "--format shell unsets what another lock has left, in a shell that has not exported it, too" {
	eval_shell() {
		REDLOCK_SLOT=9 REDLOCK_FENCES=x REDLOCK_UNLOCKED=1 REDLOCK_VALID_UNTIL=1 TEXT=$output sh -c '
			eval "$TEXT" && echo "${REDLOCK_SLOT-none} ${REDLOCK_FENCES-none} ${REDLOCK_UNLOCKED-none} ${REDLOCK_VALID_UNTIL-none}"' 3>&- 4>&-
	}
	redlock acquire -t 40s --format shell "$KEY"
	[[ $(eval_shell) =~ ^'none none none '[0-9]{10}$ ]]
	redlock acquire -t 40s --format shell --pid "$BASHPID" -P 2 --also "$KEY-c" "$KEY-b"
	[[ $(eval_shell) =~ ^[12]" $KEY-b="[0-9]+" $KEY-c="[0-9]+' none none'$ ]]
}

@test "an eval of --format shell that has no lock fails, and a script ends there, in every shell" {
	local shell code script
	hold
	local -A options=([75]=-n [0]='-n -E 0' [64]=--no-such-option [69]="-S unix://$TMP/none" [78]="--config $TMP/none")
	for shell in bash dash ksh mksh; do
		for code in "${!options[@]}"; do
			for script in 'set -e; eval "$($1)"; echo went on' 'eval "$($1)" || exit; echo on'; do
				run timeout -k 1 20 "$shell" -c "$script" - \
					"$REDLOCK acquire ${options[$code]} --format shell $KEY"
				[[ $status == "$code" && $output != *on ]]
			done
		done
	done
}

@test "an eval of --format shell fails if acquire is misspelt, or an option stands before it" {
	for slip in aquire '-n acquire'; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr bash -c 'set -e; eval "$("$@" --format shell key)"; echo went on' - "$REDLOCK" $slip
		[[ $status == 64 && $output == '' ]]
	done
}

@test "an eval fails, too, if --format or its value is misspelt; a reader of JSON gets nothing" {
	local slip words slips=(--format=sh/key --format/SHELL/key '--format/shell /key' --format=/key --format/key key/--format
		--fomat/shell/key --formt=shell/key --form=shel/key -format/shell/key --output/shell/key
		—format/shell/key -Z/--fo=sh/key)
	for slip in "${slips[@]}"; do
		IFS=/ read -ra words <<<"$slip"
		run --separate-stderr bash -c 'set -e; eval "$("$@")"; echo went on' - "$REDLOCK" acquire -n "${words[@]}"
		[[ $status == 64 && $output == '' ]] || { echo "$slip: $status $output" >&2 && false; }
		redlock acquire -n "${words[@]}"
		expect 64 '\(exit 64\)' 'redlock: acquire: .*'
		redlock aquire -n "${words[@]}"
		expect 64 '\(exit 64\)' 'redlock: unknown command .*'
	done
	for slip in '--format json -Z' '--fomat json' '--fomat=json' '--json'; do
		# shellcheck disable=SC2086 # words
		redlock acquire $slip key
		expect 64 '' 'redlock: acquire: unknown option .*'
	done
}

# native: redlock is found by its name, which is valgrind's
# bats test_tags=native
@test "a waiter for --format shell that a signal ends makes eval fail" {
	hold
	spawn waiter bash -c 'eval "$("$1" acquire -v --format shell "$2")"; exit' - "$REDLOCK" "$KEY"
	wait_until 'is_waiting waiter'
	pkill -TERM -P "${spawned[waiter]}" -x redlock
	finish waiter
	[[ $status == 143 ]]
}

@test "an acquire for --format shell that a signal ends while it reads the password makes eval fail" {
	local signal code
	mkfifo "$TMP/password"
	export REDLOCK_PASSWORD_FILE=$TMP/password
	for signal in TERM INT HUP QUIT; do
		code=$((128 + $(kill -l "$signal")))
		# one that is ignored stays so
		spawn acquire sh -c 'trap "" USR1; exec "$@"' - "$REDLOCK" acquire --format shell "$KEY"
		wait_until '[[ $(readlink "/proc/$(pid acquire)/fd/"*) == *"$TMP/password"* ]]'
		kill -USR1 "$(pid acquire)"
		kill "-$signal" "$(pid acquire)"
		finish acquire
		expect $code "\(exit $code\)"
	done
}

@test "--format json is one line with one object, whatever is in KEY" {
	local key
	for key in "$KEY" $'a"b\\c\n\x01' $'\xff\xc3'"$KEY" "$(repeat x 4096)"; do
		redlock acquire -t 20s --format json "$key"
		[[ $status == 0 && $stderr == '' ]]
		[[ $(json 'keys_unsorted | sort' "$TMP/redlock.out") == '["fence","key","slot","token","ttl_ms","valid_ms"]' ]]
		[[ $(json '.ttl_ms == 20000 and .valid_ms > 0 and .valid_ms < 20000' "$TMP/redlock.out") == true ]]
		[[ $(json .fence "$TMP/redlock.out") == "$(rcli 0 HGET "{$key}:redlock" fence)" ]]
		[[ $(jq -r .token <<<"$output") == "$(rcli 0 GET "$key")" ]]
		redlock release "$key" "$(rcli 0 GET "$key")"
		expect 0
	done
	redlock acquire --format json $'a"b\\c\n\x01\xff'
	[[ $(json .key "$TMP/redlock.out") == '"a\"b\\c\n\u0001'$'\xef\xbf\xbd"' ]]
}

@test "a token that can't be written is given back, and acquire fails" {
	local format code=0 target
	for format in '' --format=shell --format=json; do
		# shellcheck disable=SC2086 # none or one
		for target in full closed read-only; do
			code=0
			case $target in
			full) timeout -k 1 20 "$REDLOCK" acquire $format "$KEY" >/dev/full 2>"$TMP/err" || code=$? ;;
			closed) timeout -k 1 20 "$REDLOCK" acquire $format "$KEY" >&- 2>"$TMP/err" || code=$? ;;
			read-only) timeout -k 1 20 "$REDLOCK" acquire $format "$KEY" 1</dev/null 2>"$TMP/err" || code=$? ;;
			esac
			echo "$target $code: $(<"$TMP/err")"
			[[ $code == 71 && $(<"$TMP/err") == "redlock: $KEY: "*token* && $(wc -l <"$TMP/err") == 1 ]]
			key_free 0
		done
	done
}

@test "a signal ends an acquire whose token a full pipe does not take, and the lock is given back" {
	local options signal
	mkfifo "$TMP/pipe"
	exec 9<>"$TMP/pipe"
	run ! dd if=/dev/zero of="$TMP/pipe" oflag=nonblock bs=1k # until it is full
	for options in '' "--pid $$ --on-lost warn" '--format shell'; do
		for signal in TERM INT HUP; do
			# shellcheck disable=SC2086 # words
			spawn acquire sh -c 'exec "$@" >"$0" 9>&-' "$TMP/pipe" "$REDLOCK" acquire $options "$KEY"
			wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
			kill "-$signal" "$(pid acquire)"
			finish acquire 10
			expect $((128 + $(kill -l "$signal")))
			key_free 0
		done
	done
	exec 9>&-
}

@test "a reader that has gone away makes acquire give the lock back" {
	local code=0
	mkfifo "$TMP/pipe"
	# opened by both, then closed by the reader
	exec 7<>"$TMP/pipe"
	exec 8>"$TMP/pipe" 7>&-
	timeout -k 1 20 "$REDLOCK" acquire "$KEY" >&8 2>"$TMP/err" || code=$?
	exec 8>&-
	[[ $code == 71 && $(<"$TMP/err") == "redlock: $KEY: "*"Broken pipe"* ]]
	key_free 0
}

@test "a busy KEY is 75 with a line, or what -E says, and prints no token" {
	hold
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by another program, .* left"
	redlock acquire -w 40ms "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock acquire -n -E 7 "$KEY"
	expect 7 '' "redlock: $KEY: held by .*"
	redlock acquire -n -E 0 "$KEY"
	expect 0
	[[ $(rcli 0 GET "$KEY") == somebody ]]
}

@test "who holds KEY since an acquire is told as the shell that asked" {
	redlock acquire --label 'nightly' "$KEY"
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'nightly' for [0-9.]+m?s, (30|2[0-9])s left"
}

@test "an acquire is told as the script that called it, with control characters made visible, and without logins" {
	cat >"$TMP/deploy" <<-'SCRIPT'
		#!/bin/sh
		token=$("$REDLOCK" acquire --quarantine 0 "$1")
		echo "$token"
	SCRIPT
	chmod +x "$TMP/deploy"
	"$TMP/deploy" "$KEY" $'one\ntwo\e[31m' redis://me:secret@host/
	redlock acquire -n "$KEY"
	[[ $status == 75 && $stderr == *"$TMP/deploy $KEY one\\ntwo\\e[31m redis://"*"@host/'"* ]]
	[[ $stderr != *secret* ]]
}

@test "acquire waits until KEY is free" {
	hold
	spawn waiter "$REDLOCK" acquire -v "$KEY"
	wait_until 'is_waiting waiter'
	unhold
	finish waiter
	[[ $status == 0 && $output == "$(rcli 0 GET "$KEY")" ]]
}

@test "options may stand after KEY, and -- ends them" {
	redlock acquire "$KEY" -n --ttl 50
	expect 0 '[0-9a-f]{32}'
	redlock release "$KEY" --server-timeout=2 "$output"
	expect 0
	redlock acquire -- "--$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock release -- "--$KEY" "$output"
	expect 0
}

@test "release takes TOKEN from its argument, or from REDLOCK_TOKEN" {
	redlock acquire "$KEY"
	redlock release "$KEY" "$output"
	expect 0
	key_free 0
	redlock acquire "$KEY"
	REDLOCK_TOKEN=$output redlock release "$KEY"
	expect 0
	key_free 0
	redlock acquire "$KEY"
	REDLOCK_TOKEN=bogus redlock release "$KEY" "$output"
	expect 0
	key_free 0
}

@test "the shell that evaluated --format shell releases and extends without naming the token" {
	run --separate-stderr timeout -k 1 20 sh -c '
		eval "$("$1" acquire --format shell "$2")"
		"$1" extend -t 100 "$REDLOCK_KEY" && "$1" release "$REDLOCK_KEY"' - "$REDLOCK" "$KEY"
	expect 0
	key_free 0
}

@test "release of what is not held by this token is 1, and touches nothing" {
	redlock release "$KEY" nobody
	expect 1 '' "redlock: $KEY: not held by this token.*"
	hold
	redlock release "$KEY" nobody
	expect 1 '' "redlock: $KEY: not held by this token.*"
	redlock release "$KEY" some
	expect 1 '' "redlock: $KEY: not held by this token.*"
	redlock release "$KEY" somebodyelse
	expect 1 '' "redlock: $KEY: not held by this token.*"
	[[ $(rcli 0 GET "$KEY") == somebody ]]
	redlock release "$KEY" somebody
	expect 0
	redlock release "$KEY" somebody
	expect 1 '' "redlock: $KEY: not held by this token.*"
}

@test "a token of another program's is good for release and extend, up to 256 bytes of any kind" {
	local token
	for token in x "$(repeat x 256)" $'a b\n\xff"%s' '*'; do
		rcli 0 SET "$KEY" "$token" PX 60000
		redlock extend -t 200s "$KEY" "$token"
		expect 0
		(($(rcli 0 PTTL "$KEY") > 60000))
		redlock release "$KEY" "$token"
		expect 0
		key_free 0
	done
}

@test "a KEY of another type is nobody's to release or extend" {
	rcli 0 RPUSH "$KEY" token
	redlock release "$KEY" token
	expect 65 '' "redlock: $KEY: KEY is not a lock: it is a list"
	redlock extend "$KEY" token
	expect 65 '' "redlock: $KEY: KEY is not a lock: it is a list"
	redlock acquire -n "$KEY"
	expect 65 '' "redlock: $KEY: $(server_url 0): KEY is a list, which is not a lock: choose another KEY"
	[[ $(rcli 0 LRANGE "$KEY" 0 -1) == token && $(rcli 0 PTTL "$KEY") == -1 ]]
}

@test "extend makes the lease longer, and never shorter" {
	redlock acquire -t 10s "$KEY"
	local token=$output left
	redlock extend -t 100s "$KEY" "$token"
	expect 0
	left=$(rcli 0 PTTL "$KEY")
	((left > 10000 && left <= 100000))
	redlock extend -v -t 20s "$KEY" "$token"
	[[ $status == 0 && $stderr =~ extended,\ 1m[34][0-9](\.[0-9]+)?s\ left ]]
	left=$(rcli 0 PTTL "$KEY")
	((left > 30000 && left <= 100000))
	REDLOCK_TOKEN=$token redlock extend -t 200s "$KEY"
	expect 0
	left=$(rcli 0 PTTL "$KEY")
	((left > 100000 && left <= 200000))
	[[ $(rcli 0 GET "$KEY") == "$token" ]]
}

# left_to KIND TOKEN: ms of the owner's lease.
left_to() {
	if [[ $1 == -s ]]; then
		echo $(($(rcli 0 ZSCORE "$KEY" "$2") - $(server_ms 0)))
	else
		rcli 0 PTTL "$KEY"
	fi
}

@test "extend without -t is for the ttl that the lock was taken with, of whatever kind it is" {
	local kind left token
	echo 'ttl = 20s' >"$TMP/conf"
	for kind in -x -r -s; do
		redlock acquire $kind -t 10m "$KEY"
		token=$output
		rcli 0 PEXPIRE "$KEY" 60000
		[[ $kind != -s ]] || rcli 0 ZADD "$KEY" $(($(server_ms 0) + 60000)) "$token"
		redlock extend --config "$TMP/conf" "$KEY" "$token"
		expect 0
		left=$(left_to $kind "$token")
		((left > 500000 && left <= 600000))
		redlock extend -t 5m "$KEY" "$token"
		expect 0
		left=$(left_to $kind "$token")
		((left > 400000 && left <= 600000))
		redlock release "$KEY" "$token"
	done
}

@test "extend without -t, where nobody knows what the lock was taken with, is for 30s" {
	local ttl left
	rcli 0 SET "$KEY" token PX 5000
	redlock extend "$KEY" token
	expect 0
	(($(rcli 0 PTTL "$KEY") > 5000))
	for ttl in 0 86400001 99999999999999999999999 1e5 -1; do
		rcli 0 HSET "$(record)" holder:token $'since=1\nttl='"$ttl"$'\ncommand=x'
		rcli 0 PEXPIRE "$KEY" 5000
		redlock extend "$KEY" token
		expect 0
		left=$(rcli 0 PTTL "$KEY")
		((left > 5000 && left <= 30000))
	done
}

@test "extend of a lock that is lost is 1, and neither takes it nor extends the lock of somebody else" {
	redlock acquire "$KEY"
	local token=$output left
	rcli 0 DEL "$KEY"
	redlock extend -t 100s "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	key_free 0
	rcli 0 SET "$KEY" thief PX 20000
	redlock extend -t 100s "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
	left=$(rcli 0 PTTL "$KEY")
	((left > 0 && left <= 20000))
	[[ $(rcli 0 GET "$KEY") == thief ]]
}

@test "a holder without an expiry that is extended has one" {
	rcli 0 SET "$KEY" token
	redlock extend -t 100s "$KEY" token
	expect 0
	(($(rcli 0 PTTL "$KEY") > 0))
}

@test "release and extend without a server are 69, not 1" {
	redlock release -S "$NOWHERE" "$KEY" token
	expect 69 '' "redlock: $KEY: $NOWHERE: No such file or directory.*"
	redlock extend -S "$NOWHERE" "$KEY" token
	expect 69 '' "redlock: $KEY: $NOWHERE: No such file or directory.*"
	redlock acquire -S "$NOWHERE" "$KEY"
	expect 69 '' "redlock: $KEY: $NOWHERE: No such file or directory.*"
}

@test "-q keeps to errors, -v tells each step, and standard output has the token alone" {
	redlock acquire -q "$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock release -q "$KEY" "$output"
	expect 0
	redlock acquire -v "$KEY"
	[[ $status == 0 && $output =~ ^[0-9a-f]{32}$ && $stderr == *granted* ]]
	local token=$output
	redlock extend -v "$KEY" "$token"
	[[ $status == 0 && $output == '' && $stderr =~ ^redlock:\ [0-9]+\.[0-9]{3}s:\ . ]]
	redlock release -v "$KEY" "$token"
	[[ $status == 0 && $output == '' && $stderr =~ ^redlock:\ [0-9]+\.[0-9]{3}s:\ . ]]
	redlock release -q "$KEY" token
	expect 1 '' "redlock: $KEY: not held by this token.*"
}

@test "keys whose names are alike keep their records and queues apart" {
	local key
	for key in 'a}b' '{a}b}' 'a{}b' '{a{}b}' x '{x}' '{x}{y}' 'x}{y'; do
		redlock run "$key" true
		expect 0
	done
	(($(rcli 0 KEYS '*redlock' | sort -u | wc -l) >= 8))
	redlock acquire 'a}b'
	spawn waiter "$REDLOCK" run '{a}b}' "$ROOT/test/lib/tools/note" "$TMP" waiter
	wait_until 'grep -q "^+waiter" "$TMP/order"'
	redlock release 'a}b' "$output"
	touch "$TMP/end.waiter"
	finish waiter
	expect 0
}

@test "keys of any bytes are locked under exactly that name" {
	local key
	for key in ' ' $'\xff\xfe\x01\n\e[31m' "$(repeat x 4096)" '{a}{b}' 'a{b}c' '{}x' '}{'; do
		redlock acquire "$key"
		expect 0 '[0-9a-f]{32}'
		[[ $(rcli 0 GET "$key") == "$output" ]]
		redlock release "$key" "$output"
		expect 0
		[[ $(rcli 0 EXISTS "$key") == 0 ]]
	done
}
