#!/usr/bin/env bats
# Bad input: said in one line, with 64 or 78, before anything is done.

# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # tests are subshells; cli.bash uses it; bats sets it

load ../lib/helper
load ../lib/cli

# what makes the rest of a `run` right
RUN_TAIL=(key true)

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	export REDLOCK_SERVERS=$NOWHERE
	unset REDLOCK_TOKEN
}

# right ARGUMENT...: well-formed, so that it gets as far as the server that is not there.
right() {
	refuses 69 'nonexistent' "$@"
}

bad_durations=('' ' ' -1 -0 +1 ' 5' '5 ' 1e3 0x10 5x 10m5 30s1m 1.5h30m 1h30 '1h 30m' 1h-30m 1..5 . '1,5' NaN inf 999999999d
	9223372036854775808 18446744073709551617ms 99999999999999999999999999999999)

@test "what is no DURATION is refused and quoted, for every option that takes one" {
	local option value
	for value in "${bad_durations[@]}"; do
		refuses 64 "'$(literal "$value")'" run --ttl "$value" "${RUN_TAIL[@]}"
	done
	for value in '' -1 1e3 10m5 999999999d; do
		for option in -t --wait -w --server-timeout --quarantine -k --kill-after --min-hold --max-hold; do
			refuses 64 "'$(literal "$value")'" run "$option" "$value" "${RUN_TAIL[@]}"
		done
		for option in --ttl --wait --server-timeout --quarantine --poll; do
			refuses 64 "'$(literal "$value")'" acquire "$option=$value" key
		done
		refuses 64 "'$(literal "$value")'" extend -t "$value" key token
		refuses 64 "'$(literal "$value")'" release --server-timeout "$value" key token
	done
	no_row_failed
}

@test "a DURATION has several units, the larger first, and a bare number up to 3600" {
	local value
	for value in 1h30m 4m30s 10min 30sec 1m1.5s 3600 3600s 3601s 30000ms; do
		right extend -t "$value" key token
		right acquire --server-timeout "$value" -n key
	done
	for value in 3601 30000 7200.5; do
		refuses 64 "-t '$value' is not clear: ${value}ms or ${value}s\\?$" run -t "$value" "${RUN_TAIL[@]}"
		refuses 64 "--wait '$value' is not clear: ${value}ms or ${value}s\\?$" acquire --wait "$value" key
		refuses 64 "--poll '$value' is not clear: ${value}ms or ${value}s\\?$" acquire --poll="$value" key
		refuses 64 "--min-hold '$value' is not clear: ${value}ms or ${value}s\\?$" run --min-hold "$value" "${RUN_TAIL[@]}"
		REDLOCK_WAIT=$value refuses 78 "REDLOCK_WAIT '$value' is not clear: ${value}ms or ${value}s\\?$" acquire key
	done
	no_row_failed
}

@test "a DURATION that is too short, too long or negative is refused by a message that names the range" {
	local value
	right acquire --quarantine 36500d -n key
	for value in 36501d 36500d1ms 999999999d 99999999999999999999s -1; do
		refuses 64 "-w '$value' is not in range: 0 to 36500d$" run -w "$value" "${RUN_TAIL[@]}"
		refuses 64 "--max-hold '$value' is not in range: 1ms to 36500d$" run --max-hold "$value" "${RUN_TAIL[@]}"
	done
	refuses 64 "--max-hold '0' is not in range: 1ms to 36500d$" run --max-hold 0 "${RUN_TAIL[@]}"
	for value in 36500d 36501d 0 2ms -1 -1h30m; do
		refuses 64 "-t '$value' is not in range: 3ms to a day$" run -t "$value" "${RUN_TAIL[@]}"
		REDLOCK_TTL=$value refuses 78 "REDLOCK_TTL '$value' is not in range: 3ms to a day$" acquire key
	done
	refuses 64 "--min-hold '1d1ms' is not in range: 0 to a day$" run --min-hold 1d1ms "${RUN_TAIL[@]}"
	refuses 64 "-t '10x' is not a DURATION such as 500ms, 30s or 1h30m$" run -t 10x "${RUN_TAIL[@]}"
	no_row_failed
}

@test "a lease or a round of no time is refused" {
	local value
	for value in 0 0s 0.0 0.0009 .9ms; do
		refuses 64 "'$(literal "$value")'" run -t "$value" "${RUN_TAIL[@]}"
		refuses 64 "'$(literal "$value")'" acquire -t "$value" key
		refuses 64 "'$(literal "$value")'" extend -t "$value" key token
		refuses 64 "'$(literal "$value")'" run --server-timeout "$value" "${RUN_TAIL[@]}"
		refuses 64 "'$(literal "$value")'" run --max-hold "$value" "${RUN_TAIL[@]}"
	done
	no_row_failed
}

@test "a lease of more than a day is refused, as it would be renewed anyway" {
	local value
	for value in 25h 86401s 24h1s 1.01d; do
		refuses 64 'day' run -t "$value" "${RUN_TAIL[@]}"
		refuses 64 'day' acquire -t "$value" key
		refuses 64 'day' extend -t "$value" key token
	done
	right extend -t 1d key token
	no_row_failed
}

@test "a --min-hold of more than a day, or than --max-hold, is refused" {
	refuses 64 '--min-hold .*day' run --min-hold 25h "${RUN_TAIL[@]}"
	right run --min-hold 1d "${RUN_TAIL[@]}"
	right run --min-hold 0 "${RUN_TAIL[@]}"
	refuses 64 '--min-hold .*--max-hold' run --min-hold 5s --max-hold 4999ms "${RUN_TAIL[@]}"
	right run --min-hold 5s --max-hold 5s "${RUN_TAIL[@]}"
	right run --max-hold 36500d "${RUN_TAIL[@]}"
	no_row_failed
}

@test "a number that is none, or outside its range, is refused and quoted" {
	local value
	for value in '' ' ' -1 256 +5 ' 5' '5 ' 1x 1.5 1e1 0x1 abc 4294967296 18446744073709551616; do
		refuses 64 "'$(literal "$value")'" run -E "$value" "${RUN_TAIL[@]}"
		refuses 64 "'$(literal "$value")'" acquire --conflict-exit-code="$value" key
	done
	for value in '' -1 0 1x 1.5 abc 18446744073709551616; do
		refuses 64 "'$(literal "$value")'" run --tries "$value" "${RUN_TAIL[@]}"
	done
	for value in '' 0 00 -1 +1 ' 1' '1 ' 1e3 0x1 1.5 abc 100001 99999999999999999999; do
		refuses 64 "'$(literal "$value")'.* 1 to 10000" run -P "$value" "${RUN_TAIL[@]}"
		refuses 64 "'$(literal "$value")'.* 1 to 10000" acquire --permits="$value" key
	done
	for value in '' -1 +1 1x 1.5 1001 abc 18446744073709551616; do
		refuses 64 "'$(literal "$value")'.* 0 to 1000" run --replicas "$value" "${RUN_TAIL[@]}"
		refuses 64 "'$(literal "$value")'.* 0 to 1000" extend --replicas="$value" key token
	done
	for value in 0 1 1000; do
		right run --replicas "$value" "${RUN_TAIL[@]}"
		right acquire "--replicas=$value" key
	done
	for value in 1 01 10000; do
		right run -P "$value" "${RUN_TAIL[@]}"
		right acquire "-P$value" key
	done
	for value in '' -1 1x 1.5 abc 4294967297 18446744073709551616; do
		refuses 64 "'$(literal "$value")'" run --status-fd "$value" "${RUN_TAIL[@]}"
	done
	no_row_failed
}

