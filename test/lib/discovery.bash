# shellcheck shell=bash
# Sentinels that watch a master, and clusters; load it after helper.bash.
#
# Each server has an address of its own below 127.0.0.0/8, so that all are on their default ports,
# by which a cluster finds its second one. They are a set of helper.bash's: `rcli`, `server_stop`
# and the like know them by their numbers.
# shellcheck disable=SC2034,SC2154 # for the tests; helper.bash sets it

# shellcheck source-path=SCRIPTDIR
source "${BASH_SOURCE[0]%/*}/tls.bash"

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	own_places
}

# Where servers, and Sentinels, are named; `speak_tls` sets others.
PORT=6379 SENTINEL_PORT=26379 SCHEME=redis TLS=

# speak_tls names|addresses: the sets that are started from now on speak TLS, and their replicas, Sentinels and
# nodes do so with each other. Each is known by its name, or by its address, and certified for that only. Their
# ports without TLS are there, too.
speak_tls() {
	TLS=$1 PORT=6380 SENTINEL_PORT=26380 SCHEME=rediss
}

# name I: of the set's I-th server: its address as the C library reads it without asking anybody, while to a
# certificate it is a name.
name() {
	local address
	address=$(address "$1")
	echo "0x7f.${address#127.}"
}

# host I: by which the set's I-th server is known.
host() {
	if [[ $TLS == names ]]; then name "$1"; else address "$1"; fi
}

# certify I: a certificate for the set's I-th server in $SERVERS/I.pem and .key.
certify() {
	certificate_of "$SERVERS/$1" "$([[ $TLS == names ]] && echo DNS || echo IP):$(host "$1")"
}

# page_settings I TEXT PATTERN: of the settings that redlock-servers(7) shows after TEXT those that begin like
# PATTERN, with the names, ports and files of the set's I-th server.
page_settings() {
	local host
	host=$(host "$1")
	page_block redlock-servers.7 "$2" | grep -E "^$3" |
		sed "s, *#.*,,; s,/etc/redis/locks/ca\\.,$CERTS/ca.,; s,/etc/redis/locks/server\\.,$SERVERS/$1.,
			s,^tls-port .*,tls-port $PORT,; s,monitor main db1\\.example 6379,monitor main $(host 0) $PORT,
			s,\\(db1\\|s1\\|node1\\)\\.example,$host,"
}

# as_options: settings from standard input.
as_options() {
	sed 's/^/--/; s/ /\n/'
}

# tls_options I [cluster]: of the set's I-th server, or of all Sentinels'.
tls_options() {
	page_settings "$1" '.Li s1.example :' tls- | as_options
	[[ ! ${2-} ]] || page_settings "$1" '.Li tls-replication ,' tls- | as_options
}

# own_places: where it is remembered where servers are: $PLACES, nobody else's.
own_places() {
	set_new
	PLACES=$SET/redlock
	export XDG_RUNTIME_DIR=$SET
}

# addresses_new: a new set, whose servers are to be 127.x.y.z, 127.x.y.z+1 and on.
addresses_new() {
	set_new
	export SERVERS=$SET
	echo "127.$((1 + RANDOM % 250)).$((RANDOM % 250)).$((RANDOM % 15 * 16 + 1))" >"$SERVERS/first"
}

# address I: of the set's I-th server, whether it is there or not.
address() {
	local first
	first=$(<"$SERVERS/first")
	echo "${first%.*}.$((${first##*.} + $1))"
}

# server_new I [OPTION...]: starts the set's I-th server with these redis-server OPTIONs.
server_new() {
	local i=$1 home=$SERVERS/$1
	shift
	mkdir "$home"
	address "$i" >"$home/kind"
	[[ ! $TLS ]] || certify "$i" || return
	{
		printf '%s\n' --repl-diskless-sync-delay 0 --repl-ping-replica-period 1 "$@"
		[[ ! $TLS ]] || tls_options "$i" "$([[ "$*" != *--cluster-enabled* ]] || echo cluster)"
	} >"$home/args"
	server_launch "$i"
}

all_ready() {
	local i
	for ((i = 0; i < SERVER_COUNT; i++)); do server_ready "$i" || return; done
}

