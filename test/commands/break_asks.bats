#!/usr/bin/env bats
# break: the holders are asked to stop, and nobody else has the lock before they have. break.bats has --now.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	export LOGNAME=ops
}

BY="ops@[^ ]*"
ASKED="asked [^ ]* pid [0-9]+ '[^']*' to stop"
RELEASED="$ASKED; released after $TIME"
# after a second it is told what is waited for
WAITING="(redlock: [^ ]*: $ASKED; waiting until KEY is released, for [0-9a-z.]+ at most|redlock: [^ ]*: .* cannot be asked to stop; waiting until the lease ends in [0-9a-z.]+)?"

# begin_on N: with so many servers, and a KEY and a directory for that.
begin_on() {
	use "$1"
	TMP=$BATS_TEST_TMPDIR/$1
	mkdir "$TMP"
}

# runs NAME OPTION...: a run whose command leaves stamps until $TMP/NAME.end exists.
runs() {
	local name=$1
	shift
	mkdir -p "$TMP/stamps"
	spawn "$name" "$REDLOCK" run --quarantine 0 --label "$name" "$@" "$KEY" \
		"$STAMP" -d 60000 -u "$TMP/$name.end" "$TMP/stamps"
}

# holds NAME OPTION...: the same, and it has KEY.
holds() {
	local count
	count=$(beats "$TMP/stamps" 2>/dev/null | wc -l)
	runs "$@"
	wait_until "stamped \$TMP/stamps $((count + 1))"
}

# lost WHY: what a run says whose lock was broken.
lost() {
	expect 76 '' "redlock: $KEY[^ ]*: lock lost: broken by $BY$1: COMMAND is stopped"
}

# asked: the servers say that somebody has asked a holder to stop.
asked() {
	[[ $("$REDLOCK" status --format json "$KEY" | jq '[.holders[] | select(.break)] | length') == "${1-1}" ]]
}

@test "the holder is asked, stops its command and releases, and then the next in line has the lock" {
	local servers
	for servers in 1 3; do
		begin_on "$servers"
		holds first -t 6s
		runs next -t 60s
		wait_until 'queued 1 0'
		redlock break -y --reason 'deploy is stuck' "$KEY"
		expect 0 "$KEY: $RELEASED" "$WAITING"
		finish first
		lost ": 'deploy is stuck'"
		wait_until 'stamped $TMP/stamps 2'
		# it was not asked, and is asked by nobody later
		redlock status --format json "$KEY"
		[[ $(of '[.holders[].command]') == '["next"]' && $(of '.holders[0].break') == null ]]
		touch "$TMP/next.end"
		done_well next
		assert_exclusive "$TMP/stamps" 2
	done
}

# waits_and_holds NAME COMMAND...: KEY is waited for, and then held; the first renewal is over.
waits_and_holds() {
	local name=$1
	shift
	spawn before "$REDLOCK" run --quarantine 0 "$KEY" "$ROOT/test/lib/tools/note" "$TMP" before
	wait_until 'entered before'
	spawn "$name" "$@"
	wait_until 'queued 1 0'
	touch "$TMP/end.before"
	done_well before
	wait_until '(($(rcli 0 PTTL "$KEY") > 3000))' # so long is a lease that nobody has answered
}

