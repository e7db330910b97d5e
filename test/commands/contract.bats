#!/usr/bin/env bats
# What scripts and programs rely on, from 0.2 on: exit statuses, the members of JSON, options, variables. A test
# here fails if any of it changes. What has been added may be added here; nothing may go, or mean something else.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helper

setup_file() {
	servers_start 1
}

# shape: of each JSON object in $output: "member type" for each member, in the order of their names; for arrays the
# types of what is in them, and the members of objects in them, too. What is null in one object and not in another
# has both types. (`at` is a string if Sentinels or nodes have named the server.)
shape() {
	jq -r 'def walk_in(path): if type == "object" then to_entries[] | .key as $k | .value | walk_in(path + [$k])
		elif type == "array" then (path | join(".")) + " array", (.[] | walk_in(path + ["[]"]))
		else (path | join(".")) + " " + type end; walk_in([])' <<<"$output" |
		LC_ALL=C sort -u | awk '$1 != name { if (name) print text; name = $1; text = $0; next }
			{ text = text "|" $2 } END { print text }'
}

# members WANT: $output has these members, and no other.
members() {
	diff <(sed 's/^[[:space:]]*//; /^$/d' <<<"$1") <(shape)
}

@test "the members of status --format json" {
	local all
	"$REDLOCK" run "$KEY-free" true
	redlock status --format json "$KEY-free"
	all=$output
	"$REDLOCK" acquire -P 2 --pid $$ --on-lost warn --label x "$KEY" >/dev/null
	wait_until '[[ $("$REDLOCK" status "$KEY") == *"kept by"* ]]'
	rcli 0 ZADD "$KEY" $(($(server_ms 0) + 60000)) somebody
	rcli 0 ZADD "$KEY" $(($(server_ms 0) + 60000)) asked
	rcli 0 HSET "$(record)" holder:asked $'since=1 -\nhost=web3\n' break:asked $'at=1\nby=ops@jump1\nreason=why\n'
	takes waiter -P 2 -w 60s
	wait_until 'queued 1 0'
	rcli 0 ZADD "$(record):queue" "$(server_ms 0)" nobody
	redlock status --format json "$KEY"
	all+=$'\n'$output
	redlock status --format json -S unix:///nonexistent/s "$KEY"
	output=$all$'\n'$output
	members '
		fence null|number
		holders array
		holders.[].break null
		holders.[].break.asked_ms number
		holders.[].break.by string
		holders.[].break.reason string
		holders.[].command null|string
		holders.[].count number
		holders.[].held_ms null|number
		holders.[].host null|string
		holders.[].keeper_pid null|number
		holders.[].left_ms number
		holders.[].partial boolean
		holders.[].pid null|number
		holders.[].protocol null|number
		holders.[].servers number
		holders.[].slot null|number
		holders.[].user null|string
		key string
		kind null|string
		last_run null
		last_run.age_ms number
		last_run.began_ms number
		last_run.by null
		last_run.command string
		last_run.end string
		last_run.exit number
		last_run.fence number
		last_run.held_ms number
		last_run.host string
		last_run.pid number
		last_run.signal null
		last_run.user string
		last_run.waited_ms number
		more_holders number
		more_waiters number
		permits null|number
		queue array
		queue.[].command null|string
		queue.[].host null|string
		queue.[].permits null|number
		queue.[].pid null|number
		queue.[].protocol null|number
		queue.[].servers number
		queue.[].user null|string
		queue.[].waited_ms number
		queue.[].wants null|string
		servers array
		servers.[].at null
		servers.[].error null|string
		servers.[].fence null|number
		servers.[].quarantined boolean
		servers.[].replica boolean
		servers.[].server string
		servers.[].vote null|string
		state string'
	[[ $(jq -r '.state, .kind' <<<"$output" | paste -sd ' ') == 'free null held permits unknown null' ]]
}

