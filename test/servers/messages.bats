#!/usr/bin/env bats
# Messages that are late, lost, doubled, out of order or forged: nobody believes in a lock that is not theirs.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables
# bats file_tags=long

load ../lib/helper

# behind_proxies COUNT: $PROXIED are the servers through proxies.
behind_proxies() {
	servers_start "$1"
	proxies_start
	PROXIED=$(proxy_urls)
}

# held_by_run NAME [OPTION...]: NAME holds KEY until $TMP/NAME.end exists.
held_by_run() {
	touch "$TMP/$1.stay"
	wait_turn "$@"
	wait_until '[[ $(cat "$TMP/order") == *'"$1"' ]]'
}

# channel [I]: of the one who listens there.
channel() {
	channels "${1:-0}"
}

# publish MESSAGE: to the one waiter on server 0, who gets it.
publish() {
	[[ $(rcli 0 PUBLISH "$(channel)" "$1") == 1 ]]
}

# request_number [I]: of the last request of the only waiter.
request_number() {
	rcli "${1:-0}" HVALS "$(record):wishes" | sed -n 's/^[0-9]* [a-z]* [0-9]* [0-9]* [^ ]* \([0-9]*\) [0+]\{0,1\}[0-9]*$/\1/p'
}

# is_still_waiting NAME: after all that was published, it waits, in the queue, and nobody else holds KEY than did.
is_still_waiting() {
	is_running "$1" && queued 1 0 && listening 1 0 && [[ $(rcli 0 GET "$KEY") == "$holder" ]]
}

# another_request: the only waiter has made one, which was refused.
another_request() {
	local before
	before=$(request_number)
	rcli 0 CLIENT KILL TYPE pubsub
	wait_until "((\$(request_number) > $before)) && listening 1 0"
}

# answered NAME COUNT: it has so often been told that somebody else holds KEY.
answered() {
	(($(grep -c 'held by another' "$TMP/$1.err") >= $2))
}

# late_grant NAME [OPTION...]: NAME has been granted KEY, but neither the message nor anything else
# has come through to it; $asked is a moment before its request, or little after it.
late_grant() {
	behind_proxies 1
	take
	line_up "$@" -S "$PROXIED"
	proxy 0 hold
	asked=$NOW
	give_back
}

# ---------------------------------------------------------------- stale

@test "a message for a request that was answered once more since is not believed" {
	servers_start 1
	held_by_run h
	holder=$(rcli 0 GET "$KEY")
	line_up a -v -t 30s
	wait_until 'answered a 2'
	another_request
	wait_until 'answered a 3'
	publish "$(($(request_number) - 1)) 4000000000000 10000 -"
	wait_until '[[ $(<"$TMP/a.err") == *"a stale message, passed over"* ]]'
	is_still_waiting a
	is_beating "$TMP/stamps"
	touch "$TMP/h.end"
	finish h
	finish a
	[[ $status == 0 ]]
	ran h a
	assert_exclusive "$TMP/stamps" 2
	no_trace
}

