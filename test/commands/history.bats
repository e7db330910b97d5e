#!/usr/bin/env bats
# What a run leaves behind: `history`, the last run in `status`, --once-in and --remember.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	export REDLOCK_QUARANTINE=0
}

# on_one_and_three FUNCTION: with a KEY of its own each.
on_one_and_three() {
	local base=$KEY
	only 0
	KEY=$base-one "$@" # with || nothing in it but the last command could fail
	only 0 1 2
	KEY=$base-three "$@"
}

# ended KEY END...: these are the ends of its runs, the last one first.
ended() {
	local key=$1 want
	shift
	want=$(printf '%s,' "$@")
	redlock history --format json "$key"
	[[ $status == 0 && ! $stderr ]] && is_json || return
	[[ $(of '[.runs[] | .end + (if .exit != null then " \(.exit)" elif .signal != null then " \(.signal)" else "" end)] | join(",")') == \
		"\"${want%,}\"" ]] || {
		printf 'instead of %s: %s\n' "$want" "$output" >&2
		false
	}
}

# write_run I AGE_MS HOW [KEY [HELD_MS [TOKEN]]]: an entry as a release writes it.
write_run() {
	local key=${4-$KEY}
	rcli "$1" RPUSH "{$key}:redlock:runs" "$(printf '%016x %d %d 5 %s\n%s' "${6-$((RANDOM * 32768 + RANDOM))}" "${5-1000}" \
		1700000000001 "$3" "since=$(($(date_ms) - $2)) -"$'\n'"host=web3"$'\n'"pid=812"$'\n'"command=backup.sh"$'\n')"
}

# write_runs N AGE_MS HOW [HELD_MS]: each server has it, as the same run N.
write_runs() {
	local i
	for i in 0 1 2; do write_run "$i" "$2" "$3" "$KEY" "${4-1000}" "$1"; done
}

ways_to_end() {
	redlock run "$KEY" true
	redlock run "$KEY" sh -c 'exit 3'
	redlock run "$KEY" sh -c 'kill -9 $$'
	redlock run --max-hold 50ms "$KEY" sleep 60
	redlock run "$KEY" /
	token=$("$REDLOCK" acquire "$KEY")
	redlock release "$KEY" "$token"
	ended "$KEY" released 'not started' overdue 'signal 9' 'exit 3' 'exit 0'
}

@test "history tells how each run ended: status, signal, overdue, not started, released" {
	on_one_and_three ways_to_end
}

of_each_kind() {
	local kind
	for kind in -x -r -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		redlock run $kind "$KEY$kind" sh -c 'exit 4'
		ended "$KEY$kind" 'exit 4' || return
	done
}

@test "runs on both sides of a change of clocks have their offset from UTC, and others none" {
	only 0
	export TZ=CET-1CEST,M3.5.0,M10.5.0/3 # 2024-10-27T00:30:30Z and an hour later
	write_run 0 $(($(date_ms) - 1729989030000)) 'exit 0' "$KEY" 1000 1
	redlock history "$KEY"
	[[ $status == 0 && ${lines[1]} =~ ^' '*2024-10-27\ 02:30:[0-9]{2}\ +web3 ]]
	write_run 0 $(($(date_ms) - 1729992630000)) 'exit 0' "$KEY" 1000 2
	redlock history "$KEY"
	[[ $status == 0 && ${lines[1]} =~ ^' '*2024-10-27\ 02:30:[0-9]{2}\ \+0100\ +web3 ]]
	[[ ${lines[2]} =~ ^' '*2024-10-27\ 02:30:[0-9]{2}\ \+0200\ +web3 ]]
}

@test "each kind of lock has a history" {
	on_one_and_three of_each_kind
}

tells() {
	LOGNAME=ann redlock run --label 'backup of db1' "$KEY" true
	redlock history "$KEY"
	expect 0 "$KEY: 1 run, median $TIME, longest $TIME, 0% failed
  20[0-9-]+ [0-9:]+  [^ ]+ pid [0-9]+ \(ann\)  for $TIME  exit 0  'backup of db1'"
	redlock history --format json "$KEY"
	[[ $(of '.key, .failed, (.runs | length), (.runs[0] | .user, .command, .exit, .signal, .by)' | paste -sd ' ') == \
		"\"$KEY\" 0 1 \"ann\" \"backup of db1\" 0 null null" ]]
	[[ $(of '.runs[0] | .fence > 0, .pid > 0, .held_ms >= 0, .waited_ms >= 0, .age_ms >= 0, .began_ms > 1700000000000') != *false* ]]
}

@test "a run's time, holder and label are told to people, and the fence as well to programs" {
	on_one_and_three tells
}

as_it_was() {
	local asked began fence pid
	token=$("$REDLOCK" acquire -t 5m "$KEY")
	LOGNAME=ann spawn "next-$KEY" "$REDLOCK" run --label 'backup of db1' "$KEY" sh -c 'echo "$REDLOCK_FENCE"; sleep 0.3'
	pid=$(pid "next-$KEY")
	wait_until '[[ $(rcli 0 ZCARD "$(record):queue") == 1 ]]'
	asked=$NOW
	wait_until '((NOW - asked > 100))'
	began=$(server_ms 0)
	redlock release "$KEY" "$token"
	finish "next-$KEY"
	fence=$output
	redlock history --format json "$KEY"
	[[ $(of '.runs[0] | [.host, .pid, .user, .command, .fence, .exit]') == \
		"[\"$(uname -n)\",$pid,\"ann\",\"backup of db1\",$fence,0]" ]]
	[[ $(of ".runs[0] | .waited_ms >= 100, .held_ms >= 300, .began_ms >= $began, .began_ms + .held_ms <= $(server_ms 0)" |
		paste -sd ' ') == 'true true true true' ]]
}

@test "a run that had to wait is told as it was: when, where, how long it waited and held KEY, with which fence" {
	on_one_and_three as_it_was
}

@test "a KEY without a history has none" {
	only 0
	redlock history "$KEY"
	expect 0 "$KEY: no run is known"
	redlock history --format json "$KEY"
	expect 0 "\{\"key\":\"$KEY\",\"runs\":\[\],\"failed\":0,\"median_ms\":null,\"longest_ms\":null\}"
}

