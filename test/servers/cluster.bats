#!/usr/bin/env bats
# redis+cluster://: the lock is on the node that has KEY's hash slot, now.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables
# bats file_tags=long

load ../lib/helper
load ../lib/cli
load ../lib/discovery

# three masters, whose hash slots may be moved by those who have a KEY there
setup_file() {
	cluster_start 3
}

# move_begins FROM TO: KEY's hash slot is to be moved; move_ends FROM TO: it is, with all that is in it.
move_begins() {
	local slot
	slot=$(slot_of "$KEY")
	[[ $(rcli "$2" CLUSTER SETSLOT "$slot" IMPORTING "$(node_id "$1")") == OK ]] &&
		[[ $(rcli "$1" CLUSTER SETSLOT "$slot" MIGRATING "$(node_id "$2")") == OK ]]
}

move_ends() {
	local slot keys=()
	slot=$(slot_of "$KEY")
	mapfile -t keys < <(rcli "$1" CLUSTER GETKEYSINSLOT "$slot" 100 | grep .)
	if ((${#keys[@]})); then
		[[ $(rcli "$1" MIGRATE "$(address "$2")" 6379 '' 0 5000 KEYS "${keys[@]}") == OK ]] || return
	fi
	[[ $(rcli "$2" CLUSTER SETSLOT "$slot" NODE "$(node_id "$2")") == OK ]] &&
		[[ $(rcli "$1" CLUSTER SETSLOT "$slot" NODE "$(node_id "$2")") == OK ]]
}

move() {
	move_begins "$@" && move_ends "$@"
}

# wants_turn NAME I [OPTION...]: wait_turn, and it is in the queue of this node, behind LINE others.
wants_turn() {
	local name=$1 node=$2
	shift 2
	wait_turn "$name" "$@"
	wait_until "queued $((++LINE)) $node && hears $LINE $node"
}

# hears COUNT I: so many have subscribed for KEY there.
hears() {
	(($(rcli "$2" PUBSUB SHARDCHANNELS "$(record):*" | wc -w) == $1))
}

# all_over I: KEY is free there, and nobody waits.
all_over() {
	nothing_left "$1" && hears 0 "$1"
}

# ---------------------------------------------------------------- one lock, where its slot is

@test "the example of redlock.conf(5) names a cluster by its nodes" {
	local i
	conf_example "s|node1,node2,node3|${REDLOCK_SERVERS#*://}|"
	for i in 0 1 2; do
		KEY=$(key_on "$i" 3) REDLOCK_SERVERS=$NOWHERE locks "$i" --config "$TMP/redlock.conf" --set shop
	done
}

@test "several keys may be on different nodes; each is waited for, renewed and released where it is" {
	local one two three keys=()
	one=$(key_on 0 3) two=$(key_on 1 3) three=$(key_on 2 3)
	redlock run --also "$three" --also "$one" "$two" sh -c 'for i in 0 1 2; do shift; "$TOOLS/ask" "$SERVERS/$i/redis.sock" EXISTS "$1"; done' - - "$one" "$two" "$three"
	expect 0 $'1\n1\n1'
	for KEY in "$one:0" "$two:1" "$three:2"; do wait_until "KEY=${KEY%:*} key_free ${KEY##*:}"; done
	mapfile -t keys < <(printf '%s\n' "$one:0" "$two:1" "$three:2" | sort)
	rcli "${keys[1]##*:}" SET "${keys[1]%:*}" somebody PX 600000
	redlock run -n --also "$three" --also "$one" "$two" true
	expect 75 '' "redlock: $(literal "${keys[1]%:*}"): held .*"
	spawn run "$REDLOCK" run -t 6s -k 500ms --also "$three" --also "$one" "$two" sh -c 'echo in; exec sleep 600'
	KEY=${keys[1]%:*}
	wait_until "queued 1 ${keys[1]##*:}"
	rcli "${keys[1]##*:}" DEL "$KEY"
	wait_until '[[ -s $TMP/run.out ]]'
	# the others are renewed as before
	server_stop "${keys[2]##*:}"
	finish run
	server_continue "${keys[2]##*:}"
	expect 76 in "redlock: $(literal "${keys[2]%:*}"): lock lost: not renewed for .*: COMMAND (is|was) stopped"
	for KEY in "${keys[@]}"; do wait_until "KEY=${KEY%:*} key_free ${KEY##*:}"; done
}

# one_away: a cluster of the test's own, of which the node of $away is gone; $early and $late come before and after
# that key, on the other nodes.
one_away() {
	cluster_start 3
	away=$(key_on 0 3 "$KEY.m") early=$(key_on 1 3 "$KEY.a") late=$(key_on 2 3 "$KEY.z")
	server_kill 0
}

@test "if one of several keys is on a node that is away at the start, it ends as with that key alone, whatever the names" {
	local away early late option
	one_away
	for KEY in "$early" "$late"; do
		for option in -n --poll '--tries 9' ''; do
			# shellcheck disable=SC2086 # words
			redlock run $option --also "$away" "$KEY" touch "$TMP/ran"
			expect 69 '' "redlock: $(literal "$away"): redis\+cluster://.*"
			# shellcheck disable=SC2086 # words
			redlock acquire $option --also "$KEY" "$away"
			expect 69 '' "redlock: $(literal "$away"): redis\+cluster://.*"
			# shellcheck disable=SC2086 # words
			redlock run $option --unreachable run --also "$away" "$KEY" sh -c 'echo "$REDLOCK_UNLOCKED"'
			expect 0 1 "redlock: $(literal "$away"): redis\+cluster://.*: COMMAND runs without the lock"
		done
		redlock run -w 1s --also "$away" "$KEY" touch "$TMP/ran"
		expect 69 '' "redlock: $(literal "$away"): still waiting: .*
redlock: $(literal "$away"): redis\+cluster://.*"
	done
	[[ ! -e $TMP/ran ]]
	KEY=$early key_free 1
	KEY=$late key_free 2
}

@test "if one of several keys is away, and others hold another, COMMAND does not run beside them, whatever the names" {
	local away early late token option
	one_away
	for KEY in "$late" "$early"; do
		token=$("$REDLOCK" acquire -t 10m --label other "$KEY")
		for option in -n '-w 1s' '-n --unreachable run' '-w 1s --unreachable run' '--tries 2 --unreachable run'; do
			# shellcheck disable=SC2086 # words
			redlock run $option --also "$away" "$KEY" touch "$TMP/ran"
			[[ $status == 75 && $stderr == *"redlock: $KEY: held by "*"'other'"* ]]
		done
		redlock run -n -E 0 --also "$KEY" "$away" touch "$TMP/ran"
		expect 0
		# with nobody to name, it ends at once
		redlock run --also "$away" "$KEY" touch "$TMP/ran"
		expect 69 '' "redlock: $(literal "$away"): redis\+cluster://.*"
		[[ ! -e $TMP/ran ]]
		spawn run "$REDLOCK" run --unreachable run --also "$away" "$KEY" sh -c 'echo "$REDLOCK_UNLOCKED"'
		wait_until 'queued 1 $([[ $KEY == "$early" ]] && echo 1 || echo 2)'
		[[ ! -s $TMP/run.out ]]
		"$REDLOCK" release "$KEY" "$token"
		finish run
		expect 0 1 "redlock: $(literal "$away"): redis\+cluster://.*: COMMAND runs without the lock"
	done
}

@test "while servers of one of several keys are away, others may have the rest, and COMMAND does not run beside them" {
	local away early late
	one_away
	for KEY in "$early" "$late"; do
		spawn run "$REDLOCK" run -w $((4 * SLOW))s --unreachable run --also "$away" "$KEY" touch "$TMP/ran"
		wait_until 'grep -q "still waiting" "$TMP/run.err"'
		stop_process "$(pid run)"
		redlock acquire -n -t 10m --label other "$KEY"
		[[ $status == 0 ]]
		kill -CONT "$(pid run)"
		finish run
		[[ $status == 75 && $stderr == *"redlock: $KEY: held by "*"'other'"* ]]
	done
	[[ ! -e $TMP/ran ]]
}

@test "acquire of several keys hands out no lease that it could not extend at the end of the wait" {
	local one two token option
	one=$(key_on 0 3 "$KEY.a") two=$(key_on 1 3 "$KEY.b")
	for option in "-w $((10 * SLOW))s" ''; do
		token=$("$REDLOCK" acquire -t 10m "$two")
		# shellcheck disable=SC2086 # words
		spawn acquire "$REDLOCK" acquire $option --format json -t $((30 * SLOW))s --also "$two" "$one"
		KEY=$two wait_until 'queued 1 1 && ! KEY=$one key_free 0'
		server_stop 0
		"$REDLOCK" release "$two" "$token"
		wait_until 'grep -q "still waiting" "$TMP/acquire.err"'
		if [[ $option ]]; then
			finish acquire
			expect 69 '' "redlock: $(literal "$one"): still waiting: .*
redlock: $(literal "$one"): redis\+cluster://.*"
			server_continue 0
		else
			KEY=$two wait_until 'key_free 1'
			server_continue 0
			finish acquire
			[[ $status == 0 && $(jq '.valid_ms > .ttl_ms / 2' <<<"$output") == true ]]
			"$REDLOCK" release --also "$two" "$one" "$(jq -r .token <<<"$output")"
		fi
		wait_until 'KEY=$one key_free 0 && KEY=$two key_free 1'
	done
}

@test "acquire of several keys hands out no lease that has passed for the most part while another key was granted" {
	local one two ttl=$((6 * SLOW))
	one=$(key_on 0 3 "$KEY.a") two=$(key_on 1 3 "$KEY.b")
	server_stop 1
	spawn acquire "$REDLOCK" acquire --format json -t ${ttl}s --server-timeout 90s --also "$two" "$one"
	wait_until 'reply 0 PTTL "$one" && ((REPLY > 0 && REPLY < ttl * 400))'
	server_continue 1
	finish acquire
	[[ $status == 0 && $(jq '.valid_ms > .ttl_ms * 0.45' <<<"$output") == true ]]
}

@test "each KEY is taken on the node that has its slot, and nobody else gets it, by whichever seeds" {
	local i seed token
	for i in 0 1 2; do
		KEY=$(key_on "$i" 3)
		token=$("$REDLOCK" acquire -n "$KEY")
		key_held_by "$token" "$i"
		for seed in 0 1 2; do
			redlock acquire -n -S "redis+cluster://$(address "$seed")" "$KEY"
			expect 75 '' "redlock: $KEY: held by .*"
		done
		redlock release -S "redis+cluster://$(address 1):6379" "$KEY" "$token"
		expect 0
		key_free "$i"
		for seed in 0 1 2; do
			rm -r "$PLACES"
			locks "$i" -S "redis+cluster://$(address "$seed")"
		done
	done
}

@test "every command finds KEY's node" {
	local i
	for i in 0 1 2; do
		KEY=$(key_on "$i" 3)
		every_command_finds "$i" 'redis\+cluster://.*'
	done
	redlock doctor
	[[ $status == 0 && $output == *redis+cluster://*': ok, at '*':6379, '@(Redis|Valkey)' '* ]]
}

@test "several KEYs are told in one status, wherever they are" {
	local keys=() i
	for i in 2 0 1; do keys+=("$(key_on "$i" 3)"); done
	for i in 0 1 2; do rcli $(((i + 2) % 3)) SET "${keys[i]}" "holder-$i" PX 600000; done
	redlock status --format json "${keys[@]}"
	expect 0 $'.*\n.*\n.*'
	[[ $(jq -r .state <<<"$output" | xargs) == 'held held held' ]]
	[[ $(jq -r .key <<<"$output" | xargs) == "${keys[*]}" ]]
}

@test "a node that hangs is waited for once in a status, and only its own KEYs are unknown, whatever their order" {
	local first hung=() key keys order third silent start
	cluster_start 3
	first=$(key_on 0 3) third=$(key_on 2 3)
	for key in a b c d; do hung+=("$(key_on 1 3 "$KEY-$key")"); done
	rcli 0 SET "$first" holder PX 600000
	rcli 2 SET "$third" holder PX 600000
	export REDLOCK_SERVER_TIMEOUT=2s
	silent="redis\\+cluster://.*: $(address 1):6379: no answer within 2(\\.[0-9])?s: .*"
	server_stop 1
	for order in "${hung[0]} $third $first" "$first ${hung[0]} $third" "$third ${hung[*]} $first ${hung[0]}-{$third}"; do
		read -ra keys <<<"$order"
		start=$NOW
		redlock status --format json "${keys[@]}"
		((NOW - start < 8000))
		[[ $status == 69 ]]
		for key in "${keys[@]}"; do
			if [[ " ${hung[*]} " == *" $key "* ]]; then
				[[ $stderr =~ "redlock: $key: "$silent ]]
				[[ $(jq -r "select(.key == \"$key\").state" <<<"$output") == unknown ]]
			else
				[[ $stderr != *"redlock: $key: "* ]]
				[[ $(jq -r "select(.key == \"$key\").state" <<<"$output") == @(held|free) ]]
			fi
		done
	done
	redlock status -q --also "$third" --also "$first" "${hung[0]}"
	expect 69 '' "redlock: ${hung[0]}: $silent"
}

@test "list tells of all nodes' locks, each once, and passes over what does not fit" {
	local keys=() i key
	for i in 0 1 2; do keys+=("$(key_on "$i" 3 "$KEY-list")"); done
	for key in "${keys[@]}"; do "$REDLOCK" acquire --label "of $key" -t 10m "$key"; done
	redlock list "$KEY-list-*"
	[[ $status == 0 && ! $stderr ]]
	output=$(sort <<<"$output")
	expect 0 "$(for key in $(printf '%s\n' "${keys[@]}" | sort); do echo "$key: exclusive, held by .* 'of $key' .*"; done)"
	redlock list "${keys[1]}"
	expect 0 "${keys[1]}: exclusive, held by .*"
	redlock list "$KEY-none-*"
	expect 0
}

@test "list is 69 where a node is gone, and whole again behind the failover" {
	local keys=() key told
	cluster_start 3 1
	for i in 0 1 2; do keys+=("$(key_on "$i" 3)"); done
	for key in "${keys[@]}"; do "$REDLOCK" acquire -t 10m "$key"; done
	told=$(for key in $(printf '%s\n' "${keys[@]}" | sort); do echo "$key: exclusive, held by .*"; done)
	caught_up 3 0
	soon_dead
	server_kill 0
	redlock list
	expect 69 '' 'redlock: redis\+cluster://.*'
	KEY=${keys[0]} wait_until 'has_slot 3' 40
	redlock list
	output=$(sort <<<"$output")
	expect 0 "$told"
	redlock list -S "redis+cluster://$(address 3)"
	output=$(sort <<<"$output")
	expect 0 "$told"
}

@test "a hash tag decides, and all that is beside KEY is in its slot" {
	local key slot node
	for key in "$KEY{tag}x" "{$KEY}" "$KEY{" "$KEY{{x}}" "{$KEY}{other}" "$KEY"$'\xff\x01 \n'; do
		slot=$(slot_of "$key")
		node=$((slot >= 10922 ? 2 : slot >= 5461 ? 1 : 0))
		redlock run -n "$key" redis-cli -s "$SERVERS/$node/redis.sock" EXISTS "$key"
		expect 0 1
		redlock run -n "$key" true
		expect 0
	done
	# beside these nothing else can have a name in their slot
	for KEY in "{}$KEY" "$KEY}" "$KEY{}{x}"; do
		takes_none 69 'redis\+cluster://.*CROSSSLOT.*a KEY without .\}.*'
	done
}

@test "shared locks, permits and reentrant ones exclude and are handed over" {
	local kind
	for kind in -s '-P 2' -r; do
		KEY=$(key_on 1 3 "$KEY${kind// /}")
		LINE=0
		rm -rf "$TMP/order" "$TMP/stamps"
		touch "$TMP/first.stay"
		# shellcheck disable=SC2086 # words
		wait_turn first $kind
		wait_until 'ran first'
		wants_turn exclusive 1
		rm -f "$TMP/first.end"
		touch "$TMP/first.end"
		all_end_well first exclusive
		ran first exclusive
		rm "$TMP/first.end"
		wait_until 'all_over 1'
	done
	redlock run -P 2 "$KEY" "$REDLOCK" run -n -P 2 "$KEY-other" true
	expect 0
	redlock run -r "$KEY" "$REDLOCK" run -n -r "$KEY" true
	expect 0
}

@test "several hold a shared lock, and as many as there are a permit" {
	KEY=$(key_on 2 3)
	takes a -s
	takes b -s
	takes c -s
	wait_until 'entered a b c'
	holders 3 2
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	ends a b c
	done_well a b c
	KEY=$(key_on 0 3)
	takes d -P 2
	takes e -P 2
	wait_until 'entered d e'
	redlock acquire -n -P 2 "$KEY"
	expect 75 '' "redlock: $KEY: .*"
	takes f -P 2
	wait_until 'queued 1 0'
	ends d
	wait_until 'entered f'
	ends e f
	done_well d e f
}

@test "a cluster has one database" {
	redlock run -S "redis+cluster://$(address 0)/3" "$KEY" touch "$TMP/ran"
	expect 64 '' 'redlock: .*'
	[[ ! -e $TMP/ran ]]
}

@test "a password is for all nodes" {
	local url i
	cluster_start 3
	KEY=$(key_on 1 3)
	url=$REDLOCK_SERVERS
	locks 1
	for i in 0 1 2; do rcli "$i" CONFIG SET requirepass sesame; done
	export REDISCLI_AUTH=sesame
	locks 1 -S "${url/:\/\//://:sesame@}"
	rm -r "$PLACES"
	locks 1 -S "${url/:\/\//://:sesame@}"
	REDLOCK_PASSWORD=sesame locks 1
	takes_none 77 'redis\+cluster://.*: .*NOAUTH.*'
	rm -r "$PLACES"
	takes_none 77 'redis\+cluster://.*: .*NOAUTH.*'
	takes_none 77 'redis\+cluster://.*: .*(NOAUTH|WRONGPASS).*' -S "${url/:\/\//://:hunter2@}"
	run -1 grep -E 'sesame|hunter2' "$TMP/redlock.err"
	key_free 1
}

@test "one node that refuses the login ends no wait while another one is down, but two do" {
	local both
	cluster_start 3
	both="no majority of its nodes says where KEY is: .*$(address 1):6379: Connection refused.*NOAUTH.*"
	KEY=$(key_on 0 3)
	rcli 2 ACL SETUSER default resetpass '>sesame'
	locks 0
	rm -r "$PLACES"
	server_kill 1
	takes_none 69 "redis\\+cluster://.*: $both"
	spawn waiter "$REDLOCK" run -w 60s "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting: "* ]]'
	server_launch 1
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: redis\\+cluster://.*: $both"
	rm -r "$PLACES"
	server_kill 1
	rcli 0 ACL SETUSER default resetpass '>sesame'
	redlock run -w 60s "$KEY" true
	expect 77 '' "redlock: $KEY: redis\\+cluster://.*NOAUTH.*$(address 1):6379: Connection refused.*NOAUTH.*"
}

@test "it may be one of a quorum, beside other servers, but not twice" {
	local token cluster=$REDLOCK_SERVERS set=$SERVERS
	KEY=$(key_on 2 3)
	servers_start_tcp 2
	token=$("$REDLOCK" acquire --quarantine 0 -S "$(server_url 0),$cluster,$(server_url 1)" "$KEY")
	redlock extend -S "$(server_url 0),$cluster,$(server_url 1)" "$KEY" "$token"
	expect 0
	redlock release -S "$(server_url 0),$cluster,$(server_url 1)" "$KEY" "$token"
	expect 0
	wait_until "key_free 0 1 && SERVERS=$set key_free 2"
	server_kill 1
	redlock run -n --quarantine 0 -S "$(server_url 0),$cluster,$(server_url 1)" "$KEY" \
		redis-cli -s "$set/2/redis.sock" EXISTS "$KEY"
	expect 0 1
	set -- "${cluster##*/}"
	takes_none 78 '.*are the same server.*' --quarantine 0 -S "redis+cluster://${1%%,*}" -S "redis+cluster://${1##*,}"
}

# ---------------------------------------------------------------- waiting

@test "waiters are served in turn, by messages that reach no other node" {
	local i
	cluster_start 3 1
	KEY=$(key_on 0 3)
	touch "$TMP/a.stay"
	wait_turn a
	wait_until 'ran a'
	for i in b c d; do wants_turn "$i" 0; done
	spawn wait "$REDLOCK" wait "$KEY"
	wait_until 'queued 4 0 && hears 4 0'
	[[ ! $(channels 0) ]]
	touch "$TMP/a.end"
	all_end_well a b c d wait
	ran a b c d
	assert_exclusive "$TMP/stamps" 4
	wait_until 'all_over 0'
	[[ $(rcli 0 INFO commandstats) =~ cmdstat_spublish:calls=([0-9]+), ]]
	((BASH_REMATCH[1] >= 4))
	for i in 0 1 2; do
		[[ $(rcli "$i" INFO commandstats) != *cmdstat_publish:* ]]
		[[ $(rcli "$i" CLUSTER INFO) != *messages_publish_*:[1-9]* ]]
	done
}

# ---------------------------------------------------------------- a slot that moves

@test "a command goes on when its slot moves, and when it moves again" {
	KEY=$(key_on 0 3)
	start 0 -t 6s
	move 0 1
	renewals 1 1
	move 1 2
	goes_on 2
}

@test "a release, an extension and a look find a lock that has moved" {
	local token
	KEY=$(key_on 1 3)
	token=$("$REDLOCK" acquire -t 10m "$KEY")
	move 1 0
	redlock status -q "$KEY"
	expect 0
	redlock extend -t 10m "$KEY" "$token"
	expect 0
	move 0 2
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock release "$KEY" "$token"
	expect 0
	key_free 2
}

@test "while its slot is on the way a lock can be neither taken nor renewed, but outlives that" {
	KEY=$(key_on 0 3)
	start 0 -t "$((12 * SLOW))s"
	move_begins 0 1
	takes_none 69 'redis\+cluster://.*: KEY is on its way to another node of the cluster \(ASK, TRYAGAIN\): try again soon' --server-timeout "$((300 * SLOW))ms"
	# nor one that nobody holds
	KEY="{$KEY}free" takes_none 69 "redis\\+cluster://$(address 0):6379: $(address 0):6379: .*(ASK, TRYAGAIN).*" --server-timeout "$((300 * SLOW))ms" \
		-S "redis+cluster://$(address 0)"
	wait_until '(($(rcli 0 PTTL "$KEY") < 7500 * SLOW))' # a renewal was due
	move_ends 0 1
	goes_on 1
}

# on_the_way I: how often this node has said so of a slot.
on_the_way() {
	rcli "$1" INFO errorstats | awk -F'[:=]' '/^errorstat_(ASK|TRYAGAIN):/ { sum += $3 } END { print sum + 0 }'
}

# meets_slot COMMAND ARGUMENT...: is told several times that the slot is on its way, and done when it stays.
meets_slot() {
	local before slot
	slot=$(slot_of "$KEY")
	before=$(on_the_way 0)
	move_begins 0 1
	spawn met "$REDLOCK" "$1" --server-timeout 60s "${@:2}"
	wait_until "((\$(on_the_way 0) > $before + 3))"
	is_running met
	[[ $(rcli 1 CLUSTER SETSLOT "$slot" STABLE) == OK && $(rcli 0 CLUSTER SETSLOT "$slot" STABLE) == OK ]]
	finish met
	[[ $status == 0 && ! $stderr ]]
}

@test "what meets a slot on its way is asked again, not given up" {
	local token
	KEY=$(key_on 0 3)
	token=$("$REDLOCK" acquire -t 60s "$KEY")
	meets_slot extend -t 10m "$KEY" "$token"
	(($(rcli 0 PTTL "$KEY") > 500000))
	meets_slot release "$KEY" "$token"
	key_free 0
	meets_slot acquire -n "$KEY"
	key_held_by "$output" 0
	redlock release "$KEY" "$output"
}

@test "a slot that stays marked as migrating: a command there is stopped, others are not, as the manual says" {
	local slot
	KEY=$(key_on 0 3)
	slot=$(slot_of "$KEY")
	spawn run "$REDLOCK" run -t 3s --quarantine 0 "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	move_begins 0 1
	finish run
	expect 76 '' "redlock: $KEY: lock lost: not renewed for .*: KEY is on its way to another node of the cluster \(ASK, TRYAGAIN\): try again soon: COMMAND is stopped"
	redlock run -n "$KEY" true
	expect 69 '' "redlock: $KEY: .*: KEY is on its way to another node .*"
	redlock list
	[[ $status == 69 ]]
	redlock run -n --quarantine 0 "$(key_on 2 3)" true
	expect 0
	[[ $(rcli 1 CLUSTER SETSLOT "$slot" STABLE) == OK && $(rcli 0 CLUSTER SETSLOT "$slot" STABLE) == OK ]]
	redlock run --quarantine 0 -w 10s "$KEY" true
	expect 0
	redlock list
	[[ $status == 0 && ! $stderr ]]
}

@test "whoever waits while a slot is on the way is served where it goes" {
	local before
	KEY=$(key_on 2 3)
	take_there 2
	move_begins 2 1
	# not all that belongs to KEY is there
	before=$(on_the_way 2)
	wait_turn a -t 9s -w 60s --server-timeout "$((300 * SLOW))ms" -v
	# more often than is asked within that time
	wait_until "((\$(on_the_way 2) > before + 50))"
	is_running a
	move_ends 2 1
	wait_until 'queued 1 1 && hears 1 1'
	move_begins 1 0
	move_ends 1 0
	wait_until 'queued 1 0 && hears 1 0'
	give_back
	finish a
	[[ $status == 0 ]]
	wait_until 'all_over 0 && hears 0 1 && hears 0 2'
}

# take_there I: $token has KEY there, for a minute.
take_there() {
	token=$("$REDLOCK" acquire -t 60s "$KEY") && key_held_by "$token" "$1"
}

@test "a waiter whose slot has moved is told there, at once" {
	local start
	KEY=$(key_on 0 3)
	take_there 0
	wants_turn a 0 -t 60s
	move 0 2
	wait_until 'hears 1 2'
	give_back
	all_are_served a
	ran a
	wait_until 'all_over 2 && hears 0 0'
}

@test "on a slot that moves all the time nobody gets in beside another, and all are served" {
	local from=0 to i
	KEY=$(key_on 0 3)
	mkdir "$TMP/stamps"
	for i in 1 2 3 4 5; do
		spawn "c$i" bash -c 'for n in 1 2 3 4 5 6; do
			"$REDLOCK" run -w 60s -t 25s --server-timeout 10s "$1" "$STAMP" -d 50 "$2" || exit
		done' - "$KEY" "$TMP/stamps"
	done
	for i in {1..12}; do
		wait_until "stamped '$TMP/stamps' $((2 * i))"
		to=$(((from + 1 + i % 2) % 3))
		move "$from" "$to"
		from=$to
	done
	for i in 1 2 3 4 5; do
		finish "c$i"
		expect 0
	done
	assert_exclusive "$TMP/stamps" 30
	wait_until "all_over $from"
}

@test "a waiter listens as it can where its node knows no SSUBSCRIBE" {
	cluster_start 3 0 --rename-command SSUBSCRIBE ''
	KEY=$(key_on 0 3)
	take_there 0
	wait_turn a
	wait_until 'queued 1 0 && [[ $(rcli 0 PUBSUB CHANNELS "$(record):*") ]]'
	"$REDLOCK" release "$KEY" "$token"
	all_are_served a
	wait_until 'all_over 0'
}

# ---------------------------------------------------------------- failovers

# soon_dead: nodes are taken for dead after a second.
soon_dead() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do rcli "$i" CONFIG SET cluster-node-timeout 1000; done
}

# has_slot I: all who are alive know that KEY is there.
has_slot() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do
		[[ $i == "$1" ]] || ! is_alive "$(server_pid "$i")" || [[ $(rcli "$i" EXISTS "$KEY") == "MOVED "*" $(address "$1"):6379"* ]] ||
			return
	done
	is_master "$1" && in_order "$1" && [[ $(rcli "$1" EXISTS "$KEY") == [01] ]]
}

@test "a command goes on when a replica takes its master's place, and when that is killed" {
	cluster_start 3 1
	KEY=$(key_on 0 3)
	start 0 -t 15s
	caught_up 3 0
	rcli 3 CLUSTER FAILOVER
	wait_until 'has_slot 3 && replicates 0 3'
	renewals 1 3
	caught_up 0 3
	soon_dead
	server_kill 3
	wait_until 'has_slot 0' 40
	goes_on 0
}

@test "a command is stopped before its lease ends when the new master has not got its lock" {
	local killed
	cluster_start 3 1
	KEY=$(key_on 0 3)
	start 0 -t 9s
	rcli 3 CONFIG SET masteruser nobody masterauth wrong
	rcli 0 CLIENT KILL TYPE replica
	wait_until '[[ $(rcli 3 INFO replication) == *master_link_status:down* ]]'
	killed=$NOW
	server_kill 0
	rcli 3 CLUSTER FAILOVER TAKEOVER
	wait_until 'is_master 3'
	rcli 3 DEL "$KEY" "$(record)"
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*"
	is_still "$TMP/stamps"
	(($(last_beat "$TMP/stamps") - killed < 9000))
}

@test "whoever waits is served behind a failover, in turn" {
	cluster_start 3 1
	KEY=$(key_on 0 3)
	touch "$TMP/a.stay"
	wait_turn a -t 30s
	wait_until 'ran a'
	wants_turn b 0 -t 30s
	wants_turn c 0 -t 30s
	caught_up 3 0
	soon_dead
	server_kill 0
	wait_until 'has_slot 3' 40
	wait_until 'hears 2 3'
	touch "$TMP/a.end"
	all_are_served a b c
	ran a b c
	assert_exclusive "$TMP/stamps" 3
	wait_until 'all_over 3'
}

# ---------------------------------------------------------------- who is asked

@test "a node that is stopped is not felt where it is another's, nor is one that is gone" {
	local i up=() down=() known_up=() known_down=()
	cluster_start 3
	KEY=$(key_on 0 3)
	for i in 1 2 1 2 1 2; do
		rm -rf "$PLACES"
		took up
		took known_up
		server_stop "$i"
		took known_down
		rm -r "$PLACES"
		took down
		server_continue "$i"
	done
	echo "medians: $(median "${up[@]}") us with all, $(median "${down[@]}") us without one"
	(($(median "${down[@]}") < 3 * $(median "${up[@]}") + 150000))
	echo "known: $(median "${known_up[@]}") us with all, $(median "${known_down[@]}") us without one"
	(($(median "${known_down[@]}") < 3 * $(median "${known_up[@]}") + 150000))
	server_kill 2
	locks 0
	rm -r "$PLACES"
	locks 0
}

@test "with a majority of seeds gone it is 69 at once, with the causes, although KEY's node is up" {
	cluster_start 3
	KEY=$(key_on 0 3)
	locks 0
	server_kill 1 2
	takes_none 69 "redis\\+cluster://.*$(address 1).*Connection refused.*"
	wait_until 'key_free 0'
	rm -r "$PLACES"
	takes_none 69 "redis\\+cluster://.*$(address 1).*Connection refused.*"
	key_free 0
	# one seed alone is a majority of itself
	locks 0 -S "redis+cluster://$(address 0)"
}

@test "with KEY's node gone it is 69, and it is named" {
	local others
	cluster_start 3
	KEY=$(key_on 0 3)
	locks 0
	server_kill 0
	others=redis+cluster://$(address 1),$(address 2)
	takes_none 69 "redis\\+cluster://.*$(address 0).*Connection refused.*"
	takes_none 69 "redis\\+cluster://.*$(address 0).*Connection refused.*" -S "$others"
	rm -r "$PLACES"
	takes_none 69 "redis\\+cluster://.*$(address 0).*Connection refused.*" -S "$others"
}

@test "another node that is gone is nobody's business" {
	cluster_start 3
	KEY=$(key_on 1 3)
	server_kill 0
	locks 1
	locks 1
}

# nobody_has SLOT: what its owner had still told the others may give it back to it.
nobody_has() {
	local i
	for i in 0 1 2; do rcli "$i" CLUSTER DELSLOTS "$1" >/dev/null; done
	for i in 0 1 2; do [[ $(rcli "$i" EXISTS "$KEY") == CLUSTERDOWN* ]] || return; done
}

@test "a cluster that is down is told as that, and waited for with -w" {
	local slot i
	cluster_start 3
	KEY=$(key_on 1 3)
	slot=$(slot_of "$KEY")
	wait_until 'nobody_has "$slot"'
	takes_none 69 'redis\+cluster://.*: .*CLUSTERDOWN.*'
	spawn waiter "$REDLOCK" run -w 60s "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting: "*CLUSTERDOWN* ]]'
	[[ $(rcli 2 CLUSTER ADDSLOTS "$slot") == OK ]]
	for i in 0 1; do [[ $(rcli "$i" CLUSTER SETSLOT "$slot" NODE "$(node_id 2)") == OK ]]; done
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: .*"
}

