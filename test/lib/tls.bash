# shellcheck shell=bash
# What TLS needs: certificates, in the directory $CERTS: NAME.pem and NAME.key; and peers that misbehave.
# shellcheck disable=SC2034 # for the tests

PEER=$ROOT/test/lib/tools/tls_peer.py

# authority NAME
authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$CERTS/$1.key" \
		-out "$CERTS/$1.pem" -subj "/CN=the $1 authority" -days 30 2>/dev/null
}

# certificate NAME AUTHORITY SUBJECTS [FROM UNTIL]
certificate() {
	local home=$CERTS/$1.d
	mkdir "$home"
	: >"$home/index"
	cat >"$home/conf" <<-end
		[ca]
		default_ca = here
		[here]
		database = $home/index
		new_certs_dir = $home
		rand_serial = yes
		default_md = sha256
		default_days = 30
		policy = any
		unique_subject = no
		[any]
		commonName = supplied
		[extensions]
		subjectAltName = $3
	end
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$CERTS/$1.key" -out "$home/csr" \
		-subj "/CN=$1" 2>/dev/null
	openssl ca -batch -notext -config "$home/conf" -extensions extensions -cert "$CERTS/$2.pem" -keyfile "$CERTS/$2.key" \
		-in "$home/csr" -out "$CERTS/$1.pem" ${4+-startdate "$4" -enddate "$5"} 2>/dev/null
}

# certificate_of PATH SUBJECTS: the same in PATH.pem and PATH.key, by the authority ca, and made faster.
certificate_of() {
	openssl req -x509 -CA "$CERTS/ca.pem" -CAkey "$CERTS/ca.key" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-days 30 -subj /CN=nobody -addext "subjectAltName=$2" -addext basicConstraints=CA:FALSE \
		-keyout "$1.key" -out "$1.pem" 2>/dev/null
}

# peer MODE [ARGUMENT...]: see tools/tls_peer.py. $PEER_URL is its address, $PEERS its directory.
peer() {
	set_new
	PEERS=$SET
	set_serves python3 -IS "$PEER" "$PEERS" "$@"
	wait_until "[[ -s $PEERS/port ]]"
	PEER_URL=rediss://127.0.0.1:$(<"$PEERS/port")
}

# only_hellos [COUNT]: this many connections have come to the peer (at least one), and nothing but
# the beginning of a TLS handshake on any of them.
only_hellos() {
	local count=${1-1}
	wait_until "((\$(grep -c . $PEERS/log) >= $count))"
	[[ ! $(grep -v '^hello$' "$PEERS/log") ]] || { head -c 300 "$PEERS/log" >&2 && false; }
}
