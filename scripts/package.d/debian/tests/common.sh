# shellcheck shell=sh
# What the tests of the installed package share. They start servers of their own,
# which are gone again at the end; what is installed is what is tested.

set -eu

# no configuration but theirs
unset XDG_CONFIG_HOME XDG_RUNTIME_DIR
for name in $(env | sed -n 's/^\(REDLOCK_[A-Z_]*\)=.*/\1/p'); do
	unset "$name"
done
TMP=${AUTOPKGTEST_TMP:-$(mktemp -d)}
HOME=$TMP
export HOME
cd "$TMP"

server=$(command -v redis-server || command -v valkey-server)
cli=$(command -v redis-cli || command -v valkey-cli)
local=$TMP/runtime/redlock/redis.sock # of the server of local:
servers=

cleanup() {
	for pid in $servers; do
		kill -KILL "$pid" 2>/dev/null || :
	done
	[ ! -S "$local" ] || "$cli" -s "$local" SHUTDOWN NOSAVE
	[ -n "${AUTOPKGTEST_TMP-}" ] || rm -rf "$TMP"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# expect STATUS COMMAND ...: it ends with STATUS; its output is in out and err.
expect() {
	expected=$1
	shift
	status=0
	timeout -k 5 60 "$@" >out 2>err </dev/null || status=$?
	echo "$*: $status"
	[ "$status" -eq "$expected" ] || {
		cat out err
		fail "$*: exit status $status instead of $expected"
	}
}

# says TEXT: the last command has said it on standard error.
says() {
	grep -qF -- "$1" err || {
		cat err
		fail "no word of: $1"
	}
}

# until_true COMMAND ...: waits until it succeeds, 20 s at most.
until_true() {
	left=200
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || fail "not within 20 s: $*"
		sleep 0.1
	done
}

# server_start NAME [OPTION ...]: a server on the Unix socket $TMP/NAME.sock
server_start() {
	name=$1
	shift
	[ -n "$server" ] || fail 'there is neither redis-server nor valkey-server'
	"$server" --port 0 --unixsocket "$TMP/$name.sock" --save '' --appendonly no \
		--dir "$TMP" --logfile "$TMP/$name.log" "$@" </dev/null >/dev/null 2>&1 &
	servers="$servers $!"
	until_true [ -S "$TMP/$name.sock" ]
}
