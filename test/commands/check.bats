#!/usr/bin/env bats
# check: a plugin for Nagios, Icinga and Sensu: exit status 0 to 3, and one line on the standard output.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/inspect

# Measures: name=value[unit];warn;max;0
MEASURES='held=[0-9.U]+s?;[0-9.]*;[0-9.]*;0 waiting=[0-9U]+;[0-9]*;[0-9]*;0 wait=[0-9.U]+s?;[0-9.]*;[0-9.]*;0 age=[0-9.U]+s?;[0-9.]*;[0-9.]*;0'

# checks STATUS TEXT ARGUMENT...: check ends so, with one line that begins with the status's name, then TEXT (a
# regular expression), and nothing on standard error. TEXT has the measures if there is a bar in it.
checks() {
	local names=(OK WARNING CRITICAL UNKNOWN) want=$1 text=$2
	shift 2
	redlock check "$@"
	expect "$want" "REDLOCK ${names[want]} - $text" && [[ ${#lines[@]} == 1 ]]
}

# on_all COMMAND ARGUMENT...: for each server, with its number as the first argument.
on_all() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do "$1" "$i" "${@:2}"; done
}

# noted I HOW AGO HELD [TOKEN]: a run that ended HOW began AGO ms ago and held KEY for HELD ms.
noted() {
	local digest
	digest=$(printf '%s' "${5-token}" | sha1sum | cut -c 1-16)
	rcli "$1" RPUSH "$(record):runs" "$digest $4 1700000000001 - $2"$'\n'"since=$(($(server_ms "$1") - $3)) -"$'\n'"host=web3"$'\n' >/dev/null
}

@test "a KEY that nobody holds is OK" {
	servers_start 1
	checks 0 "$KEY: free \| held=0s;;;0 waiting=0;;;0 wait=0s;;;0 age=U;;;0" "$KEY"
	redlock run "$KEY" true
	checks 0 "$KEY: free; last success $TIME ago \| $MEASURES" "$KEY"
	# a monitor may show a warning instead
	REDLOCK_NO_SUCH=1 checks 0 "$KEY: free; last success $TIME ago \| $MEASURES" "$KEY"
}

# the same on one server and on three
judges_the_hold() {
	on_all hold_exclusive token web3 812 backup.sh 4
	local who="$KEY: held by web3 pid 812 'backup.sh' for 4h0[0-9]m"
	checks 0 "$who \| held=14[0-9.]+s;;;0 waiting=0;;;0 wait=0s;;;0 age=U;;;0" "$KEY"
	checks 0 "$who \| held=14[0-9.]+s;;18000;0 .*" --max-held 5h "$KEY"
	checks 2 "$who \(more than 2h00m\) \| held=14[0-9.]+s;;7200;0 .*" --max-held 2h "$KEY"
	checks 1 "$who \(more than 2h00m\) \| held=14[0-9.]+s;7200;18000;0 .*" --warn-held 2h --max-held 5h "$KEY"
	checks 2 "$who \(more than 3h00m\) \| held=14[0-9.]+s;7200;10800;0 .*" --warn-held 2h --max-held 3h "$KEY"
	# the time counts of the one that has held it longest
	KEY+=-permits
	on_all hold_permit 3 one web3 812 encode.sh 1
	on_all hold_permit 3 two web4 813 encode.sh 5
	checks 1 "$KEY: held by 2 of 3, longest web4 pid 813 'encode.sh' for 5h0[0-9]m \(more than 4h00m\) \| held=18[0-9.]+s;14400;;0 .*" --warn-held 4h "$KEY"
}

@test "a KEY that is held for longer than --warn-held or --max-held is a warning, or critical" {
	servers_start 1
	judges_the_hold
}

@test "of more holders than are shown all are counted" {
	servers_start 1
	hold_permit 0 0 first web1 11 'read' 1
	fill 0 < <(printf "ZADD $KEY $(($(date_ms) + 36000000)) token%d\n" {1..1100})
	checks 0 "$KEY: held by 1101, longest web1 pid 11 'read' for 1h0[0-9]m; since when is not known \| .*" "$KEY"
}

# judges_a_crowd COUNT: with old
judges_a_crowd() {
	local who="$KEY: held by $1, longest web1 pid 11 'read' for 4h0[0-9]m"
	checks 2 "$who \(more than 3h00m\) \| held=14[0-9.]+s;;10800;0 .*" --max-held 3h "$KEY"
	checks 0 "$who \| .*" --max-held 5h "$KEY"
	redlock status --format json "$KEY"
	[[ $(of '.holders[0] | [.host, .partial]') == '["web1",false]' ]]
}

@test "the holder that has held KEY longest is found among any number, whenever its lease ends" {
	only 0
	crowd 0 1500
	judges_a_crowd 1501
	rcli 0 ZADD "$KEY" $(($(date_ms) + 30000000)) old # it ends first
	judges_a_crowd 1501
}

@test "the holder that has held KEY longest is found among any number on three servers" {
	on_all crowd 1200
	rcli 1 ZADD "$KEY" $(($(date_ms) + 30000000)) old
	rcli 2 ZREM "$KEY" old
	judges_a_crowd 1201
}

@test "on three servers KEY is held if a quorum says so" {
	servers_start 3 --appendonly yes --appendfsync always
	judges_the_hold
	KEY=$KEY-one
	hold_exclusive 0 token web3 812 backup.sh 4
	checks 0 "$KEY: free \| held=0s;;3600;0 .*" --max-held 1h "$KEY"
	hold_exclusive 1 token web3 812 backup.sh 4
	server_kill 2
	checks 2 "$KEY: held by web3 pid 812 'backup.sh' for 4h0[0-9]m \(more than 1h00m\) \| .*" --max-held 1h "$KEY"
}

@test "if it depends on a server that does not answer whether KEY is held, it is UNKNOWN, or worse" {
	local why i
	servers_start 3
	hold_exclusive 1 token web3 812 backup.sh 4
	server_kill 2
	why="; 1 of 3 servers did not answer: $(server_url 2): Connection refused[^|]*"
	checks 3 "$KEY: perhaps held by web3 pid 812 'backup.sh' for 4h0[0-9]m$why \| held=14[0-9.]+s;;;0 .*" "$KEY"
	checks 3 "$KEY: perhaps held by web3 pid 812 'backup.sh' for 4h0[0-9]m$why \| .*" --max-held 5h "$KEY"
	checks 2 "$KEY: perhaps held by web3 pid 812 'backup.sh' for 4h0[0-9]m \(more than 1h00m\)$why \| .*" --max-held 1h "$KEY"
	checks 0 "$KEY-free: free \| held=0s;;3600;0 .*" --max-held 1h "$KEY-free"
	# beside a holder that a quorum has, one that may be a holder counts as one
	for i in 0 1; do hold_permit "$i" 2 one web3 812 backup.sh 1 "$KEY-two"; done
	hold_permit 1 2 two web4 99 backup.sh 3 "$KEY-two"
	checks 2 "$KEY-two: held by 2 of 2, longest web4 pid 99 'backup.sh' for 3h0[0-9]m \(more than 2h00m\) \| .*" --max-held 2h "$KEY-two"
}

judges_the_queue() {
	on_all hold_exclusive token web3 812 backup.sh 4
	on_all queue_up one 2 'string 0' web4 77 deploy.sh
	on_all queue_up two 1 'string 0' web4 78 deploy.sh
	local held="$KEY: held by web3 pid 812 'backup.sh' for 4h0[0-9]m"
	checks 0 "$held; 2 waiting, the first for 2h0[0-9]m \| held=[0-9.]+s;;;0 waiting=2;;2;0 wait=7[0-9.]+s;;10800;0 age=U;;;0" \
		--max-queue 2 --max-wait 3h "$KEY"
	checks 2 "$held; 2 waiting \(more than 1\), the first for 2h0[0-9]m \| .* waiting=2;;1;0 .*" --max-queue 1 "$KEY"
	checks 1 "$held; 2 waiting \(more than 0\), the first for 2h0[0-9]m \| .* waiting=2;0;;0 .*" --warn-queue 0 "$KEY"
	checks 2 "$held; 2 waiting, the first for 2h0[0-9]m \(more than 1h00m\) \| .* wait=7[0-9.]+s;;3600;0 .*" --max-wait 1h "$KEY"
	checks 1 "$held; 2 waiting, the first for 2h0[0-9]m \(more than 1h00m\) \| .* wait=7[0-9.]+s;3600;;0 .*" --warn-wait 1h "$KEY"
	# the worst counts
	checks 2 "$held; 2 waiting \(more than 1\), the first for 2h0[0-9]m \(more than 1h00m\) \| .*" --warn-wait 1h --max-queue 1 "$KEY"
}

@test "if too many wait, or somebody for too long, it is a warning, or critical" {
	servers_start 1
	judges_the_queue
}

@test "on three servers only waiters that a quorum knows are counted" {
	judges_the_queue
	queue_up 0 three 9 'string 0' web4 79 deploy.sh
	checks 0 "$KEY: .*; 2 waiting, the first for 2h0[0-9]m \| .*" --max-queue 2 --max-wait 3h "$KEY"
}

judges_the_age() {
	checks 2 "$KEY: free; no success known \| .* age=U;;93600;0" --max-age 26h "$KEY"
	checks 1 "$KEY: free; no success known \| .* age=U;93600;;0" --warn-age 26h "$KEY"
	redlock run "$KEY" false
	checks 2 "$KEY: free; no success known \| .*" --max-age 26h "$KEY"
	redlock run "$KEY" true
	checks 0 "$KEY: free; last success $TIME ago \| .* age=[0-9.]+s;;93600;0" --max-age 26h "$KEY"
	# a failure after it changes nothing
	redlock run "$KEY" false
	checks 0 "$KEY: free; last success $TIME ago \| .*" --max-age 26h "$KEY"
	KEY+=-old
	# its end counts: 28 hours ago it began, and for three hours it ran
	on_all noted 'exit 0' $((28 * 3600000)) $((3 * 3600000))
	checks 0 "$KEY: free; last success 1d1h ago \| .* age=900[0-9.]+s;;93600;0" --max-age 26h "$KEY"
	checks 1 "$KEY: free; last success 1d1h ago \(more than 1d0h\) \| .* age=900[0-9.]+s;86400;93600;0" --warn-age 1d --max-age 26h "$KEY"
	checks 2 "$KEY: free; last success 1d1h ago \(more than 1d0h\) \| .* age=900[0-9.]+s;;86400;0" --max-age 1d "$KEY"
}

@test "a last success that is too old, or not known, is a warning, or critical" {
	servers_start 1
	judges_the_age
}

@test "on three servers it is enough that one knows of the success" {
	servers_start 3 --appendonly yes --appendfsync always
	judges_the_age
	KEY+=-one
	noted 1 'exit 0' 60000 1000
	checks 0 "$KEY: free; last success 59s ago \| .*" --max-age 26h "$KEY" ||
		checks 0 "$KEY: free; last success 1m[0-9]+s ago \| .*" --max-age 26h "$KEY"
}

@test "a success in the future is not believed: a clock was wrong" {
	servers_start 1
	noted 0 'exit 0' -7200000 1000
	checks 3 "$KEY: free; last success (1h59m|2h00m) in the future: a server's clock was wrong \| .* age=U;;93600;0" --max-age 26h "$KEY"
	checks 3 "$KEY: free; last success .* in the future: .* \| .*" --warn-age 26h "$KEY"
	checks 0 "$KEY: free; last success .* in the future: .* \| .*" --max-held 1h "$KEY"
	# less than a minute is no error
	KEY+=-near
	noted 0 'exit 0' -30000 1000
	checks 0 "$KEY: free; last success 0ms ago \| .* age=0s;;93600;0" --max-age 26h "$KEY"
	# what a right clock has noted counts, and not what comes after it
	KEY+=-both
	noted 0 'exit 0' -7200000 1000 ahead
	noted 0 'exit 0' 3600000 1000
	checks 0 "$KEY: free; last success $TIME ago \| .* age=3[0-9.]+s;;93600;0" --max-age 26h "$KEY"
	# and a wrong time of a waiter, or of a holder, is no time below 0
	KEY+=-held
	hold_exclusive 0 token web3 812 backup.sh -2
	queue_up 0 one -2 'string 0' web4 77 deploy.sh
	checks 0 "$KEY: held by web3 pid 812 'backup.sh' for 0ms; 1 waiting for 0ms \| held=0s;;3600;0 waiting=1;;;0 wait=0s;;3600;0 age=U;;;0" \
		--max-held 1h --max-wait 1h "$KEY"
}

@test "how long another program has held KEY is unknown, and that is said" {
	servers_start 1
	rcli 0 SET "$KEY" their-secret PX 36000000
	checks 3 "$KEY: held by another program; since when is not known \| held=U;;3600;0 waiting=0;;;0 wait=0s;;;0 age=U;;;0" --max-held 1h "$KEY"
	checks 3 "$KEY: held by another program; since .* \| held=U;3600;;0 .*" --warn-held 1h "$KEY"
	checks 0 "$KEY: held by another program; since when is not known \| held=U;;;0 .*" "$KEY"
	rcli 0 PERSIST "$KEY"
	checks 2 "$KEY: held by another program, with no expiry; since when is not known \| held=U;;;0 .*" "$KEY"
	rcli 0 PEXPIRE "$KEY" 36000000
	# what is known to be wrong is worse
	queue_up 0 one 2 'string 0' web4 77 deploy.sh
	checks 2 "$KEY: held by another program; since .* \(more than 1h00m\) \| .*" --max-held 1h --max-wait 1h "$KEY"
}

@test "a KEY that is no lock is critical, as no run can start" {
	servers_start 1
	rcli 0 RPUSH "$KEY" element
	checks 2 "$KEY: KEY is not a lock: it is a list \| held=U;;;0 .*" "$KEY"
}

# the same on one server and on three
judges_what_is_beside() {
	local beside name
	for beside in '' :queue :wishes :waits; do
		name=$(literal "$(record)$beside")
		on_all rcli RPUSH "$(record)$beside" element
		checks 2 "$KEY: KEY is not a lock: $name is a list \| held=U;;;0 .*" "$KEY"
		# also if another program holds it
		on_all rcli SET "$KEY" token PX 36000000
		checks 2 "$KEY: KEY is not a lock: $name is a list \| held=U;;;0 .*" "$KEY"
		on_all rcli DEL "$KEY" "$(record)$beside"
		checks 0 "$KEY: free \| .*" "$KEY"
	done
	on_all rcli HSET "$(record)" fence nonsense
	checks 2 "$KEY: KEY is not a lock: .* is a hash without a valid fence \| .*" "$KEY"
}

@test "a KEY whose record or queue is something else is critical, as no run can start" {
	servers_start 1
	judges_what_is_beside
	servers_start 3 --appendonly yes --appendfsync always
	judges_what_is_beside
	# a run can start if it can do so on a majority
	rcli 0 DEL "$(record)"
	rcli 1 DEL "$(record)"
	checks 0 "$KEY: free \| .*" "$KEY"
}

@test "what is not known is UNKNOWN, with one line on standard output and none elsewhere" {
	servers_start 3
	server_kill 1 2
	checks 3 "$KEY: no quorum: 2 of 3 servers gave no vote, 2 votes are needed: [^|]*" "$KEY"
	checks 3 "$KEY: unix:///nonexistent/s: No such file or directory: [^|]*" -S unix:///nonexistent/s "$KEY"
	rcli 0 CONFIG SET requirepass hunter2
	checks 3 "$KEY: $(server_url 0): [^|]*" -S "$(server_url 0)" "$KEY"
	# the configuration
	checks 3 '/nonexistent: No such file or directory' --config /nonexistent "$KEY"
	REDLOCK_SERVERS='' checks 3 'REDLOCK_SERVERS[^|]*' "$KEY"
	REDLOCK_CACERT=/nonexistent checks 3 '.*/nonexistent.*' -S rediss://127.0.0.1:1 "$KEY"
	# the command line
	checks 3 'check: KEY is missing: see redlock check --help'
	checks 3 "check: unknown option '--max-agee': .*" --max-agee 1 "$KEY"
	checks 3 "check: --max-age 'x' is not a DURATION .*" --max-age x "$KEY"
	checks 3 "check: --max-queue '-1' is not a number from 0 to 2147483647" --max-queue=-1 "$KEY"
	checks 3 "check: --warn-age is more than --max-age: see .*" --warn-age 2h --max-age 1h "$KEY"
	checks 3 "check: --warn-queue is more than --max-queue: see .*" --warn-queue 2 --max-queue 1 "$KEY"
	checks 3 "check: one argument too many: 'b'.*" a b
	checks 3 "check: option '-n' is for other commands.*" -n "$KEY"
	checks 3 "check: KEY '.a.:redlock' could be the record of another KEY: .*" '{a}:redlock'
}

@test "a KEY that a newer redlock uses is UNKNOWN" {
	servers_start 1
	rcli 0 HSET "$(record)" fence 'v2 1'
	checks 3 "$KEY: [^|]*newer redlock[^|]*" "$KEY"
}

@test "without the right to read the history only --max-age and --warn-age are UNKNOWN" {
	servers_start 1
	redlock run "$KEY" true
	rcli 0 ACL SETUSER reader on nopass '~*' '&*' +@all -lrange
	local url
	url=unix://reader:x@$SERVERS/0/redis.sock
	checks 3 "$KEY: free; last success unknown: .* \| .* age=U;;3600;0" -S "$url" --max-age 1h "$KEY"
	checks 0 "$KEY: free.* \| .*" -S "$url" --max-held 1h "$KEY"
}

@test "with -q only what is not OK is printed" {
	servers_start 1
	redlock check -q "$KEY"
	expect 0
	checks 2 "$KEY: free; no success known \| .*" -q --max-age 1h "$KEY"
	checks 3 "$KEY: [^|]*" -q -S unix:///nonexistent/s "$KEY"
}

@test "whatever bytes others chose, it is one line, with one bar" {
	servers_start 1
	local key=$'a|b\nc\e\xff'
	rcli 0 SET "$key" token PX 36000000
	rcli 0 HSET "{$key}:redlock" fence 5 holder:token "$(described $'we|b\e' 812 $'x | y=1\nz' 4)"
	checks 0 "a"'\\x7cb\\nc\\e\\xff'": held by we"'\\x7cb\\e'" pid 812 'x "'\\x7c'" y=1' for 4h0[0-9]m \| $MEASURES" "$key"
	[[ $output != *'|'*'|'* ]]
	# long ones are cut, so that no program on the way cuts the measures
	key=$(repeat k 4000)
	checks 0 "k{200}\.\.\.: free \| $MEASURES" "$key"
}

@test "an output that can't be written is UNKNOWN" {
	servers_start 1
	local code=0
	timeout 20 "$REDLOCK" check "$KEY" >/dev/full 2>"$TMP/err" || code=$?
	[[ $code == 3 ]]
}
