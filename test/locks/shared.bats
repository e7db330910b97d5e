#!/usr/bin/env bats
# -s: any number of shared holders, or one exclusive holder, and nobody is starved.
# shellcheck disable=SC2016,SC2154

load ../lib/helper

setup_file() {
	servers_start 5
}

# acquire [OPTION...]: $token holds KEY, shared.
acquire() {
	redlock acquire --quarantine 0 -s "$@" "$KEY"
	expect 0 '[0-9a-f]{32}' || return
	token=$output
}

# expired COUNT I...: so many entries of KEY are over there, and still in it.
expired() {
	local count=$1 i
	shift
	for i; do [[ $(rcli "$i" ZCOUNT "$KEY" -inf "$(server_ms "$i")") == "$count" ]] || return; done
}

# many COUNT: twelve shared holders at once on the first COUNT servers.
many() {
	local readers=() i
	use "$1"
	for i in {1..12}; do readers+=("r$i"); done
	for i in "${readers[@]}"; do takes "$i" -s; done
	wait_until 'entered '"${readers[*]}"
	[[ $(noted) != *-* ]]
	holders 12 0
	[[ $(rcli 0 TYPE "$KEY") == zset ]]
	# each has a token and a fence of its own kind
	[[ $(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP"/told.* | sort -u | wc -l) == 12 ]]
	ends "${readers[@]}"
	done_well "${readers[@]}"
	# shellcheck disable=SC2046 # numbers
	wait_until 'nothing_left '"$(seq -s ' ' 0 $(($1 - 1)))"
}

@test "many shared holders are in at once: one server" {
	many 1
}

@test "many shared holders are in at once: three servers" {
	many 3
}

@test "many shared holders are in at once: five servers" {
	many 5
}

@test "a shared holder keeps every other kind out, and is named" {
	use 1
	takes reader -s --label 'reads the books'
	wait_until 'entered reader'
	local kind
	for kind in -x -r; do
		redlock run -n $kind "$KEY" touch "$TMP/ran"
		expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'reads the books' for [0-9.]+m?s"
	done
	redlock acquire -w 50ms "$KEY"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'reads the books' for [0-9.]+m?s"
	redlock run -n -P 3 "$KEY" touch "$TMP/ran"
	expect 65 '' "redlock: $KEY: .*"
	[[ ! -e $TMP/ran ]]
	holders 1 0
	ends reader
	done_well reader
}

@test "of several shared holders one that is still there is named" {
	use 1
	takes one -s -t 40s --label first
	wait_until 'entered one'
	takes two -s -t 60s --label second
	wait_until 'entered two'
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by 2, longest $(uname -n) pid [0-9]+ 'first' for .*"
	ends one
	done_well one
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'second' for .*"
	ends two
	done_well two
}

@test "an exclusive and a reentrant holder keep shared ones out, and are named" {
	use 1
	local kind
	for kind in -x -r; do
		takes "writer$kind" "$kind" --label 'writes the books'
		wait_until "entered writer$kind"
		redlock run -n -s "$KEY" touch "$TMP/ran"
		expect 75 '' "redlock: $KEY: held by $(uname -n) pid [0-9]+ 'writes the books' for [0-9.]+m?s( \(usually [^)]+\))?"
		redlock run -w 50ms -s -E 3 "$KEY" touch "$TMP/ran"
		expect 3 '' "redlock: $KEY: held by .*"
		ends "writer$kind"
		done_well "writer$kind"
	done
	[[ ! -e $TMP/ran ]]
}

@test "-n -s is refused while a writer waits, as the writer comes first" {
	use 1
	takes reader -s
	wait_until 'entered reader'
	takes writer
	wait_until 'queued 1 0'
	redlock run -n -s "$KEY" touch "$TMP/ran"
	expect 75 '' "redlock: $KEY: .*"
	[[ ! -e $TMP/ran ]]
	queued 1 0
	ends reader writer
	done_well reader writer
	[[ $(noted) == '+reader -reader +writer -writer' ]]
}

# stream SERVERS: four that read without end; a writer gets in after, at most, those who are there.
stream() {
	local i line late
	use "$1"
	for i in 1 2 3 4; do
		spawn "stream$i" bash -c 'until [[ -e $1/stop ]]; do
			"$REDLOCK" run --quarantine 0 -s "$2" sh -c "echo +r >>\$1/order; sleep 0.1" - "$1" || exit
		done' - "$TMP" "$KEY"
	done
	wait_until '(($(grep -c +r "$TMP/order") >= 8))'
	takes writer
	# nobody else waits before the writer does: on the last server, too
	wait_until "queued_or_in $(($1 - 1))"
	line=$(wc -l <"$TMP/order")
	wait_until 'entered writer'
	late=$(tail -n +$((line + 1)) "$TMP/order" | sed '/+writer/q' | grep -c +r) || :
	echo "$late readers came in between"
	((late <= 4))
	ends writer
	finish writer && expect 0
	touch "$TMP/stop"
	for i in 1 2 3 4; do finish "stream$i" && expect 0; done
	# nobody read beside the writer
	[[ $(noted) == *'+writer -writer'* ]]
}

queued_or_in() {
	[[ $(rcli "$1" EXISTS "$(record):queue") == 1 ]] || entered writer
}

@test "a writer is not starved by a stream of readers: one server" {
	stream 1
}

@test "a writer is not starved by a stream of readers: three servers" {
	stream 3
}

@test "readers behind a writer all enter together when it ends" {
	local count readers=(r1 r2 r3 r4 r5 r6)
	for count in 1 5; do
		use "$count"
		rm -f "$TMP"/order "$TMP"/end.*
		takes writer
		wait_until 'entered writer'
		for i in "${readers[@]}"; do takes "$i" -s; done
		wait_until "queued 6 $(seq -s ' ' 0 $((count - 1)))"
		[[ $(noted) == +writer ]]
		ends writer
		# none of them ends before all are in
		wait_until 'entered "${readers[@]}"'
		ends "${readers[@]}"
		done_well writer "${readers[@]}"
		[[ $(noted) == '+writer -writer +'* ]]
	done
}

@test "readers and writers are served in the order in which they came" {
	use 1
	local name n=0
	takes first
	wait_until 'entered first'
	for name in r1 r2 w1 r3 r4 w2 w3 r5; do
		if [[ $name == r* ]]; then takes "$name" -s; else takes "$name"; fi
		((++n))
		wait_until "queued $n 0"
	done
	ends first
	wait_until 'entered r1 r2'
	ends r1
	finish r1
	[[ $(noted) != *+w1* ]]
	ends r2
	wait_until 'entered w1'
	ends w1
	wait_until 'entered r3 r4'
	[[ $(noted) != *+w2* ]]
	ends r3 r4
	wait_until 'entered w2'
	ends w2
	wait_until 'entered w3'
	[[ $(noted) != *+r5* ]]
	ends w3 r5
	done_well first r2 w1 r3 r4 w2 w3 r5
	[[ $(noted) == *'+w1 -w1 '*'+w2 -w2 +w3 -w3 +r5 -r5' ]]
}

# contend SERVERS: readers and writers, and the kernel as the witness: it has shared locks, too.
contend() {
	local i names=()
	use "$1"
	mkdir "$TMP/stamps"
	for i in 1 2 3 4; do
		names+=("reader$i")
		spawn "reader$i" bash -c 'for ((i = 0; i < 8; i++)); do
			"$REDLOCK" run --quarantine 0 -s "$1" "$STAMP" -s -d 20 "$2" || exit
		done' - "$KEY" "$TMP/stamps"
	done
	for i in 1 2; do
		names+=("writer$i")
		spawn "writer$i" bash -c 'for ((i = 0; i < 5; i++)); do
			"$REDLOCK" run --quarantine 0 "$1" sh -c "echo \$REDLOCK_FENCE >>\$2/writers; exec \"\$1\" -d 10 \"\$2\"" - "$STAMP" "$2" || exit
		done' - "$KEY" "$TMP/stamps"
	done
	for i in "${names[@]}"; do finish "$i" 60 && expect 0 || return; done
	[[ ! -e $TMP/stamps/overlap ]]
	# a writer's fence is above those before it and below those behind it
	beats "$TMP/stamps" | awk -v writers="$TMP/stamps/writers" '
		BEGIN { while ((getline one < writers) > 0) writer[one]++ }
		{ fence[NR] = $1; first[NR] = $2; last[NR] = $3 }
		END {
			for (w in fence) if (fence[w] in writer) {
				if (writer[fence[w]] != 1) { print fence[w] " twice"; bad = 1 }
				for (i in fence) if (i != w && (first[i] < first[w]) != (fence[i] + 0 < fence[w] + 0)) {
					print fence[i] " and the writer with " fence[w]; bad = 1
				}
			}
			if (NR != 42) { print NR " holders"; bad = 1 }
			exit bad
		}' >&2
}

@test "readers share, writers do not, whoever comes when: one server" {
	contend 1
}

@test "readers share, writers do not, whoever comes when: three servers" {
	contend 3
}

@test "readers share, writers do not, whoever comes when: five servers" {
	contend 5
}

@test "a shared holder that is killed is forgotten after its own ttl, while another goes on" {
	use 1
	takes short -s -t $((2 * SLOW))s
	takes long -s -t 50s
	wait_until 'entered short long'
	kill -KILL "$(pid short)"
	finish short
	[[ $status == 137 ]]
	holders 2 0
	ends long
	done_well long
	# its lease is kept, whatever KEY's own ttl has become
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	(($(rcli 0 PTTL "$KEY") > 10000))
	wait_until 'expired 1 0'
	redlock run -n "$KEY" true
	expect 0
	wait_until 'nothing_left 0'
}

@test "what is left of a killed shared holder does not outlast it, and the others stay" {
	use 1
	takes short -s -t 2s
	takes long -s -t 50s
	wait_until 'entered short long'
	kill -KILL "$(pid short)"
	finish short
	wait_until 'expired 1 0'
	redlock run -n -s "$KEY" redis-cli -s "$SERVERS/0/redis.sock" ZCARD "$KEY"
	expect 0 2
	[[ $(rcli 0 HKEYS "$(record)" | grep -c ^holder:) == 1 ]]
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	ends long
	done_well long
}

@test "a writer that waits gets in when the killed shared holder's lease is over" {
	local start
	use 3
	takes short -s -t 2s
	wait_until 'entered short'
	start=$NOW
	takes writer -t 20s
	wait_until 'queued 1 0 1 2'
	kill -KILL "$(pid short)"
	wait_until 'entered writer'
	((NOW - start < 6000))
	ends writer
	done_well writer
	finish short
}

@test "a shared lock is extended and released by its token, and others' entries stay" {
	local first others=00112233445566778899aabbccddeeff count
	for count in 1 3; do
		use "$count"
		acquire -t 50s
		first=$token
		acquire -t 40s
		wait_until "holders 2 $(seq -s ' ' 0 $((count - 1)))"
		redlock extend -t 90s "$KEY" "$first"
		expect 0
		(($(rcli 0 ZSCORE "$KEY" "$first") > $(server_ms 0) + 80000))
		(($(rcli 0 ZSCORE "$KEY" "$token") <= $(server_ms 0) + 40000))
		(($(rcli 0 PTTL "$KEY") > 80000))
		redlock extend -t 10s "$KEY" "$first"
		expect 0
		(($(rcli 0 ZSCORE "$KEY" "$first") > $(server_ms 0) + 40000))
		redlock extend "$KEY" "$others"
		expect 1 '' "redlock: $KEY: not held by this token: .*"
		redlock release "$KEY" "$others"
		expect 1 '' "redlock: $KEY: not held by this token: .*"
		redlock release "$KEY" "$first"
		expect 0
		wait_until "holders 1 $(seq -s ' ' 0 $((count - 1)))"
		redlock release "$KEY" "$first"
		expect 1 '' "redlock: $KEY: not held by this token: .*"
		redlock extend "$KEY" "$first"
		expect 1 '' "redlock: $KEY: not held by this token: .*"
		redlock release "$KEY" "$token"
		expect 0
		wait_until "nothing_left $(seq -s ' ' 0 $((count - 1)))"
	done
}

@test "a reader that asks twice gets a new fence if another reader came in between" {
	local kind mine others
	use 1
	proxies_start
	for kind in -s '-P 3'; do
		proxy 0 'close 1' hold
		: >"$PROXIES/0.log"
		# shellcheck disable=SC2086 # words
		spawn twice "$REDLOCK" acquire $kind --server-timeout 50s -S "$(proxy_url 0)" --format json "$KEY"
		wait_until 'proxy_did 0 hold'
		others=$("$REDLOCK" acquire $kind --format json "$KEY" | jq .fence)
		proxy 0 pass
		finish twice
		[[ $status == 0 ]]
		mine=$(jq .fence <<<"$output")
		((mine > others))
		[[ $(fence_at 0) == "$mine" ]]
		"$REDLOCK" release "$KEY" "$(jq -r .token <<<"$output")"
		[[ $(rcli 0 HKEYS "$(record)" | grep -c '^fence:') == 1 ]]
		rcli 0 DEL "$KEY"
	done
}

@test "a shared lock that is over is neither extended nor released, though KEY is there" {
	use 1
	local slow
	acquire -t $((300 * SLOW))ms
	slow=$token
	acquire -t 60s
	wait_until '(($(rcli 0 ZCOUNT "$KEY" "$(server_ms 0)" +inf) == 1))'
	redlock extend "$KEY" "$slow"
	expect 1 '' "redlock: $KEY: not held by this token: .*"
	redlock release "$KEY" "$slow"
	expect 1 '' "redlock: $KEY: not held by this token: .*"
	redlock release "$KEY" "$token"
	expect 0
}

@test "each shared holder is renewed for as long as its command runs" {
	use 3
	takes one -s -t 2s
	takes two -s -t 3s
	wait_until 'entered one two'
	renewals 4 0
	renewals 2 2
	holders 2 0 1 2
	expired 0 0 1 2
	ends one two
	done_well one two
	wait_until 'nothing_left 0 1 2'
}

@test "a shared holder has the fence that the servers agreed on at each of them" {
	local fence i
	use 3
	rcli 1 HSET "$(record)" fence 9000000000000000
	redlock acquire --quarantine 0 -s --server-timeout 9s --format json "$KEY"
	[[ $status == 0 ]]
	token=$(jq -r .token <<<"$output")
	fence=$(jq -r .fence <<<"$output")
	((fence > 9000000000000000))
	for i in 0 1 2; do wait_until "[[ \$(rcli $i HGET '$(record)' fence:$token) == $fence ]]"; done
	give_back
}

@test "a shared holder whose entry is removed has lost the lock: 76; the others have not" {
	local count i lost
	for count in 1 3; do
		use "$count"
		rm -f "$TMP"/end.* "$TMP"/order
		takes stays -s -t 3s
		takes loses -s -t 3s
		wait_until 'entered stays loses'
		lost=$(sed 's/.* token=\([^ ]*\) .*/\1/' "$TMP/told.loses")
		wait_until "holders 2 $(seq -s ' ' 0 $((count - 1)))"
		# (a renewal between the two would put back what the first has lost)
		wait_until 'for ((i = 0; i <= count / 2; i++)); do rcli "$i" ZREM "$KEY" "$lost"; done >/dev/null; ! is_running loses'
		finish loses
		expect 76 '' "redlock: $KEY: lock lost: .*KEY is .*: COMMAND is stopped"
		[[ $(noted) != *-loses* ]]
		renewals 2
		ends stays
		done_well stays
		wait_until "nothing_left $(seq -s ' ' 0 $((count - 1)))"
	done
}

@test "a shared lock's validity is the ttl less the drift, on any number of servers" {
	local count
	for count in 1 3 5; do
		use "$count"
		redlock acquire --quarantine 0 --format json -s -t 60s "$KEY"
		[[ $status == 0 && $output =~ \"valid_ms\":\ ?([0-9]+) ]]
		((BASH_REMATCH[1] <= 60000 - 602 && BASH_REMATCH[1] > 30000))
	done
}

@test "five servers: two that are down do not keep shared holders out, three do" {
	servers_start 5
	server_kill 1 3
	takes one -s
	takes two -s
	wait_until 'entered one two'
	redlock acquire --quarantine 0 -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	ends one two
	done_well one two
	server_kill 0
	redlock acquire --quarantine 0 -s "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: 3 of 5 .*"
}

@test "a server that was restarted empty under shared holders gets all of them back" {
	local before
	servers_start 3
	takes one -s -t 3s
	takes two -s -t 3s
	wait_until 'entered one two'
	wait_until 'holders 2 0 1 2'
	before=$(rcli 1 ZRANGE "$KEY" 0 -1 | sort)
	server_restart 0
	wait_until 'holders 2 0'
	[[ $(rcli 0 ZRANGE "$KEY" 0 -1 | sort) == "$before" ]]
	[[ $(rcli 0 HGET "$(record)" permits) == 0 ]]
	renewals 1
	redlock run -n --quarantine 0 -S "$(server_url 0)" "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	ends one two
	done_well one two
	wait_until 'nothing_left 0 1 2'
}

@test "a writer that was killed as it waited does not keep readers out" {
	use 1
	redlock acquire -s -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	spawn writer "$REDLOCK" run "$KEY" true
	wait_until 'queued 1 0'
	redlock run -n -s "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*"
	kill -KILL "$(pid writer)"
	wait_until '[[ ! $(rcli 0 PUBSUB CHANNELS "$(record):*") ]]'
	redlock run -n -s "$KEY" true
	expect 0
	queued 0 0
}

@test "a wait that is first in the queue does not keep readers out" {
	use 1
	redlock acquire -s -t 60s "$KEY"
	expect 0 '[0-9a-f]{32}'
	spawn waits "$REDLOCK" wait "$KEY"
	wait_until 'queued 1 0'
	redlock run -n -s "$KEY" true
	expect 0
	is_running waits && queued 1 0
}

@test "a reader keeps a writer out if records are of one age, and one of three servers has forgotten the reader" {
	local token i
	servers_start 3 --appendonly yes --appendfsync always
	token=$("$REDLOCK" acquire -s -t 10m "$KEY")
	"$REDLOCK" acquire -s -t 10m "$KEY"
	wait_until 'holders 2 0 1 2'
	rcli 1 FLUSHALL
	rcli 2 DEL "$KEY"
	rcli 2 HDEL "$(record)" until last
	"$REDLOCK" run -S "$(server_url 1)" "$KEY" true
	of_one_age "$token"
	for i in 1 2 3; do
		redlock run -n -t 5s "$KEY" touch "$TMP/ran"
		expect 75 '' "redlock: $KEY: held by .*"
	done
	[[ ! -e $TMP/ran ]]
}

@test "an exclusive one is told when the last that share KEY are over, not when KEY itself is" {
	servers_start 1
	export REDLOCK_QUARANTINE=0
	redlock run -s --min-hold 3s "$KEY" true
	redlock run -n -s "$KEY" true
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .*, [0-3](\.[0-9])?s left"
}
