#!/usr/bin/env bats
# status: who holds a lock, and who waits for it.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	export REDLOCK_QUARANTINE=0
}

# server I VOTE: its line, in a set whose URLs are equally long.
server() {
	printf '\n  server  %s  %s' "$(server_url "$1")" "$2"
}

@test "what looks like a pattern and is free is told to be no pattern, unless programs ask" {
	only 0
	redlock status 'dep*'
	expect 0 "dep\\*: free$(server 0 free)" \
		"redlock: dep\\*: status takes no patterns: redlock list 'dep\\*' lists the locks that match"
	redlock status --format json 'dep*'
	[[ $status == 0 && $stderr == '' ]]
	redlock run 'dep*' "$REDLOCK" status 'dep*'
	[[ $status == 0 && $output == 'dep*: exclusive'* && $stderr == '' ]]
	redlock status 'dep*'
	[[ $status == 0 && $output == 'dep*: free, fence'* && $stderr == '' ]]
}

@test "a KEY that nobody holds is free" {
	only 0
	redlock status "$KEY"
	expect 0 "$KEY: free$(server 0 free)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	is_json
	[[ $(of '[.key, .state, .kind, .permits, .fence, .holders, .more_holders, .queue, .more_waiters]') == \
		"[\"$KEY\",\"free\",null,null,null,[],0,[],0]" ]]
	[[ $(of .servers) == "[{\"server\":\"$(server_url 0)\",\"at\":null,\"vote\":\"free\",\"fence\":null,\"error\":null,\"replica\":false,\"quarantined\":false}]" ]]
}

@test "the holder's host, process, user and command are told, and its times" {
	local host
	host=$(hostname)
	only 0
	LOGNAME=ann spawn run "$REDLOCK" run -t 30s --label 'backup of db1' "$KEY" sleep 60
	wait_until '[[ $(rcli 0 EXISTS $KEY) == 1 ]]'
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence [0-9]{13}
  holder  ${host:0:64} pid [0-9]+ \(ann\)  for $TIME  'backup of db1'$(server 0 held)"
	redlock status --format=json "$KEY"
	expect 0 '.*'
	is_json
	[[ $(of '[.state, .kind, .fence, (.holders | length)]') == "[\"held\",\"exclusive\",$(fence_at 0),1]" ]]
	[[ $(of '.holders[0] | [.host, .user, .command, .count, .servers, .partial]') == \
		"[\"${host:0:64}\",\"ann\",\"backup of db1\",1,1,false]" ]]
	[[ $(of '.holders[0] | .pid == '"$(child_named "$(pid run)" sleep || :)"', .pid > 0, .held_ms >= 0, .left_ms > 0' | tail -n 3) == \
		$'true\ntrue\ntrue' ]]
}

@test "the holder's user is LOGNAME or USER, whichever is not empty, or else its number" {
	local row
	only 0
	for row in 'LOGNAME=ann USER=bob|ann' 'LOGNAME= USER=bob|bob' 'LOGNAME=ann USER=|ann' "LOGNAME= USER=|uid $(id -u)"; do
		# shellcheck disable=SC2086 # words
		run -0 env ${row%|*} "$REDLOCK" run "$KEY" "$REDLOCK" status "$KEY"
		[[ $output == *" (${row#*|})  for "* ]] || { echo "$row: $output" && false; }
	done
}

@test "a label that is too long ends with a whole character, also if that is escaped" {
	local a
	only 0
	a=$(printf '%0157d' 0)
	redlock run --label "$a"$'a\nb' "$KEY" "$REDLOCK" status "$KEY"
	[[ $status == 0 && $output == *"'${a}a\\n'"* ]]
	redlock run --label "$a"$'aa\nb' "$KEY" "$REDLOCK" status "$KEY"
	[[ $status == 0 && $output == *"'${a}aa'"* ]]
	redlock run --label "$a"$'aa\nb' "$KEY" "$REDLOCK" status --format json "$KEY"
	[[ $status == 0 && $output == *"\"${a}aa\""* ]]
}

@test "after its release a lock is free, and its fence is still told" {
	only 0
	redlock run "$KEY" true
	expect 0
	redlock status "$KEY"
	expect 0 "$KEY: free, fence $(fence_at 0); last held by [^ ]+ $TIME ago for $TIME, exit 0$(server 0 free)"
}

@test "each of several KEYs is told, in their order" {
	only 0
	KEY=$KEY-b hold_exclusive 0 token web3 812 backup.sh 4
	redlock status "$KEY-c" "$KEY-b" -- "$KEY-a"
	expect 0 "$KEY-c: free$(server 0 free)
$KEY-b: exclusive, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh'$(server 0 held)
$KEY-a: free$(server 0 free)"
	redlock status --format json "$KEY-c" "$KEY-b"
	expect 0 $'.*\n.*'
	is_json
	[[ $(of .key) == "\"$KEY-c\""$'\n'"\"$KEY-b\"" ]]
}

