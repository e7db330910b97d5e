#!/usr/bin/env bats
# list: all locks that are held.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

# held KEY [KIND]: as list tells what hold_exclusive and the others make
held() {
	echo "$1: ${2-exclusive}, held by web3 pid 812 'backup.sh' for 4h0[0-9]m, 9h5[0-9]m left"
}

hold_key() {
	local i
	for i in "${@:2}"; do hold_exclusive "$i" token web3 812 backup.sh 4 "$1"; done
}

@test "where nothing is held there is nothing to list, and that is no failure" {
	servers_start 1
	redlock list
	expect 0
	redlock list --format json
	expect 0
	redlock run "$KEY" true
	rcli 0 SET other value
	rcli 0 SET '{other}:redlock:queue' value
	redlock list
	expect 0
}

@test "each kind of lock is listed with its first holder" {
	servers_start 1
	hold_key a 0
	hold_reentrant 0 token 2 web3 812 backup.sh 4 b
	hold_permit 0 0 token web3 812 backup.sh 4 c
	hold_permit 0 3 token web3 812 backup.sh 4 d
	redlock list
	output=$(sort <<<"$output")
	expect 0 "$(held a)
$(held b reentrant)
$(held c shared)
$(held d '1 of 3 permits') \\(slot 1\\)"
	redlock list --format json
	output=$(sort <<<"$output")
	expect 0 $'.*\n.*\n.*\n.*'
	is_json
	[[ $(of '[.key, .kind, .permits, .slot, .holders, .host, .pid, .user, .command]') == '["a","exclusive",null,null,1,"web3",812,"bob","backup.sh"]
["b","reentrant",null,null,1,"web3",812,"bob","backup.sh"]
["c","shared",null,null,1,"web3",812,"bob","backup.sh"]
["d","permits",3,1,1,"web3",812,"bob","backup.sh"]' ]]
	[[ $(of '.held_ms >= 14400000 and .left_ms <= 36000000' | sort -u) == true ]]
}

@test "of several holders one is listed, and how many more there are" {
	servers_start 1
	hold_permit 0 0 one web3 812 backup.sh 4
	hold_permit 0 0 two web3 812 backup.sh 4
	hold_permit 0 0 three web3 812 backup.sh 4
	hold_permit 0 0 over web3 812 backup.sh 4
	rcli 0 ZADD "$KEY" $(($(date_ms) - 1)) over
	redlock list
	expect 0 "$(held "$KEY" shared), and 2 more"
	redlock list --format json
	[[ $(of .holders) == 3 ]]
}

@test "those that wait are counted, and the first of them is told for how long" {
	servers_start 1
	hold_key a 0
	KEY=a queue_up 0 one 2 'string 0' web4 77 deploy.sh
	hold_key b 0
	KEY=b queue_up 0 one 2 'string 0' web4 77 deploy.sh
	KEY=b queue_up 0 two 3 'string 0' web5 78 deploy.sh
	rcli 0 ZADD '{b}:redlock:waits' $(($(date_ms) - 5 * 3600000)) three
	hold_key c 0
	redlock list
	expect 0 "$(held a), 1 waiting for 2h0[0-9]m
$(held b), 3 waiting, the first for 5h0[0-9]m
$(held c)"
	redlock list --format json
	is_json
	[[ $(of '[.key, .waiting, .oldest_wait_ms >= 7200000, .oldest_wait_ms]' | sed 's/,[0-9]*]/]/' | paste -sd ' ') == \
		'["a",1,true] ["b",3,true] ["c",0,false,null]' ]]
	# a place that is in the future, or is no number
	rcli 0 ZADD '{c}:redlock:queue' $(($(date_ms) + 3600000)) one
	rcli 0 SET '{c}:redlock:waits' nonsense
	redlock list c
	expect 0 "$(held c), 1 waiting for 0ms"
	# those that wait for a KEY that nobody holds are no lock
	rcli 0 DEL b
	redlock list b
	expect 0
}

@test "as many are counted that wait, and for as long, as a quorum has" {
	servers_start 3
	hold_key "$KEY" 0 1 2
	queue_up 0 one 9 'string 0' web4 77 deploy.sh
	queue_up 1 one 2 'string 0' web4 77 deploy.sh
	queue_up 2 one 3 'string 0' web4 77 deploy.sh
	queue_up 0 two 1 'string 0' web5 78 deploy.sh
	queue_up 0 three 1 'string 0' web5 78 deploy.sh
	queue_up 2 two 1 'string 0' web5 78 deploy.sh
	redlock list "$KEY"
	expect 0 "$(held "$KEY"), 2 waiting, the first for 3h0[0-9]m"
	redlock list --format json "$KEY"
	[[ $(of '[.waiting, (.oldest_wait_ms / 3600000 | floor)]') == '[2,3]' ]]
	server_kill 2
	redlock list "$KEY"
	expect 0 "$(held "$KEY"), 1 waiting for 2h0[0-9]m"
	redlock list --format json "$KEY"
	[[ $(of '[.waiting, (.oldest_wait_ms / 3600000 | floor)]') == '[1,2]' ]]
}

@test "a lock that another program took over is listed as its" {
	servers_start 1
	hold_key "$KEY" 0
	rcli 0 SET "$KEY" their-secret PX 36000000
	redlock list
	expect 0 "$KEY: held by another program, 9h5[0-9]m left"
	redlock list --format json
	is_json
	[[ $(of '[.key, .kind, .host, .held_ms]') == "[\"$KEY\",\"foreign\",null,null]" ]]
}

@test "another program's sorted set that ends is listed as its, not as a newer redlock's" {
	servers_start 1
	redlock run "$KEY" true
	rcli 0 ZADD "$KEY" 1 member
	rcli 0 PEXPIRE "$KEY" 36000000
	redlock list
	expect 0 "$KEY: held by another program, 9h5[0-9]m left"
	redlock list --format json
	[[ $(of '[.kind, .holders, .permits]') == '["foreign",1,null]' ]]
}

@test "what is no lock is not listed, whatever stands beside it" {
	servers_start 1
	rcli 0 RPUSH "$KEY" element
	rcli 0 HSET "$(record)" fence 5
	rcli 0 ZADD "$KEY-2" 1 member
	rcli 0 HSET "$(record "$KEY-2")" fence 5
	rcli 0 SET "$KEY-3:redlock" value
	rcli 0 SET "$KEY-3" value
	rcli 0 SET ':redlock' value
	rcli 0 SET '{}:redlock' value
	rcli 0 SET '}:redlock' value
	rcli 0 SET '{:redlock' value
	redlock list
	expect 0
}

@test "KEYs with hash tags of their own are listed under their names" {
	servers_start 1
	local key
	for key in '{x}' 'a{b}c' '{b}c' 'a{b}' '{}' '{' '}' '{a' 'a}' '}{' '{}{a}' '{x}y}' ':' 'x:' ' '; do
		redlock acquire "$key"
		[[ $status == 0 ]]
		redlock list --format json
		[[ $(of .key) == "\"$key\"" ]] || { echo "$key: $output" && false; }
		[[ $(of .command) == *bats* ]] # the caller's
		rcli 0 DEL "$key"
	done
	redlock list
	expect 0
}

@test "a KEY with a byte 0 is matched like any other" {
	servers_start 1
	printf '%s\n' 'SET "n\x00l" token PX 36000000' 'HSET "{n\x00l}:redlock" fence 5' |
		redis-cli -s "$SERVERS/0/redis.sock"
	local pattern
	for pattern in 'n?l' 'n*' '*[!a]l' 'n[![:alnum:]]l'; do
		redlock list --format json "$pattern"
		[[ $status == 0 && $(of .key) == '"n\u0000l"' ]] || { echo "$pattern: $output" && false; }
	done
	redlock list 'n'
	expect 0
}

@test "PATTERN is matched against KEY, whole, as the shell matches" {
	servers_start 1
	local row words key
	for key in job:1 job:2 job:10 'a*b' 'a\b' 'a[b]' axb 'job' '{job}' 'x{job}' z\\; do
		printf 'SET %s token PX 36000000\nHSET %s fence 5\n' "$key" "$(record "$key")"
	done | fill 0
	rcli 0 DEL "$(record '{job}')" "$(record 'x{job}')"
	rcli 0 HSET '{job}redlock' fence 5
	rcli 0 HSET 'x{job}:redlock' fence 5
	while IFS='|' read -ra words; do
		redlock list --format json -- "${words[0]}"
		[[ $status == 0 && $(of .key | sort | tr -d '\n') == "${words[1]-}" ]] || {
			echo "${words[0]}: $status, $(of .key)" && false
		}
	done <<-'ROWS'
		job:1|"job:1"
		job:*|"job:1""job:10""job:2"
		job:?|"job:1""job:2"
		job:[13]*|"job:1""job:10"
		job:[^1]|"job:2"
		job:[!1]|"job:2"
		[!j{x]*|"a*b""a[b]""a\\b""axb""z\\"
		job:[[:digit:]]|"job:1""job:2"
		job:[1-9][!1-9]|"job:10"
		job:[2-1]|
		a[]\\*]b|"a*b""a\\b"
		job:[0-1]|"job:1"
		job|"job"
		*job*|"job""job:1""job:10""job:2""x{job}""{job}"
		{job}|"{job}"
		x{*|"x{job}"
		a?b|"a*b""a\\b""axb"
		a\*b|"a*b"
		a\\b|"a\\b"
		a\[b]|"a[b]"
		a[b]|
		a[b|
		a\|
		z\|"z\\"
		z\\|"z\\"
		z\\\|
		[^j{]*b|"a*b""a\\b""axb"
		ob|
		jo|
		redlock|
		*redlock*|
		?|
	ROWS
}

@test "a PATTERN of many stars takes no time" {
	servers_start 1
	local key
	key=$(repeat a 4000)
	hold_key "$key" 0
	redlock list --server-timeout 20s "$(repeat '*' 60)$(printf '[a]*%.0s' {1..100})b"
	expect 0
}

@test "ten thousand locks among many other keys are listed, each once" {
	servers_start 1
	awk 'BEGIN {
		for (i = 0; i < 10000; i++) {
			printf "SET lock-%d token PX 36000000\n", i
			printf "HSET {lock-%d}:redlock fence 5 holder:token host=web3\n", i
		}
		for (i = 0; i < 30000; i++) printf "SET other-%d value\n", i
		for (i = 0; i < 3000; i++) printf "HSET {released-%d}:redlock fence 5\n", i
	}' | fill 0
	redlock list
	[[ $status == 0 && $stderr == '' && ${#lines[@]} == 10000 ]]
	[[ $(grep -xEc 'lock-[0-9]+: exclusive, held by web3, 9h5[0-9]m left' <<<"$output") == 10000 ]]
	[[ $(sort -u <<<"$output" | wc -l) == 10000 ]]
	redlock list 'lock-99*'
	[[ $status == 0 && ${#lines[@]} == 111 ]]
}

@test "locks with the longest KEYs are listed by the thousand" {
	servers_start 1
	awk 'BEGIN {
		long = sprintf("%4092s", "")
		gsub(" ", "x", long)
		for (i = 1000; i < 2000; i++) {
			printf "SET %s%d token PX 36000000\n", long, i
			printf "HSET {%s%d}:redlock fence 5\n", long, i
		}
	}' | fill 0
	redlock list --server-timeout 20s --format json
	[[ $status == 0 && ${#lines[@]} == 1000 ]]
}

@test "a lock is listed where a quorum has it, and once" {
	hold_key "$KEY-all" 0 1 2
	hold_key "$KEY-01" 0 1
	hold_key "$KEY-12" 1 2
	hold_key "$KEY-02" 0 2
	hold_key "$KEY-0" 0
	hold_key "$KEY-2" 2
	hold_exclusive 1 other web4 99 backup.sh 3 "$KEY-2"
	redlock list "$KEY-*"
	output=$(sort <<<"$output")
	expect 0 "$(held "$KEY-01")
$(held "$KEY-02")
$(held "$KEY-12")
$(held "$KEY-all")"
}

# perhaps TEXT: what list says of a lock that it would say TEXT of if a quorum had it.
perhaps() {
	echo "${1/held by/perhaps held by}"
}

@test "a lock is listed as perhaps held if that depends on a server that does not answer, whichever that is" {
	local down i want
	for down in 0 1 2; do
		servers_start 3
		want=
		for i in 0 1 2; do
			if ((i == down)); then continue; fi
			hold_key "$KEY-$i" "$i"
			rcli "$i" HSET "$(record "$KEY-free")" fence 5
			want+=$(perhaps "$(held "$KEY-$i")")$'\n'
		done
		hold_key "$KEY-held" 0 1 2
		server_kill "$down"
		redlock list
		expect 0 "$want$(held "$KEY-held")"
	done
	redlock list --format json
	[[ $(of '[.key, .state, .holders, .pid]' | paste -sd ' ') == \
		"[\"$KEY-0\",\"unknown\",1,812] [\"$KEY-1\",\"unknown\",1,812] [\"$KEY-held\",\"held\",1,812]" ]]
}

@test "kinds of locks are perhaps held like others, and one that may be a holder counts as one" {
	local i
	servers_start 5
	for i in 1 2; do
		hold_reentrant "$i" token 2 web3 812 backup.sh 4 b
		hold_permit "$i" 0 token web3 812 backup.sh 4 c
		hold_permit "$i" 3 token web3 812 backup.sh 4 d
	done
	hold_key too-few 1
	for i in 1 2 3; do hold_permit "$i" 3 token web3 812 backup.sh 4 e; done
	for i in 1 2; do hold_permit "$i" 3 other web3 813 backup.sh 4 e; done
	redlock list
	expect 0 "$(held e '1 of 3 permits') \\(slot 1\\)"
	server_kill 0
	redlock list
	expect 0 "$(perhaps "$(held b reentrant)")
$(perhaps "$(held c shared)")
$(perhaps "$(held d '1 of 3 permits')") \\(slot 1\\)
$(held e '2 of 3 permits') \\(slot 1\\), and 1 more"
}

@test "as many holders are counted as a quorum has" {
	local i
	for i in 0 1 2; do hold_permit "$i" 0 one web3 812 backup.sh 4; done
	for i in 0 1; do hold_permit "$i" 0 two web3 812 backup.sh 4; done
	hold_permit 0 0 three web3 812 backup.sh 4
	redlock list "$KEY"
	expect 0 "$(held "$KEY" shared), and 1 more"
}

# without I ARGUMENT...: runs redlock while server I cannot be reached.
without() {
	local socket=$SERVERS/$1/redis.sock
	mv "$socket" "$socket.away"
	redlock "${@:2}"
	mv "$socket.away" "$socket"
}

@test "holders are counted that hold KEY on different majorities" {
	local i option
	for i in 0 1 2; do
		for option in -P3 -s; do
			without "$i" acquire --quarantine 0 -t 5m --label job "$option" "$KEY$option"
			[[ $status == 0 ]]
		done
	done
	redlock list "$KEY-*"
	expect 0 "$KEY-P3: 3 of 3 permits, held by $(uname -n) pid [0-9]+ 'job' for $TIME, 4m[0-9]+s left \(slot [123]\), and 2 more
$KEY-s: shared, held by $(uname -n) pid [0-9]+ 'job' for $TIME, 4m[0-9]+s left, and 2 more"
	redlock list --format json "$KEY-*"
	[[ $(of '[.kind, .permits, .holders]' | paste -sd ' ') == '["permits",3,3] ["shared",null,3]' ]]
	redlock list --format prometheus "$KEY-*"
	[[ $output == *"redlock_holders{key=\"$KEY-P3\"} 3"* && $output == *"redlock_holders{key=\"$KEY-s\"} 3"* ]]
}

@test "if each server has another holder, none has a quorum" {
	hold_permit 0 2 one web3 812 backup.sh 4
	hold_permit 1 2 two web3 812 backup.sh 4
	hold_permit 2 2 three web3 812 backup.sh 4
	redlock list "$KEY"
	expect 0
	# it is the same one if it has the same slot
	hold_permit 0 2 two web3 812 backup.sh 4
	redlock list "$KEY"
	expect 0
	rcli 0 HSET "$(record)" slot:two 1
	redlock list "$KEY"
	expect 0 "$(held "$KEY" '1 of 2 permits') \\(slot 1\\)"
}

@test "of more holders than are looked at with other locks all are counted, and the longest is found" {
	local i
	for i in 0 1 2; do crowd "$i" 100; done
	redlock list "$KEY"
	expect 0 "$KEY: shared, held by web1 pid 11 'read' for 4h0[0-9]m, 1[0-9]h[0-9]+m left, and 100 more"
	redlock list --format prometheus "$KEY"
	[[ $output == *"redlock_holders{key=\"$KEY\"} 101"* && $output =~ redlock_held_seconds\{key=\"$KEY\"\}\ 14[4-7][0-9][0-9]\. ]]
}

@test "a permit takes a majority of servers" {
	servers_start 5
	local i
	for i in 0 1 2; do hold_permit "$i" 2 one web3 812 backup.sh 4 enough; done
	for i in 0 1; do hold_permit "$i" 2 one web3 812 backup.sh 4 too-few; done
	redlock list
	expect 0 "$(held enough '1 of 2 permits') \\(slot 1\\)"
}

@test "a minority that is down or silent hides nothing" {
	servers_start 5
	hold_key a 0 1 2 3 4
	hold_key b 1 2 4
	hold_key c 0 3
	server_kill 0
	server_stop 3
	redlock list
	output=$(sort <<<"$output")
	expect 0 "$(held a)
$(held b)"
	server_continue 3
}

@test "no more servers are looked through than make a majority" {
	servers_start 5
	local i scanned=0
	hold_key a 0 1 2 3 4
	redlock list
	expect 0 "$(held a)"
	for i in 0 1 2 3 4; do [[ $(rcli "$i" INFO commandstats) != *cmdstat_scan:* ]] || ((scanned += 1)); done
	((scanned == 3))
}

@test "without a quorum it is 69" {
	servers_start 3
	hold_key a 0 1 2
	server_kill 1 2
	redlock list
	expect 69 '' 'redlock: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*'
	servers_start 1
	server_kill 0
	redlock list
	expect 69 '' "redlock: $(server_url 0): Connection refused.*"
}

@test "a server that refuses is 77" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	redlock list
	expect 77 '' "redlock: $(server_url 0): .*"
	REDLOCK_PASSWORD=hunter2 redlock list
	expect 0
}

@test "only the database of the URL is listed" {
	servers_start 1
	hold_key zero 0
	timeout 10 redis-cli -s "$SERVERS/0/redis.sock" -n 3 SET three token PX 36000000
	timeout 10 redis-cli -s "$SERVERS/0/redis.sock" -n 3 HSET '{three}:redlock' fence 5
	redlock list -S "$(server_url 0)?db=3"
	expect 0 'three: held by another program, 9h5[0-9]m left'
	redlock list
	expect 0 "$(held zero)"
}

@test "hostile bytes are visible to people and valid JSON" {
	local key=$'k\e\xff\n"'
	servers_start 1
	rcli 0 SET "$key" token PX 36000000
	rcli 0 HSET "{$key}:redlock" fence 5 holder:token "$(described $'we\e[31mb\xff' 812 $'a"\r\x01' 4)"
	redlock list
	expect 0 'k\\e\\xff\\n": exclusive, held by we\\e\[31mb\\xff pid 812 '"'"'a"\\r\\x01'"'"' for 4h0[0-9]m, 9h5[0-9]m left'
	redlock list --format json
	[[ $status == 0 && ${#lines[@]} == 1 ]]
	is_json
	[[ $(of '[.key, .host]') == '["k\u001b�\n\"","we\u001b[31mb�"]' ]]
}

@test "on a terminal a running count is shown, and erased before lines" {
	servers_start 1
	hold_key "$KEY" 0
	in_terminal list "$REDLOCK list; echo end: \$?"
	wait_until 'grep -q "end: 0" $TMP/list.out'
	[[ $(tr '\r' '\n' <"$TMP/list.out") == *$'\n\e[Kredlock: 250 keys looked at, 1 lock'* ]]
	sed 's/^.*\r\x1b\[K//; s/\r$//' "$TMP/list.out" >"$TMP/seen"
	grep -qxE "$(held "$KEY")" "$TMP/seen"
	grep -qx 'end: 0' "$TMP/seen"
	in_terminal quiet "$REDLOCK list -q; echo end: \$?"
	wait_until 'grep -q "end: 0" $TMP/quiet.out'
	run -1 grep 'looked at' "$TMP/quiet.out"
}

@test "locks are listed in the order of their KEYs, in either format" {
	servers_start 1
	local key
	for key in b10 a/z b b:1 a B aa 'a b' b2; do hold_key "$key" 0; done
	redlock list
	[[ $status == 0 && $(sed 's/: exclusive, .*//' <<<"$output") == "$(LC_ALL=C sort <<-'KEYS'
		b10
		a/z
		b
		b:1
		a
		B
		aa
		a b
		b2
	KEYS
	)" ]]
	redlock list --format json
	[[ $(of .key | tr -d '"') == "$(LC_ALL=C sort <<<"$(of .key | tr -d '"')")" ]]
}

@test "what can't be written is an error" {
	servers_start 1
	hold_key "$KEY" 0
	local code=0
	timeout 20 "$REDLOCK" list >/dev/full 2>"$TMP/err" || code=$?
	[[ $code == 71 && $(<"$TMP/err") == "redlock: standard output: No space left on device" ]]
}

@test "on a narrow terminal list is broken between words, and nothing is lost" {
	servers_start 1
	hold_exclusive 0 token web3 812 '/usr/local/bin/backup.sh --all --to backup.example.com:/srv/data nightly' 4
	wraps list
	[[ ${lines[1]} == '    '[!\ ]* ]]
}

# unread PROGRAM...: with nobody who reads its output.
unread() {
	local - code=0
	set +T
	mkfifo "$TMP/unread"
	exec {both}<>"$TMP/unread"
	exec {only}>"$TMP/unread" {both}>&-
	"$@" >&"$only" 2>"$TMP/err" || code=$?
	exec {only}>&-
	rm "$TMP/unread"
	output=$(<"$TMP/err")
	return "$code"
}

@test "where nobody reads what is listed or shown SIGPIPE ends it, as it would other programs" {
	local code command
	servers_start 1
	redlock acquire "$KEY"
	for command in list "status $KEY" doctor help 'run --help'; do
		code=0
		# shellcheck disable=SC2086 # words
		unread env --default-signal=PIPE "$REDLOCK" $command || code=$?
		[[ $code == 141 && $output == '' ]]
		code=0
		# shellcheck disable=SC2086
		unread env --ignore-signal=PIPE "$REDLOCK" $command || code=$?
		[[ $code == 71 && $output == *"standard output: Broken pipe" ]]
	done
}