killed() {
	spawn "killed-$KEY" "$REDLOCK" run -t 2s -k 100ms --server-timeout 300ms "$KEY" sleep 60
	wait_until 'rcli 0 EXISTS "$KEY" | grep -q 1'
	kill -KILL "$(pid "killed-$KEY")"
	finish "killed-$KEY"
	redlock run "$KEY" true
	ended "$KEY" 'exit 0' unknown || return
	redlock run "$KEY" true
	ended "$KEY" 'exit 0' 'exit 0' unknown
	[[ $(of '.runs[2].held_ms <= 2100') == true ]]
}

@test "a run whose holder was killed is noted by the next grant, once, and ends with its lease" {
	on_one_and_three killed
}

@test "a holder of -P that was killed is noted, too" {
	only 0
	spawn killed "$REDLOCK" run -P 2 -t 2s -k 100ms --server-timeout 300ms "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	spawn other "$REDLOCK" run -P 2 "$KEY" sleep 60
	wait_until '[[ $(rcli 0 ZCARD "$KEY") == 2 ]]'
	kill -KILL "$(pid killed)"
	finish killed
	redlock run -P 2 -w 30 "$KEY" true
	ended "$KEY" 'exit 0' unknown
}

lost() {
	redlock run -t 2s -k 100ms --server-timeout 300ms "$KEY" sh -c '
		for socket; do "$TOOLS/ask" "$socket" DEL "$REDLOCK_KEY"; done; sleep 60' - "$SERVERS"/{0,1,2}/redis.sock
	[[ $status == 76 ]]
	ended "$KEY" lost
	redlock run "$KEY" true
	ended "$KEY" 'exit 0' lost
}

@test "a run that lost its lock is listed as lost, once" {
	on_one_and_three lost
}

nested() {
	redlock run -r "$KEY" "$REDLOCK" run -r "$KEY" sh -c 'exit 3'
	ended "$KEY" 'exit 3' || return
	redlock run -r "$KEY" sh -c '"$REDLOCK" run -r "$REDLOCK_KEY" sh -c "exit 5"; exit 6'
	ended "$KEY" 'exit 6' 'exit 3' || return
	redlock run -r "$KEY" sh -c 't=$("$REDLOCK" acquire -r "$REDLOCK_KEY"); "$REDLOCK" release "$REDLOCK_KEY" "$t"; exit 7'
	ended "$KEY" 'exit 7' 'exit 6' 'exit 3' || return
	redlock run -r "$KEY" sh -c '"$REDLOCK" acquire -r "$REDLOCK_KEY" >"$1"; exit 8' - "$TMP/token"
	ended "$KEY" 'exit 8' 'exit 7' 'exit 6' 'exit 3' || return
	redlock release "$KEY" "$(<"$TMP/token")"
	ended "$KEY" 'exit 8' 'exit 7' 'exit 6' 'exit 3' || return
	sh -ec 'eval "$("$REDLOCK" acquire -r --format shell "$1")"
		"$REDLOCK" run -r "$1" true
		"$REDLOCK" release "$1" "$REDLOCK_TOKEN"' - "$KEY-2"
	ended "$KEY-2" released
}

@test "with -r a run is the outermost one, however those within end" {
	on_one_and_three nested
}

# began_ago I MS: as server I has it, the last run of KEY began that long ago.
began_ago() {
	local run
	run=$(rcli "$1" LINDEX "$(record):runs" -1)
	[[ $run =~ since=([0-9]+) ]] || return
	rcli "$1" LSET "$(record):runs" -1 "${run/since=${BASH_REMATCH[1]}/since=$(($(server_ms "$1") - $2))}"$'\n'
}

# end_by I: $output has the end of the last success as server I knows it.
end_by() {
	local at
	[[ $(rcli "$1" LINDEX "$(record):runs" -1) =~ ^[^\ ]+\ ([0-9]+)\ .*since=([0-9]+) ]] || return
	at=$((BASH_REMATCH[1] + BASH_REMATCH[2]))
	[[ $output == *"redlock_last_success_timestamp_seconds{key=\"$KEY\"} ${at:0:-3}.${at: -3}"* ]]
}

@test "when a run began is what the server in the middle says: one may have been late, or another early" {
	only 0 1 2
	redlock run "$KEY" true
	wait_until '[[ $(rcli 0 LLEN "$(record):runs")$(rcli 1 LLEN "$(record):runs")$(rcli 2 LLEN "$(record):runs") == 111 ]]'
	began_ago 0 10000
	began_ago 1 1000000
	began_ago 2 205000
	redlock check --max-age 190s "$KEY"
	[[ $status == 2 && $output == *'last success 3m2'[0-9]*' ago'* ]]
	redlock check --max-age 900s "$KEY"
	[[ $status == 0 ]]
	redlock history --format json "$KEY"
	is_json
	(($(date_ms) - $(of .runs[0].began_ms) >= 200000 && $(date_ms) - $(of .runs[0].began_ms) < 900000))
	# list hears of it twice from each, as the last run and as the last success
	redlock list --format prometheus
	end_by 2
	# less than a second makes no difference: what list says does not change with it
	began_ago 0 200600
	began_ago 1 200300
	began_ago 2 200000
	redlock list --format prometheus
	end_by 0
}

@test "a waiter that stopped before it was granted KEY has run nothing" {
	local kind
	only 0
	for kind in -x '-P 1'; do
		KEY=$KEY$kind
		# shellcheck disable=SC2086 # words
		spawn "holder${kind% *}" "$REDLOCK" run $kind "$KEY" sleep 60
		wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
		# shellcheck disable=SC2086 # words
		spawn "waiter${kind% *}" "$REDLOCK" run $kind -t 5m "$KEY" true
		wait_until '[[ $(rcli 0 ZCARD "$(record):queue") == 1 ]]'
		stop_process "$(pid "waiter${kind% *}")"
		kill -TERM "$(pid "holder${kind% *}")"
		finish "holder${kind% *}"
		# shellcheck disable=SC2086 # words
		redlock run $kind -w 40 "$KEY" true
		expect 0
		ended "$KEY" 'exit 0' 'signal 15'
		kill -KILL "$(pid "waiter${kind% *}")"
	done
}