# id_of NAME: 40 hexadecimal digits that stand for it.
id_of() {
	local LC_ALL=C i byte hash=0
	for ((i = 0; i < ${#1}; i++)); do
		printf -v byte %d "'${1:i:1}"
		((hash = (hash * 16777619 ^ byte) & (1 << 60) - 1))
	done
	printf '%020x%020x\n' "$hash" "$((hash * 16777619 & (1 << 60) - 1))"
}

# replicates I MASTER: it has all that its master has, and is up to date.
replicates() {
	[[ $(rcli "$1" ROLE | sed -n '2p;4p') == @("$(address "$2")"|"$(host "$2")")$'\nconnected' ]]
}

# is_master I
is_master() {
	reply "$1" ROLE && [[ $REPLY == master* ]]
}

# caught_up REPLICA MASTER: it has all that its master has done so far.
caught_up() {
	local offset
	offset=$(rcli "$2" ROLE | sed -n 2p)
	wait_until "((\$(rcli $1 ROLE | sed -n 5p) >= $offset))"
}

# proxy_addresses: of three proxies.
proxy_addresses() {
	echo "127.0.0.1:$(<"$PROXIES/0.port"),127.0.0.1:$(<"$PROXIES/1.port"),127.0.0.1:$(<"$PROXIES/2.port")"
}

# ---------------------------------------------------------------- Sentinels
#
# They are a set of their own: `sentinels rcli 1 PING`, `sentinels server_stop 0 2`.

sentinels() {
	SERVERS=$SENTINELS SERVER_COUNT=3 "$@"
}

# sentinels_start REPLICAS [OPTION...]: a master, server 0, with REPLICAS, servers 1 and on,
# all with these redis-server OPTIONs; and three Sentinels, who know all of these and each other. They
# call the master `main`, and take nobody for dead by themselves: see sentinels_watch.
sentinels_start() {
	local replicas=$1 i replica announce
	shift
	addresses_new
	export SERVER_COUNT=$((replicas + 1))
	for ((i = 0; i < SERVER_COUNT; i++)); do
		replica=()
		((i == 0)) || replica=(--replicaof "$(host 0)" "$PORT")
		mapfile -t announce < <(page_settings "$i" 'tls-replication yes' replica- | as_options)
		server_new "$i" "${announce[@]}" "${replica[@]}" "$@"
	done
	set_new
	export SENTINELS=$SET
	for i in 0 1 2; do sentinel_new "$i"; done
	all_ready || return
	for i in 0 1 2; do sentinel_ready "$i" || return; done
	for ((i = 1; i < SERVER_COUNT; i++)); do wait_until "replicates $i 0" || return; done
	# shellcheck disable=SC2119
	REDLOCK_SERVERS=$(sentinel_url)
	export REDLOCK_SERVERS
}

sentinel_address() {
	address $((10 + $1))
}

sentinel_host() {
	host $((10 + $1))
}

# sentinel_new I: with a state as if it had met the others and the replicas.
sentinel_new() {
	local home=$SENTINELS/$1 i
	mkdir "$home"
	{
		echo "port 26379"
		[[ ! $TLS ]] || sentinel_tls "$1"
		echo "bind $(sentinel_address "$1")"
		echo "dir $home"
		echo "unixsocket $home/redis.sock"
		echo "sentinel myid $(id_of "$home")"
		page_settings $((10 + $1)) 'tls-replication yes' 'sentinel (announce-ip|monitor) '
		echo "sentinel down-after-milliseconds main 600000"
		for ((i = 1; i < SERVER_COUNT; i++)); do
			echo "sentinel known-replica main $(host "$i") $PORT"
		done
		for i in 0 1 2; do
			((i == $1)) ||
				echo "sentinel known-sentinel main $(sentinel_host "$i") $SENTINEL_PORT $(id_of "$SENTINELS/$i")"
		done
	} >"$home/conf"
	sentinel_launch "$1"
}

# sentinel_tls I: what its file says of that.
sentinel_tls() {
	certify $((10 + $1)) || return
	tls_options $((10 + $1)) | paste -d ' ' - - | sed "s/^--//; s/^tls-port .*/tls-port $SENTINEL_PORT/"
	[[ $TLS != names ]] || page_settings $((10 + $1)) 'tls-replication yes' 'sentinel [a-z]+-hostnames '
}

# sentinel_launch I: it goes on with what it had.
sentinel_launch() {
	local home=$SENTINELS/$1
	"$TOOLS/start" -k redis-server "$home/conf" --sentinel </dev/null >>"$home/log" 2>&1 3>&- 4>&- &
	echo $! >"$home/pid"
	disown $!
}

sentinel_ready() {
	wait_until "sentinels reply $1 INFO server && sentinels is_ours $1"
}

# sentinel_url [/NAME]: of all three, for `main` or this master and database.
# shellcheck disable=SC2120
sentinel_url() {
	local hosts i
	for i in 0 1 2; do
		hosts+=,$(sentinel_host "$i")
		[[ ! $TLS ]] || hosts+=:$SENTINEL_PORT
	done
	echo "$SCHEME+sentinel://${hosts#,}${1-/main}"
}

# sentinels_each COMMAND...: each is told so, and agrees.
sentinels_each() {
	local i
	for i in 0 1 2; do [[ $(sentinels rcli "$i" "$@") == OK ]] || return; done
}

# sentinel_names SENTINEL I [NAME]: it watches this server now, whom it calls `main`, or NAME, and knows no
# replica.
sentinel_names() {
	local sentinel=$1 server=$2 name=${3-main}
	sentinels rcli "$sentinel" SENTINEL REMOVE "$name"
	[[ $(sentinels rcli "$sentinel" SENTINEL MONITOR "$name" "$(host "$server")" "$PORT" 2) == OK ]] &&
		[[ $(sentinels rcli "$sentinel" SENTINEL SET "$name" down-after-milliseconds 600000) == OK ]]
}

# all_name I [NAME]: all three Sentinels do.
all_name() {
	local sentinel
	for sentinel in 0 1 2; do sentinel_names "$sentinel" "$@" || return; done
}

# names SENTINEL I: it says that this server is the master.
names() {
	sentinels reply "$1" SENTINEL GET-MASTER-ADDR-BY-NAME main && [[ $REPLY == "$(host "$2")"$'\n'"$PORT" ]]
}

# promoted I: all Sentinels say so, and it is.
promoted() {
	names 0 "$1" && names 1 "$1" && names 2 "$1" && is_master "$1"
}

# sentinels_hurry: what they look at now and then they look at often.
sentinels_hurry() {
	local period
	for period in tilt-trigger=60000 info-period=200 ask-period=200; do
		# (Redis 7 and later; before that it takes some seconds more)
		sentinels_each SENTINEL DEBUG "${period%=*}" "${period#*=}" || :
	done
	sentinels_each SENTINEL SET main failover-timeout 2000
}

# fail_over FROM TO: the Sentinels make this replica the master, and its master a replica.
fail_over() {
	local i
	# At first there may be no replica that they have heard of lately, and a failover may come to nothing. One
	# more request after it is done would undo it.
	for i in 1 2 3 4 5; do
		wait_until "names 0 $2 || [[ \$(sentinels rcli 0 SENTINEL FAILOVER main) == OK ]]" || return
		! wait_until "names 0 $2" 10 2>/dev/null || break
	done
	wait_until "promoted $2" || return
	# which they would do themselves some seconds later
	rcli "$1" REPLICAOF "$(host "$2")" "$PORT"
	rcli "$1" CLIENT KILL TYPE normal SKIPME yes
	rcli "$1" CLIENT KILL TYPE pubsub
	wait_until "replicates $1 $2"
}

# fail I BY: the master is killed, and the Sentinels find this replica in its stead.
fail() {
	# only one takes it for dead, so that votes are not split
	[[ $(sentinels rcli 0 SENTINEL SET main quorum 1 down-after-milliseconds 500) == OK ]] &&
		server_kill "$1" && wait_until "promoted $2" 40 && return
	tail -n 20 "$SENTINELS/0/log" >&2
	return 1
}

# ---------------------------------------------------------------- clusters

# cluster_start MASTERS [REPLICAS [OPTION...]]: servers 0 and on, of which each has the same share of the
# slots; after them the replicas, one of master 0, one of 1 and on; with these redis-server OPTIONs.
# They take each other for dead after a minute. REDLOCK_SERVERS names all masters.
cluster_start() {
	local masters=$1 replicas=${2-0} i urls='' names=()
	shift $(($# < 2 ? 1 : 2))
	addresses_new
	# Redis 6.0 has no such option
	[[ $(redis-server --version) == *' v='[56].[01].* ]] || set -- --cluster-allow-replica-migration no "$@"
	export SERVER_COUNT=$((masters + replicas))
	for ((i = 0; i < SERVER_COUNT; i++)); do
		cluster_state "$i" "$masters" >"$SERVERS/nodes.$i"
		[[ $TLS != names ]] ||
			mapfile -t names < <(page_settings "$i" '.Li tls-replication ,' cluster- | as_options)
		server_new "$i" --cluster-enabled yes --cluster-config-file "$SERVERS/nodes.$i" \
			--cluster-node-timeout 60000 --cluster-announce-ip "$(address "$i")" "${names[@]}" "$@"
	done
	all_ready || return
	for ((i = 0; i < SERVER_COUNT; i++)); do wait_until "in_order $i" || return; done
	for ((i = masters; i < SERVER_COUNT; i++)); do wait_until "replicates $i $((i - masters))" || return; done
	for ((i = 0; i < masters; i++)); do
		urls+=,$(host "$i")
		[[ ! $TLS ]] || urls+=:$PORT
	done
	export REDLOCK_SERVERS=$SCHEME+cluster://${urls#,}
}

# cluster_state I MASTERS: what the I-th would have kept of a cluster that has been for long. A server that knows
# shards ends at the first SPUBLISH if their names are missing; one that does not takes them for a host's.
cluster_state() {
	local i place role shard=
	local known=$SERVERS/shards
	[[ -e $known ]] || redis-server --version >"$known"
	[[ ! $(<"$known") =~ v=(([89]|[1-9][0-9])\.|7\.[2-9]) ]] || shard=yes
	for ((i = 0; i < SERVER_COUNT; i++)); do
		place=$(address "$i"):$PORT@$((PORT + 10000))
		[[ ! $shard && $TLS != names ]] || place+=,
		[[ $TLS != names ]] || place+=$(name "$i")
		[[ ! $shard ]] || place+=,$([[ $TLS ]] && echo tcp-port=6379 || echo tls-port=0),shard-id=$(id_of "$SERVERS shard $((i % $2))")
		role=master
		((i < $2)) || role=slave
		(($1 != i)) || role=myself,$role
		if ((i < $2)); then
			echo "$(id_of "$SERVERS$i") $place $role - 0 0 $((i + 1)) connected" \
				"$((16384 * i / $2))-$((16384 * (i + 1) / $2 - 1))"
		else
			echo "$(id_of "$SERVERS$i") $place $role $(id_of "$SERVERS$((i - $2))")" \
				"0 0 $((i - $2 + 1)) connected"
		fi
	done
	echo "vars currentEpoch $2 lastVoteEpoch 0"
}

in_order() {
	reply "$1" CLUSTER INFO && [[ $REPLY == cluster_state:ok* ]] || return
	[[ $TLS != names ]] || { reply "$1" CLUSTER SLOTS && [[ $REPLY != *'?'* ]]; }
}

node_id() {
	id_of "$SERVERS$1"
}

slot_of() {
	rcli 0 CLUSTER KEYSLOT "$1"
}

# key_on I MASTERS [START]: a key of the test's own in a hash slot that this master began with.
key_on() {
	local n key slot
	for n in {1..1000}; do
		key=${3-$KEY}-$n
		reply 0 CLUSTER KEYSLOT "$key"
		slot=$REPLY
		if ((slot >= 16384 * $1 / $2 && slot < 16384 * ($1 + 1) / $2)); then
			echo "$key"
			return
		fi
	done
	return 1
}

# ---------------------------------------------------------------- a lock, wherever it is

# locks I [OPTION...]: KEY can be taken, is on this server then, and is released there.
locks() {
	local server=$1
	local -x REDLOCK_SERVER_TIMEOUT=${SLOW}s
	shift
	redlock run -n "$@" "$KEY" redis-cli -s "$SERVERS/$server/redis.sock" EXISTS "$KEY"
	expect 0 1 && key_free "$server"
}

# takes_none STATUS PATTERN [OPTION...]: KEY cannot be taken, and one line says why.
takes_none() {
	local want=$1 pattern=$2
	shift 2
	redlock run -n "$@" "$KEY" touch "$TMP/ran"
	expect "$want" '' "redlock: $(literal "$KEY"): $pattern" && [[ ! -e $TMP/ran ]]
}

# every_command_finds I SERVER: KEY on this server, which status names so (a regular expression).
every_command_finds() {
	local i=$1 server=$2 token
	token=$("$REDLOCK" acquire --label mine "$KEY")
	redlock status "$KEY"
	expect 0 "$KEY: exclusive, fence [0-9]{13}
  holder  .* 'mine'
  server  $server  held, at .*"
	redlock list "$KEY"
	expect 0 "$KEY: exclusive, held by .* 'mine' .*"
	redlock extend -t 10m "$KEY" "$token"
	expect 0
	(($(rcli "$i" PTTL "$KEY") > 500000))
	spawn wait "$REDLOCK" wait "$KEY"
	wait_until "queued 1 $i"
	redlock release "$KEY" "$token"
	expect 0
	finish wait
	expect 0
	token=$("$REDLOCK" acquire "$KEY")
	redlock break --yes "$KEY"
	[[ $status == 0 ]]
	key_free "$i"
	redlock release "$KEY" "$token"
	expect 1 '' "redlock: $KEY: not held by this token.*"
}

# took ARRAY: a microsecond count for acquire and release.
took() {
	local -n times=$1
	local start token
	start=${EPOCHREALTIME//[!0-9]/}
	token=$("$REDLOCK" acquire -n --server-timeout "${SLOW}s" "$KEY") &&
		"$REDLOCK" release --server-timeout "${SLOW}s" "$KEY" "$token" || return
	times+=($((${EPOCHREALTIME//[!0-9]/} - start)))
}

# start I [OPTION...]: on this server, a run with a stamp that ends when $TMP/end exists; $token, $fence.
start() {
	local server=$1
	shift
	mkdir -p "$TMP/stamps"
	spawn run "$REDLOCK" run "$@" "$KEY" "$STAMP" -u "$TMP/end" -x 3 "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	token=$(rcli "$server" GET "$KEY")
	fence=$(fence_at "$server")
}

# goes_on I: it is renewed on this server, with its token and fence, ends by itself, and is released there.
goes_on() {
	renewals 2 "$1"
	key_held_by "$token" "$1"
	[[ $(fence_at "$1") == "$fence" ]]
	is_beating "$TMP/stamps"
	touch "$TMP/end"
	finish run
	expect 3
	wait_until "key_free $1"
	redlock run -n "$KEY" sh -c 'echo $REDLOCK_FENCE'
	expect 0 '[0-9]+'
	((output > fence))
}

# ---------------------------------------------------------------- seeds that are told what to say

# seeds_start COUNT [PREFIX...]: see tools/seed.py, which is run by PREFIX; over TLS after
# speak_tls, with $SEED_CERTIFICATE where it is set.
seeds_start() {
	local count=$1 files=()
	shift
	set_new
	SEEDS=$SET
	if [[ $TLS && ${SEED_CERTIFICATE-} ]]; then
		files=("$SEED_CERTIFICATE.pem" "$SEED_CERTIFICATE.key")
	elif [[ $TLS ]]; then
		certificate_of "$SEEDS/tls" IP:127.0.0.1 || return
		files=("$SEEDS/tls.pem" "$SEEDS/tls.key")
	fi
	set_serves "$@" python3 -IS "$ROOT/test/lib/tools/seed.py" "$SEEDS" "$count" "${files[@]}"
	wait_until "[[ -e $SEEDS/ready ]]"
}

# seed_says I WORD REPLY [WORD REPLY ...]: from now on it says this, and nothing that it said before.
seed_says() {
	local file=$SEEDS/$1.says
	shift
	printf '%s %s\n' "$@" >"$file.new" && mv "$file.new" "$file"
}

seed_address() {
	echo "127.0.0.1:$(<"$SEEDS/$1.port")"
}

# place HOST PORT: as Sentinels answer.
place() {
	# shellcheck disable=SC1003 # a backslash
	printf '*2\\r\\n$%s\\r\\n%s\\r\\n$%s\\r\\n%s\\r\\n' ${#1} "$1" ${#2} "$2"
}