@test "nodes that name each other in a circle are 69 with one line, in time" {
	local start
	seeds_start 3
	export REDLOCK_SERVERS
	seed_says 0 '*' "-MOVED 5 $(seed_address 1)\r\n"
	seed_says 1 '*' "-MOVED 5 $(seed_address 2)\r\n"
	seed_says 2 '*' "-MOVED 5 $(seed_address 0)\r\n"
	REDLOCK_SERVERS=redis+cluster://$(seed_address 0)
	start=$NOW
	takes_none 69 'redis\+cluster://.*' -t 5m --server-timeout 20s
	((NOW - start < 10000))
	(($(grep -c "^b.EXISTS" "$SEEDS/1.log") < 15))
	REDLOCK_SERVERS=redis+cluster://$(seed_address 0),$(seed_address 1),$(seed_address 2)
	takes_none 69 "redis\\+cluster://.*: $(seed_address 0): $(seed_address 1), .*" -t 5m --server-timeout 20s
	# both of a pair name the other one
	seed_says 1 '*' "-MOVED 5 $(seed_address 0)\r\n"
	REDLOCK_SERVERS=redis+cluster://$(seed_address 0),$(seed_address 1)
	takes_none 69 "redis\\+cluster://.*: $(seed_address 0): $(seed_address 1), $(seed_address 1): $(seed_address 0).*" -t 5m --server-timeout 20s
}

