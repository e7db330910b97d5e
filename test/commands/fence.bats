#!/usr/bin/env bats
# fence: a file that has seen a larger fence refuses a smaller one.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup() {
	TMP=$BATS_TEST_TMPDIR
	FILE=$TMP/seen
	# fence asks no server, and reads no settings
	export REDLOCK_SERVERS=nonsense REDLOCK_TTL=nonsense
}

# has NUMBER: FILE holds it, and nothing else.
has() {
	[[ $(<"$FILE") =~ ^$1\ *$ && $(wc -c <"$FILE") == 20 ]]
}

@test "a fence passes if it is as large as all before it, and is remembered" {
	local fence
	for fence in 1 2 2 1763841234567 9007199254740992; do
		redlock fence "$FILE" "$fence"
		expect 0
		has "$fence"
	done
}

@test "a smaller fence is 1, with both numbers, and changes nothing" {
	redlock fence "$FILE" 100
	redlock fence "$FILE" 99
	expect 1 '' "redlock: $FILE: fence 99 is smaller than 100, the largest seen here: there has been a later holder: stop"
	has 100
	redlock fence -q "$FILE" 9
	[[ $status == 1 && $stderr == *'smaller than 100'* ]]
	has 100
}

@test "without FENCE it is REDLOCK_FENCE, and -v says that it passes" {
	REDLOCK_FENCE=41 redlock fence "$FILE"
	expect 0
	REDLOCK_FENCE=3 redlock fence "$FILE" 42
	expect 0
	REDLOCK_FENCE=41 redlock fence "$FILE"
	expect 1 '' "redlock: $FILE: fence 41 is smaller than 42, .*"
	redlock fence -v "$FILE" 43
	[[ $status == 0 && $output == '' && ${stderr##*$'\n'} =~ ^redlock:\ [0-9.]+s:\ $FILE:\ fence\ 43\ is\ the\ largest$ ]]
}

@test "a number that a hand wrote counts, and so does an empty file" {
	local text
	for text in 7 $'7\n' $'7  \n' $'0000000000000000007\n' 0000000000000000007; do
		printf %s "$text" >"$FILE"
		redlock fence "$FILE" 6
		[[ $status == 1 && $stderr == *'smaller than 7,'* ]]
		[[ $(<"$FILE") == "${text%$'\n'}" ]]
		redlock fence "$FILE" 8
		expect 0
		has 8
	done
	: >"$FILE"
	redlock fence "$FILE" 1
	expect 0
	has 1
}

@test "what holds anything else is 65, and stays as it is" {
	local text
	for text in x '7x' '-7' '7 8' $'7\n8' ' 7' $'\n' 9007199254740993 99999999999999999999 \
		$'7                  \nx' '7                     '; do
		printf %s "$text" >"$FILE"
		cp "$FILE" "$FILE.before"
		refuses 65 "^redlock: $(literal "$FILE"): it holds something other than a fence: name a file that only redlock fence writes$" \
			fence "$FILE" 99
		cmp "$FILE" "$FILE.before"
	done
	printf '7\0' >"$FILE"
	mkfifo "$TMP/fifo"
	for file in "$FILE" "$TMP/fifo" "$TMP" /dev/null; do
		refuses 65 'it holds something other' fence "$file" 99
	done
	no_row_failed
}

@test "what cannot be opened or locked is 71" {
	refuses 71 "^redlock: $(literal "$TMP")/none/seen: cannot open it: No such file or directory$" fence "$TMP/none/seen" 1
	no_row_failed
}

@test "a FILE that is made under a umask that takes the owner's rights is read and written again" {
	local bare=() umask fence
	((EUID != 0)) || bare=(setpriv "--inh-caps=-dac_override,-dac_read_search" "--bounding-set=-dac_override,-dac_read_search")
	for umask in 777 477 277 027; do
		rm -f "$FILE"
		for fence in 5 6; do
			run "${bare[@]}" sh -c 'umask "$0" && exec "$@"' "$umask" "$REDLOCK" fence "$FILE" "$fence"
			[[ $status == 0 && ! $output ]]
		done
		has 6
	done
	# no more than that
	[[ $(stat -c %a "$FILE") == 640 ]]
}

@test "mistakes in the arguments of fence are 64, and make no file" {
	unset REDLOCK_FENCE
	local max=9007199254740992
	refuses 64 '^redlock: fence: FILE is missing: see redlock fence --help$' fence
	refuses 64 "FILE is empty" fence '' 1
	refuses 64 'FENCE is missing, and REDLOCK_FENCE is not set' fence "$FILE"
	for fence in '' 0 -- -1 +1 1.5 0x1 ' 1' 9007199254740993 99999999999999999999; do
		[[ $fence == -* ]] ||
			refuses 64 "FENCE '$(literal "$fence")' must be a number from 1 to $max" fence "$FILE" "$fence"
	done
	refuses 64 "FENCE '-1' must be a number from 1 to $max" fence "$FILE" -- -1
	refuses 64 "one argument too many: '2'" fence "$FILE" 1 2
	refuses 64 "option '-S' is for other commands" fence -S redis://host "$FILE" 1
	refuses 64 "option '--ttl' is for other commands" fence --ttl 3s "$FILE" 1
	REDLOCK_FENCE='' refuses 64 "REDLOCK_FENCE '' must be" fence "$FILE"
	[[ ! -e $FILE ]]
	no_row_failed
}

@test "a FILE that looks like a server or begins with a dash is a file" {
	cd "$TMP"
	for file in -x redis:; do
		redlock fence -- "$file" 5
		expect 0
		[[ -s $TMP/$file ]]
	done
}

@test "of many that compare at once, none passes after a larger one" {
	local n
	cat >"$TMP/one" <<-'end'
		# what passed is noted under a lock of its own, in the order of the file system
		for i in 1 2 3 4 5 6 7 8 9 10; do
			fence=$((RANDOM % 1000 + 1))
			if "$REDLOCK" fence "$1" "$fence" 2>/dev/null; then
				echo "passed $fence" >>"$2"
			fi
		done
	end
	for n in 1 2 3 4 5 6; do
		: >"$TMP/log$n"
		spawn "one$n" bash "$TMP/one" "$FILE" "$TMP/log$n"
	done
	for n in 1 2 3 4 5 6; do
		finish "one$n"
	done
	# each saw what passed grow, and the largest is what is left
	for n in 1 2 3 4 5 6; do
		sort -snk2 "$TMP/log$n" | cmp - "$TMP/log$n"
	done
	has "$(cat "$TMP"/log* | sort -nk2 | tail -n 1 | sed 's/.* //')"
}

@test "who is in the way is waited for, and a FILE that is replaced meanwhile is the new one" {
	redlock fence "$FILE" 5
	# the lock that redlock takes, held by another
	spawn other python3 -c '
import fcntl, struct, sys
file = open(sys.argv[1], "r+b")
fcntl.fcntl(file, 38, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
open(sys.argv[1] + ".held", "w").close()
sys.stdin.readline() or __import__("signal").pause()
' "$FILE"
	wait_until '[[ -e $FILE.held ]]'
	spawn waits "$REDLOCK" fence "$FILE" 7
	wait_until '[[ $(readlink "/proc/$(pid waits)/fd/"*) == *"$FILE"* ]]'
	is_running waits
	printf '%-19s\n' 9 >"$FILE.new"
	mv "$FILE.new" "$FILE"
	kill -9 "$(pid other)"
	finish waits
	expect 1 '' "redlock: $FILE: fence 7 is smaller than 9, .*"
	has 9
}

@test "a reader that keeps FILE locked is waited for, but not for ever" {
	redlock fence "$FILE" 5
	spawn other python3 -c '
import fcntl, struct, sys
file = open(sys.argv[1], "rb")
fcntl.fcntl(file, 38, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
open(sys.argv[1] + ".held", "w").close()
__import__("signal").pause()
' "$FILE"
	wait_until '[[ -e $FILE.held ]]'
	SECONDS=0
	redlock fence "$FILE" 7
	expect 71 '' "redlock: $FILE: other processes have kept it locked for 10s, one or several in turn: fuser\(1\) names those that have it open"
	((SECONDS >= 9))
	has 5
	kill -9 "$(pid other)"
	redlock fence "$FILE" 7
	expect 0
	has 7
}

@test "readers that keep FILE locked in turn, none of them for long, are not said to be one process" {
	redlock fence "$FILE" 5
	# each goes after the next has the lock, too
	spawn others python3 -c '
import fcntl, os, struct, sys, time
while True:
    file = open(sys.argv[1], "rb")
    fcntl.fcntl(file, 38, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
    open(sys.argv[1] + ".held", "w").close()
    if "has_it" in globals():
        os.close(has_it)
    time.sleep(0.1)
    waits, has_it = os.pipe()
    if os.fork() > 0:
        os.close(has_it)
        os.read(waits, 1)
        os._exit(0)
    os.close(waits)
' "$FILE"
	wait_until '[[ -e $FILE.held ]]'
	redlock fence "$FILE" 7
	expect 71 '' "redlock: $FILE: other processes have kept it locked for 10s, .*"
	has 5
	kill -9 -- "-$(pid others)"
	redlock fence "$FILE" 7
	expect 0
}

@test "a fence that has passed is on the disk, its file and its directory, too" {
	local calls
	command -v strace >/dev/null
	trace() {
		calls=$(strace -e trace=pwrite64,fsync,exit_group "$REDLOCK" fence "$FILE" "$1" 2>&1 | sed -n 's/^\([a-z][a-z]*\).*/\1/p' | paste -sd ' ')
		[[ $calls == "$2" ]] || { echo "$calls, not $2" && false; }
	}
	strace -o /dev/null true 2>/dev/null || skip 'no process may be traced here'
	trace 1 'fsync pwrite fsync exit'
	trace 1 'pwrite fsync exit' # who wrote it may have been killed before it was on the disk
	trace 2 'pwrite fsync exit'
	echo 3 >"$FILE"
	trace 4 'pwrite fsync pwrite fsync exit'
}

@test "a file whose directory could not be written to the disk has no fence yet" {
	strace -o /dev/null true 2>/dev/null || skip 'no process may be traced here'
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # it cannot be traced
	run -71 strace -qq -o /dev/null -e inject=fsync:error=EIO:when=1 "$REDLOCK" fence "$FILE" 5
	[[ ! -s $FILE ]]
}
