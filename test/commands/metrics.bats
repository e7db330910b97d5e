#!/usr/bin/env bats
# --format prometheus: what list and doctor tell Prometheus, on the standard output or in a file of node_exporter's
# textfile collector.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them
# bats file_tags=long

load ../lib/helper
load ../lib/cli
load ../lib/inspect
load ../lib/metrics

# hold_everywhere KEY TOKEN HOURS
hold_everywhere() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do hold_exclusive "$i" "$2" web3 812 backup.sh "$3" "$1"; done
}

# tells_of_keys: what list says of locks, of whatever number of servers
tells_of_keys() {
	local i
	hold_everywhere "$KEY" token 4
	for ((i = 0; i < SERVER_COUNT; i++)); do
		queue_up "$i" one 2 'string 0' web4 77 deploy.sh
		queue_up "$i" two 1 'string 0' web4 78 deploy.sh
		hold_permit "$i" 3 one web3 812 encode.sh 1 "$KEY-permits"
		hold_permit "$i" 3 two web3 813 encode.sh 5 "$KEY-permits"
		rcli "$i" HSET "$(record "$KEY-foreign")" fence 5
		rcli "$i" SET "$KEY-foreign" their-secret PX 36000000
		rcli "$i" HSET "$(record "$KEY-later")" fence 'v2 1'
	done
	redlock run "$KEY-free" true
	redlock list --format prometheus --output "$TMP/file" "$KEY*"
	expect 0
	well_formed "$TMP/file"
	of() { metric "$TMP/file" "$1{key=\"$KEY$2\"}"; }
	[[ $(metric "$TMP/file" "redlock_up{pattern=\"$KEY*\"}") == 1 ]]
	[[ $(of redlock_held) == 1 && $(of redlock_holders) == 1 && $(of redlock_waiters) == 2 ]]
	between "$TMP/file" "redlock_held_seconds{key=\"$KEY\"}" 14400 14700
	between "$TMP/file" "redlock_oldest_wait_seconds{key=\"$KEY\"}" 7200 7500
	[[ $(of redlock_held -permits) == 1 && $(of redlock_holders -permits) == 2 && $(of redlock_waiters -permits) == 0 ]]
	between "$TMP/file" "redlock_held_seconds{key=\"$KEY-permits\"}" 18000 18300
	[[ $(of redlock_held -free) == 0 && $(of redlock_holders -free) == 0 && $(of redlock_waiters -free) == 0 ]]
	[[ $(of redlock_held_seconds -free) == 0.000 && $(of redlock_oldest_wait_seconds -free) == 0.000 ]]
	# for how long is not known
	[[ $(of redlock_held -foreign) == 1 && ! $(of redlock_held_seconds -foreign) ]]
	# nor is anything of what a newer redlock uses
	[[ ! $(of redlock_held -later) ]]
}

@test "promtool finds no fault in what list and doctor print" {
	local command
	[[ $(type -P promtool) ]] || skip "needs promtool, as a part of what comes after does"
	servers_start 1
	redlock run "$KEY" true
	for command in list doctor; do
		redlock "$command" --format prometheus
		[[ $status == 0 && $stderr == '' ]]
		promtool check metrics <<<"$output"
	done
}

@test "list tells of each lock, held or free: holders, how long, waiters, the oldest wait" {
	servers_start 1
	tells_of_keys
}

@test "list tells of each lock on three servers as a quorum has it" {
	servers_start 3 --appendonly yes --appendfsync always
	local file=$TMP/file
	tells_of_keys
	hold_exclusive 0 token web3 812 backup.sh 4 "$KEY-one"
	queue_up 0 three 9 'string 0' web4 79 deploy.sh
	redlock list --format prometheus --output "$file" "$KEY*"
	expect 0
	[[ $(of redlock_held -one) == 0 && $(of redlock_waiters) == 2 ]]
	between "$file" "redlock_oldest_wait_seconds{key=\"$KEY\"}" 7200 7500
}

