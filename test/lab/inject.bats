#!/usr/bin/env bats
# Calls of the system that fail: see test/lab/inject/drive, and `make inject` for all of them.
# bats file_tags=long

load ../lib/helper

may_preload() {
	[[ $REDLOCK != */build/@(address,undefined|thread)/redlock ]] || skip "a sanitizer's runtime has to come first"
}

# fails_well SCENARIO...: whichever call it is that fails.
fails_well() {
	may_preload
	run "$ROOT/test/lab/inject/drive" "$@" 3>&- 4>&-
	echo "$output"
	[[ $status == 0 ]]
}

@test "whichever call fails: no command runs without the lock, and a run ends as it should" {
	fails_well run
}

@test "whichever call fails at a terminal: COMMAND is started whole or not at all" {
	fails_well terminal
}

@test "whichever call fails: a waiter gets the lock or says why not, and leaves nothing behind" {
	fails_well waiting wait
}

@test "whichever call fails: what is held by hand is held, prolonged and given back, or an error" {
	fails_well acquire extend release names
}

@test "whichever call fails: what is shown and broken is what there is, or an error" {
	fails_well status list break
}

@test "a COMMAND that cannot be made a process, or that its guard is not told of, is not started" {
	local call
	may_preload
	servers_start 1
	for call in clone:1:11 clone:2:11 write:1:12; do
		: >"$TMP/report"
		run --separate-stderr timeout -k 1 60 env LD_PRELOAD="$TOOLS/inject.so" INJECT="0:$call" \
			INJECT_REPORT="$TMP/report" "$REDLOCK" run "$KEY" touch "$TMP/ran"
		expect 71 '' "redlock: $KEY: cannot run 'touch': (Resource temporarily unavailable|Cannot allocate memory)"
		[[ ! -e $TMP/ran ]]
		key_free 0
	done
}