@test "a word that an option does not know is refused and quoted" {
	local value
	for value in '' keep KILL9 SIGFOO 0 99 -1 'kill '; do
		refuses 64 "'$(literal "$value")'" run --on-lost "$value" "${RUN_TAIL[@]}"
	done
	refuses 64 "''" run --label '' "${RUN_TAIL[@]}"
	refuses 64 "''" run --config '' "${RUN_TAIL[@]}"
	refuses 64 "''" run --set '' "${RUN_TAIL[@]}"
	refuses 64 "''" run -c '' key
	for value in '' xml JSON 'json ' shell,json; do
		PRINTED='(exit 64)' refuses 64 "'$(literal "$value")'" acquire --format "$value" key
	done
	for value in '' shell JSON 'json '; do
		refuses 64 "'$(literal "$value")'" status --format "$value" key
		refuses 64 "'$(literal "$value")'" list --format "$value"
	done
	no_row_failed
}

@test "a status descriptor that is not open is refused" {
	refuses 64 '57' run --status-fd 57 "${RUN_TAIL[@]}" 57>&-
	refuses 64 '57' run --status-fd 57 "${RUN_TAIL[@]}" 57</dev/null
	right run --status-fd 57 "${RUN_TAIL[@]}" 57>"$TMP/status"
	no_row_failed
}

@test "the lease that is asked for instead of one that is too short is long enough" {
	local options least
	for options in '--kill-after 60s' '-t 3s --kill-after 10m' '-t 1s --server-timeout 1s' '-t 10ms'; do
		# shellcheck disable=SC2086 # words
		redlock run $options "$KEY" true
		[[ $status == 64 && $stderr =~ 'it must be longer than '([0-9]+)' ms' ]]
		least=${BASH_REMATCH[1]}
		# shellcheck disable=SC2086
		redlock run -S unix:///none ${options#-t *s} -t "${least}ms" "$KEY" true
		[[ $status == 64 && $stderr == *"must be longer than $least ms"* ]]
		# shellcheck disable=SC2086
		redlock run -S unix:///none ${options#-t *s} -t "$((least + 1))ms" -n "$KEY" true
		[[ $status == 69 ]]
	done
	redlock run --kill-after 24h "$KEY" true
	expect 64 '' 'redlock: a lease .*, and no lease is longer than 24h'
}

@test "an option that is given twice is refused, in either form, and named" {
	local row words
	while read -ra words; do
		refuses 64 "option (${words[0]}) .*twice" run "${words[@]:1}" "${RUN_TAIL[@]}" 8>/dev/null
	done <<-'ROWS'
		--server-timeout --server-timeout 1 --server-timeout 1
		--timeout --timeout 1 --timeout 1
		--timeout -w 1 --timeout 1
		--config --config /dev/null --config /dev/null
		--set --set a --set=a
		-t|--ttl -t 5 -t 5
		-t|--ttl -t 5 --ttl 5
		-t|--ttl --ttl=5 --ttl=6
		-w|--wait -w 1 --wait 1
		-n|--nonblock -n -n
		-n|--nonblock -n --nonblock
		-E|--conflict-exit-code -E 1 -E 1
		-x|--exclusive -x --exclusive
		-e -xe
		--nb -n --nb
		-s|--shared -s --shared
		-P|--permits -P 2 --permits=2
		-r|--reentrant -rr
		--poll --poll --poll=1
		--tries --tries 3 --tries 3
		--quarantine --quarantine 0 --quarantine 0
		--label --label a --label b
		-k|--kill-after -k 1 --kill-after 1
		--min-hold --min-hold 1 --min-hold 2
		--max-hold --max-hold 1 --max-hold=1
		--on-lost --on-lost kill --on-lost warn
		-c|--command -c true -c true
		--status-fd --status-fd 8 --status-fd 8
		-q|--quiet -q -q
		-q|--quiet -qq
		-v|--verbose -v --verbose
	ROWS
	for row in --server-timeout=1 -t5 -w1 -n -E1 -x --tries=3 --quarantine=0 --label=a --format=json -q -v; do
		refuses 64 "$(literal "${row:0:2}").*twice" acquire "$row" key "$row"
	done
	for row in --server-timeout=1 -t5 -q; do
		refuses 64 "$(literal "${row:0:2}").*twice" extend "$row" "$row" key token
	done
	refuses 64 '--server-timeout .*twice' release --server-timeout=1 key token --server-timeout=1
	refuses 64 '--token .*twice' acquire -r --token a key --token a
	for row in --server-timeout=1 -w1 -E1 --quarantine=0 -q; do
		refuses 64 "$(literal "${row:0:2}").*twice" wait "$row" key "$row"
	done
	no_row_failed
}

@test "options that contradict each other are refused, and both are named" {
	local command kinds
	for command in run acquire; do
		local tail=(key)
		[[ $command == acquire ]] || tail=("${RUN_TAIL[@]}")
		refuses 64 '(-n|--nonblock) .*(-w|--wait)' "$command" -n -w 5 "${tail[@]}"
		refuses 64 '(-n|--nonblock) .*(-w|--wait)' "$command" --wait=5 --nonblock "${tail[@]}"
		refuses 64 '(-n|--nonblock) .*--poll' "$command" -n --poll "${tail[@]}"
		refuses 64 '(-n|--nonblock) .*--poll' "$command" --poll=1s -n "${tail[@]}"
		refuses 64 '(-n|--nonblock) .*--tries' "$command" -n --tries 2 "${tail[@]}"
		refuses 64 '(-q|--quiet) .*(-v|--verbose)|(-v|--verbose) .*(-q|--quiet)' "$command" -q -v "${tail[@]}"
		for kinds in '-s -x' '-x -s' '-s -P2' '-P2 -r' '-r -x' '-r -s' '-x -P 3' '-xs' '-sr' '-s -r -P1 -x' \
			'--shared --permits=1' '--exclusive --reentrant'; do
			# shellcheck disable=SC2086 # words
			refuses 64 ' -[xsrP] cannot be used with -[xsrP]:' "$command" $kinds "${tail[@]}"
		done
	done
	for command in acquire release extend wait list history status break doctor; do
		REDLOCK_TOKEN=token refuses 64 '-S cannot be used with --set' "$command" -S "$NOWHERE" --set a key
	done
	refuses 64 '-S cannot be used with --set' run --set a -S "$NOWHERE" "${RUN_TAIL[@]}"
	refuses 64 '--token.*-r' acquire --token a key
	refuses 64 '--token.*-r' acquire -s --token a key
	refuses 64 '--token.*-r' acquire -P 2 --token=a key
	refuses 64 '(-q|--quiet) .*(-v|--verbose)|(-v|--verbose) .*(-q|--quiet)' release -qv key token
	refuses 64 '(-q|--quiet) .*(-v|--verbose)|(-v|--verbose) .*(-q|--quiet)' extend -v --quiet key token
	no_row_failed
}