@test "a server that gets KEY back notes the run once" {
	local own=$SERVERS/1/redis.sock
	only 0 1 2
	redlock run -t 2s -k 100ms --server-timeout 300ms "$KEY" bash -c '
		for i in 1 2; do
			"$1/ask" "$2" DEL "$REDLOCK_KEY" >/dev/null
			until [[ $("$1/ask" "$2" EXISTS "$REDLOCK_KEY") == 1 ]]; do sleep 0.05; done
		done' - "$TOOLS" "$own"
	expect 0
	only 1
	ended "$KEY" 'exit 0'
	only 0 1 2
	ended "$KEY" 'exit 0'
}

@test "if one of three servers knows more of a run than the others, that is shown" {
	only 0 1 2
	redlock run "$KEY" true
	local entry
	entry=$(rcli 0 LRANGE "{$KEY}:redlock:runs" 0 -1)
	rcli 1 DEL "{$KEY}:redlock:runs"
	rcli 2 LSET "{$KEY}:redlock:runs" 0 "${entry/exit 0/unknown}"
	ended "$KEY" 'exit 0'
	rcli 0 DEL "{$KEY}:redlock:runs"
	ended "$KEY" ''
}

# noted: each server has the one run of KEY.
noted() {
	[[ $(servers_with 1 LLEN "$(record):runs") == 3 ]]
}

# tell_other I OLD NEW: what server I says of the run.
tell_other() {
	local entry
	entry=$(rcli "$1" LINDEX "$(record):runs" 0)
	rcli "$1" LSET "$(record):runs" 0 "${entry/$2/$3}"$'\n'
}

@test "if servers differ in how a run ended, the majority is believed; another token or fence is another run" {
	local digest fence
	only 0 1 2
	redlock run "$KEY" true
	wait_until noted
	tell_other 0 'exit 0' 'exit 3'
	ended "$KEY" 'exit 0'
	tell_other 2 'exit 0' 'exit 3'
	ended "$KEY" 'exit 3'
	redlock history --format json "$KEY"
	fence=$(of .runs[0].fence)
	tell_other 1 " $fence " " 1$fence "
	redlock history --format json "$KEY"
	[[ $(of '[.runs[].exit] | sort') == '[0,3]' ]]
	tell_other 1 " 1$fence " " $fence "
	ended "$KEY" 'exit 3'
	digest=$(rcli 1 LINDEX "$(record):runs" 0)
	digest=${digest%% *}
	tell_other 1 "$digest" "${digest:1}0"
	redlock history --format json "$KEY"
	[[ $(of '[.runs[].exit] | sort') == '[0,3]' ]]
}

@test "an attempt that is taken back is no run" {
	only 0
	hold
	redlock run -n "$KEY" true
	unhold
	ended "$KEY" ''
	redlock run --also "$KEY-2" "$KEY" true
	ended "$KEY" 'exit 0'
	ended "$KEY-2" 'exit 0'
}

@test "--also: if one KEY is lost, the run of the others is no success" {
	only 0
	redlock run -t 2s -k 1s --server-timeout 300ms --also "$KEY-2" "$KEY" \
		sh -c "trap 'exit 0' TERM; '$TOOLS/ask' '$SERVERS/0/redis.sock' DEL '$KEY-2'; while :; do sleep 0.05; done"
	[[ $status == 76 ]]
	ended "$KEY-2" lost
	ended "$KEY" lost
	redlock run --once-in 1h "$KEY" true
	expect 0
}

# others_do_not_count HOW...: COMMAND succeeds, and one of its keys is lost by this meanwhile, which nobody notices.
others_do_not_count() {
	redlock run --once-in 1h --also "$KEY-2" "$KEY" "$@"
	[[ $status == 0 && $stderr == "redlock: $KEY-2: the lock was gone before COMMAND ended: "* ]]
	ended "$KEY" lost
	redlock run -n --once-in 1h "$KEY" echo again
	expect 0 again
	KEY+=-next
}

# shellcheck disable=SC2317 # on_one_and_three calls it
lost_beside_others() {
	others_do_not_count sh -c 'for at in $(echo "$REDLOCK_SERVERS" | tr , " "); do "$TOOLS/ask" "${at#unix://}" DEL "$REDLOCK_KEY-2"; done'
	others_do_not_count sh -c '"$REDLOCK" break --now --yes "$REDLOCK_KEY-2" 2>/dev/null'
}

@test "--once-in --also: if one KEY was lost while COMMAND ran, and nobody noticed, the run of the others is no success" {
	on_one_and_three lost_beside_others
}

@test "--once-in --also: a run that somebody asks to stop, and that succeeds before it hears of that, is a success" {
	only 0
	redlock run -t 10m --once-in 1h --also "$KEY-2" "$KEY" sh -c '"$REDLOCK" break --yes "$1-2" >"$2/break.out" 2>"$2/break.err" &
		until "$TOOLS/ask" "$SERVERS/0/redis.sock" HKEYS "{$1-2}:redlock" | grep -q ^break:; do sleep 0.05; done' - "$KEY" "$TMP"
	expect 0
	ended "$KEY" 'exit 0'
	ended "$KEY-2" 'exit 0'
	redlock run -n --once-in 1h "$KEY" echo again
	[[ $status == 75 ]]
}

# ended_last KEY FIRST SECOND: the run that begins first, and ends so, ends last: it counts as the last of those that
# share KEY. $ending: ms, no later than its end.
ended_last() {
	KEY=$1
	spawn long "$REDLOCK" run -P 2 "$KEY" sh -c "until [ -e '$TMP/end' ]; do sleep 0.05; done; exit $2"
	wait_until '[[ $(rcli 0 ZCARD "$KEY") == 1 ]]'
	redlock run -P 2 "$KEY" sh -c "exit $3"
	expect "$3"
	pause 0.5
	ending=$NOW
	touch "$TMP/end"
	finish long
	expect "$2"
	rm "$TMP/end"
	redlock status "$KEY"
	[[ $output == "$KEY: free, "*"; last held by "*", exit $2"$'\n'* ]]
	redlock list --format prometheus "$KEY"
	[[ $output == *"redlock_last_run_exit_status{key=\"$KEY\"} $2"* ]]
}

