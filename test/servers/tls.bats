#!/usr/bin/env bats
# TLS: rediss:// servers, whom they have to prove to be, and what becomes of a lock when they
# cannot, do not, or stop to.
# bats file_tags=long

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2054,SC2154 # text for inner shells; tests are subshells; cli.bash uses it; one word with commas; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/tls

# The certificates are in $CERTS: NAME.pem and NAME.key, by the authority ca.pem unless said
# otherwise.
setup_file() {
	export CERTS=$BATS_FILE_TMPDIR/certs
	mkdir "$CERTS"
	authority ca
	authority other
	certificate right ca DNS:localhost,IP:127.0.0.1,IP:::1
	certificate by-name ca DNS:localhost
	certificate by-address ca IP:127.0.0.1
	certificate elsewhere ca DNS:redis.example,DNS:*.wild.example
	certificate untrusted other DNS:localhost,IP:127.0.0.1
	certificate expired ca DNS:localhost,IP:127.0.0.1 20200101000000Z 20210101000000Z
	certificate future ca DNS:localhost,IP:127.0.0.1 20900101000000Z 20910101000000Z
	certificate client ca DNS:client
	certificate bad-client other DNS:client
	certificate old-client ca DNS:client 20200101000000Z 20210101000000Z
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$CERTS/selfmade.key" \
		-out "$CERTS/selfmade.pem" -subj /CN=localhost -days 30 2>/dev/null
	openssl ec -in "$CERTS/client.key" -aes128 -passout pass:sesame -out "$CERTS/locked.key" 2>/dev/null
	openssl genrsa -out "$CERTS/rsa.key" 2048 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$CERTS/nameless.key" -subj /CN=localhost 2>/dev/null |
		openssl x509 -req -CA "$CERTS/ca.pem" -CAkey "$CERTS/ca.key" -days 30 -out "$CERTS/nameless.pem" 2>/dev/null
	certificate revoked ca DNS:localhost
	revocations ca ca revoked
	revocations other other
	revocations over ca - -crl_lastupdate 20200101000000Z -crl_nextupdate 20210101000000Z
}

# revocations NAME AUTHORITY [CERTIFICATE|- [OPTION...]]: $CERTS/NAME.crl, where that is revoked.
revocations() {
	local home=$CERTS/$1.crl.d by=(-cert "$CERTS/$2.pem" -keyfile "$CERTS/$2.key")
	mkdir "$home"
	: >"$home/index"
	printf '[ca]\ndefault_ca = here\n[here]\ndatabase = %s\ndefault_md = sha256\n' "$home/index" >"$home/conf"
	[[ ${3--} == - ]] || openssl ca -config "$home/conf" "${by[@]}" -revoke "$CERTS/$3.pem" 2>/dev/null
	openssl ca -config "$home/conf" "${by[@]}" -gencrl -crldays 30 "${@:4}" -out "$CERTS/$1.crl" 2>/dev/null
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	CA=(--cacert "$CERTS/ca.pem")
	# a handshake takes seconds under valgrind, or while the machine does much else
	export REDLOCK_SERVER_TIMEOUT=9s
	unset REDLOCK_SERVERS REDLOCK_TOKEN REDLOCK_CACERT REDLOCK_CRL REDLOCK_CERT REDLOCK_KEY_FILE REDLOCK_SNI
}

# tls_servers COUNT [CERTIFICATE [NAME VALUE...]]: a set of the test's own that speaks TLS (and
# answers rcli), certified as "right" or so, with more settings of Redis's.
tls_servers() {
	local i count=$1
	servers_start "$count" || return
	for ((i = 0; i < count; i++)); do tls_listen "$i" "${@:2}" || return; done
	REDLOCK_SERVERS=$(server_urls)
}

# tls_listen I [CERTIFICATE [NAME VALUE...]]: on the port that it had, or on a new one.
tls_listen() {
	local home=$SERVERS/$1 certificate=$CERTS/${2-right} port tries more=(tls-auth-clients no)
	[[ ! ${3-} ]] || more=("${@:3}")
	for tries in {1..50}; do
		port=$(cat "$home/tls" 2>/dev/null) || port=$((10000 + RANDOM % 20000))
		[[ $(rcli "$1" CONFIG SET tls-port "$port" tls-cert-file "$certificate.pem" tls-key-file "$certificate.key" \
			tls-ca-cert-file "$CERTS/ca.pem" "${more[@]}") == OK ]] && break
	done
	((tries < 50)) || return
	echo "$port" >"$home/tls"
	echo "rediss://localhost:$port" >"$home/url"
}

# url I HOST: the server by another name.
url() {
	echo "rediss://$2:$(<"$SERVERS/$1/tls")"
}

# tunnel [CERTIFICATE]: stunnel in front of server 0, which has a TCP port; on the same port as
# before. $TUNNEL_URL is its address. tunnel_signal SIGNAL: to it.
tunnel() {
	local certificate=$CERTS/${1-right} tries
	if [[ ! ${TUNNEL-} ]]; then
		set_new
		TUNNEL=$SET
	fi
	for tries in {1..50}; do
		[[ -s $TUNNEL/port ]] || echo $((10000 + RANDOM % 20000)) >"$TUNNEL/port"
		cat >"$TUNNEL/conf" <<-end
			foreground = yes
			pid =
			syslog = no
			[redis]
			accept = 127.0.0.1:$(<"$TUNNEL/port")
			connect = 127.0.0.1:$(<"$SERVERS/0/port")
			cert = $certificate.pem
			key = $certificate.key
		end
		: >"$TUNNEL/log"
		"$TOOLS/start" -k stunnel "$TUNNEL/conf" </dev/null >"$TUNNEL/log" 2>&1 3>&- 4>&- &
		TUNNEL_PID=$!
		disown $!
		TUNNEL_URL=rediss://127.0.0.1:$(<"$TUNNEL/port")
		wait_until "! is_alive $TUNNEL_PID || grep -q 'Configuration successful' $TUNNEL/log && listens_on $(<"$TUNNEL/port")"
		is_alive "$TUNNEL_PID" && return
		rm "$TUNNEL/port"
	done
	return 1
}

tunnel_kill() {
	kill -KILL "$TUNNEL_PID"
	wait_until "! is_alive $TUNNEL_PID"
}

each_command=('run KEY touch RAN' 'acquire KEY' 'release KEY token' 'extend KEY token' 'status KEY' list 'wait KEY'
	'break -y KEY')

# refused STATUS PATTERN [OPTION...]: each command ends so, and says it once.
refused_by_each() {
	local command words code=$1 pattern=$2
	shift 2
	for command in "${each_command[@]}"; do
		read -ra words <<<"$command"
		words=("${words[@]/#KEY/$KEY}")
		words=("${words[@]/#RAN/$TMP/ran}")
		redlock "${words[0]}" "$@" "${words[@]:1}"
		[[ $status == "$code" && $stderr =~ $pattern ]] || {
			echo "$command: $status: $stderr" >&2
			return 1
		}
	done
	[[ ! -e $TMP/ran ]]
}