@test "status -q takes no option for what it would print, but need not know what a file says" {
	refuses 64 '^redlock: status: -q cannot be used with --format: see redlock status --help$' status -q --format json key
	refuses 64 '-q cannot be used with --format' status --format=json key token --quiet
	refuses 64 '-q cannot be used with --quarantine' status --quarantine 0 -q --also other key
	REDLOCK_QUARANTINE=3s right status -q key
	echo 'quarantine = 3s' >"$TMP/redlock.conf"
	right status -q --config "$TMP/redlock.conf" key
	no_row_failed
}

@test "an unknown command is refused; a near miss is told what was meant" {
	local row words
	while read -ra words; do
		refuses 64 "'${words[0]}'.*mean ${words[1]}" "${words[0]}" "${RUN_TAIL[@]}"
	done <<-'ROWS'
		rnu run
		rum run
		runn run
		acquir acquire
		aquire acquire
		relase release
		extnd extend
		hlep help
		stauts status
		lsit list
		brake break
		docter doctor
		wiat wait
		wat wait
		Run run
	ROWS
	refuses 64 'rnu' help rnu
	refuses 64 'frobnicate' frobnicate
	[[ $(<"$TMP/refused.err") != *mean* ]]
	refuses 64 "'deploy': did you mean redlock run deploy " deploy ./job
	while read -ra words; do
		refuses 64 "'${words[0]}': did you mean ${words[*]:1}\?" "${words[0]}" key
	done <<-'ROWS'
		lock run, or acquire
		unlock release
		ls list
		get acquire, or status
		kill break
		version --version
		exec run
		rm release, or break
		renew extend
		ping doctor
	ROWS
	for row in '' ' ' x; do refuses 64 "'$(literal "$row")'" "$row" key; done
	refuses 64 '[Cc][Oo][Mm][Mm][Aa][Nn][Dd]'
	no_row_failed
}

@test "an unknown option is refused; a near miss is told what was meant" {
	local row words
	while read -ra words; do
		refuses 64 "'${words[0]%%=*}'.*mean ${words[1]}" run "${words[0]}" "${RUN_TAIL[@]}"
	done <<-'ROWS'
		--tll --ttl
		--tll=5 --ttl
		--servr --server
		--nonblok --nonblock
		--quite --quiet
		--kill-afer --kill-after
		--onlost --on-lost
		--permitt=2 --permits
		--sharde --shared
		--renetrant --reentrant
	ROWS
	refuses 64 '--frobnicate' run --frobnicate "${RUN_TAIL[@]}"
	[[ $(<"$TMP/refused.err") != *mean* ]]
	for row in -Z -nZ -_ --=5 --nonblock=1 --quiet=; do
		refuses 64 "$(literal "${row%%=*}" | sed 's/^-nZ$/Z/; s/^--$/--/')" run "$row" "${RUN_TAIL[@]}"
	done
	refuses 64 '--frob' --frob
	refuses 64 '-Z' -Z
	no_row_failed
}

@test "-h is help only as the last word, and -S is named" {
	local command
	for command in run acquire release extend status list history wait break doctor; do
		refuses 64 '-h means help, and only as the last word: .* -S' "$command" -h lock1 key true
		refuses 64 '-h means help, and only as the last word: .* -S' "$command" -hlock1 key true
		refuses 64 '-h means help, and only as the last word: .* -S' "$command" -qh lock1
		refuses 64 '-h means help, and only as the last word: .* -S' "$command" -h ''
	done
	refuses 64 '-h means help, and only as the last word: .* -S' -h lock1 run key true
	redlock run -n -h
	[[ $status == 0 && $output == usage:* ]]
	no_row_failed
}

@test "options before the command are told where they belong" {
	refuses 64 "option '-n' stands before the command: .* redlock run -n" -n run key true
	refuses 64 "option '--server' stands before the command" --server "$NOWHERE" run key true
	refuses 64 'stands before the command' -Sredis://:hunter2@a run key true
	refuses 64 "option '-v' is for a command: .* --version" -v
	no_row_failed
}

@test "a time after --poll, a COMMAND as KEY and one for acquire are told what they are" {
	local value
	for value in 5 100ms 30000; do
		refuses 64 "--poll takes a time after '='; a number of attempts is --tries: '$value'" run --poll "$value" key true
		refuses 64 "--poll takes a time after '='" acquire --poll "$value" key
	done
	right run --poll -- 5 true
	right run --poll key 5
	refuses 64 "COMMAND is missing: './job' is KEY" run ./job
	refuses 64 "one argument too many: './job' \\(redlock run KEY COMMAND" acquire key ./job
	no_row_failed
}

@test "a long option with one dash is told that it has two" {
	local row
	for row in -ttl -wait -nonblock -server -timeout=5 -shared; do
		refuses 64 "'${row%%=*}' has one dash: a long option has two" run $row 5 key true
	done
	right run -nt5 key true
	no_row_failed
}

@test "a long option may be cut short where only one begins so" {
	local row
	for row in --non --nonb --wai=0 '--wai 0' --time=0 '--ttl 30 --kill 1s' --quar=0 --poll --pol=5ms --tri=3 --lab=a '--confi /dev/null' \
		--sha --reen '--perm 2' --on-l=warn --conflict=3; do
		# shellcheck disable=SC2086 # words
		right run $row "${RUN_TAIL[@]}"
	done
	right status --quiet key
	refuses 64 "--wait '5x' is not" run --wai 5x "${RUN_TAIL[@]}"
	refuses 64 'option --wait is given twice' run -w 5 --wai=5 "${RUN_TAIL[@]}"
	refuses 64 '--nonblock takes no value' run --non=5 "${RUN_TAIL[@]}"
	refuses 64 "option '--ser' could be --server or --server-timeout" run --ser "$NOWHERE" "${RUN_TAIL[@]}"
	refuses 64 "option '--qu' could be (--quarantine or --quiet|--quiet or --quarantine)" run --qu "${RUN_TAIL[@]}"
	refuses 64 "option '--m' could be --min-hold or --max-hold" run --m=5 "${RUN_TAIL[@]}"
	no_row_failed
}

