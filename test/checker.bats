#!/usr/bin/env bats
# The checker of soak logs finds each violation in a log that has it, by its name and no other, and
# none in a log that has none.
# shellcheck disable=SC2154

load helper

CHECKER=$ROOT/test/soak/checker

# at MS EVENT...: a line of a log.
at() {
	local time=$1
	shift
	printf '%d %s\n' "$((time * 1000000))" "$*"
}

# section ID KEY KIND/LIMIT FENCE FROM TO: one that waits from FROM - 5, writes twice, ends well.
section() {
	local id=$1 key=$2 kind=$3 fence=$4 from=$5 to=$6
	wants "$id" "$key" "$kind" $((from - 5))
	at $((from - 1)) valid "id=$id" until=$(((to + 1000) * 1000000))
	enters "$id" "$key" "$kind" "$fence" "$from"
	at $((from + 1)) write "id=$id" "key=$key" "fence=$fence" accepted=1
	at $((from + 2)) write "id=$id" "key=$key" "fence=$fence" accepted=1
	at "$to" leave "id=$id"
	ends_at "$to" "$id"
}

wants() {
	at "$4" want "id=$1" "key=$2" "kind=${3%/*}" "limit=${3#*/}" ttl=1000 wait=1 owner=
}

enters() {
	at "$5" enter "id=$1" "key=$2" "kind=${3%/*}" "limit=${3#*/}" "fence=$4" "token=$(printf '%032x' "$1")" \
		"pid=$((1000 + $1))"
}

# ends_at MS ID [STATUS]: it has entered.
ends_at() {
	at $(($1 + 2)) dead "id=$2" last=$((($1 + 1) * 1000000))
	at $(($1 + 3)) end "id=$2" "status=${3-0}"
}

# without_entering ID STATUS
without_entering() {
	wants "$1" w exclusive/1 100
	at 200 end "id=$1" "status=$2"
}

# queued_up ID MS: it is seen in line then.
queued_up() {
	at "$2" queued "id=$1"
}

# What is right, of each sort.
clean() {
	section 1 a exclusive/1 10 100 200
	section 2 a exclusive/1 11 202 300
	section 3 a shared/0 13 302 400
	section 4 a shared/0 12 303 400 | sed 's/accepted=1/accepted=0/'
	section 5 a exclusive/1 14 402 500
	section 6 '100%25' permits/2 1 100 200
	section 7 '100%25' permits/2 2 101 300
	section 8 '100%25' permits/2 3 202 300
	section 9 b exclusive/1 10 100 110
	without_entering 10 75
	without_entering 11 69
	at 0 storm key=k kind=cut
	at 50 fault kind=cut on=1
	at 55 killed id=9 what=cut
	at 60 fault kind=cut on=0
}

# nested: a reentrant lock, and what is taken again within it.
nested() {
	local i
	for i in 20 21 22; do
		section $i r reentrant/0 5 $((100 + i)) $((300 - i))
	done | sed 's/token=[0-9a-f]*/token=aa/; s/owner=/owner=aa/'
	section 23 r reentrant/0 6 400 500 | sed 's/token=[0-9a-f]*/token=bb/; s/owner=/owner=bb/'
}

# killed [UNTIL]: a holder that dies at 200, in a calm, and is another's at UNTIL (1200).
killed() {
	at 0 calm key=k
	section 30 k exclusive/1 1 100 200 | sed '/ leave /d'
	at 200 killed id=30 what=kill
	section 31 k exclusive/1 2 "${1-1200}" $((${1-1200} + 10))
	at $((${1-1200} + 100)) storm key=k kind=stop
}

# lined_up X Y Z: 40, 41 and 42 stand in line one behind the other, and are served in this order.
lined_up() {
	local i id from=300
	at 10 calm key=q
	at 1000 storm key=q kind=kill
	for i in 0 1 2; do queued_up "4$i" "20$i"; done
	for id; do
		section "$id" q exclusive/1 "$from" "$from" $((from + 10))
		((from += 12))
	done | sed "s/^[0-9]* want/100000000 want/"
}

# samples RSS FDS [RSS FDS]: the first three quarters of a holder's samples, and the last.
samples() {
	local i
	section 50 s exclusive/1 1 100 2000
	for i in {0..23}; do
		((i < 18)) || set -- "${3-$1}" "${4-$2}"
		at $((200 + i * 50)) sample id=50 pid=1 "rss=$(($1 + i % 3 * 40))" "fds=$2"
	done
}

setup_file() {
	clean >"$BATS_FILE_TMPDIR/clean"
}

# log PLANT...: a log of `clean` and of what PLANT writes.
log() {
	at 0 run seed=1 duration=10 servers=3
	cat "$BATS_FILE_TMPDIR/clean"
	"$@"
	at 90000 "done"
}

