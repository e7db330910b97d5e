#!/usr/bin/env bats
# Completion in bash, zsh and fish: what Tab makes of a line, in an interactive shell.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	mkdir "$TMP/bin"
	# the 200 ms for keys may be over on a busy machine: tests that want some set PATIENT
	cat >"$TMP/bin/redlock" <<-'end'
		#!/bin/sh
		[ "$PATIENT-$1-$2" = yes-help---complete ] || exec "$REDLOCK" "$@"
		tries=0
		until answer=$("$REDLOCK" "$@"); [ "$(echo "$answer" | wc -l)" -gt 1 ] || [ "$((tries += 1))" -gt 20 ]; do :; done
		echo "$answer"
	end
	chmod +x "$TMP/bin/redlock"
	export REDLOCK PATH=$TMP/bin:$PATH
}

# types <STEPS: in a shell that edits lines and completes them.
types() {
	at_terminal bash --norc --noprofile -i < <(
		printf '%s\n' 'see ready> $' "type bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; . $ROOT/scripts/redlock.bash-completion" \
			'see ready> $'
		cat
		printf '%s\n' 'key ^U' 'type exit 0'
	)
	[[ $status == 0 ]]
}

@test "release, extend, status and break complete the keys of locks that are held" {
	local command
	export PATIENT=yes
	redlock acquire --quarantine 0 "$KEY/held:1"
	for command in release extend status break; do
		printf '%s\n' "key redlock $command $KEY/h^I" "see redlock $command $KEY/held:1 \$" 'key ^U'
	done >"$TMP/steps"
	types <"$TMP/steps"
}

@test "no key is completed from servers that are away, and nothing is said" {
	REDLOCK_SERVERS=unix://$TMP/none types <<-STEPS
		key redlock release $KEY^Ix
		see redlock release ${KEY}x\$
	STEPS
}

@test "a local: server is not started to complete a key" {
	export XDG_RUNTIME_DIR=$TMP
	types <<-STEPS
		key redlock release -S local: $KEY^Ix
		see redlock release -S local: ${KEY}x\$
	STEPS
	run ! pgrep -f "redis-server unixsocket:$TMP"
}

@test "programs are completed for COMMAND, and no keywords or functions of the shell" {
	cp "$(type -P true)" "$TMP/bin/whilst-$KEY"
	types <<-STEPS
		type while-$KEY() { :; }
		see ready> \$
		key redlock run k whil^I
		see redlock run k whilst-$KEY \$
	STEPS
}

@test "the subcommands, and the options of each, are those that help shows" {
	types <<-'STEPS'
		key redlock rel^I
		see redlock release $
		key --serv^I^I^I
		see --server +--server-timeout
		key ^U
		key redlock doctor --acc^I
		see redlock doctor --accept $
		key ^U
		key redlock release --nonb^Ix
		see redlock release --nonbx$
		key ^U
		key redlock run --conflict^I
		see --conflict-exit-code $
		key ^U
	STEPS
}

@test "the value of an option is completed by what help calls it" {
	cd "$TMP" # the terminal is 80 columns wide
	touch some.pem
	types <<-STEPS
		key redlock fence so^I
		see some.pem \$
		key ^U
		key redlock run --cacert so^I
		see some.pem \$
		key -qS unix^I
		see -qS unix:///\$
		key ^U
		key redlock run --on-lost=w^I
		see --on-lost=warn \$
		key --on-lost USR1^I
		see USR1 \$
		key ^U
		key redlock acquire --on-lost kill-^I
		see kill-group \$
		key ^U
		key redlock acquire --format s^I
		see --format shell \$
		key -t 500^I
		see -t 500ms \$
		key ^U
	STEPS
}

@test "what follows the value of an option is no value" {
	cp "$(type -P true)" "$TMP/bin/whilst-$KEY"
	types <<-STEPS
		key redlock run -nt 5s -S=x -w1 --poll --label 'a b' $KEY whils^I
		see whilst-$KEY \$
		key ^U
	STEPS
}

@test "COMMAND's own completion begins at COMMAND, not at a KEY or value that looks like it" {
	types <<-STEPS
		type _command_offset() { COMPREPLY=("word-\$1"); }
		see ready> \$
		key redlock run --label git git git ch^I
		see word-5 \$
		key ^U
		key redlock run -S redis://h:1 git -- git ch^I
		see word-10 \$
		key ^U
	STEPS
}