@test "a lock that a server may have that does not answer counts as held, for as long as others say" {
	local file=$TMP/file i
	servers_start 3
	hold_exclusive 1 token web3 812 backup.sh 4
	for i in 0 1; do hold_permit "$i" 2 one web3 812 backup.sh 1 "$KEY-two"; done
	hold_permit 1 2 two web4 99 backup.sh 3 "$KEY-two"
	for i in 0 1; do rcli "$i" HSET "$(record "$KEY-free")" fence 5; done
	server_kill 2
	redlock list --format prometheus --output "$file" "$KEY*"
	expect 0
	well_formed "$file"
	of() { metric "$file" "$1{key=\"$KEY$2\"}"; }
	[[ $(of redlock_held) == 1 && $(of redlock_holders) == 1 ]]
	between "$file" "redlock_held_seconds{key=\"$KEY\"}" 14400 14700
	[[ $(of redlock_held -two) == 1 && $(of redlock_holders -two) == 2 ]]
	between "$file" "redlock_held_seconds{key=\"$KEY-two\"}" 10800 11100
	[[ $(of redlock_held -free) == 0 && $(of redlock_held_seconds -free) == 0.000 ]]
}

# noted_by_all: each server has a run of KEY.
noted_by_all() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do
		[[ $(rcli "$i" LLEN "$(record):runs") == 1 ]] || return
	done
}

# tells_of_runs: what list says of past runs, of whatever number of servers
tells_of_runs() {
	local began ended file=$TMP/file i digest
	of() { metric "$file" "$1{key=\"$KEY$2\"}"; }
	lists() { redlock list --format prometheus --output "$file" "$KEY*" && well_formed "$file"; }
	began=$(server_ms 0)
	redlock run "$KEY" true
	ended=$(server_ms 0)
	wait_until noted_by_all
	lists
	between "$file" "redlock_last_run_timestamp_seconds{key=\"$KEY\"}" "$((began / 1000))" "$((ended / 1000 + 1))"
	[[ $(of redlock_last_run_timestamp_seconds) == "$(of redlock_last_success_timestamp_seconds)" ]]
	[[ $(of redlock_last_run_exit_status) == 0 && $(of redlock_last_run_success) == 1 ]]
	between "$file" "redlock_last_run_duration_seconds{key=\"$KEY\"}" 0 "$(((ended - began) / 1000 + 1))"
	began=$(of redlock_last_success_timestamp_seconds)
	redlock run "$KEY" sh -c 'exit 3'
	lists
	[[ $(of redlock_last_run_exit_status) == 3 && $(of redlock_last_run_success) == 0 ]]
	[[ $(of redlock_last_success_timestamp_seconds) == "$began" && $(of redlock_last_run_timestamp_seconds) != "$began" ]]
	redlock run "$KEY" sh -c 'kill -9 $$'
	lists
	[[ $(of redlock_last_run_exit_status) == 137 && $(of redlock_last_run_success) == 0 ]]
	redlock run --max-hold 10ms "$KEY" sleep 60
	lists
	[[ $(of redlock_last_run_exit_status) == 124 ]]
	# acquire has no success, and no exit status
	redlock acquire "$KEY-acquired"
	redlock release "$KEY-acquired" "$output"
	lists
	[[ $(of redlock_last_run_timestamp_seconds -acquired) && ! $(of redlock_last_run_exit_status -acquired) ]]
	[[ ! $(of redlock_last_run_success -acquired) && ! $(of redlock_last_success_timestamp_seconds -acquired) ]]
	redlock acquire -r --token build-7 "$KEY-chosen"
	redlock release "$KEY-chosen" build-7
	lists
	[[ $(of redlock_last_run_timestamp_seconds -chosen) ]]
	# what makes no sense is passed over, and a success that is older than 20 runs is found
	digest=$(printf x | sha1sum | cut -c 1-16)
	for ((i = 0; i < SERVER_COUNT; i++)); do
		rcli "$i" HSET "$(record "$KEY-odd")" fence 5
		rcli "$i" RPUSH "$(record "$KEY-odd"):runs" nonsense $'x exit 0\nsince=99999999999999999\n' \
			"$digest 1500 7 - exit 0"$'\nsince=1000000 -\nhost=web3\n' "$digest 2000 8 - exit 1"$'\nsince=2000000 -\nhost=web3\n' \
			"$digest 3000 8 - broken by me: 'exit 0'"$'\nsince=1500000 -\nhost=web3\n' \
			"$digest 3000 8 - exit 0"$'\nsince='"$(($(server_ms "$i") + 7200000))"$' -\nhost=web3\n'
		rcli "$i" HSET "$(record "$KEY-wrong")" fence 5
		rcli "$i" SET "$(record "$KEY-wrong"):runs" text
	done >"$TMP/answers"
	lists
	[[ $(of redlock_held -wrong) == 0 && ! $(of redlock_last_run_timestamp_seconds -wrong) ]]
	[[ $(of redlock_last_success_timestamp_seconds -odd) == 1001.500 ]]
	[[ $(of redlock_last_run_timestamp_seconds -odd) == 2002.000 && $(of redlock_last_run_duration_seconds -odd) == 2.000 ]]
	[[ $(of redlock_last_run_exit_status -odd) == 1 ]]
}