@test "a node that names itself is 69 with one line, in time" {
	seeds_start 1
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=redis+cluster://$(seed_address 0)
	seed_says 0 '*' "-MOVED 5 $(seed_address 0)\r\n"
	takes_none 69 'redis\+cluster://.*' -t 5m --server-timeout 20s
	(($(grep -c "^b.EXISTS" "$SEEDS/0.log") < 15))
}

@test "a node may have a name, an IPv6 address, or none but a port" {
	local port
	seeds_start 1
	servers_start_tcp 1 --cluster-enabled yes
	# shellcheck disable=SC2046 # words
	[[ $(rcli 0 CLUSTER ADDSLOTS $(seq 0 16383)) == OK ]]
	wait_until 'in_order 0'
	REDLOCK_SERVERS=redis+cluster://$(seed_address 0)
	port=$(<"$SERVERS/0/port")
	seed_says 0 EXISTS "-MOVED 5 localhost:$port\\r\\n"
	locks 0 --server-timeout "${SLOW}s"
	locks 0 --server-timeout "${SLOW}s"
	seed_says 0 EXISTS "-MOVED 5 :$port\\r\\n"
	locks 0 --server-timeout "${SLOW}s"
	locks 0 --server-timeout "${SLOW}s"
	[[ -e /proc/net/if_inet6 && $(</proc/net/if_inet6) == *0000000000000001*lo* ]] || return 0
	rcli 0 CONFIG SET bind ::1
	seed_says 0 EXISTS "-MOVED 5 ::1:$port\\r\\n"
	locks 0 --server-timeout "${SLOW}s"
	locks 0 --server-timeout "${SLOW}s"
}

