#!/usr/bin/env bats
# A server that has just started may have forgotten leases: it has no vote yet.
# shellcheck disable=SC2016
# bats file_tags=long

load ../lib/helper

@test "fresh servers have no vote: -n is 69, says so, and leaves nothing" {
	servers_start 3
	redlock acquire -n "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*up for.*"
	wait_until 'key_free 0 1 2'
	redlock run -n "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: .*up for.*"
	[[ ! -e $TMP/ran ]]
}

@test "without -n redlock waits until fresh servers may vote" {
	local i voters=0
	servers_start 3
	redlock acquire -t 5s --quarantine 5s "$KEY"
	expect 0 '[0-9a-f]{32}' "redlock: $KEY: still waiting: .*up for.*"
	for i in 0 1 2; do
		[[ $(rcli "$i" INFO server) =~ uptime_in_seconds:([0-9]+) ]]
		((BASH_REMATCH[1] < 5)) || ((++voters))
	done
	((voters >= 2))
}

@test "an outage while redlock waits for fresh servers is waited through, and told" {
	servers_start 3
	spawn run "$REDLOCK" run -t 5s --quarantine 7s --server-timeout 300ms "$KEY" true
	wait_until 'grep -q "still waiting: .*up for only" "$TMP/run.err"'
	server_stop 1 2
	wait_until 'grep -q "still waiting: .*no answer within" "$TMP/run.err"'
	server_continue 1 2
	finish run
	expect 0 '' "redlock: $KEY: still waiting: .*up for only.*"$'\n'"redlock: $KEY: still waiting: .*no answer within.*"
}

# no_votes WHY: whoever waits in line until its holder is gone, and is granted KEY by fresh servers only, is told why
# that does not count, and no longer who had it.
no_votes() {
	local key=$KEY tokens=() n
	for n in 1 2 3; do
		KEY=$key-$n
		take
		tokens+=("$token")
	done
	spawn 1 "$REDLOCK" run -w 8s --quarantine 100s "$key-1" true
	spawn 2 "$REDLOCK" run -w 8s --quarantine 100s --unreachable run "$key-2" touch "$TMP/ran"
	spawn 3 "$REDLOCK" run -w 14s --quarantine 100s "$key-3" true
	for n in 1 2 3; do
		KEY=$key-$n token=${tokens[n - 1]}
		wait_until 'queued 1'
		give_back
	done
	finish 1
	expect 69 '' "redlock: $key-1: $1"
	finish 2
	expect 0 '' "redlock: $key-2: $1: COMMAND runs without the lock"
	[[ -e $TMP/ran ]]
	finish 3
	expect 69 '' "redlock: $key-3: 1st in line, waiting for [0-9]+s: $1"$'\n'"redlock: $key-3: $1"
}

@test "a wait that ends for want of votes is no busy lock: one server" {
	servers_start 1
	no_votes '[^ ]+: up for only .* has no vote until .*'
}

@test "a wait that ends for want of votes is no busy lock: three servers" {
	servers_start 3
	no_votes 'no quorum: 3 of 3 servers gave no vote, 2 votes are needed: .*up for only .* has no vote until .*'
}

@test "fresh servers vote at once with --quarantine 0" {
	servers_start 3
	redlock acquire -n --quarantine 0 "$KEY"
	expect 0 '[0-9a-f]{32}'
}

@test "one or two fresh servers vote at once, unless a quarantine is named" {
	servers_start 2
	redlock acquire -S "$(server_url 0)" -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock acquire -n "$KEY-2"
	expect 0 '[0-9a-f]{32}'
	redlock acquire -S "$(server_url 0)" --quarantine 1h -n "$KEY-3"
	expect 69 '' "redlock: $KEY-3: .*"
	wait_until '[[ $(rcli 0 EXISTS "$KEY-3") == 0 ]]'
}

@test "fresh servers with an append-only file synced always vote at once" {
	servers_start 3 --appendonly yes --appendfsync always
	redlock acquire -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	server_restart 0 1 2
	key_held_by "$output" 0 1
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
}

