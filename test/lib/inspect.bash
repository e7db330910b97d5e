# shellcheck shell=bash
# Locks made by hand, as other programs' and other hosts' would be; load it after helper.bash.
# shellcheck disable=SC2034,SC2154 # for the tests; helper.bash sets it

# For all of a file: three servers.
setup_file() {
	servers_start 3
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
}

# date_ms: the servers' clock.
date_ms() {
	date +%s%3N
}

# described HOST PID COMMAND [HOURS]: what somebody who has held a lock for HOURS (0) writes about itself.
described() {
	printf 'since=%s\nhost=%s\npid=%s\nuser=bob\nttl=30000\ncommand=%s\n' \
		$(($(date_ms) - ${4-0} * 3600000)) "$1" "$2" "$3"
}

# hold_exclusive I TOKEN HOST PID COMMAND [HOURS [KEY]]: for ten hours.
hold_exclusive() {
	local i=$1 token=$2 key=${7-$KEY}
	rcli "$i" SET "$key" "$token" PX 36000000
	rcli "$i" HSET "$(record "$key")" fence 1700000000001 "holder:$token" \
		"$(described "$3" "$4" "$5" "${6-0}")"
}

# hold_reentrant I TOKEN COUNT HOST PID COMMAND [HOURS [KEY]]
hold_reentrant() {
	local i=$1 token=$2 count=$3 key=${8-$KEY}
	rcli "$i" HSET "$key" "$token" "$count"
	rcli "$i" PEXPIRE "$key" 36000000
	rcli "$i" HSET "$(record "$key")" fence 1700000000001 "holder:$token" \
		"$(described "$4" "$5" "$6" "${7-0}")"
}

# hold_permit I PERMITS TOKEN HOST PID COMMAND [HOURS [KEY]]: PERMITS are 0 for a shared lock. The first
# token has slot 1, the next one slot 2.
hold_permit() {
	local i=$1 permits=$2 token=$3 key=${8-$KEY} slot
	rcli "$i" ZADD "$key" $(($(date_ms) + 36000000)) "$token"
	rcli "$i" PEXPIRE "$key" 36000000
	if ((permits > 0)); then
		slot=$(rcli "$i" ZCARD "$key")
		rcli "$i" HSET "$(record "$key")" "slot:$token" "$slot"
		permits+=.25
	fi
	rcli "$i" HSET "$(record "$key")" fence 1700000000001 permits "$permits" "holder:$token" \
		"$(described "$4" "$5" "$6" "${7-0}")"
}

# crowd I COUNT: so many share KEY since just now, for ten hours; after them, by the end of their leases, comes old,
# that has held it for four.
crowd() {
	local now
	now=$(date_ms)
	awk -v key="$KEY" -v record="$(record)" -v count="$2" -v now="$now" 'BEGIN {
		for (i = 1; i <= count; i++) {
			printf "ZADD %s %.0f token%d\n", key, now + 36000000 + i, i
			printf "HSET %s holder:token%d since=%.0f\n", record, i, now
		}
	}' | fill "$1"
	hold_permit "$1" 0 old web1 11 'read' 4 >/dev/null
	rcli "$1" ZADD "$KEY" $((now + 37000000)) old >/dev/null
}

# queue_up I TOKEN HOURS 'KIND PERMITS' HOST PID COMMAND: has waited for KEY for HOURS.
queue_up() {
	local i=$1 token=$2
	rcli "$i" ZADD "$(record):queue" $(($(date_ms) - $3 * 3600000)) "$token"
	rcli "$i" HSET "$(record):wishes" "$token" \
		"30000 $4 0 - 7"$'\n'"$(described "$5" "$6" "$7")"
}

# resp: its input's lines, whose words are commands' (without quotes), as redis-cli --pipe has them.
resp() {
	awk '{ printf "*%d\r\n", NF; for (i = 1; i <= NF; i++) printf "$%d\r\n%s\r\n", length($i), $i }'
}

# fill I: runs commands from its input, a line each, on server I.
fill() {
	resp | timeout 60 redis-cli -s "$SERVERS/$1/redis.sock" --pipe --pipe-timeout 0 >"$TMP/fill.out"
	grep -q 'errors: 0,' "$TMP/fill.out"
}

# only I...: these are the servers.
only() {
	export REDLOCK_SERVERS
	REDLOCK_SERVERS=$(server_urls "$@")
}

# is_json: every line of $output is, for jq and for python3, which is stricter with its bytes.
is_json() {
	jq -e . <<<"$output" >/dev/null &&
		python3 -IS -c 'import json, sys
for line in sys.stdin.buffer: json.loads(line.decode("utf-8", "strict"), strict=True)' <<<"$output"
}

# of FILTER: what jq makes of $output.
of() {
	jq -c "$1" <<<"$output"
}

TIME='[0-9.]+(ms|s|m[0-9]+s)'

# at_columns COUNT ARGUMENT...: what redlock shows on a terminal of that width, in $output and $lines.
at_columns() {
	local columns=$1
	shift
	in_terminal "wide$columns" "stty cols $columns; $(printf '%q ' "$REDLOCK" "$@") 2>/dev/null"
	finish "wide$columns"
	output=$(tr -d '\r' <"$TMP/wide$columns.out" | sed 's/^.*\x1b\[K//')
	mapfile -t lines <<<"$output"
	rm "$TMP/wide$columns.keys"
}

# wraps ARGUMENT...: on terminals of 40, 60 and 80 columns no line is wider (but for a word that is too long),
# continuation lines are indented, and not a word is lost. Elsewhere nothing is broken or cut.
wraps() {
	local columns line word plain
	redlock "$@"
	plain=$(tr -s ' \n' ' ' <<<"$output" | sed -E 's/[-+]?(under )?[0-9][0-9.]*(ms|s)?/N/g')
	for columns in 40 60 80; do
		at_columns "$columns" "$@"
		for line in "${lines[@]}"; do
			word=${line##* }
			((${#line} <= columns || ${#word} > columns - 12)) || { echo "$columns columns, ${#line}: $line" && false; } || return
		done
		[[ $(tr -s ' \n' ' ' <<<"$output" | sed -E 's/[-+]?(under )?[0-9][0-9.]*(ms|s)?/N/g') == "$plain" ]] || {
			printf '%s\n---\n%s\n' "$plain" "$output"
			false
		} || return
	done
}