@test "a message whose lease is over is not believed" {
	late_grant a -t 3s
	touch "$TMP/b.stay"
	wait_turn b # by way of the server itself, when the lease of a is over
	wait_until '[[ $(cat "$TMP/order") == b ]]'
	proxy_ears 0 pass
	proxy 0 pass
	wait_until 'queued 1'
	is_running a
	is_beating "$TMP/stamps"
	touch "$TMP/b.end"
	all_end_well b
	all_are_served a
	ran b a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

@test "a grant that was given back and went to another is not believed when it comes" {
	behind_proxies 1
	take
	line_up a -t 30s --server-timeout 300ms -S "$PROXIED"
	line_up b -t 30s
	touch "$TMP/b.stay"
	proxy_ears 0 hold
	proxy 0 hold # it cannot ask, either
	give_back
	wait_until 'proxy_did 0 hold'
	kill -TERM "$(pid a)"
	finish a
	[[ $status == 143 ]]
	proxy 0 pass
	wait_until '[[ $(cat "$TMP/order") == b ]]'
	proxy_ears 0 pass
	touch "$TMP/b.end"
	all_end_well b
	ran b
	wait_until no_trace
}

@test "a message for a waiter that has given up reaches nobody" {
	local name
	servers_start 1
	take
	line_up a
	name=$(channel)
	kill -TERM "$(pid a)"
	finish a
	expect 143
	wait_until 'listening 0'
	[[ $(rcli 0 PUBLISH "$name" '1 4000000000000 10000 -') == 0 ]]
	key_held_by "$token" 0
}

@test "messages that come twice count once" {
	local i
	behind_proxies 3
	for i in 0 1 2; do proxy_ears "$i" twice; done
	take
	for i in 1 2 3 4; do line_up "w$i" -S "$PROXIED"; done
	give_back
	all_end_well w1 w2 w3 w4
	ran w1 w2 w3 w4
	assert_exclusive "$TMP/stamps" 4
	for i in 0 1 2; do proxy_did "$i" twice; done
	wait_until no_trace
}

@test "a grant on one server of three is given back, and not believed when it comes again" {
	local name number
	servers_start 3
	held_by_run h
	holder=$(rcli 0 GET "$KEY")
	line_up a -t 30s -v
	name=$(channel)
	number=$(request_number)
	publish "$number 4000000000000 10000 -"
	wait_until '[[ $(<"$TMP/a.err") == *"given back"* ]]'
	wait_until 'queued 0 0 && queued 1 1 2'
	[[ $(rcli 0 PUBLISH "$name" "$number 4000000000000 10000 -") == 1 ]]
	wait_until '[[ $(<"$TMP/a.err") == *"a stale message, passed over"* ]]'
	is_running a && [[ $(rcli 1 GET "$KEY") == "$holder" ]]
	touch "$TMP/h.end"
	finish h
	finish a
	ran h a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

# never_there_again FATE: a has been granted KEY by server 0 alone; while that is given back the
# connection meets its FATE.
never_there_again() {
	local before number sent=
	behind_proxies 3
	held_by_run h
	line_up a -v -t 6s --server-timeout 300ms -S "$PROXIED"
	proxy_ears 0 pass
	before=$(request_number)
	wait_until "((\$(request_number) > before))" # two seconds before the next one
	proxy 0 "$1 1"
	# should it have asked anew meanwhile, that request is granted
	wait_until 'number=$(request_number)
		[[ $number == "$sent" ]] || publish "$number 4000000000000 6000 -"
		sent=$number
		[[ $(<"$TMP/a.err") == *"given back"* ]]'
	wait_until "proxy_did 0 $1"
	before=$(request_number 1)
	wait_until "((\$(request_number 1) > before + 5))" # which is twice what it waits there
	queued 0 0
	touch "$TMP/a.stay" "$TMP/h.end"
	finish h
	wait_until 'ran h a'
	renewals 2 1
	key_free 0 # nor is it put back there
	touch "$TMP/a.end"
	finish a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

@test "a server that may have been told twice to take a grant back is not asked again" {
	never_there_again close
}

@test "a server that does not say that it has taken a grant back is not asked again" {
	never_there_again mute
}

# ---------------------------------------------------------------- forged

# forge: each line is a message to the only waiter, as redis-cli has text in quotes.
forge() {
	local name
	name=$(channel)
	sed "s/.*/PUBLISH $name \"&\"/" | redis-cli -s "$SERVERS/0/redis.sock" >"$TMP/forged"
	[[ $(sort -u "$TMP/forged") == 1 ]]
}

@test "messages that make no sense are passed over" {
	servers_start 1
	held_by_run h
	holder=$(rcli 0 GET "$KEY")
	line_up a -t 30s
	# of a request that is still to come, and of ones that never will
	forge <<-'END'
		2 5 10000 -
		5 5 10000 -
		9 5 10000 -
		9007199254740992 5 10000 -
		4294967297 5 10000 -
		18446744073709551617 5 10000 -
		99999999999999999999999999 5 10000 -
	END
	[[ $(request_number) == 1 ]]
	forge <<-'END'


		x
		1
		1 5
		1 5 10000
		1 5 10000 
		 1 5 10000 -
		1  5 10000 -
		1 5  10000 -
		1\t5\t10000\t-
		-1 5 10000 -
		1 -5 10000 -
		1 5 -10000 -
		+1 5 10000 -
		0x1 5 10000 -
		1.0 5 10000 -
		1 5 1e4 -
		1 5 10000 - 
		1 5 10000 --
		1 5 10000 -\n
		1 5 10000 *
		1 5 10000 00112233445566778899aabbccddeeff
		1 5 10000 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
		1 5 10000 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
		1 0 10000 -
		1 5 30001 -
		1 5 99999999999999999999999 -
		1 9007199254740993 10000 -
		1 99999999999999999999999 10000 -
		1 5 10000 \x00-
		1\x00 5 10000 -
		\x00
		\xff\xfe\x80
		-18446744073709551615 5 10000 -
	END
	is_still_waiting a
	is_beating "$TMP/stamps"
	touch "$TMP/h.end"
	all_end_well h a
	ran h a
	assert_exclusive "$TMP/stamps" 2
	no_trace
}

@test "messages of 100 kB are passed over" {
	local i
	servers_start 1
	held_by_run h
	holder=$(rcli 0 GET "$KEY")
	line_up a -t 30s
	for i in 1 2 3; do
		{
			printf '1 5 10000 '
			head -c 100000 /dev/zero | tr '\0' -
		} | redis-cli -s "$SERVERS/0/redis.sock" -x PUBLISH "$(channel)"
		wait_until 'listening 1 && queued 1'
	done
	wait_until 'is_still_waiting a'
	touch "$TMP/h.end"
	all_end_well h
	all_are_served a
	ran h a
	assert_exclusive "$TMP/stamps" 2
	no_trace
}

@test "a message that tells of a free KEY that is none makes a waiter ask, and no more" {
	servers_start 1
	held_by_run h
	holder=$(rcli 0 GET "$KEY")
	line_up a -t 30s
	publish '0 0 0 -'
	wait_until '[[ $(request_number) == 2 ]]'
	publish '0 5 0 0123456789'
	wait_until '[[ $(request_number) == 3 ]]'
	is_still_waiting a
	touch "$TMP/h.end"
	all_end_well h a
	ran h a
	assert_exclusive "$TMP/stamps" 2
}

@test "one forged message of three servers' is no lock" {
	servers_start 3
	held_by_run h
	holder=$(rcli 0 GET "$KEY")
	line_up a -t 30s
	publish "$(request_number) 4000000000000 10000 -"
	wait_until 'queued 0 0 && queued 1 1 2' # it is given back
	is_running a
	is_beating "$TMP/stamps"
	touch "$TMP/h.end"
	all_end_well h a
	ran h a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

# ---------------------------------------------------------------- validity

@test "a message that comes when half of its lease is over is confirmed by a round" {
	late_grant a -v -t 6s
	asked=$NOW # by now it has been granted
	wait_until '((NOW - asked > 1600))'
	proxy_ears 0 pass
	wait_until '[[ $(<"$TMP/a.err") == *"confirmed by a round"* ]]'
	run -1 stamped "$TMP/stamps"
	proxy 0 pass
	finish a
	[[ $status == 0 ]]
	ran a
	wait_until no_trace
}

@test "a late message is not believed where KEY has passed to another by the time of the round" {
	late_grant a -v -t 6s -k 100ms --server-timeout 2500ms
	asked=$NOW
	wait_until '((NOW - asked > 1800))'
	proxy_ears 0 pass
	wait_until '[[ $(<"$TMP/a.err") == *"confirmed by a round"* ]]'
	touch "$TMP/b.stay"
	wait_turn b
	wait_until '[[ $(cat "$TMP/order") == b ]]'
	proxy 0 pass
	wait_until 'queued 1'
	is_running a
	is_beating "$TMP/stamps"
	touch "$TMP/b.end"
	all_end_well b
	finish a
	[[ $status == 0 ]]
	ran b a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

@test "validity counts from the request, not from the message" {
	behind_proxies 1
	take
	mkdir "$TMP/stamps"
	# a command that heeds no SIGTERM, cut off from the server as soon as it has the lock
	spawn a "$REDLOCK" run -w 20s -t 6s -k 200ms -S "$PROXIED" "$KEY" "$STAMP" -t "$TMP/stamps"
	wait_until 'queued 1'
	proxy 0 hold
	asked=$NOW
	give_back
	spawn b "$REDLOCK" run -t 6s "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	wait_until '((NOW - asked > 1000))'
	proxy_ears 0 pass
	finish b
	expect 0
	finish a
	# where it came too late on a busy machine, it was not started
	[[ $status == 76 ]] || ! stamped "$TMP/stamps" 2
	[[ ! -s $TMP/stamps/overlap ]]
	! stamped "$TMP/stamps" 2 || assert_exclusive "$TMP/stamps" 2
}

@test "a command that began by a message has ended when nobody has renewed its first lease of 3 s" {
	local start
	behind_proxies 1
	take
	mkdir "$TMP/stamps"
	spawn a "$REDLOCK" run -w 20s -t 60s -S "$PROXIED" "$KEY" "$STAMP" -t "$TMP/stamps"
	wait_until 'queued 1'
	spawn b "$REDLOCK" run -t 60s "$KEY" "$STAMP" -d 20 "$TMP/stamps"
	wait_until 'queued 2'
	proxy 0 hold
	proxy_ears 0 pass
	start=$NOW
	give_back
	finish b
	expect 0
	finish a
	[[ $status == 76 ]]
	assert_exclusive "$TMP/stamps" 2
	(($(first_beat 2) - start < 5000))
}

@test "a message is not believed for longer because the server's clock was set forward before the grant" {
	clocked servers_start 1
	take
	line_up a -t 30s
	turn 20
	stop_process "$(pid a)"
	give_back
	touch "$TMP/b.stay"
	wait_turn b -t 30s # which has KEY when the first lease of a is over
	wait_until '[[ $(cat "$TMP/order") == b ]]'
	kill -CONT "$(pid a)"
	wait_until 'queued 1'
	is_running a
	is_beating "$TMP/stamps"
	touch "$TMP/b.end"
	all_end_well b a
	ran b a
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

# ---------------------------------------------------------------- lost

@test "a waiter whose message is lost with its connection is served when it listens again" {
	local start
	behind_proxies 1
	take
	line_up a -t 30s -S "$PROXIED"
	proxy_ears 0 cut
	start=$NOW
	give_back
	wait_until 'proxy_did 0 cut'
	finish a
	expect 0
	(($(first_beat) - start < 3000)) # its next request was 5 s away
	ran a
	wait_until no_trace
}

@test "a waiter whose message is lost gets the lock by its next request, and nobody else before" {
	behind_proxies 1
	take
	line_up a -t 6s -S "$PROXIED"
	line_up b -t 6s
	proxy_ears 0 drop
	give_back
	wait_until 'proxy_did 0 drop'
	all_end_well a b
	ran a b
	assert_exclusive "$TMP/stamps" 2
	wait_until no_trace
}

@test "messages that are lost on two servers of three are no loss" {
	local i
	behind_proxies 3
	take
	line_up a -t 6s -S "$PROXIED"
	proxy_ears 0 drop
	proxy_ears 2 cut
	give_back
	finish a
	[[ $status == 0 ]]
	ran a
	wait_until no_trace
}

@test "a waiter whose requests are answered no more is served by the message" {
	behind_proxies 1
	take
	line_up a -t 6s -S "$PROXIED"
	proxy_ears 0 pass
	proxy 0 'mute 1'
	wait_until '[[ -s $TMP/a.err ]]'
	give_back
	finish a
	[[ $status == 0 ]]
	ran a
	wait_until no_trace
}

# ---------------------------------------------------------------- out of order

@test "a message behind the answer to the next request changes nothing" {
	local i
	behind_proxies 3
	take
	line_up a -t 6s -S "$PROXIED"
	for i in 0 1 2; do proxy_ears "$i" still; done
	touch "$TMP/a.stay"
	give_back
	# its next requests are answered before the messages come
	wait_until 'stamped "$TMP/stamps"'
	for i in 0 1 2; do proxy_ears "$i" pass; done
	is_beating "$TMP/stamps"
	touch "$TMP/a.end"
	all_end_well a
	ran a
	wait_until no_trace
}

@test "a message before the refusal of the request that it answers is believed" {
	local i
	behind_proxies 1
	take
	line_up a -t 6s -S "$PROXIED"
	proxy 0 still
	proxy_ears 0 pass
	wait_until '(($(request_number) == 2))' # refused, but the reply is on its way
	give_back
	wait_until 'stamped "$TMP/stamps"'
	proxy 0 pass
	finish a
	[[ $status == 0 ]]
	ran a
	wait_until no_trace
}

@test "a message before the refusal of an earlier request, on some of the servers" {
	local i start
	behind_proxies 3
	take
	line_up a -t 6s -S "$PROXIED"
	for i in 0 1 2; do
		proxy_ears "$i" pass
		proxy "$i" still
	done
	wait_until 'asked_twice'
	proxy_ears 1 hold
	proxy_ears 2 hold
	start=$NOW
	give_back
	proxy 0 pass # the refusal comes behind the message
	wait_until 'queued 0'
	for i in 1 2; do
		proxy "$i" pass
		proxy_ears "$i" pass
	done
	finish a
	[[ $status == 0 ]]
	ran a
	echo "$(($(first_beat) - start)) ms"
	wait_until no_trace
}

asked_twice() {
	local i
	for i in 0 1 2; do (($(request_number "$i") == 2)) || return; done
}

# ---------------------------------------------------------------- all at once

@test "delayed, doubled and lost messages: all are served, nobody overlaps" {
	local i names=()
	behind_proxies 3
	proxy_ears 0 'delay 30'
	proxy_ears 1 twice
	proxy_ears 2 drop
	take
	for i in 1 2 3 4 5; do
		names+=("w$i")
		line_up "w$i" -t 3s -S "$PROXIED"
	done
	give_back
	all_are_served "${names[@]}"
	assert_exclusive "$TMP/stamps" 5
	wait_until no_trace
}

@test "a waiter whose requests are answered no more makes them on another connection" {
	behind_proxies 1
	take
	line_up a -t 3s --server-timeout 300ms -S "$PROXIED"
	proxy_ears 0 drop
	proxy 0 'mute 1'
	wait_until '[[ -s $TMP/a.err ]]'
	give_back
	finish a
	expect 0 '' "redlock: $KEY: still waiting: $(proxy_url 0): no answer within .*"
	wait_until no_trace
}

@test "a waiter whose subscription is new makes a request that was left without an answer again" {
	local before
	behind_proxies 1
	take
	line_up a -t 30s --server-timeout 300ms -S "$PROXIED"
	proxy_ears 0 pass
	proxy 0 'mute 1'
	wait_until '[[ -s $TMP/a.err ]]'
	before=$(request_number)
	rcli 0 CLIENT KILL TYPE pubsub
	wait_until "((\$(request_number) > before))" 7 # it would give the answer up in ten seconds
	give_back
	all_are_served a
	wait_until no_trace
}

@test "a lease that is over when its fence has been raised at last is no lock, and asked for again" {
	local i
	servers_start 3
	proxies_start
	rcli 0 HSET "$(record)" fence 2000000000000000
	take
	rcli 1 HSET "$(record)" fence 7
	for i in 0 1 2; do proxy_ears "$i" pass; done
	spawn waiter "$REDLOCK" acquire --quarantine 0 -S "$(proxy_urls)" -t "$((SLOW * 2))s" --server-timeout 20s "$KEY"
	wait_until 'queued 1'
	server_stop 2 # so that it takes the two others' votes
	proxy 1 still
	give_back
	wait_until '[[ $(rcli 1 HGET "$(record)" fence) == 2000* ]]'
	wait_until 'key_free 1'
	proxy 1 pass
	finish waiter
	expect 0 '[0-9a-f]{32}'
	key_held_by "$output" 0 1
}
