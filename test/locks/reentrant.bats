#!/usr/bin/env bats
# -r: an owner may hold KEY more than once; and what a run above says to those below it.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helper
load ../lib/cli
load ../lib/script

NEST=$ROOT/test/lib/tools/nest
OTHER=00112233445566778899aabbccddeeff

setup_file() {
	servers_start 5
}

setup() {
	# shellcheck disable=SC2034 # for helper.bash
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	export KEY TMP OPTIONS=
}

# inside OPTION... -- SCRIPT: runs SCRIPT (bash's) as the command of a `redlock run` with these options.
inside() {
	local options=()
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	redlock run --quarantine 0 "${options[@]}" "$KEY" bash -c "redlock() { \"\$REDLOCK\" \"\$@\"; }; $2"
}

# nested DEPTH SERVERS: runs in runs, one token, one fence, one lock.
nested() {
	local all token
	use "$2"
	all=$(seq -s ' ' 0 $(($2 - 1)))
	spawn outer "$REDLOCK" run --quarantine 0 -r "$KEY" "$NEST" "$1"
	wait_until '[[ -e $TMP/deep ]]'
	[[ $(wc -l <"$TMP/told") == "$1" && $(sort -u "$TMP/told" | wc -l) == 1 ]]
	token=$(sed 's/ .*//;q' "$TMP/told")
	wait_until "counted $1 $token $all"
	[[ $(rcli 0 TYPE "$KEY") == hash && $(rcli 0 HLEN "$KEY") == 1 ]]
	redlock run --quarantine 0 -n -r "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid $(pid outer) '.*' for .*"
	redlock acquire --quarantine 0 -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	touch "$TMP/end"
	finish outer
	expect 7
	[[ ! -e $TMP/ran ]]
	wait_until "nothing_left $all"
}

@test "a run -r inside a run -r enters with the same token and fence: one server" {
	nested 2 1
}

@test "three deep: one server" {
	nested 3 1
}

@test "three deep: three servers" {
	nested 3 3
}

@test "three deep: five servers" {
	nested 3 5
}

@test "each of several that hold KEY renews it, and it goes back when the last one ends" {
	export OPTIONS='-t 2s'
	use 3
	spawn outer "$REDLOCK" run --quarantine 0 -r -t 2s "$KEY" "$NEST" 3
	wait_until '[[ -e $TMP/deep ]]'
	renewals 4 0
	renewals 2 2
	counted 3 "$(sed 's/ .*//;q' "$TMP/told")" 0 1 2
	touch "$TMP/end"
	finish outer
	expect 7
	wait_until 'nothing_left 0 1 2'
}

@test "inner ends, outer goes on: the count goes down by one, and KEY stays" {
	use 1
	spawn outer "$REDLOCK" run -r "$KEY" bash -c '"$0" run -r "$KEY" "$1" "$TMP" inner && exec "$1" "$TMP" outer' \
		"$REDLOCK" "$ROOT/test/lib/tools/note"
	wait_until 'entered inner'
	[[ $(rcli 0 HVALS "$KEY") == 2 ]]
	ends inner
	wait_until 'entered outer'
	[[ $(rcli 0 HVALS "$KEY") == 1 ]]
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	ends outer
	done_well outer
	nothing_left 0
}