@test "the members of history --format json" {
	"$REDLOCK" run "$KEY" true
	run "$REDLOCK" run "$KEY" sh -c 'kill -TERM $$'
	redlock history --format json "$KEY"
	members '
		failed number
		key string
		longest_ms number
		median_ms number
		runs array
		runs.[].age_ms number
		runs.[].began_ms number
		runs.[].by null
		runs.[].command string
		runs.[].end string
		runs.[].exit null|number
		runs.[].fence number
		runs.[].held_ms number
		runs.[].host string
		runs.[].pid number
		runs.[].signal null|number
		runs.[].user string
		runs.[].waited_ms number'
}

@test "the members of list --format json" {
	local all
	"$REDLOCK" acquire -P 2 "$KEY" >/dev/null
	rcli 0 ZADD "$(record):queue" "$(server_ms 0)" somebody
	"$REDLOCK" run "$KEY-foreign" true
	rcli 0 SET "$KEY-foreign" somebody
	rcli 0 HSET "$(KEY=$KEY-later record)" fence 'v2 1'
	redlock list --format json "$KEY*"
	members '
		command null|string
		held_ms null|number
		holders null|number
		host null|string
		key string
		kind null|string
		left_ms null|number
		oldest_wait_ms null|number
		permits null|number
		pid null|number
		protocol null|number
		slot null|number
		state null|string
		user null|string
		waiting null|number'
}

@test "the members of acquire --format json, and the variables of --format shell" {
	redlock acquire --format json "$KEY"
	members '
		fence number
		key string
		slot null
		token string
		ttl_ms number
		valid_ms number'
	redlock acquire --format json --also "$KEY-4" "$KEY-3"
	members "
		fence number
		fences.$KEY-3 number
		fences.$KEY-4 number
		key string
		slot null
		token string
		ttl_ms number
		valid_ms number"
	redlock acquire --format shell --also "$KEY-6" "$KEY-5"
	[[ $(grep -o 'REDLOCK_[A-Z_]*=' <<<"$output" | sort -u | paste -sd ' ') == \
		'REDLOCK_FENCE= REDLOCK_FENCES= REDLOCK_HELD= REDLOCK_KEY= REDLOCK_TOKEN= REDLOCK_VALID_UNTIL=' ]]
	redlock acquire --format shell "$KEY-2"
	[[ $(grep -o 'REDLOCK_[A-Z_]*=' <<<"$output" | sort -u | paste -sd ' ') == \
		'REDLOCK_FENCE= REDLOCK_HELD= REDLOCK_KEY= REDLOCK_TOKEN= REDLOCK_VALID_UNTIL=' ]]
}

@test "the members of run --status-fd, and its outcomes" {
	local all outcome
	tell() {
		timeout -k 1 60 "$REDLOCK" run --status-fd 5 "$@" 5>"$TMP/status" 2>/dev/null || :
		all+=$(<"$TMP/status")$'\n'
	}
	tell "$KEY" true
	tell "$KEY" sh -c 'kill -9 $$'
	tell --max-hold 100ms "$KEY" sleep 60
	tell "$KEY" /nonexistent/command
	tell -S unix:///nonexistent/s -n "$KEY" true
	rcli 0 LPUSH "$KEY" x
	tell "$KEY" true
	rcli 0 DEL "$KEY"
	rcli 0 SET "$KEY" somebody PX 60000
	tell -n "$KEY" true
	rcli 0 DEL "$KEY"
	tell -S unix:///nonexistent/s --unreachable run "$KEY" true
	tell -t 2s -k 100ms "$KEY" sh -c "'$TOOLS/ask' '$SERVERS/0/redis.sock' SET '$KEY' somebody; sleep 60"
	output=${all%$'\n'}
	members '
		child_exit null|number
		child_signal null|number
		fence null|number
		held_ms number
		key string
		outcome string
		renewals number
		slot null
		token null|string
		waited_ms number'
	all=
	rcli 0 DEL "$KEY"
	tell --also "$KEY-2" "$KEY" true
	rcli 0 SET "$KEY-2" somebody PX 60000
	tell -n --also "$KEY-2" "$KEY" true
	[[ $(jq -c '[.outcome, (.fences | type), (.token | type)]' <<<"$all" | paste -sd ' ') == \
		'["done","object","string"] ["busy","null","null"]' ]]
	outcome=$(jq -r .outcome <<<"$output" | paste -sd ' ')
	[[ $outcome == 'done done overdue not-started unreachable misused busy unlocked lost' ]] || { echo "$outcome" >&2 && false; }
}