@test "a reentrant lock is told with how often its owner holds it" {
	only 0
	hold_reentrant 0 token 3 web3 812 backup.sh 4
	redlock status "$KEY"
	expect 0 "$KEY: reentrant, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  3 times  'backup.sh'$(server 0 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '[.kind, .permits, .holders[0].count]') == '["reentrant",null,3]' ]]
}

@test "all who share a lock are told, the longest first, and none whose time is over" {
	only 0
	hold_permit 0 0 one web1 11 'read one' 2
	hold_permit 0 0 three web3 33 'read three' 4
	hold_permit 0 0 two web22 22 'read two' 3
	hold_permit 0 0 over web4 44 'read four' 5
	rcli 0 ZADD "$KEY" $(($(date_ms) - 1)) over
	redlock status "$KEY"
	expect 0 "$KEY: shared by 3, fence 1700000000001
  holder  web3 pid 33 \(bob\)   for 4h0[0-9]m, 9h5[0-9]m left  'read three'
  holder  web22 pid 22 \(bob\)  for 3h0[0-9]m, 9h5[0-9]m left  'read two'
  holder  web1 pid 11 \(bob\)   for 2h0[0-9]m, 9h5[0-9]m left  'read one'$(server 0 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '[.state, .kind, .permits, [.holders[].pid]]') == '["held","shared",null,[33,22,11]]' ]]
	# looking has removed nothing
	[[ $(rcli 0 ZCARD "$KEY") == 4 ]]
}

@test "a lock whose last sharer's time is over is free" {
	only 0
	hold_permit 0 0 over web4 44 'read four' 5
	rcli 0 ZADD "$KEY" $(($(date_ms) - 1)) over
	redlock status "$KEY"
	expect 0 "$KEY: free, fence 1700000000001$(server 0 free)"
}

@test "of permits it is told how many are taken, and of how many" {
	only 0
	hold_permit 0 3 one web1 11 'job one' 2
	hold_permit 0 3 two web2 22 'job two' 3
	redlock status "$KEY"
	expect 0 "$KEY: 2 of 3 permits, fence 1700000000001
  holder  web2 pid 22 \(bob\)  for 3h0[0-9]m, 9h5[0-9]m left  slot 2  'job two'
  holder  web1 pid 11 \(bob\)  for 2h0[0-9]m, 9h5[0-9]m left  slot 1  'job one'$(server 0 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '[.state, .kind, .permits, [.holders[] | [.pid, .slot]]]') == '["held","permits",3,[[22,2],[11,1]]]' ]]
}

@test "another program's lock is told as such, with its expiry, and not what is in it" {
	only 0
	rcli 0 SET "$KEY" their-secret NX PX 36000000
	redlock status "$KEY"
	expect 0 "$KEY: held by another program
  holder  another program  9h5[0-9]m left$(server 0 held)"
	[[ $(rcli 0 PERSIST "$KEY") == 1 ]]
	redlock status "$KEY"
	expect 0 "$KEY: held by another program
  holder  another program  no expiry$(server 0 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	is_json
	[[ $output != *their-secret* ]]
	[[ $(of '[.state, .kind, .fence]') == '["held","foreign",null]' ]]
	[[ $(of '.holders[0] | [.host, .pid, .user, .command, .held_ms, .left_ms]') == '[null,null,null,null,null,null]' ]]
}

@test "a lock of Redisson's shape is another program's, held so often" {
	only 0
	rcli 0 HSET "$KEY" 285475da-9152-4c83-822a-67ee2f116a79:52 2
	rcli 0 PEXPIRE "$KEY" 36000000
	redlock status "$KEY"
	expect 0 "$KEY: held by another program
  holder  another program  9h5[0-9]m left  2 times$(server 0 held)"
	[[ $output != *285475da* ]]
}

@test "what is no lock is told as such" {
	only 0
	rcli 0 RPUSH "$KEY" element
	redlock status "$KEY"
	expect 0 "$KEY: no lock$(server 0 'no lock: a list')"
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '[.state, .kind, .holders, .servers[0].vote]') == '["misused",null,[],"misused"]' ]]
	rcli 0 DEL "$KEY"
	rcli 0 ZADD "$KEY" 1 member
	redlock status "$KEY"
	expect 0 "$KEY: no lock$(server 0 'no lock: a zset')"
	rcli 0 DEL "$KEY"
	rcli 0 XADD "$KEY" '*' name value
	redlock status "$KEY"
	expect 0 "$KEY: no lock$(server 0 'no lock: a stream')"
}

@test "data without an expiry are no lock, after somebody has tried to take it, too" {
	only 0
	rcli 0 HSET "$KEY" field value
	redlock run -n "$KEY" true
	expect 65 '' '.* is a hash without an expiry, which is not a lock: choose another KEY'
	redlock status "$KEY"
	expect 0 "$KEY: no lock$(server 0 'no lock: a hash')"
	redlock status -q "$KEY"
	expect 1
	redlock list "$KEY"
	expect 0
}