@test "an append-only file that is synced every second gives no vote" {
	servers_start 3 --appendonly yes --appendfsync everysec
	redlock acquire -n "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*"
}

# servers_with_users RULE...: three that forget nothing if their user default, who has these rights,
# may do what scripts wrote; redlock's user may do all but what $DENIED says.
servers_with_users() {
	printf 'user %s\n' "default on nopass $*" "ann on >pw ~* &* +@all ${DENIED-}" >"$TMP/users.acl"
	servers_start 3 --appendonly yes --appendfsync always --aclfile "$TMP/users.acl"
	export REDLOCK_SERVERS=${REDLOCK_SERVERS//unix:\/\//unix://ann:pw@}
}

# ann I ARGUMENT...: redis-cli as redlock's user.
ann() {
	rcli "$1" --user ann --pass pw --no-auth-warning "${@:2}"
}

# asked_about_default I: how often it was.
asked_about_default() {
	ann "$1" INFO commandstats | sed -n 's/^cmdstat_acl|getuser:calls=\([0-9]*\),.*/\1/p'
}

@test "fresh servers whose user default may not do what is in their file have no vote" {
	local rules
	for rules in '-@all +info' '~* &* +@all -hset' '~x &* +@all' '~* resetchannels +@all'; do
		# shellcheck disable=SC2086 # words
		servers_with_users $rules
		redlock acquire --quarantine 0 -t 5m "$KEY"
		expect 0 '[0-9a-f]{32}'
		server_restart 0 1 2
		redlock acquire -n "$KEY"
		[[ $status == @(69|75) && ! $output ]]
		redlock acquire -n "$KEY-2"
		expect 69 '' "redlock: $KEY-2: no quorum: .*up for only .* \(see redlock doctor\).*"
		wait_until '[[ $(ann 0 EXISTS "$KEY-2") == 0 ]]'
		stop_everything "$TMP"
	done
}

@test "fresh servers with a file that may do all, and say so, vote at once: nothing is forgotten" {
	servers_with_users '~* &* +@all'
	redlock acquire -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	server_restart 0 1 2
	redlock acquire -n "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock run -n "$KEY-2" true
	expect 0
	redlock status -q "$KEY"
	expect 0
}

@test "fresh servers that do not say what their user default may do have no vote" {
	DENIED='-acl|getuser' servers_with_users '~* &* +@all'
	redlock acquire -n "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*up for only .* \(see redlock doctor\).*"
}

@test "only servers that are fresh and keep a file are asked what their user default may do" {
	servers_with_users '~* &* +@all'
	redlock acquire -n --quarantine 0 "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ ! $(asked_about_default 0) ]]
	redlock acquire -n "$KEY-2"
	expect 0 '[0-9a-f]{32}'
	wait_until '[[ $(asked_about_default 0) == 1 ]]'
	ann 0 CONFIG SET appendonly no
	redlock run -n "$KEY-3" true
	expect 0
	[[ $(asked_about_default 0) == 1 ]]
}

@test "a fresh server is asked and released like the others, but does not count" {
	local token
	servers_start 3 --appendonly yes --appendfsync always
	rcli 2 CONFIG SET appendonly no
	rcli 0 HSET "$(record)" fence 4000000000000
	redlock acquire -n "$KEY"
	expect 0 '[0-9a-f]{32}'
	token=$output
	wait_until 'key_held_by '"$token"' 0 1 2'
	wait_until '[[ $(fence_at 2) == 4000000000001 ]]' # it must know, for when it has a vote
	redlock release "$KEY" "$token"
	expect 0
	wait_until 'key_free 0 1 2'
	server_kill 1
	redlock acquire -n "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*"
	wait_until 'key_free 0 2'
}

@test "three of five servers restarted empty at once: no second holder gets in" {
	local token
	servers_start 5
	token=$("$REDLOCK" acquire --quarantine 0 "$KEY")
	server_restart 0 1 2
	redlock acquire -n "$KEY"
	[[ $status == @(69|75) && -z $output ]]
	wait_until 'key_free 0 1 2'
	key_held_by "$token" 3 4
	# nor where no quarantine keeps it out, as the others know a holder that these have not seen
	redlock acquire -n --quarantine 0 "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	wait_until 'key_free 0 1 2'
	key_held_by "$token" 3 4
}

@test "three of five servers restarted empty at once: the running command is stopped first" {
	servers_start 5
	mkdir "$TMP/stamps"
	spawn first "$REDLOCK" run --quarantine 0 -t 3s -k 200ms "$KEY" "$STAMP" "$TMP/stamps"
	wait_until 'stamped $TMP/stamps'
	spawn second "$REDLOCK" run --quarantine 3s -t 3s -w 40s "$KEY" "$STAMP" -d 10 "$TMP/stamps"
	server_restart 0 1 2
	finish first
	expect 76 '' "redlock: $KEY: lock lost: .*"
	finish second
	[[ $status == 0 ]]
	assert_exclusive "$TMP/stamps" 2
}

@test "what a restarted server grants by a message before it has said since when it is up is no vote" {
	servers_start 1
	proxies_start
	wait_until '[[ $(rcli 0 INFO server) =~ uptime_in_seconds:([0-9]+) ]] && ((BASH_REMATCH[1] > 3))'
	TAKEN_FOR=15s # which becomes the quarantine of who hears of it
	take
	spawn a "$REDLOCK" run -v -t 6s --quarantine 2s -S "$(proxy_url 0)" "$KEY" touch "$TMP/ran"
	wait_until 'queued 1'
	proxy 0 hold
	proxy_ears 0 hold
	server_restart 0
	take
	proxy_ears 0 pass
	proxy 0 still # requests arrive, what the server says of itself does not
	wait_until 'queued 1 && listening 1'
	give_back
	wait_until '[[ $(<"$TMP/a.err") == *": granted, fence "* ]]'
	[[ $(<"$TMP/a.err") == *": granted, fence "*", but it has not said yet how long it has been up"* ]]
	[[ ! -e $TMP/ran ]]
	proxy 0 pass
	finish a
	[[ $status == 0 && -e $TMP/ran ]]
	[[ $(rcli 0 INFO server) =~ uptime_in_seconds:([0-9]+) ]]
	((BASH_REMATCH[1] >= 2))
	wait_until no_trace
}

@test "a server whose clock was set back to before it started has no new vote, but keeps and gives back what is held" {
	local clock token renewed i
	set_new
	clock=$SET/clock
	perl -e 'print pack "q3", 600_000_000_000, 0, 0' >"$clock"
	CLOCK=$clock LD_PRELOAD=$TOOLS/clock.so servers_start 3
	token=$("$REDLOCK" acquire --quarantine 0 -t 1h "$KEY")
	spawn run "$REDLOCK" run -v --quarantine 0 -t 3s "$KEY-2" sh -c 'touch "$1"; until [ -e "$2" ]; do sleep 0.1; done' \
		- "$TMP/ran" "$TMP/end"
	wait_until '[[ -e $TMP/ran ]]'
	perl -e 'print pack "q3", 0, 0, 0' 1<>"$clock"
	for i in 0 1 2; do
		wait_until "[[ \$(rcli $i INFO server) == *uptime_in_seconds:-* ]]"
		rcli "$i" CLIENT KILL TYPE normal SKIPME yes
	done
	redlock acquire -n "$KEY-3"
	expect 69 '' "redlock: $KEY-3: no quorum: .*: its clock was set back to before it started: .*"
	[[ $stderr != *"up for only"* ]]
	redlock extend -t 2h "$KEY" "$token"
	expect 0
	redlock release "$KEY" "$token"
	expect 0
	wait_until 'key_free 0 1 2'
	# (one of them may have been on its way when the connections were killed)
	renewed=$(grep -c ': renewed, ' "$TMP/run.err") || true
	wait_until "((\$(grep -c ': renewed, ' '$TMP/run.err') >= renewed + 2))"
	touch "$TMP/end"
	finish run
	[[ $status == 0 ]]
	wait_until 'KEY=$KEY-2 key_free 0 1 2'
	redlock acquire -n --quarantine 0 "$KEY-3"
	expect 0 '[0-9a-f]{32}'
}