@test "list tells of the last run of each KEY, and of the last that succeeded" {
	servers_start 1
	tells_of_runs
}

@test "list tells of runs on three servers, as history does, if one of them is down" {
	local file=$TMP/file
	servers_start 3 --appendonly yes --appendfsync always
	tells_of_runs
	server_kill 0
	lists
	[[ $(of redlock_last_run_exit_status) == 124 && $(of redlock_last_success_timestamp_seconds) ]]
	# an attempt that only one server knows is no run; a success that only one knows is one
	rcli 1 RPUSH "$(record):runs" "$(printf y | sha1sum | cut -c 1-16) 1000 9 - unknown"$'\n'"since=$(server_ms 1) -"$'\nhost=web3\n'
	lists
	[[ $(of redlock_last_run_exit_status) == 124 ]]
	rcli 2 RPUSH "$(record):runs" "$(printf z | sha1sum | cut -c 1-16) 0 10 - exit 0"$'\n'"since=$(server_ms 2) -"$'\nhost=web3\n'
	lists
	[[ $(of redlock_last_run_exit_status) == 0 && $(of redlock_last_run_success) == 1 ]]
}

@test "a KEY that is free is told of, whichever server is the only one that knows it" {
	local i others
	of() { metric "$TMP/file" "$1{key=\"$KEY$2\"}"; }
	for i in 0 1 2; do
		redlock run --quarantine 0 "$KEY-$i" true
		KEY=$KEY-$i wait_until noted_by_all
		for others in 0 1 2; do
			((others == i)) || rcli "$others" DEL "$(record "$KEY-$i")" "$(record "$KEY-$i"):runs" >/dev/null
		done
	done
	redlock list --format prometheus --output "$TMP/file" "$KEY-*"
	expect 0
	for i in 0 1 2; do
		[[ $(of redlock_held "-$i") == 0 && $(of redlock_last_success_timestamp_seconds "-$i") ]]
	done
}

@test "without --output the metrics are printed, and so is where they are from" {
	printf '[prod]\nserver = %s\n' "$(server_url 0)" >"$TMP/conf"
	redlock list --format prometheus --config "$TMP/conf" --set prod "$KEY*"
	[[ $status == 0 && $stderr == '' && $output == *$'\n'"redlock_up{set=\"prod\",pattern=\"$KEY*\"} 1"$'\n'*'# EOF' ]]
	redlock run "$KEY" true
	redlock list --format prometheus
	[[ $status == 0 && $output == *$'\n'"redlock_up 1"$'\n'*"redlock_held{key=\"$KEY\"} 0"* ]]
	redlock doctor --format prometheus --config "$TMP/conf" --set prod deploy/
	[[ $output == *$'\n'"redlock_quorum{set=\"prod\",key=\"deploy/\"} 1"$'\n'*"redlock_server_vote{set=\"prod\",key=\"deploy/\",server=\"$(server_url 0)\"} 1"* ]]
}

