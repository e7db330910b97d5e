#!/usr/bin/env bats
# Every message that redlock can give is explained in the manual.
# shellcheck disable=SC2016,SC2154 # text for inner shells; helpers set variables
# bats file_tags=long

load ../lib/helper

MANUAL=$ROOT/man/redlock-messages.7

# compare [SED-SCRIPT FILE]: as scripts/messages does, with FILE changed.
compare() {
	mkdir "$TMP/tree"
	cp -r "$ROOT/src" "$ROOT/man" "$TMP/tree"
	[[ $# == 0 ]] || sed -i "$1" "$TMP/tree/$2"
	run --separate-stderr env -C "$TMP/tree" python3 -IS "$ROOT/scripts/messages" man/redlock-messages.7
	rm -r "$TMP/tree"
}

@test "the manual has every message of the source, and no other" {
	cd "$ROOT"
	run -0 python3 -IS scripts/messages "$MANUAL"
	[[ $output == '' ]]
}

@test "a message that the manual does not have is found, wherever it is made" {
	compare '$ a\void f(void) { log_error("%s: brand new", "x"); }' src/cmd/session.c
	[[ $status == 1 && $output == 'src/cmd/session.c:'*': not in man/redlock-messages.7: ...: brand new' ]]
	compare '$ a\static const char *const why[] = {"a brand" /* new */ " new one"};' src/server/refusal.c
	[[ $status == 1 && $output == 'src/server/refusal.c:'*': not in man/redlock-messages.7: a brand new one' ]]
	compare '$ a\int f(void) { return fail("brandnew"); }' src/server/server.c
	[[ $status == 1 && $output == *': not in man/redlock-messages.7: brandnew' ]]
	compare '$ a\#define WHY "a brand new" " one"' src/lock/token.c
	[[ $status == 1 && $output == *': not in man/redlock-messages.7: a brand new one' ]]
	compare "\$ a\\return redis.error_reply('PERMITS KEY is brand new')" src/lock/lua/acquire.lua
	[[ $status == 1 && $output == 'src/lock/lua/acquire.lua:'*': not in man/redlock-messages.7: KEY is brand new' ]]
}

@test "a message that the source does not have any more is found" {
	compare 's/^\.It "KEY is missing"/&\n.It "KEY is long gone"/' man/redlock-messages.7
	[[ $status == 1 && $output == 'man/redlock-messages.7: in no source: KEY is long gone '* ]]
	compare 's/^\.It "KEY is missing"/.It "KEY is quite missing"/' man/redlock-messages.7
	[[ $status == 1 && $output == *'in no source: KEY is quite missing '* ]]
}
