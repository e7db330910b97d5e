# shellcheck shell=bash
# What the tests of the command line share, beyond helper.bash. Load it after that.

# shellcheck disable=SC2034 # for the tests

# A server that refuses at once: a command that gets this far was parsed and found right.
NOWHERE=unix:///nonexistent/redis.sock

# refuses STATUS PATTERN ARGUMENT...: redlock ends so before it does anything: STATUS, nothing on
# standard output but PRINTED, one printable line on standard error that the regular expression fits. A row that is
# not so is shown and counted; a table ends with `no_row_failed`. TRACER stands in front of redlock.
TRACER=()
PRINTED=
failed_rows=0

refuses() {
	local want=$1 pattern=$2 got=0 wrong='' lines
	shift 2
	at_most $((20 * SLOW)) "$TMP/refused.out" "$TMP/refused.err" "${TRACER[@]}" "$REDLOCK" "$@" || got=$?
	mapfile -t lines <"$TMP/refused.err"
	[[ $got == "$want" ]] || wrong+="status $got, not $want; "
	[[ $(<"$TMP/refused.out") == "$PRINTED" ]] || wrong+="output: $(head -c 200 "$TMP/refused.out"); "
	((${#lines[@]} == 1)) || wrong+="${#lines[@]} lines on standard error; "
	[[ ${lines[0]-} == "redlock: "?* ]] || wrong+='does not begin with "redlock: "; '
	[[ ${lines[0]-} =~ $pattern ]] || wrong+="not like /$pattern/; "
	((want == 69 || ${#lines[0]} < 800)) || wrong+="a line of ${#lines[0]} bytes; "
	LC_ALL=C is_printable "${lines[0]-}" || wrong+="unprintable bytes; "
	[[ $wrong ]] || return 0
	((++failed_rows))
	{
		printf 'redlock'
		for argument; do printf ' %q' "${argument:0:120}"; done
		printf '\n    %s\n' "$wrong" "${lines[0]:0:300}"
	} >&2
}

# reachable: $SET with a copy of redlock for other users, as this tree may be in /root; only as root.
reachable() {
	[[ $(id -u) == 0 ]] || skip "needs root to be somebody else"
	set_new
	chmod 755 "$SET"
	install -m 755 "$REDLOCK" "$SET/redlock"
	REDLOCK=$SET/redlock
}

is_printable() {
	[[ $1 != *[![:print:]]* ]]
}

no_row_failed() {
	if ((failed_rows)); then
		echo "$failed_rows rows are not so" >&2
		return 1
	fi
}

# literal TEXT: as a regular expression that fits exactly it.
literal() {
	local text=$1 special
	for special in \\ '[' ']' . '*' '^' '$' '(' ')' '{' '}' + '?' '|'; do
		text=${text//"$special"/\\"$special"}
	done
	echo "$text"
}

# repeat BYTE COUNT
repeat() {
	head -c "$2" /dev/zero | tr '\0' "$1"
}

# died COMMAND...: how it ended, as wait(2) tells and no shell does: $death is "exit N" or
# "signal N", and ", core" where it dumped one. Its output goes to $TMP/died.out and died.err.
died() {
	# shellcheck disable=SC2016 # perl's variables
	death=$(perl -e '
		my ($dir, @command) = @ARGV;
		my $pid = fork;
		if (!$pid) {
			open STDIN, "<", "/dev/null";
			open STDOUT, ">", "$dir/died.out";
			open STDERR, ">", "$dir/died.err";
			exec {$command[0]} @command or exit 99;
		}
		waitpid $pid, 0;
		print $? & 127 ? "signal " . ($? & 127) : "exit " . ($? >> 8);
		print ", core" if $? & 128;
	' "$TMP" timeout -k 1 $((30 * SLOW)) "$@" 3>&- 4>&-)
}

# json FILTER FILE: what jq makes of a file that holds one line with one JSON object.
json() {
	[[ $(wc -l <"$2") == 1 ]] || return
	jq -c "$1" "$2"
}

# is_gone PID...: not even a zombie is left.
is_gone() {
	local pid
	for pid; do [[ ! -e /proc/$pid ]] || return; done
}

# is_over PID: gone, or a zombie that whoever has adopted it may still reap.
is_over() {
	[[ ! -e /proc/$1 || $(state "$1") == Z ]]
}

# state PID: the letter of its state (R, S, T, Z ...).
state() {
	local stat
	stat=$(<"/proc/$1/stat")
	stat=${stat##*) }
	echo "${stat%% *}"
}

# hold: somebody else has $KEY, for ten minutes; unhold.
hold() {
	[[ $(rcli 0 SET "$KEY" somebody NX PX 600000) == OK ]]
}

unhold() {
	[[ $(rcli 0 DEL "$KEY") == 1 ]]
}

# is_waiting NAME: a spawned `redlock -v` has found KEY held.
is_waiting() {
	[[ $(<"$TMP/$1.err") == *held* ]]
}

# listens_on PORT: somebody does, on 127.0.0.1.
listens_on() {
	(exec 5<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# heard SIGNAL [FILE]: how often tools/hear.pl has got it, in all of its processes.
heard() {
	grep -c "^$1 " "${2-$TMP/heard}"
}

HEAR=$ROOT/test/lib/tools/hear.pl

# in_terminal NAME COMMAND: as spawn, COMMAND being the foreground of a terminal of its own.
# type_keys NAME KEYS: types there, KEYS as printf has them ('\003' is ^C).
in_terminal() {
	mkfifo "$TMP/$1.keys"
	SHELL=/bin/sh TERM=xterm setsid env --default-signal=INT,QUIT,PIPE,TSTP,TTIN,TTOU script -qec "$2" /dev/null \
		<>"$TMP/$1.keys" >"$TMP/$1.out" 2>"$TMP/$1.err" 3>&- 4>&- &
	spawned[$1]=$!
}

type_keys() {
	# shellcheck disable=SC2059 # a format it is
	printf "$2" >"$TMP/$1.keys"
}

# at_terminal [COMMAND...] <STEPS: what tools/terminal.py does, with an interactive shell where there is no COMMAND.
# $status is COMMAND's.
at_terminal() {
	(($#)) || set -- bash --norc --noprofile --noediting -i
	status=0
	PS1='ready> ' TERM=xterm HISTFILE='' LESS='' timeout -k 1 $((100 * SLOW)) \
		python3 -IS "$ROOT/test/lib/tools/terminal.py" --seconds $((20 * SLOW)) "$@" 3>&- 4>&- || status=$?
}

SCREEN="python3 -IS $ROOT/test/lib/tools/screen.py"