@test "the members of doctor --format json" {
	local all
	redlock doctor --format json
	all=$output
	redlock doctor --format json -S unix:///nonexistent/s
	output=$(jq -c 'del(.settings)' <<<"$all"$'\n'"$output")
	members '
		needed number
		quorum boolean
		servers array
		servers.[].appendfsync null|string
		servers.[].appendonly boolean|null
		servers.[].at null
		servers.[].clock_ms null|number
		servers.[].error null|string
		servers.[].maxmemory_policy null|string
		servers.[].replicas null|number
		servers.[].round_trip_ms null|number
		servers.[].server string
		servers.[].snapshots boolean|null
		servers.[].software null|string
		servers.[].uptime_ms null|number
		servers.[].version null|string
		servers.[].warnings array
		servers.[].warnings.[] string
		warnings array
		would_grant number'
	[[ $(jq -r '.settings.server | type' <<<"$all") == string ]]
}

@test "the exit statuses" {
	local other
	is() {
		local want=$1
		shift
		redlock "$@"
		[[ $status == "$want" ]] || { echo "not $want but $status: $*: $stderr" >&2 && false; }
	}
	is 0 run "$KEY" true
	is 3 run "$KEY" sh -c 'exit 3'
	is 1 release "$KEY" nobody
	is 1 extend "$KEY" nobody
	is 1 status -q "$KEY"
	is 1 break -y "$KEY"
	is 1 break -y --now "$KEY"
	is 64 run --no-such-option "$KEY" true
	rcli 0 LPUSH "$KEY" x
	is 65 run "$KEY" true
	rcli 0 DEL "$KEY"
	is 69 run -n -S unix:///nonexistent/s "$KEY" true
	rcli 0 SET "$KEY" somebody PX 60000
	is 75 run -n "$KEY" true
	is 9 run -n -E 9 "$KEY" true
	is 75 acquire -w 10ms "$KEY"
	is 75 wait -w 10ms "$KEY"
	is 0 status "$KEY"
	is 0 status -q "$KEY"
	rcli 0 DEL "$KEY"
	is 76 run -t 2s -k 100ms "$KEY" sh -c "'$TOOLS/ask' '$SERVERS/0/redis.sock' SET '$KEY' somebody; sleep 60"
	rcli 0 DEL "$KEY"
	is 78 run --config /nonexistent "$KEY" true
	is 124 run --max-hold 100ms "$KEY" sleep 60
	is 126 run "$KEY" /
	is 127 run "$KEY" /nonexistent/command
	is 137 run "$KEY" sh -c 'kill -9 $$'
	other=$SERVERS/0/redis.sock
	rcli 0 CONFIG SET requirepass secret
	REDLOCK_SERVERS=unix://$other is 77 run -n "$KEY" true
	redis-cli -s "$other" -a secret --no-auth-warning CONFIG SET requirepass '' </dev/null
}