@test "a sorted set that ends by itself, and whose holders nobody knows, is held, as run says" {
	only 0
	rcli 0 ZADD "$KEY" 1 member
	rcli 0 PEXPIRE "$KEY" 36000000
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by another program, 9h5[0-9]m left"
	redlock status "$KEY"
	expect 0 "$KEY: held by another program
  holder  another program  9h5[0-9]m left$(server 0 held)"
}

@test "a record or a queue that is something else is told, as no run can start then" {
	local beside
	only 0
	for beside in '' :queue :wishes :waits; do
		rcli 0 DEL "$KEY" "$(record)" "$(record):runs"
		rcli 0 RPUSH "$(record)$beside" element
		[[ $beside == :wishes ]] || { # these are needed only if somebody has to wait
			redlock run -n "$KEY" true
			expect 65 '' '.*: KEY, or the record beside it, is not a lock \(WRONGTYPE\): choose another KEY'
		}
		redlock status "$KEY"
		expect 0 "$KEY: no lock$(server 0 "no lock: $(literal "$(record)")$beside is a list")"
		redlock status --format json "$KEY"
		expect 0 '.*'
		[[ $(of '[.state, .kind, .holders, .servers[0].vote]') == '["misused",null,[],"misused"]' ]]
		rcli 0 DEL "$(record)$beside"
	done
}

@test "a record or a queue that is something else hides neither KEY nor its holder" {
	only 0
	rcli 0 SET "$KEY" token PX 36000000
	rcli 0 SET "$(record)" nonsense
	rcli 0 SET "$(record):queue" nonsense
	rcli 0 SET "$(record):wishes" nonsense
	redlock status "$KEY"
	expect 0 "$KEY: held by another program
  holder  another program  9h5[0-9]m left$(server 0 "held, but $(literal "$(record)") is a string")"
}

@test "a hash of a thousand fields is not told field by field" {
	only 0
	printf 'HSET %s f%s 1\n' $(for i in {1..1000}; do echo "$KEY" "$i"; done) | fill 0
	# without an expiry it is data, as `run` says, too
	redlock status "$KEY"
	expect 0 "$KEY: no lock$(server 0 'no lock: a hash')"
	rcli 0 PEXPIRE "$KEY" 36000000
	redlock status "$KEY"
	expect 0 "$KEY: held by another program
  and 1000 more holders$(server 0 held)"
	redlock status -q "$KEY"
	expect 0
}

@test "who waits is told in the order of the queue, for how long and for what" {
	only 0
	hold_exclusive 0 token web3 812 backup.sh 4
	queue_up 0 c 3 'string 0' web30 3 'third'
	queue_up 0 a 5 'zset 0' web1 1 'first'
	queue_up 0 b 4 'zset 5' web2 2 'second'
	queue_up 0 d 2 'hash 0' web4 4 'fourth'
	queue_up 0 e 1 'none 0' web5 5 'fifth'
	rcli 0 ZADD "$(record):queue" $(($(date_ms) - 1000)) f
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence 1700000000001, 6 waiting
  holder   web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left                  'backup.sh'
  queue 1  web1 pid 1 \(bob\)    for 5h0[0-9]m +shared          'first'
  queue 2  web2 pid 2 \(bob\)    for 4h0[0-9]m +1 of 5 permits  'second'
  queue 3  web30 pid 3 \(bob\)   for 3h0[0-9]m +exclusive       'third'
  queue 4  web4 pid 4 \(bob\)    for 2h0[0-9]m +reentrant       'fourth'
  queue 5  web5 pid 5 \(bob\)    for 1h0[0-9]m +takes nothing   'fifth'
  queue 6  somebody            for $TIME$(server 0 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	is_json
	[[ $(of '[.queue[] | [.host, .pid, .command, .wants, .permits, .servers]]') == \
		'[["web1",1,"first","shared",null,1],["web2",2,"second","permits",5,1],["web30",3,"third","exclusive",null,1],["web4",4,"fourth","reentrant",null,1],["web5",5,"fifth","none",null,1],[null,null,null,null,null,1]]' ]]
	[[ $(of '[.queue[0].waited_ms >= 18000000, .queue[5].waited_ms < 3600000, .more_waiters]') == '[true,true,0]' ]]
}

# waiters COUNT: so many queue up, the last one an hour ago, each one second earlier than the next.
waiters() {
	local now
	now=$(date_ms)
	awk -v count="$1" -v now="$now" -v queue="$(record):queue" 'BEGIN {
		for (i = 1; i <= count; i++) printf "ZADD %s %.0f token%d\n", queue, now - 3600000 - (count - i) * 1000, i
	}' | fill 0
	awk -v count="$1" -v wishes="$(record):wishes" 'BEGIN {
		for (i = 1; i <= count; i++) {
			wish = sprintf("30000 string 0 0 - 7\nhost=host%d\npid=%d\nuser=bob\ncommand=a job with a name of some length, as jobs have\n", i, i)
			token = "token" i
			printf "*4\r\n$4\r\nHSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", length(wishes), wishes, length(token), token, length(wish), wish
		}
	}' | timeout 60 redis-cli -s "$SERVERS/0/redis.sock" --pipe | grep -q 'errors: 0,'
}