# judge: what the checker says of the log that it reads.
judge() {
	cat >"$TMP/log"
	run --separate-stderr "$CHECKER" "$TMP/log"
}

# finds NAME [TEXT]: one violation, of this name.
finds() {
	judge
	[[ $status == 1 && ${lines[0]} == "$1: "*"${2-}"* && ${lines[1]} == "sections: "* &&
		${lines[-1]} == "1 violations" && ! $stderr ]] || {
		printf 'not %s alone:\n%s\n%s\n' "$1" "$output" "$stderr" >&2
		return 1
	}
}

finds_nothing() {
	judge
	[[ $status == 0 && ${lines[-1]} == "0 violations" && ! $stderr ]] || {
		printf '%s\n%s\n' "$output" "$stderr" >&2
		return 1
	}
}

@test "a log without violations has none" {
	log true | finds_nothing
}

@test "so has one with all that is allowed, and tells its figures" {
	all() {
		nested
		killed
		lined_up 40 41 42
		samples 2000 9
	}
	log all >"$TMP/whole"
	finds_nothing <"$TMP/whole"
	judge <"$TMP/whole"
	[[ $output == *"sections: 19 of 21 wishes, on 7 keys"* ]]
	[[ $output == *"by kind: exclusive 10, permits 3, reentrant 4, shared 2"* ]]
	[[ $output == *"hand-overs: 5"* && $output == *"longest wait: 224.0 ms"* ]]
	[[ $output == *"kills: cut 1, kill 1"* && $output == *"1 in a calm, free after 1000.0 ms"* ]]
	[[ $output == *"in line in a calm: 3"* && $output == *"faults: cut 1"* ]]
}

@test "lines may be out of order" {
	{
		log killed | head -n 1
		log killed | sed '1d; $d' | sort -k 2
		log killed | tail -n 1
	} | finds_nothing
}

# ---------------------------------------------------------------- the log

@test "an empty log is a violation, and one that cannot be read an error" {
	finds empty </dev/null
	run --separate-stderr "$CHECKER" "$TMP/none"
	[[ $status == 66 && ! $output && $stderr == "checker: "* ]]
}

@test "a log that is cut short is a violation: behind a line, and within one" {
	log killed | sed '$d' | finds cut
	log killed | head -n 30 | finds cut
	log killed | head -c 2000 | finds cut
	log killed | head -c -1 | finds cut
}

@test "a line that is none is a violation, of whatever sort" {
	local line number
	log true | sed '$d' >"$TMP/garbage"
	number=$(wc -l <"$TMP/garbage")
	for line in x '' ' ' '1' '1 ' '1 nothing id=1' '-1 leave id=1' '1.5 leave id=1' '1 leave' '1 leave id=' \
		'1 leave id=x' '1 leave id=1 id=1' '1 leave  id=1' '1 leave id=-1' '1 left server=0 what= name=' \
		'1 calm key=%' '1 calm key=%g1' $'1 calm key=\xff' $'1 calm key=\a' '1 run seed=1 duration=1 servers=1' \
		'1 killed id=1 what=kill '"$(head -c 600 /dev/zero | tr '\0' x)" '99999999999999999999 calm key=a' \
		'1 write id=9 key=b fence=10 accepted=2'; do
		printf '%s\n' "$line" >>"$TMP/garbage"
		echo "garbage: line $((++number)): " >>"$TMP/wanted"
	done
	at 90000 "done" >>"$TMP/garbage"
	judge <"$TMP/garbage"
	[[ $status == 1 && ${lines[-1]} == "$(wc -l <"$TMP/wanted") violations" ]]
	diff <(grep -o '^garbage: line [0-9]*: ' <<<"$output") "$TMP/wanted"
	judge < <(log true | tr r '\0')
	[[ $status == 1 && $output == *"garbage: line 1: "* ]]
	log true | sed '1d' | finds garbage 'line 1'
	{
		log true
		at 90001 calm key=a
		at 90002 "done"
	} | finds garbage 'behind'
}

@test "more that is said of an event is no violation" {
	log at 300 fault kind=stop on=1 server=2 for=10 | finds_nothing
}

@test "an id that was never wanted is a violation" {
	log at 300 freed id=99 | finds unknown 'id 99'
}

@test "what can be only once is a violation when it is twice" {
	log wants 1 a exclusive/1 400 | finds twice 'id 1'
	log enters 1 a exclusive/1 10 400 | finds twice 'id 1'
	log at 200 end id=10 status=75 | finds twice 'id 10'
}

@test "entering something else than was wanted is a violation" {
	log section 60 d exclusive/1 1 100 200 | sed 's/^\(105\|100\)000000 enter id=60 key=d /&x=1 /; s/enter id=60 key=d/enter id=60 key=e/' |
		finds differs 'id 60'
}