# outlives SERVERS: an inner holder that its outer one has left behind keeps KEY until it ends.
outlives() {
	local all token
	use "$1"
	all=$(seq -s ' ' 0 $(($1 - 1)))
	spawn outer "$REDLOCK" run --quarantine 0 -r -t 3s "$KEY" bash -c '
		setsid "$0" run --quarantine 0 -r -t 3s "$KEY" "$1" "$TMP" inner >/dev/null 2>&1 &
		until [[ -e $TMP/order ]]; do sleep 0.01; done' "$REDLOCK" "$ROOT/test/lib/tools/note"
	finish outer
	expect 0
	token=$(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP/told.inner")
	wait_until "counted 1 $token $all"
	takes next
	wait_until 'queued 1 0'
	renewals 3
	counted 1 "$token" 0
	[[ $(noted) == +inner ]]
	ends inner next
	done_well next
	[[ $(noted) == '+inner -inner +next -next' ]]
	wait_until "nothing_left $all"
}

@test "an inner holder that outlives the outer one keeps KEY, and others stay out: one server" {
	outlives 1
}

@test "an inner holder that outlives the outer one keeps KEY, and others stay out: three servers" {
	outlives 3
}

@test "an inner run that is killed is counted until the lease ends, and no longer" {
	use 1
	spawn outer "$REDLOCK" run -r -t 2s "$KEY" bash -c '
		"$0" run -r -t 2s "$KEY" sh -c "kill -KILL \$PPID; sleep 60"; exit 7' "$REDLOCK"
	finish outer
	expect 7 '' '.*Killed.*'
	redlock run -w 20s "$KEY" true
	expect 0
	nothing_left 0
}

# ---------------------------------------------------------------- what would wait for itself

# refused WHAT OPTION...: inside a run with $OUTER (words) what is told here fails at once: 75, and why.
refused() {
	local start
	start=$NOW
	# shellcheck disable=SC2086 # words
	redlock run --quarantine 0 $OUTER "$KEY" "$REDLOCK" run --quarantine 0 "$@" "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: held by an ancestor of this process, which waits for it${WHY:+: $WHY}" || return
	# shellcheck disable=SC2086 # words
	redlock run --quarantine 0 $OUTER "$KEY" "$REDLOCK" acquire --quarantine 0 "$@" "$KEY"
	expect 75 '' "redlock: $KEY: held by an ancestor of this process, which waits for it${WHY:+: $WHY}" || return
	((NOW - start < 15000 * SLOW)) && [[ ! -e $TMP/ran ]] && key_free 0
}

@test "-r inside a run without -r fails at once and says so" {
	local OUTER WHY='use -r there, too'
	use 1
	for OUTER in '' -x -s '-P 2'; do
		refused -r
		refused -r -w $((30 * SLOW))s
		refused -r -n
	done
}

@test "without -r, inside a run that holds KEY in whatever way, it fails at once and says so" {
	local OUTER WHY='use -r in both to enter KEY again'
	use 1
	for OUTER in '' -r; do
		refused
		refused -w $((30 * SLOW))s
		refused -n
	done
	WHY= # -r is for neither shared locks nor permits
	OUTER='' refused -s
	OUTER=-s refused -w $((30 * SLOW))s
	OUTER='-P 2' refused -w $((30 * SLOW))s
	OUTER='-P 1' refused -P 1
	use 3
	WHY='use -r in both to enter KEY again'
	OUTER='' refused -w $((30 * SLOW))s
	OUTER=-r refused
	OUTER='' refused --poll
}

@test "wait inside a run that holds KEY fails at once" {
	local outer
	use 1
	for outer in -x -r -s; do
		redlock run $outer "$KEY" "$REDLOCK" wait "$KEY"
		expect 75 "" "redlock: $KEY: held by an ancestor of this process, which waits for it"
	done
}

@test "the status of what would wait for itself is -E's" {
	use 1
	inside -- 'redlock run -E 9 "$KEY" true'
	expect 9 '' "redlock: $KEY: held by an ancestor of this process.*"
	inside -r -- 'redlock acquire -w 5s -E 9 "$KEY"'
	expect 9 '' "redlock: $KEY: held by an ancestor of this process.*"
	inside -- 'redlock run -r -E 0 "$KEY" touch "$TMP/ran"'
	[[ $status == 0 && $output == '' && ! -e $TMP/ran ]]
}

@test "shared inside shared, and a second permit inside the first, are two holders" {
	use 1
	inside -s -- 'redlock run -s "$KEY" redis-cli -s "$SERVERS/0/redis.sock" ZCARD "$KEY"'
	expect 0 2
	inside -P 2 -- 'redlock run -P 2 "$KEY" redis-cli -s "$SERVERS/0/redis.sock" ZCARD "$KEY"'
	expect 0 2
	nothing_left 0
}

@test "a shared run inside a shared one does not wait behind a writer that waits for the outer one" {
	use 1
	spawn outer "$REDLOCK" run -s "$KEY" bash -c '
		until [[ -e $TMP/go ]]; do sleep 0.01; done
		exec "$0" run -s "$KEY" true' "$REDLOCK"
	wait_until 'holders 1 0'
	takes writer
	wait_until 'queued 1 0'
	touch "$TMP/go"
	finish outer
	expect 75 "" "redlock: $KEY: held by an ancestor of this process, which waits for it"
	wait_until 'entered writer'
	ends writer
	done_well writer
}

@test "a run inside a run on another KEY is a run like any other" {
	local other
	use 1
	other=$KEY-other
	inside -- 'redlock run "$KEY-other" sh -c "echo \$REDLOCK_KEY \$REDLOCK_HELD"'
	expect 0 "$other $KEY=[0-9a-f]{32} $other=[0-9a-f]{32}"
	inside -r -- 'redlock run -r "$KEY-other" "$REDLOCK" run -r "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HVALS "$KEY"'
	expect 0 2
	rcli 0 SET "$other" somebody
	inside -- 'redlock run -w 30ms "$KEY-other" true'
	expect 75 '' "redlock: $other: held by another program, with no expiry"
	nothing_left 0
}

# ---------------------------------------------------------------- REDLOCK_HELD

@test "COMMAND is told what it holds, the outermost first" {
	use 1
	redlock run "$KEY" sh -c 'echo "$REDLOCK_HELD $REDLOCK_TOKEN"'
	expect 0 "$KEY=([0-9a-f]{32}) [0-9a-f]{32}"
	[[ $output == "$KEY=${output##* } ${output##* }" ]]
	inside -r -- 'redlock run -r "$KEY" sh -c "echo \$REDLOCK_HELD"'
	expect 0 "$KEY=[0-9a-f]{32} $KEY=[0-9a-f]{32}"
	[[ ${output% *} == "${output#* }" ]]
	REDLOCK_HELD="elsewhere=token" redlock run "$KEY" sh -c 'echo $REDLOCK_HELD'
	expect 0 "elsewhere=token $KEY=[0-9a-f]{32}"
}

@test "in REDLOCK_HELD a KEY's blanks, percent and equals signs and control characters are encoded" {
	use 1
	local plain=$KEY
	KEY="$plain a%b=c"$'\t\n\x01\x7f\xc3\xa9'
	redlock run "$KEY" sh -c 'echo "$REDLOCK_HELD"'
	expect 0 "$plain%20a%25b%3Dc%09%0A%01%7F"$'\xc3\xa9'"=[0-9a-f]{32}"
}

@test "a KEY of blanks, percent and equals signs and control characters is entered again" {
	local plain=$KEY
	use 1
	for KEY in "$plain a b" "$plain=x" "$plain%20" "$plain"$'\n\x01' "$plain=$OTHER $plain=" '% = %'; do
		inside -r -- 'redlock run -r "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HVALS "$KEY"'
		expect 0 2
		nothing_left 0
		inside -- 'redlock run -w 30s "$KEY" true'
		[[ $status == 75 && $stderr == *"held by an ancestor of this process"* ]]
	done
	# and none is taken for another
	KEY="$plain a" inside -- 'redlock run "${KEY% a}" true'
	expect 0
	KEY="$plain%20a" inside -r -- 'redlock run -n -r "${KEY%\%*} a" sh -c "echo \$REDLOCK_HELD"'
	expect 0 "$plain%2520a=([0-9a-f]{32}) $plain%20a=[0-9a-f]{32}"
	[[ ${output##*=} != *"${output:${#plain}+7:32}"* ]]
}

@test "a lock above that is over is no hindrance: KEY is just taken" {
	use 1
	local option
	for option in -x -r -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		REDLOCK_HELD=$KEY=$OTHER redlock run -n $option "$KEY" echo ran
		expect 0 ran
	done
	redlock acquire "$KEY"
	expect 0 '[0-9a-f]{32}'
	# another's now: it is waited for, and named
	REDLOCK_HELD=$KEY=$OTHER redlock run -w 30ms -r "$KEY" true
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ .*"
}

@test "what is left of an owner that has let go of KEY is not one owner" {
	local n
	for n in 1 3; do
		use $n
		mkdir "$TMP/stamps-$n"
		REDLOCK_SERVERS=$REDLOCK_SERVERS KEY=$KEY TMP=$TMP bash -c '
			eval "$("$REDLOCK" acquire -r --format shell "$KEY")" && "$REDLOCK" release "$KEY" || exit
			for i in 1 2 3; do "$REDLOCK" run -r "$KEY" -- "$STAMP" -d 300 "$TMP/stamps-$1" & done
			wait
		' - "$n"
		assert_exclusive "$TMP/stamps-$n" 3
	done
}

@test "acquire's entries in REDLOCK_HELD are replaced by later ones for KEY, and do not grow without end" {
	use 1
	KEY=$KEY REDLOCK_HELD="outer=token $KEY=token" bash -c '
		long=$(printf "%0400d" 0)
		for i in {1..3}; do
			eval "$("$REDLOCK" acquire --format shell "$KEY")" && "$REDLOCK" release "$KEY" || exit
		done
		[[ $REDLOCK_HELD == "outer=token $KEY=token  $KEY=$REDLOCK_TOKEN" ]] || exit
		eval "$("$REDLOCK" acquire --format shell "$KEY")" || exit
		for i in {1..50}; do
			eval "$("$REDLOCK" acquire --format shell "$long-$i")" && "$REDLOCK" release "$long-$i" || exit
		done
		[[ $REDLOCK_HELD == "outer=token $KEY=token  "*"-49="*"  $long-50=$REDLOCK_TOKEN" ]] || exit
		((${#REDLOCK_HELD} > 10000 && ${#REDLOCK_HELD} < 18000))
	'
}

@test "rubbish in REDLOCK_HELD is passed over" {
	local held
	use 1
	for held in ' ' '=' '==' "$KEY" "$KEY=" "$KEY= " "=$KEY" "  $KEY=  " '%' "%zz=$OTHER" $'\n' $'\xff\xfe=\x01' \
		"$KEY=$(head -c 300 /dev/zero | tr '\0' x)" "$(head -c 100000 /dev/zero | tr '\0' =)" "$KEY=a=b" "$KEY=a%b" \
		"$KEY="$'a\nb' "$KEY=$OTHER x" "x $KEY=$OTHER"; do
		for option in -x -r -s; do
			REDLOCK_HELD=$held redlock run -n $option "$KEY" echo ran
			expect 0 ran
		done
	done
	nothing_left 0
}

@test "of several entries for KEY the innermost counts" {
	use 1
	inside -r -- 'REDLOCK_HELD="$KEY=somebody $REDLOCK_HELD" redlock run -r "$KEY" redis-cli -s "$SERVERS/0/redis.sock" HVALS "$KEY"'
	expect 0 2
	inside -r -- 'REDLOCK_HELD="$REDLOCK_HELD $KEY=somebody" redlock run -n -r "$KEY" true'
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid .*"
}

# ---------------------------------------------------------------- acquire -r

@test "acquire -r inside run -r enters; release gives that hold back, and the run's is the last" {
	local i
	use 1
	# more than once: which hold is found first is a matter of chance
	for i in {1..8}; do
		inside -r -- 'token=$(redlock acquire -r "$KEY") && [[ $token == "$REDLOCK_TOKEN" ]] || exit 1
			redis-cli -s "$SERVERS/0/redis.sock" HVALS "$KEY"
			redlock release "$KEY" || exit 2
			redis-cli -s "$SERVERS/0/redis.sock" HVALS "$KEY"'
		expect 0 '2
1'
		nothing_left 0
	done
}

@test "acquire -r inside run -r, released, and the run renewed behind it: free at the end" {
	local i names=(a b c d e f)
	use 1
	for i in "${names[@]}"; do
		spawn "$i" "$REDLOCK" run -r -t $((2 * SLOW))s "$KEY-$i" bash -c '
			"$0" acquire -r -t 2s "$KEY-$2" >/dev/null && "$0" release "$KEY-$2" && exec "$1" "$TMP" "$2"' \
			"$REDLOCK" "$ROOT/test/lib/tools/note" "$i"
	done
	wait_until 'entered "${names[@]}"'
	for i in "${names[@]}"; do KEY=$KEY-$i renewals 2; done
	for i in "${names[@]}"; do [[ $(rcli 0 HVALS "$KEY-$i") == 1 ]]; done
	ends "${names[@]}"
	done_well "${names[@]}"
	for i in "${names[@]}"; do [[ $(rcli 0 EXISTS "$KEY-$i") == 0 ]]; done
}

@test "acquire -r --token twice, release twice: held until the second" {
	local count all
	for count in 1 3; do
		use "$count"
		all=$(seq -s ' ' 0 $((count - 1)))
		redlock acquire --quarantine 0 -r --token worker-7 "$KEY"
		expect 0 worker-7
		redlock acquire --quarantine 0 -r -n --token worker-7 "$KEY"
		expect 0 worker-7
		wait_until "counted 2 worker-7 $all"
		redlock acquire --quarantine 0 -r -n --token worker-8 "$KEY"
		expect 75 '' "redlock: $KEY: held by .*"
		redlock release "$KEY" worker-8
		expect 1 '' "redlock: $KEY: not held by this token: .*"
		redlock extend -t 90s "$KEY" worker-8
		expect 1 '' "redlock: $KEY: not held by this token: .*"
		redlock release "$KEY" worker-7
		expect 0
		wait_until "counted 1 worker-7 $all"
		redlock run --quarantine 0 -n "$KEY" true
		expect 75 '' "redlock: $KEY: held by .*"
		redlock extend -t 90s "$KEY" worker-7
		expect 0
		counted 1 worker-7 0
		(($(rcli 0 PTTL "$KEY") > 60000))
		redlock release "$KEY" worker-7
		expect 0
		wait_until "nothing_left $all"
		redlock release "$KEY" worker-7
		expect 1 '' "redlock: $KEY: not held by this token: .*"
	done
}

# waits_as TOKEN NAME [OPTION...]: `acquire -r` in the background.
waits_as() {
	local token=$1 name=$2
	shift 2
	spawn "$name" "$REDLOCK" acquire --quarantine 0 -r --token "$token" "$@" "$KEY"
}

# two_places SERVERS: of two that wait with one token one gives up, one way and the other; the other one is served.
two_places() {
	local all how now
	use "$1"
	all=$(seq -s ' ' 0 $(($1 - 1)))
	for how in signal patience; do
		redlock acquire --quarantine 0 -r --token holder "$KEY"
		waits_as both one -w "$([[ $how == signal ]] && echo 60s || echo 6s)" # while two comes, however slowly
		wait_until "queued 1 $all"
		waits_as both two -w 60s
		wait_until "queued 2 $all"
		[[ $how == patience ]] || kill -TERM "$(pid one)"
		finish one
		[[ $status == "$([[ $how == signal ]] && echo 143 || echo 75)" ]]
		wait_until "queued 1 $all"
		now=$NOW
		redlock release "$KEY" holder
		expect 0
		finish two
		expect 0 both
		((NOW - now < 2500)) # its next request is 5 s away
		redlock release "$KEY" both
		expect 0
		wait_until "nothing_left $all"
	done
}

@test "of two that wait with one token the one that gives up leaves the other its place: one server" {
	two_places 1
}

@test "of two that wait with one token the one that gives up leaves the other its place: three servers" {
	two_places 3
}

@test "two that wait with one token are both served, and each has a hold of its own" {
	use 1
	redlock acquire -r --token holder "$KEY"
	waits_as both one
	wait_until 'queued 1 0'
	waits_as both two
	wait_until 'queued 2 0'
	redlock release "$KEY" holder
	finish one
	expect 0 both
	finish two
	expect 0 both
	counted 2 both 0
	redlock release "$KEY" both
	counted 1 both 0
	redlock release "$KEY" both
	wait_until 'nothing_left 0'
}

@test "of two that wait with one token a dead one is skipped, whoever of them came first" {
	local dead now
	use 1
	for dead in one two; do
		redlock acquire -r --token holder "$KEY"
		waits_as both one
		wait_until 'queued 1 0'
		waits_as both two
		wait_until 'queued 2 0 && listening 2 0'
		kill -KILL "$(pid $dead)"
		wait_until 'listening 1 0'
		now=$NOW
		redlock release "$KEY" holder
		finish "$([[ $dead == one ]] && echo two || echo one)"
		expect 0 both
		((NOW - now < 2500))
		counted 1 both 0
		redlock release "$KEY" both
		finish "$dead"
		wait_until 'nothing_left 0'
	done
}

@test "the fence stays while an owner enters again, and rises for the next owner" {
	use 1
	local fence
	redlock acquire -r --token me --format json "$KEY"
	fence=$(jq .fence <<<"$output")
	redlock acquire -r --token me --format json "$KEY"
	[[ $(jq .fence <<<"$output") == "$fence" ]]
	redlock release "$KEY" me
	redlock release "$KEY" me
	redlock acquire -r --token you --format json "$KEY"
	(($(jq .fence <<<"$output") > fence))
}

@test "entering again never shortens the lease" {
	use 1
	redlock acquire -r --token me -t 90s "$KEY"
	redlock acquire -r --token me -t 5s "$KEY"
	(($(rcli 0 PTTL "$KEY") > 60000))
}

@test "a TOKEN is 1 to 256 characters without blanks, percent and equals signs, and needs -r" {
	local token
	use 1
	redlock acquire --token abc "$KEY"
	expect 64 '' 'redlock: .*--token.*-r.*'
	redlock run -r --token abc "$KEY" true
	expect 64 '' 'redlock: .*--token.*'
	for token in '' ' ' 'a b' 'a=b' 'a%b' $'a\nb' $'a\tb' $'\x7f' "$(head -c 257 /dev/zero | tr '\0' x)"; do
		redlock acquire -r --token "$token" "$KEY"
		expect 64 '' 'redlock: .*--token.*'
	done
	key_free 0
	token=$(head -c 256 /dev/zero | tr '\0' x)
	redlock acquire -r --token "$token" "$KEY"
	expect 0 "$token"
	redlock release "$KEY" "$token"
	expect 0
}

# ---------------------------------------------------------------- counted once

# behind_proxy: one server; $PROXIED is it by way of the proxy.
behind_proxy() {
	servers_start 1
	proxies_start
	PROXIED=$(proxy_urls)
}

@test "the reply to acquire -r lost, the request repeated: counted once" {
	behind_proxy
	redlock acquire -r --token me "$KEY"
	expect 0 me
	proxy 0 'close 1'
	redlock acquire -r --token me -S "$PROXIED" "$KEY"
	proxy_did 0 lost
	expect 0 me
	counted 2 me 0
	redlock release "$KEY" me
	counted 1 me 0
	redlock release "$KEY" me
	expect 0
	nothing_left 0
}

@test "the reply to acquire -r -w lost, the connection silent: counted once" {
	behind_proxy
	redlock acquire -r --token me "$KEY"
	proxy 0 'mute 1'
	redlock acquire -r --token me -S "$PROXIED" --server-timeout 300ms -w 20s "$KEY"
	proxy_did 0 lost
	[[ $status == 0 && $output == me ]]
	wait_until 'counted 2 me 0'
}

@test "every reply to acquire -r lost: the hold is given back, and the others are kept" {
	local fault
	behind_proxy
	redlock acquire -r --token me "$KEY"
	for fault in close mute; do
		proxy 0 "$fault"
		redlock acquire -r --token me -S "$PROXIED" --server-timeout 300ms "$KEY"
		expect 69 '' "redlock: $KEY: .*"
		wait_until 'counted 1 me 0'
	done
}

@test "the reply to release lost, the request repeated: counted out once" {
	local fault
	behind_proxy
	for fault in 'close 1' close mute; do
		redlock acquire -r --token me "$KEY"
		redlock acquire -r --token me "$KEY"
		redlock acquire -r --token me "$KEY"
		counted 3 me 0
		: >"$PROXIES/0.log"
		proxy 0 "$fault"
		redlock release -S "$PROXIED" --server-timeout 300ms "$KEY" me
		proxy_did 0 lost
		[[ $status == 0 ]] || expect 69 '' "redlock: $KEY: .*"
		counted 2 me 0
		redlock release "$KEY" me
		expect 0
		counted 1 me 0
		redlock release "$KEY" me
		expect 0
		nothing_left 0
	done
}

# gives_back NUMBER: a release by token, as it may arrive again.
gives_back() {
	local sha
	sha=$(sed -n 's/^#define BOTH_SHA1 "\(.*\)"$/\1/p' "${REDLOCK%/*}/scripts.h")
	rcli 0 EVALSHA "$sha" 5 "$KEY" "$(record)" "$(record):queue" "$(record):wishes" "$(record):waits" 0 me \
		"$(printf '* %032d' "$1")" 0 ''
}

@test "a release that arrives again counts once, whatever has come in between" {
	local i
	servers_start 1
	for i in {1..4}; do redlock acquire -r --token me "$KEY"; done
	gives_back 1
	gives_back 2
	gives_back 1
	counted 2 me 0
	gives_back 3
	gives_back 2
	gives_back 1
	counted 1 me 0
	gives_back 4
	nothing_left 0
	redlock acquire -r --token me "$KEY"
	gives_back 4
	gives_back 3
	counted 1 me 0
	gives_back 5
	nothing_left 0
}

@test "the replies to a nested run's acquire and release lost: counted in and out once" {
	local fault
	behind_proxy
	export PROXIED
	for fault in 'close 1' 'mute 1'; do
		rm -f "$TMP"/end.* "$TMP/order"
		: >"$PROXIES/0.log"
		proxy 0 "$fault"
		spawn outer "$REDLOCK" run -r "$KEY" bash -c '
			"$0" run -r -S "$PROXIED" --server-timeout 300ms -w 20s "$KEY" "$1" "$TMP" inner; exec "$1" "$TMP" outer' \
			"$REDLOCK" "$ROOT/test/lib/tools/note"
		wait_until 'entered inner'
		proxy_did 0 lost
		wait_until '[[ $(rcli 0 HVALS "$KEY") == 2 ]]'
		proxy 0 "$fault"
		ends inner
		wait_until 'entered outer'
		proxy_did 0 lost 2
		[[ $(rcli 0 HVALS "$KEY") == 1 ]]
		ends outer
		finish outer
		[[ $status == 0 ]]
		nothing_left 0
	done
}

@test "a server that was restarted empty counts as the others do, and is free in the end" {
	servers_start 3
	export OPTIONS='-t 3s'
	spawn outer "$REDLOCK" run --quarantine 0 -r -t 3s "$KEY" "$NEST" 2
	wait_until '[[ -e $TMP/deep ]]'
	local token
	token=$(sed 's/ .*//;q' "$TMP/told")
	wait_until "counted 2 $token 0 1 2"
	server_restart 1
	wait_until "counted 2 $token 1"
	renewals 3 1
	counted 2 "$token" 0 1 2
	touch "$TMP/end"
	finish outer
	expect 7
	wait_until 'nothing_left 0 1 2'
}

@test "two servers of three restarted empty: both holders have lost it" {
	servers_start 3
	export OPTIONS='-t 3s'
	spawn outer "$REDLOCK" run --quarantine 0 -r -t 3s "$KEY" "$NEST" 2
	wait_until '[[ -e $TMP/deep ]]'
	server_restart 0 1
	finish outer
	# whoever is stopped first ends the other one's command
	[[ $status == @(76|1) && $stderr == *"redlock: $KEY: lock lost: "* ]]
	wait_until 'nothing_left 0 1 2'
}

# ---------------------------------------------------------------- a record that is lost under its lock

# loses_record COUNT RENEWALS: the record of a lock that nested runs hold so often is lost, and so many
# renewals come; it goes back when the last of them ends, and not sooner.
loses_record() {
	local token
	export OPTIONS='-t 3s'
	use 1
	rm -f "$TMP"/{deep,told,end}
	spawn outer "$REDLOCK" run -r -t 3s "$KEY" "$NEST" "$1"
	wait_until '[[ -e $TMP/deep ]]'
	token=$(sed 's/ .*//;q' "$TMP/told")
	rcli 0 DEL "$(record)"
	renewals "$2"
	counted "$1" "$token" 0
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	touch "$TMP/end"
	finish outer
	expect 7
	nothing_left 0
}

@test "a run whose record was lost frees KEY when it ends, renewed or not" {
	loses_record 1 0
	loses_record 1 2
}

@test "runs in runs whose record was lost free KEY when the last one ends" {
	loses_record 3 0
	loses_record 2 4
}

@test "where the record was lost the inner hold goes, and the outer one stays" {
	local renewed
	use 1
	for renewed in 0 2; do
		rm -f "$TMP"/{end.inner,end.outer,order}
		spawn outer "$REDLOCK" run -r -t 3s "$KEY" bash -c '
			"$0" run -r -t 3s "$KEY" "$1" "$TMP" inner && exec "$1" "$TMP" outer' \
			"$REDLOCK" "$ROOT/test/lib/tools/note"
		wait_until 'entered inner'
		rcli 0 DEL "$(record)"
		renewals "$renewed"
		ends inner
		wait_until 'entered outer'
		[[ $(rcli 0 HVALS "$KEY") == 1 ]]
		redlock acquire -n "$KEY"
		expect 75 '' "redlock: $KEY: held by .*"
		ends outer
		done_well outer
		nothing_left 0
	done
}

@test "a release by token frees KEY where the record was lost, as on the other servers" {
	servers_start 3
	export REDLOCK_QUARANTINE=0
	redlock acquire -r --token me "$KEY"
	wait_until '[[ $(rcli 0 HGET "$KEY" me)$(rcli 1 HGET "$KEY" me)$(rcli 2 HGET "$KEY" me) == 111 ]]'
	rcli 2 DEL "$(record)"
	redlock release "$KEY" me
	expect 0
	wait_until 'key_free 0 1 2'
	(($(rcli 2 PTTL "$(record)") > 0)) # what is noted of it does not stay for ever
}

@test "a release by token whose answer was lost takes nothing from a later hold of its owner" {
	local sha
	servers_start 1
	redlock acquire -r --token me "$KEY"
	gives_back 1
	redlock acquire -r --token other "$KEY" # which begins the record's list of holders anew
	redlock release "$KEY" other
	redlock acquire -r --token me "$KEY"
	gives_back 1
	counted 1 me 0
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock release "$KEY" me
	expect 0
	nothing_left 0
}

# without N: three servers, one of which cannot be reached.
without() {
	local all
	all=$(server_urls 0 1 2)
	echo "${all/"$(server_url "$1")"/$NOWHERE}"
}

@test "two holds, each unknown to one server: a release gives one back, and the other still keeps others out" {
	local owner
	use 3
	export REDLOCK_QUARANTINE=0
	for owner in 1 2 3 4; do # which of the two is picked depends on their ages, then names
		KEY=$KEY-$owner
		"$REDLOCK" run "$KEY" true # all three have known KEY for as long
		"$REDLOCK" acquire -S "$(without 2)" -r --token me "$KEY" # two scripts: each has a shell of its own
		bash -c '"$REDLOCK" acquire -S "$0" -r --token me "$KEY"; true' "$(without 1)"
		[[ $(rcli 0 HGET "$KEY" me)$(rcli 1 HGET "$KEY" me)$(rcli 2 HGET "$KEY" me) == 211 ]]
		bash -c '"$REDLOCK" release "$KEY" me; exit $?'
		redlock acquire -n "$KEY"
		expect 75 '' "redlock: $KEY: held by .*"
		redlock release "$KEY" me
		expect 0
		nothing_left 0 1 2
	done
}

@test "each script of an owner gives back its own hold, on one server and on three" {
	local servers own before=
	export REDLOCK_QUARANTINE=0
	for servers in 1 3; do
		use "$servers"
		rm -f "$TMP/said" "$TMP"/step*
		for own in 1 2 3; do # neither names nor ages alone pick the right one for all
			script "$own" <<-end
				"\$REDLOCK" acquire -r --token me "\$KEY" || exit
				said in $own
				step $own
				"\$REDLOCK" release "\$KEY" me
			end
			wait_until "has_said in $own"
			rcli 0 HKEYS "$(record)" | grep '^hold:' | sort >"$TMP/holds"
			[[ $own != 2 ]] || before=$(comm -13 "$TMP/before" "$TMP/holds")
			mv "$TMP/holds" "$TMP/before"
		done
		[[ $before == hold:+* ]]
		step 2
		finish 2
		expect 0 me
		[[ $(rcli 0 HKEYS "$(record)" | grep -c '^hold:') == 2 ]]
		[[ $(rcli 0 HKEYS "$(record)") != *"$before"* ]]
		step 1
		step 3
		finish 1
		finish 3
		nothing_left 0
	done
}

@test "simultaneous releases by one token give back one hold each" {
	local servers i
	export REDLOCK_QUARANTINE=0
	for servers in 1 3; do
		use "$servers"
		for i in {1..12}; do redlock acquire -r --token me "$KEY"; done
		counted 12 me 0
		for i in {1..10}; do spawn "release$i" "$REDLOCK" release "$KEY" me; done
		for i in {1..10}; do
			finish "release$i"
			expect 0
		done
		wait_until 'counted 2 me $(seq -s " " 0 $((servers - 1)))'
		redlock release "$KEY" me
		redlock release "$KEY" me
		expect 0
		nothing_left 0
		redlock release "$KEY" me
		expect 1 '' "redlock: $KEY: not held by this token: .*"
	done
}

@test "a server that has lost an owner's lock does not get it back by the token alone, as another kind" {
	use 3
	export REDLOCK_QUARANTINE=0
	redlock acquire -r --token me "$KEY"
	wait_until 'counted 1 me 0 1 2'
	rcli 1 DEL "$KEY"
	proxies_start
	proxy 2 'delay 160' # so that the loss is known when a quorum has answered
	redlock extend -t 1m -S "$(server_urls 0 1),$(proxy_url 2)" "$KEY" me
	expect 0
	redlock acquire -r --token me "$KEY"
	expect 0 me
	wait_until 'counted 2 me 0 2 && counted 1 me 1'
	redlock release "$KEY" me
	redlock release "$KEY" me
	expect 0
	wait_until 'nothing_left 0 1 2'
}

@test "a hold that a server has kept, as it was away at the release, is not given back in place of a later one" {
	use 3
	export REDLOCK_QUARANTINE=0
	redlock acquire -r --token me "$KEY"
	wait_until 'counted 1 me 0 1 2'
	redlock release -S "$(without 0)" "$KEY" me
	redlock acquire -n -S "$(without 0)" "$KEY" # between the two of the owner's, its record begins anew
	redlock release -S "$(without 0)" "$KEY" "$output"
	redlock acquire -r --token me "$KEY"
	wait_until 'counted 2 me 0 && counted 1 me 1 2'
	redlock release "$KEY" me
	expect 0
	nothing_left 1 2
	redlock acquire -n "$KEY"
	expect 0 '.*'
}

@test "of more holds than a server tells, an untracked one is still given back before those that are kept" {
	local i holds now=${EPOCHSECONDS}000
	use 3
	export REDLOCK_QUARANTINE=0
	redlock acquire -r --token me "$KEY"
	wait_until 'counted 1 me 0 1 2'
	# a server tells 100
	holds=$(for i in {1..3000}; do printf 'hold:%032x %d ' "$i" "$now"; done)
	for i in 0 1 2; do
		# shellcheck disable=SC2086 # words
		rcli "$i" HSET "$(record)" $holds
		rcli "$i" HSET "$KEY" me 3001
	done
	redlock release "$KEY" me
	expect 0
	wait_until 'counted 3000 me 0 1 2'
	for i in 0 1 2; do [[ $(rcli "$i" HKEYS "$(record)") != *hold:+* ]]; done
	for i in 0 1 2; do rcli "$i" DEL "$KEY" "$(record)"; done
}

@test "a server that still lists its holds when the others have decided gives back the one that was picked, too" {
	use 3
	export REDLOCK_QUARANTINE=0
	redlock acquire -r --token me -t 10m "$KEY"
	wait_until 'counted 1 me 0 1 2'
	rcli 2 EVAL 'for i = 1, 200000 do
			redis.call("hset", KEYS[1], string.format("hold:%032x", i), ARGV[1])
		end
		redis.call("hset", KEYS[2], "me", 200001)' 2 "$(record)" "$KEY" "${EPOCHSECONDS}000"
	redlock release --server-timeout 20s "$KEY" me
	expect 0
	wait_until 'counted 200000 me 2'
	[[ $(rcli 2 HKEYS "$(record)") != *hold:+* ]]
	key_free 0 1
	rcli 2 DEL "$KEY" "$(record)"
}

@test "if no memory is left, a release whose answer was lost gives one hold back all the same" {
	behind_proxy
	for _ in 1 2 3; do redlock acquire -r --token me "$KEY"; done
	rcli 0 CONFIG SET maxmemory 1
	proxy 0 'close 1'
	redlock release -S "$PROXIED" "$KEY" me
	rcli 0 CONFIG SET maxmemory 0
	proxy_did 0 lost
	expect 0
	counted 2 me 0
}

@test "a release that arrives twice where the record was lost counts once" {
	local times
	behind_proxy
	redlock acquire -r --token me "$KEY"
	for times in 1 2; do
		redlock acquire -r --token me "$KEY"
	done
	rcli 0 DEL "$(record)"
	for times in 2 1; do
		: >"$PROXIES/0.log"
		proxy 0 'close 1'
		redlock release -S "$PROXIED" "$KEY" me
		proxy_did 0 lost
		expect 0
		counted "$times" me 0
	done
	redlock release "$KEY" me
	expect 0
	nothing_left 0
}

@test "a run's release that arrives twice where the record was lost counts once" {
	behind_proxy
	export PROXIED
	redlock acquire -r --token me "$KEY"
	spawn inner env REDLOCK_HELD="$KEY=me" "$REDLOCK" run -r -S "$PROXIED" "$KEY" "$ROOT/test/lib/tools/note" "$TMP" inner
	wait_until 'entered inner'
	counted 2 me 0
	rcli 0 DEL "$(record)"
	proxy 0 'close 1'
	ends inner
	finish inner
	proxy_did 0 lost
	counted 1 me 0
	redlock release "$KEY" me
	expect 0
	nothing_left 0
}

# regains OWNER: OWNER waits while another has two servers, has given back what it has on the third, and is
# served without a split vote. On a busy machine an answer may be late, and then there is one.
regains() {
	redlock acquire --quarantine 0 -r --token "$other" -w 20s "$KEY"
	expect 0 "$other" '(redlock: .*: held by .*)?' || return
	spawn waiter "$REDLOCK" acquire -v --quarantine 0 -r --token "$1" "$KEY"
	wait_until 'grep -q "elsewhere, given back" "$TMP/waiter.err"' || return
	redlock release "$KEY" "$other"
	finish waiter
	[[ $status == 0 && $output == "$1" ]] || return
	redlock release "$KEY" "$1"
	! grep -q 'split vote' "$TMP/waiter.err"
}

@test "a vote that its owner has given back is asked for again, once there is another" {
	local i other=owner-aaaaaaaaaaaa owner=owner-bbbbbbbbbbbb
	use 3
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done # no server has forgotten a holder
	# what killed commands of two owners have left
	"$REDLOCK" acquire -S "$(server_url 0)" --quarantine 0 -r --token "$other" -t 1h "$KEY"
	"$REDLOCK" acquire -S "$(server_url 1)" --quarantine 0 -r --token "$owner" -t 1h "$KEY"
	wait_until 'regains "$owner"'
}