@test "no abbreviation does what another word was meant for" {
	# a word of other programs, less than three letters, no verification, help: none is cut short
	refuses 64 "'--max': did you mean --permits" run --max 3 "${RUN_TAIL[@]}"
	refuses 64 "'--min': did you mean --min-hold" run --min 3 "${RUN_TAIL[@]}"
	refuses 64 "'--key': did you mean KEY" run --key nightly "${RUN_TAIL[@]}"
	refuses 64 "'--ex': did you mean --ttl" run --ex 30 "${RUN_TAIL[@]}"
	refuses 64 "'--e' could be --exclusive" run --e 75 "${RUN_TAIL[@]}"
	refuses 64 "'--ins': did you mean --insecure" run --ins "${RUN_TAIL[@]}"
	refuses 64 "'--hel': did you mean --help" run --hel lock1 "${RUN_TAIL[@]}"
	refuses 64 "unknown option '--h' \\(" run --h lock1 "${RUN_TAIL[@]}"
	no_row_failed
}

@test "what other programs call an option is told in our words" {
	local row words
	while read -ra words; do
		refuses 64 "unknown option '${words[0]}': did you mean $(literal "${words[*]:1}")" run "${words[0]}" "${RUN_TAIL[@]}"
	done <<-'ROWS'
		--no-wait --nonblock
		--nowait --nonblock
		--try-once --nonblock
		--block --wait
		--wait-timeout --wait
		--max-run --max-hold
		--limit --permits
		--url --server
		--host -S redis://HOST:PORT/DB
		--port -S redis://HOST:PORT/DB
		--db -S redis://HOST:PORT/DB
		--tls -S rediss://HOST
		--password REDLOCK_PASSWORD
		--user REDLOCK_PASSWORD
		--expire --ttl
		--expiry --ttl
		--lease --ttl
		--lease-time --ttl
		--debug --verbose
		--retry --tries
		--interval --poll
		--unlock redlock release KEY
		--version redlock --version
		-a REDLOCK_PASSWORD
		-u -S URL
		-H -S redis://HOST:PORT/DB
		-p -S redis://HOST:PORT/DB
		-V redlock --version
	ROWS
	for option in --close -o; do
		refuses 64 "unknown option '$option', which is not needed: COMMAND never inherits the lock: see" run "$option" "${RUN_TAIL[@]}"
	done
	refuses 64 "'--unlock': did you mean redlock release KEY" acquire --unlock key
	refuses 64 "'--force': did you mean --yes" break --force key
	refuses 64 "'--json': did you mean --format json" status --json key
	refuses 64 "unknown option '--json' \(put -- before a KEY" run --json "${RUN_TAIL[@]}"
	no_row_failed
}

@test "--timeout is the wait, and a command that does not wait names --server-timeout" {
	local command
	for command in run acquire wait; do
		refuses 64 "--timeout '5x' is not a DURATION" "$command" --timeout=5x key
	done
	refuses 64 '-n .*-w' run -n --timeout 5 "${RUN_TAIL[@]}"
	right run --timeout 0 "${RUN_TAIL[@]}"
	export REDLOCK_TOKEN=token
	for command in release extend status list history break doctor; do
		refuses 64 "'--timeout' is how long to wait.*did you mean --server-timeout" "$command" --timeout=500ms key
	done
	no_row_failed
}

@test "an option that the command does not use is refused, not ignored" {
	local row words
	while read -ra words; do
		[[ ${words[0]} == run ]] && words+=("${RUN_TAIL[@]}")
		[[ ${words[0]} == @(acquire|wait) ]] && words+=(key)
		[[ ${words[0]} == @(release|extend) ]] && words+=(key token)
		[[ ${words[0]} == @(status|list|history|break|doctor) ]] && words+=(key)
		refuses 64 "$(sed 's/^\(-[a-zA-Z]\)[0-9a-z].*/\1/; s/=.*//' <<<"${words[1]}")" "${words[@]}"
	done <<-'ROWS'
		release -t=5
		release --ttl=5
		release -n
		release -w1
		release -E1
		release --poll
		release --format=json
		release --label=a
		release --quarantine=0
		release --replicas=1
		wait --replicas=1
		extend -n
		extend -w1
		extend -x
		extend --tries=2
		extend --format=json
		extend --kill-after=1
		acquire -k1
		acquire --on-lost=kill
		acquire --min-hold=1
		acquire --max-hold=1
		release --min-hold=1
		extend --max-hold=1
		acquire -ctrue
		acquire --command=true
		acquire --status-fd=1
		run --format=json
		run -y
		acquire --yes
		run --foreign
		run --reason=why
		acquire --now
		status -t5
		status -n
		status -y
		list -w1
		list --label=a
		break --format=json
		break -E1
		doctor -n
		doctor -w1
		doctor --poll
		doctor -y
		run --token=a
		release -s
		release -r
		release -P2
		release --token=a
		extend -s
		extend -P2
		extend --reentrant
		wait -n
		wait -t5
		wait -s
		wait --poll
		wait --format=json
	ROWS
	no_row_failed
}

@test "options of later releases are unknown, not half there" {
	local option
	for option in --cacert=/dev/null --insecure; do
		refuses 64 "${option%%=*}" run "$option" "${RUN_TAIL[@]}"
	done
	no_row_failed
}

