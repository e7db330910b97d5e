#!/usr/bin/env bats
# acquire --pid: a keeper renews the lock while a process lives.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli
load ../lib/script

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$$-$BATS_SUITE_TEST_NUMBER # keepers of other runs are none of ours
	TMP=$BATS_TEST_TMPDIR
	unset REDLOCK_TOKEN
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "the lock is renewed while the process lives, and released when it ends" {
	script job <<-'end'
		token=$("$REDLOCK" acquire --pid $$ -t 2s "$KEY") || exit
		said "$token"
		step 1
		said renewed
		step 2
	end
	wait_until '[[ -s $TMP/said ]]'
	[[ $(<"$TMP/said") == "$(rcli 0 GET "$KEY")" ]]
	local pid
	pid=$(pid job)
	[[ $(ps -o args= "$(keepers)") == "redlock-keeper $KEY for $pid" ]]
	[[ $(ps -o comm= "$(keepers)") == redlock-keeper ]]
	wait_until '[[ $("$REDLOCK" status "$KEY") == *" pid $pid "*", kept by pid $(keepers) "* ]]'
	redlock status --format json "$KEY"
	[[ $(jq -c '.holders[0] | [.host, .pid, .keeper_pid]' <<<"$output") == "[\"$(hostname)\",$pid,$(keepers)]" ]]
	[[ $(rcli 0 HGET "$(record)" "holder:$(<"$TMP/said")") == since=*$'\n'keeper=* ]]
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 2500))'
	is_held
	step 1
	step 2
	finish job
	expect 0
	wait_until '! is_held'
	wait_until '[[ ! $(keepers) ]]'
}

@test "with a long --kill-after the lock is renewed before the process would be stopped" {
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 12s -k 8s --server-timeout 1s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until '[[ -s $TMP/said ]]'
	renewals 3 # the first one tells of the keeper
	step 1
	finish job
	expect 0
	wait_until '! is_held'
}

@test "however the process ends, the lock is released: killed, too" {
	local signal
	for signal in TERM KILL; do
		script job <<-'end'
			"$REDLOCK" acquire --pid $$ -t 1h "$KEY" && said here && step 1
		end
		wait_until 'has_said here'
		kill -"$signal" "$(pid job)"
		wait_until '! is_held'
		rm "$TMP/said"
	done
}

