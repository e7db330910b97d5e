#!/usr/bin/env bats
# shellcheck shell=bash
# What a server says is not trusted: whatever it is, and whenever, redlock ends
# in time with one clear line and the right status, starts nothing, and does not
# grow. The cases are tables in tools/hostile_matrix.py.
# bats file_tags=long

load ../lib/helper

# matrix GROUP: says which of its cases are wrong
matrix() {
	set_new
	"$TOOLS/start" -k python3 -S "$ROOT/test/lib/tools/hostile_matrix.py" "$SET" "$@" 3>&- 4>&-
}

@test "run: whatever a server says before it grants, COMMAND is not started" {
	matrix run
}

@test "acquire: whatever servers say, granting, raising or taking back, no token is printed" {
	matrix acquire
}

@test "waiting: nothing that servers say, asked or not, makes a lock of none" {
	matrix waiting
}

@test "extend, release: what makes no sense is no answer" {
	matrix by_hand
}

@test "status, list, break: what makes no sense is not shown" {
	matrix status
}

@test "doctor: whatever a server says, it is told in time what is wrong, and fit for a terminal" {
	matrix doctor
}

@test "while COMMAND runs: hostile servers end it in time, a hostile minority does not" {
	matrix held
}

@test "what servers, holders and users wrote is fit for terminals and JSON" {
	matrix shown
}

@test "of five servers three hostile ones are too many, each told once; two are not" {
	matrix quorum
}

@test "Sentinels and nodes: whatever they say, the search for a server ends in time" {
	matrix search
}