@test "a section without its end, its death is a violation" {
	log section 60 d exclusive/1 1 100 200 | sed '/ dead id=60/d' | finds missing 'dead'
	log section 60 d exclusive/1 1 100 200 | sed '/ end id=60/d' | finds missing 'end'
	log wants 60 d exclusive/1 100 | finds missing 'id 60'
}

@test "a log in which nobody ever entered is a violation" {
	{
		at 0 run seed=1 duration=1 servers=1
		without_entering 1 75
		at 300 "done"
	} | finds nothing
}

# ---------------------------------------------------------------- exclusion

# two KIND/LIMIT KIND/LIMIT: at one time.
two() {
	section 60 d "$1" 1 100 200
	section 61 d "$2" 2 199 300
}

@test "two at one time are a violation, but of those that may be" {
	log two exclusive/1 exclusive/1 | finds overlap 'id 61'
	log two shared/0 exclusive/1 | finds overlap 'id 61'
	log two exclusive/1 shared/0 | finds overlap 'id 61'
	log two permits/1 permits/1 | finds overlap 'id 61'
	log two permits/2 permits/3 | finds overlap 'id 61'
	log two permits/2 shared/0 | finds overlap 'id 61'
	log two reentrant/0 reentrant/0 | finds overlap 'id 61'
	log two shared/0 shared/0 | finds_nothing
	log two permits/2 permits/2 | finds_nothing
}

@test "more than there are permits are a violation" {
	three() {
		two permits/2 permits/2
		section 62 d permits/2 3 199 250 | sed '/ write /d'
	}
	log three | finds overlap 'id 62'
}

@test "one that lives on behind its last act is a violation where another has begun" {
	lives() {
		section 60 d exclusive/1 1 100 200 | sed 's/ last=.*/ last=231000000/'
		section 61 d exclusive/1 2 230 300
	}
	log lives | finds overlap '1.0 ms'
}

@test "another owner within a reentrant lock is a violation" {
	other() {
		nested
		section 60 r reentrant/0 7 350 450 | sed '/ write /d'
	}
	log other | finds overlap 'id 23'
}

# ---------------------------------------------------------------- fences

# behind FENCE: a section that begins when one with fence 7 is over.
behind() {
	section 60 d exclusive/1 7 100 200 | sed '/ write /d'
	section 61 d exclusive/1 "$1" 300 400 | sed '/ write /d'
}

@test "a fence that does not rise is a violation" {
	log behind 6 | finds fence 'id 61'
	log behind 7 | finds fence 'id 61'
	log behind 8 | finds_nothing
}

@test "a fence that falls behind another kind's, or another owner's, is a violation" {
	log behind 6 | sed 's/kind=exclusive limit=1 fence=6/kind=shared limit=0 fence=6/; /want id=61/s/kind=exclusive limit=1/kind=shared limit=0/' |
		finds fence 'id 61'
	log nested | sed '/id=23/s/fence=6/fence=4/; /write id=23/d' | finds fence 'id 23'
}

@test "the same fence for two at one time is a violation of its own" {
	same() {
		behind 7 | sed '/id=61/s/^[3-4]/1/; /id=61 last/s/40/10/'
	}
	judge < <(log same)
	[[ $status == 1 && $output == *"overlap: id 61"* && $output == *"fence: ids 60 and 61"* &&
		${lines[-1]} == "2 violations" ]]
}

@test "the same token for two is a violation" {
	log behind 8 | sed '/enter id=61/s/token=[0-9a-f]*/token=0000000000000000000000000000003c/' |
		finds token 'ids 60 and 61'
}

@test "a write behind one with a larger fence is a violation where it was accepted" {
	late() {
		behind 8
		at 150 write id=60 key=d fence=7 accepted=1
		at 350 write id=61 key=d fence=8 accepted=1
		at 360 write id=60 key=d fence=7 accepted="$1"
	}
	log late 1 | sed '/150000000 write id=60/d' | finds stale 'id 60'
	log late 1 | finds interleave 'id 60'
	log late 0 | finds_nothing
}

@test "writes of those that hold together may interleave" {
	mixed() {
		two shared/0 shared/0 | sed 's/fence=1/fence=2/'
		at 110 write id=61 key=d fence=2 accepted=1
		at 120 write id=60 key=d fence=2 accepted=1
	}
	log mixed | finds_nothing
}

# ---------------------------------------------------------------- leases

@test "a section that lives when its validity is over is a violation" {
	log section 60 d exclusive/1 1 100 200 | sed '/valid id=60/s/until=.*/until=201000000/' |
		finds validity 'id 60'
	log section 60 d exclusive/1 1 100 200 | sed '/valid id=60/s/until=.*/until=201000001/' | finds_nothing
}