each_ends_last() {
	local ending part
	ended_last "$1-3" 3 0
	ended_last "$1-0" 0 3
	ended_last "$1" 0 0
	redlock check --max-age 1h "$KEY"
	[[ $status == 0 && $output =~ ' age='([0-9]+)\.?([0-9]*)s ]]
	part=${BASH_REMATCH[2]}000
	((BASH_REMATCH[1] * 1000 + 10#${part:0:3} <= NOW - ending + 10)) ||
		{ echo "$output" >&2 && false; } # both are cut to hundredths
}

@test "of runs that share KEY the last one is the one that ended last" {
	only 0
	each_ends_last "$KEY-one"
	only 0 1 2
	each_ends_last "$KEY-three"
}

last_twenty() {
	local i
	for ((i = 1; i < 31; i++)); do write_runs "$i" $((100000000 - i * 1000)) "exit $((i > 1))"; done
	redlock run "$KEY" false
	wait_until '[[ $(servers_with 21 LLEN "$(record):runs") == 3 || $REDLOCK_SERVERS != *,* ]]'
	[[ $(rcli 0 LLEN "$(record):runs") == 21 ]]
	redlock history --format json "$KEY"
	[[ $(of '(.runs | length), .failed' | paste -sd ' ') == '20 20' ]]
	redlock run --once-in 40h "$KEY" true
	expect 75 '' "redlock: $KEY: web3 ran it 1d3h ago for 1s, exit 0; --once-in lets it run again in 12h[0-9]+m"
}

@test "the last 20 runs stay, and the last that succeeded however long ago" {
	on_one_and_three last_twenty
}

@test "a success that stays though it is older than the last 20 runs is not one of them" {
	local i last
	only 0
	redlock run "$KEY" true
	for i in {1..45}; do
		redlock run "$KEY" sh -c "exit $i"
		((i < 30)) || {
			mapfile -t last < <(seq -f 'exit %g' "$i" -1 $((i - 19)))
			ended "$KEY" "${last[@]}"
		}
	done
	redlock check --max-age 1h "$KEY"
	expect 0 '.* last success .*'
	redlock run --once-in 1h "$KEY" true
	expect 75 '' "redlock: $KEY: .* ran it .*"
}

@test "where an earlier version has left it among the last 20, it is shown until the next run only" {
	local i
	only 0
	for i in {1..9}; do write_run 0 $((40000 - i)) 'exit 1'; done
	write_run 0 5000000 'exit 0'
	for i in {1..10}; do write_run 0 $((20000 - i)) 'exit 1'; done
	redlock run "$KEY" false
	redlock history --format json "$KEY"
	[[ $(of '(.runs | length), .failed' | paste -sd ' ') == '20 20' ]]
	redlock run --once-in 2h "$KEY" true
	expect 75 '' "redlock: $KEY: web3 ran it 1h23m[^ ]* ago for 1s, exit 0; .*"
}

@test "of the successes that have to go the last to begin stays, and the last to end" {
	local i
	only 0
	write_run 0 5000000 'exit 0'
	write_run 0 9000000 'exit 0' "$KEY" 8990000 # ended 10 s ago
	for ((i = 0; i < 40; i++)); do redlock run "$KEY" false; done
	redlock check --max-age 1h "$KEY"
	expect 0 '.* last success [0-9.]+s ago .*'
	redlock run --once-in 2h "$KEY" true
	expect 75 '' "redlock: $KEY: web3 ran it 1h23m[^ ]* ago for 1s, exit 0; .*"
}

@test "of two successes the later one stays, in whatever order they are written" {
	local i
	only 0
	write_run 0 3000000 "exit 0"
	write_run 0 5400000 "exit 0"
	for ((i = 0; i < 29; i++)); do write_run 0 $((40000 - i)) "exit 1"; done
	redlock run "$KEY" false
	redlock run --once-in 70m "$KEY" true
	expect 75 '' "redlock: $KEY: web3 ran it 5[0-9]m[^ ]* ago for 1s, exit 0; .*"
}

@test "entries that make no sense are passed over, and shown harmlessly" {
	local name="{$KEY}:redlock:runs" long
	only 0
	long=$(printf '%01000d' 0)
	for entry in '' x $'\n' $'0123456789abcdef 1 2 3\n' $'0123456789abcdef 1 2 3 \nsince=1 -\n' \
		$'0123456789abcdef -1 2 3 exit 0\nsince=1 -\n' $'0123456789abcdef 1 99999999999999999999 3 exit 0\nsince=1 -\n' \
		$'0123456789abcdef 1 2 3 exit 0\nsince=x -\n' $'0123456789abcdef 1 2 3 exit 0' "0123456789abcdef 1 2 3 $long"; do
		rcli 0 RPUSH "$name" "$entry"
	done
	ended "$KEY" ''
	rcli 0 RPUSH "$name" $'0123456789abcdef 1 2 3 \033[2J\nsince=1700000000000 -\nhost=\033[2J\ncommand=\033]0;x\n'
	redlock history "$KEY"
	[[ $status == 0 ]]
	is_printable "${output//$'\n'/}"
	ended "$KEY" other
	redlock status "$KEY"
	[[ $status == 0 ]]
	is_printable "${output//$'\n'/}"
	rcli 0 DEL "$name"
	rcli 0 SET "$name" data
	redlock history "$KEY"
	[[ $status != 0 && $stderr == *"$KEY: "*WRONGTYPE* ]]
	redlock run "$KEY" true
	expect 0
}

@test "what status says of the last run counts from its end" {
	only 0
	redlock run "$KEY" true
	rcli 0 DEL "{$KEY}:redlock:runs"
	write_run 0 7500000 'exit 0' "$KEY" 3600000
	redlock status "$KEY"
	matches "${lines[0]}" "$KEY: free, fence [0-9]+; last held by web3 1h05m ago for 1h00m, exit 0"
}

last_run() {
	redlock run "$KEY" sh -c 'exit 2'
	redlock status "$KEY"
	matches "${lines[0]}" "$KEY: free, fence [0-9]+; last held by [^ ]+ $TIME ago for $TIME, exit 2"
	redlock status --format json "$KEY"
	[[ $(of '.last_run | .end, .exit' | paste -sd ' ') == '"exit" 2' ]]
}

@test "status of a free KEY names its last run" {
	on_one_and_three last_run
}

usually() {
	write_runs 1 100000 'exit 0'
	spawn "usual-$KEY" "$REDLOCK" run "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .* pid [0-9]+ 'sleep 60' for $TIME \(usually 1s\)"
	redlock run -n -E 0 "$KEY" true
	expect 0
}

@test "a busy message says how long KEY is usually held" {
	on_one_and_three usually
}

drawn() {
	local i held=(100 1000 4000 2000 3000)
	for i in 0 1 2 3 4; do write_runs "$i" $((60000 - i * 10000)) "exit $((i % 2))" "${held[i]}"; done
	write_runs 5 5000 unknown
	at_columns 100 history "$KEY"
	[[ ${lines[0]} == "$KEY: 6 runs, median 2s, longest 4s, 50% failed" && ${lines[1]} == '  ▁▂▇▃▅?' ]]
	LC_ALL=C at_columns 100 history "$KEY"
	[[ ${lines[1]} == '  20'* ]]
	redlock history "$KEY"
	[[ ${lines[0]} == "$KEY: 6 runs, median 2s, longest 4s, 50% failed" && ${lines[1]} == '  20'* ]]
}

@test "a line tells the median, the longest and how many failed; on a terminal with UTF-8 a bar stands for each run" {
	on_one_and_three drawn
}

@test "list is not confused by histories" {
	only 0
	redlock run "$KEY" "$REDLOCK" list "$KEY*"
	[[ $status == 0 && ${#lines[@]} == 1 ]]
	redlock list "*$KEY*"
	expect 0
}

@test "a user without the rights for it has locks, and no history" {
	only 0
	rcli 0 ACL SETUSER ann on '>pw' '~*' '&*' +@all -rpush -lrange -ltrim
	local as=unix://ann:pw@$SERVERS/0/redis.sock
	redlock run -S "$as" "$KEY" true
	expect 0
	ended "$KEY" ''
	redlock status -S "$as" "$KEY"
	[[ $status == 0 && ! $stderr && $output == "$KEY: free, fence "* ]]
	redlock history -S "$as" "$KEY"
	[[ $status == 77 && $stderr == "redlock: $KEY: "* ]]
	redlock run -S "$as" --once-in 1h "$KEY" touch "$TMP/ran"
	[[ $status == 77 && $stderr == "redlock: $KEY: "* && ! -e $TMP/ran ]]
}

@test "whoever may not trim the history notes each run once" {
	local i
	only 0
	rcli 0 ACL SETUSER eve on '>pw' '~*' '&*' +@all -ltrim
	redlock run "$KEY" true
	for i in {2..30}; do write_run 0 "$i" 'exit 1'; done
	for i in 31 32; do
		redlock run -S "unix://eve:pw@$SERVERS/0/redis.sock" "$KEY" false
		[[ $(rcli 0 LLEN "$(record):runs") == "$i" ]]
	done
	redlock run "$KEY" false
	[[ $(rcli 0 LLEN "$(record):runs") == 21 ]]
}

lost_at_end() {
	redlock run --once-in 1h "$KEY" sh -c 'for at in $(echo "$REDLOCK_SERVERS" | tr , " "); do redis-cli -s "${at#unix://}" DEL "$REDLOCK_KEY"; done'
	[[ $status == 0 && $stderr == *": the lock was gone before COMMAND ended: "* ]]
	ended "$KEY" lost
	redlock run --once-in 1h "$KEY" true
	expect 0
	wait_until 'ended "$KEY" "exit 0" lost'
}

@test "a run whose lock was gone before COMMAND ended was lost, and no success" {
	on_one_and_three lost_at_end
}

@test "a user whose rights name each key has locks, and no history" {
	local name="{$KEY}:redlock"
	only 0
	rcli 0 ACL SETUSER ben on '>pw' "~$KEY" "~$name" "~$name:queue" "~$name:wishes" "~$name:waits" '&*' +@all
	redlock run -S "unix://ben:pw@$SERVERS/0/redis.sock" "$KEY" true
	expect 0
	ended "$KEY" ''
}

# in_two_scripts OPTION...: of each server such a run asks to take KEY and to release it, and no more; whole, and
# once more, the release only of one that is slow to answer (drain.h).
in_two_scripts() {
	local i
	scripts_known
	redlock run "$@" "$KEY" true
	expect 0
	wait_until '[[ $(servers_with 1 LLEN "$(record):runs") == $(tr , "\n" <<<"$REDLOCK_SERVERS" | wc -l) ]]'
	for i in 0 1 2; do
		[[ $REDLOCK_SERVERS != *"$(server_url "$i")"* ||
			$(rcli "$i" INFO commandstats) == *'cmdstat_evalsha:calls=2,'* ]]
	done
}

@test "a run is noted with its release, which takes no further request" {
	on_one_and_three in_two_scripts
}

# renews COUNT COMMAND [OPTION...]: a run with two keys of its own renews so many of them.
renews() {
	local count=$1 command=$2
	shift 2
	KEY+=-next
	redlock run -t 10m "$@" --also "$KEY-2" "$KEY" "$command"
	requests 0 >/dev/null
	[[ ! $stderr && $(grep -c "\"$KEY\(-2\)\?\".* \"600000\" \"-\" \"0\"$" "$TMP/monitor0.out") == "$count" ]]
}

@test "several keys are renewed before their release only if --once-in or --min-hold depends on it" {
	only 0
	monitor 0
	renews 0 true
	renews 2 true --once-in 1h
	renews 0 false --once-in 1h
	renews 2 false --min-hold 10m
}

# ---------------------------------------------------------------- --once-in

once() {
	local done="redlock: $KEY: [^ ]+ ran it $TIME ago for $TIME, exit 0; --once-in lets it run again in (59m|1h)[0-9ms]*"
	redlock run --once-in 1h "$KEY" false
	expect 1
	redlock run --once-in 1h "$KEY" echo ran
	expect 0 ran
	redlock run --once-in 1h "$KEY" echo ran
	expect 75 '' "$done"
	redlock run -n -E 0 --once-in 1h "$KEY" echo ran
	expect 0
	redlock run --poll -E 9 --once-in 1h "$KEY" echo ran
	expect 9 '' "$done"
	redlock run --status-fd 1 --once-in 1h "$KEY" echo ran
	[[ $status == 75 && $(of .outcome) == '"done-already"' ]]
	redlock run --once-in 1ms "$KEY" echo ran
	expect 0 ran
}

@test "--once-in: what succeeded is not run again, what failed is" {
	on_one_and_three once
}

@test "--once-in is decided with the acquire, which takes no further request" {
	on_one_and_three in_two_scripts --once-in 1h
}

from_its_beginning() {
	write_runs 1 90000 'exit 0' 60000
	redlock run --once-in 1h "$KEY" echo ran
	expect 75 '' "redlock: $KEY: web3 ran it [1-9]m[0-9]+s ago for 1m00s, exit 0; --once-in lets it run again in 5[0-9]m[0-9]+s"
	redlock run --once-in 80s "$KEY" echo ran
	expect 0 ran
}

@test "--once-in counts from the beginning of the run that succeeded" {
	on_one_and_three from_its_beginning
}

# Of several keys KEY is first: it is held while the other one is waited for, but that is no run.
from_the_last_key() {
	local other=$KEY-other token
	token=$("$REDLOCK" acquire "$other")
	spawn several "$REDLOCK" run --once-in 1h --also "$other" "$KEY" true
	wait_until 'KEY=$other queued 1 0 && [[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	pause 1
	redlock release "$other" "$token"
	finish several
	expect 0
	redlock history --format json "$KEY"
	(($(of '.runs[0] | .held_ms < 1000 and .waited_ms >= 1000 and .ago_ms < 1000 * '"$SLOW"' + 900 | if . then 1 else 0 end')))
	redlock run --once-in 1h "$KEY" true
	expect 75 '' "redlock: $KEY: .*--once-in lets it run again in (1h|59m[0-9]+s)"
}

@test "history: what the release takes is no part of a run" {
	local began continued
	servers_start 1
	only 0
	began=$NOW
	spawn holder "$REDLOCK" run -t 2m --server-timeout 30s "$KEY" sh -c "kill -STOP $(server_pid 0)"
	wait_until '[[ $(state "$(server_pid 0)") == T ]]'
	pause 2
	continued=$NOW
	server_continue 0
	finish holder
	expect 0
	redlock history --format json "$KEY"
	[[ $(of ".runs[0] | .held_ms < $continued - $began - 1000") == true ]]
}

# stopped_beyond_its_lease OPTION...: COMMAND ends in time, and redlock goes on long after its lease.
stopped_beyond_its_lease() {
	local later key ttl=$((4000 * SLOW))
	takes holder -t "${ttl}ms" "$@"
	wait_until 'entered holder'
	stop_process "$(pid holder)"
	ends holder
	wait_until 'grep -qxF -- -holder "$TMP/order"'
	later=$((NOW + 3 * ttl))
	wait_until '((NOW >= later))'
	kill -CONT "$(pid holder)"
	finish holder
	expect 0
	for key in $(rcli 0 KEYS "*$KEY*:runs"); do
		key=${key#*{} key=${key%\}*}
		ended "$key" 'exit 0'
		[[ $(of ".runs[0].held_ms <= $ttl") == true ]]
		redlock check --max-age "${ttl}ms" "$key"
		[[ $status == 2 && $output == *"last success "* ]]
	done
}

@test "a run has held KEY until its lease was over, if it could not note its end sooner" {
	only 0
	stopped_beyond_its_lease
	KEY+=-more
	rm "$TMP"/{order,end.holder}
	stopped_beyond_its_lease --also "$KEY-2"
	redlock history "$KEY-2"
	[[ $output == *': 1 run, '* ]]
}

released_beyond_its_lease() {
	local token later
	token=$("$REDLOCK" acquire -t 500ms "$KEY")
	later=$((NOW + 3000))
	wait_until '((NOW >= later))'
	redlock release "$KEY" "$token"
	[[ $status == 1 ]]
	ended "$KEY" released
	[[ $(of '.runs[0].held_ms <= 500') == true ]]
}

@test "what acquire took is held until its lease is over, however late it is released" {
	on_one_and_three released_beyond_its_lease
}

@test "--once-in, history: with several keys a run begins when the last of them is granted" {
	on_one_and_three from_the_last_key
}

in_a_run() {
	redlock run --once-in 1h -r "$KEY" true
	expect 0
	redlock run -r "$KEY" sh -c '"$REDLOCK" run -r --once-in 1h "$1" echo ran; echo "inner $?"
		"$REDLOCK" run -r "$1" echo ran; echo "inner $?"' - "$KEY"
	expect 0 $'inner 75\nran\ninner 0' "redlock: $KEY: .*--once-in lets it run again in .*"
	[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
}

@test "--once-in counts in another run of the same owner, too" {
	export REDLOCK
	on_one_and_three in_a_run
}

by_their_clocks() {
	turn 0
	redlock run --once-in 1h "$KEY" echo ran
	expect 0 ran
	turn 3000
	redlock run --once-in 1h "$KEY" echo ran
	[[ $status == 75 && ! $output ]]
	turn 3700
	redlock run --once-in 1h "$KEY" echo ran
	expect 0 ran
}

@test "--once-in: how long ago a success was is told by the servers' clocks, not by ours" {
	clocked servers_start 3
	on_one_and_three by_their_clocks
}

# begun_at I [KEY]: when its holder's run began, by the clock of server I (ms).
begun_at() {
	local text
	text=$(rcli "$1" HGET "$(record "${2-$KEY}")" "holder:$(rcli "$1" GET "${2-$KEY}")")
	text=${text#since=}
	echo "${text%%[!0-9]*}"
}

# What server 1 knows is removed, as if the release had never come there. Server 2 is two hours behind.
@test "--once-in: a server that gets the lock back tells by its own clock how long ago the run began" {
	servers_start 3
	server_kill 2
	clocked server_launch 2
	server_ready 2
	turn -7200
	spawn run "$REDLOCK" run -t 2s --once-in 1h "$KEY" sh -c 'until [ -e "$1" ]; do sleep 0.05; done' - "$TMP/end"
	wait_until '[[ $(servers_with 1 EXISTS "$KEY") == 3 ]]'
	rcli 2 DEL "$KEY" "$(record)"
	wait_until '[[ $(rcli 2 EXISTS "$KEY") == 1 ]]'
	local begun now
	begun=$(begun_at 2) now=$(server_ms 2)
	echo "begun at $begun, now $now"
	((begun <= now && now - begun < 60000))
	touch "$TMP/end"
	finish run
	expect 0
	rcli 1 DEL "$(record):runs"
	server_stop 0
	redlock run --once-in 1h "$KEY" echo ran
	[[ $status == 75 && ! $output ]]
}

@test "of several keys one that was lost and is asked for anew is held from then on" {
	servers_start 1
	local other=$KEY-other token now
	token=$("$REDLOCK" acquire -t 5m "$other")
	spawn several "$REDLOCK" run -t 2s --also "$other" "$KEY" sh -c 'until [ -e "$1" ]; do sleep 0.05; done' - "$TMP/end"
	wait_until 'KEY=$other queued 1 0 && [[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	renewals 1
	rcli 0 DEL "$KEY"
	now=$(server_ms 0)
	redlock release "$other" "$token"
	wait_until '[[ $(rcli 0 GET "$other") && $(rcli 0 GET "$other") != "$token" && $(rcli 0 EXISTS "$KEY") == 1 ]]'
	echo "begun at $(begun_at 0), lost at $now"
	(($(begun_at 0) >= now))
	touch "$TMP/end"
	finish several
	expect 0
}

once_of_each_kind() {
	local kind
	for kind in -x -r -s '-P 2'; do
		# shellcheck disable=SC2086 # words
		redlock run $kind --once-in 1h "$KEY$kind" true
		expect 0
		# shellcheck disable=SC2086 # words
		redlock run $kind --once-in 1h "$KEY$kind" true
		[[ $status == 75 ]] || return
	done
	redlock run --also "$KEY-b" --once-in 1h "$KEY-a" true
	expect 0
	redlock run --also "$KEY-c" --once-in 1h "$KEY-b" true
	[[ $status == 75 && $stderr == "redlock: $KEY-b: "*"ran it"* ]] || return
	[[ $(rcli 0 EXISTS "$KEY-c") == 0 ]]
}

@test "--once-in works with each kind of lock, and with --also" {
	on_one_and_three once_of_each_kind
}

granted_by_message() {
	token=$("$REDLOCK" acquire -t 5m "$KEY")
	spawn "next-$KEY" "$REDLOCK" run --once-in 1h "$KEY" true
	wait_until '[[ $(rcli 0 ZCARD "$(record):queue") == 1 ]]'
	redlock release "$KEY" "$token"
	finish "next-$KEY"
	expect 0
	redlock run --once-in 1h "$KEY" echo ran
	[[ $status == 75 && ! $output ]]
}

@test "--once-in: what a waiter has run counts, however soon it was over" {
	on_one_and_three granted_by_message
}

waiters() {
	local i
	spawn "first-$KEY" "$REDLOCK" run --once-in 1h "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	for i in 1 2 3; do spawn "$i-$KEY" "$REDLOCK" run --once-in 1h "$KEY" touch "$TMP/$KEY.ran"; done
	spawn "last-$KEY" "$REDLOCK" run "$KEY" true
	wait_until '[[ $(rcli 0 ZCARD "$(record):queue") == 4 ]]'
	for i in 0 1 2; do write_run "$i" 5000 'exit 0'; done
	kill -TERM "$(pid "first-$KEY")"
	finish "first-$KEY"
	for i in 1 2 3; do
		finish "$i-$KEY"
		expect 75 '' ".* ran it .*" || return
	done
	finish "last-$KEY"
	expect 0
	[[ ! -e $TMP/$KEY.ran && $(rcli 0 ZCARD "$(record):queue") == 0 ]]
}

@test "--once-in: waiters in line do not run what has succeeded meanwhile; those behind them do" {
	on_one_and_three waiters
}

@test "--once-in: a success that a quorum has heard of counts, whichever server is away" {
	local i lacks away base=$KEY
	for lacks in 0 1 2; do
		KEY=$base-$lacks
		for i in 0 1 2; do [[ $i == "$lacks" ]] || write_run "$i" 5000 'exit 0'; done
		for away in 0 1 2; do
			only 0 1 2
			REDLOCK_SERVERS=${REDLOCK_SERVERS/"$(server_url "$away")"/$(server_url "$away").away}
			redlock run --once-in 1h "$KEY" true
			expect 75 '' "redlock: $KEY: web3 ran it .*"
		done
	done
}

@test "--once-in: a success from more than an hour ahead is not believed, nor one that makes no sense" {
	only 0
	write_run 0 -7200000 'exit 0'
	rcli 0 RPUSH "{$KEY}:redlock:runs" $'x x exit 0\nsince=1700000000000 -\n'
	rcli 0 RPUSH "{$KEY}:redlock:runs" $'0123456789abcdef 1 99999999999999999999 3 exit 0\nsince=x -\n'
	redlock run --once-in 1h "$KEY" echo ran
	expect 0 ran
}

@test "the last real success is kept, not one dated in the future" {
	local i
	only 0
	write_run 0 -7200000 'exit 0'
	write_run 0 50000 'exit 0'
	for i in {1..28}; do write_run 0 40000 'exit 1'; done
	redlock run "$KEY" false
	(($(rcli 0 LLEN "$(record):runs") == 21))
	redlock run --once-in 1h "$KEY" echo ran
	[[ $status == 75 ]]
	redlock status "$KEY"
	[[ $output != *"exit 0"* ]]
}

@test "--once-in: a success is noted though the release overtakes the answer to a heartbeat" {
	local far=$SERVERS/0/far
	only 0
	"$TOOLS/start" -k "$TOOLS/delay" 100000 100000 "$far" "$SERVERS/0/redis.sock" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	disown $!
	wait_until '[[ -S $far ]]'
	spawn holder "$REDLOCK" run "$KEY" sleep 4.9
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 ]]'
	redlock run -S "unix://$far" -t 30s "$KEY" sleep 0.1
	expect 0
	finish holder
	ended "$KEY" 'exit 0' 'exit 0'
}

@test "--once-in with a shorter --remember is refused" {
	redlock run --once-in 2h --remember 1h "$KEY" true
	expect 64 '' 'redlock: --once-in is longer than --remember.*'
}

# ---------------------------------------------------------------- --remember

remembers() {
	local ttl
	redlock run --remember 1h "$KEY" true
	for name in "{$KEY}:redlock" "{$KEY}:redlock:runs"; do
		ttl=$(rcli 0 PTTL "$name")
		((ttl > 3000000 && ttl <= (3600000 + 30000) * 65 / 64)) || { echo "$name: $ttl" >&2; return 1; }
	done
	token=$("$REDLOCK" acquire --remember 30d "$KEY")
	redlock release "$KEY" "$token"
	for name in "{$KEY}:redlock" "{$KEY}:redlock:runs"; do
		ttl=$(rcli 0 PTTL "$name")
		((ttl > 2590000000)) || { echo "$name: $ttl" >&2; return 1; }
	done
	redlock run --once-in 30d "$KEY-2" true
	(($(rcli 0 PTTL "{$KEY-2}:redlock:runs") > 2590000000))
	# and no later run makes that shorter
	redlock run "$KEY-2" true
	redlock run --remember 1s "$KEY-2" false
	for name in "{$KEY-2}:redlock" "{$KEY-2}:redlock:runs"; do
		(($(rcli 0 PTTL "$name") > 2590000000)) || { echo "$name: $(rcli 0 PTTL "$name")" >&2; return 1; }
	done
}

prolonged() {
	local name
	redlock run "$KEY" true
	for name in "$(record)" "$(record):runs"; do
		rcli 0 PEXPIRE "$name" 604000000 >/dev/null
	done
	"$@"
	for name in "$(record)" "$(record):runs"; do
		(($(rcli 0 PTTL "$name") > 604700000)) || { echo "$name: $(rcli 0 PTTL "$name")" >&2; return 1; }
	done
}

held_long() {
	local token
	token=$("$REDLOCK" acquire -t 20s "$KEY")
	for name in "$(record)" "$(record):runs"; do
		rcli 0 PEXPIRE "$name" 604000000 >/dev/null
	done
	redlock extend "$KEY" "$token"
	expect 0
}

run_again() {
	redlock run "$KEY" false
}

@test "--remember: each grant and each renewal sees to it that the record and the history last" {
	on_one_and_three prolonged run_again
	KEY=$KEY-held on_one_and_three prolonged held_long
}

a_week() {
	local i name ttl
	redlock run "$KEY" true
	for i in 0 1 2; do
		[[ $REDLOCK_SERVERS == *"$(server_url "$i")"* ]] || continue
		wait_until '[[ $(rcli "$i" LLEN "$(record):runs") == 1 ]]'
		for name in "$(record)" "$(record):runs"; do
			ttl=$(rcli "$i" PTTL "$name")
			((ttl > 604700000 && ttl <= (604800000 + 30000) * 65 / 64))
		done
	done
}

@test "the record and the history last for 7 days, unless told otherwise" {
	on_one_and_three a_week
}

others_remember() {
	local other options
	other=$("$REDLOCK" acquire -s -t 5m "$KEY")
	for options in '' '--min-hold 10ms'; do
		# shellcheck disable=SC2086 # words
		redlock run -s --remember 0 $options "$KEY" true
		expect 0
		(($(rcli 0 PTTL "$(record)") > 200000)) || return
	done
	redlock extend "$KEY" "$other"
	expect 0
	redlock release "$KEY" "$other"
	expect 0
}

@test "--remember: the record outlives every lease of KEY, even if the last to come has --remember 0" {
	on_one_and_three others_remember
}

@test "--remember: the record and the history last that long, whoever releases KEY" {
	on_one_and_three remembers
}

@test "a release frees KEY, whatever stands in its record" {
	local token text
	only 0
	for text in '%2' '5%' '' $'a\nb'; do
		token=$("$REDLOCK" acquire "$KEY")
		rcli 0 HSET "$(record)" fence "$text"
		redlock release "$KEY" "$token"
		expect 0
		[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
		rcli 0 DEL "$(record)"
	done
}

@test "--remember 0: nothing stays, and --min-hold keeps KEY" {
	only 0
	redlock run --remember 0 -t 1s -k 100ms --server-timeout 200ms "$KEY" true
	expect 0
	[[ $(rcli 0 EXISTS "{$KEY}:redlock:runs") == 0 ]]
	wait_until '[[ $(rcli 0 EXISTS "$(record)") == 0 ]]'
	redlock run --remember 0 --min-hold 1m "$KEY" true
	expect 0
	# while KEY is held, its record has an age
	[[ $(rcli 0 HGET "$(record)" began) ]]
	(($(rcli 0 PTTL "$KEY") > 30000 && $(rcli 0 PTTL "$(record)") > 30000))
	redlock status "$KEY"
	[[ $output == *holder* ]]
}

@test "--min-hold: the run is noted when COMMAND ends, once" {
	only 0
	redlock run --min-hold 1s "$KEY" sh -c 'exit 3'
	ended "$KEY" 'exit 3'
	redlock run -w 30 "$KEY" true
	ended "$KEY" 'exit 0' 'exit 3'
}