@test "whatever nodes say that makes no sense is 69 with one line, in time" {
	local reply long
	long=$(printf 'a%.0s' {1..300})
	seeds_start 1
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=redis+cluster://$(seed_address 0)
	for reply in '-MOVED\r\n' '-MOVED \r\n' '-MOVED 5\r\n' '-MOVED 5 \r\n' '-MOVED 5 :\r\n' '-MOVED 5 127.0.0.1\r\n' \
		'-MOVED 5 127.0.0.1:\r\n' '-MOVED 5 127.0.0.1:0\r\n' '-MOVED 5 127.0.0.1:65536\r\n' '-MOVED 5 127.0.0.1:-1\r\n' \
		'-MOVED 5 127.0.0.1:six\r\n' "-MOVED 5 $long:6379\r\n" "-MOVED 5 127.0.0.1:$long\r\n" \
		'-MOVED 5 \x1b]0;boo\x07:6379\r\n' '-MOVED 5 \x1b[31mno:6379\r\n' '-MOVED 5 ?:6379\r\n' '-MOVED 5 a/b:6379\r\n' \
		'+MOVED 5 127.0.0.1:6379\r\n' '$-1\r\n' '*-1\r\n' '*0\r\n' '*2\r\n:0\r\n:0\r\n' '$1\r\n0\r\n' '+OK\r\n' \
		'-ERR \x1b[31mno\r\n' '-CLUSTERDOWN \x1b[31mno\r\n' 'HTTP/1.1 400 Bad Request\r\n\r\n' \
		'*1000000000\r\n' '$1000000000\r\n' ':99999999999999999999999999\r\n' ''; do
		seed_says 0 EXISTS "$reply"
		refuses 69 "^redlock: $KEY: redis\\+cluster://" run -n --server-timeout "$((500 * SLOW))ms" "$KEY" touch "$TMP/ran"
	done
	no_row_failed
	[[ ! -e $TMP/ran ]]
}

