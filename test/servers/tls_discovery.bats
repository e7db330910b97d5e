#!/usr/bin/env bats
# rediss+sentinel:// and rediss+cluster://: every connection is encrypted and proves a name, and no password goes
# to anybody else, whatever Sentinels and nodes say. And what passwords Sentinels have of their own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables
# bats file_tags=long

load ../lib/helper
load ../lib/cli
load ../lib/discovery

setup_file() {
	export CERTS=$BATS_FILE_TMPDIR/certs
	mkdir "$CERTS"
	authority ca
	authority other
	certificate_of "$CERTS/elsewhere" DNS:elsewhere.example
	certificate impostor other DNS:localhost,IP:127.0.0.1
	export REDLOCK_CACERT=$CERTS/ca.pem
	# a handshake takes long while the machine does much else
	export REDLOCK_SERVER_TIMEOUT=5s
}

# has_certificate I FILE: from its next connection on this server of the set shows this one.
has_certificate() {
	[[ $(rcli "$1" CONFIG SET tls-cert-file "$2.pem" tls-key-file "$2.key") == OK ]]
}

# sentinel_has_certificate I FILE: the same for a Sentinel, which is restarted.
sentinel_has_certificate() {
	sentinels server_kill "$1"
	sed -i -E "s,^tls-cert-file .*,tls-cert-file $2.pem,; s,^tls-key-file .*,tls-key-file $2.key," "$SENTINELS/$1/conf"
	sentinel_launch "$1"
	sentinel_ready "$1"
}

# leaves_none STATUS PATTERN [OPTION...]: takes_none, and KEY is held nowhere.
leaves_none() {
	local i
	takes_none "$@" || return
	for ((i = 0; i < SERVER_COUNT; i++)); do wait_until "key_free $i" || return; done
}

# logins I: how many have come to this server of the set.
logins() {
	rcli "$1" INFO commandstats | sed -n 's/^cmdstat_auth:calls=\([0-9]*\),.*/\1/p' | grep . || echo 0
}

# ---------------------------------------------------------------- names and addresses

@test "Sentinels announce names: every command finds the master by its name, with no port without TLS" {
	speak_tls names
	sentinels_start 1 --port 0
	locks 0
	locks 0
	every_command_finds 0 "$(literal "$(sentinel_url)")"
	redlock status --format json "$KEY"
	[[ $status == 0 && $(jq -r '.servers[0].at' <<<"$output") == "$(name 0):6380" ]]
	redlock doctor
	[[ $status == 0 && $output == *"$(sentinel_url): ok, at $(name 0):6380, "@(Redis|Valkey)" "* ]]
	redlock doctor --format json
	[[ $(jq -r '.servers[0].at' <<<"$output") == "$(name 0):6380" ]]
	locks 0 -S "$(sentinel_url '/main?db=0')"
	redlock acquire -n -S "$(sentinel_url '/main?db=3')" "$KEY"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 -n 3 GET "$KEY") == "$output" ]]
}

@test "Sentinels announce addresses, which the certificates name" {
	speak_tls addresses
	sentinels_start 1
	locks 0
	locks 0
	every_command_finds 0 "$(literal "$(sentinel_url)")"
}

@test "an address that the certificate does not name is refused, although a name would do" {
	speak_tls names
	sentinels_start 0
	sentinels_each SENTINEL REMOVE main
	sentinels_each SENTINEL MONITOR main "$(address 0)" 6380 2
	sentinels_each SENTINEL CONFIG SET announce-hostnames no
	leaves_none 77 "rediss\\+sentinel://.*/main: $(address 0):6380: its certificate is refused: IP address mismatch"
	# but a name that all of them have is one to ask for
	certificate_of "$CERTS/all" DNS:locks.example
	has_certificate 0 "$CERTS/all"
	local i
	for i in 0 1 2; do sentinel_has_certificate "$i" "$CERTS/all"; done
	locks 0 --sni locks.example
	leaves_none 77 "rediss\\+sentinel://.*: hostname mismatch.*"
}

