#!/usr/bin/env bats
# The examples of redlock(1), redlock-acquire(1), redlock-doctor(1), redlock-run(1), redlock-status(1) and redlock.sh(1),
# as they stand there. What they call, such as `build` or `./deploy.sh`, are scripts of the tests.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for inner shells; tests are subshells; helpers set and use them

load ../lib/helper
load ../lib/cli
load ../lib/script
load ../lib/tls
load ../lib/metrics

setup_file() {
	servers_start 1
}

setup() {
	TMP=$BATS_TEST_TMPDIR
	unset SHELL
	rcli 0 FLUSHALL >/dev/null
	mkdir "$TMP/bin"
	ln -s "$REDLOCK" "$TMP/bin/redlock"
	cp "$ROOT/scripts/redlock.sh" "$TMP/bin"
	PATH=$TMP/bin:$PATH
	cd "$TMP" || return
}

# examples PAGE: all of them, each with a form feed after it.
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/{ /^\.Bd -literal/,/^\.Ed/p; }' "$ROOT/man/$1" |
		sed '/^\.Bd/d; s/^\.Ed/\f/; s/\\e/\\/g; s/^\\&//' | sed -z 's/\n\f\n/\f/g'
}

# example PAGE TEXT: the example that a line with TEXT introduces.
example() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$ROOT/man/$1" | TEXT=$2 awk '
		/^\.Bd / && found { shown = 1; next }
		/^\.Ed/ && shown { exit }
		shown
		index($0, ENVIRON["TEXT"]) { found = 1 }
	' | sed 's/\\e/\\/g; s/^\\&//'
}

# program NAME: a script from standard input; see script_text.
program() {
	script_text >"$1"
	chmod +x "$1"
}