# ---------------------------------------------------------------- nodes that are none any more

# comes_back I [OPTION...]: it was killed, and is started with these redis-server OPTIONs only.
comes_back() {
	local i=$1
	shift
	server_kill "$i"
	printf '%s\n' "$@" >"$SERVERS/$i/args"
	server_launch "$i"
	server_ready "$i"
}

@test "a seed that comes back without cluster-enabled has no vote: a lock on another node has one holder" {
	local seed
	cluster_start 3
	KEY=$(key_on 0 3)
	seed=redis+cluster://$(address 1)
	start 0 -S "$seed"
	comes_back 1
	takes_none 69 "redis\\+cluster://$(address 1):6379: no majority of its nodes says where KEY is: $(address 1):6379: it is not a node of a cluster: use redis:// for a single server" -S "$seed"
	rm -r "$PLACES"
	takes_none 69 "redis\\+cluster://$(address 1):6379: .*: it is not a node of a cluster: use redis:// for a single server" -S "$seed"
	redlock doctor -S "$seed"
	[[ $status == 69 && $output == *"$(address 1):6379: error: "*": it is not a node of a cluster: use redis:// for a single server"* ]]
	[[ $(rcli 1 DBSIZE) == 0 ]]
	goes_on 0
}

@test "a node that the others name, and that came back without cluster-enabled, grants nothing: it is waited for" {
	local others args
	cluster_start 3
	KEY=$(key_on 2 3)
	others=redis+cluster://$(address 0),$(address 1)
	locks 2 -S "$others"
	mapfile -t args <"$SERVERS/2/args"
	comes_back 2
	takes_none 69 "redis\\+cluster://[^ ]*: $(address 2):6379: it is not a node of a cluster: was it started without cluster-enabled\\?" -S "$others"
	redlock list -S "$others"
	expect 69 '' "redlock: redis\\+cluster://.*: $(address 2):6379: it is not a node of a cluster: .*"
	spawn waiter "$REDLOCK" run -S "$others" -w 60s "$KEY" echo ran
	wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting: "*"not a node"* ]]'
	comes_back 2 "${args[@]}"
	finish waiter
	expect 0 ran "redlock: $KEY: still waiting: .*"
}