@test "the exit statuses of check, and its line" {
	is() {
		local want=$1
		shift
		redlock check "$@"
		[[ $status == "$want" && ${#lines[@]} == 1 && $stderr == '' ]] || { echo "not $want but $status: $*: $output $stderr" >&2 && false; }
	}
	is 0 "$KEY"
	[[ $output =~ ^"REDLOCK OK - "[^|]*' | held='[0-9.]+'s;;;0 waiting='[0-9]+';;;0 wait='[0-9.]+'s;;;0 age=U;;;0'$ ]]
	is 2 --max-age 1d "$KEY"
	[[ $output == 'REDLOCK CRITICAL - '* ]]
	is 1 --warn-age 1d "$KEY"
	[[ $output == 'REDLOCK WARNING - '* ]]
	is 3 -S unix:///nonexistent/s "$KEY"
	[[ $output == 'REDLOCK UNKNOWN - '* ]]
	is 3 --no-such-option
}

@test "the names of the metrics" {
	"$REDLOCK" run "$KEY" true
	redlock list --format prometheus "$KEY"
	[[ $(grep -o '^redlock_[a-z_]*' <<<"$output" | paste -sd ' ') == "redlock_up redlock_held redlock_holders redlock_held_seconds \
redlock_waiters redlock_oldest_wait_seconds redlock_last_run_timestamp_seconds redlock_last_run_duration_seconds \
redlock_last_run_exit_status redlock_last_run_success redlock_last_success_timestamp_seconds" ]]
	redlock doctor --format prometheus
	[[ $(grep -o '^redlock_[a-z_]*' <<<"$output" | paste -sd ' ') == "redlock_quorum redlock_votes redlock_votes_needed redlock_server_up \
redlock_server_vote redlock_server_round_trip_seconds redlock_server_clock_offset_seconds redlock_server_uptime_seconds \
redlock_server_warnings" ]]
}

@test "the manual names every value of vote and of wants" {
	local value
	entry() { sed -n "/^\.It Li $1\$/,/^\.It/p" "$ROOT/man/redlock-status.1" | grep '^\.Li ' | tr -d , | tr ' ' '\n'; }
	for value in $(sed -n '/votes\[\] = {/,/};/s/.*\] = "\(.*\)".*/\1/p' "$ROOT/src/cmd/json.c"); do
		entry servers | grep -x "$value"
	done
	for value in $(sed -n '/^const char \*holders_kind_name/,/};/p' "$ROOT/src/show/holders.c" | grep -o '"[a-z]*"' | tr -d '"'); do
		entry queue | grep -x "$value"
	done
	[[ $value == none ]]
}

@test "the exit statuses that the manual names are those of the source" {
	diff <(sed -n '/^enum exit_code/,/^}/s/.* = \([0-9]*\),.*/\1/p' "$ROOT/src/base/error.h") \
		<(sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It //p' "$ROOT/man/redlock.1")
	[[ $(sed -n '/^enum exit_code/,/^}/s/.* = \([0-9]*\),.*/\1/p' "$ROOT/src/base/error.h" | paste -sd ' ') == \
		'0 1 64 65 69 70 71 75 76 77 78 124 126 127' ]]
}

@test "the options of 0.2 are there, and take a value or none as they did" {
	local command
	for command in run acquire release extend status list history check wait break doctor fence; do
		"$REDLOCK" "$command" --help=all |
			sed -nE "s/^ +((-[A-Za-z], )*--[a-z].*)/\1/p" | sed -E 's/  .*//' |
			awk -v command="$command" '{
				value = ""
				if ($NF !~ /^-/ && sub(/ [A-Za-z|-]+$/, ""))
					value = " VALUE"
				if ($0 ~ /\[=/) value = " [VALUE]"
				while (match($0, /--?[A-Za-z][-a-z]*/)) {
					print command, substr($0, RSTART, RLENGTH) value
					$0 = substr($0, RSTART + RLENGTH)
				}
			}'
	done | LC_ALL=C sort >"$TMP/options"
	[[ ! $(LC_ALL=C comm -23 "$ROOT/test/lib/options-0.2" "$TMP/options" | tee "$TMP/missing") ]] || {
		echo "missing or changed: $(<"$TMP/missing")" >&2
		false
	}
}

@test "the variables that COMMAND gets" {
	redlock run "$KEY" sh -c 'env | grep -o "^REDLOCK_[A-Z_]*=" | sort'
	[[ $output == *REDLOCK_FENCE=*REDLOCK_HELD=*REDLOCK_KEY=*REDLOCK_TOKEN=* && $output != *REDLOCK_FENCES=* ]]
	redlock run --also "$KEY-2" "$KEY" sh -c 'env | grep -o "^REDLOCK_[A-Z_]*=" | sort'
	[[ $output == *REDLOCK_FENCE=*REDLOCK_FENCES=*REDLOCK_HELD=*REDLOCK_KEY=*REDLOCK_TOKEN=* ]]
}