@test "a queue of 500 is told whole and in order" {
	only 0
	waiters 500
	redlock status --format json "$KEY"
	expect 0 '.*'
	is_json
	[[ $(of '[.queue[].pid] == [range(1; 501)], .more_waiters') == $'true\n0' ]]
	redlock status "$KEY"
	[[ $status == 0 && $(grep -c '^  queue ' <<<"$output") == 500 ]]
	[[ ${lines[0]} == "$KEY: free, 500 waiting" ]]
	[[ ${lines[1]} =~ ^\ \ queue\ 1\ \ \ \ host1\ pid\ 1\ \(bob\)\ +for\ 1h.*$ ]]
	[[ ${lines[500]} =~ ^\ \ queue\ 500\ \ host500\ pid\ 500\ \(bob\)\ \ for\ 1h.*$ ]]
}

@test "of a longer queue the first thousand are told, and how many more there are" {
	only 0
	waiters 1203
	redlock status "$KEY"
	[[ $status == 0 && $(grep -c '^  queue ' <<<"$output") == 1000 ]]
	[[ $output == *$'\n  and 203 more waiting\n'* ]]
	redlock status --format json "$KEY"
	[[ $(of '[(.queue | length), .more_waiters]') == '[1000,203]' ]]
}

@test "of many holders the first thousand are told, and how many more there are" {
	local until i
	only 0
	hold_permit 0 0 first web1 11 'read'
	until=$(($(date_ms) + 36000000))
	for ((i = 0; i < 1100; i++)); do echo "ZADD $KEY $until token$i"; done | fill 0
	redlock status "$KEY"
	[[ $status == 0 && ${lines[0]} == "$KEY: shared by 1101, fence 1700000000001" ]]
	[[ $(grep -c '^  holder ' <<<"$output") == 1000 && $output == *$'\n  and 101 more holders\n'* ]]
}

@test "on several servers a holder is told once, with each server's vote" {
	local i
	for i in 0 1 2; do hold_exclusive "$i" token web3 812 backup.sh 4; done
	rcli 1 HSET "$(record)" fence 1700000000009
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence 1700000000009
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh'$(server 0 held)$(server 1 held)$(server 2 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '[.fence, (.holders | length), .holders[0].servers, [.servers[] | .vote, .fence]]') == \
		'[1700000000009,1,3,["held",1700000000001,"held",1700000000009,"held",1700000000001]]' ]]
}

@test "a holder that a minority lacks has the lock" {
	hold_exclusive 0 token web3 812 backup.sh 4
	hold_exclusive 2 token web3 812 backup.sh 4
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh'$(server 0 held)$(server 1 free)$(server 2 held)"
	redlock status --format json "$KEY"
	[[ $(of '[.state, .holders[0].servers, .holders[0].partial, [.servers[].vote]]') == '["held",2,false,["held","free","held"]]' ]]
}

@test "a holder that too few servers have has no lock, and that is told" {
	hold_exclusive 1 token web3 812 backup.sh 4
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, on too few servers, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh', on 1 of 3 servers only$(server 0 free)$(server 1 held)$(server 2 free)"
	redlock status --format json "$KEY"
	[[ $(of '[.state, .holders[0].servers, .holders[0].partial]') == '["partial",1,true]' ]]
}

@test "beside the holder, one that has a minority is told too" {
	hold_exclusive 0 token web3 812 backup.sh 4
	hold_exclusive 2 token web3 812 backup.sh 4
	hold_exclusive 1 other web4 99 backup.sh 3
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh'
  holder  web4 pid 99 \(bob\)   for 3h0[0-9]m, 9h5[0-9]m left  'backup.sh', on 1 of 3 servers only$(server 0 held)$(server 1 held)$(server 2 held)"
}

@test "only who has enough servers counts as a holder of permits, or as one that shares" {
	local permits i
	for permits in 2 0; do
		rcli 0 DEL "$KEY" "$(record)" && rcli 1 DEL "$KEY" "$(record)" && rcli 2 DEL "$KEY" "$(record)"
		for i in 0 1 2; do hold_permit "$i" "$permits" one web1 11 'job one' 3; done
		hold_permit 1 "$permits" dead web4 44 'job four' 4
		redlock status "$KEY"
		[[ $status == 0 ]]
		if ((permits > 0)); then
			[[ $output == "$KEY: 1 of 2 permits, "* ]]
		else
			[[ $output == "$KEY: shared by 1, "* ]]
		fi
		[[ $output == *"'job four', on 1 of 3 servers only"* ]]
	done
}