@test "a holder that has waited is told at once, long before its next renewal, of each kind and by --now, too" {
	local servers options
	for servers in 1 3; do
		use "$servers"
		for options in '' -s '-P 2' -r now; do
			KEY=key-$BATS_SUITE_TEST_NUMBER-$servers${options// /} TMP=$BATS_TEST_TMPDIR/$servers$options
			mkdir "$TMP"
			# shellcheck disable=SC2086 # words
			waits_and_holds next "$REDLOCK" run --quarantine 0 ${options/now/} -t 1h "$KEY" \
				"$ROOT/test/lib/tools/note" "$TMP" next
			wait_until 'entered next'
			if [[ $options == now ]]; then
				redlock break -y --now "$KEY"
				[[ $status == 0 && $output == "$KEY: evicted "* ]]
			else
				redlock break -y "$KEY"
				expect 0 "$KEY: $RELEASED" "$WAITING"
			fi
			finish next
			lost ''
			key_free 0
		done
	done
}

@test "a keeper that has waited is told at once, too" {
	local servers
	for servers in 1 3; do
		begin_on "$servers"
		spawn script sleep 600
		waits_and_holds acquire "$REDLOCK" acquire --quarantine 0 --pid "$(pid script)" -t 1h "$KEY"
		finish acquire
		[[ $status == 0 ]]
		redlock break -y "$KEY"
		expect 0 "$KEY: $RELEASED" "$WAITING"
		finish script
		[[ $status == 143 ]]
	done
}

@test "a holder whose subscriptions broke hears of a break at its next renewal, and opens none again" {
	local i
	servers_start 3
	waits_and_holds next "$REDLOCK" run --quarantine 0 -t 6s "$KEY" "$ROOT/test/lib/tools/note" "$TMP" next
	wait_until 'entered next'
	for i in 0 1 2; do
		[[ $(rcli "$i" CLIENT KILL TYPE pubsub) == 1 ]]
	done
	renewals 2
	for i in 0 1 2; do
		[[ ! $(rcli "$i" PUBSUB CHANNELS '*') ]]
	done
	redlock break -y "$KEY"
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish next
	lost ''
}

@test "a holder that has lost KEY listens no longer, though its command runs on" {
	local servers
	for servers in 1 3; do
		begin_on "$servers"
		waits_and_holds next "$REDLOCK" run --quarantine 0 --on-lost warn "$KEY" \
			"$ROOT/test/lib/tools/note" "$TMP" next
		wait_until 'entered next'
		[[ $(rcli 0 PUBSUB CHANNELS "$(record):*") ]]
		redlock break -y --now "$KEY"
		wait_until '[[ ! $(rcli 0 PUBSUB CHANNELS "$(record):*") ]]'
		is_running next
		ends next
		finish next
	done
}

@test "messages do not keep a slow server from getting the lock back" {
	local channel
	only 0 1 2
	proxies_start
	spawn before "$REDLOCK" run --quarantine 0 "$KEY" "$ROOT/test/lib/tools/note" "$TMP" before
	wait_until 'entered before'
	proxy 2 'delay 150'
	spawn next "$REDLOCK" run --quarantine 0 -t 1h -S "$(proxy_urls)" "$KEY" "$ROOT/test/lib/tools/note" "$TMP" next
	wait_until 'queued 1 0'
	ends before
	wait_until 'entered next && (($(rcli 2 PTTL "$KEY") > 3000))'
	channel=$(rcli 0 PUBSUB CHANNELS "$(record):*")
	rcli 2 DEL "$KEY"
	wait_until 'rcli 0 PUBLISH "$channel" "0 0 0 -"; [[ $(rcli 2 EXISTS "$KEY") == 1 ]]'
	ends next
	done_well before next
}

@test "messages that say nothing true make a holder renew more often, ten times a second at most" {
	local channel i renewed ms
	only 0
	waits_and_holds next "$REDLOCK" run -v --quarantine 0 -t 1h "$KEY" "$ROOT/test/lib/tools/note" "$TMP" next
	wait_until 'entered next'
	channel=$(rcli 0 PUBSUB CHANNELS '*')
	ms=$(date_ms)
	for i in {1..300}; do
		printf 'PUBLISH %s "%s"\n' "$channel" "0 99999999999 3600000 - $i"
		printf 'PUBLISH %s "%s"\n' "$channel" 'rubbish'
	done | redis-cli -s "$SERVERS/0/redis.sock" >"$TMP/heard"
	[[ $(sort -u "$TMP/heard") == 1 ]]
	wait_until 'rcli 0 PUBLISH "$channel" "0 0 0 -"; (($(grep -c ": renewed" "$TMP/next.err") >= 5))'
	ends next
	finish next
	[[ $status == 0 ]]
	ms=$(($(date_ms) - ms))
	renewed=$(grep -c ': renewed' "$TMP/next.err")
	((renewed <= ms / 100 + 2))
}

@test "status shows who has asked, when and why, while the holder still has the lock" {
	local servers
	for servers in 1 3; do
		use "$servers"
		token=$("$REDLOCK" acquire --quarantine 0 -t 60s --label job "$KEY")
		spawn break "$REDLOCK" break -y --reason $'it\'s \e[31mstuck\n' "$KEY"
		wait_until asked
		redlock status "$KEY"
		[[ $output =~ "'job', asked "[0-9.]*m?s" ago to stop, by ops@"[^\ ]*": 'it's "'\'+"e[31mstuck"'\'+"n'"$'\n' ]]
		redlock status --format json "$KEY"
		is_json
		[[ $(of '.holders[0].break | [.by, .reason]') == '["ops@'*'","it'"'"'s '*'e[31mstuck'*'n"]' ]]
		(($(of '.holders[0].break.asked_ms') >= 0))
		redlock release "$KEY" "$token"
		expect 0
		finish break
		expect 0 "$KEY: $RELEASED" "$WAITING"
	done
}

@test "a reason is cut after 200 bytes, between letters, and is no more than text to the holder" {
	local many
	only 0
	many=$(printf 'é%.0s' {1..120})
	holds letters -t 3s
	LC_ALL=C.UTF-8 redlock break -y --reason "a$many" "$KEY"
	finish letters
	[[ $status == 76 && ($stderr == *"\xa9':"* || $stderr == *"é':"*) ]]
	holds first -t 3s
	redlock break -y --reason "a'\$(touch $TMP/gone)%n%s"$'\nby=root@nowhere\n'"$(printf '%0300d' 0)" "$KEY"
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish first
	[[ $status == 76 && $stderr == *"broken by ops@"*"'a'\$(touch "*"%n%s"* && ${#stderr} -lt 600 ]]
	[[ ! -e $TMP/gone && $stderr != *"broken by root"* ]]
	redlock break --reason '' -y "$KEY"
	expect 64 '' "redlock: break: --reason '' is not valid: it is empty"
}

@test "acquire without a keeper: extend says who has broken it, and release is waited for" {
	local servers
	for servers in 1 3; do
		use "$servers"
		token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
		spawn break "$REDLOCK" break -y --reason why "$KEY"
		wait_until asked
		redlock extend "$KEY" "$token"
		expect 1 '' "redlock: $KEY: not extended: broken by $BY: 'why'"
		redlock status -q "$KEY" "$token"
		expect 0
		redlock run -n "$KEY" true
		[[ $status == 75 ]]
		redlock release "$KEY" "$token"
		expect 0
		finish break
		expect 0 "$KEY: $RELEASED" "$WAITING"
	done
}

@test "a holder that is gone is waited for until its lease is over, and that is said" {
	local servers
	for servers in 1 3; do
		use "$servers"
		token=$("$REDLOCK" acquire --quarantine 0 -t 3s "$KEY")
		redlock break -y "$KEY"
		expect 0 "$KEY: $ASKED; its lease ended after $TIME, without an answer" "$WAITING"
		wait_until 'redlock run --quarantine 0 -n "$KEY" true; [[ $status == 0 ]]'
	done
}

@test "the process of a keeper is stopped, and its lock is released after that" {
	local servers
	for servers in 1 3; do
		use "$servers"
		spawn script sleep 60
		redlock acquire --quarantine 0 --pid "$(pid script)" -t 6s "$KEY"
		[[ $status == 0 ]]
		redlock break -y --reason why "$KEY"
		expect 0 "$KEY: $RELEASED" "$WAITING"
		finish script
		[[ $status == 143 && $stderr == "redlock: $KEY: lock lost: broken by ops@"*": 'why': pid "*" is stopped" ]]
	done
}

@test "--on-lost warn: the command runs on without the lock, and break says so" {
	only 0
	spawn first "$REDLOCK" run -t 3s --on-lost warn "$KEY" sh -c 'while [ ! -e $0.end ]; do sleep 0.1; done; exit 3' "$TMP/first"
	wait_until '[[ $(rcli 0 EXISTS $KEY) == 1 ]]'
	redlock break -y "$KEY"
	expect 0 "$KEY: $ASKED; its lease ended after $TIME, and its command runs on \(--on-lost warn\)" "$WAITING"
	is_running first
	touch "$TMP/first.end"
	finish first
	[[ $status == 3 && $stderr == "redlock: $KEY: lock lost: broken by ops@"*": COMMAND runs on without it" ]]
}

@test "--on-lost SIGNAL: the process of a keeper is sent that, and has its lock until it has ended" {
	only 0
	spawn script bash -c 'trap "sleep 1; touch $0; exit 7" USR1; while :; do sleep 0.1; done' "$TMP/done"
	redlock acquire --pid "$(pid script)" -t 9s --on-lost USR1 "$KEY"
	[[ $status == 0 ]]
	redlock break -y "$KEY"
	expect 0 "$KEY: $RELEASED" "$WAITING"
	[[ -e $TMP/done ]]
	finish script
	[[ $status == 7 ]]
}

@test "all who share a lock are asked, those of -P, too, and who comes later is not" {
	local kind
	for kind in -s '-P 2'; do
		TMP=$BATS_TEST_TMPDIR/$kind KEY=key-$BATS_SUITE_TEST_NUMBER${kind// /}
		mkdir "$TMP"
		only 0
		# shellcheck disable=SC2086 # words
		{
			takes one $kind -t 6s
			takes two $kind -t 6s
			wait_until 'entered one two'
			spawn break "$REDLOCK" break -y "$KEY"
			wait_until 'asked 2 || ! is_running break'
			takes three $kind -t 60s
		}
		finish break
		expect 0 "$KEY: $RELEASED"$'\n'"$KEY: $RELEASED" "(redlock: .* and 1 more to stop; waiting .*)?"
		finish one
		lost ''
		finish two
		lost ''
		wait_until 'entered three'
		redlock status --format json "$KEY"
		[[ $(of '[.holders[].break]') == '[null]' ]]
		ends three
		done_well three
	done
}

@test "of a hundred who share a lock each is asked, and waited for" {
	local tokens=() i
	use 3
	for i in {1..100}; do
		tokens+=("$("$REDLOCK" acquire -s -t 60s "$KEY")")
	done
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until 'asked 100 || ! is_running break'
	for i in "${tokens[@]}"; do "$REDLOCK" release "$KEY" "$i"; done
	finish break
	[[ $status == 0 ]]
	[[ $(grep -cE "^$KEY: $RELEASED\$" <<<"$output") == 100 ]]
}

@test "a reentrant lock: the run inside is stopped with the one that it is in" {
	# the run inside is not to be killed before it has released its hold
	local options=(-r -t 4s -k 2s --server-timeout 300ms)
	only 0
	spawn outer "$REDLOCK" run "${options[@]}" "$KEY" "$REDLOCK" run "${options[@]}" "$KEY" sleep 60
	wait_until '[[ $(rcli 0 HVALS $KEY) == 2 ]]'
	redlock break -y "$KEY"
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish outer
	[[ $status == 76 && $stderr == *"lock lost: broken by ops@"* ]]
	key_free 0
}

@test "--also: if one key is broken, the command is stopped, and all are released" {
	only 0
	spawn run "$REDLOCK" run -t 3s --also "$KEY-2" "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS $KEY $KEY-2) == 2 ]]'
	redlock break -y "$KEY-2"
	expect 0 "$KEY-2: $RELEASED" "$WAITING"
	finish run
	lost ''
	[[ $stderr == "redlock: $KEY-2: "* && $(rcli 0 EXISTS "$KEY" "$KEY-2") == 0 ]]
}

@test "--also: a holder that still waits for another key ends, and the history says who has broken it" {
	local servers how command
	for servers in 1 3; do
		begin_on "$servers"
		KEY=$KEY-$servers
		"$REDLOCK" acquire --quarantine 0 -t 10m "$KEY-2" >/dev/null
		for command in run acquire; do
			for how in '' --now; do
				spawn "$command" "$REDLOCK" "$command" --quarantine 0 -t 6s --also "$KEY-2" "$KEY" \
					$([[ $command == acquire ]] || echo touch "$TMP/ran")
				wait_until 'KEY=$KEY-2 queued 1 0'
				# shellcheck disable=SC2086 # a word, or none
				redlock break -y $how --reason 'stop it' "$KEY"
				[[ $status == 0 ]]
				[[ $how ]] || expect 0 "$KEY: $RELEASED" "$WAITING"
				finish "$command"
				expect 76 '' "redlock: $KEY: lock lost: broken by $BY: 'stop it': while waiting for other keys"
				wait_until 'KEY=$KEY-2 queued 0 0'
				[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
			done
		done
		redlock history --format json "$KEY"
		[[ $(of '[.runs[] | .end + " " + .by] | unique') == '["broken ops@'*": 'stop it'\"]" ]]
	done
	[[ ! -e $TMP/ran ]]
}

@test "an earlier redlock, which knows nothing of this, cannot renew its lease any more" {
	local token=0123456789abcdef i
	only 0 1 2
	for i in 0 1 2; do
		hold_exclusive "$i" "$token" web3 812 old.sh
	done
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until "[[ \$(rcli 0 GET $KEY) != $token ]]"
	# its renewal, its release, and those who want KEY: nobody has it
	KEY=$KEY AT=0 earlier_extends "$token"
	[[ $said == 0 ]]
	redlock run -n "$KEY" true
	[[ $status == 75 && $stderr == *"held by web3 pid 812 'old.sh'"* ]]
	redlock status "$KEY"
	[[ $output == *"web3 pid 812"*"asked "* ]]
	for i in 0 1 2; do rcli "$i" PEXPIRE "$KEY" 1; done # the lease is over
	finish break
	expect 0 "$KEY: web3 pid 812 'old.sh' cannot be asked to stop, as its redlock is older; its lease could not be renewed, and ended after $TIME" \
		"$WAITING"
	key_free 0 1
}

# earlier_extends TOKEN: as redlock 0.1 does it; $said is the answer.
earlier_extends() {
	said=$(rcli 0 EVAL "$(<"$ROOT/test/lib/redlock-0.1/extend.lua")" 5 \
		"$KEY" "$(record)" "$(record):queue" "$(record):wishes" "$(record):waits" 0 "$1" 30000 -)
}

@test "a holder whose record was lost stops when it renews, and KEY is free as soon as it has released it" {
	local servers kind i
	for servers in 1 3; do
		for kind in -x -r; do
			KEY=key-$BATS_SUITE_TEST_NUMBER$kind
			begin_on "$servers"
			holds first$kind $kind -t 9s
			for ((i = 0; i < servers; i++)); do rcli "$i" DEL "$(record)"; done
			runs next$kind $kind -t 30s -w 60s
			wait_until "[[ \$(rcli 0 ZCARD '$(record):queue') == 1 ]]"
			redlock break -y "$KEY"
			expect 0 "$KEY: asked another program to stop; released after $TIME" "$WAITING"
			finish first$kind
			expect 76 '' "redlock: $KEY[^ ]*: lock lost: broken by .*: COMMAND is stopped"
			wait_until 'stamped $TMP/stamps 2'
			: >"$TMP/next$kind.end"
			finish next$kind
			[[ $status == 0 ]]
			rm -r "$TMP"
		done
	done
}

@test "another program cannot be asked, either: its lease ends by itself, and nobody has the lock before" {
	only 0
	rcli 0 SET "$KEY" their-secret NX PX 3000
	redlock break -y "$KEY"
	expect 0 "$KEY: another program cannot be asked to stop; its lease could not be renewed, and ended after $TIME" \
		"$WAITING"
	rcli 0 HSET "$KEY" 285475da-9152-4c83-822a-67ee2f116a79:52 2
	rcli 0 PEXPIRE "$KEY" 3000
	redlock break -y "$KEY"
	expect 0 "$KEY: another program cannot .*" "(redlock: .*)?"
	key_free 0
}

@test "a KEY that is no lock, or that cannot be understood, is 65" {
	only 0
	rcli 0 RPUSH "$KEY-list" element
	rcli 0 SET "$KEY-string" text
	rcli 0 ZADD "$KEY-zset" 1 member
	rcli 0 PEXPIRE "$KEY-zset" 36000000
	for key in list string; do
		redlock break -y "$KEY-$key"
		expect 65 '' "redlock: $KEY-$key: $(server_url 0): KEY is a [a-z ]*, which is not a lock: it stays as it is; --foreign deletes it"
		redlock break -y --foreign "$KEY-$key"
		expect 0 "$KEY-$key: deleted a $key, which was not a lock"
	done
	redlock break -y "$KEY-zset"
	expect 65 '' "redlock: $KEY-zset: $(server_url 0): KEY is held by another program: it cannot be asked to stop; --now takes KEY away from it"
	redlock break -y --now "$KEY-zset"
	expect 0 "$KEY-zset: evicted another program"
}

@test "a KEY that nobody holds is 1" {
	redlock break -y "$KEY"
	expect 1 '' "redlock: $KEY: not held"
}

@test "too few servers cannot stop a command: a quorum keeps its lock" {
	only 0 1 2
	holds first -t 3s
	# a server that says so alone: it may lie
	spawn break "$REDLOCK" break -y -S "$(server_url 0)" "$KEY"
	wait_until '[[ $(rcli 0 HKEYS "$(record)") == *break:* ]]'
	renewals 3 1
	is_running first
	touch "$TMP/first.end"
	done_well first
	finish break
	[[ $status == 0 ]]
}

@test "without a quorum nobody is asked: 69" {
	servers_start 3
	token=$("$REDLOCK" acquire --quarantine 0 "$KEY")
	server_kill 1 2
	redlock break -y "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*"
	[[ $(rcli 0 HKEYS "$(record)") != *break:* ]]
}

@test "a minority of servers that is down changes nothing" {
	servers_start 3
	holds first -t 6s
	server_kill 2
	redlock break -y "$KEY"
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish first
	lost ''
}

@test "servers that have lost the wish are told it again" {
	local i
	only 0 1 2
	holds first -t 9s
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until 'asked || ! is_running break'
	for i in 0 1; do rcli "$i" HDEL "$(record)" "break:$(rcli "$i" GET "$KEY")"; done
	finish break
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish first
	lost ''
}

@test "a server that was restarted empty meanwhile does not give the lock back to its holder" {
	servers_start 3
	holds first -t 9s
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until 'asked || ! is_running break'
	server_restart 0
	finish break
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish first
	[[ $status == 76 && $stderr == "redlock: $KEY: lock lost: broken by ops@"*": COMMAND is stopped" ]]
	key_free 0 1 2
}

@test "a server that loses its data meanwhile has not seen the lock released" {
	only 0
	token=$("$REDLOCK" acquire -t 4s "$KEY")
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until asked
	rcli 0 FLUSHALL
	finish break
	[[ $status == 0 && $output == *"its lease ended after "* && $output != *released* ]]
}

# regranted_after LOSS: while break does not look, all servers but the first lose the holder by this command, and
# grant the lock to somebody else. Break goes on until the holder's lease is over.
regranted_after() {
	local lost
	"$REDLOCK" run --quarantine 0 "$KEY" true # servers know KEY
	[[ $1 != reload ]] || for lost in 1 2; do rcli "$lost" SAVE; done
	token=$("$REDLOCK" acquire --quarantine 0 -t 6s "$KEY")
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until asked
	stop_process "$(pid break)"
	if [[ $1 == reload ]]; then
		server_reload 1 2
	else
		for lost in 1 2; do rcli "$lost" "$@"; done
	fi
	for lost in 1 2; do
		"$REDLOCK" run -S "$(server_url "$lost")" "$KEY" true
		[[ ! $(rcli "$lost" EXISTS "$KEY") == 1 ]]
	done
	kill -CONT "$(pid break)"
	asks_on 0
	is_running break
	finish break
	expect 0 "$KEY: $ASKED; its lease ended after $TIME, without an answer" "$WAITING"
}

@test "servers that have lost a lock cannot say that it was released, even if they have granted it since" {
	servers_start 3
	regranted_after reload
	KEY+=2
	regranted_after DEL "$KEY"
	KEY+=3
	regranted_after FLUSHALL
}

# asks_on I: somebody asks on this server, with one round after the other.
asks_on() {
	local before
	before=$(scripts_run "$1")
	wait_until "((\$(scripts_run $1) >= before + 2))"
}

@test "a server that dies after its answer has not released the lock" {
	servers_start 3
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
	spawn break "$REDLOCK" break -y --server-timeout 20s "$KEY"
	wait_until asked
	server_stop 2
	# the round waits for that one, and the others have answered
	wait_until 'before=$(scripts_run 0) && pause 0.7 && (($(scripts_run 0) == before))'
	server_kill 1
	server_continue 2
	asks_on 0
	is_running break
	redlock release "$KEY" "$token"
	expect 0
	finish break
	expect 0 "$KEY: $RELEASED" "$WAITING"
}

@test "a waiter that has the vote of one server is not asked: it may be the next in line" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done # no server has forgotten a holder
	hold_exclusive 2 waiting web9 9 next.sh
	rcli 2 HSET "$(record)" holder:waiting "$(described web9 9 next.sh)"$'\nbreak=stops\n'
	holds first -t 6s
	for i in 0 1; do rcli "$i" ZADD "$(record):queue" "$(date_ms)" waiting; done
	redlock break -y "$KEY"
	expect 0 "$KEY: $RELEASED" "$WAITING"
	[[ $(rcli 2 HKEYS "$(record)") != *break:* ]]
	[[ $(rcli 2 GET "$KEY") == waiting ]]
	finish first
	lost ''
}

@test "who holds a lock with others is asked, too, if servers have lost it: it may run on" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done
	server_kill 2
	holds first -s -t 30s
	server_launch 2
	server_ready 2
	rcli 2 HSET "$(record)" began 1
	holds second -s -t 6s
	server_restart 1
	rcli 1 HSET "$(record)" began 1
	redlock break -y "$KEY"
	[[ $status == 0 && $output == *"'first'"* && $output == *"'second'"* ]]
	finish first
	[[ $status == 76 ]]
	finish second
	[[ $status == 76 ]]
}

@test "votes of too few servers are asked to go if nobody has more" {
	servers_start 3
	hold_exclusive 2 left web9 9 gone.sh
	rcli 2 HSET "$(record)" holder:left "$(described web9 9 gone.sh)"$'\nbreak=stops\n'
	rcli 2 PEXPIRE "$KEY" 3000
	redlock break -y "$KEY"
	expect 0 "$KEY: asked web9 pid 9 'gone.sh' to stop; its lease ended after $TIME, without an answer" "$WAITING"
}

@test "who has released the lock is not asked again, though others are, if its token has it once more" {
	local one two
	only 0
	one=$("$REDLOCK" acquire -s -t 60s "$KEY")
	two=$("$REDLOCK" acquire -s -t 60s "$KEY")
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until 'asked 2'
	redlock release "$KEY" "$one"
	asks_on 0
	rcli 0 ZADD "$KEY" "$(($(date_ms) + 60000))" "$one"
	rcli 0 HSET "$(record)" "holder:$one" "$(described web1 1 again.sh)"$'\nbreak=stops\n'
	asks_on 0
	is_running break
	[[ $(rcli 0 HKEYS "$(record)") == *"break:$two"* && $(rcli 0 HKEYS "$(record)") != *"break:$one"* ]]
	redlock release "$KEY" "$two"
	finish break
	expect 0 "($KEY: $RELEASED
?){2}" "$WAITING"
}

# lost_to FUNCTION: it takes KEY from the holder while break waits for that.
lost_to() {
	local servers
	for servers in 1 3; do
		begin_on "$servers"
		holds first -t 60s
		spawn break "$REDLOCK" break -y "$KEY"
		wait_until asked
		"$1"
		finish break
		expect 0 "$KEY: $ASKED; not released, but KEY was deleted after $TIME: it may run on for up to 20s" "$WAITING"
		is_beating "$TMP/stamps"
		kill "$(pid first)"
		finish first
	done
}

take_away() {
	"$REDLOCK" break -y --now "$KEY"
}

delete_key() {
	local i
	for ((i = 0; i < servers; i++)); do rcli "$i" DEL "$KEY"; done
}

@test "a lock that somebody else has taken away with --now was not released" {
	lost_to take_away
}

@test "a lease that is over on one server sooner than on another has ended: nobody has deleted KEY" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done
	hold_exclusive 2 another web9 9 other.sh
	token=$("$REDLOCK" acquire --quarantine 0 -t 3s "$KEY")
	rcli 0 ZADD "$(record):queue" "$(date_ms)" another
	rcli 1 PEXPIRE "$KEY" 30000
	spawn break "$REDLOCK" break -y "$KEY"
	finish break
	[[ $output == *"its lease ended after "* && $output != *released* && $output != *deleted* ]]
}

@test "if one server of a bare quorum loses KEY, it was not released" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done # no server has forgotten a holder
	hold_exclusive 2 another web9 9 other.sh
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
	rcli 0 ZADD "$(record):queue" "$(date_ms)" another
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until asked
	rcli 1 DEL "$KEY"
	finish break
	expect 0 "$KEY: $ASKED; not released, but KEY was deleted after $TIME" "$WAITING"
}

@test "two may break it at once: the holder is told the first reason, and both that it is released" {
	only 0
	holds first -t 9s
	spawn one "$REDLOCK" break -y --reason one "$KEY"
	wait_until 'asked || ! is_running one'
	redlock break -y --reason two "$KEY"
	[[ $status == 0 && $output == *released* || $status == 1 ]]
	finish one
	expect 0 "$KEY: $RELEASED" "$WAITING"
	finish first
	lost ": 'one'"
}

@test "^C ends the wait, and the request stands" {
	only 0
	token=$("$REDLOCK" acquire -t 60s "$KEY")
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until asked
	kill -INT "$(pid break)"
	finish break
	[[ $status == 130 && $stderr == *"redlock: $KEY: no longer waiting; the request stands: "*" will be told at the next renewal at the latest" ]]
	redlock extend "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not extended: broken by $BY"
}

@test "^C ends the wait for another program, and does not say that it will be told" {
	only 0
	rcli 0 SET "$KEY" theirs PX 60000
	spawn break "$REDLOCK" break -y "$KEY"
	wait_until '[[ -s $TMP/break.err ]]'
	kill -INT "$(pid break)"
	finish break
	[[ $status == 130 && $stderr == *"redlock: $KEY: no longer waiting: another program cannot be asked to stop, and the lease ends in "* ]]
}

@test "after ^C a holder that still has KEY is named, not one that has released it" {
	only 0
	holds one -s -t 3s
	token=$("$REDLOCK" acquire -s -t 60s --label two "$KEY")
	spawn break "$REDLOCK" break -y "$KEY"
	finish one
	wait_until 'holders 1 0'
	asked=$(scripts_run 0)
	wait_until '(($(scripts_run 0) >= asked + 2))'
	kill -INT "$(pid break)"
	finish break
	[[ $status == 130 && $output =~ ^"$KEY: "$ASKED"; released after "$TIME$ ]]
	[[ $stderr == *"the request stands: "*"'two' will be told at the next renewal at the latest" ]]
}

@test "a holder that goes before it is asked is reported as gone, not as asked" {
	only 0
	token=$("$REDLOCK" acquire -s -t 60s --label one "$KEY")
	spawn two "$REDLOCK" run -s -t 3s --label two "$KEY" sleep 60
	wait_until 'holders 2 0'
	in_terminal session "$REDLOCK break $KEY; echo end: \$?"
	wait_until 'grep -q "\[y/N\]" $TMP/session.out'
	redlock release "$KEY" "$token"
	type_keys session 'y\n'
	wait_until 'grep -q "end: 0" $TMP/session.out'
	tr -d '\r' <"$TMP/session.out" | tr -s ' \n' ' ' >"$TMP/said"
	grep -qE "$KEY: [^ ]* pid [0-9]+ 'one' was gone before it was asked to stop" "$TMP/said"
	grep -qE "$KEY: asked [^ ]* pid [0-9]+ 'two' to stop; released after" "$TMP/said"
}

@test "if too few servers hear that a holder is to stop, it is 69, and said that it may stop" {
	servers_start 3
	holds first -t 60s
	in_terminal session "$REDLOCK break --server-timeout 300ms $KEY; echo end: \$?"
	wait_until 'grep -q "\[y/N\]" $TMP/session.out'
	server_stop 1 2
	type_keys session 'y\n'
	wait_until 'grep -q "end: 69" $TMP/session.out'
	tr -d '\r' <"$TMP/session.out" | tr -s ' \n' ' ' >"$TMP/said"
	grep -q "no quorum: .*; the holder may still be told to stop" "$TMP/said"
	server_continue 1 2
	finish first
	lost ''
}

@test "a holder that goes before it is asked is gone, even if a dead attempt has left a vote" {
	local i
	servers_start 3
	for i in 0 1 2; do rcli "$i" HSET "$(record)" began 1; done # no server has forgotten a holder
	hold_exclusive 2 left web9 9 dead.sh
	token=$("$REDLOCK" acquire --quarantine 0 -t 60s --label one "$KEY")
	in_terminal session "$REDLOCK break $KEY; echo end: \$?"
	wait_until 'grep -q "\[y/N\]" $TMP/session.out'
	redlock release "$KEY" "$token"
	rcli 2 PEXPIRE "$KEY" 1500
	type_keys session 'y\n'
	wait_until 'grep -q "end: 0" $TMP/session.out'
	tr -d '\r' <"$TMP/session.out" | tr -s ' \n' ' ' >"$TMP/said"
	grep -qE "$KEY: [^ ]* pid [0-9]+ 'one' was gone before it was asked to stop" "$TMP/said"
}

@test "a KEY that is deleted while break waits was not released" {
	lost_to delete_key
}

@test "if a holder goes on renewing, break exits with 75, names it and suggests --now" {
	only 0
	hold_exclusive 0 token web3 812 backup.sh
	rcli 0 HSET "$(record)" holder:token "$(described web3 812 backup.sh)"$'\nbreak=stops\n'
	rcli 0 PEXPIRE "$KEY" 2000
	spawn renewer bash -c 'while :; do redis-cli -s "$0" PEXPIRE "$1" 2000; sleep 0.2; done' "$SERVERS/0/redis.sock" "$KEY"
	redlock break -y "$KEY"
	expect 75 '' "(redlock: .*waiting.*
)?redlock: $KEY: asked web3 pid 812 'backup.sh' to stop, but the lease is still renewed after $TIME: --now takes KEY away"
}

@test "on a terminal it is asked first, and a no asks nobody" {
	only 0
	token=$("$REDLOCK" acquire --label job "$KEY")
	in_terminal session "$REDLOCK break $KEY; echo end: \$?"
	wait_until 'grep -qE "^break $KEY, held by .*\[y/N\]" $TMP/session.out'
	type_keys session 'n\n'
	wait_until 'grep -q "end: 1" $TMP/session.out'
	asked 0
	in_terminal second "$REDLOCK break $KEY; echo end: \$?"
	wait_until 'grep -qF "[y/N]" $TMP/second.out'
	type_keys second 'y\n'
	wait_until asked
	"$REDLOCK" release "$KEY" "$token"
	wait_until 'grep -q "end: 0" $TMP/second.out'
	grep -q "to stop; released after" "$TMP/second.out"
}

@test "-q waits without a word" {
	only 0
	holds first -t 3s
	redlock break -qy "$KEY"
	expect 0
	finish first
	lost ''
}

# ended: how the runs of KEY ended, the newest first.
ended() {
	"$REDLOCK" history --format json "$KEY" | jq -r '[.runs[] | .end + " " + (.by // "")] | join(" / ")'
}

@test "the history says who has broken a lock, and why" {
	local servers
	for servers in 1 3; do
		use "$servers"
		holds "first$servers" -t 3s
		redlock break -y --reason "it's stuck" "$KEY"
		[[ $status == 0 ]]
		finish "first$servers"
		token=$("$REDLOCK" acquire --quarantine 0 -t 60s "$KEY")
		redlock break -y --now --reason 'in a hurry' "$KEY"
		[[ $status == 0 ]]
		wait_until '[[ $(ended) == "broken ops@"*" / broken ops@"* ]]'
		[[ $(ended) == *": 'in a hurry' / broken "*": 'it's stuck'" ]]
	done
}

@test "the history cuts off nothing of who has broken a lock, and why, however long that is" {
	local host user reason
	only 0
	host=$(printf 'h%.0s' {1..64}) user=$(printf 'u%.0s' {1..32}) reason=$(printf 'r%.0s' {1..200})
	unshare --uts hostname "$host" || skip "no host can be named here"
	redlock_there() {
		LOGNAME=$user unshare --uts sh -c 'hostname "$1" && shift && exec "$@"' - "$host" "$REDLOCK" "$@"
	}
	spawn first redlock_there run -t 3s "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	redlock_there break -y --reason "$reason" "$KEY"
	finish first
	redlock acquire --quarantine 0 -t 60s "$KEY"
	redlock_there break -y --now --reason "$reason" "$KEY"
	[[ $(ended) == "broken $user@$host: '$reason' / broken $user@$host: '$reason'" ]]
}

@test "the history says the same of a holder that could not be asked" {
	only 0
	hold_exclusive 0 token web3 812 old.sh
	spawn break "$REDLOCK" break -y --reason stuck "$KEY"
	wait_until '[[ $(rcli 0 GET "$KEY") == "token broken" ]]'
	rcli 0 PEXPIRE "$KEY" 1
	finish break
	redlock run "$KEY" true
	expect 0
	[[ $(ended) == 'exit  / broken ops@'*": 'stuck'" ]]
}

@test "a user without the right to write asks nobody: 77" {
	only 0
	token=$("$REDLOCK" acquire -t 60s "$KEY")
	rcli 0 ACL SETUSER viewer on '>hunter2' '~*' '&*' +@read +eval +time +hello +auth +client +info +select +ping +type +pttl
	redlock break -S "unix://viewer:hunter2@$SERVERS/0/redis.sock" -y "$KEY"
	expect 77 '' "redlock: $KEY: .*"
	asked 0
}