@test "two keys that differ are two series, whatever bytes are in them" {
	servers_start 1
	local keys=('a\nb' $'a\nb' 'a\\nb' 'a"b' 'a\"b' 'a\x01' $'a\x01' $'\xff' '\xff' '\\xff' '\' '\\' 'ü' $'\u200b' '\xe2\x80\x8b' '{a="b"}'
		'a,b' ' ' $'\u202e' '#' '}' $'a\tb' 'a\tb' $'a\x7fb' $'\xe2\\' $'\xed\xa0\x80') key
	for key in "${keys[@]}"; do
		redlock run -- "$key" true
		expect 0
	done
	printf '%s\n' 'SET "n\x00l" token PX 36000000' 'HSET "{n\x00l}:redlock" fence 5' |
		redis-cli -s "$SERVERS/0/redis.sock"
	redlock list --format prometheus --output "$TMP/file"
	expect 0
	well_formed "$TMP/file"
	[[ $(grep -c '^redlock_held{' "$TMP/file") == $((${#keys[@]} + 1)) ]]
	[[ $(grep '^redlock_held{' "$TMP/file" | sort -u | wc -l) == $((${#keys[@]} + 1)) ]]
	iconv -f UTF-8 -t UTF-8 "$TMP/file" >/dev/null
	LC_ALL=C run ! grep -P '[\x00-\x09\x0b-\x1f\x7f]' "$TMP/file"
	[[ $(metric "$TMP/file" 'redlock_held{key="a\"b"}') == 0 ]]
	[[ $(metric "$TMP/file" 'redlock_held{key="a\\nb"}') == 0 ]]
	[[ $(metric "$TMP/file" 'redlock_held{key="a\\\\nb"}') == 0 ]]
	[[ $(metric "$TMP/file" 'redlock_held{key="ü"}') == 0 ]]
	[[ $(metric "$TMP/file" 'redlock_held{key="n\\x00l"}') == 1 ]]
}

# tells_of_servers: what doctor says of the servers, of whatever number
tells_of_servers() {
	local i url
	redlock doctor --format prometheus --output "$TMP/file"
	expect 0
	well_formed "$TMP/file"
	[[ $(metric "$TMP/file" redlock_quorum) == 1 && $(metric "$TMP/file" redlock_votes) == "$SERVER_COUNT" ]]
	[[ $(metric "$TMP/file" redlock_votes_needed) == $((SERVER_COUNT / 2 + 1)) ]]
	for ((i = 0; i < SERVER_COUNT; i++)); do
		url=$(server_url "$i")
		[[ $(metric "$TMP/file" "redlock_server_up{server=\"$url\"}") == 1 ]]
		[[ $(metric "$TMP/file" "redlock_server_vote{server=\"$url\"}") == 1 ]]
		between "$TMP/file" "redlock_server_round_trip_seconds{server=\"$url\"}" 0.001 20
		between "$TMP/file" "redlock_server_clock_offset_seconds{server=\"$url\"}" -20 20
		between "$TMP/file" "redlock_server_uptime_seconds{server=\"$url\"}" 0 3600
	done
}

@test "doctor tells of a server: up, vote, round trip, clock offset, uptime, warnings" {
	servers_start 1
	tells_of_servers
	[[ $(metric "$TMP/file" "redlock_server_warnings{server=\"$(server_url 0)\"}") == 1 ]]
	redlock doctor --format prometheus --output "$TMP/file" --accept restart
	[[ $(metric "$TMP/file" "redlock_server_warnings{server=\"$(server_url 0)\"}") == 0 ]]
}

@test "doctor tells of three servers, and of one that is down or has no vote" {
	servers_start 3 --appendonly yes --appendfsync always
	tells_of_servers
	server_kill 2
	redlock doctor --format prometheus --output "$TMP/file"
	expect 0
	well_formed "$TMP/file"
	[[ $(metric "$TMP/file" redlock_quorum) == 1 && $(metric "$TMP/file" redlock_votes) == 2 ]]
	[[ $(metric "$TMP/file" "redlock_server_up{server=\"$(server_url 2)\"}") == 0 ]]
	[[ $(metric "$TMP/file" "redlock_server_vote{server=\"$(server_url 2)\"}") == 0 ]]
	[[ ! $(metric "$TMP/file" "redlock_server_round_trip_seconds{server=\"$(server_url 2)\"}") ]]
	# it answers, and is no server for locks
	rcli 1 CONFIG SET requirepass hunter2
	redlock doctor --format prometheus --output "$TMP/file"
	expect 69 '' 'redlock: 1 of 3 servers would grant a lock, 2 needed'
	well_formed "$TMP/file"
	[[ $(metric "$TMP/file" redlock_quorum) == 0 && $(metric "$TMP/file" redlock_votes) == 1 ]]
	[[ $(metric "$TMP/file" "redlock_server_up{server=\"$(server_url 1)\"}") == 1 ]]
	[[ $(metric "$TMP/file" "redlock_server_vote{server=\"$(server_url 1)\"}") == 0 ]]
}

@test "if servers cannot be reached the file says so, and nothing of locks" {
	local file=$TMP/file
	servers_start 3 --appendonly yes --appendfsync always
	redlock run "$KEY" true
	redlock list --format prometheus --output "$file"
	expect 0
	[[ $(metric "$file" "redlock_held{key=\"$KEY\"}") == 0 ]]
	server_kill 1 2
	redlock list --format prometheus --output "$file"
	expect 69 '' 'redlock: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*'
	well_formed "$file"
	[[ $(metric "$file" redlock_up) == 0 && $(grep -vc '^#' "$file") == 1 ]]
	redlock list --format prometheus
	[[ $status == 69 && $output == "$(<"$file")" ]]
	servers_start 1
	server_kill 0
	redlock list --format prometheus --output "$file"
	[[ $status == 69 && $(metric "$file" redlock_up) == 0 ]]
	redlock doctor --format prometheus --output "$file"
	[[ $status == 69 && $(metric "$file" redlock_quorum) == 0 ]]
	[[ $(metric "$file" "redlock_server_up{server=\"$(server_url 0)\"}") == 0 ]]
}

@test "if the login is refused, or the settings are wrong, the file says that nothing is known" {
	local file=$TMP/file
	rcli 0 CONFIG SET requirepass hunter2
	REDLOCK_SERVERS=$(server_url 0) redlock list --format prometheus --output "$file"
	[[ $status == 77 && $(metric "$file" redlock_up) == 0 ]]
	timeout 10 redis-cli -s "$SERVERS/0/redis.sock" -a hunter2 --no-auth-warning CONFIG SET requirepass ''
	rm "$file"
	redlock list --format prometheus --output "$file" --config /nonexistent
	[[ $status == 78 && $(metric "$file" redlock_up) == 0 ]]
	well_formed "$file"
	rm "$file"
	redlock doctor --format prometheus --output "$file" --config /nonexistent
	[[ $status == 78 && $(metric "$file" redlock_quorum) == 0 ]]
	well_formed "$file"
	rm "$file"
	REDLOCK_CACERT=/nonexistent redlock doctor --format prometheus --output "$file" -S rediss://127.0.0.1:1
	[[ $status == 78 && $(metric "$file" redlock_quorum) == 0 ]]
	REDLOCK_CACERT=/nonexistent redlock list --format prometheus --output "$file" -S rediss://127.0.0.1:1
	[[ $status == 78 && $(metric "$file" redlock_up) == 0 ]]
	rm "$file"
	printf 'cert = /nonexistent\n' >"$TMP/half"
	redlock list --format prometheus --output "$file" --config "$TMP/half"
	[[ $status == 78 && $(metric "$file" redlock_up) == 0 ]]
	rm "$file"
	redlock list -S redis://a,redis://a --form prometheus --output "$file" # the mistake is read first
	expect 78 '' "redlock: server 'redis://a:6379' is named twice"
	[[ $(metric "$file" redlock_up) == 0 ]]
	rm "$file"
	redlock doctor -S nonsense --format=prometheus -S redis://a,redis://a --output "$file"
	expect 64 '' 'redlock: server: a URL is .*'
	[[ $(metric "$file" redlock_quorum) == 0 ]]
	# a wrong command line changes no file
	redlock list --format prometheus --output "$file-2" --no-such-option
	[[ $status == 64 && ! -e $file-2 ]]
	redlock doctor --format prometheus --output "$file-2" 'a{b}:redlock'
	expect 64 '' "redlock: doctor: KEY 'a\{b\}:redlock' could be the record of another KEY: .*"
	[[ ! -e $file-2 ]]
}

@test "the file is replaced at once, has the mode that others can read, and nothing is left beside it" {
	local file=$TMP/dir/redlock.prom inode
	mkdir "$TMP/dir"
	(umask 022 && "$REDLOCK" list --format prometheus --output "$file")
	[[ $(stat -c %a "$file") == 644 && $(ls -A "$TMP/dir") == redlock.prom ]]
	inode=$(stat -c %i "$file")
	exec {old}<"$file"
	(umask 027 && "$REDLOCK" list --format prometheus --output "$file")
	[[ $(stat -c %a "$file") == 640 && $(stat -c %i "$file") != "$inode" && $(ls -A "$TMP/dir") == redlock.prom ]]
	# who had it open reads the old one to its end
	[[ $(tail -n 1 <&"$old") == '# EOF' ]]
	exec {old}<&-
	(cd "$TMP/dir" && REDLOCK_QUARANTINE=0 "$REDLOCK" doctor --format prometheus --output redlock.prom)
	[[ $(metric "$file" redlock_quorum) == 1 ]]
	# a file beside it that the disk has before it has the name
	! type -P strace >/dev/null || {
		export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # it does not work under strace
		strace -f -o "$TMP/trace" -e trace=fsync,rename,renameat,renameat2 "$REDLOCK" list --format prometheus --output "$file"
		[[ $(grep -oE '(fsync|rename)[a-z0-9]*\(' "$TMP/trace" | paste -sd ' ') =~ ^fsync\(\ rename ]]
	}
}

@test "a file that cannot be replaced stays as it was, with its time: 71, and nothing is left beside it" {
	local file=$TMP/dir/redlock.prom before way
	mkdir "$TMP/dir"
	redlock list --format prometheus --output "$file"
	expect 0
	before=$(stat -c '%i %s %.9Y' "$file")
	for way in list doctor; do
		# as on a full disk: no file has room for a byte, so standard error is a pipe
		REDLOCK_QUARANTINE=0 run bash -c 'ulimit -f 0 && exec "$@" 2>&1 | cat; exit "${PIPESTATUS[0]}"' - \
			timeout -k 1 60 "$REDLOCK" "$way" --format prometheus --output "$file"
		[[ $status == 71 && $output == "redlock: $file: File too large" ]]
		[[ $(stat -c '%i %s %.9Y' "$file") == "$before" && $(ls -A "$TMP/dir") == redlock.prom ]]
	done
}

@test "a signal that comes while the file is written ends redlock, and nothing is left beside it" {
	strace -qq -o /dev/null true 2>/dev/null || skip 'no process may be traced here'
	local dir=$TMP/dir call way
	mkdir "$dir"
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # it does not work under strace
	for call in fchmod fsync rename; do
		for way in list doctor; do
			rm -f "$dir/file"
			REDLOCK_QUARANTINE=0 run strace -f -o "$TMP/trace" -e trace=/"^$call" -e inject="/^$call:signal=TERM" \
				"$REDLOCK" "$way" --format prometheus --output "$dir/file"
			[[ $(<"$TMP/trace") == *'killed by SIGTERM'* ]]
			[[ $(ls -A "$dir") == file && $(tail -n 1 "$dir/file") == '# EOF' ]]
		done
	done
}

@test "readers of the file never find half of it" {
	local file=$TMP/redlock.prom i servers
	for servers in 1 3; do
		use "$servers"
		for i in 1 2 3 4 5; do redlock run --quarantine 0 "$KEY-$i" true; done
		redlock list --format prometheus --output "$file"
		spawn writer sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$0" list --format prometheus --output "$1" || exit; done' "$REDLOCK" "$file"
		while is_running writer; do
			[[ $(tail -n 1 "$file") == '# EOF' ]]
		done
		finish writer
		expect 0
	done
}

@test "a symbolic link, or what is no plain file, is not replaced" {
	local way
	export REDLOCK_QUARANTINE=0
	for way in list doctor; do
		ln -sf "$TMP/nowhere" "$TMP/link"
		redlock "$way" --format prometheus --output "$TMP/link"
		expect 71 '' "redlock: $TMP/link: it is a symbolic link: name the file itself"
		[[ $(readlink "$TMP/link") == "$TMP/nowhere" && ! -e $TMP/nowhere ]]
		echo text >"$TMP/target"
		ln -sf "$TMP/target" "$TMP/link"
		redlock "$way" --format prometheus --output "$TMP/link"
		[[ $status == 71 && $(<"$TMP/target") == text ]]
		redlock "$way" --format prometheus --output "$TMP"
		expect 71 '' "redlock: $TMP: it is not a plain file"
		redlock "$way" --format prometheus --output /dev/null
		expect 71 '' "redlock: /dev/null: it is not a plain file"
		redlock "$way" --format prometheus --output "$TMP/nowhere/file"
		expect 71 '' "redlock: $TMP/nowhere/file: No such file or directory"
	done
	# those of a directory on the way are followed
	mkdir "$TMP/dir"
	ln -s dir "$TMP/way"
	redlock list --format prometheus --output "$TMP/way/file"
	expect 0
	[[ -f $TMP/dir/file ]]
}

@test "if there is no room for the file, the old one stays, and nothing beside it" {
	mkdir "$TMP/small"
	echo old >"$TMP/small/file"
	"${MOUNTS[@]}" mount -t tmpfs none "$TMP/small" 2>/dev/null || skip "may not mount here"
	redlock_on_full_disk() {
		"${MOUNTS[@]}" sh -c 'mount -t tmpfs -o size=4k,mode=777 none "$1/small" && echo old >"$1/small/file" &&
			{ "$2" list --format prometheus --output "$1/small/file"; echo "$?"; cat "$1"/small/*; ls -A "$1/small"; }' - "$TMP" "$REDLOCK"
	}
	run --separate-stderr redlock_on_full_disk
	expect 0 $'71\nold\nfile' "redlock: $TMP/small/file: No space left on device"
}

@test "--output is for metrics, and for list and doctor" {
	refuses 64 '--output is for --format prometheus' list --output file
	refuses 64 '--output is for --format prometheus' list --format json --output file
	refuses 64 '--output is for --format prometheus' doctor --output file
	refuses 64 "--format 'prometheus' is not json" status --format prometheus "$KEY"
	refuses 64 "--format 'openmetrics' is not json or prometheus" list --format openmetrics
	refuses 64 "--output '' is not valid: it is empty" list --format prometheus --output ''
	no_row_failed
}