@test "a permit takes a majority of servers that have it in one slot" {
	servers_start 5
	local i
	for i in 0 1 2; do hold_permit "$i" 2 one web1 11 'job one' 3; done
	for i in 2 3 4; do hold_permit "$i" 2 two web2 22 'job two' 2; done # slot 2 on server 2, and slot 1
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '[.state, [.holders[] | [.pid, .slot, .servers, .partial]]]') == \
		'["held",[[11,1,3,false],[22,2,1,true],[22,1,2,true]]]' ]]
	redlock status "$KEY"
	[[ $output == *"slot 2  'job two', on 1 of 5 servers only"* && $output == *"slot 1  'job one'"$'\n'* ]]
}

@test "a queue that servers saw in different order is told by how long they have waited" {
	local i
	for i in 0 1 2; do
		queue_up "$i" b 2 'string 0' web2 2 second
		queue_up "$i" a 3 'string 0' web1 1 first
	done
	queue_up 1 a 1 'string 0' web1 1 first
	redlock status --format json "$KEY"
	[[ $(of '[.state, [.queue[] | [.pid, .servers]]]') == '["free",[[1,3],[2,3]]]' ]]
}

@test "a minority that is down is told, and changes nothing" {
	servers_start 3
	local i
	for i in 0 1 2; do hold_exclusive "$i" token web3 812 backup.sh 4; done
	server_kill 1
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh'$(server 0 held)$(server 1 'Connection refused')$(server 2 held)"
	redlock status --format json "$KEY"
	expect 0 '.*'
	[[ $(of '.servers[1] | [.vote, .fence, .error]') == '[null,null,"Connection refused"]' ]]
}

@test "whether KEY is held is not known if that depends on a server that does not answer" {
	local i
	servers_start 3
	hold_exclusive 1 token web3 812 backup.sh 4
	server_kill 2
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, perhaps on too few servers, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh', on 1 of 3 servers, and 1 did not answer$(server 0 free)$(server 1 held)$(server 2 'Connection refused')"
	redlock status --format json "$KEY"
	is_json
	[[ $(of '[.state, .kind, .holders[0].servers, .holders[0].partial]') == '["unknown","exclusive",1,null]' ]]
	redlock status -q "$KEY"
	expect 69 '' "redlock: $KEY: perhaps held: 1 of 3 servers did not answer: $(server_url 2): Connection refused.*"
	# beside a holder that a quorum has, one that may be a holder counts as one
	for i in 0 1; do hold_permit "$i" 2 one web3 812 backup.sh 4 "$KEY-two"; done
	hold_permit 1 2 two web4 99 backup.sh 3 "$KEY-two"
	redlock status "$KEY-two"
	[[ $status == 0 && $output == "$KEY-two: 2 of 2 permits, fence "*"slot 2  'backup.sh', on 1 of 3 servers, and 1 did not answer"$'\n'* ]]
	redlock status --format json "$KEY-two"
	[[ $(of '[.state, .holders[].partial]') == '["held",false,null]' ]]
}

@test "on too few servers is what no server that does not answer could change" {
	servers_start 5
	hold_exclusive 1 token web3 812 backup.sh 4
	server_kill 2
	redlock status "$KEY"
	[[ $status == 0 && $output == "$KEY: exclusive, on too few servers, fence "*"'backup.sh', on 1 of 5 servers, and 1 did not answer"$'\n'* ]]
	redlock status --format json "$KEY"
	[[ $(of '[.state, .holders[0].partial]') == '["partial",true]' ]]
	redlock status -q "$KEY"
	expect 1
}

@test "without a quorum it is 69, and what is known is told" {
	servers_start 3
	hold_exclusive 0 token web3 812 backup.sh 4
	server_kill 1 2
	redlock status "$KEY"
	expect 69 "$KEY: unknown, 1 of 3 servers answered, fence 1700000000001
  holder  web3 pid 812 \(bob\)  for 4h0[0-9]m, 9h5[0-9]m left  'backup.sh', on 1 of 3 servers, and 2 did not answer$(server 0 held)$(server 1 'Connection refused')$(server 2 'Connection refused')" \
		"redlock: $KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: .*"
	redlock status --format json "$KEY"
	expect 69 '.*' "redlock: $KEY: no quorum: .*"
	is_json
	[[ $(of '[.state, .holders[0].pid]') == '["unknown",812]' ]]
}

@test "without its only server it is 69, and says which and why" {
	servers_start 1
	server_kill 0
	redlock status "$KEY" other
	expect 69 "$KEY: unknown, 0 of 1 servers answered$(server 0 'Connection refused')
other: unknown, 0 of 1 servers answered$(server 0 'Connection refused')" \
		"redlock: $KEY: $(server_url 0): Connection refused.*
redlock: other: $(server_url 0): Connection refused.*"
}