# locks [OPTION...]: redlock takes and releases KEY with these.
locks() {
	redlock run -n "$@" "$KEY" "$TOOLS/ask" "$SERVERS/0/redis.sock" EXISTS "$KEY"
	expect 0 1
	key_free 0
}

# ---------------------------------------------------------------- locks over TLS

@test "every command works over TLS" {
	tls_servers 1
	redlock run "${CA[@]}" "$KEY" sh -c 'echo "$REDLOCK_KEY"'
	expect 0 "$KEY"
	key_free 0
	redlock acquire "${CA[@]}" "$KEY"
	expect 0 '[0-9a-f]{32}'
	local token=$output
	redlock acquire -n "${CA[@]}" "$KEY"
	expect 75 '' "redlock: $KEY: held by .*"
	redlock extend -t 45s "${CA[@]}" "$KEY" "$token"
	expect 0
	(($(rcli 0 PTTL "$KEY") > 31000))
	redlock status "${CA[@]}" "$KEY"
	[[ $status == 0 && $output == *"server  $(server_url 0)  held"* ]]
	redlock list "${CA[@]}"
	[[ $status == 0 && $output == "$KEY: exclusive, held by "* ]]
	redlock wait -w 10ms "${CA[@]}" "$KEY"
	expect 75 '' '.*'
	redlock release "${CA[@]}" "$KEY" "$token"
	expect 0
	redlock wait "${CA[@]}" "$KEY"
	expect 0
	redlock acquire "${CA[@]}" "$KEY"
	redlock break -y "${CA[@]}" "$KEY"
	[[ $status == 0 ]]
	key_free 0
}