# steps NAME...: programs that note their name, arguments and what is held.
steps() {
	local name
	for name; do
		program "$name" <<-'end'
			said "$(printf '%s ' "${0##*/}" "$@")$(redlock list | sed 's/[: ].*//' | xargs)"
		end
	done
}

is_free() {
	[[ $(rcli 0 EXISTS "$@") == 0 ]]
}

@test "every example is run by a test" {
	local page text shown found=0
	for page in redlock.1 redlock-acquire.1 redlock-doctor.1 redlock-run.1 redlock-status.1 redlock.sh.1; do
		shown=$(grep -ohE "(example $page|cron_runs) '[^']+'" "$ROOT/test/commands/examples.bats" | sed "s/^[^']*'//; s/'$//" |
			while IFS= read -r text; do example "$page" "$text" | md5sum; done)
		while IFS= read -rd $'\f' text; do
			((++found))
			[[ $shown == *"$(md5sum <<<"$text")"* ]] || { echo "$page: no test runs: $text" && false; }
		done < <(examples "$page")
	done
	((found >= 19))
}

@test "no example of a manual has a here-document: man(1) puts blanks before its end, so a shell would wait for it" {
	local blocks
	blocks=$(sed -n '/^\.Bd -literal/,/^\.Ed/p' "$ROOT"/man/*.[1-8])
	(($(grep -c '^\.Ed' <<<"$blocks") >= 40))
	run grep -E '<<-?["'"'"'\\]?[A-Za-z_]' <<<"$blocks"
	expect 1 ''
}

# without the lock an acquire or a wait with -E 0 succeeds, too
@test "no example of acquire or wait has another exit status for a KEY that is held, and the manual says why" {
	local page all
	for page in acquire status; do
		all+=$(examples "redlock-$page.1")
		tr '\n' ' ' <"$ROOT/man/redlock-$page.1" | grep -q 'success does not mean that'
	done
	[[ $all == *'redlock acquire -'* && $all == *'redlock wait -'* ]]
	run grep -E 'redlock (acquire|wait) .*(-[a-z]*E|--conflict)' <<<"$all"
	expect 1 ''
}

# ---------------------------------------------------------------- redlock(1)

# deploys: runs the first example, on three servers of ours, from other.sh.
deploys() {
	servers_start 3 --appendonly yes --appendfsync always
	export REDLOCK_QUARANTINE=0
	example redlock.1 'A lock for deployments' | sed "s#redis://lock1,redis://lock2,redis://lock3#'$REDLOCK_SERVERS'#" >main.sh
}

@test "the deployment on three servers runs under its lock, or says that another one does" {
	local i
	deploys
	steps deploy.sh
	run --separate-stderr sh main.sh
	expect 0
	has_said 'deploy.sh deploy/shop'
	for i in 0 1 2; do rcli "$i" SET deploy/shop another >/dev/null; done
	sed -i 's/-w 10m/-w 1ms/' main.sh
	run --separate-stderr sh main.sh
	[[ $output == 'still being deployed, try later' && $stderr == *'held by another'* ]]
	[[ $(wc -l <said) == 1 ]]
}

@test "the deployment on three servers is stopped if it loses its lock, and says so" {
	local i
	deploys
	program deploy.sh <<-'end'
		said $$
		exec sleep 300
	end
	REDLOCK_TTL=6s spawn job sh main.sh
	wait_until '[[ -s said ]]'
	for i in 0 1 2; do rcli "$i" SET deploy/shop another >/dev/null; done
	finish job
	[[ $output == 'lost the lock: deployment was stopped' && $stderr == *'lock lost: '* ]]
	wait_until '! is_alive "$(<said)"'
}

@test "processes of one machine lock each other out by local:, without a server being set up" {
	set_new
	export XDG_RUNTIME_DIR=$SET
	unset REDLOCK_SERVERS
	program bin/rsync <<-'end'
		said "$* $(redlock list -S local: | sed 's/:.*//')"
		redlock acquire -n -S local: photos || said "$?"
	end
	example redlock.1 'Locks among the processes of one machine' >job.sh
	run --separate-stderr sh job.sh
	redis-cli -s "$SET/redlock/redis.sock" SHUTDOWN NOSAVE
	expect 0 '' '.*held by .*'
	diff said - <<-end
		-a photos/ backup:photos/ photos
		75
	end
}

# ---------------------------------------------------------------- redlock-doctor(1)

@test "doctor on each host says whether the servers would grant locks of these keys" {
	example redlock-doctor.1 'When servers have been set up' >job.sh
	run --separate-stderr sh job.sh
	[[ $status == 0 && $output == *'1 of 1 servers would grant a lock, 1 needed: 0 more may fail' ]]
	rcli 0 CONFIG SET requirepass hunter2
	run --separate-stderr sh job.sh
	redis-cli -s "$SERVERS/0/redis.sock" -a hunter2 --no-auth-warning CONFIG SET requirepass ''
	[[ $status == 77 && $output == *': error: '* ]]
}

# checks_servers: the two commands of the example, the first as cron(8) runs it; $output and what the second one returns.
checks_servers() {
	local line
	example redlock-doctor.1 'may fail:' >jobs
	line=$(head -n 1 jobs)
	[[ $line =~ ^([0-9*/-]+\ +){5}(redlock .*) ]]
	run env -i PATH="$TMP/bin:/usr/bin:/bin" REDLOCK_SERVERS="$REDLOCK_SERVERS" REDLOCK_QUARANTINE=0 sh -c "${BASH_REMATCH[2]}"
	sed 1d jobs | REDLOCK_QUARANTINE=0 sh >answer
}

@test "cron mails what is wrong with servers, and a check fails if no further one may fail" {
	local checked=0
	servers_start 3 --appendonly yes --appendfsync always --maxmemory-policy noeviction
	checks_servers
	[[ ! $output && $(<answer) == true ]]
	server_kill 2
	checks_servers || checked=$?
	[[ $checked == 1 && $output == *': error: '* && $(<answer) == false ]]
}

# ---------------------------------------------------------------- redlock-acquire(1)

@test "the deployment holds its lock until its script ends" {
	example redlock-acquire.1 'A deployment that holds a lock' >deploy.sh
	steps bin/build bin/upload
	run --separate-stderr setsid -w sh deploy.sh
	expect 0
	diff said - <<-end
		build deploy
		upload deploy
	end
	wait_until 'is_free deploy'
}

@test "the deployment goes no further if a step fails, or if others hold its lock" {
	example redlock-acquire.1 'A deployment that holds a lock' >deploy.sh
	steps bin/upload
	program bin/build <<<'exit 3'
	run --separate-stderr setsid -w sh deploy.sh
	[[ $status == 3 && ! -e said ]]
	wait_until 'is_free deploy'
	rcli 0 SET deploy another >/dev/null
	sed -i 's/-w 10m/-w 1ms/' deploy.sh
	run --separate-stderr setsid -w sh deploy.sh
	[[ $status == 75 && ! -e said ]]
}

@test "the deployment is stopped with what it has started if its lock is lost" {
	example redlock-acquire.1 'A deployment that holds a lock' >deploy.sh
	steps bin/upload
	program bin/build <<-'end'
		said $$
		exec sleep 300
	end
	REDLOCK_TTL=6s spawn job sh deploy.sh
	wait_until '[[ -s said ]]'
	rcli 0 SET deploy another >/dev/null
	finish job
	[[ $status == 143 && $stderr == *'lock lost: '* ]]
	wait_until '! is_alive "$(<said)"'
	[[ $(wc -l <said) == 1 ]]
}

@test "a lock over some commands is held by these only" {
	{
		example redlock-acquire.1 'A lock over some commands'
		echo after
	} >job.sh
	steps bin/build bin/upload bin/after
	run --separate-stderr sh job.sh
	expect 0
	diff said - <<-end
		build deploy
		upload deploy
		after 
	end
}

@test "the backup holds both locks until it ends, and none while others have one" {
	local key
	example redlock-acquire.1 'A backup during which neither' >backup.sh
	steps bin/pg_dump bin/rsync
	for key in database photos; do
		rcli 0 SET "$key" another >/dev/null
		spawn backup sh backup.sh
		wait_until '(($(rcli 0 ZCARD "{$key}:redlock:queue") == 1))'
		# the one that is waited for last may be held meanwhile
		[[ $key == photos ]] || is_free photos
		[[ ! -e said ]]
		rcli 0 DEL "$key" >/dev/null
		finish backup
		expect 0
		diff said - <<-end
			pg_dump -f backup/shop.sql shop database photos
			rsync -a photos/ backup/photos/ database photos
		end
		wait_until 'is_free database photos'
		rm said
	done
}

@test "the backup is stopped if one of its locks is lost, and the other one is given back" {
	local key other
	example redlock-acquire.1 'A backup during which neither' >backup.sh
	steps bin/rsync
	program bin/pg_dump <<-'end'
		said $$
		exec sleep 300
	end
	for key in database photos; do
		[[ $key == database ]] && other=photos || other=database
		REDLOCK_TTL=6s spawn backup sh backup.sh
		wait_until '[[ -s said ]]'
		rcli 0 SET "$key" another >/dev/null
		finish backup
		[[ $status == 143 && $stderr == *'lock lost: '* ]]
		wait_until '! is_alive "$(<said)"'
		wait_until 'is_free "$other"'
		rm said
		rcli 0 DEL "$key" >/dev/null
	done
}

@test "the loop checks its lease before each turn, and stops if it is gone" {
	example redlock-acquire.1 'A loop without a keeper' >job.sh
	touch 1.old 2.old 3.old
	steps bin/archive
	run --separate-stderr sh job.sh
	expect 0
	diff said - <<-end
		archive 1.old cleanup
		archive 2.old cleanup
		archive 3.old cleanup
	end
	is_free cleanup
	rm said
	program bin/archive <<-'end'
		said "$1"
		[ "$1" != 2.old ] || redlock break --now -yq cleanup
	end
	run --separate-stderr sh job.sh
	[[ $status == 1 && $(xargs <said) == '1.old 2.old' && $stderr == *'cleanup'* ]]
}

@test "a token in the environment releases its lock" {
	example redlock-acquire.1 'A lock without a keeper; the token' >job.sh
	steps bin/build
	run --separate-stderr sh job.sh
	expect 0
	has_said 'build deploy'
	is_free deploy
	# without redlock nothing is built
	rm said bin/redlock
	PATH=$TMP/bin:/usr/bin:/bin run -127 sh job.sh
	[[ ! -e said ]]
}

# ---------------------------------------------------------------- redlock.sh(1)

@test "the backup of redlock.sh(1) leaves the photos alone while they are published" {
	example redlock.sh.1 'A backup that leaves the photos alone' >backup.sh
	mkdir photos backup
	touch photos/1
	steps bin/rsync
	rcli 0 SET photos publisher >/dev/null
	spawn backup sh backup.sh
	wait_until '(($(rcli 0 ZCARD "{photos}:redlock:queue") == 1))'
	[[ $(rcli 0 EXISTS backup) == 1 && ! -e said ]]
	rcli 0 DEL photos >/dev/null
	finish backup
	expect 0
	has_said 'rsync -a photos/ backup:photos/ backup photos'
	wait_until 'is_free photos backup'
	rcli 0 SET backup another >/dev/null
	run --separate-stderr sh backup.sh
	[[ $status == 75 ]]
}

@test "the loop of redlock.sh(1) stops when its lock is gone" {
	{
		echo '. redlock.sh'
		example redlock.sh.1 'A loop that stops when the lock is gone'
	} >job.sh
	touch 1.old 2.old 3.old
	program bin/archive <<-'end'
		said "$1"
		[ "$1" != 2.old ] || redlock break --now -yq cleanup
	end
	run --separate-stderr sh job.sh
	[[ $status == 1 && $(xargs <said) == '1.old 2.old' ]]
}

# ---------------------------------------------------------------- redlock-run(1)

# cron_runs TEXT: the job in the crontab that a line with TEXT introduces, as cron(8) runs it.
cron_runs() {
	local line
	line=$(example redlock-run.1 "$1" | tail -n 1)
	[[ $line =~ ^([0-9*/-]+\ +){5}(redlock .*) ]]
	PATH=$TMP/bin:/usr/bin:/bin run --separate-stderr env -i PATH="$TMP/bin:/usr/bin:/bin" \
		REDLOCK_SERVERS="$REDLOCK_SERVERS" TMP="$TMP" sh -c "${BASH_REMATCH[2]}"
}

@test "of the cron jobs of a fleet one runs, and the others say nothing" {
	steps bin/report.sh
	rcli 0 SET nightly another >/dev/null
	cron_runs 'A cron job that runs on one of several machines'
	expect 0
	[[ ! -e said ]]
	rcli 0 DEL nightly >/dev/null
	cron_runs 'A cron job that runs on one of several machines'
	expect 0
	has_said 'report.sh nightly'
	is_free nightly
}

@test "a host whose clock is late finds that the cron job of this minute has been run" {
	steps bin/beat.sh
	cron_runs 'One run a minute'
	cron_runs 'One run a minute'
	expect 0
	[[ $(wc -l <said) == 1 ]]
	(($(rcli 0 PTTL beat) > 0))
}

@test "the daily cron job is tried again if it failed, and not run again if it succeeded" {
	steps bin/report.sh
	mv bin/report.sh bin/succeeds
	printf '#!/bin/sh\nexit 3\n' >bin/report.sh
	chmod +x bin/report.sh
	cron_runs 'Once a day'
	expect 3
	mv bin/succeeds bin/report.sh
	cron_runs 'Once a day'
	expect 0
	cron_runs 'Once a day'
	expect 0
	[[ $(wc -l <said) == 1 ]]
}

# starts SCHEDULE: at which minutes of the day cron starts the job, by the first two of its fields.
starts() {
	local at minute hour step=1 first=0 last=23
	read -r minute hour _ <<<"$1"
	[[ ! $minute =~ ^\*/([0-9]+)$ ]] || step=${BASH_REMATCH[1]}
	[[ ! $hour =~ ^([0-9]+)-([0-9]+)$ ]] || first=${BASH_REMATCH[1]} last=${BASH_REMATCH[2]}
	for ((at = first * 60; at < last * 60 + 60; at += step)); do echo "$at"; done
}

# daily SCHEDULE HOURS: with --once-in HOURSh the job succeeds once on each of 40 days, at the first start that day, or
# at a later one if it failed before, on each day more or less often.
daily() {
	local day at left last=-1000000
	for ((day = 0; day < 40; day++)); do
		left=$((day * 7 % 16)) # which fail
		for at in $(starts "$1"); do
			((day * 1440 + at - last >= $2 * 60)) || continue
			((left-- > 0)) || last=$((day * 1440 + at))
			((left >= -1)) || { echo "day $day: again at $((at / 60)):$((at % 60))" && return 1; }
		done
		((left == -1)) || { echo "day $day: $left" && return 1; }
	done
}

@test "the daily cron job succeeds once on each day, at its first start that does not fail" {
	local line text
	line=$(example redlock-run.1 'Once a day' | tail -n 1)
	text=$(grep -A 1 -F '`*/' "$ROOT/README")
	[[ $line =~ ^([^a-z]*)\ redlock.*--once-in\ ([0-9]+)h ]]
	daily "${BASH_REMATCH[@]:1:2}"
	[[ $text =~ \`([^\`]*)\`\ and\ --once-in\ ([0-9]+)h ]]
	daily "${BASH_REMATCH[@]:1:2}"
}

@test "of the encodings that parallel starts, three run at a time" {
	parallel --version 2>/dev/null | grep -q GNU || skip "needs GNU parallel"
	example redlock-run.1 'starts them:' >job.sh
	mkdir stamps
	touch {1..7}.wav '8 with $blanks.wav'
	program encode.sh <<-'end'
		[ -f "$1" ] && said "$1"
		exec "$STAMP" -u "$TMP/end" "$TMP/stamps"
	end
	spawn job sh job.sh
	wait_until 'stamped stamps 3'
	wait_until '(($(rcli 0 ZCARD "{encode}:redlock:queue") == 5))'
	[[ $(beats stamps | wc -l) == 3 ]]
	touch end
	finish job
	expect 0
	[[ $(peak stamps) == 3 ]]
	[[ $(sort said) == "$(printf '%s\n' *.wav | sort)" ]]
}

@test "of the test runs that share four databases, each has one for itself" {
	local i
	example redlock-run.1 'Any number of test runs' >job.sh
	program check.sh <<-'end'
		said "$1"
		until [ -e "$TMP/end" ]; do sleep 0.01; done
	end
	for i in {1..5}; do spawn "run$i" sh job.sh; done
	wait_until '[[ $(sort said) == $(printf "test%s\n" 1 2 3 4) ]]'
	wait_until '(($(rcli 0 ZCARD "{databases}:redlock:queue") == 1))'
	touch end
	for i in {1..5}; do
		finish "run$i"
		expect 0
	done
	[[ $(sort -u said) == $(printf 'test%s\n' 1 2 3 4) && $(wc -l <said) == 5 ]]
}

# ci_job: what GitLab's runner makes of the job on the page, but for the servers.
ci_job() {
	local job
	job=$(example redlock-run.1 'A job of GitLab CI')
	echo 'set -e'
	sed -n 's/^ *\(REDLOCK_[A-Z]*\): \(.*\)/export \1="\2"/p' <<<"$job"
	echo "export REDLOCK_SERVERS=$REDLOCK_SERVERS"
	sed -n '/^  script:/,$s/^ *- //p' <<<"$job"
}

@test "a job of the CI says who it is, another one waits for it, and gets its lock if it is killed" {
	local container=(unshare --pid --fork --kill-child)
	((EUID == 0)) || container+=(--user --map-current-user)
	"${container[@]}" true || skip "no pid namespace can be made here"
	ci_job >job.sh
	[[ $(grep -c '^export REDLOCK_' job.sh) == 3 ]]
	program deploy.sh <<-'end'
		said "$CI_JOB_URL"
		step "$CI_JOB_URL"
		exit 7
	end
	CI_JOB_URL=1 REDLOCK_TTL=6s spawn one "${container[@]}" sh job.sh
	wait_until 'has_said 1'
	redlock status production
	[[ $output == *"'1'"* ]]
	CI_JOB_URL=2 REDLOCK_TTL=6s spawn two "${container[@]}" sh job.sh
	wait_until '(($(rcli 0 ZCARD "{production}:redlock:queue") == 1))'
	kill -9 "$(pid one)"
	wait_until 'has_said 2' 40
	step 2
	finish two
	[[ $status == 7 ]]
}

# database NAME: the migration's files for psql or sqlite3; `query SQL` asks that.
database() {
	local name=$1
	example redlock-run.1 'This works in PostgreSQL and in SQLite' >page
	sed -n "/^redlock run -c '$name /,/ shop\$/p" page >migrate.sh
	sed -n '/^-- migrate.sql$/,$p' page >migrate.sql
	query "$(sed -n 's/^-- once: //p' page)"
	# who is told to waits before it begins
	program "bin/$name" <<-end
		if [ "\${PAUSE-}" ]; then said pause; step "\$PAUSE"; fi
		exec "$(type -P "$name")" "\$@"
	end
}

# seen: the largest fence that the database has seen.
seen() {
	query 'SELECT fence FROM fences'
}

migrates_under_a_fence() {
	local fence
	run --separate-stderr sh migrate.sh
	[[ $status == 0 && ! $stderr ]]
	[[ $(query 'SELECT count(*) FROM notes') == 0 && $(seen) == "$(fence_at 0 shop)" ]]
	# the same holder may do more
	fence=$(seen)
	REDLOCK_FENCE=$fence sh -c "$(command_of migrate.sh)"
	[[ $(seen) == "$fence" ]]
}

# command_of FILE: what `redlock run -c` runs there.
command_of() {
	sed "s/^redlock run -c '//; s/' shop\$//" "$1"
}

a_lost_holder_changes_nothing() {
	PAUSE=1 REDLOCK_ON_LOST=warn spawn lost sh migrate.sh
	wait_until 'has_said pause'
	rcli 0 DEL shop >/dev/null
	run sh migrate.sh
	[[ $status == 0 ]]
	local fence
	fence=$(seen)
	query 'DROP TABLE notes'
	step 1
	finish lost
	[[ $status != 0 && ${stderr,,} == *'not'*'null'*'constraint'* ]]
	[[ $(seen) == "$fence" ]]
	run ! query 'SELECT count(*) FROM notes'
}

# a_smaller_fence_waits_and_is_refused CONDITION: `open` has a transaction of a larger fence, which is
# not yet at its end; CONDITION is true when the late one has come.
a_smaller_fence_waits_and_is_refused() {
	wait_until '[[ -e open ]]'
	REDLOCK_FENCE=100 spawn late sh -c "exec $(command_of migrate.sh)"
	wait_until "$1"
	is_running late
	touch commit
	finish open
	[[ $status == 0 ]]
	finish late
	[[ $status != 0 && ${stderr,,} == *'not'*'null'*'constraint'* ]]
	[[ $(seen) == 200 ]]
	run ! query 'SELECT count(*) FROM notes'
}

# open_transaction SHELL: the page's statement with fence 200; SHELL is the word for a shell's command.
open_transaction() {
	sed -n '/^BEGIN/,/THEN/p' migrate.sql | sed 's/:fence/200/'
	echo "$1 touch open"
	echo "$1 until [ -e commit ]; do sleep 0.02; done"
	echo 'COMMIT;'
}

# stand_by NAME: a host starts systemd's service.
stand_by() {
	local start
	start=$(sed -n 's/^ExecStart=//p' scheduler.service)
	# shellcheck disable=SC2086 # words, as systemd has them
	spawn "$1" env HOST="$1" $start
}

@test "systemd's service runs on one host, gets one SIGTERM when that stops it, and then runs on another one" {
	example redlock-run.1 'stand by: if the service ends' | sed "s#/usr/bin/#$TMP/bin/#g" >scheduler.service
	program bin/scheduler <<-end
		exec perl "$HEAR" "\$TMP/\$HOST" "\$TMP/end.\$HOST" TERM,USR1
	end
	grep -qx 'Environment=REDLOCK_SERVERS=.*' scheduler.service
	stand_by one
	wait_until '[[ $(heard ready one) == 1 ]]'
	stand_by other
	wait_until '(($(rcli 0 ZCARD "{scheduler}:redlock:queue") == 1))'
	# as systemd does
	grep -qx 'KillMode=mixed' scheduler.service
	kill -TERM "$(pid one)"
	kill -CONT "$(pid one)"
	wait_until '[[ $(heard TERM one) == 1 ]]'
	# what is handed on keeps its order
	kill -USR1 "$(pid one)"
	wait_until '[[ $(heard USR1 one) == 1 ]]'
	[[ $(heard TERM one) == 1 && ! -e other ]]
	touch end.one
	finish one
	expect 0
	wait_until '[[ $(heard ready other) == 1 ]]'
	touch end.other
	finish other
	expect 0
	[[ $(type -P systemd-analyze) ]] || skip "systemd is not here to read it"
	run systemd-analyze verify "$TMP/scheduler.service"
	[[ $status == 0 && $output != *scheduler.service*:*:* ]]
}

@test "the migration in SQLite: the database refuses a smaller fence, also of two at once" {
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	local sqlite
	sqlite=$(type -P sqlite3)
query() { "$sqlite" -bail -cmd '.timeout 20000' shop.db "$1"; }
	database sqlite3
	migrates_under_a_fence
	a_lost_holder_changes_nothing
	query 'DELETE FROM fences'
	open_transaction .shell >open.sql
	spawn open sh -c "exec '$sqlite' -bail shop.db <open.sql"
	# SQLite's wait for others has an end, which may be before that of a slow machine
	sed -i 's/timeout 9000/timeout 60000/' migrate.sh
	a_smaller_fence_waits_and_is_refused '[[ $(readlink "/proc/$(pid late)"/fd/*) == *shop.db* ]]'
}

# postgres_start: a PostgreSQL of its own on a socket, by nobody where root may not.
postgres_start() {
	local bin as=(setpriv --pdeathsig QUIT)
	PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
	[[ $(type -P initdb) && $(type -P psql) ]] || skip "needs PostgreSQL"
	bin=$(dirname "$(readlink -f "$(type -P initdb)")")
	unset "${!PG@}"
	set_new
	export PGHOST=$SET/postgres PGUSER=postgres PGDATABASE=postgres
	mkdir -m 700 "$PGHOST"
	if ((EUID == 0)); then
		chmod 711 "$SET"
		chown 65534:65534 "$PGHOST"
		as+=(--reuid 65534 --regid 65534 --clear-groups)
	fi
	(cd "$PGHOST" && "${as[@]}" "$bin/initdb" --no-sync -A trust -U postgres -D "$PGHOST/data" \
		--no-locale -E UTF8 >"$TMP/initdb.out" 2>&1 3>&- 4>&-)
	cd "$PGHOST" || return
	set_serves "${as[@]}" "$bin/postgres" -D "$PGHOST/data" -k "$PGHOST" -c listen_addresses= -c fsync=off
	cd "$TMP" || return
	wait_until 'psql -c "SELECT 1"' 60
}

@test "the migration in PostgreSQL: the database refuses a smaller fence, also of two at once" {
	local psql
	postgres_start
	psql=$(type -P psql)
query() { "$psql" -Atq -v ON_ERROR_STOP=1 -c "$1"; }
	database psql
	migrates_under_a_fence
	a_lost_holder_changes_nothing
	query 'DELETE FROM fences'
	open_transaction '\!' >open.sql
	spawn open "$psql" -v ON_ERROR_STOP=1 -f open.sql
	a_smaller_fence_waits_and_is_refused \
		"[[ \$(query \"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'\") == 1 ]]"
}

@test "the deployment that compares its fence stops before its last step if there has been a later one" {
	local block first
	block=$(example redlock-run.1 'the last step of a deployment')
	sed '/^$/,$d' <<<"$block" >job.sh
	sed -n '/^# deploy.sh$/,$p' <<<"$block" | sed '1s/.*/#!\/bin\/sh/' >deploy.sh
	chmod +x deploy.sh
	mkdir build releases
	touch build/file
	# a copy is enough, where there is no rsync
	program bin/rsync <<<'mkdir -p "$3" && cp "$2"* "$3"'
	run --separate-stderr sh job.sh
	expect 0
	first=$(readlink current)
	[[ -f current/file && $first == "releases/$(tr -d ' ' <current.fence)" ]]
	redlock fence current.fence 9007199254740992
	run --separate-stderr sh job.sh
	[[ $status == 1 && $stderr == *'there has been a later holder: stop'* && $(readlink current) == "$first" ]]
}

@test "a script that locks itself does so however it is started" {
	{
		example redlock-run.1 'locks itself'
		echo 'echo "$REDLOCK_KEY $*"'
	} >report.sh
	chmod +x report.sh
	run --separate-stderr "$TMP/report.sh" one 'two  three'
	expect 0 'report one two  three'
	# not in PATH, and not executable
	chmod -x report.sh
	run --separate-stderr sh report.sh one
	expect 0 'report one'
}

# bats test_tags=native
# the page has no --server-timeout for handshakes that take seconds
@test "over TLS, servers let in whom their authority has signed" {
	local net=127.$((RANDOM % 200 + 20)).$((RANDOM % 256)) i
	CERTS=$TMP
	authority ca
	certificate_of web3 "DNS:web3"
	for i in 1 2 3; do
		certificate_of "lock$i" "IP:$net.$i"
		set_new
		set_serves redis-server --bind "$net.$i" --port 0 --tls-port 6379 --save '' --dir "$SET" \
			--tls-cert-file "$TMP/lock$i.pem" --tls-key-file "$TMP/lock$i.key" --tls-ca-cert-file "$TMP/ca.pem"
	done
	example redlock-run.1 'Over TLS, with an authority' |
		sed "s|/etc/redlock/ca.pem|$TMP/ca.pem|; s|lock\([123]\)|$net.\1|g" >job.sh
	for i in 1 2 3; do wait_until "(: </dev/tcp/$net.$i/6379)"; done
	program deploy.sh <<<'said "$REDLOCK_KEY"'
	REDLOCK_QUARANTINE=0 run --separate-stderr sh job.sh
	expect 0
	has_said deploy
	sed -i 's/--cert web3.pem --key-file web3.key//' job.sh
	REDLOCK_QUARANTINE=0 run --separate-stderr sh job.sh
	[[ $status == 77 || $status == 69 ]]
	[[ $(wc -l <said) == 1 ]]
}

# ---------------------------------------------------------------- redlock-status(1)

@test "those that hold locks for deployments are listed" {
	example redlock-status.1 'Who holds locks for deployments' >job.sh
	redlock acquire deploy/shop
	redlock acquire other
	run --separate-stderr sh job.sh
	expect 0 'deploy/shop: exclusive, held by .*'
}

@test "a deployment is asked to stop, and is told why" {
	example redlock-status.1 'Ask a deployment to stop' >job.sh
	"$REDLOCK" run -t 15s deploy -- sleep 600 >/dev/null 2>err 3>&- 4>&- &
	wait_until '! is_free deploy'
	run --separate-stderr sh job.sh
	expect 0 "deploy: asked .* 'sleep 600' to stop; released after .*" '(redlock: deploy: asked .* to stop; waiting until .*)?'
	status=0
	wait "$!" || status=$?
	[[ $status == 76 && $(<err) == *": lock lost: broken by "*": 'deploy is stuck': COMMAND is stopped" ]]
	is_free deploy
}

@test "a report waits until nobody deploys any more" {
	example redlock-status.1 'Start when nobody deploys' >job.sh
	steps bin/report.sh
	rcli 0 SET deploy another >/dev/null
	spawn job sh job.sh
	wait_until '(($(rcli 0 ZCARD "{deploy}:redlock:waits") == 1))'
	[[ ! -e said ]]
	rcli 0 DEL deploy >/dev/null
	finish job
	expect 0
	has_said 'report.sh '
}

@test "the command for NRPE is critical until the nightly run has succeeded" {
	example redlock-status.1 'A command for NRPE' | sed -n 's/^command.nightly.=//p' >job.sh
	[[ -s job.sh ]]
	run --separate-stderr sh job.sh
	expect 2 'REDLOCK CRITICAL - nightly: free; no success known \| .*'
	redlock run nightly true
	run --separate-stderr sh job.sh
	expect 0 'REDLOCK OK - nightly: free; last success .* ago \| .*'
}

# here_not_there: its input, with a folder of the test's and the redlock that is tested.
here_not_there() {
	sed "s|/var/lib/prometheus/node-exporter|$TMP|; s|/usr/bin/redlock|$TMP/bin/redlock|"
}

@test "cron writes the metrics, and has nothing to mail, whether or not servers answer" {
	local jobs
	example redlock-status.1 'From cron, for node_exporter' | here_not_there >crontab
	mapfile -t jobs <crontab
	((${#jobs[@]} == 2))
	cron_jobs() {
		local line
		for line in "${jobs[@]}"; do
			[[ $line =~ ^([0-9*/-]+\ +){5}(redlock .*) ]]
			env -i PATH="$TMP/bin:/usr/bin:/bin" REDLOCK_SERVERS="$REDLOCK_SERVERS" sh -c "${BASH_REMATCH[2]}" || :
		done
	}
	run --separate-stderr cron_jobs
	expect 0
	well_formed redlock.prom
	well_formed redlock-doctor.prom
	[[ $(metric redlock.prom redlock_up) == 1 && $(metric redlock-doctor.prom redlock_quorum) == 1 ]]
	export REDLOCK_SERVERS=unix:///nonexistent/s
	run --separate-stderr cron_jobs
	expect 0
	[[ $(metric redlock.prom redlock_up) == 0 && $(metric redlock-doctor.prom redlock_quorum) == 0 ]]
}

@test "systemd's service writes the metrics, and its timer starts it" {
	local line
	example redlock-status.1 'redlock-metrics.service' | here_not_there >redlock-metrics.service
	example redlock-status.1 'redlock-metrics.timer' >redlock-metrics.timer
	[[ $(grep -c "^ExecStart=-" redlock-metrics.service) == 2 ]]
	while read -r line; do
		# shellcheck disable=SC2086 # words, as systemd has them
		run --separate-stderr ${line#ExecStart=-}
		expect 0
	done < <(grep '^ExecStart=-' redlock-metrics.service)
	[[ $(metric redlock.prom redlock_up) == 1 && $(metric redlock-doctor.prom redlock_quorum) == 1 ]]
	[[ $(type -P systemd-analyze) ]] || skip "systemd is not here to read them"
	run systemd-analyze verify "$TMP/redlock-metrics.service" "$TMP/redlock-metrics.timer"
	[[ $status == 0 && $output != *redlock-metrics*:*:* ]]
}

# alerts RULE_TESTS: what promtool says of the rules in these tests.
alerts() {
	printf 'rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n' >tests.yml
	cat >>tests.yml
	promtool test rules tests.yml
}

@test "the rules of Prometheus alert if something is wrong, or nothing is known" {
	[[ $(type -P promtool) ]] || skip "needs promtool"
	example redlock-status.1 'Rules for Prometheus' >rules.yml
	promtool check rules rules.yml
	# nothing is known
	alerts <<-'END'
		- interval: 1m
		  input_series: []
		  alert_rule_test:
		  - {eval_time: 30m, alertname: RedlockUnknown, exp_alerts: [{exp_annotations: {summary: redlock list does not reach a quorum of its servers}}]}
		  - {eval_time: 30m, alertname: RedlockStale, exp_alerts: [{exp_annotations: {summary: the metrics of redlock are not written any more}}]}
		  - {eval_time: 30m, alertname: RedlockNoQuorum, exp_alerts: [{exp_annotations: {summary: too few servers would grant a lock}}]}
		  - {eval_time: 30m, alertname: NightlyMissing, exp_alerts: [{exp_labels: {key: nightly}, exp_annotations: {summary: nightly has not succeeded for 26 hours}}]}
		  - {eval_time: 30m, alertname: NightlyStuck, exp_alerts: []}
	END
	# all is well
	alerts <<-'END'
		- interval: 1m
		  input_series:
		  - {series: redlock_up, values: 1x60}
		  - {series: redlock_quorum, values: 1x60}
		  - {series: 'redlock_server_vote{server="redis://lock1:6379"}', values: 1x60}
		  - {series: 'node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/redlock.prom"}', values: 0+60x60}
		  - {series: 'node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/redlock-doctor.prom"}', values: 0+60x60}
		  - {series: 'redlock_last_success_timestamp_seconds{key="nightly"}', values: 0x60}
		  - {series: 'redlock_held_seconds{key="nightly"}', values: 0x60}
		  - {series: 'redlock_oldest_wait_seconds{key="nightly"}', values: 0x60}
		  alert_rule_test:
		  - {eval_time: 60m, alertname: RedlockUnknown, exp_alerts: []}
		  - {eval_time: 60m, alertname: RedlockStale, exp_alerts: []}
		  - {eval_time: 60m, alertname: RedlockNoQuorum, exp_alerts: []}
		  - {eval_time: 60m, alertname: RedlockNoVote, exp_alerts: []}
		  - {eval_time: 60m, alertname: NightlyMissing, exp_alerts: []}
		  - {eval_time: 60m, alertname: NightlyStuck, exp_alerts: []}
		  - {eval_time: 60m, alertname: RedlockQueue, exp_alerts: []}
	END
	# all is wrong
	alerts <<-'END'
		- interval: 1m
		  input_series:
		  - {series: redlock_up, values: 0x1700}
		  - {series: redlock_quorum, values: 0x1700}
		  - {series: 'redlock_server_vote{server="redis://lock1:6379"}', values: 0x1700}
		  - {series: 'node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/redlock.prom"}', values: 0x1700}
		  - {series: 'redlock_last_success_timestamp_seconds{key="nightly",instance="a"}', values: 0x1700}
		  - {series: 'redlock_held_seconds{key="nightly"}', values: 0+60x1700}
		  - {series: 'redlock_oldest_wait_seconds{key="nightly"}', values: 0+60x1700}
		  alert_rule_test:
		  - {eval_time: 28h, alertname: RedlockUnknown, exp_alerts: [{exp_annotations: {summary: redlock list does not reach a quorum of its servers}}]}
		  - eval_time: 28h
		    alertname: RedlockStale
		    exp_alerts:
		    - exp_labels: {file: /var/lib/prometheus/node-exporter/redlock.prom}
		      exp_annotations: {summary: the metrics of redlock are not written any more}
		  - {eval_time: 28h, alertname: RedlockNoQuorum, exp_alerts: [{exp_annotations: {summary: too few servers would grant a lock}}]}
		  - {eval_time: 28h, alertname: RedlockNoVote, exp_alerts: [{exp_labels: {server: 'redis://lock1:6379'}, exp_annotations: {summary: 'redis://lock1:6379 would not grant a lock'}}]}
		  - {eval_time: 28h, alertname: NightlyMissing, exp_alerts: [{exp_annotations: {summary: nightly has not succeeded for 26 hours}}]}
		  - {eval_time: 28h, alertname: NightlyStuck, exp_alerts: [{exp_labels: {key: nightly}, exp_annotations: {summary: nightly has been running for 3 hours}}]}
		  - {eval_time: 28h, alertname: RedlockQueue, exp_alerts: [{exp_labels: {key: nightly}, exp_annotations: {summary: somebody has waited for nightly for half an hour}}]}
	END
	# and they are about metrics that there are
	redlock run nightly true
	redlock list --format prometheus --output all.prom
	redlock doctor --format prometheus --output doctor.prom
	local name
	for name in $(grep -o 'redlock_[a-z_]*' rules.yml | sort -u); do
		grep -q "^$name[ {]" all.prom doctor.prom || { echo "no metric $name" >&2 && false; }
	done
}