@test "a server that is silent is waited for once, whatever the number of KEYs" {
	servers_start 3
	hold_exclusive 0 token web3 812 backup.sh 4
	server_stop 2
	local start
	start=$NOW
	redlock status --format json --server-timeout 2s "$KEY" two three four five six seven eight nine ten
	((NOW - start < 8000))
	[[ $status == 0 && ${#lines[@]} == 10 && $stderr == '' ]]
	[[ $(of '.servers[2].error' | sort -u) =~ ^\"no\ (answer|connection)\ within\ 2(\.[0-9])?s\"$ ]]
	server_continue 2
}

@test "one server under two names is a wrong configuration" {
	local url
	url=$(server_url 0)
	redlock status -S "$url,${url/unix:\/\//unix:\/\/\/}" "$KEY"
	[[ $status == 78 && $stderr == *'are the same server'* ]]
}

@test "a server that refuses is 77" {
	servers_start 1
	rcli 0 CONFIG SET requirepass hunter2
	redlock status "$KEY"
	expect 77 "$KEY: unknown, 0 of 1 servers answered
  server  $(server_url 0)  .*NOAUTH.*" "redlock: $KEY: $(server_url 0): .*NOAUTH.*"
	REDLOCK_PASSWORD=hunter2 redlock status "$KEY"
	expect 0 "$KEY: free$(server 0 free)"
}

@test "looking needs no command that writes" {
	servers_start 1
	rcli 0 ACL SETUSER viewer on '>hunter2' '~*' -@all +eval +time +select +client +info \
		+type +get +getrange +hget +hlen +hgetall +pttl +zrangebyscore +zrange +zcount +zcard +zscore +scan
	hold_permit 0 0 one web1 11 'read one' 2
	queue_up 0 c 1 'string 0' web30 3 'third'
	local url
	url=unix://viewer:hunter2@$SERVERS/0/redis.sock
	redlock status -S "$url" "$KEY"
	expect 0 "$KEY: shared by 1, fence 1700000000001, 1 waiting
  holder .*
  queue 1 .*$(server 0 held)"
	redlock status -S "$url" -q "$KEY" one
	expect 0
	redlock list -S "$url"
	expect 0 "$KEY: shared, held by .*"
	redlock break -S "$url" -y "$KEY"
	expect 77 '' "redlock: $KEY: .*(NOPERM|ser executing the script|no permissions to run).*"
	[[ $(rcli 0 ZCARD "$KEY") == 1 ]]
}

@test "the database of the URL is looked at" {
	only 0
	KEY=$KEY hold_exclusive 0 token web3 812 backup.sh
	redlock status -S "$(server_url 0)?db=3" "$KEY"
	[[ $status == 0 && $output == "$KEY: free"* ]]
	timeout 10 redis-cli -s "$SERVERS/0/redis.sock" -n 3 SET "$KEY-3" x PX 36000000
	redlock status -S "$(server_url 0)?db=3" "$KEY-3"
	[[ $status == 0 && $output == "$KEY-3: held by another program"* ]]
}

@test "no token is ever shown" {
	only 0
	redlock acquire "$KEY"
	expect 0 '[0-9a-f]{32}'
	local token=$output
	queue_up 0 waiters-token 2 'string 0' web2 2 second
	for how in '' -v --format=json; do
		# shellcheck disable=SC2086 # none or one
		redlock status $how "$KEY"
		[[ $status == 0 && $output$stderr != *"$token"* && $output$stderr != *waiters-token* ]]
	done
}

@test "hostile bytes are visible to people" {
	only 0
	hold_exclusive 0 token $'we\e[31mb\xff' 812 $'a\x01b\tc\xc2\x9bd\u202e\xe2\x82\xac'
	queue_up 0 waiter 2 'string 0' $'ho\rst' 7 $'\x7f'
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence 1700000000001, 1 waiting
  holder   we\\\\e\[31mb\\\\xff pid 812 \(bob\)  for $TIME, 9h5[0-9]m left +'a\\\\x01b\\\\tc\\\\xc2\\\\x9bd\\\\xe2\\\\x80\\\\xae€'
  queue 1  ho\\\\rst pid 7 \(bob\) +for 2h0[0-9]m +exclusive  '\\\\x7f'$(server 0 held)"
	LC_ALL=C redlock status "$KEY"
	[[ $status == 0 && $output == *'\xe2\x82\xac'* && $output != *[![:print:][:space:]]* ]]
}

@test "hostile bytes are valid JSON" {
	local key=$'k\e\xff"\\\n'
	only 0
	rcli 0 SET "$key" token PX 36000000
	rcli 0 HSET "{$key}:redlock" fence nonsense holder:token "$(described $'we"\e[31mb\xff' 812 $'a\x01\\b\xc3\x28')"
	redlock status --format json "$key"
	[[ $status == 0 && ${#lines[@]} == 1 ]]
	is_json
	[[ $(of '.holders[0].host') == '"we\"\u001b[31mb�"' && $(of .fence) == null ]]
	[[ $(of .key) == '"k\u001b�\"\\\n"' ]]
	redlock status "$key"
	[[ $status == 0 && ${lines[0]} == 'k\e\xff"\\n: exclusive' ]]
}

@test "what people see escaped is escaped in JSON, and the same text to programs" {
	local turned=$'\x7f\u0080\u009b31m\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\U000e0041'
	local shown=$'\u00fc\u20ac\U0001f512' key=$turned$'\u00fc\u20ac\U0001f512' what words
	only 0
	rcli 0 SET "$key" token PX 36000000
	rcli 0 HSET "{$key}:redlock" fence 5 holder:token "$(described "$turned" 812 "$turned")"
	for what in "status --format json $key" "list --format json $key" "run --status-fd 1 other$key true" \
		"acquire --format json other$key"; do
		read -ra words <<<"$what"
		redlock "${words[@]}"
		[[ $status == 0 ]]
		is_json
		[[ ${output//"$shown"/} != *[!\ -~]* ]]
		[[ $(jq -j .key <<<"$output") == ?(other)"$key" ]]
	done
}

@test "fields that are missing, long or no numbers are shown as what they are" {
	only 0
	rcli 0 SET "$KEY" token PX 36000000
	rcli 0 HSET "$(record)" fence -1 holder:token $'since=99999999999999999999999\nhost\npid=x\ncommand='"$(printf 'x%.0s' {1..3000})"
	redlock status "$KEY"
	expect 0 "$KEY: exclusive
  holder  somebody  for 0ms, 9h5[0-9]m left  'x{160}'$(server 0 "held, but $(literal "$(record)") is a hash without a valid fence")"
}

@test "-q says nothing, and by its status whether KEY is held" {
	only 0
	redlock status -q "$KEY"
	expect 1
	redlock acquire "$KEY"
	local token=$output
	redlock status -q "$KEY"
	expect 0
	redlock status --quiet "$KEY" "$token"
	expect 0
	redlock status "$KEY" "${token:0:31}" -q
	expect 1
	redlock status -q "$KEY" other
	expect 1
	# no KEY may have this name, but a token may
	redlock status -q "$KEY" 'other:{key}:redlock'
	expect 1
	redlock release "$KEY" "$token"
	redlock status -q "$KEY" "$token"
	expect 1
	rcli 0 RPUSH "$KEY-list" element
	redlock status -q "$KEY-list"
	expect 1
	redlock status -q "$KEY-list" other
	expect 1
}

@test "-q knows every kind of holder" {
	only 0
	hold_reentrant 0 owner 2 web3 812 backup.sh
	redlock status -q "$KEY" owner
	expect 0
	redlock status -q "$KEY" other
	expect 1
	KEY+=-shared
	hold_permit 0 0 one web1 11 'read one'
	hold_permit 0 0 two web1 11 'read two'
	redlock status -q "$KEY"
	expect 0
	redlock status -q "$KEY" two
	expect 0
	redlock status -q "$KEY" three
	expect 1
	rcli 0 ZADD "$KEY" $(($(date_ms) - 1)) two
	redlock status -q "$KEY" two
	expect 1
}

@test "-q without TOKEN asks for anybody, whatever REDLOCK_TOKEN says" {
	only 0
	hold_exclusive 0 token web3 812 backup.sh
	REDLOCK_TOKEN=other redlock status -q "$KEY"
	expect 0
	REDLOCK_TOKEN='' redlock status -q "$KEY"
	expect 0
}

@test "-q asks for a quorum" {
	hold_exclusive 1 token web3 812 backup.sh
	redlock status -q "$KEY"
	expect 1
	redlock status -q "$KEY" token
	expect 1
	hold_exclusive 2 token web3 812 backup.sh
	redlock status -q "$KEY"
	expect 0
	redlock status -q "$KEY" token
	expect 0
	redlock status -q "$KEY" other
	expect 1
}

@test "-q does not wait for a minority that is silent" {
	servers_start 3
	local i start
	for i in 0 1; do hold_exclusive "$i" token web3 812 backup.sh; done
	server_stop 2
	start=$NOW
	redlock status -q --server-timeout 30s "$KEY"
	expect 0
	redlock status -q --server-timeout 30s "$KEY" token
	expect 0
	redlock status -q --server-timeout 30s "$KEY-free"
	expect 1
	((NOW - start < 25000))
	server_continue 2
}

@test "-q asks about the next key a server that was not waited for, as its vote may be the one that matters" {
	servers_start 3
	local key i
	for i in 0 1 2; do hold_exclusive "$i" token web3 812 backup.sh; done
	key=$KEY KEY+=-two
	for i in 0 2; do hold_exclusive "$i" token web3 812 backup.sh; done
	proxies_start
	proxy 2 'delay 300'
	redlock status -q --server-timeout 30s -S "$(server_urls 0 1),$(proxy_url 2)" --also "$KEY" "$key"
	expect 0
}

# The holder may still have KEY, and extend cannot tell, either.
@test "-q of a lock that a server may know that does not answer is 69, for each kind of lock" {
	local how i=0 token options=(-x -s '-P 2' -r)
	servers_start 3
	for how in stop stop kill kill; do
		KEY+=$how
		server_kill 2
		# shellcheck disable=SC2086 # two words
		token=$("$REDLOCK" acquire ${options[i++]} -t 10m "$KEY")
		server_restart 2
		server_"$how" 0
		redlock status -q "$KEY" "$token"
		expect 69 '' "redlock: $KEY: perhaps held by this token: 1 of 3 servers did not answer: $(server_url 0): .*"
		redlock status -q "$KEY"
		expect 69 '' "redlock: $KEY: perhaps held: 1 of 3 servers did not answer: $(server_url 0): .*"
		redlock extend "$KEY" "$token"
		expect 69 '' '.*'
		redlock status -q "$KEY" other
		expect 1
		redlock status -q "$KEY-free"
		expect 1
		if [[ $how == stop ]]; then
			server_continue 0
			redlock status -q "$KEY" "$token"
			expect 0
		else
			server_restart 0
			redlock status -q "$KEY"
			expect 1
		fi
	done
}

@test "-q without a quorum is 69" {
	servers_start 3
	hold_exclusive 0 token web3 812 backup.sh
	server_kill 1 2
	redlock status -q "$KEY"
	expect 69 '' "redlock: $KEY: no quorum: .*"
	redlock status -q "$KEY" token
	expect 69 '' "redlock: $KEY: no quorum: .*"
}

@test "what can't be written is an error" {
	only 0
	local code=0
	timeout 20 "$REDLOCK" status "$KEY" >/dev/full 2>"$TMP/err" || code=$?
	[[ $code == 71 && $(<"$TMP/err") == "redlock: standard output: No space left on device" ]]
}

# everywhere LEFT: what a busy KEY, list, status and a wait tell of the holder's time.
everywhere() {
	local times="for $TIME$1"
	redlock run -n "$KEY" true
	expect 75 '' "redlock: $KEY: held by .* $times" || return
	redlock wait -w 10ms "$KEY"
	expect 75 '' "redlock: $KEY: held by .* $times" || return
	redlock list "$KEY"
	expect 0 "$KEY: exclusive, held by .* $times" || return
	redlock status "$KEY"
	expect 0 "$KEY: exclusive.*
  holder  .*  $times  '.*'
  server .*" || return
	redlock status --format json "$KEY"
	[[ $(of '.holders[0].left_ms > 0') == true ]] || return
	redlock list --format json "$KEY"
	[[ $(of '.left_ms > 0') == true ]]
}

@test "of a lease that is renewed no time left is told, but in JSON" {
	only 0
	spawn run "$REDLOCK" run -t 30s "$KEY" sleep 60
	wait_until '! key_free 0'
	everywhere ''
}

@test "the time left is told of a lease that nobody renews" {
	only 0
	redlock acquire -t 30s "$KEY"
	everywhere ', [12][0-9]s left'
}

@test "the time left is told of a lease whose renewal is late: less than half of the ttl" {
	only 0
	hold_exclusive 0 token web3 812 backup.sh 4
	rcli 0 HSET "$(record)" holder:token "$(described web3 812 backup.sh 4)"$'\nrenews=yes'
	TIME='4h0[0-9]m'
	rcli 0 PEXPIRE "$KEY" 29900
	everywhere ''
	rcli 0 PEXPIRE "$KEY" 14900
	everywhere ', 1[0-9.]+s left'
}

@test "on a narrow terminal status is broken between cells and words, and nothing is lost" {
	only 0 1 2
	hold_exclusive 0 token web3 812 '/usr/local/bin/backup.sh --all --to backup.example.com:/srv/data nightly' 4
	hold_exclusive 1 token web3 812 '/usr/local/bin/backup.sh --all --to backup.example.com:/srv/data nightly' 4
	queue_up 0 waiter 3 'string 0' web4 77 'deploy.sh --fast --to production'
	wraps status "$KEY"
	at_columns 60 status "$KEY"
	[[ ${lines[1]} =~ ^'  holder   web3 pid 812 (bob)  for 4h0'[0-9]'m, 9h5'[0-9]'m left'$ ]]
	[[ ${lines[2]} == "           '/usr/local/bin/backup.sh --all --to"* ]]
}

@test "a replica and a server in quarantine are said to be one: their grants would not count" {
	local before
	servers_start 3
	rcli 2 REPLICAOF 127.0.0.1 1
	redlock status "$KEY"
	expect 0 "$KEY: free$(server 0 free)$(server 1 free)$(server 2 'free, a replica: it grants no lock')"
	redlock status --format json "$KEY"
	[[ $(of '[.servers[] | [.replica, .quarantined]]') == '[[false,false],[false,false],[true,false]]' ]]
	redlock status --quarantine 1h "$KEY"
	expect 0 "$KEY: free
  server  $(server_url 0)  free, up for only [0-9]+m?s: it may have forgotten leases and has no vote until it has been up for 1h00m \(--quarantine\)
  server  $(server_url 1)  free, up for .*
  server  $(server_url 2)  free, a replica: it grants no lock"
	redlock status --quarantine 1h --format json "$KEY"
	[[ $(of '[.servers[].quarantined]') == '[true,true,true]' ]]
}