# ---------------------------------------------------------------- remembered places

@test "the node is remembered for each slot: a request is sent there while the others are still asked" {
	local i keys=()
	for i in 1 2; do keys+=("$(key_on "$i" 3)"); done
	SERVER_COUNT=3 proxies_start
	REDLOCK_SERVERS=redis+cluster://$(proxy_addresses)
	for KEY in "${keys[@]}"; do redlock run -n "$KEY" true; done
	for i in 0 1 2; do proxy "$i" hold; done
	for i in 1 2; do
		KEY=${keys[i - 1]}
		spawn "run$i" "$REDLOCK" acquire -n --server-timeout 60s "$KEY"
		wait_until "[[ \$(rcli $i EXISTS $KEY) == 1 ]]"
		is_running "run$i"
		[[ ! -s $TMP/run$i.out ]]
	done
	for i in 0 1 2; do
		proxy_did "$i" hold
		proxy "$i" pass
	done
	for i in 1 2; do
		finish "run$i"
		expect 0 '[0-9a-f]{32}'
		KEY=${keys[i - 1]} key_held_by "$output" "$i"
	done
}

@test "where the remembered node is right it alone is asked, and once" {
	local i keys=()
	for i in 0 1 2; do keys+=("$(key_on "$i" 3)"); done
	for KEY in "${keys[@]}"; do redlock run -n "$KEY" true; done
	for i in 0 1 2; do
		KEY=${keys[i]}
		monitor "$i"
		redlock acquire -n "$KEY"
		expect 0 '[0-9a-f]{32}'
		[[ $(requests "$i") == 1 ]]
	done
}