@test "an option without its value is refused" {
	local option
	for option in -S -t --ttl -w -E -P --permits --tries --server-timeout --config --set --quarantine --label -k --min-hold --max-hold --on-lost -c --status-fd --timeout; do
		refuses 64 "$(literal "${option#--}")" run "$option"
	done
	PRINTED='(exit 64)' refuses 64 format acquire key --format
	refuses 64 token acquire -r key --token
	refuses 64 wait wait key --wait
	no_row_failed
}

@test "a missing KEY is refused" {
	local row words
	while read -ra words; do refuses 64 KEY "${words[@]}"; done <<-'ROWS'
		run
		run --
		run -t 60
		run -c true
		acquire
		acquire --
		acquire -n
		release
		extend
		extend -t 60
		status
		status --
		status -q
		break
		break -y
		wait
		wait -w 5
	ROWS
	no_row_failed
}

@test "an empty KEY and one above 4096 bytes are refused, and not repeated at length" {
	local key
	for key in '' "$(repeat x 4097)" "$(repeat x 65536)" "$(repeat $'\e' 65536)"; do
		refuses 64 KEY run "$key" true
		refuses 64 KEY run -c true "$key"
		refuses 64 KEY acquire "$key"
		refuses 64 KEY release "$key" token
		refuses 64 KEY extend "$key" token
		refuses 64 KEY status "$key"
		refuses 64 KEY history "$key"
		refuses 64 KEY status key "$key"
		refuses 64 KEY history "$key"
		refuses 64 KEY status -q "$key" token
		refuses 64 KEY break -y "$key"
		refuses 64 KEY doctor "$key"
		refuses 64 PATTERN list "$key"
		refuses 64 KEY wait "$key"
	done
	no_row_failed
}

@test "a KEY that would be the record of another, or what is beside it, is refused" {
	local key
	for key in '{x}:redlock' '{x}:redlock:runs' '{x}:redlock:queue' '{x}:redlock:wishes' '{x}:redlock:00112233445566778899aabbccddeeff' \
		'{x}redlock' '{x}redlock:queue' 'a{b}c:redlock' 'a{b}c:redlock:queue' '{a}b}redlock' '{x}:redlock:redlock'; do
		refuses 64 KEY run "$key" true
		refuses 64 KEY acquire "$key"
		refuses 64 KEY release "$key" token
		refuses 64 KEY extend "$key" token
		refuses 64 KEY status key "$key"
		refuses 64 KEY history "$key"
		refuses 64 KEY break -y "$key"
		refuses 64 KEY doctor "$key"
		refuses 64 KEY wait "$key"
		right list "$key"
	done
	for key in redlock x:redlock redlock:x:redlock '{x}redlocked' 'x{y}z:my-redlock'; do right acquire "$key"; done
	no_row_failed
}

@test "a KEY of 4096 bytes, of blanks or of any bytes is as good as another" {
	local key
	for key in "$(repeat x 4096)" ' ' $'\xff\xfe\x01\n\e[31m' '{a}{b}' '%s%n' "'"; do
		right run "$key" true
		right acquire "$key"
		right release "$key" token
		right status -q "$key"
		right break -y "$key"
		right list "$key"
		right wait "$key"
	done
	no_row_failed
}

@test "a missing COMMAND is refused, and so are COMMAND and -c together" {
	refuses 64 COMMAND run key
	refuses 64 COMMAND run key --
	refuses 64 COMMAND run -t 60 -- key
	refuses 64 COMMAND run key ''
	refuses 64 'COMMAND.*-c|-c.*COMMAND' run -c true key true
	refuses 64 'COMMAND.*-c|-c.*COMMAND' run -c true key -- true
	no_row_failed
}

@test "options after KEY are refused: they would be COMMAND" {
	local row words
	while read -ra words; do
		refuses 64 "$(literal "${words[0]}").*before KEY|before KEY.*$(literal "${words[0]}")" run key "${words[@]}"
	done <<-'ROWS'
		-t 60 true
		--ttl=60 true
		-n true
		-c true
		-
		--frobnicate
	ROWS
	right run key -- -t 60
	right run -- key -- -t 60
	no_row_failed
}

@test "operands that are too many are refused" {
	refuses 64 other acquire key other
	refuses 64 other acquire key -- other
	refuses 64 other release key token other
	refuses 64 other extend key token other
	refuses 64 other status -q key token other
	refuses 64 other status key token -q other
	refuses 64 other list key other
	refuses 64 other break -y key other
	refuses 64 other doctor key other
	refuses 64 other wait key other
	refuses 64 other help run other
	no_row_failed
}

@test "a TOKEN that is missing, empty or above 256 bytes is refused, wherever it comes from" {
	local command
	for command in release extend; do
		refuses 64 'TOKEN' "$command" key
		refuses 64 'TOKEN' "$command" key ''
		refuses 64 'TOKEN' "$command" key "$(repeat x 257)"
		REDLOCK_TOKEN='' refuses 64 'REDLOCK_TOKEN' "$command" key
		REDLOCK_TOKEN=$(repeat x 257) refuses 64 'REDLOCK_TOKEN' "$command" key
		right "$command" key "$(repeat x 256)"
		REDLOCK_TOKEN=$(repeat x 256) right "$command" key
	done
	refuses 64 'TOKEN' status -q key ''
	refuses 64 'TOKEN' status key "$(repeat x 257)" -q
	right status -q key "$(repeat x 256)"
	REDLOCK_TOKEN='' right status -q key
	no_row_failed
}

@test "a TOKEN to be that is empty, above 256 bytes or not plain is refused" {
	local token
	for token in '' ' ' 'a b' ' a' 'a=b' = '%' 'a%20b' $'a\nb' $'a\tb' $'\x7f' $'\e[31m' "$(repeat x 257)"; do
		refuses 64 '--token .* without blanks' acquire -r --token "$token" key
	done
	for token in a 0 -- -x "$(repeat x 256)" "'" '"' '{}' '$(id)'; do
		right acquire -r --token="$token" key
	done
	no_row_failed
}

@test "a ttl that leaves run no room is refused with the arithmetic" {
	# drift 18 ms + margin 100 ms + kill-after 500 ms + 2 x 500 ms, with a lease of 1619 ms
	refuses 64 'longer than 1618 ms' run -t 1s -k 500ms --server-timeout 500ms "${RUN_TAIL[@]}"
	[[ $(<"$TMP/refused.err") == *kill-after* && $(<"$TMP/refused.err") == *timeout* ]]
	# drift 12 ms + margin 100 ms + 2 x 100 ms leave 688 ms for kill-after
	refuses 64 'kill-after' run -t 1s -k 689ms --server-timeout 100ms "${RUN_TAIL[@]}"
	right run -t 1s -k 687ms --server-timeout 100ms "${RUN_TAIL[@]}"
	# the margin is a 50th of the ttl: drift 1002 + margin 2000 + 2 x 1000 leave 94998
	refuses 64 'kill-after' run -t 100s -k 94999ms --server-timeout 1s "${RUN_TAIL[@]}"
	right run -t 100s -k 94997ms --server-timeout 1s "${RUN_TAIL[@]}"
	refuses 64 'timeout' run --server-timeout 15 "${RUN_TAIL[@]}"
	no_row_failed
}

@test "without further options a ttl has room from 200 ms on, as the defaults shrink with it" {
	refuses 64 'kill-after' run -t 150ms "${RUN_TAIL[@]}"
	right run -t 250ms "${RUN_TAIL[@]}"
	right run -t 10h "${RUN_TAIL[@]}"
	no_row_failed
}

bad_urls=(
	127.0.0.1 127.0.0.1:6379 host /run/redis.sock redis: redis:/host redis:// redis:///1
	redis://:6379 redis://:6379/1 redis://user@:1 http://host foo://host REDIS://host
	redisss://host redis+sentinel://host redis+sentinel://host/ redis+sentinel:///name redis+sentinel://a,/name
	redis+sentinel://host:0/name redis+sentinel://a,a/name redis+sentinel://a/name/x redis+sentinel://a/name,b
	redis+cluster:// redis+cluster://host/1 redis+cluster://a,a:6379 redis+cluster://a,b,c,d,e,f,g,h,i
	redis://host:0 redis://host:65536 redis://host:6379x redis://host: redis://host:-1 redis://host:+1
	redis://host:99999999999999999999 redis://host:1:2
	redis://host/-1 redis://host/16x redis://host/a redis://host/1/2 redis://host/99999999999999999999
	'redis://[::1' 'redis://::1]' 'redis://[::1]x' 'redis://[]' 'redis://[host]' redis://::1 'redis://[::1]:0'
	redis://us%er@host redis://u:%zz@host redis://u:%4@host redis://u:%00@host
	'redis://a host' 'redis://host ' $'redis://host\n' $'redis://h\e[31m'
	unix: unix:// unix://path unix:///s?db=-1 unix:///s?db=16x unix:///s?db= unix:///s?x=1
	"unix:///$(printf '%0107d' 0)" local local:x local:///s
)

@test "a server's URL of any wrong shape is refused by -S" {
	local url
	for url in "${bad_urls[@]}"; do
		refuses 64 '[a-z]' run -S "$url" "${RUN_TAIL[@]}"
	done
	refuses 64 '[a-z]' release -S "$NOWHERE" -S "redis://host:0" key token
	refuses 64 '[a-z]' extend -S "$NOWHERE,redis://host:0" key token
	no_row_failed
}

@test "a wrong URL in REDLOCK_SERVERS is a wrong configuration, and the variable is named" {
	local url
	for url in "${bad_urls[@]}" ',' ',,' "$NOWHERE,," "$NOWHERE,$NOWHERE"; do
		REDLOCK_SERVERS=$url refuses 78 REDLOCK_SERVERS acquire key
	done
	no_row_failed
}

@test "a wrong name in REDLOCK_SNI is a wrong configuration, not one that is passed over" {
	local name
	for name in .example 'a b' a/b $'a\n' "$(repeat a 254)"; do
		REDLOCK_SNI=$name refuses 78 '^redlock: REDLOCK_SNI .* is not the name or the address of a host' acquire key
		REDLOCK_SNI=$name right acquire --sni a -S rediss://127.0.0.1:1,"$NOWHERE" key
	done
	REDLOCK_SNI='' right acquire key
	no_row_failed
}

@test "a list of servers with nothing in it, or in one of its places, is refused" {
	local list
	for list in '' ',' ',,' "$NOWHERE," ",$NOWHERE" "unix:///a,,unix:///b"; do
		refuses 64 'server' acquire -S "$list" key
		refuses 64 'server' acquire -S unix:///c -S "$list" key
	done
	no_row_failed
}

@test "a server that is named twice is refused, however it is written" {
	local row words
	while read -ra words; do
		refuses 78 "$(literal "${words[0]}")" acquire "${words[@]:1}" key
	done <<-'ROWS'
		unix:///a -S unix:///a -S unix:///a
		unix:///a/b -S unix:///a/b,unix://///a/./b
		unix:///a?db=1 -S unix:///a,unix:///a?db=1
		redis://h:6379/1 -S redis://h:6379/2,redis://h/1
		redis://HOST:6379 -S redis://host,redis://HOST
		redis://host.:6379 -S redis://host,redis://host.
		rediss://host:6379 -S redis://host,rediss://host
		unix:///a -S unix:///a,unix:///b,unix:///a
		redis://host:6379 -S redis://host -S redis://host:6379
		redis://host:6379 -S redis://host,redis://host/
		redis://[::1]:6379 -S redis://[::1],redis://[::1]:6379
		local: -S local:,local:
	ROWS
	no_row_failed
}

@test "more than 32 servers are refused" {
	local list='' i
	for ((i = 0; i < 32; i++)); do list+=,unix:///nonexistent/$i; done
	right acquire -S "${list#,}" key
	refuses 64 '32' acquire -S "${list#,},unix:///nonexistent/32" key
	REDLOCK_SERVERS=${list#,},unix:///nonexistent/32 refuses 78 '32' acquire key
	no_row_failed
}

# URLs with a password where it may stand, where it may not, and where other programs have it; H is a
# port at which nobody listens
secret_urls=(
	hunter2 :hunter2 bob:hunter2 bob:hunter2@H hunter2@H //:hunter2@H H:hunter2 'H?password=hunter2'
	redis:hunter2 redis:hunter2@H redis:/:hunter2@H redis:bob:hunter2@H redis:///:hunter2@H redis:///hunter2
	redis://:hunter2 redis://:hunter2@ redis://:hunter2@H redis://hunter2@H redis://bob:hunter2 redis://bob:hunter2/0
	redis://bob:hunter2@H redis://bob:hunter2@H/x redis://bob:hunter2@H:0 redis://bob:hunter2@:1 redis://bob:hunter2@/1
	redis://bob:hunter2@127.0.0.1:x redis://bob:hunter2@127.0.0.1:99999 'redis://bob:hunter2@[::1' 'redis://bob:hunter2@[::1]x'
	redis://bob:x/hunter2@127.0.0.1:0 redis://bob:x@hunter2@127.0.0.1:0 'redis://bob:x?hunter2@127.0.0.1:0'
	'redis://bob:x#hunter2@127.0.0.1:0' redis://bob:hunter2,x@H redis://bob:x,hunter2@H
	'redis://bob:hunter2 @H' 'redis://bob:x hunter2@H' $'redis://bob:x\thunter2@H' $'redis://bob:hunter2\n@H'
	redis://bob:hunter2%@H redis://bob:hunter2%zz@H redis://bob:hunter2%00@H redis://%zz:hunter2@H
	redis://H:hunter2 redis://127.0.0.1:hunter2 'redis://[::1]:hunter2' 'redis://[::1]hunter2' 'redis://[hunter2'
	redis://H/hunter2 redis://H/0/hunter2 'redis://H;hunter2' 'redis://H#hunter2' 'redis://H hunter2'
	'redis://H?hunter2' 'redis://H?password=hunter2' 'redis://H/?password=hunter2' 'redis://H/0?password=hunter2'
	'redis://H/0?db=1&password=hunter2' 'redis://H/0?username=bob&password=hunter2' 'redis://H?password=x@hunter2'
	REDIS://:hunter2@H http://bob:hunter2@H rediss:hunter2@H rediss://bob:hunter2 rediss://bob:hunter2@H
	rediss://bob:hunter2@H/x 'rediss://H/0?password=hunter2' rediss://127.0.0.1:hunter2
	unix:hunter2 unix://hunter2/s unix://:hunter2/s unix://:hunter2@s unix://:hunter2@ unix://:hunter2@/no/s
	'unix://:hunter2@/no/s?db=x' unix:///:hunter2@/no/s 'unix:/s?password=hunter2' 'unix:///s?password=hunter2'
	'unix:///s?db=0&password=hunter2' 'unix:///s?hunter2' 'unix:///s hunter2' local:hunter2 local://:hunter2@H
	redis+sentinel://:hunter2@H redis+sentinel://:hunter2@H/m redis+sentinel://:hunter2@H,H/m redis+sentinel://:hunter2@/m
	redis+sentinel://H,bob:hunter2/m redis+sentinel://H:hunter2/m redis+sentinel://H/m/hunter2
	'redis+sentinel://H/m?password=hunter2' 'redis+sentinel://H/m/0?password=hunter2' redis+sentinel://:hunter2,H/m
	redis+cluster://:hunter2 redis+cluster://:hunter2@H redis+cluster://:hunter2@H/1 redis+cluster://H,bob:hunter2
	redis+cluster://H/hunter2 'redis+cluster://H?password=hunter2' redis+cluster://:hunter2,H
	"redis://:hunter2$(repeat x 400)@127.0.0.1:0" "redis://127.0.0.1/$(repeat 0 300)?password=hunter2"
)

# shows_no_secret STATUSES ARGUMENT...: ends with one of them, and without a password in what it says.
shows_no_secret() {
	local want=$1 got=0
	shift
	timeout -k 1 20 "$REDLOCK" "$@" </dev/null >"$TMP/said" 2>&1 || got=$?
	[[ $got == @($want) && -s $TMP/said && $(<"$TMP/said") != *hunter2* ]] && return
	((++failed_rows))
	printf '%q ' "$@" "$got" "$(head -c 500 "$TMP/said")" >&2
	echo >&2
}

@test "no password of a URL is shown, wherever it stands in it, and wherever the URL stands" {
	local url file=$TMP/redlock.conf wrong='64|69|78'
	for url in "${secret_urls[@]}"; do
		url=${url//H/127.0.0.1:1}
		shows_no_secret "$wrong" acquire -v --server-timeout 100ms -S "$url" key
		shows_no_secret "$wrong" run -v --server-timeout=100ms --server="$url" -S "$NOWHERE" key true
		REDLOCK_SERVERS=$url shows_no_secret '69|78' status -v --server-timeout 100ms --format json key
		(umask 077 && printf 'server-timeout = 100ms\nserver = %s\n' "$url" >"$file")
		shows_no_secret '69|78' list -v --config "$file" --format json
		printf 'server-timeout = 100ms\n[set]\nserver = %s\n' "$url" >"$file"
		shows_no_secret '69|78' doctor -v --config "$file" --set set --format json
	done
	no_row_failed
}

@test "a comma in a password is no end of a URL, and is told how to write it" {
	local url why='a comma separates URLs: write %2C for a comma in a password$'
	for url in redis://:hun,ter2@h redis://bob:hun,ter2@h rediss://:h,u,nter2@h unix://:hun,ter2@/s "$NOWHERE,redis://:hun,ter2@h" \
		"redis://:hun,ter2@h,$NOWHERE"; do
		refuses 64 "^redlock: server: $why" acquire -S "$url" key
		REDLOCK_SERVERS=$url refuses 78 "^redlock: REDLOCK_SERVERS: server: $why" acquire key
	done
	refuses 69 '127\.0\.0\.1:1' acquire -S redis://:hun%2Cter2@127.0.0.1:1 key
	# hosts before a login would be no hosts
	for url in redis+sentinel://h,:hunter2@h/m redis+sentinel://bob:hunter2@h,h,bob:hunter2@h/m rediss+cluster://h,bob:hunter2@h \
		redis+sentinel://:hun,ter2@h/m; do
		refuses 64 "^redlock: server 'rediss?\\+[a-z]+://h(\.\.\.)?': the login goes before the first host, once, and a comma in it is %2C$" acquire -S "$url" key
	done
	refuses 69 '127\.0\.0\.1:1' acquire -S redis+cluster://:hun%2Cter2@127.0.0.1:1 key
	no_row_failed
}

@test "no password of a URL is shown where another argument was asked for" {
	local url file=$TMP/redlock.conf option
	for url in redis://:hunter2@h redis://bob:hunter2 'redis://h/0?password=hunter2' unix://:hunter2@/s \
		redis+cluster://:hunter2@h,h redis://:hunter2@h,redis://:hunter2@b; do
		shows_no_secret 64 "$url"
		shows_no_secret 64 help run "$url"
		shows_no_secret '64|69' status "--servers=$url" key
		for option in -t -w --poll= -E --format --on-lost -P; do
			shows_no_secret 64 acquire $option"$url" key
		done
		shows_no_secret 64 extend key token "$url"
		shows_no_secret 78 status --set "$url" key
		for option in ttl servers poll kill-after; do
			(umask 077 && printf '%s = %s\n' "$option" "$url" >"$file")
			shows_no_secret 78 extend --config "$file" key token
		done
	done
	no_row_failed
}

@test "a password after '?', as other programs have it, is told where it belongs" {
	local url told='a login goes before the host or the path, as in redis://user:password@host, or the password goes into REDLOCK_PASSWORD'
	for url in 'redis://H?password=hunter2' 'redis://H/0?db=1&password=hunter2' 'redis://H/0?username=bob' \
		'redis://H/0?password=p@ss' 'rediss://H?password=hunter2' 'unix:///s?password=hunter2' \
		'redis+sentinel://H/m?password=hunter2' 'redis+cluster://H?password=hunter2'; do
		refuses 64 "server '[a-z+]*://[/.0-9s]*\.\.\.': $told" acquire -S "${url/H/127.0.0.1:1}" key
	done
	no_row_failed
}

@test "a user without a password is a wrong configuration, not another login" {
	refuses 78 'a user without a password: set REDLOCK_PASSWORD' acquire -S redis://bob@host key
	refuses 78 REDLOCK_PASSWORD acquire -S "$NOWHERE,unix://bob@/path" key
	REDLOCK_PASSWORD='' refuses 78 REDLOCK_PASSWORD acquire -S redis://bob@host key
	REDLOCK_PASSWORD=hunter2 right acquire -S "unix://bob@${NOWHERE#unix://}" key
	no_row_failed
}

@test "a password file that can't be read is a wrong configuration, and named" {
	REDLOCK_PASSWORD_FILE=$TMP/missing refuses 78 "$(literal "$TMP/missing")" acquire key
	REDLOCK_PASSWORD_FILE=$TMP refuses 78 "$(literal "$TMP")" acquire key
	REDLOCK_PASSWORD_FILE=$TMP/missing/x refuses 78 "$(literal "$TMP/missing/x")" run key true
	no_row_failed
}

# native: it runs a copy of redlock's file as somebody else
# bats test_tags=native
@test "a password file of another user's is a wrong configuration, and named" {
	reachable
	install -m 600 /dev/null "$SET/password"
	TRACER=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	REDLOCK_PASSWORD_FILE=$SET/password refuses 78 "$(literal "$SET/password").*Permission denied" acquire key
	no_row_failed
}

@test "a password file has any mode, but others may not write it" {
	echo hunter2 >"$TMP/password"
	local mode
	for mode in 602 620 666; do
		chmod "$mode" "$TMP/password"
		REDLOCK_PASSWORD_FILE=$TMP/password refuses 78 \
			"REDLOCK_PASSWORD_FILE: $(literal "$TMP/password"): others may write it" acquire key
		run -1 grep hunter2 "$TMP/refused.err"
	done
	# 0444 is what containers are given their secrets with
	for mode in 600 400 644 640 444; do
		chmod "$mode" "$TMP/password"
		REDLOCK_PASSWORD_FILE=$TMP/password redlock acquire "$KEY"
		[[ $status == 69 && $stderr != *"$TMP/password"* ]]
	done
	no_row_failed
}

@test "a password comes through a pipe, however slowly, and one that never comes is told" {
	local part
	mkfifo "$TMP/pipe"
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	spawn slow env REDLOCK_PASSWORD_FILE="$TMP/pipe" "$REDLOCK" acquire -S "$(server_url 0)" key
	exec 7>"$TMP/pipe"
	for part in hun ter 2; do
		printf %s "$part" >&7
		sleep 0.1 # so that they come apart
	done
	exec 7>&-
	finish slow
	[[ $status == 0 ]]
	spawn empty env REDLOCK_PASSWORD_FILE="$TMP/pipe" "$REDLOCK" acquire -S "$NOWHERE" key
	: >"$TMP/pipe"
	finish empty
	expect 78 '' "redlock: REDLOCK_PASSWORD_FILE: $TMP/pipe: its first line is empty"
	printf 'a\0b\0\n\0' >"$TMP/utf-16"
	REDLOCK_PASSWORD_FILE=$TMP/utf-16 refuses 78 'utf-16: its first line has a NUL byte: is it plain text\?' acquire key
	REDLOCK_PASSWORD_FILE=$TMP/pipe refuses 78 'pipe: no line was written into it for 10s' acquire key
	no_row_failed
}

@test "hostile bytes in arguments are made visible in the one line about them" {
	local hostile=$'a\n\e[31m\x7f\xff\tz'
	refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' "$hostile"
	refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' run --"$hostile" "${RUN_TAIL[@]}"
	refuses 64 '\\e' run $'-\e' "${RUN_TAIL[@]}"
	refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' run -t "$hostile" "${RUN_TAIL[@]}"
	refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' run -E "$hostile" "${RUN_TAIL[@]}"
	PRINTED='(exit 64)' refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' acquire --format="$hostile" key
	refuses 64 "server 'unix://\.\.\.': a URL cannot contain blanks" acquire -S "unix:///$hostile" key
	refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' acquire key "$hostile"
	refuses 64 'a\\n\\e\[31m\\x7f\\xff\\tz' run key "-$hostile"
	refuses 69 'redlock: a\\n\\e\[31m\\x7f\\xff\\tz: ' acquire "$hostile"
	REDLOCK_PASSWORD_FILE="/nonexistent/$hostile" refuses 78 'a\\n\\e\[31m\\x7f\\xff\\tz' acquire key
	no_row_failed
}

@test "nothing that is refused has opened a socket" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	# the leak check of a sanitizer's build cannot be traced
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	# a name, so that a look-up would show as well
	export REDLOCK_SERVERS=redis://redlock.invalid
	TRACER=(strace -f -qq -o "$TMP/trace" -e trace=network -e signal=none)
	: >"$TMP/trace"
	local row words
	while IFS='|' read -ra words; do
		PRINTED=
		[[ ${words[1]-} != --format ]] || PRINTED='(exit 64)'
		refuses 64 '[a-z]' "${words[@]}"
		if [[ -s $TMP/trace ]]; then
			printf '%s: %s\n' "${words[*]}" "$(head -n 1 "$TMP/trace")" >&2
			((++failed_rows))
		fi
	done <<-'ROWS'
		rnu
		run
		run|key
		run|--tll|5|key|true
		run|-Z|key|true
		run|-t|5|-t|5|key|true
		run|-n|-w|5|key|true
		run|-q|-v|key|true
		run|-t|1e3|key|true
		run|-t|1s|-k|1s|key|true
		run|-w|-1|key|true
		run|-E|256|key|true
		run|--on-lost|SIGFOO|key|true
		run|--status-fd|57|key|true
		run||true
		run|key|-t|5|true
		run|-c|true|key|true
		run|-S|redis://redlock.invalid:0|key|true
		run|-S|redis://redlock.invalid,local:x|key|true
		run|-S|local:|-S|redis://|key|true
		run|-s|-r|key|true
		run|-P|0|key|true
		wait
		wait|-n|key
		acquire|--token|a|key
		acquire
		acquire|--format|xml|key
		acquire|key|other
		release|key
		release|-t|5|key|token
		extend|key|
		extend|-t|0|key|token
		status
		status|-q|key|token|other
		list|key|other
		break|key
	ROWS
	refuses 78 'named twice' run -S redis://redlock.invalid,redis://redlock.invalid key true
	REDLOCK_PASSWORD_FILE=$TMP/missing refuses 78 missing acquire key
	REDLOCK_SERVERS=redis://redlock.invalid:x refuses 78 REDLOCK_SERVERS acquire key
	[[ ! -s $TMP/trace ]]
	no_row_failed
	# and the trace would have shown one
	REDLOCK_SERVERS=$NOWHERE refuses 69 '[a-z]' acquire key
	grep -q 'socket(' "$TMP/trace"
}

@test "a DURATION has a unit or is in seconds, and may have a fraction" {
	servers_start 1
	local row words
	while read -ra words; do
		redlock acquire --format json -t "${words[0]}" "$KEY-${words[0]}"
		expect 0 ".*\"ttl_ms\":${words[1]},.*"
	done <<-'ROWS'
		10 10000
		10.5 10500
		.5m 30000
		2m 120000
		7000ms 7000
		7.25s 7250
		1h 3600000
		1d 86400000
		0.5d 43200000
	ROWS
	hold
	for row in 50ms .05 0.05s; do
		redlock acquire -w "$row" "$KEY"
		expect 75 '' 'redlock: .*'
	done
}

@test "an option's value stands after it, or joined to it" {
	servers_start 1
	local row words
	while read -ra words; do
		redlock acquire --format=json "${words[@]}" "$KEY-${words[*]}"
		expect 0 '.*"ttl_ms":45000,.*'
	done <<-'ROWS'
		-t 45
		-t45
		--ttl 45
		--ttl=45
		-nt45
		-nt 45
	ROWS
	redlock acquire "$KEY" -t 45 --format json
	expect 0 '.*"ttl_ms":45000,.*'
}