# types_in_zsh <STEPS: the same in zsh, which says nothing that is not in its line.
types_in_zsh() {
	cp "$ROOT/scripts/redlock.zsh-completion" "$TMP/_redlock"
	at_terminal zsh -f -i < <(
		printf '%s\n' "type fpath=($TMP \$fpath); autoload -Uz compinit; compinit -u -D; PS1='done''> '" 'see done> '
		cat
		printf '%s\n' 'key ^U' 'type exit 0'
	)
	[[ $status == 0 ]]
}

@test "zsh completes subcommands, options, their values, keys, COMMAND and what it takes" {
	export PATIENT=yes
	redlock acquire --quarantine 0 "$KEY/held"
	redlock acquire --quarantine 0 "$KEY/back\\slash:x"
	cd "$TMP" # the terminal is 80 columns wide
	touch some.pem
	types_in_zsh <<-STEPS
		key redlock rele^I
		see release
		key --server-t^I
		see --server-timeout
		key ^U
		key redlock run --nonb^I
		see --nonblock
		key --on-lost ki^I
		see kill
		key ^U
		key redlock run --cacert so^I
		see some.pem
		key ^U
		key redlock run --cacert=$TMP/so^I
		see some.pem
		key ^U
		key redlock fence so^I
		see some.pem
		key ^U
		key redlock release $KEY/h^I
		see held
		key ^U
		key redlock status any -v $KEY/h^I
		see held
		key ^U
		key redlock status $KEY/b^I
		see back\\\\\\\\slash:x
		key ^U
		key redlock run -n k gunz^I
		see gunzip
		key ^U
		key redlock run -nw 5s k -- ls --almost^I
		see --almost-all
	STEPS
	REDLOCK_SERVERS=unix://$TMP/none types_in_zsh <<-STEPS
		key redlock release $KEY^Ix
		see $KEY.*x
	STEPS
}

# fish_offers LINE CANDIDATE ...: and nothing else.
fish_offers() {
	local line=$1
	shift
	run --separate-stderr fish -c "source $ROOT/scripts/redlock.fish; complete -C \"\$argv[1]\"" "$line" 3>&-
	[[ $(cut -f 1 <<<"$output") == "$(printf '%s\n' "$@")" && ! $stderr ]] ||
		{ echo "$line: $output $stderr" && false; }
}

@test "fish completes subcommands, options, their values, keys, COMMAND and what it takes" {
	export PATIENT=yes
	redlock acquire --quarantine 0 "$KEY/held"
	touch "$TMP/some.pem"
	fish_offers 'redlock rele' release
	fish_offers 'redlock help doc' doctor
	fish_offers 'redlock run --server' --server --server-timeout
	fish_offers 'redlock run -n --on-lost wa' warn
	fish_offers 'redlock acquire --on-lost kill-' kill-group
	fish_offers 'redlock acquire --format ' json shell
	fish_offers 'redlock list --format ' json prometheus
	fish_offers "redlock run --cacert $TMP/so" "$TMP/some.pem"
	fish_offers "redlock fence $TMP/so" "$TMP/some.pem"
	fish_offers "redlock release $KEY/h" "$KEY/held"
	fish_offers "redlock status any -v $KEY/h" "$KEY/held"
	fish_offers "redlock release $KEY/held t" ''
	fish_offers "redlock release -S unix://$TMP/none $KEY/h" ''
	fish_offers 'redlock run -nw 5s k -- ls --almost' --almost-all
	fish_offers 'redlock run k gunz' gunzip
}

# offers WORD...: what all shells are told of the last WORD, without descriptions.
offers() {
	timeout -k 1 60 redlock help --complete "$@" 3>&- 4>&- | cut -f 1
}

@test "each option that a subcommand takes is offered, and it takes each value that is" {
	local command option value
	for command in $(offers '' | grep -v -e - -e words -e help); do
		diff <(offers "$command" - | grep -- -- | sort) \
			<("$REDLOCK" "$command" --help=all | sed -nE 's/^ {2,6}(-[A-Za-z], )*(--.*)/\2/p' | sed 's/  .*//' |
				grep -oE -- '--[a-z-]+' | sort)
		for option in $(offers "$command" - | grep -- -- | grep -vx -e --help); do
			for value in $(offers "$command" "$option=" | sed -n '/^words/,$ { /^words/d; p }'); do
				run -0 timeout -k 1 20 "$REDLOCK" "$command" "$value" -h
			done
		done
	done
	[[ $(offers run --on-lost=) == *--on-lost=kill-group*--on-lost=USR1* && $(offers doctor --accept '') == *eviction* ]]
	[[ $(offers run --ttl '') == *30s* && $(offers acquire --format '') == $'words\nshell\njson' ]]
}