@test "login and database work over TLS" {
	tls_servers 1
	rcli 0 ACL SETUSER bob on '>p@ss:w/rd' '~*' '&*' +@all
	rcli 0 ACL SETUSER default resetpass '>sesame'
	local address
	address=$(url 0 localhost)
	address=${address#rediss://}
	unset REDLOCK_SERVERS
	redlock acquire "${CA[@]}" -S "rediss://bob:p%40ss%3aw%2frd@$address/3" "$KEY"
	expect 0 '[0-9a-f]{32}'
	redlock release "${CA[@]}" -S "rediss://:sesame@$address/3" "$KEY" "$output"
	expect 0
	redlock run "${CA[@]}" -S "rediss://:hunter2@$address" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: rediss://$address: .*WRONGPASS.*ACL.*"
	[[ $stderr != *hunter2* && ! -e $TMP/ran ]]
	REDLOCK_PASSWORD=sesame redlock run "${CA[@]}" -S "rediss://$address" "$KEY" true
	expect 0
}

@test "a password beside rediss:// is not sent to a redis:// of the command line" {
	servers_start_tcp 1
	tls_listen 0
	rcli 0 CONFIG SET requirepass sesame
	local secure plain
	secure=$(server_url 0)
	plain=redis://127.0.0.1:$(<"$SERVERS/0/port")
	export REDLOCK_PASSWORD=sesame REDLOCK_SERVERS=$secure
	redlock run "${CA[@]}" "$KEY" true
	expect 0
	redlock run -S "$plain" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: $plain: .*NOAUTH.*: the password of the environment was not used: REDLOCK_SERVERS names rediss:// only, .*"
	[[ ! -e $TMP/ran ]]
	refuses 78 'a user without a password: the password of the environment was not used' acquire -S "${plain/:\/\//://bob@}" key
	redlock run "${CA[@]}" -S "$secure" "$KEY" true
	expect 0
	redlock run -S "unix://$SERVERS/0/redis.sock" "$KEY" true
	expect 0
	# both are named beside it
	REDLOCK_SERVERS+=,$plain
	redlock run -S "$plain" "$KEY" true
	expect 0
	unset REDLOCK_SERVERS
	redlock run -S "$plain" "$KEY" true
	expect 0
	no_row_failed
}

@test "COMMAND finds no socket and no file of TLS's" {
	tls_servers 1
	redlock run "${CA[@]}" "$KEY" sh -c 'ls -l /proc/self/fd | grep -E "socket|[.]pem"; echo seen'
	expect 0 seen
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "one server's refused certificate does not spoil what another is just saying" {
	tls_servers 3
	tls_listen 1 expired
	peer drip 1 "$(<"$SERVERS/0/tls")"
	touch "$PEERS/quick"
	spawn holder "$REDLOCK" run -v --quarantine 0 -t 36s --server-timeout 12s "${CA[@]}" -S "$PEER_URL,$(server_urls 1 2)" "$KEY" \
		"$STAMP" -u "$TMP/end" "$TMP"
	wait_until 'stamped "$TMP"'
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 1 && $(rcli 2 EXISTS "$KEY") == 1 ]]'
	rm "$PEERS/quick"
	renewals 2
	touch "$PEERS/quick" "$TMP/end"
	finish holder
	[[ $status == 0 && $stderr == *'certificate has expired'* && $stderr != *"$PEER_URL: "*TLS* ]]
	# all of it on one connection
	wait_until '(($(wc -l <"$PEERS/log") > 0))'
	[[ $(wc -l <"$PEERS/log") == 1 ]]
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a lock is renewed over TLS for as long as COMMAND runs" {
	tls_servers 1
	spawn holder "$REDLOCK" run -t 6s --server-timeout 900ms "${CA[@]}" "$KEY" "$STAMP" -u "$TMP/end" "$TMP"
	wait_until 'stamped "$TMP"'
	renewals 3
	touch "$TMP/end"
	finish holder
	expect 0
	key_free 0
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "who waits over TLS stands in line, and is woken by a message" {
	tls_servers 1
	export REDLOCK_CACERT=$CERTS/ca.pem
	take
	line_up one
	line_up two
	wait_until 'listening 2'
	local before after
	before=$(scripts_run 0)
	give_back
	all_end_well one two
	ran one two
	after=$(scripts_run 0)
	((after - before < 12))
	wait_until no_trace
}

@test "60 locks of run over TLS: each is released, none left to its lease" {
	tls_servers 1
	local n
	for n in {1..60}; do
		redlock run -n -t 60s "${CA[@]}" "$KEY-$n" true
		[[ $status == 0 && $stderr == '' ]]
		[[ $(rcli 0 EXISTS "$KEY-$n") == 0 ]]
	done
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "60 attempts over TLS that fail: what servers had granted is taken back" {
	tls_servers 3
	local n i
	for n in {1..60}; do
		# it is another's on two of the three
		for i in 0 1; do rcli "$i" SET "$KEY-$n" somebody PX 600000; done
		redlock acquire -n --quarantine 0 -t 60s "${CA[@]}" "$KEY-$n"
		[[ $status == 75 ]]
		wait_until "[[ \$(rcli 2 EXISTS '$KEY-$n') == 0 ]]"
	done
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "60 releases over TLS: done on all servers when redlock is gone, or at once behind it" {
	tls_servers 3
	local n token left=0
	for n in {1..60}; do
		token=$("$REDLOCK" acquire --quarantine 0 -t 60s "${CA[@]}" "$KEY-$n")
		redlock release "${CA[@]}" "$KEY-$n" "$token"
		expect 0
		wait_until "[[ \$(servers_with 0 EXISTS '$KEY-$n') == 3 ]]" 10 || ((++left <= 3)) # one that takes 100 ms longer than the others
	done
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a server that stops before the release executes it when it goes on" {
	tls_servers 1
	spawn holder "$REDLOCK" run -t 60s --server-timeout 300ms "${CA[@]}" "$KEY" "$STAMP" -u "$TMP/end" "$TMP"
	wait_until 'stamped "$TMP"'
	server_stop 0
	touch "$TMP/end"
	finish holder
	expect 0 '' "redlock: $KEY: not released; the lease ends by itself in .*"
	server_continue 0
	wait_until 'key_free 0'
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "three servers over TLS: one that is dead, and then stopped ones, are not felt" {
	tls_servers 3
	server_kill 2
	redlock run --quarantine 0 "${CA[@]}" "$KEY" true
	expect 0
	server_stop 1
	redlock run --quarantine 0 --server-timeout 3s "${CA[@]}" "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: no quorum: 2 of 3 .*$(url 1 localhost): no TLS handshake.*; $(url 2 localhost): Connection refused: is it up, and is -S right\?"
	[[ ! -e $TMP/ran ]]
	server_continue 1
	wait_until '[[ $(rcli 0 EXISTS "$KEY") == 0 ]]'
}

@test "redis:// and rediss:// servers make one quorum" {
	tls_servers 3
	redlock acquire --quarantine 0 "${CA[@]}" -S "$(url 0 localhost)" -S "$(url 1 127.0.0.1),unix://$SERVERS/2/redis.sock" "$KEY"
	expect 0 '[0-9a-f]{32}'
	wait_until "[[ \$(servers_with $output GET $KEY) == 3 ]]"
}

@test "a server by both its names, with TLS and without, is one" {
	tls_servers 1
	redlock run --quarantine 0 "${CA[@]}" -S "$(server_url 0),unix://$SERVERS/0/redis.sock" "$KEY" true
	expect 78 '' "redlock: $KEY: .* are the same server.*"
}

@test "answers of many records are read whole" {
	tls_servers 1
	"$TOOLS/ask" "$SERVERS/0/redis.sock" EVAL "for n = 1, 3000 do local name = '$KEY-' .. string.rep('x', 180) .. n
		redis.call('set', name, 'somebody', 'PX', 600000)
		redis.call('hset', '{' .. name .. '}:redlock', 'fence', '1', 'owner', 'x') end return 1" 0
	redlock list -S "unix://$SERVERS/0/redis.sock"
	[[ $status == 0 ]]
	grep -o "^$KEY-x*[0-9]*" <<<"$output" | sort >"$TMP/plain"
	[[ $(wc -l <"$TMP/plain") == 3000 ]]
	redlock list "${CA[@]}"
	[[ $status == 0 && $stderr == '' ]]
	grep -o "^$KEY-x*[0-9]*" <<<"$output" | sort >"$TMP/secured"
	cmp "$TMP/plain" "$TMP/secured"
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a socket that gives or takes a part only, or nothing yet, is gone on with" {
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer's runtime has to come first"
	tls_servers 1
	local call n how
	for call in send:5 recv:20; do
		for ((n = 1; n <= ${call#*:}; n++)); do
			for how in short 11; do
				: >"$TMP/report"
				LD_PRELOAD=$TOOLS/inject.so INJECT=0:${call%:*}:$n:$how INJECT_REPORT=$TMP/report \
					"$REDLOCK" run -n "${CA[@]}" "$KEY" true 2>"$TMP/err"
				[[ ! -s $TMP/err && $(rcli 0 EXISTS "$KEY") == 0 ]]
				[[ $(od -An -t d4 -j 8 -N 4 "$TMP/report") -eq 1 ]]
			done
		done
	done
}

@test "a KEY, a label and a record of many records go through" {
	tls_servers 1
	local label
	label=$(repeat x 100000)
	redlock acquire "${CA[@]}" --label "$label" "$(repeat k 4096)"
	expect 0 '[0-9a-f]{32}'
	[[ $(rcli 0 GET "$(repeat k 4096)") == "$output" ]]
}

# ---------------------------------------------------------------- whom a server proves to be

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a name is in the certificate, or an address is" {
	tls_servers 1 by-name
	locks "${CA[@]}"
	redlock run "${CA[@]}" -S "$(url 0 127.0.0.1)" "$KEY" true
	expect 77 '' "redlock: $KEY: $(url 0 127.0.0.1): its certificate is refused: IP address mismatch"
	tls_listen 0 by-address
	redlock run "${CA[@]}" -S "$(url 0 localhost)" "$KEY" true
	expect 77 '' "redlock: $KEY: $(url 0 localhost): its certificate is refused: hostname mismatch"
	locks "${CA[@]}" -S "$(url 0 127.0.0.1)"
	tls_listen 0 right
	locks "${CA[@]}" -S "$(url 0 localhost)"
	locks "${CA[@]}" --sni localhost.
	if [[ -e /proc/net/if_inet6 && $(</proc/net/if_inet6) == *0000000000000001*lo* ]]; then
		locks "${CA[@]}" -S "$(url 0 '[::1]')"
	fi
}

@test "a certificate that is expired, not valid yet, another's, or by nobody known is 77, said why" {
	tls_servers 1 expired
	local why
	while read -r certificate why; do
		tls_listen 0 "$certificate"
		refused_by_each 77 "$(server_url 0): its certificate is refused: $why" "${CA[@]}"
		redlock run "${CA[@]}" "$KEY" touch "$TMP/ran"
		expect 77 '' "redlock: $KEY: $(server_url 0): its certificate is refused: $why.*"
	done <<-end
		expired certificate has expired
		future certificate is not yet valid
		elsewhere hostname mismatch
		untrusted unable to get local issuer certificate
		selfmade self-signed certificate
	end
	tls_listen 0 right
	# the system does not know it
	refused_by_each 77 "$(server_url 0): its certificate is refused: (self-signed certificate in|unable to get local issuer)"
	[[ ! -e $TMP/ran && $(rcli 0 DBSIZE) == 0 ]]
}

@test "a refused certificate is final: nobody waits for a better one" {
	tls_servers 1 expired
	redlock run -w 10m "${CA[@]}" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: .* certificate has expired.*"
	tls_servers 3 expired
	tls_listen 0 right
	redlock run -w 10m --quarantine 0 "${CA[@]}" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: no quorum: 2 of 3 .* certificate has expired.*"
	[[ ! -e $TMP/ran ]]
}

@test "one certificate of three that is refused is no matter" {
	tls_servers 3
	tls_listen 1 expired
	redlock run --quarantine 0 "${CA[@]}" "$KEY" echo ran
	expect 0 ran
	redlock status "${CA[@]}" "$KEY"
	[[ $status == 0 && $output == *"$(server_url 1)  its certificate is refused: certificate has expired"* ]]
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "--insecure talks to all of them" {
	tls_servers 1
	local certificate
	for certificate in expired future elsewhere untrusted selfmade right; do
		tls_listen 0 "$certificate"
		locks --insecure
	done
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a common name is no name: a certificate without subjectAltNames is 77" {
	tls_servers 1 nameless
	redlock run "${CA[@]}" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: rediss://localhost:.*: its certificate is refused: hostname mismatch"
	redlock run "${CA[@]}" --sni localhost "$KEY" touch "$TMP/ran"
	expect 77 '' '.*hostname mismatch'
	[[ ! -e $TMP/ran ]]
	redlock run --insecure "$KEY" true
	expect 0
}

@test "--crl refuses a certificate that is revoked, and one of which that is not known" {
	tls_servers 2
	tls_listen 1 revoked
	local good revoked list
	good=$(url 0 localhost)
	revoked=$(url 1 localhost)
	export REDLOCK_SERVERS=$revoked
	redlock run "${CA[@]}" "$KEY" true
	expect 0
	redlock run "${CA[@]}" --crl "$CERTS/ca.crl" "$KEY" touch "$TMP/ran"
	expect 77 '' "redlock: $KEY: rediss://localhost:.*: its certificate is refused: certificate revoked"
	REDLOCK_CRL=$CERTS/ca.crl redlock run "${CA[@]}" "$KEY" touch "$TMP/ran"
	expect 77 '' '.*certificate revoked'
	printf 'crl = %s\nserver = %s\n[mess]\nserver = %s\ninsecure = yes\n' "$CERTS/ca.crl" "$revoked" "$revoked" >"$TMP/redlock.conf"
	redlock run "${CA[@]}" --config "$TMP/redlock.conf" "$KEY" touch "$TMP/ran"
	expect 77 '' '.*certificate revoked'
	REDLOCK_CRL=$CERTS/ca.crl redlock run --config "$TMP/redlock.conf" --set mess "$KEY" true
	expect 0
	REDLOCK_CRL=$CERTS/ca.crl redlock run --insecure "$KEY" true
	expect 0
	export REDLOCK_SERVERS=$good
	locks "${CA[@]}" --crl "$CERTS/ca.crl"
	cat "$CERTS/other.crl" "$CERTS/ca.crl" >"$TMP/both.crl"
	locks "${CA[@]}" --crl "$TMP/both.crl"
	redlock run "${CA[@]}" --crl "$CERTS/other.crl" "$KEY" touch "$TMP/ran"
	expect 77 '' '.*unable to get certificate CRL'
	redlock run "${CA[@]}" --crl "$CERTS/over.crl" "$KEY" touch "$TMP/ran"
	expect 77 '' '.*CRL has expired'
	[[ ! -e $TMP/ran ]]
}

@test "--sni is the name that is asked for, and that the certificate must have" {
	tls_servers 1 elsewhere
	locks "${CA[@]}" --sni redis.example
	locks "${CA[@]}" --sni one.wild.example
	local name
	for name in other.example wild.example two.one.wild.example 127.0.0.1; do
		redlock run "${CA[@]}" --sni "$name" "$KEY" true
		expect 77 '' ".*: its certificate is refused: (hostname|IP address) mismatch"
	done
	peer says ''
	"$REDLOCK" run "${CA[@]}" --sni told.example -S "$PEER_URL" "$KEY" true || :
	only_hellos
	peer silent
	strace -qq -e trace=sendto -s 1000 -o "$TMP/trace" "$REDLOCK" status "${CA[@]}" --server-timeout 100ms --sni told.example \
		-S "$PEER_URL" "$KEY" || :
	grep -q 'told\.example' "$TMP/trace"
	# an address is no name: it is not asked for
	strace -qq -e trace=sendto -s 1000 -o "$TMP/trace" "$REDLOCK" status "${CA[@]}" --server-timeout 100ms -S "$PEER_URL" "$KEY" || :
	grep -q sendto "$TMP/trace" && [[ ! $(grep '127\.0\.0\.1' "$TMP/trace") ]]
}

@test "a name with a wildcard for a part of itself is not believed" {
	certificate partial ca 'DNS:re*.wild.example'
	tls_servers 1 partial
	redlock run "${CA[@]}" --sni redis.wild.example "$KEY" true
	expect 77 '' '.* hostname mismatch'
}

# ---------------------------------------------------------------- whom we prove to be

@test "a server that wants a certificate gets that of --cert; without, or with a wrong one, it is 77" {
	tls_servers 1 right tls-auth-clients yes
	local version n
	for version in TLSv1.3 TLSv1.2; do
		[[ $(rcli 0 CONFIG SET tls-protocols "$version") == OK ]]
		locks "${CA[@]}" --cert "$CERTS/client.pem" --key-file "$CERTS/client.key"
		for n in {1..15}; do
			redlock run -n "${CA[@]}" "$KEY" touch "$TMP/ran"
			expect 77 '' "redlock: $KEY: $(server_url 0): it requires a certificate: see --cert and --key-file"
			redlock run -n "${CA[@]}" --cert "$CERTS/bad-client.pem" --key-file "$CERTS/bad-client.key" "$KEY" touch "$TMP/ran"
			expect 77 '' "redlock: $KEY: $(server_url 0): it refuses our certificate: unknown ca"
		done
		refused_by_each 77 "$(server_url 0): it refuses our certificate: certificate expired" "${CA[@]}" \
			--cert "$CERTS/old-client.pem" --key-file "$CERTS/old-client.key"
		refused_by_each 77 "$(server_url 0): it requires a certificate" "${CA[@]}"
	done
	[[ ! -e $TMP/ran && $(rcli 0 KEYS '*' | sed 's/.*:redlock/:redlock/' | sort | tr '\n' ' ') == ":redlock :redlock:runs " ]] # left by `locks`
}

@test "files that cannot be used are a wrong configuration, said which and why, before any connection" {
	local nowhere=rediss://127.0.0.1:1 good=("$CERTS/client.pem" "$CERTS/client.key")
	mkdir "$TMP/directory"
	mkfifo "$TMP/fifo"
	: >"$TMP/empty"
	echo hello >"$TMP/garbage"
	export REDLOCK_SERVERS=$nowhere
	[[ ! $(command -v strace) ]] || ! strace -qq -o /dev/null true || TRACER=(strace -f -qq -o "$TMP/trace" -e trace=connect)
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	local what why
	while read -r what why; do
		what=${what/TMP/$TMP}
		refuses 78 "^redlock: cacert '$what': $why$" acquire --cacert "$what" key
		refuses 78 "^redlock: cert '$what': $why$" list --cert "$what" --key-file "${good[1]}"
		refuses 78 "^redlock: key-file '$what': $why$" run --cert "${good[0]}" --key-file "$what" key true
		REDLOCK_CACERT=$what refuses 78 "^redlock: cacert '$what': $why$" break -y key
		refuses 78 "^redlock: crl '$what': $why$" acquire --crl "$what" key
	done <<-end
		/nonexistent No such file or directory
		TMP/directory it is not a regular file
		TMP/fifo it is not a regular file
		/dev/zero it is not a regular file
		TMP/empty [a-z0-9 _:]+
		TMP/garbage [a-z0-9 _:]+
	end
	refuses 78 "^redlock: cacert '.*client.key': [a-z0-9 _:]+$" extend --cacert "${good[1]}" key token
	refuses 78 "^redlock: cert '.*client.key': [a-z0-9 _:]+$" extend --cert "${good[1]}" --key-file "${good[1]}" key token
	refuses 78 "^redlock: key-file '.*client.pem': [a-z0-9 _:]+$" wait --cert "${good[0]}" --key-file "${good[0]}" key
	refuses 78 "^redlock: key-file '.*right.key': key values mismatch$" status --cert "${good[0]}" --key-file "$CERTS/right.key" key
	refuses 78 "^redlock: key-file '.*rsa.key': [a-z0-9 _:]+$" status --cert "${good[0]}" --key-file "$CERTS/rsa.key" key
	refuses 78 "^redlock: key-file '.*locked.key': [a-z0-9 _:]+$" release --cert "${good[0]}" --key-file "$CERTS/locked.key" key token
	install -m 620 "${good[1]}" "$TMP/group.key"
	install -m 602 "${good[1]}" "$TMP/others.key"
	refuses 78 "^redlock: key-file '.*group.key': others may write it: chmod go-w$" status --cert "${good[0]}" --key-file "$TMP/group.key" key
	refuses 78 "^redlock: key-file '.*others.key': others may write it: chmod go-w$" status --cert "${good[0]}" --key-file "$TMP/others.key" key
	refuses 78 "^redlock: crl '.*ca.pem': [a-z0-9 _:]+$" acquire --crl "$CERTS/ca.pem" key
	refuses 78 "^redlock: cacert '/x{199}...': " acquire --cacert "/$(repeat x 4000)" key
	refuses 78 "^redlock: cacert '/\\\\e\[31m': No such file" acquire --cacert $'/\e[31m' key
	no_row_failed
	[[ ! ${TRACER[*]} || (-e $TMP/trace && ! $(grep -E 'AF_INET|\(127' "$TMP/trace")) ]]
}

# native: valgrind has a program of its own in place of this one
# bats test_tags=native
@test "a file that may not be read is a wrong configuration" {
	[[ $(id -u) == 0 ]] || skip "needs root to be somebody else"
	set_new
	chmod 755 "$SET"
	install -m 755 "$REDLOCK" "${REDLOCK%/*}/redlock-tls.so" -t "$SET"
	install -m 600 "$CERTS/ca.pem" "$SET/ca.pem"
	REDLOCK=$SET/redlock
	TRACER=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	refuses 78 "^redlock: cacert '$SET/ca.pem': Permission denied$" acquire -S rediss://127.0.0.1:1 --cacert "$SET/ca.pem" key
	no_row_failed
}

# ---------------------------------------------------------------- where it is said

@test "options of TLS are refused without a rediss:// server, without their other half, or against each other" {
	local option
	for option in "--cacert $CERTS/ca.pem" "--crl $CERTS/ca.crl" "--cert $CERTS/client.pem --key-file $CERTS/client.key" '--sni name' --insecure; do
		# shellcheck disable=SC2086 # words
		for command in "${each_command[@]}"; do
			read -ra words <<<"$command"
			refuses 64 "^redlock: ${option%% *} is for rediss:// servers, but there is none$" "${words[0]}" -S "$NOWHERE" $option \
				"${words[@]:1}"
		done
		# shellcheck disable=SC2086 # words
		refuses 64 "is for rediss:// servers" acquire $option key
	done
	refuses 64 '^redlock: --cert and --key-file must be given together$' acquire -S rediss://h --cert a key
	refuses 64 '^redlock: --cert and --key-file must be given together$' acquire -S rediss://h --key-file a key
	refuses 64 '^redlock: acquire: --cacert cannot be used with --insecure: see redlock acquire --help$' acquire -S rediss://h --insecure --cacert a key
	for option in '' . .example.com % '*.example.com' 'a b' "$(repeat a 254)"; do
		refuses 64 "^redlock: acquire: --sni '.*' is not the name or the address of a host$" acquire -S rediss://h --sni "$option" key
	done
	refuses 64 '^redlock: acquire: --crl cannot be used with --insecure: see redlock acquire --help$' acquire -S rediss://h --insecure --crl a key
	for option in cacert crl cert key-file sni; do
		[[ $option == sni ]] || refuses 64 "^redlock: acquire: --$option '' is not valid: it is empty$" acquire -S rediss://h "--$option=" key
		refuses 64 "--$option needs a value" acquire --"$option"
		refuses 64 "--$option is given twice" acquire -S rediss://h "--$option" a "--$option" b key
	done
	refuses 64 '--insecure takes no value' acquire -S rediss://h --insecure=yes key
	no_row_failed
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "the environment and a file say it, too, for all servers or those of a set" {
	tls_servers 1 right tls-auth-clients yes
	local file=$TMP/redlock.conf
	REDLOCK_CACERT=$CERTS/ca.pem REDLOCK_CERT=$CERTS/client.pem REDLOCK_KEY_FILE=$CERTS/client.key locks
	printf '%s\n' "cacert = $CERTS/ca.pem" "cert = $CERTS/client.pem" "key-file = $CERTS/client.key" >"$file"
	locks --config "$file"
	# the command line over the environment over the file
	REDLOCK_CACERT=$CERTS/other.pem redlock run --config "$file" "$KEY" true
	expect 77 '' '.*its certificate is refused.*'
	REDLOCK_CACERT=$CERTS/other.pem locks --config "$file" "${CA[@]}"
	REDLOCK_CACERT='' REDLOCK_SNI='' locks --config "$file"
	REDLOCK_SNI=redis.example redlock run --config "$file" "$KEY" true
	expect 77 '' '.*hostname mismatch'
	REDLOCK_SNI=redis.example locks --config "$file" --sni localhost
	# what a set says goes over the environment, and --insecure over any cacert
	printf '%s\n' "cacert = $CERTS/other.pem" "cert = $CERTS/client.pem" "key-file = $CERTS/client.key" '[lab]' \
		"server = $REDLOCK_SERVERS" "cacert = $CERTS/ca.pem" '[mess]' "server = $REDLOCK_SERVERS" 'insecure = yes' >"$file"
	redlock run --config "$file" "$KEY" true
	expect 77 '' '.*its certificate is refused.*'
	REDLOCK_CACERT=$CERTS/other.pem locks --config "$file" --set lab
	REDLOCK_CACERT=$CERTS/other.pem locks --config "$file" --set mess
	REDLOCK_CACERT=$CERTS/other.pem locks --config "$file" --insecure
	redlock run --config "$file" --set mess "${CA[@]}" "$KEY" true
	expect 0
	# for other servers it means nothing
	printf '%s\n' "cacert = /nonexistent" "cert = /nonexistent" "key-file = /nonexistent" 'sni = name' >"$file"
	REDLOCK_CACERT=/nonexistent locks --config "$file" -S "unix://$SERVERS/0/redis.sock"
	printf '%s\n' "cert = /nonexistent" >"$file"
	redlock acquire --config "$file" "$KEY"
	expect 78 '' 'redlock: --cert and --key-file must be given together \(cert from .*:[0-9]+\)'
	printf '%s\n' 'insecure = yes' 'cacert = a' >"$file"
	redlock acquire --config "$file" "$KEY"
	expect 78 '' "redlock: $file:2: 'cacert' cannot be used with 'insecure'"
}

@test "a URL of rediss:// that is wrong is refused like any, without its secrets" {
	local url
	for url in rediss: rediss://h:0 rediss://h/x redisss://h rediss://bob:hunter2@ rediss://bob:hunter2@h:99999 \
		rediss://bob:hunter2@h/x rediss://hunter2%zz@h; do
		refuses 64 "^redlock: server 'rediss+:" acquire -S "$url" key
		grep -H hunter2 "$TMP/refused.err" >&2 && ((++failed_rows))
	done
	refuses 64 'rediss://host:port \(TLS\)' acquire -S http://h key
	no_row_failed
}

# ---------------------------------------------------------------- peers that are none

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a server without TLS is no answer, within the time of a round, and is said to be perhaps redis://" {
	servers_start_tcp 1
	local url
	url=rediss://127.0.0.1:$(<"$SERVERS/0/port")
	redlock run "${CA[@]}" --server-timeout 300ms -S "$url" "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $url: (no TLS handshake|it does not speak TLS) \(is it redis://\?\).*"
	refused_by_each 69 "$url: .*is it redis://" "${CA[@]}" --server-timeout 200ms -S "$url"
	peer silent
	redlock run "${CA[@]}" --server-timeout 300ms -S "$PEER_URL" "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $PEER_URL: no TLS handshake \(is it redis://\?\) within [23][0-9]{2}ms: is it up, and is -S right\?"
	[[ ! -e $TMP/ran ]]
}

# what a peer may say to a ClientHello: the hexadecimal bytes, and what redlock says
said=(
	"$(printf '%s' '-ERR unknown command' | od -An -v -t x1 | tr -d ' \n')0d0a it does not speak TLS"
	'485454502f312e31203430302042616420526571756573740d0a0d0a it does not speak TLS'
	'1b5b33316d1b5d303b701b5c07000a41414141414141414141414141 it does not speak TLS'
	'0000000000000000000000 it does not speak TLS'
	'16030100 TLS handshake: it hung up'
	'160303ffff0000 TLS: '
	'1603034000 TLS handshake: it hung up'
	'160303000402ffffff TLS: '
	'16030300040200000000 TLS'
	'150303000202ff it refuses TLS with us: '
	'15030300020246 it refuses TLS with us: protocol version'
	'15030300020228 it refuses TLS with us: handshake failure'
	'15030300020100 TLS'
	'150303000201 TLS'
	'170303000568656c6c6f TLS: '
	'140303000101140303000101140303000101 TLS'
	'80800103010057000000200000160000130000 it does not speak TLS'
)

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "whatever a peer says to a handshake, it is not believed, said in one clear line, and gets no byte more" {
	local row hex why 'then'
	for row in "${said[@]}"; do
		read -r hex why <<<"$row"
		for then in '' silent; do
			peer says "$hex" $then
			refuses 69 "^redlock: key: $PEER_URL: ($why|no TLS handshake)" run --server-timeout 900ms -S "${PEER_URL/:\/\//://:hunter2@}" \
				"${CA[@]}" key touch "$TMP/ran"
			only_hellos || ((++failed_rows))
		done
	done
	for row in 'hang up' reset; do
		# shellcheck disable=SC2086 # words
		peer $row
		refuses 69 "^redlock: key: $PEER_URL: TLS handshake: (it hung up|Connection reset by peer)" run -S "$PEER_URL" "${CA[@]}" key \
			touch "$TMP/ran"
		only_hellos || ((++failed_rows))
	done
	no_row_failed
	[[ ! -e $TMP/ran ]]
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "there is no falling back: whatever is asked, a peer without TLS gets a ClientHello and nothing else" {
	peer silent
	local command words url=${PEER_URL/:\/\//://bob:hunter2@}
	for command in "${each_command[@]}"; do
		read -ra words <<<"$command"
		redlock "${words[0]}" --insecure --server-timeout 800ms -S "$url" "${words[@]:1}"
		[[ $status == 69 && $stderr != *hunter2* ]]
	done
	redlock run -w 1s --insecure --server-timeout 800ms -S "$url" key true
	[[ $status == 69 ]]
	only_hellos 9
	[[ $(wc -l <"$PEERS/log") -ge 9 ]]
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a peer that never lets a handshake end keeps nobody longer than a round" {
	peer flood
	local start
	start=$NOW
	redlock run "${CA[@]}" --server-timeout 500ms -S "$PEER_URL" "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $PEER_URL: .*"
	((NOW - start < 10000))
	[[ ! -e $TMP/ran ]]
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a silent peer is waited for asleep" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	peer silent
	TRACER=(strace -f -qq -o "$TMP/trace" -e trace=poll,ppoll,recvfrom,sendto)
	refuses 69 'no TLS handshake' acquire --server-timeout 1s -S "$PEER_URL" "${CA[@]}" key
	no_row_failed
	(($(wc -l <"$TMP/trace") < 20))
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a handshake that comes byte by byte is done when it is in time, and not when it is not" {
	tls_servers 1
	peer drip 0 "$(<"$SERVERS/0/tls")"
	locks "${CA[@]}" --server-timeout 5s -S "$PEER_URL"
	peer drip 20 "$(<"$SERVERS/0/tls")"
	redlock run "${CA[@]}" --server-timeout 300ms -S "$PEER_URL" "$KEY" touch "$TMP/ran"
	expect 69 '' "redlock: $KEY: $PEER_URL: no TLS handshake .*within [23][0-9]{2}ms.*"
	[[ ! -e $TMP/ran ]]
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a connection that is cut or spoilt at any byte grants nothing" {
	tls_servers 1
	local at
	for at in 0 1 4 5 6 43 90 127 128 133 200 300 500 700 800 900 1000 1100; do
		peer cut "$at" "$(<"$SERVERS/0/tls")"
		redlock run -n "${CA[@]}" --server-timeout 2s -S "$PEER_URL" "$KEY" touch "$TMP/ran"
		[[ $status == 69 && ! -e $TMP/ran ]] || { echo "cut $at: $status $stderr" >&2 && false; }
		[[ $stderr == "redlock: $KEY: $PEER_URL: "* && $stderr != *$'\n'* ]]
		peer corrupt "$at" "$(<"$SERVERS/0/tls")"
		redlock run -n "${CA[@]}" --server-timeout 2s -S "$PEER_URL" "$KEY" touch "$TMP/ran"
		[[ $status == @(69|77) && ! -e $TMP/ran ]] || { echo "corrupt $at: $status $stderr" >&2 && false; }
		[[ $stderr == "redlock: $KEY: $PEER_URL: "* && $stderr != *$'\n'* ]]
	done
	wait_until 'key_free 0'
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "a server that speaks TLS and not Redis is said not to" {
	local hex why
	while read -r hex why; do
		peer redis "$CERTS/right.pem" "$CERTS/right.key" "$hex" silent
		refuses 69 "^redlock: key: $PEER_URL: $why" run --server-timeout 2s -S "$PEER_URL" "${CA[@]}" key touch "$TMP/ran"
	done <<-end
		485454502f312e31203430300d0a not what a Redis server says
		1b5b33316d0d0a not what a Redis server says
		70000*2b a reply too large
		2b4f4b0d0a2b4f no answer within
	end
	wait_until '[[ $(<"$PEERS/log") == goodbye ]]'
	peer redis "$CERTS/right.pem" "$CERTS/right.key" 2b4f
	refuses 69 "^redlock: key: $PEER_URL: it hung up in the middle of a reply" run --server-timeout 2s -S "$PEER_URL" "${CA[@]}" key true
	peer redis "$CERTS/right.pem" "$CERTS/right.key" ''
	refuses 69 "^redlock: key: $PEER_URL: it hung up" run --server-timeout 2s -S "$PEER_URL" "${CA[@]}" key true
	no_row_failed
	[[ ! -e $TMP/ran ]]
}

@test "TLS before 1.2 is not spoken" {
	set_new
	local conf port=$((10000 + RANDOM % 20000))
	while listens_on "$port"; do ((port++)); done
	"$TOOLS/start" -k openssl s_server -accept "127.0.0.1:$port" -cert "$CERTS/right.pem" -key "$CERTS/right.key" \
		-tls1_1 -cipher DEFAULT@SECLEVEL=0 -quiet <>"$NEVER" >/dev/null 2>&1 3>&- 4>&- &
	local server=$!
	wait_until "listens_on $port"
	# whatever the system thinks of it
	printf '%s\n' 'openssl_conf = all' '[all]' 'ssl_conf = ssl' '[ssl]' 'system_default = tls' '[tls]' 'MinProtocol = TLSv1' \
		'CipherString = DEFAULT@SECLEVEL=0' >"$TMP/openssl.cnf"
	for conf in /dev/null "$TMP/openssl.cnf"; do
		OPENSSL_CONF=$conf redlock run "${CA[@]}" -S "rediss://127.0.0.1:$port" "$KEY" true
		expect 69 '' "redlock: $KEY: rediss://127.0.0.1:$port: (TLS: unsupported protocol|it refuses TLS with us: protocol version).*"
	done
	OPENSSL_CONF=$TMP/openssl.cnf openssl s_client -connect "127.0.0.1:$port" </dev/null
	kill "$server"
}

# ---------------------------------------------------------------- what becomes of a lock

# hold_through: a holder of KEY, for as long as nothing happens to it, through the tunnel.
hold_through() {
	spawn holder "$REDLOCK" run -t 9s --server-timeout 2s "${CA[@]}" -S "$TUNNEL_URL" "$KEY" "$STAMP" -d 60000 "$TMP"
	wait_until 'stamped "$TMP"'
	renewals 1
}

# is_lost: its command was stopped before anybody else could have the lock.
is_lost() {
	finish holder
	expect 76 '' "redlock: $KEY: lock lost: .*"
	[[ ! $(is_beating "$TMP") ]]
	local last
	last=$(last_beat "$TMP")
	((last < $1 + 9000))
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "holding: a tunnel that is killed, or that stops, is treated as an unreachable server" {
	servers_start_tcp 1
	local way began
	for way in KILL STOP; do
		tunnel
		hold_through
		began=$NOW
		kill "-$way" "$TUNNEL_PID"
		is_lost "$began"
		tunnel_kill || :
		wait_until 'key_free 0'
		rm -f "$TMP"/beats.*
	done
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "holding: a tunnel that comes back in time is not felt" {
	servers_start_tcp 1
	tunnel
	spawn holder "$REDLOCK" run -t 20s --server-timeout 500ms "${CA[@]}" -S "$TUNNEL_URL" "$KEY" "$STAMP" -u "$TMP/end" "$TMP"
	wait_until 'stamped "$TMP"'
	tunnel_kill
	tunnel
	renewals 1
	touch "$TMP/end"
	finish holder
	expect 0
	wait_until 'key_free 0'
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "holding: a server that comes back with a wrong certificate is not believed" {
	servers_start_tcp 1
	local certificate began
	for certificate in expired untrusted elsewhere; do
		tunnel
		hold_through
		began=$NOW
		tunnel_kill
		tunnel "$certificate"
		is_lost "$began"
		tunnel_kill
		wait_until 'key_free 0'
		rm -f "$TMP"/beats.*
	done
}

# wait_through: somebody has KEY, and a waiter for it comes through the tunnel.
wait_through() {
	hold
	spawn waiter "$REDLOCK" run -t 20s --server-timeout 2s "${CA[@]}" -S "$TUNNEL_URL" "$KEY" echo ran
	wait_until 'queued 1' && wait_until 'listening 1'
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "waiting: a tunnel that is away, or that stops, is waited through" {
	servers_start_tcp 1
	local way
	for way in KILL STOP; do
		tunnel
		wait_through
		kill "-$way" "$TUNNEL_PID"
		wait_until '[[ $(<"$TMP/waiter.err") == *"still waiting"* ]]'
		if [[ $way == STOP ]]; then kill -CONT "$TUNNEL_PID"; else tunnel; fi
		wait_until '[[ $(rcli 0 DEL "$KEY") == 1 ]]'
		finish waiter
		[[ $status == 0 && $output == ran ]]
		tunnel_kill
	done
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "waiting: a server that comes back with a wrong certificate ends it, with 77" {
	servers_start_tcp 1
	local certificate
	for certificate in expired untrusted; do
		tunnel
		wait_through
		tunnel_kill
		tunnel "$certificate"
		finish waiter
		[[ $status == 77 && $output == '' && $stderr == *"$TUNNEL_URL: its certificate is refused: "* ]]
		tunnel_kill
		unhold
	done
}

# replace CA CERTIFICATE KEY: the files that a holder and a waiter were given, and all connections end.
replace() {
	local name
	for name in ca:"$1.pem" own:"$2.pem" key:"$3.key"; do
		cp "$CERTS/${name#*:}" "$TMP/new"
		mv "$TMP/new" "$TMP/${name%%:*}"
	done
	rcli 0 CLIENT KILL TYPE normal >/dev/null
	rcli 0 CLIENT KILL TYPE pubsub >/dev/null
}

# native: a handshake under valgrind takes longer than the times here
# bats test_tags=native
@test "files that were replaced count for the next connection, once all of them are good: a run and its waiter go on" {
	tls_servers 1 right tls-auth-clients yes
	replace ca client client
	local with=(-t $((9 * SLOW))s --server-timeout $((2 * SLOW))s --cacert "$TMP/ca" --cert "$TMP/own" --key-file "$TMP/key")
	spawn holder "$REDLOCK" run "${with[@]}" "$KEY" "$STAMP" -u "$TMP/end" "$TMP"
	wait_until 'stamped "$TMP"'
	spawn waiter "$REDLOCK" run "${with[@]}" "$KEY" echo ran
	wait_until 'queued 1' && wait_until 'listening 1'
	replace ca bad-client client # half of it: the certificate is not this key's
	renewals 1
	wait_until 'listening 1'
	[[ $(rcli 0 CONFIG SET tls-cert-file "$CERTS/untrusted.pem" tls-key-file "$CERTS/untrusted.key" \
		tls-ca-cert-file "$CERTS/other.pem") == OK ]]
	replace other bad-client bad-client
	renewals 1
	touch "$TMP/end"
	finish holder
	expect 0
	finish waiter
	[[ $status == 0 && $output == ran ]]
}

# ---------------------------------------------------------------- the module

# program DIRECTORY: $REDLOCK becomes a copy there, without its module.
program() {
	mkdir -p "$1"
	install -m 755 "$REDLOCK" -t "$1"
	MODULE=${REDLOCK%/*}/redlock-tls.so
	REDLOCK=$1/redlock
}

# native: valgrind has a program of its own in place of this one
# bats test_tags=native
@test "without its module rediss:// is a wrong configuration that names it; redis:// is fine" {
	servers_start 1
	program "$TMP/bin"
	refuses 78 "^redlock: rediss:// needs redlock-tls.so, which is neither in $TMP/bin nor in $TMP/lib/redlock: install redlock-tls\$" \
		run -S rediss://127.0.0.1:1 key true
	refuses 78 "redlock-tls.so" list -S "$REDLOCK_SERVERS,rediss://127.0.0.1:1"
	refuses 69 "Connection refused" run -S redis://127.0.0.1:1 key true
	no_row_failed
	locks
	cp "$MODULE" "$TMP/bin"
	refuses 69 "Connection refused" run -S rediss://127.0.0.1:1 key true
	rm "$TMP/bin/redlock-tls.so"
	mkdir -p "$TMP/lib/redlock"
	cp "$MODULE" "$TMP/lib/redlock"
	refuses 69 "Connection refused" run -S rediss://127.0.0.1:1 key true
	no_row_failed
}

# native: valgrind has a program of its own in place of this one
# bats test_tags=native
@test "a module of another version, or that is none, is refused" {
	program "$TMP/bin"
	sed 's/[0-9]\.[0-9]\.[0-9] ([0-9])/0.0.9 (7)/' "$MODULE" >"$TMP/bin/redlock-tls.so"
	cmp -s "$MODULE" "$TMP/bin/redlock-tls.so" && false
	refuses 78 "^redlock: $TMP/bin/redlock-tls.so is of redlock 0.0.9 \(7\), and this is [0-9.]+ \([0-9]+\): install" \
		acquire -S rediss://127.0.0.1:1 key
	: >"$TMP/bin/redlock-tls.so"
	refuses 78 "^redlock: rediss:// needs $TMP/bin/redlock-tls.so: .*" acquire -S rediss://127.0.0.1:1 key
	echo 'int nothing;' | gcc -shared -fPIC -x c - -o "$TMP/bin/redlock-tls.so"
	refuses 78 "^redlock: rediss:// needs $TMP/bin/redlock-tls.so: .*redlock_tls" acquire -S rediss://127.0.0.1:1 key
	no_row_failed
}

# native: valgrind has a program of its own in place of this one
# bats test_tags=native
@test "a program with more rights than its caller opens no module of the caller's choice" {
	[[ $(id -u) == 0 ]] || skip "needs root to be somebody else"
	set_new
	chmod 755 "$SET"
	program "$SET"
	cp "$MODULE" "$SET"
	chmod u+s "$SET/redlock"
	install -m 4755 "$(command -v id)" "$SET/id"
	TRACER=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	[[ $("${TRACER[@]}" "$SET/id" -u) == 0 ]] || skip "there are no set-user-ID programs here"
	refuses 78 "^redlock: rediss:// needs redlock-tls.so, which is neither in /.*/bin nor in " acquire -S rediss://127.0.0.1:1 key
	[[ $(<"$TMP/refused.err") != *"$SET"* ]]
	chmod u-s "$SET/redlock"
	refuses 69 'Connection refused' acquire -S rediss://127.0.0.1:1 key
	no_row_failed
}

@test "redis:// opens neither the module nor OpenSSL" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	servers_start_tcp 1
	strace -f -qq -o "$TMP/trace" -e trace=%file "$REDLOCK" run -S "$(server_url 0),unix:///nonexistent,unix://$SERVERS/0/redis.sock" \
		"$KEY" true || :
	grep -q libhiredis "$TMP/trace"
	[[ ! $(grep -E 'redlock-tls|libssl|libcrypto' "$TMP/trace") ]]
	strace -f -qq -o "$TMP/trace" -e trace=%file "$REDLOCK" run -S rediss://127.0.0.1:1 "$KEY" true || :
	grep -q redlock-tls.so "$TMP/trace"
	grep -q libssl "$TMP/trace"
}