@test "a remembered node whose slot has moved is passed over, and the right one is remembered" {
	KEY=$(key_on 0 3)
	locks 0
	move 0 2
	locks 2
	monitor 0
	locks 2
	[[ $(requests 0) == 0 ]]
}

@test "a remembered node that is gone is passed over" {
	cluster_start 3 1
	KEY=$(key_on 0 3)
	locks 0
	caught_up 3 0
	soon_dead
	server_kill 0
	wait_until 'has_slot 3' 40
	locks 3
	rm -r "$PLACES"
	locks 3
}

# nodes_of I...: what CLUSTER NODES says where these seeds are the masters.
nodes_of() {
	local i text='' line n=0
	for i; do
		printf -v line '%040d %s@1 master - 0 0 1 connected %d' "$i" "$(seed_address "$i")" $((n++))
		text+=$line'\n'
	done
	printf '$%s\\r\\n%s\\r\\n' "$(printf %b "$text" | wc -c)" "$text"
}

# member_says I NODE...: seed I is of a cluster with these, has its first slot at seed 0, and no lock.
member_says() {
	local i=$1
	shift
	seed_says "$i" EXISTS "-MOVED 0 $(seed_address 0)\\r\\n" CLUSTER "$(nodes_of "$@")" \
		EVAL '*2\r\n:1\r\n*0\r\n' \
		"EVAL~'scan'" '*5\r\n:1\r\n$1\r\n0\r\n:9\r\n:0\r\n*0\r\n'
}