@test "an option is offered once, and its value wherever that is written" {
	[[ $(offers run -nt 5s --lab x -) == *$'\n--wait\n'* ]]
	[[ $(offers run -nt 5s --lab x -) != *--nonblock* && $(offers run -nt 5s --lab x -) != *--ttl* ]]
	[[ $(offers run -nt 5s --lab x -) != *--label* && $(offers run -S x -) == *$'\n--server\n'* ]]
	[[ $(offers run -nSunix) == stems*$'\n'-nSunix:///* && $(offers run -S '') == stems*$'\n'unix:///* ]]
	[[ $(offers run --cacert=/x) == 'files --cacert=' && $(offers fence '') == 'files ' ]]
	[[ $(offers acquire -p '') == 'pids ' && $(offers acquire --pid=1) == 'pids --pid=' ]]
	[[ $(offers run --lab x --tt 5s k sudo ls) == 'command 6' && $(offers run -- -k -- ls) == 'command 4' ]]
	[[ $(offers run -c x k '') == words && $(offers nonsense '') == words && $(offers help run '') == words ]]
}

@test "keys are offered as they would be typed, by what they begin with, and no others" {
	export PATIENT=yes
	"$REDLOCK" acquire "$KEY:a b" >/dev/null
	"$REDLOCK" acquire "$KEY*[x" >/dev/null
	"$REDLOCK" acquire "$KEY"$'\e[31m' >/dev/null
	"$REDLOCK" acquire "$KEY"$'\nwords' >/dev/null
	[[ $(offers status "$KEY" | sort) == "$(printf '%s\n' "$KEY*[x" "$KEY:a b" words | sort)" ]]
	[[ $(offers status "$KEY*") == $'words\n'"$KEY*[x" && $(offers status "$KEY:a\\ ") == $'words\n'"$KEY:a b" ]]
	fish_offers "redlock release $KEY:" "$KEY:a b"
	types <<-STEPS
		key redlock release $KEY:a\\^Ix
		see redlock release $KEY:a.* b x\$
		key ^U
	STEPS
}

@test "keys are asked of the servers that the line names, also if -S stands behind other letters" {
	export PATIENT=yes
	redlock acquire --quarantine 0 "$KEY"
	local url=$REDLOCK_SERVERS
	unset REDLOCK_SERVERS
	[[ $(offers break -yS "$url" "$KEY") == $'words\n'"$KEY" && $(offers break "-yvS$url" "$KEY") == $'words\n'"$KEY" ]]
	[[ $(offers break -S "$url" -y "$KEY") == $'words\n'"$KEY" && $(offers wait "-S$url" "$KEY") == $'words\n'"$KEY" ]]
}

@test "status -q has one KEY, after which no other is offered" {
	export PATIENT=yes
	redlock acquire --quarantine 0 "$KEY"
	[[ $(offers status k "$KEY") == $'words\n'"$KEY" && $(offers status -q "$KEY") == $'words\n'"$KEY" ]]
	[[ $(offers status -q k "$KEY") == words && $(offers status k --quiet "$KEY") == words ]]
}

@test "a key that would be an option is offered only after --" {
	export PATIENT=yes
	redlock acquire --quarantine 0 -- "-Sredis://$KEY"
	redlock acquire --quarantine 0 "plain-$KEY"
	[[ $(offers status '') == *"plain-$KEY"* && $(offers status '') != *$'\n'-* ]]
	[[ $(offers release '') == *"plain-$KEY"* && $(offers release '') != *$'\n'-* ]]
	[[ $(offers status -- -S) == $'words\n'"-Sredis://$KEY" && $(offers release -q -- '') == *"-Sredis://$KEY"* ]]
	[[ $(offers status -- "plain-$KEY" -) == $'words\n'"-Sredis://$KEY" ]]
}

@test "a server that is silent costs an instant, and nothing is ever said" {
	local how
	servers_start 3
	"$REDLOCK" acquire --quarantine 0 "$KEY" >/dev/null
	server_stop 2
	# the others are enough
	[[ $(PATIENT=yes offers status "$KEY") == $'words\n'"$KEY" ]]
	server_stop 1
	mkfifo "$TMP/silent"
	for how in '' "--config $TMP/silent" '--config /nonexistent' '-S nonsense' '--cacert /nonexistent' '--set none'; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr timeout -k 1 20 "$REDLOCK" help --complete status $how "$KEY"
		expect 0 words
		# shellcheck disable=SC2086 # words
		[[ $("$REDLOCK" help --complete status $how "$KEY" 2>&- 0<&-) == words ]]
	done
	run timeout -k 1 20 env --ignore-signal=ALRM "$REDLOCK" help --complete status --config "$TMP/silent" "$KEY"
	expect 0 words
	server_continue 1
	server_continue 2
}