@test "a cluster announces names: each KEY is taken on its node, and list walks over all" {
	local i keys=()
	speak_tls names
	cluster_start 3 1
	for i in 0 1 2; do
		KEY=$(key_on "$i" 3 "$KEY-$i")
		keys+=("$KEY")
		locks "$i"
		locks "$i" -S "rediss+cluster://$(name 1):6380"
		every_command_finds "$i" 'rediss\+cluster://.*'
		"$REDLOCK" acquire -t 10m "$KEY"
	done
	redlock list
	[[ $status == 0 && $(cut -d: -f1 <<<"$output" | sort) == "$(printf '%s\n' "${keys[@]}" | sort)" ]]
	redlock doctor
	[[ $status == 0 && $output == *rediss+cluster://*': ok, at 0x7f.'*':6380, '@(Redis|Valkey)' '* ]]
}

@test "a cluster redirects to addresses, but announces names: these count" {
	local i
	speak_tls names
	cluster_start 3 0 --cluster-preferred-endpoint-type ip --port 0
	for i in 0 1 2; do
		KEY=$(key_on "$i" 3)
		locks "$i" -S "rediss+cluster://$(name 0):6380"
		locks "$i" -S "rediss+cluster://$(name 0):6380"
		rm -r "$PLACES"
		locks "$i"
		locks "$i"
	done
	redlock list
	expect 0
}

@test "a cluster announces addresses, which the certificates name; and if they do not, it is 77" {
	local i
	speak_tls addresses
	cluster_start 3
	for i in 0 1 2; do
		KEY=$(key_on "$i" 3)
		locks "$i"
		locks "$i"
	done
	redlock list
	expect 0
	has_certificate 2 "$CERTS/elsewhere"
	takes_none 77 "rediss\\+cluster://[^ ]*: $(address 2):6380: its certificate is refused: IP address mismatch"
	redlock list
	expect 77 '' "redlock: rediss\\+cluster://[^ ]*: $(address 2):6380: its certificate is refused: IP address mismatch.*"
	KEY=$(key_on 0 3) locks 0
}

@test "nodes that know no name of another one say so, and it is 69" {
	speak_tls addresses
	cluster_start 3 0 --cluster-preferred-endpoint-type hostname
	KEY=$(key_on 2 3)
	takes_none 69 'rediss\+cluster://.*: it knows no name of KEY.s node, which has no cluster-announce-hostname.*'
}

@test "waiters are served over TLS, in turn, in a cluster and by Sentinels" {
	local node
	speak_tls names
	for node in cluster sentinels; do
		rm -rf "$TMP/order" "$TMP/stamps" "$TMP"/?.end
		if [[ $node == cluster ]]; then cluster_start 3 && KEY=$(key_on 1 3); else sentinels_start 1; fi
		touch "$TMP/a.stay"
		wait_turn a
		wait_until 'ran a'
		LINE=0
		node=$([[ $node == cluster ]] && echo 1 || echo 0)
		for i in b c; do
			wait_turn "$i"
			wait_until "queued $((++LINE)) $node"
		done
		spawn wait "$REDLOCK" wait "$KEY"
		wait_until "queued 3 $node"
		touch "$TMP/a.end"
		all_end_well a b c wait
		ran a b c
		assert_exclusive "$TMP/stamps" 3
	done
}

# ---------------------------------------------------------------- whom Sentinels and nodes may name

@test "a master that all Sentinels name, and that has no certificate for its name, gets no login" {
	local i
	speak_tls names
	sentinels_start 0
	rcli 0 ACL SETUSER bob on '>hunter2' '~*' '&*' +@all
	REDLOCK_SERVERS=${REDLOCK_SERVERS/:\/\//://bob:hunter2@}
	for i in elsewhere impostor; do
		has_certificate 0 "$CERTS/$i"
		takes_none 77 "rediss\\+sentinel://.*: $(name 0):6380: its certificate is refused: .*"
	done
	[[ $(logins 0) == 0 ]]
	# nor one that is remembered from better days
	has_certificate 0 "$SERVERS/0"
	locks 0
	i=$(logins 0)
	((i > 0))
	has_certificate 0 "$CERTS/elsewhere"
	takes_none 77 "rediss\\+sentinel://.*: its certificate is refused: .*"
	[[ $(logins 0) == "$i" ]]
}

@test "a port without TLS that Sentinels or nodes name gets a ClientHello and nothing else" {
	local i
	speak_tls addresses
	seeds_start 3
	peer silent
	export REDLOCK_PASSWORD=hunter2
	for i in 0 1 2; do
		seed_says "$i" SENTINEL "$(place 127.0.0.1 "${PEER_URL##*:}")" EXISTS "-MOVED 5 127.0.0.1:${PEER_URL##*:}\\r\\n"
	done
	SERVER_COUNT=0 takes_none 69 "rediss\\+sentinel://.*: 127.0.0.1:${PEER_URL##*:}: no TLS handshake .*: do its Sentinels or nodes name its port for TLS.*" \
		-S "rediss+sentinel://$(seed_address 0),$(seed_address 1),$(seed_address 2)/main"
	SERVER_COUNT=0 takes_none 69 "rediss\\+cluster://.*: 127.0.0.1:${PEER_URL##*:}: no TLS handshake .*" \
		-S "rediss+cluster://$(seed_address 0),$(seed_address 1),$(seed_address 2)"
	only_hellos 2
}

@test "Sentinels and nodes without TLS, or without a certificate for their name, get no login and are not believed" {
	local kind url # (`run` changes i)
	for kind in plain "$CERTS/impostor" "$CERTS/elsewhere"; do
		speak_tls "$([[ $kind == plain ]] || echo addresses)"
		SEED_CERTIFICATE=$kind seeds_start 1
		seed_says 0 SENTINEL "$(place 127.0.0.1 1)" EXISTS ':0\r\n' AUTH '+OK\r\n'
		for url in "rediss+sentinel://:hunter2@$(seed_address 0)/main?sentinel=:sesame" \
			"rediss+cluster://:hunter2@$(seed_address 0)"; do
			redlock run -n --server-timeout 2s -S "$url" "$KEY" true
			if [[ $kind == plain ]]; then expect 69 '' "redlock: $KEY: .*TLS.*"; else expect 77 '' "redlock: $KEY: .*its certificate is refused.*"; fi
			run -1 grep -E 'hunter2|sesame' "$TMP/redlock.err"
		done
		[[ ! -s $SEEDS/0.log ]]
	done
}

@test "one Sentinel of three without a proper certificate is no matter, but doctor tells; two are 77" {
	speak_tls names
	sentinels_start 0 --appendonly yes
	sentinels_each SENTINEL SET main down-after-milliseconds 2000
	sentinel_has_certificate 1 "$CERTS/elsewhere"
	locks 0
	rm -r "$PLACES"
	locks 0
	redlock doctor -q
	[[ $status == 0 && $output == *": warning: 1 of 3 Sentinels did not answer: $(sentinel_host 1):26380: its certificate is refused: hostname mismatch (--accept sentinel)"* ]]
	redlock doctor -q --accept sentinel
	[[ $status == 0 && $output != *Sentinel* ]]
	sentinel_has_certificate 2 "$CERTS/elsewhere"
	takes_none 77 "rediss\\+sentinel://.*/main: no majority of its Sentinels names a master: .*$(sentinel_host 1):26380: its certificate is refused: .*"
}

@test "holding: a new master without a certificate for its name is not believed, and COMMAND stopped in time" {
	local killed
	speak_tls names
	sentinels_start 1
	sentinels_hurry
	start 0 -t 9s --server-timeout 1s
	caught_up 1 0
	has_certificate 1 "$CERTS/elsewhere"
	killed=$NOW
	fail 0 1
	finish run
	expect 76 '' "redlock: $KEY: lock lost: .*certificate.*"
	is_still "$TMP/stamps"
	(($(last_beat "$TMP/stamps") - killed < 9000))
	[[ $(rcli 1 CLIENT LIST) != *redlock* ]]
}

@test "a command goes on while the Sentinels make a replica the master, over TLS" {
	speak_tls names
	sentinels_start 1
	sentinels_hurry
	start 0 -t 15s --server-timeout 2s
	caught_up 1 0
	fail 0 1
	goes_on 1
}

# ---------------------------------------------------------------- passwords of Sentinels

# asked SEED TEXT: what it was asked contains that.
asked() {
	grep -qF "$2" "$SEEDS/$1.log"
}

# told STATUS OPTION...: redlock, with these, ends so; then $SEEDS/0.log is what the Sentinel was asked, and 1.log what
# the master was.
told() {
	local want=$1 i
	shift
	for i in 0 1; do : >"$SEEDS/$i.log"; done
	redlock run -n "$@" "$KEY" true
	[[ $status == "$want" ]]
}

@test "a password of the Sentinels' is for them, and the server's for the server, wherever each is from" {
	local at file=$TMP/lock.conf
	seeds_start 2
	seed_says 0 SENTINEL "$(place 127.0.0.1 "$(<"$SEEDS/1.port")")"
	seed_says 1 EVAL '-LOADING\r\n'
	at=$(seed_address 0)
	own() {
		asked 0 "$1" && ! asked 0 sesame && asked 1 'AUTH sesame' && ! asked 1 hunter2
	}
	told 69 -S "redis+sentinel://:sesame@$at/main?sentinel=:hunter2"
	own 'AUTH hunter2'
	told 69 -S "redis+sentinel://:sesame@$at/main?sentinel=ann:hunter2"
	own 'AUTH ann hunter2'
	REDLOCK_PASSWORD=sesame REDLOCK_SENTINEL_PASSWORD=hunter2 told 69 -S "redis+sentinel://$at/main?sentinel=ann"
	own 'AUTH ann hunter2'
	echo hunter2 >"$TMP/secret"
	REDLOCK_PASSWORD=sesame REDLOCK_SENTINEL_PASSWORD_FILE=$TMP/secret told 69 -S "redis+sentinel://bob@$at/main"
	asked 0 'AUTH hunter2' && asked 1 'AUTH bob sesame'
	printf 'server = redis+sentinel://%s/main\npassword = sesame\nsentinel-password = hunter2\n' "$at" >"$file"
	chmod 600 "$file"
	(unset REDLOCK_SERVERS && told 69 --config "$file")
	own 'AUTH hunter2'
	printf '[a]\nserver = redis+sentinel://%s/main\npassword = sesame\nsentinel-password-file = %s\n' "$at" "$TMP/secret" >"$file"
	told 69 --config "$file" --set a
	own 'AUTH hunter2'
	# the URL's own one comes first
	REDLOCK_SENTINEL_PASSWORD=other told 69 -S "redis+sentinel://:sesame@$at/main?sentinel=:hunter2"
	own 'AUTH hunter2'
	# without one they are offered the server's
	told 69 -S "redis+sentinel://:sesame@$at/main"
	asked 0 'AUTH sesame'
}

@test "a password of Sentinels is for nobody but those that are named beside it" {
	local at file=$TMP/lock.conf
	seeds_start 2
	seed_says 0 SENTINEL "$(place 127.0.0.1 "$(<"$SEEDS/1.port")")"
	seed_says 1 EVAL '-LOADING\r\n'
	at=$(seed_address 0)
	printf 'server = redis+sentinel://%s/main\n[a]\nserver = redis+sentinel://%s/main\nsentinel-password = hunter2\n' \
		"$at" "$at" >"$file"
	chmod 600 "$file"
	(unset REDLOCK_SERVERS && REDLOCK_SENTINEL_PASSWORD=sesame told 69 --config "$file")
	REDLOCK_SENTINEL_PASSWORD=sesame told 69 --config "$file" --set a
	run ! asked 0 sesame
	asked 0 hunter2
	told 69 --config "$file" -S "redis+sentinel://$at/main"
	run -1 grep AUTH "$SEEDS/0.log" "$SEEDS/1.log"
	# servers are none
	REDLOCK_SENTINEL_PASSWORD=sesame told 69 -S "redis://$(seed_address 1)"
	run -1 grep AUTH "$SEEDS/1.log"
	# nor is it sent unencrypted where REDLOCK_SERVERS is all encrypted
	export REDLOCK_SENTINEL_PASSWORD=sesame REDLOCK_SERVERS=rediss+sentinel://h/main
	told 69 -S "redis+sentinel://$at/main"
	run -1 grep AUTH "$SEEDS/0.log" "$SEEDS/1.log"
	redlock run -n -S "redis+sentinel://$at/main?sentinel=ann" "$KEY" true
	expect 78 '' 'redlock: .*: a user without a password: the password of the environment was not used: .*'
	# but a file's is
	told 69 --config "$file" --set a
	asked 0 'AUTH hunter2'
}

@test "real Sentinels with a password of their own, over TLS: 77 without it, and it is said what to set" {
	local i url
	speak_tls names
	sentinels_start 0
	rcli 0 CONFIG SET requirepass sesame
	export REDISCLI_AUTH=sesame REDLOCK_PASSWORD=sesame
	for i in 0 1 2; do
		(unset REDISCLI_AUTH && sentinels rcli "$i" ACL SETUSER default resetpass '>hunter2')
		(unset REDISCLI_AUTH && sentinels rcli "$i" -a hunter2 --no-auth-warning ACL SETUSER ann on '>hunter3' '+@all')
	done
	takes_none 77 "rediss\\+sentinel://.*/main: .*WRONGPASS.*: set REDLOCK_SENTINEL_PASSWORD"
	REDLOCK_SENTINEL_PASSWORD=sesame takes_none 77 "rediss\\+sentinel://.*/main: .*WRONGPASS.*: see the Sentinels. ACL, and REDLOCK_SENTINEL_PASSWORD"
	echo wrong >"$TMP/wrong"
	for i in "sentinel-password = wrong" "sentinel-password-file = $TMP/wrong"; do
		printf '[a]\nserver = %s\npassword = sesame\n%s\n' "$(sentinel_url /main)" "$i" >"$TMP/redlock.conf"
		chmod 600 "$TMP/redlock.conf"
		takes_none 77 "rediss\\+sentinel://.*WRONGPASS.*: see the Sentinels. ACL, and the (sentinel-password in $TMP/redlock.conf \\[a]|password in $TMP/wrong)" \
			--config "$TMP/redlock.conf" --set a
	done
	takes_none 77 "rediss\\+sentinel://.*WRONGPASS.*: see the Sentinels. ACL, and the login after 'sentinel=' in their URL" \
		-S "$(sentinel_url '/main?sentinel=ann:hunter2')"
	REDLOCK_SENTINEL_PASSWORD=hunter2 locks 0
	locks 0 -S "$(sentinel_url '/main?sentinel=ann:hunter3')"
	locks 0 -S "$(sentinel_url '/main?db=0&sentinel=:hunter2')"
	run -1 grep -rE 'hunter|sesame' "$TMP/redlock.err" "$PLACES"
	redlock run -n -S "$(sentinel_url '/main?sentinel=ann')" "$KEY" true
	expect 78 '' "redlock: server 'rediss\\+sentinel://.*/main': a user without a password: set REDLOCK_SENTINEL_PASSWORD .*"
	redlock doctor -S "$(sentinel_url '/main?sentinel=:hunter2')"
	[[ $status == 0 ]]
}

# native: what ps shows are valgrind's arguments
# bats test_tags=native
@test "the example of redlock.conf(5) names a master and Sentinels by TLS, each with a password of its own" {
	local i
	speak_tls names
	sentinels_start 0
	rcli 0 ACL SETUSER redlock on '>sesame' '~*' '&*' +@all
	rcli 0 CONFIG SET requirepass other
	for i in 0 1 2; do sentinels rcli "$i" ACL SETUSER default resetpass '>hunter2'; done
	echo sesame >"$TMP/password"
	echo hunter2 >"$TMP/sentinel-password"
	conf_example "s|@s1.*/main|@$(sentinel_url | sed 's|.*//||')|; s|/etc/redlock/ca\.pem|$CERTS/ca.pem|; s|/etc/redlock/|$TMP/|"
	unset REDLOCK_CACERT
	export REDISCLI_AUTH=other
	locks 0 --config "$TMP/redlock.conf" --set bank
}

@test "no password of Sentinels shows in what ps tells, nor in a label" {
	local url='redis+sentinel://127.0.0.1:1/main?sentinel=bob:hunter2'
	spawn waiter "$REDLOCK" run -w 60s -S "$url" --server="${url/main/other}&db=3" "$KEY" true "$url"
	wait_until '[[ -s $TMP/waiter.err ]]'
	# (COMMAND is its own business)
	[[ $(tr '\0' '\n' <"/proc/$(pid waiter)/cmdline" | grep -c hunter2) -le 1 ]]
	run -1 grep hunter2 "$TMP/waiter.err"
	kill -TERM "$(pid waiter)"
	finish waiter
}

# ---------------------------------------------------------------- wrong URLs

@test "what is no such URL is refused, two that are one server are 78, and no secret is told" {
	local url
	for url in rediss+sentinel://h rediss+cluster://h/1 rediss+cluster://h?db=1 'rediss+sentinel://h/m?db=x' \
		'rediss+sentinel://h/m/1?db=1' 'redis+sentinel://h/m?sentinel=' 'redis+sentinel://h/m?sentinel=:hunter2@x' \
		'redis+sentinel://h/m?sentinel_password=hunter2' 'redis+cluster://h?sentinel=:hunter2' rediss+unix:///s; do
		refuses 64 'server .*redis|a URL is' run -S "$url" "$KEY" true
		run -1 grep hunter "$TMP/refused.err"
	done
	no_row_failed
	refuses 78 'are the same server' run -S redis+sentinel://a,b/m -S rediss+sentinel://b,c/m "$KEY" true
	refuses 78 'are the same server' run -S rediss+cluster://a,b -S redis+cluster://B,c "$KEY" true
	no_row_failed
	speak_tls names
	sentinels_start 0
	leaves_none 78 '.*are the same server.*' --quarantine 0 -S "rediss://$(name 0):6380" -S "$(sentinel_url)"
}