@test "release ends the keeper, and the process goes on" {
	script job <<-'end'
		token=$("$REDLOCK" acquire --pid $$ -t 2s "$KEY") || exit
		"$REDLOCK" release -v "$KEY" "$token"
		said "status $?"
		step 1
		said alive
	end
	wait_until 'has_said "status 0"'
	run ! is_held
	wait_until '[[ ! $(keepers) ]]'
	step 1
	finish job
	[[ $status == 0 && $stderr == *'given back by its keeper'* ]]
	has_said alive
	[[ ! $(find "$XDG_RUNTIME_DIR/redlock" -name 'keeper-*' -o -name 'servers-*') ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release that names other servers has the keeper give the lock back at its own" {
	local other
	for other in "$REDLOCK_SERVERS?db=1" unix:///nonexistent/s; do
		OTHER=$other script job <<-'end'
			trap 'said lost' TERM
			token=$("$REDLOCK" acquire --pid $$ -t 1h "$KEY") || exit
			"$REDLOCK" release -S "$OTHER" "$KEY" "$token"
			said "status $?"
			step 1
		end
		wait_until 'has_said "status 0"'
		run ! is_held
		[[ ! $(keepers) ]]
		step 1
		finish job
		expect 0
		[[ $(<"$TMP/said") == 'status 0' ]]
		rm "$TMP/said" "$TMP/step1"
	done
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "of two keepers with one token a release ends the one at the servers that it names" {
	local name
	sleep 600 3>&- 4>&- &
	local pid=$! first=$REDLOCK_SERVERS second=$REDLOCK_SERVERS?db=1
	for name in first second; do
		"$REDLOCK" acquire -S "${!name}" -r --token owner --pid $pid "$KEY"
	done
	redlock release -S "$first" "$KEY" owner
	expect 0
	[[ $("$REDLOCK" status -S "$first" "$KEY") == "$KEY: free"* ]]
	[[ $("$REDLOCK" status -S "$second" "$KEY") == *", kept by pid $(keepers) "* ]]
	redlock release -S "$second" "$KEY" owner
	expect 0
	[[ ! $(keepers) && $("$REDLOCK" status -S "$second" "$KEY") == "$KEY: free"* ]]
	kill $pid
}

@test "release says of a KEY that is no lock any more what it is, whether a keeper kept it or nobody" {
	local token key what=
	sleep 600 3>&- 4>&- &
	for key in "--pid $!" '' "-r --pid $!" "--also $KEY-b --pid $!"; do
		# shellcheck disable=SC2086 # words
		token=$("$REDLOCK" acquire $key -t 1h "$KEY")
		rcli 0 DEL "$KEY" >/dev/null
		rcli 0 RPUSH "$KEY" text >/dev/null
		[[ $key != --also* ]] || what="--also $KEY-b"
		# shellcheck disable=SC2086 # words
		redlock release $what "$KEY" "$token"
		expect 65 '' "redlock: $KEY: KEY is not a lock: it is a list"
		rcli 0 DEL "$KEY" >/dev/null
	done
	[[ ! $(keepers) ]]
	kill $!
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release that no server answers ends the keeper, and nobody stops the process" {
	script job <<-'end'
		trap 'said lost' TERM
		token=$("$REDLOCK" acquire --pid $$ -t 2s --server-timeout 500ms "$KEY") || exit
		said here
		step 1
		"$REDLOCK" release --server-timeout 500ms "$KEY" "$token"
		said "status $?"
		step 2
	end
	wait_until 'has_said here'
	server_stop 0
	step 1
	wait_until 'has_said "status 69"'
	wait_until '[[ ! $(keepers) ]]' # what is left of it sees its last question off (drain.h)
	server_continue 0
	wait_until '! is_held' # as the lease ends
	step 2
	finish job
	[[ $status == 0 && $(grep -c 'no answer within' "$TMP/job.err") == 1 ]]
	[[ $(xargs <"$TMP/said") == 'here status 69' ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release succeeds if its keeper's request has come late, and there is nothing left to give back" {
	local token
	sleep 600 3>&- 4>&- &
	local pid=$!
	token=$("$REDLOCK" acquire --pid $pid -t 1h --server-timeout 300ms "$KEY")
	wait_until '[[ $(rcli 0 HGET "$(record)" "holder:$token") == *keeper=* ]]'
	server_stop 0
	spawn release "$REDLOCK" release -v --server-timeout 9s "$KEY" "$token"
	wait_until '[[ $(<"$TMP/release.err") == *"not given back by its keeper: "* && ! $(keepers) ]]'
	server_continue 0
	finish release
	[[ $status == 0 && $stderr == *"$KEY: released" && $stderr != *": given back"* ]]
	run ! is_held
	is_alive $pid
	kill $pid
}

@test "a release waits for its keeper's rounds, which may take longer than its own, and says so" {
	local token
	sleep 600 3>&- 4>&- &
	local pid=$!
	token=$("$REDLOCK" acquire --pid $pid -t 1h --server-timeout 60s "$KEY")
	wait_until '[[ $(rcli 0 HGET "$(record)" "holder:$token") == *keeper=* ]]'
	server_stop 0
	spawn release "$REDLOCK" release --server-timeout 100ms "$KEY" "$token"
	wait_until '[[ -s $TMP/release.err ]]'
	server_continue 0
	finish release
	expect 0 '' "redlock: $KEY: waiting until its keeper \(pid [0-9]+\) has given it back, for [0-9]m[0-9]+s at most"
	run ! is_held
	is_alive $pid
	kill $pid
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "two releases at once free KEY; a keeper that is stopped keeps no release from its end" {
	local token
	sleep 600 3>&- 4>&- &
	local pid=$!
	token=$("$REDLOCK" acquire --pid $pid -t 1h "$KEY")
	spawn first "$REDLOCK" release "$KEY" "$token"
	redlock release "$KEY" "$token"
	[[ $status == 0 || $stderr == *"KEY is gone" ]] # if the other one was over before it
	finish first
	[[ $status == 0 || $stderr == *"KEY is gone" ]]
	run ! is_held
	token=$("$REDLOCK" acquire --pid $pid -t 1h "$KEY")
	kill -STOP "$(keepers)"
	redlock release --server-timeout 100ms "$KEY" "$token"
	expect 0 '' "redlock: $KEY: waiting until its keeper .*"
	run ! is_held
	kill -CONT "$(keepers)"
	wait_until '[[ ! $(keepers) ]]'
	is_alive $pid
	kill $pid
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "keepers and releases of an earlier redlock understand ours: the keeper leaves the lock, the release gives it back" {
	script job <<-'end'
		trap 'said lost' TERM
		token=$("$REDLOCK" acquire --pid $$ -t 1h "$KEY") || exit
		said "$token"
		step 1
		"$REDLOCK" release -v "$KEY" "$token"
		said "status $?"
		token=$("$REDLOCK" acquire --pid $$ -t 1h "$KEY") || exit
		said again
		step 2
		"$REDLOCK" release "$KEY" "$token"
		said "status $?"
	end
	wait_until '[[ -s $TMP/said ]]'
	rm "$XDG_RUNTIME_DIR/redlock/servers-"*"-$(keepers)" # which it knows nothing of
	step 1
	wait_until 'has_said again'
	[[ $(<"$TMP/job.err") == *'left to us by its keeper'* ]]
	kill -USR1 "$(keepers)" # which it sends
	wait_until '[[ ! $(keepers) ]]'
	is_held
	step 2
	finish job
	[[ $(grep -c '^status 0$' "$TMP/said") == 2 && $(wc -l <"$TMP/said") == 4 ]]
	run ! is_held
	[[ ! $(find "$XDG_RUNTIME_DIR/redlock" -name 'keeper-*' -o -name 'servers-*') ]]
}

# earlier_keeper PARTINGS TOKEN [OTHER]: one of an earlier redlock has given KEY back, and $KEY-2, which has the token
# OTHER; once it is dismissed it says these PARTINGS.
earlier_keeper() {
	printf '%s\n%s' "$2" "$KEY" ${3+$'\n'"$3" "$KEY-2"} >"$TMP/locks"
	PARTINGS=$1 NOTE=$(stat -Lc %i /proc/self/ns/pid) script earlier <<-'end'
		note=$XDG_RUNTIME_DIR/redlock/keeper-$NOTE-$$ servers=$XDG_RUNTIME_DIR/redlock/servers-$NOTE-$$
		trap 'printf %s "$PARTINGS" >>"$note"; rm "$note" "$servers"; exit' USR2
		echo "$REDLOCK_SERVERS" >"$servers"
		{ printf '%s ' "$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 20)"; cat "$TMP/locks"; } >"$note"
		said ready
		while :; do sleep 0.05; done
	end
	wait_until '[[ -s $TMP/said ]]'
	rm "$TMP/said"
}

@test "what an earlier redlock's keeper says of the locks is understood, which is nothing of what is unsure" {
	mkdir -p -m 700 "$XDG_RUNTIME_DIR/redlock"
	earlier_keeper '0 0 0 ' token
	redlock release "$KEY" token
	expect 0
	finish earlier
	earlier_keeper '0 0 0 0 0 0 ' one other
	redlock release --also "$KEY-2" "$KEY" one=other
	expect 0
	finish earlier
	earlier_keeper '0 0 0 2 1 19 1 1 1 was not there' one other
	redlock release --also "$KEY-2" "$KEY" one=other
	expect 1 '' "redlock: $KEY-2: not held by this token: 1 1 1 was not there"
	finish earlier
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release during a slow renewal is no loss, although that renewal finds no lock" {
	proxies_start
	export PROXY
	PROXY=$(proxy_url 0)
	script job <<-'end'
		trap 'said lost' TERM
		"$REDLOCK" acquire -S "$PROXY" --pid $$ -t 6s --server-timeout 2s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	proxy 0 hold
	wait_until 'proxy_did 0 hold'
	# as release does if the keeper has not ended in time
	kill -USR1 "$(keepers)"
	rcli 0 DEL "$KEY" "$(record)" >/dev/null
	proxy 0 pass
	wait_until '[[ ! $(keepers) ]]'
	step 1
	finish job
	expect 0
	run ! has_said lost
}

@test "a lock that is lost stops the process before its lease ends, and says why there" {
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	rcli 0 SET "$KEY" another >/dev/null
	finish job
	[[ $status == 143 ]]
	[[ $stderr =~ ^"redlock: $KEY: lock lost: ".*": pid "[0-9]+" is stopped"$ ]]
	[[ $(rcli 0 GET "$KEY") == another ]]
	wait_until '[[ ! $(keepers) ]]'
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release in the trap of a script that is being stopped is answered at once, and the trap goes on" {
	local how
	for how in DEL break; do
		script job <<-'end'
			trap '"$REDLOCK" release "$KEY" "$token"; said "status $?"; step 1; exit 3' TERM
			token=$("$REDLOCK" acquire --pid $$ -t 12s -k 8s --server-timeout 500ms "$KEY") || exit
			said here
			while :; do sleep 0.1; done
		end
		wait_until 'has_said here'
		if [[ $how == DEL ]]; then
			rcli 0 DEL "$KEY" >/dev/null
			wait_until 'has_said "status 1"'
			[[ $(tail -n 1 "$TMP/job.err") =~ ^"redlock: $KEY: not held by this token: ".*"KEY is gone"$ ]]
		else
			redlock break -y "$KEY"
			expect 0 "$KEY: asked .* to stop; released after .*" '.*'
			wait_until 'has_said "status 0"'
		fi
		run ! is_held
		[[ $(keepers) ]] # SIGKILL is due for what does not end
		step 1
		finish job
		[[ $status == 3 && $(grep -c 'lock lost' "$TMP/job.err") == 1 ]]
		wait_until '[[ ! $(keepers) ]]'
		rm "$TMP/said" "$TMP/step1"
	done
	script job <<-'end'
		trap '"$REDLOCK" release "$KEY" "$token"; said "status $?"; step 1' TERM
		token=$("$REDLOCK" acquire --pid $$ -t 12s -k 2s --server-timeout 500ms "$KEY") || exit
		said here
		while :; do sleep 0.1; done
	end
	wait_until 'has_said here'
	redlock break -y "$KEY"
	[[ $status == 0 ]]
	finish job
	[[ $status == 137 ]]
	has_said 'status 0'
	wait_until '[[ ! $(keepers) ]]'
	[[ ! $(find "$XDG_RUNTIME_DIR/redlock" -name 'keeper-*' -o -name 'servers-*') ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "what such a release could not give back the keeper does" {
	script job <<-'end'
		trap '"$REDLOCK" release -S "unix://$TMP/nowhere" --also "$KEY-b" "$KEY-a" "$token"; said "status $?"; exit' TERM
		token=$("$REDLOCK" acquire --pid $$ -t 15s -k 2s --server-timeout 500ms --also "$KEY-b" "$KEY-a") || exit
		said here
		while :; do sleep 0.1; done
	end
	wait_until 'has_said here'
	redlock break -y --now "$KEY-a"
	[[ $status == 0 ]]
	finish job
	has_said 'status 69'
	wait_until '[[ ! $(keepers_of_both) ]]'
	[[ $("$REDLOCK" status "$KEY-b") == "$KEY-b: free"* ]]
}

# native: valgrind knows no pidfd_getfd(2)
# bats test_tags=native
@test "why it is stopped is not overwritten by what the process writes after it" {
	cat >"$TMP/job.sh" <<-'end'
		trap 'echo bye >&2; exit 3' TERM
		echo begun >&2
		"$REDLOCK" acquire --pid $$ -t 3s "$KEY" >/dev/null || exit
		"$REDLOCK" break --now -yq "$KEY"
		while :; do sleep 0.1; done
	end
	export REDLOCK KEY
	run -3 timeout -k 1 30 sh -c 'exec sh "$1" 2>"$2"' - "$TMP/job.sh" "$TMP/err"
	cat "$TMP/err"
	[[ $(<"$TMP/err") =~ ^begun$'\n'"redlock: $KEY: lock lost: ".*" is stopped"$'\n'bye$ ]]
}

@test "a system log that is stuck does not keep the keeper from stopping the process" {
	"${MOUNTS[@]}" true || skip "mounts cannot be made here"
	mkdir "$TMP/dev"
	cat >"$TMP/fill.pl" <<-'end'
		use Socket;
		my $log = pack_sockaddr_un("/dev/log");
		socket(LOG, AF_UNIX, SOCK_DGRAM, 0) && bind(LOG, $log) || die;
		socket(TO, AF_UNIX, SOCK_DGRAM, 0);
		1 while defined send(TO, "x", 64, $log); # MSG_DONTWAIT
		fcntl(LOG, 2, 0); # F_SETFD: it stays open, and is never read
		exec @ARGV;
	end
	cat >"$TMP/inside.sh" <<-'end'
		mount --rbind /dev "$TMP/dev" && mount -t tmpfs -o mode=755 none /dev || exit
		for name in null urandom; do : >"/dev/$name" && mount --bind "$TMP/dev/$name" "/dev/$name" || exit; done
		exec perl "$TMP/fill.pl" sh -c '
			exec 2>&-
			"$REDLOCK" acquire --pid $$ -t 2s "$KEY" >/dev/null || exit
			echo here >>"$TMP/said"
			exec sleep 300'
	end
	export TMP KEY REDLOCK
	spawn job "${MOUNTS[@]}" sh "$TMP/inside.sh"
	wait_until 'has_said here'
	rcli 0 DEL "$KEY" >/dev/null
	finish job
	[[ $status == 143 ]]
}

@test "one that ignores SIGTERM is killed when the lock is lost" {
	script job <<-'end'
		trap '' TERM
		"$REDLOCK" acquire --pid $$ -t 3s -k 500ms "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	rcli 0 SET "$KEY" another >/dev/null
	finish job
	[[ $status == 137 ]]
}

@test "if no server answers any more, the process is dead before its lease ends" {
	local before after
	servers_start 1
	script job <<-'end'
		trap '' TERM
		"$REDLOCK" acquire --pid $$ -t 4s -k 300ms "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	server_stop 0
	# the server's own clock goes on: what is left there is what others wait for
	before=$NOW
	finish job
	after=$NOW
	[[ $status == 137 && $stderr == *'lock lost: not renewed for '* ]]
	((after - before < 4000))
	server_continue 0
}

@test "--on-lost warn says so and leaves the process alone, a SIGNAL is sent once" {
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s --on-lost warn "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	rcli 0 SET "$KEY" another >/dev/null
	wait_until '[[ $(<"$TMP/job.err") == *"lock lost: "*": pid "*" runs on without it" ]]'
	wait_until '[[ ! $(keepers) ]]'
	is_running job
	step 1
	finish job
	[[ $status == 0 ]]
	rm "$TMP"/{said,step1}
	rcli 0 DEL "$KEY" >/dev/null
	script job <<-'end'
		trap 'said usr2' USR2
		"$REDLOCK" acquire --pid $$ -t 3s --on-lost USR2 "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	rcli 0 SET "$KEY" another >/dev/null
	wait_until 'has_said usr2'
	wait_until '[[ ! $(keepers) ]]'
	step 1
	finish job
	[[ $status == 0 && $stderr == *'is sent the signal of --on-lost' ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "--on-lost STOP stops the process, and does not continue it" {
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s --on-lost STOP "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	rcli 0 SET "$KEY" another >/dev/null
	wait_until '[[ ! $(keepers) && $(state "$(pid job)") == T ]]'
	kill -CONT "$(pid job)"
	step 1
	finish job
	expect 0 '' 'redlock: .* is sent the signal of --on-lost'
	mkdir "$TMP/stamps"
	rcli 0 DEL "$KEY" >/dev/null
	spawn run "$REDLOCK" run -t 3s --on-lost STOP "$KEY" "$STAMP" -u "$TMP/end" -x 4 "$TMP/stamps"
	wait_until 'stamped "$TMP/stamps"'
	rcli 0 SET "$KEY" another >/dev/null
	wait_until '[[ $(state "$(child_named "$(pid run)" stamp)") == T && -s $TMP/run.err ]]'
	is_still "$TMP/stamps"
	touch "$TMP/end"
	kill -CONT "$(child_named "$(pid run)" stamp)"
	finish run
	[[ $status == 76 ]]
}

@test "--on-lost kill-group stops what the process has started as well, if it leads its group" {
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s --on-lost kill-group "$KEY" >/dev/null || exit
		sleep 300 &
		said "$!"
		wait
	end
	wait_until '[[ -s $TMP/said ]]'
	rcli 0 SET "$KEY" another >/dev/null
	finish job
	[[ $status == 143 ]]
	wait_until '! is_alive "$(<"$TMP/said")"'
	# without it, only the process itself
	rcli 0 DEL "$KEY" >/dev/null
	rm "$TMP/said"
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s "$KEY" >/dev/null || exit
		sleep 300 &
		said "$!"
		wait
	end
	wait_until '[[ -s $TMP/said ]]'
	rcli 0 SET "$KEY" another >/dev/null
	finish job
	is_alive "$(<"$TMP/said")"
	kill "$(<"$TMP/said")"
}

@test "--max-hold stops the process, says so, and the lock is held until it is gone" {
	script job <<-'end'
		trap 'said "term, held: $(timeout 5 "$REDLOCK" status -q "$KEY"; echo $?)"' TERM
		"$REDLOCK" acquire --pid $$ -t 3s --max-hold 500ms -k 1s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	finish job
	[[ $status == 137 && $stderr =~ ^"redlock: $KEY: pid "[0-9]+" is stopped after --max-hold 500ms"$ ]]
	has_said 'term, held: 0'
	wait_until '! is_held'
}

@test "a release without a keeper's hold ends no keeper: who is kept keeps the lock" {
	script job <<-'end'
		"$REDLOCK" acquire -r --token owner --pid $$ -t 2s "$KEY" >"$TMP/out" || exit
		# a helper enters KEY for a moment
		sh -c '"$REDLOCK" acquire -r --token owner -t 2s "$KEY" && "$REDLOCK" release "$KEY" owner' || exit
		said in
		step 1
		"$REDLOCK" release -v "$KEY" owner
		said "status $?"
	end
	wait_until 'has_said in'
	[[ $(rcli 0 HGET "$KEY" owner) == 1 ]]
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 3000))'
	[[ $(rcli 0 HGET "$KEY" owner) == 1 ]]
	step 1
	finish job
	has_said 'status 0'
	[[ $stderr == *'given back by its keeper'* ]]
	key_free 0
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release whose first answer was lost, and that found no hold without a keeper, ends the keeper" {
	proxies_start
	sleep 600 3>&- 4>&- &
	local pid=$!
	"$REDLOCK" acquire -S "$(proxy_url 0)" -r --token owner --pid $pid -t 1h "$KEY"
	wait_until '[[ $(rcli 0 HGET "$(record)" holder:owner) == *keeper=* ]]'
	proxy 0 'close 1' pass
	redlock release -v -S "$(proxy_url 0)" "$KEY" owner
	[[ $status == 0 && $stderr == *'given back by its keeper'* ]]
	[[ ! $(keepers) ]]
	key_free 0
	kill $pid
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release whose answers are all lost may have given a hold without a keeper back, and ends no keeper" {
	proxies_start
	sleep 600 3>&- 4>&- &
	local pid=$!
	"$REDLOCK" acquire -r --token owner --pid $pid -t 1h -S "$(proxy_url 0)" "$KEY"
	"$REDLOCK" acquire -r --token owner -t 1h "$KEY"
	proxy 0 close
	redlock release -S "$(proxy_url 0)" --server-timeout 500ms "$KEY" owner
	expect 69 '' "redlock: $KEY: $(proxy_url 0): .*"
	[[ $(keepers) && $(rcli 0 HGET "$KEY" owner) == 1 ]]
	is_alive $pid
	proxy 0 pass
	redlock release -S "$(proxy_url 0)" "$KEY" owner
	expect 0
	key_free 0
	kill $pid
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release that servers refuse ends no keeper: there is a hold without one, or may be" {
	local pid servers i
	servers_start 3
	export REDLOCK_QUARANTINE=0
	sleep 600 3>&- 4>&- &
	pid=$!
	for servers in 0 '0 1 2'; do
		KEY=$KEY-x
		# shellcheck disable=SC2086 # numbers
		REDLOCK_SERVERS=$(server_urls $servers)
		"$REDLOCK" acquire -r --token owner --pid $pid -t 1h "$KEY"
		"$REDLOCK" acquire -r --token owner -t 1h "$KEY"
		for i in $servers; do rcli "$i" CONFIG SET min-replicas-to-write 1; done
		redlock release --server-timeout 300ms "$KEY" owner
		expect 69 '' "redlock: $KEY: .*"
		for i in $servers; do rcli "$i" CONFIG SET min-replicas-to-write 0; done
		[[ $(keepers) && $(rcli 0 HGET "$KEY" owner) == 2 ]]
		redlock release "$KEY" owner
		expect 0
		[[ $(keepers) && $(rcli 0 HGET "$KEY" owner) == 1 ]]
		redlock release "$KEY" owner
		expect 0
		[[ ! $(keepers) ]]
	done
	kill $pid
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "an owner's release that names the server of its keeper in another way takes nothing from it" {
	sleep 600 3>&- 4>&- &
	local pid=$! link=$TMP/link.sock
	ln -s "$SERVERS/0/redis.sock" "$link"
	"$REDLOCK" acquire -r --token owner --pid $pid "$KEY"
	"$REDLOCK" acquire -r --token owner "$KEY"
	redlock release -S "unix://$link" "$KEY" owner # the hold that has no keeper
	expect 0
	redlock release -S "unix://$link" "$KEY" owner
	expect 1 '' "redlock: $KEY: not held by this token: its keeper \\(pid [0-9]+\\) has servers of other names: name these with -S"
	[[ $(keepers) && $(rcli 0 HGET "$KEY" owner) == 1 ]]
	redlock release "$KEY" owner
	expect 0
	is_alive $pid
	kill $pid
}

@test "a release gives the same hold back on every server, and none on a server that has never had it" {
	local pid
	servers_start 3
	export REDLOCK_QUARANTINE=0
	sleep 600 3>&- 4>&- &
	pid=$!
	# a keeper that cannot be found, as one on another host
	mkdir -m 700 "$TMP/other"
	XDG_RUNTIME_DIR=$TMP/other "$REDLOCK" acquire -r --token owner --pid $pid -t 1h "$KEY"
	wait_until '[[ $(rcli 0 HGET "$KEY" owner)$(rcli 1 HGET "$KEY" owner)$(rcli 2 HGET "$KEY" owner) == 111 ]]'
	"$REDLOCK" acquire -S "$(server_url 0),$(server_url 1)" -r --token owner -t 1h "$KEY"
	redlock release "$KEY" owner
	expect 0
	[[ $(rcli 0 HGET "$KEY" owner)$(rcli 1 HGET "$KEY" owner)$(rcli 2 HGET "$KEY" owner) == 111 ]]
	# there is no other left: it is the keeper's now
	redlock release "$KEY" owner
	expect 0
	key_free 0 1 2
	kill $pid
}

@test "a release that too few servers have answered gives nothing back, and ends no keeper" {
	servers_start 3
	export REDLOCK_QUARANTINE=0
	script job <<-'end'
		"$REDLOCK" acquire -r --token owner --pid $$ "$KEY" >"$TMP/out" || exit
		"$REDLOCK" acquire -r --token owner "$KEY" >"$TMP/out" || exit
		said in
		step 1
	end
	wait_until 'has_said in'
	wait_until '[[ $(rcli 1 HGET "$KEY" owner)$(rcli 2 HGET "$KEY" owner) == 22 ]]'
	server_stop 1
	server_stop 2
	redlock release "$KEY" owner
	expect 69 '' "redlock: $KEY: .*"
	server_continue 1
	server_continue 2
	[[ $(rcli 0 HGET "$KEY" owner)$(rcli 1 HGET "$KEY" owner)$(rcli 2 HGET "$KEY" owner) == 222 ]]
	is_running job
	[[ $(keepers) ]]
	redlock release "$KEY" owner
	expect 0
	wait_until '[[ $(rcli 0 HGET "$KEY" owner)$(rcli 1 HGET "$KEY" owner)$(rcli 2 HGET "$KEY" owner) == 111 ]]'
	[[ $(keepers) ]]
	step 1
	finish job
	wait_until 'key_free 0 1 2'
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release ends the keeper of the nearest process above it, even if others came later" {
	script job <<-'end'
		"$REDLOCK" acquire -r --token owner --pid $$ "$KEY" >"$TMP/out" || exit
		said in
		step 1
		sh -c '"$REDLOCK" release "$KEY" owner'
		said "status $?"
	end
	wait_until 'has_said in'
	sleep 600 3>&- 4>&- &
	local later=$!
	"$REDLOCK" acquire -r --token owner --pid $later "$KEY"
	step 1
	finish job
	has_said 'status 0'
	[[ $(ps -o args= "$(keepers)") == *" for $later" && $(rcli 0 HGET "$KEY" owner) == 1 ]]
	kill $later
	wait_until 'key_free 0'
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "the order of a list of servers, and how each is spelled, makes no other servers of them" {
	servers_start 2
	export REDLOCK_QUARANTINE=0 LIST=$REDLOCK_SERVERS SAME
	sleep 600 3>&- 4>&- &
	local stranger=$!
	for SAME in "$(server_url 1),$(server_url 0)" "${LIST//unix:\/\//unix:///.}"; do
		"$REDLOCK" acquire -r --token owner --pid $stranger "$KEY"
		script job <<-'end'
			"$REDLOCK" acquire -S "$SAME" -r --token owner --pid $$ "$KEY" >"$TMP/out" || exit
			"$REDLOCK" release -S "$LIST" "$KEY" owner
			said "status $?"
			step 1
		end
		wait_until 'has_said "status 0"'
		[[ $(ps -o args= "$(keepers)") == *" for $stranger" && $(rcli 0 HGET "$KEY" owner) == 1 ]]
		step 1
		finish job
		redlock release -S "$SAME" "$KEY" owner
		expect 0
		[[ ! $(keepers) ]]
		key_free 0 1
		rm "$TMP/said" "$TMP/step1"
	done
	is_alive $stranger
	kill $stranger
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "an owner's release that names none of a keeper's servers gives back what is held at those that it names" {
	servers_start 3
	export REDLOCK_QUARANTINE=0
	local own other
	own=$(server_url 0),$(server_url 1) other=$(server_url 2)
	sleep 600 3>&- 4>&- &
	local pid=$!
	"$REDLOCK" acquire -S "$own" -r --token owner --pid $pid --also "$KEY-b" "$KEY-a"
	"$REDLOCK" acquire -S "$other" -r --token owner "$KEY-a"
	redlock release -S "$other" --also "$KEY-b" "$KEY-a" owner=owner
	expect 1 '' "redlock: $KEY-b: not held by this token: its keeper \\(pid [0-9]+\\) has servers of other names: name these with -S"
	[[ $("$REDLOCK" status -S "$other" "$KEY-a") == "$KEY-a: free"* ]]
	[[ $(rcli 0 HGET "$KEY-a" owner)$(rcli 0 HGET "$KEY-b" owner) == 11 && $(keepers_of_both) ]]
	# some in common are enough
	redlock release --also "$KEY-b" "$KEY-a" owner=owner
	expect 0
	[[ ! $(keepers_of_both) ]]
	is_alive $pid
	kill $pid
}

@test "a release of several keys gives one hold of each back, whether a keeper kept it or nobody" {
	script job <<-'end'
		"$REDLOCK" acquire -r --token owner --pid $$ --also "$KEY-b" "$KEY-a" >"$TMP/out" || exit
		"$REDLOCK" acquire -r --token owner "$KEY-a" >"$TMP/out" || exit
		"$REDLOCK" release --also "$KEY-b" "$KEY-a" owner=owner
		said "status $?"
		step 1
	end
	wait_until 'has_said "status 0"'
	[[ $(rcli 0 HGET "$KEY-a" owner) == 1 ]]
	KEY=$KEY-b key_free 0
	step 1
	finish job
	redlock release "$KEY-a" owner
	[[ $status == 0 ]]
	KEY=$KEY-a key_free 0
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a release of several keys is that of the keeper of them, unless each is held without one, too" {
	local also=(-r --token owner -t 1h --also "$KEY-b")
	sleep 600 3>&- 4>&- &
	local pid=$!
	"$REDLOCK" acquire "${also[@]}" --pid $pid "$KEY-a"
	"$REDLOCK" acquire "${also[@]}" "$KEY-a"
	"$REDLOCK" acquire -r --token owner -t 1h "$KEY-a"
	redlock release --also "$KEY-b" "$KEY-a" owner
	expect 0
	[[ $(keepers_of_both) && $(rcli 0 HGET "$KEY-a" owner)$(rcli 0 HGET "$KEY-b" owner) == 21 ]]
	# what is held of one key only has a release of its own
	redlock release -v --also "$KEY-b" "$KEY-a" owner
	[[ $status == 0 && $stderr == *'given back by its keeper'* && ! $(keepers_of_both) ]]
	[[ $(rcli 0 HGET "$KEY-a" owner) == 1 && $(rcli 0 HKEYS "$(KEY=$KEY-a record)") == *'hold:+'* ]]
	KEY=$KEY-b key_free 0
	redlock release "$KEY-a" owner
	expect 0
	KEY=$KEY-a key_free 0
	is_alive $pid
	kill $pid
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "of several keepers of one owner a release ends one, and gives back what that one has kept" {
	local i count=4
	sleep 600 3>&- 4>&- &
	local first=$!
	"$REDLOCK" acquire -r --token owner --pid $first -t 3s "$KEY"
	for ((i = 0; i < count; i++)); do
		sleep 600 3>&- 4>&- &
		"$REDLOCK" acquire -r --token owner --pid $! -t 3s "$KEY"
		spawned[later-$i]=$!
	done
	[[ $(rcli 0 HGET "$KEY" owner) == 5 ]]
	for ((i = 0; i < count; i++)); do spawn "release-$i" "$REDLOCK" release "$KEY" owner; done
	for ((i = 0; i < count; i++)); do
		finish "release-$i"
		[[ $status == 0 ]] || expect 0
	done
	[[ $(rcli 0 HGET "$KEY" owner) == 1 && $(wc -w <<<"$(keepers)") == 1 ]]
	# the processes whose keepers have ended may end, too
	for ((i = 0; i < count; i++)); do kill "$(pid "later-$i")"; done
	[[ $(ps -o args= "$(keepers)") == *" for $first" ]]
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 4000))'
	[[ $(rcli 0 HGET "$KEY" owner) == 1 ]]
	kill $first
	wait_until 'key_free 0'
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "--max-hold: the keeper rests while it waits for a group that outlives the process" {
	cat >"$TMP/job.sh" <<-'end'
		"$REDLOCK" acquire --pid $$ -t 60s --on-lost kill-group --max-hold 100ms -k 50s "$KEY" >/dev/null || exit
		(trap '' TERM; echo here >>"$TMP/said"; exec sleep 300) &
		exec sleep 300
	end
	export TMP KEY REDLOCK
	spawn job perl -e 'setpgrp; exec "sh", "$ENV{TMP}/job.sh"'
	wait_until 'has_said here && ! is_running job'
	is_held
	# it looks 50 times a second
	timeout 2 strace -qq -T -e trace=epoll_create1,poll,ppoll -o "$TMP/trace" -p "$(keepers)" || :
	awk -F '[<>]' '/^epoll_create1/ { looks++ } /^p?poll/ && $(NF - 1) > 0.005 { rests++ }
		END { print looks + 0 " looks, " rests + 0 " rests"; exit !(looks > 1 && rests * 2 >= looks) }' "$TMP/trace"
	kill "$(keepers)"
	wait_until '! is_held'
	pkill -KILL -g "$(pid job)"
}

# others_stay OPTION LOST KEPT: with this --on-lost, when $KEY-LOST is lost, $KEY-KEPT is renewed until the process ends.
others_stay() {
	rm -f "$TMP"/{said,step1}
	OPTION=$1 script job <<-'end'
		trap 'said told' USR1
		"$REDLOCK" acquire --pid $$ -t 3s --on-lost "$OPTION" --also "$KEY-b" "$KEY-a" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	rcli 0 DEL "$KEY-$2"
	wait_until "[[ \$(<\"\$TMP/job.err\") == *\"$KEY-$2: lock lost: \"* ]]"
	KEY=$KEY-$3 renewals 4
	is_running job
	[[ $(keepers_of_both) ]]
}

keepers_of_both() {
	KEY="$KEY-a, $KEY-b" keepers
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "--on-lost warn, or SIGNAL: if one lock is lost, the others are kept until the process ends" {
	others_stay warn a b
	step 1
	finish job
	[[ $stderr == "redlock: $KEY-a: lock lost: "*": KEY is gone: pid "+([0-9])" runs on without it" ]]
	wait_until '[[ ! $(keepers_of_both) ]]'
	[[ $(rcli 0 EXISTS "$KEY-b") == 0 ]]
	others_stay USR1 b a
	rcli 0 DEL "$KEY-a" # the last one
	wait_until '[[ ! $(keepers_of_both) ]]'
	is_running job
	step 1
	finish job
	[[ $stderr == "redlock: $KEY-b: lock lost: "*": KEY is gone: pid "+([0-9])" is sent the signal of --on-lost
redlock: $KEY-a: lock lost: "*": KEY is gone: pid "+([0-9])" runs on without it" ]]
	[[ $(grep -c told "$TMP/said") == 1 ]]
}

@test "--max-hold: the dead whom nobody reaps hold no lock" {
	cat >"$TMP/job.sh" <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s --on-lost kill-group --max-hold 100ms -k 100ms "$KEY" >/dev/null || exit
		echo here >>"$TMP/said"
		sleep 300
	end
	export TMP KEY REDLOCK
	spawn parent perl -e 'my $job = fork; if (!$job) { setpgrp; exec "sh", "$ENV{TMP}/job.sh" } sleep 300'
	wait_until 'has_said here'
	wait_until '! is_held'
	is_running parent
	kill "$(pid parent)"
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "SIGTERM to the keeper releases the lock and ends it; SIGKILL leaves the lease to its end" {
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	kill "$(keepers)"
	wait_until '! is_held'
	wait_until '[[ ! $(keepers) ]]'
	is_running job
	step 1
	finish job
	rm "$TMP"/{said,step1}
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until 'has_said here'
	kill -9 "$(keepers)"
	is_held
	wait_until '! is_held'
	is_running job
	step 1
	finish job
	[[ $status == 0 && $stderr == '' ]]
	# the note of the dead keeper stops nobody, and goes with the next release
	redlock acquire "$KEY"
	redlock release "$KEY" "$output"
	expect 0
	[[ ! $(find "$XDG_RUNTIME_DIR/redlock" -name 'keeper-*') ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a keeper heeds a release, and SIGTERM, even if the script ignores its signals" {
	script job <<-'end'
		trap '' USR1 TERM INT
		token=$("$REDLOCK" acquire --pid $$ -t 2s "$KEY") || exit
		"$REDLOCK" release "$KEY" "$token"
		said "release $?"
		"$REDLOCK" acquire --pid $$ -t 2s "$KEY" >/dev/full
		said "acquire $?"
		"$REDLOCK" acquire --pid $$ -t 20s "$KEY" >/dev/null
		said kept
		step 1
		said alive
	end
	wait_until 'has_said kept'
	[[ $(<"$TMP/said") == $'release 0\nacquire 71\nkept' ]]
	is_held
	kill -TERM "$(keepers)"
	wait_until '! is_held && [[ ! $(keepers) ]]'
	step 1
	finish job
	[[ $status == 0 && $stderr != *lost* ]]
	has_said alive
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "the umask of the script keeps its keeper from nothing" {
	local bare=()
	((EUID != 0)) || bare=(setpriv "--inh-caps=-dac_override,-dac_read_search" "--bounding-set=-dac_override,-dac_read_search")
	export XDG_RUNTIME_DIR=$TMP/runtime
	mkdir -m 700 "$TMP/runtime"
	cat >"$TMP/masked" <<-'end'
		umask "$1"
		token=$("$REDLOCK" acquire --pid $$ -t 2s "$KEY") || exit
		"$REDLOCK" release "$KEY" "$token" || exit
		! pgrep -f "^redlock-keeper $KEY for $$\$" # which would stop us when it sees that the lock is gone
	end
	export KEY REDLOCK
	for umask in 777 477 022; do
		run timeout 30 "${bare[@]}" sh "$TMP/masked" "$umask"
		[[ $status == 0 && ! $output ]]
	done
	[[ $(stat -c %a "$TMP/runtime/redlock") == 700 ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "it keeps no stream open: a substitution, a pipeline and descriptor 3 end at once" {
	script job <<-'end'
		token=$("$REDLOCK" acquire --pid $$ "$KEY" 2>&1) || exit
		"$REDLOCK" release "$KEY" "$token"
		"$REDLOCK" acquire --pid $$ "$KEY" | { read -r token; cat; "$REDLOCK" release "$KEY" "$token"; }
		said piped
		token=$( { "$REDLOCK" acquire --pid $$ "$KEY" 3>&1 4>&1; } ) || exit
		said "done"
		step 1
	end
	wait_until 'has_said done'
	local fd keeper
	keeper=$(keepers)
	[[ $(readlink "/proc/$keeper/cwd") == / ]]
	[[ $(ps -o sid=,tty= "$keeper" | tr -s ' ') == *"$keeper ?"* ]]
	for fd in 0 1 2; do
		[[ $(readlink "/proc/$keeper/fd/$fd") == /dev/null ]]
	done
	step 1
	finish job
	expect 0
}

# native: valgrind does not know what strace does to it
# bats test_tags=native
@test "where its working directory cannot be changed, a keeper keeps no stream open, either" {
	[[ $(command -v strace) ]] || skip "needs strace"
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	script job "env ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o $TMP/trace -e trace=chdir -e inject=chdir:error=EPERM sh" <<-'end'
		token=$("$REDLOCK" acquire --pid $$ "$KEY" | cat) || exit
		said "$token"
		step 1
	end
	wait_until '[[ -s $TMP/said ]]'
	[[ $(grep -c chdir "$TMP/trace") == 1 && $(ps -o args= "$(keepers)") == "redlock-keeper $KEY for "* ]]
	is_held
	step 1
	finish job
	expect 0
	wait_until '! is_held'
}

@test "under set -e, in a function, a subshell, and by eval, in each shell" {
	local shell
	for shell in bash dash ksh mksh; do
		command -v "$shell" >/dev/null || continue
		rm -f "$TMP/said" "$TMP/step1"
		script job "$shell" <<-'end'
			set -e
			work() {
				token=$("$REDLOCK" acquire --pid $$ -t 2s "$KEY")
				"$REDLOCK" status -q "$KEY" "$token"
				"$REDLOCK" release "$KEY" "$token"
			}
			work
			(
				work
				said subshell
			)
			eval "$("$REDLOCK" acquire --format shell --pid $$ "$KEY")"
			said "$REDLOCK_KEY"
			if "$REDLOCK" acquire -n --pid $$ "$KEY"; then said twice; fi
			"$REDLOCK" release "$KEY" # by REDLOCK_TOKEN
			said "done"
		end
		finish job
		[[ $status == 0 && $(<"$TMP/said") == "subshell"$'\n'"$KEY"$'\n'"done" ]] ||
			{ echo "$shell: $status $stderr" && false; }
		wait_until '! is_held'
	done
}

@test "a script that is not granted the lock has no keeper, and eval stops there" {
	redlock acquire "$KEY"
	script job <<-'end'
		set -e
		eval "$("$REDLOCK" acquire -n --format shell --pid $$ "$KEY")"
		said never
	end
	finish job
	[[ $status == 75 && ! -e $TMP/said && ! $(keepers) ]]
}

@test "if nobody gets the token, the lock is given back and there is no keeper" {
	run bash -c '"$REDLOCK" acquire --pid $$ "$1" >/dev/full; echo "status $?"; exec sleep 0' - "$KEY"
	[[ $output == *"status 71"* ]]
	run ! is_held
	[[ ! $(keepers) ]]
}

@test "a waiter that is granted the lock keeps it as well" {
	redlock acquire -t 20s "$KEY"
	local token=$output
	script job <<-'end'
		"$REDLOCK" acquire --pid $$ -t 4s "$KEY" >/dev/null || exit
		said here
		step 1
	end
	wait_until '(($(rcli 0 ZCARD "{$KEY}:redlock:queue") == 1))'
	redlock release "$KEY" "$token"
	wait_until 'has_said here'
	local begun
	begun=$NOW
	wait_until '((NOW > begun + 4500))'
	is_held
	is_running job
	step 1
	finish job
	expect 0
	wait_until '! is_held'
}

# native: valgrind knows no pidfd_open(2)
# bats test_tags=native
@test "if the process ends while its lock is waited for, the wait ends, and nothing is held" {
	local token how
	redlock acquire -t 1h "$KEY"
	token=$output
	for how in '' --poll '--format shell'; do
		sleep 300 3>&- 4>&- &
		local pid=$!
		# shellcheck disable=SC2086 # words
		spawn waiter env --ignore-signal=HUP "$REDLOCK" acquire -v $how --pid "$pid" "$KEY"
		wait_until '[[ $(<"$TMP/waiter.err") == *held* ]]'
		kill -HUP "$(pid waiter)" # ignored, it ends no wait
		kill "$pid"
		finish waiter
		[[ $status == 64 && $stderr == *"redlock: $KEY: --pid $pid: the process has ended, so no lock is kept for it" ]] ||
			{ echo "$how: $status $stderr" >&2 && false; }
		[[ $output == "${how:+$([[ $how == --poll ]] || echo '(exit 64)')}" ]]
		[[ $(rcli 0 ZCARD "{$KEY}:redlock:queue") == 0 && ! $(keepers) ]]
	done
	redlock release "$KEY" "$token"
	expect 0
}

@test "if the process has ended when its lock is granted, the lock is given back" {
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	sleep 300 3>&- 4>&- &
	local pid=$!
	redlock acquire -t 1h "$KEY"
	local token=$output
	# a kernel without pidfd does not end the wait
	ASAN_OPTIONS=detect_leaks=0 spawn waiter strace -f -qq -o "$TMP/trace" -e trace=pidfd_open -e inject=pidfd_open:error=ENOSYS \
		"$REDLOCK" acquire -v --pid "$pid" "$KEY"
	wait_until '[[ $(<"$TMP/waiter.err") == *held* ]]'
	kill "$pid"
	wait "$pid" || :
	redlock release "$KEY" "$token"
	finish waiter
	[[ $status == 64 && ! $output && $stderr == *"the process has ended, so no lock is kept for it" ]]
	run ! is_held
	[[ ! $(keepers) ]]
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "shared, permits and reentrant locks are kept as well, each by a keeper of its own" {
	local kind
	for kind in -s '-P 2' '-r --token me'; do
		rm -f "$TMP/said" "$TMP/step1"
		script job <<-end
			a=\$("\$REDLOCK" acquire --pid \$\$ -t 2s $kind "\$KEY") || exit
			b=\$("\$REDLOCK" acquire --pid \$\$ -t 2s $kind "\$KEY") || exit
			"\$REDLOCK" release "\$KEY" "\$a" || exit
			said "\$b"
			step 1
		end
		wait_until '[[ -s $TMP/said ]]'
		[[ $(keepers | wc -w) == 1 ]]
		local begun
		begun=$NOW
		wait_until '((NOW > begun + 2500))'
		redlock status -q "$KEY" "$(<"$TMP/said")"
		expect 0
		step 1
		finish job
		expect 0
		wait_until '! is_held'
		wait_until '[[ ! $(keepers) ]]'
	done
}

@test "a PID that is acquire itself, as a shell can become its last command, is refused" {
	local why='it is redlock acquire itself, which ends at once: take the number before the $(): pid=$BASHPID; token=$(redlock acquire --pid "$pid" ...)'
	export KEY
	spawn sh sh -c 'echo $$; exec "$REDLOCK" acquire --pid $$ "$KEY"'
	finish sh
	[[ $status == 64 && $stderr == "redlock: --pid $output: $why" ]]
	spawn bash bash -c 'token=$(exec "$REDLOCK" acquire --pid $BASHPID "$KEY") || echo "$? $token"'
	finish bash
	[[ $output == '64 ' && $stderr == "redlock: --pid "*": $why" ]]
	run ! is_held
	[[ ! $(keepers) ]]
	# as the message says
	script job bash <<-'end'
		pid=$BASHPID
		token=$("$REDLOCK" acquire --pid "$pid" "$KEY") || exit
		"$REDLOCK" release "$KEY" "$token"
	end
	finish job
	expect 0
}

@test "a PID that is the number of a thread is refused, as it may end before its process" {
	spawn threads python3 -c '
import signal, sys, threading
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
open(sys.argv[1], "w").write("%d\n" % thread.native_id)
signal.pause()
' "$TMP/thread"
	wait_until '[[ -s $TMP/thread ]]'
	refuses 64 "^redlock: --pid $(<"$TMP/thread"): it is a thread, and not a process$" acquire --pid "$(<"$TMP/thread")" "$KEY"
	no_row_failed
	run ! is_held
	kill -9 "$(pid threads)"
}

# native: it runs redlock's file as somebody else
# bats test_tags=native
@test "a PID that is not there, is no number, or another user's is refused, and nothing is held" {
	local option
	refuses 64 "^redlock: --pid 2147483647: there is no such process$" acquire --pid 2147483647 "$KEY"
	refuses 64 "^redlock: acquire: --pid 'x' is not the number of a process, such as \\\$\\\$" acquire --pid x "$KEY"
	refuses 64 "-p '0' is not" acquire -p 0 "$KEY"
	# it gets no SIGKILL, and a group of this number would be all processes
	for option in '--on-lost kill' '--on-lost kill-group' '--on-lost warn --max-hold 1m'; do
		# shellcheck disable=SC2086 # words
		refuses 64 '^redlock: --pid 1: the first process of a container, or of a machine, cannot be stopped from within: use redlock run, or --on-lost warn without --max-hold$' \
			acquire --pid 1 $option "$KEY"
	done
	refuses 64 "option '--pid' is for other commands" run --pid 1 "$KEY" true
	refuses 64 '--max-hold is for acquire --pid' acquire --max-hold 1m "$KEY"
	refuses 64 '--on-lost is for acquire --pid' acquire --on-lost warn "$KEY"
	refuses 64 '--kill-after is for acquire --pid' acquire -k 1s "$KEY"
	refuses 64 "too short to stop its holder in time" acquire --pid $$ -t 200ms "$KEY"
	# -p 3 for -P 3
	local kernel
	kernel=$(pgrep -P 2 | head -n 1)
	if [[ $kernel ]]; then
		refuses 64 "^redlock: --pid $kernel: it is a thread of the kernel, which does not end$" acquire --on-lost warn -p "$kernel" "$KEY"
	fi
	# a variable is for those who use it
	REDLOCK_MAX_HOLD=1m redlock acquire "$KEY"
	[[ $status == 0 ]]
	redlock release "$KEY" "$output"
	if ((EUID == 0)); then
		run setpriv --reuid 65534 --clear-groups "$REDLOCK" acquire -S "$NOWHERE" --pid $$ "$KEY"
		[[ $status == 64 && $output == "redlock: --pid $$: it is another user's, and could not be stopped: use --on-lost warn without --max-hold" ]]
		run setpriv --reuid 65534 --clear-groups "$REDLOCK" acquire -S "$NOWHERE" --on-lost warn --pid $$ "$KEY"
		[[ $status == 69 ]]
	fi
	no_row_failed
	run ! is_held
}

@test "a container that shares the runtime directory takes no note of ours away" {
	[[ $(id -u) == 0 ]] || skip "a pid namespace needs root"
	unshare --pid --fork --mount-proc true || skip "no pid namespace can be made here"
	script job <<-'end'
		token=$("$REDLOCK" acquire --pid $$ -t 2s "$KEY") || exit
		said here
		step 1
		"$REDLOCK" release "$KEY" "$token"
		said "status $?"
		step 2
	end
	wait_until 'has_said here'
	run unshare --pid --fork --mount-proc "$REDLOCK" release "$KEY" another
	[[ $status == 1 ]]
	step 1
	wait_until 'has_said "status 0"'
	wait_until '[[ ! $(keepers) ]]'
	step 2
	finish job
	expect 0
}

# native: valgrind itself needs /proc
# bats test_tags=native
@test "without /proc the process is stopped, but a keeper that cannot see it is not made" {
	"${MOUNTS[@]}" true || skip "no mounts can be made here"
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer reads /proc"
	spawn blind "${MOUNTS[@]}" sh -c 'mount -t tmpfs none /proc && exec "$@"' - \
		"$REDLOCK" acquire --pid $$ "$KEY"
	finish blind
	expect 64 '' "redlock: --pid $$: /proc does not show it"
	run ! is_held
	export KEY
	cat >"$TMP/later.sh" <<-'end'
		"$REDLOCK" acquire --pid $$ -t 3s -k 300ms "$KEY" >/dev/null || exit
		mount -t tmpfs none /proc || exit
		echo here
		sleep 300
	end
	spawn later "${MOUNTS[@]}" sh "$TMP/later.sh"
	wait_until '[[ -s $TMP/later.out ]]'
	rcli 0 SET "$KEY" another >/dev/null
	finish later
	[[ $status == 143 ]]
}

# native: valgrind needs /dev/null
# bats test_tags=native
@test "without /dev/null it keeps no stream open, either" {
	"${MOUNTS[@]}" true || skip "no mounts can be made here"
	cat >"$TMP/bare.sh" <<-'end'
		mount -t tmpfs none /dev || exit
		token=$("$REDLOCK" acquire --pid $$ "$KEY") || exit
		"$REDLOCK" release "$KEY" "$token" || exit
		"$REDLOCK" run "$KEY" no-such-program 2>&-
		echo "run $?"
		"$REDLOCK" acquire "$KEY" <&- >&-
		echo "acquire $?"
	end
	export KEY REDLOCK
	run --separate-stderr timeout -k 1 60 "${MOUNTS[@]}" sh "$TMP/bare.sh"
	expect 0 $'run 127\nacquire 71' '.*'
	run ! is_held
}

@test "if pidfds can be opened and not used, the process is stopped all the same" {
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	# the process itself runs untraced, as its end is what is waited for
	cat >"$TMP/keeper.sh" <<-'end'
		"$REDLOCK" acquire --pid "$1" -t 3s -k 300ms "$KEY" >/dev/null
		echo "acquire $?"
	end
	export KEY REDLOCK
	spawn kept sleep 600
	spawn traced env ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o /dev/null -e trace=pidfd_send_signal \
		-e inject=pidfd_send_signal:error=EPERM sh "$TMP/keeper.sh" "$(pid kept)"
	wait_until '[[ $(<"$TMP/traced.out") == "acquire 0" ]]'
	rcli 0 SET "$KEY" another >/dev/null
	finish kept
	[[ $status == 143 ]]
	finish traced
}

@test "^C while the keeper is being made ends no lock that the script is told it has" {
	strace -qq -o /dev/null true || skip "strace is not allowed to trace here"
	script job "strace -f -qq -o $TMP/trace -e trace=setsid -e inject=setsid:delay_enter=2s sh" <<-'end'
		trap : INT
		token=$("$REDLOCK" acquire --pid $$ -t 5s "$KEY") || exit
		said "$token"
		step 1
	end
	wait_until '[[ $(grep -w setsid "$TMP/trace") ]]'
	kill -INT "-$(pid job)"
	wait_until '[[ -s $TMP/said ]]'
	[[ $(<"$TMP/said") == "$(rcli 0 GET "$KEY")" && $(grep -w SIGINT "$TMP/trace") ]]
	step 1
	finish job
	expect 0
}

@test "a directory in which the keeper cannot leave its note is named, and no server is asked" {
	local runtime=$TMP/runtime
	mkdir -m 700 "$runtime"
	mkdir -m 755 "$runtime/redlock"
	XDG_RUNTIME_DIR=$runtime redlock acquire -S "$NOWHERE" --pid $$ "$KEY"
	expect 78 '' "redlock: --pid $$: $runtime/redlock can be entered by others \(want mode 0700\): it is not used; remove it, or set XDG_RUNTIME_DIR"
	rmdir "$runtime/redlock"
	touch "$runtime/redlock"
	XDG_RUNTIME_DIR=$runtime redlock acquire -S "$NOWHERE" --pid $$ "$KEY"
	expect 78 '' "redlock: --pid $$: $runtime/redlock is not a directory: .*"
}

# native: a keeper is found by its title, which valgrind keeps
# bats test_tags=native
@test "a name that was being looked up as the keeper was made is looked up again" {
	((EUID == 0)) || skip "only root may answer at port 53"
	servers_start 3
	proxies_start
	local address=127.$((RANDOM % 200 + 2)).$((RANDOM % 200)).53
	cat >"$TMP/names.pl" <<-'end'
		use IO::Socket::INET;
		use IO::Select;
		my ($address, $dir) = @ARGV;
		my $socket = IO::Socket::INET->new(Proto => "udp", LocalAddr => "$address:53") or die "$address: $@";
		my $select = IO::Select->new($socket);
		my @asked;
		sub answer {
			my ($from, $query) = @_;
			my $question = substr($query, 12, index($query, "\0", 12) - 7);
			my $is_a = substr($question, -4, 2) eq "\0\1";
			$socket->send(substr($query, 0, 2) . pack("n5", 0x8180, 1, $is_a, 0, 0) . $question .
				($is_a ? pack("n3Nn C4", 0xc00c, 1, 1, 60, 4, 127, 0, 0, 1) : ""), 0, $from);
		}
		open(READY, ">", "$dir/ready");
		for (;;) {
			if ($select->can_read(0.1)) {
				my $from = $socket->recv(my $query, 512);
				push @asked, [$from, $query] if $from;
			}
			next unless -e "$dir/answer";
			answer(@$_) for splice @asked;
		}
	end
	spawn names perl "$TMP/names.pl" "$address" "$TMP"
	wait_until '[[ -e $TMP/ready ]]'
	printf 'nameserver %s\noptions timeout:2 attempts:5\n' "$address" >"$TMP/resolv.conf"
	cat >"$TMP/job.sh" <<-'end'
		mount --bind "$TMP/resolv.conf" /etc/resolv.conf || exit
		"$REDLOCK" acquire --pid $$ --quarantine 0 -t 12s -S "$LIST" "$KEY" >/dev/null || exit
		echo here >>"$TMP/said"
		exec sleep 300
	end
	local -x LIST
	LIST=$(proxy_url 0),$(proxy_url 1),redis://slow.example:$(<"$PROXIES/2.port")
	export TMP KEY REDLOCK
	spawn job "${MOUNTS[@]}" sh "$TMP/job.sh"
	wait_until 'has_said here'
	[[ $(rcli 2 EXISTS "$KEY") == 0 && $(ps -o args= "$(keepers)") == "redlock-keeper $KEY for "* ]]
	touch "$TMP/answer"
	wait_until '[[ $(rcli 2 EXISTS "$KEY") == 1 ]]'
	kill "$(pid job)" "$(pid names)"
	wait_until '[[ ! $(keepers) ]]'
}

# native: the sanitizers and valgrind have descriptors of their own
# bats test_tags=native
@test "with too few descriptors for a keeper acquire fails, and the script goes on" {
	local few granted=0 failed=0
	[[ $REDLOCK == */build/redlock ]] || skip "a sanitizer needs more"
	export KEY
	for few in {7..16}; do
		run bash -c 'for fd in {3..60}; do eval "exec $fd>&-"; done
			ulimit -n "$1"
			"$REDLOCK" acquire -q --pid $$ -t 3s "$KEY" >/dev/null
			case $? in 0) echo granted ;; 64 | 71) echo failed ;; esac
			sleep 0.2; echo on' - "$few"
		case $status:${lines[-2]}:${lines[-1]} in
		0:granted:on) ((++granted)) ;;
		0:failed:on) ((++failed)) ;;
		*) echo "$few: status $status, $output" && false ;;
		esac
		wait_until 'key_free 0'
	done
	((granted > 0 && failed > 0))
}
