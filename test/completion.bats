#!/usr/bin/env bats
# Completion in bash: what Tab makes of a line, in an interactive shell.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load helper
load cli

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	mkdir "$TMP/bin"
	ln -s "$REDLOCK" "$TMP/bin/redlock"
	export PATH=$TMP/bin:$PATH
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