# seed_refuses I ERROR: it knows where KEY is, but does not say which nodes there are.
seed_refuses() {
	seed_says "$1" EXISTS "-MOVED 0 $(seed_address 0)\\r\\n" CLUSTER "$2\\r\\n"
}

@test "list believes a majority of the nodes, and logs in to nobody whom one alone names" {
	local i names
	seeds_start 4
	names=redis+cluster://$(seed_address 0),$(seed_address 1),$(seed_address 2)
	member_says 0 0 1 2 3
	member_says 1 0 1 2
	member_says 2 2 1 0
	REDLOCK_SERVERS=$names REDLOCK_PASSWORD=hunter2 redlock list
	expect 0
	for i in 0 1 2; do grep -q "'scan'" "$SEEDS/$i.log"; done
	[[ ! -s $SEEDS/3.log ]]
	member_says 1 0 1 3
	REDLOCK_SERVERS=$names redlock list
	expect 69 '' "redlock: $(literal "$names"): no majority of its nodes names the same masters: $(
		)$(seed_address 0): it names those that most name, $(
		)$(seed_address 1): it does not name $(seed_address 2), $(
		)$(seed_address 2): it does not name $(seed_address 3): see CLUSTER NODES there"
	[[ ! -s $SEEDS/3.log ]]
	member_says 1 0 1
	REDLOCK_SERVERS=$names redlock list
	expect 69 '' "redlock: .*: $(seed_address 0): it names $(seed_address 3), $(seed_address 1): it does not name $(seed_address 2), $(
		)$(seed_address 2): it names those that most name: see CLUSTER NODES there"
	[[ ! -s $SEEDS/3.log ]]
	# refusals are final only if they alone leave no majority
	seed_refuses 1 '-LOADING Redis is loading'
	seed_refuses 2 '-NOPERM this user has no permissions'
	REDLOCK_SERVERS=$names redlock list
	expect 69 '' "redlock: $(literal "$names"): no majority of its nodes names the same masters: .*LOADING.*NOPERM.*"
	seed_refuses 1 '-NOPERM this user has no permissions'
	REDLOCK_SERVERS=$names redlock list
	expect 77 '' "redlock: $(literal "$names"): no majority of its nodes names the same masters: .*NOPERM.*"
}

# redisson_listens COMMAND: as Redisson's waiters for KEY, whose name has a hash tag, on server 0; what it hears
# is in $TMP/COMMAND.out.
redisson_listens() {
	spawn "$1" redis-cli -s "$SERVERS/0/redis.sock" "$1" "redisson_lock__channel:{$KEY}"
	wait_until "[[ -s $TMP/$1.out ]]"
}

@test "Redisson: it is told of the end of a lock, whether it listens to the slot or to the cluster" {
	cluster_start 3
	KEY=$(key_on 0 3)
	takes holder -r
	wait_until 'entered holder'
	redisson_listens SUBSCRIBE
	redisson_listens SSUBSCRIBE
	ends holder
	done_well holder
	wait_until '[[ $(tail -n 1 "$TMP/SUBSCRIBE.out") == 0 && $(tail -n 1 "$TMP/SSUBSCRIBE.out") == 0 ]]'
}

@test "Redisson: the first in line hears of it, whether it tells the slot or the cluster" {
	local command
	cluster_start 3
	KEY=$(key_on 0 3)
	rcli 0 HSET "$KEY" a-thread 1
	rcli 0 PEXPIRE "$KEY" 60000
	takes waiter -r
	wait_until '[[ $(rcli 0 PUBSUB NUMSUB "redisson_lock__channel:{$KEY}") == *1 ]]'
	wait_until '[[ $(rcli 0 PUBSUB SHARDNUMSUB "redisson_lock__channel:{$KEY}") == *1 ]]'
	monitor 0
	for command in SPUBLISH PUBLISH; do
		before=$(requests 0)
		for i in {1..40}; do
			rcli 0 "$command" "redisson_lock__channel:{$KEY}" 0
			pause 0.03
		done
		(($(requests 0) >= before + 20))
	done
	rcli 0 DEL "$KEY"
	wait_until 'entered waiter'
	ends waiter
	done_well waiter
}

# Redis 7.2 and later, and Valkey, that were started with the nodes.conf of Redis 7.0.
@test "doctor: a node that would abort when a lock is handed over is named, and not tried" {
	[[ $(redis-server --version) =~ v=(([89]|[1-9][0-9])\.|7\.[2-9]) ]] || skip "needs Redis 7.2 or later"
	cluster_start 1
	server_kill 0
	sed -i -E 's/,,?(tls|tcp)-port=[0-9]+,shard-id=[0-9a-f]+//' "$SERVERS/nodes.0"
	server_launch 0
	server_ready 0
	wait_until 'in_order 0'
	redlock doctor "$KEY"
	[[ $status == 69 && $output == *": error: $(address 0):6379: its cluster was upgraded, and it aborts when a lock is handed over: run CLUSTER SAVECONFIG there, and restart it"* ]]
	[[ $(rcli 0 PING) == PONG ]]
	# as it advises
	rcli 0 CLUSTER SAVECONFIG
	server_kill 0
	server_launch 0
	server_ready 0
	wait_until 'in_order 0'
	redlock doctor -q --accept restart "$KEY"
	expect 0
}