@test "of several ends of validity the last counts" {
	renewed() {
		section 60 d exclusive/1 1 100 200 | sed '/valid id=60/s/until=.*/until=150000000/'
		at 140 valid id=60 until="$1"
		at 141 valid id=60 until=160000000
	}
	log renewed 250000000 | finds_nothing
	log renewed 200000000 | finds validity 'id 60'
}

@test "entering without any validity is a violation" {
	log section 60 d exclusive/1 1 100 200 | sed '/valid id=60/d' | finds validity 'id 60'
}

@test "a killed holder that keeps others out for longer than its ttl is a violation in a calm" {
	log killed 3100 | finds_nothing
	log killed 3300 | finds freed 'id 30'
	log killed 3300 | sed '/ calm /d' | finds_nothing
	log killed 3300 | sed 's/^3400000000 storm/2000000000 storm/' | finds_nothing
}

@test "that a killed holder's key was seen free counts, and when it never was" {
	freed() {
		killed 9000
		at "$1" freed id=30
	}
	log freed 2000 | finds_nothing
	log freed 4000 | finds freed 'id 30'
	log killed | sed '/id=31/d; / storm key=k kind=stop/d' | finds freed 'id 30'
}

@test "a waiter that is killed keeps nobody out" {
	waiter() {
		killed 3300 | sed 's/^200000000 killed/50000000 killed/; /storm/d'
	}
	log waiter | finds_nothing
}

# ---------------------------------------------------------------- order

@test "who is served before one that was in line earlier is a violation" {
	log lined_up 40 41 42 | finds_nothing
	log lined_up 41 40 42 | finds order 'id 40'
	judge < <(log lined_up 42 40 41 | sed '/ write /d')
	[[ $status == 1 && ${lines[-1]} == "2 violations" ]]
	log lined_up 41 42 40 | finds order 'id 40'
}

@test "in a storm, or when it was hurt, one may be passed" {
	log lined_up 41 40 42 | sed '/calm key=q/d' | finds_nothing
	log lined_up 41 40 42 | sed 's/^1000000000 storm/299000000 storm/' | finds_nothing
	stopped() {
		lined_up 41 40 42
		at 250 killed id=40 what=stop
	}
	log stopped | finds_nothing
	log lined_up 41 40 42 | sed '/queued id=40/d' | finds_nothing
}

@test "who may hold together may begin in any order" {
	log lined_up 41 40 42 | sed '/id=4[01]/s/kind=exclusive limit=1/kind=shared limit=0/' | finds_nothing
	log lined_up 41 40 42 | sed '/id=4[12]/s/kind=exclusive limit=1/kind=shared limit=0/' | finds order 'id 40'
}

# ---------------------------------------------------------------- ends

@test "a status that is not what happened is a violation" {
	local code
	for code in 0 76 124; do log without_entering 60 $code | finds status 'id 60'; done
	for code in 69 75 77; do
		log section 60 d exclusive/1 1 100 200 | sed "/end id=60/s/0$/$code/" | finds status 'id 60'
		log without_entering 60 $code | finds_nothing
	done
	for code in 76 124 137; do
		log section 60 d exclusive/1 1 100 200 | sed "/end id=60/s/0$/$code/" | finds_nothing
	done
}

@test "what is left behind is a violation" {
	log at 80000 left server=1 what=ttl name=a | finds left 'ttl a'
}

@test "a holder that grows is a violation: in memory, and in files" {
	log samples 2000 9 2256 9 | finds_nothing
	log samples 2000 9 2257 9 | finds growth 'KiB'
	log samples 2000 9 2000 10 | finds growth 'files'
	log samples 2000 9 2000 8 | finds growth 'files'
}

# ---------------------------------------------------------------- size

@test "a long log is read in a time that its length has a right to" {
	python3 - >"$TMP/long" <<-'PYTHON'
		print('0 run seed=1 duration=1 servers=3')
		for i in range(5000):
		    t, key, fence = 1000000 * (10 * i + 1), 'k%d' % (i % 3), i + 1
		    print(f'{t} want id={i} key={key} kind=exclusive limit=1 ttl=1000 wait=1 owner=')
		    print(f'{t} valid id={i} until={t + 10**9}')
		    print(f'{t + 1} enter id={i} key={key} kind=exclusive limit=1 fence={fence} token={i:032x} pid={i}')
		    print(f'{t + 2} write id={i} key={key} fence={fence} accepted=1')
		    print(f'{t + 3} killed id={i} what=kill')
		    print(f'{t + 4} dead id={i} last={t + 10 if i != 1500 else t + 2 * 10**9}')
		    print(f'{t + 5} end id={i} status=137')
		print('900000000000 done')
	PYTHON
	time timeout 120 "$CHECKER" "$TMP/long" >"$TMP/found" || [[ $? == 1 ]]
	[[ $(grep -c ': id 15' "$TMP/found") -ge 2 && $(<"$TMP/found") == *"sections: 5000 of 5000 wishes"* ]]
}
