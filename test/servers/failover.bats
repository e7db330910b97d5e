#!/usr/bin/env bats
# A master that dies, hangs or comes back while locks are held, waited for and handed over all the time, by Sentinels
# and in a cluster, with TLS and without: no COMMAND is stopped whose lock the next master has, nobody gets in beside
# another, and everybody goes on.
#
# How long each took is added to the file $FIGURES, if that is set.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154 # text for inner shells; tests are subshells; helpers set variables
# bats file_tags=long

load ../lib/helper
load ../lib/cli
load ../lib/discovery

setup_file() {
	export CERTS=$BATS_FILE_TMPDIR/certs
	mkdir "$CERTS"
	authority ca
	export REDLOCK_CACERT=$CERTS/ca.pem
}

HOLDERS=4 CONTENDERS=5

# begin KIND [OPTION...]: servers with these redis-server OPTIONs, of which server 0 is the master of KEY and $NEXT its
# replica, and which take it for dead after some seconds.
begin() {
	local kind=$1
	shift
	if [[ $kind == *cluster ]]; then NEXT=3; else NEXT=1; fi
	[[ $kind != rediss* ]] || speak_tls names
	if [[ $kind == *cluster ]]; then
		cluster_start 3 1 --cluster-node-timeout 2500 "$@"
		KEY=$(key_on 0 3)
	else
		sentinels_start 1 "$@"
		sentinels_each SENTINEL SET main down-after-milliseconds 2500 failover-timeout 5000
	fi
}

# hold N: KEY-N on server 0, until $TMP/end exists. contend: for KEY, again and again, until $TMP/stop exists, and
# at leisure once $TMP/calm does.
hold() {
	mkdir "$TMP/held$1"
	spawn "hold$1" "$REDLOCK" run -w 60s -t 40s "{$KEY}-$1" "$STAMP" -u "$TMP/end" -x 3 "$TMP/held$1"
}

contend() {
	local ms
	until [[ -e $TMP/stop ]]; do
		if [[ -e $TMP/calm ]]; then ms=400; else ms=60; fi
		"$REDLOCK" run -w 60s -t 8s "$KEY" "$STAMP" -d "$ms" "$TMP/stamps" || echo "$?" >>"$TMP/failed"
	done
}

load_begins() {
	local n
	mkdir "$TMP/stamps"
	for ((n = 0; n < HOLDERS; n++)); do hold "$n"; done
	for ((n = 0; n < CONTENDERS; n++)); do spawn "contend$n" contend; done
	for ((n = 0; n < HOLDERS; n++)); do wait_until "stamped $TMP/held$n" 40; done
	wait_until 'stamped "$TMP/stamps" 10' 60
}

# goes_on_at I: this server is the master, and somebody has got KEY since $at.
goes_on_at() {
	is_master "$1" && (($(beats "$TMP/stamps" | awk -v at="$at" '$2 / 1000 > at' | wc -l) > 2))
}

# renewed_at I: each KEY-N has been renewed there: its lease was seen as long as after a renewal.
renewed_at() {
	local n
	for ((n = 0; n < HOLDERS; n++)); do
		[[ ${renewed[n]-} ]] || { reply "$1" PTTL "{$KEY}-$n" && ((REPLY <= 38500)); } || renewed[n]=yes
	done
	((${#renewed[@]} == HOLDERS))
}

# all_well: everybody has come to an end as planned, and nobody was there beside another.
all_well() {
	local n
	touch "$TMP/stop" "$TMP/end"
	for ((n = 0; n < HOLDERS; n++)); do
		finish "hold$n"
		[[ $status == 3 ]] || { echo "a holder ended with $status: $stderr" >&2 && return 1; }
	done
	for ((n = 0; n < CONTENDERS; n++)); do finish "contend$n" 60 || return; done
	[[ ! -e $TMP/failed ]] || { echo "contenders ended with: $(xargs <"$TMP/failed")" >&2 && return 1; }
	assert_exclusive "$TMP/stamps" "$(beats "$TMP/stamps" | cut -d ' ' -f 1 | uniq | wc -l)"
}

# gap: the longest time that nobody had KEY, in ms.
gap() {
	beats "$TMP/stamps" | awk 'last && $2 - last > most { most = $2 - last } $3 > last { last = $3 } END { printf "%d\n", most / 1000 }'
}

# note_figures WHAT
note_figures() {
	[[ ! ${FIGURES-} ]] || printf '%s: next master after %d ms, holders renewed after %d ms, longest gap between holders %d ms, %d hand-overs, load %s\n' \
		"$1" $((promoted - at)) $((all_renewed - at)) "$(gap)" "$(beats "$TMP/stamps" | wc -l)" "$(cut -d ' ' -f 1 /proc/loadavg)" >>"$FIGURES"
}

# replaced KIND kill|stop: server 0 fails under load, and $NEXT takes its place.
replaced() {
	local at promoted all_renewed renewed=()
	begin "$1"
	load_begins
	caught_up "$NEXT" 0
	at=$NOW
	"server_$2" 0
	wait_until "is_master $NEXT" 60
	promoted=$NOW
	wait_until "goes_on_at $NEXT" 60
	touch "$TMP/calm" # until the last holder is due
	wait_until "renewed_at $NEXT" 60
	rm "$TMP/calm"
	all_renewed=$NOW
	[[ $2 != stop ]] || server_continue 0
	at=$NOW wait_until "goes_on_at $NEXT" 60
	all_well
	note_figures "$1, $2"
}

# comes_back KIND OUTAGE...: server 0 is away for some seconds, nobody takes its place, and it still has all locks.
comes_back() {
	local at
	begin "$1" --appendonly yes --appendfsync always
	if [[ $1 == *cluster ]]; then
		for i in 0 1 2 3; do rcli "$i" CONFIG SET cluster-node-timeout 60000; done
	else
		sentinels_each SENTINEL SET main down-after-milliseconds 600000
	fi
	load_begins
	"${@:2}"
	at=$NOW
	wait_until 'goes_on_at 0' 60
	all_well
}

hangs() {
	server_stop 0
	pause 6
	server_continue 0
}

dies() {
	server_kill 0
	pause 4
	server_launch 0
	server_ready 0
}

@test "redis+sentinel://: a master that is killed under load is replaced, and no lock lost" {
	replaced redis+sentinel kill
}

@test "redis+sentinel://: a master that hangs under load is replaced, and no lock lost" {
	replaced redis+sentinel stop
}

@test "rediss+sentinel://: a master that is killed under load is replaced, and no lock lost" {
	replaced rediss+sentinel kill
}

@test "rediss+sentinel://: a master that hangs under load is replaced, and no lock lost" {
	replaced rediss+sentinel stop
}

@test "redis+cluster://: a node that is killed under load is replaced, and no lock lost" {
	replaced redis+cluster kill
}

@test "redis+cluster://: a node that hangs under load is replaced, and no lock lost" {
	replaced redis+cluster stop
}

@test "rediss+cluster://: a node that is killed under load is replaced, and no lock lost" {
	replaced rediss+cluster kill
}

@test "rediss+cluster://: a node that hangs under load is replaced, and no lock lost" {
	replaced rediss+cluster stop
}

@test "redis+sentinel://: a master that hangs and comes back in time is not felt" {
	comes_back redis+sentinel hangs
}

@test "rediss+sentinel://: a master that dies and comes back in time is not felt" {
	comes_back rediss+sentinel dies
}

@test "rediss+cluster://: a node that hangs and comes back in time is not felt" {
	comes_back rediss+cluster hangs
}
