#!/usr/bin/env bats
# redlock.sh: locks for scripts of any POSIX shell.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

setup_file() {
	servers_start 1
}

setup() {
	KEY=key-$BATS_SUITE_TEST_NUMBER
	TMP=$BATS_TEST_TMPDIR
	unset REDLOCK_TOKEN
	mkdir "$TMP/bin"
	ln -s "$REDLOCK" "$TMP/bin/redlock"
	cp "$ROOT/scripts/redlock.sh" "$TMP/bin"
}

SHELLS=(sh bash dash 'busybox sh' ksh mksh zsh)

# in_each_shell: the script from standard input must end with status 0 in each shell that is
# here; its output is in $TMP/out.
in_each_shell() {
	local shell tried=0
	cat >"$TMP/script"
	export KEY TMP
	for shell in "${SHELLS[@]}"; do
		command -v "${shell%% *}" >/dev/null || continue
		((++tried))
		# shellcheck disable=SC2086 # words
		PATH=$TMP/bin:$PATH timeout -k 1 40 $shell "$TMP/script" >"$TMP/out" 2>"$TMP/err" 3>&- || {
			echo "$shell: status $?" && cat "$TMP/out" "$TMP/err" && false
		}
		"${@:-true}" || { echo "$shell:" && cat "$TMP/out" "$TMP/err" && false; }
		wait_until 'is_free'
	done
	((tried >= 4))
}

is_free() {
	[[ $(rcli 0 EXISTS "$KEY") == 0 ]]
}

@test "redlock_guard holds the lock until the script ends, EXIT traps before and after it included" {
	in_each_shell <<-'end'
		. redlock.sh
		first() { redlock status -q "$KEY" || echo 'not held in the trap' >&2; }
		trap first EXIT
		redlock_guard "$KEY" -t 20s
		redlock_check "$KEY" || exit 2
		[ "$REDLOCK_KEY" = "$KEY" ] && [ "$REDLOCK_FENCE" -gt 0 ] || exit 3
		trap 'first; redlock_check "$KEY" || kill -9 $$' EXIT
	end
	[[ ! -s $TMP/err ]]
}

@test "redlock_guard ends the shell without the lock, with the status of acquire" {
	redlock acquire -t 1h "$KEY"
	local token=$output shell
	printf '%s\n' '. redlock.sh' 'redlock_guard "$KEY" "$@"; echo never' >"$TMP/script"
	export KEY
	for shell in "${SHELLS[@]}"; do
		command -v "${shell%% *}" >/dev/null || continue
		# shellcheck disable=SC2086 # words
		PATH=$TMP/bin:$PATH run --separate-stderr $shell "$TMP/script" -n
		[[ $status == 75 && ! $output && $stderr == *'held by'* ]]
		# shellcheck disable=SC2086 # words
		PATH=$TMP/bin:$PATH run --separate-stderr $shell "$TMP/script" -n -E 0
		[[ $status == 0 && ! $output && ! $stderr ]]
		# shellcheck disable=SC2086 # words
		PATH=$TMP/bin:$PATH run --separate-stderr $shell "$TMP/script" --bad
		[[ $status == 64 && ! $output ]]
		# shellcheck disable=SC2086 # words
		PATH=$TMP/bin:$PATH run --separate-stderr $shell -c '. redlock.sh; redlock_guard; echo never'
		[[ $status == 64 && ! $output && $stderr == 'redlock_guard: usage: '* ]]
		PATH=$TMP/bin:$PATH run --separate-stderr $shell -c '. redlock.sh; redlock_guard "$KEY" true; echo never'
		[[ $status == 64 && ! $output && $stderr == *"one argument too many: 'true' "* ]]
	done
	redlock release "$KEY" "$token"
}

@test "in a subshell the lock is held until that ends" {
	SHELLS=("${SHELLS[@]/#ksh/none}") # its subshells are not always processes
	in_each_shell <<-'end'
		. redlock.sh
		(
			redlock_guard "$KEY"
			redlock_check "$KEY" || exit 2
		) || exit
		redlock_guard "$KEY" -w 20s
	end
}

@test "redlock_with runs functions and commands, with their arguments, status and variables" {
	in_each_shell <<-'end'
		. redlock.sh
		seen=
		work() {
			seen="$#:$1:$2:$REDLOCK_KEY"
			redlock_check "$KEY" || return 9
			return 7
		}
		redlock_with "$KEY" -t 20s -- work 'a  b' ''
		[ "$?" = 7 ] || exit 2
		[ "$seen" = "2:a  b::$KEY" ] || exit 3
		[ -z "${REDLOCK_KEY-}${REDLOCK_TOKEN-}${REDLOCK_HELD-}" ] || exit 4
		redlock status -q "$KEY" && exit 5
		redlock_with "$KEY" -- sh -c 'exit 8'
		[ "$?" = 8 ] || exit 6
		redlock_with "$KEY" -- test -- != x || exit 7
		redlock_check "$KEY" 2>/dev/null
		[ "$?" = 64 ] || exit 9
	end
}

@test "redlock_with within redlock_with holds both, and gives back one after the other" {
	in_each_shell <<-'end'
		. redlock.sh
		inner() {
			redlock_check "$KEY" && redlock_check "$KEY.b" && [ "$REDLOCK_KEY" = "$KEY.b" ]
		}
		outer() {
			redlock_with "$KEY.b" -- inner || return 2
			[ "$REDLOCK_KEY" = "$KEY" ] || return 3
			redlock status -q "$KEY.b" && return 4
			# we would wait for ourselves
			redlock_with "$KEY" -- true 2>/dev/null
			[ "$?" = 75 ] || return 5
			redlock_check "$KEY"
		}
		redlock_with "$KEY" -- outer
	end
}

@test "what is taken inside redlock_with and still held stays known after it" {
	in_each_shell <<-'end'
		. redlock.sh
		set -eu
		ODD="$KEY \\* [x]=%20 'a' \$HOME"
		inner() {
			redlock_guard "$KEY" -r -w 20s
			redlock_guard "$ODD" -r -w 20s --also "$KEY.also"
			redlock_with "$KEY.b" -- true
			eval "$(redlock acquire -r -w 20s --pid "$$" --format shell "$KEY.raw")"
		}
		middle() {
			redlock_with "$KEY.c" -r --token one --also "$KEY.d" -- inner
		}
		redlock_with "$KEY.e" -- middle
		redlock_check "$KEY"
		# each would wait for this script if it was not known to have the lock
		for key in "$KEY" "$ODD" "$KEY.also" "$KEY.raw"; do
			redlock run -n -r "$key" -- true
		done
		case $REDLOCK_HELD in *"$KEY."[b-e]=*) exit 3 ;; esac
		sh -c '[ "$REDLOCK_HELD" = "$1" ]' - "$REDLOCK_HELD"
	end
}

@test "after redlock_with the variables are those of the innermost lock that is held" {
	in_each_shell <<-'end'
		. redlock.sh
		KEY=$KEY.$$
		inner() {
			redlock_guard "$KEY" -r -w 20s
			within=$REDLOCK_TOKEN:$REDLOCK_FENCE
			redlock_with "$KEY.b" -P 2 --also "$KEY.c" -- true
		}
		is_inner() {
			[ "$REDLOCK_KEY:$REDLOCK_TOKEN:$REDLOCK_FENCE" = "$KEY:$within" ] &&
				[ -z "${REDLOCK_SLOT-}${REDLOCK_FENCES-}" ] && return
			exit "$1"
		}
		redlock_with "$KEY" -r -- inner
		is_inner 2
		redlock_check "$KEY" || exit 3
		redlock run -n -r "$KEY" -- true || exit 4
		before=$REDLOCK_HELD
		# the same entry again
		redlock_with "$KEY" -r -- is_inner 5
		is_inner 6
		redlock_with "$KEY.b" -- true
		is_inner 7
		[ "$REDLOCK_HELD" = "$before" ] || exit 8
	end
}

@test "what redlock_with puts back is exported, as it was" {
	in_each_shell <<-'end'
		. redlock.sh
		are_exported() {
			sh -c '[ "$REDLOCK_KEY $REDLOCK_FENCES" = "$1" ]' - "$REDLOCK_KEY $REDLOCK_FENCES"
		}
		redlock_guard "$KEY" -w 20s --also "$KEY.b"
		are_exported || exit 2
		redlock_with "$KEY.c" -- true
		are_exported || exit 3
		slot() {
			redlock_with "$KEY.c" -- true
			sh -c '[ -n "$REDLOCK_SLOT" ]'
		}
		redlock_with "$KEY.d" -P 2 -- slot || exit 4
	end
}

@test "with --also they hold, check and give back all keys" {
	in_each_shell <<-'end'
		. redlock.sh
		held() {
			redlock_check "$KEY" && redlock status -q "$KEY.b" && redlock status -q "$KEY c" || return 2
			case $REDLOCK_FENCES in *"$KEY.b="*) ;; *) return 3 ;; esac
			redlock break --now -yq "$KEY.b"
			redlock_check "$KEY" 2>/dev/null
			[ "$?" = 1 ] || return 4
		}
		redlock_with "$KEY" --on-lost warn --also "$KEY.b" --also="$KEY c" -- held 2>/dev/null || exit
		redlock_check "$KEY" 2>/dev/null
		[ "$?" = 64 ] || exit 5
		[ -z "${REDLOCK_FENCES-}" ] || exit 6
		redlock_with "$KEY" --also "$KEY.b" --also="$KEY c" -- redlock_check "$KEY" || exit 7
		redlock status -q "$KEY" && exit 8
		redlock status -q "$KEY c" && exit 9
		redlock_guard "$KEY" -n --also "$KEY.b"
		redlock_check "$KEY"
	end
	wait_until '[[ $(rcli 0 EXISTS "$KEY.b" "$KEY c") == 0 ]]'
}

@test "what redlock_with cannot get is not run" {
	redlock acquire -t 1h "$KEY"
	local token=$output
	is_free() { true; }
	in_each_shell <<-'end'
		. redlock.sh
		redlock_with "$KEY" -n -- touch "$TMP/ran" 2>/dev/null
		[ "$?" = 75 ] || exit 2
		redlock_with "$KEY" -n -E 0 -- touch "$TMP/ran" || exit 3
		redlock_with "$KEY" -n touch "$TMP/ran" 2>/dev/null
		[ "$?" = 64 ] || exit 4
		redlock_with "$KEY" -- 2>/dev/null
		[ "$?" = 64 ] || exit 5
		redlock_with -- true 2>/dev/null
		[ "$?" = 64 ] || exit 6
		[ ! -e "$TMP/ran" ]
	end
	redlock release "$KEY" "$token"
}

@test "a KEY that comes after options, or options that ask for no lock, are 64, and nothing runs" {
	in_each_shell <<-'end'
		set -u
		. redlock.sh
		is_refused() {
			[ "$1" = 64 ] && [ "$(wc -l <"$TMP/said")" -eq 1 ] && [ ! -e "$TMP/ran" ] && return
			echo "$2: status $1" >&2
			cat "$TMP/said" >&2
			exit 2
		}
		for word in -n -w5s --wait=5s -; do
			redlock_with "$word" "$KEY" -- touch "$TMP/ran" 2>"$TMP/said"
			is_refused "$?" "with $word KEY"
			redlock_with "$word" -- touch "$TMP/ran" 2>"$TMP/said"
			is_refused "$?" "with $word"
			(redlock_guard "$word" "$KEY"; touch "$TMP/ran") 2>"$TMP/said"
			is_refused "$?" "guard $word KEY"
		done
		for word in --help --help=all; do
			redlock_with "$KEY" "$word" -- touch "$TMP/ran" 2>"$TMP/said"
			is_refused "$?" "with KEY $word"
			(redlock_guard "$KEY" "$word"; touch "$TMP/ran") 2>"$TMP/said"
			is_refused "$?" "guard KEY $word"
		done
		(redlock_guard; touch "$TMP/ran") 2>"$TMP/said"
		is_refused "$?" guard
		[ -z "${REDLOCK_TOKEN-}" ]
	end
}

@test "under set -eu it behaves as a command does" {
	SHELLS=("${SHELLS[@]/#ksh/none}")
	in_each_shell <<-'end'
		set -u
		. redlock.sh
		fails() { false; echo 'went on' >&2; }
		(
			set -e
			redlock_with "$KEY" -- fails
		)
		[ "$?" = 1 ] || exit 2
		set -e
		redlock_with "$KEY" -w 20s -- true
		redlock_guard "$KEY" -w 20s
		redlock_check "$KEY"
	end
	[[ $(<"$TMP/err") != *'went on'* ]]
}

@test "the servers of its options are those that are asked again, whatever is in them" {
	in_each_shell <<-'end'
		SERVERS=$REDLOCK_SERVERS
		unset REDLOCK_SERVERS
		. redlock.sh
		printf 'label = it'\''s "a $HOME"\n' >"$TMP/a 'b \$c.conf"
		redlock_with "$KEY" --config "$TMP/a 'b \$c.conf" -S "$SERVERS" -- redlock_check "$KEY" || exit 2
		redlock_with "$KEY" --server="$SERVERS" -t 5s -- redlock_check "$KEY" || exit 3
		redlock_with "a'b \$c" -S"$SERVERS" -- redlock_check "a'b \$c" || exit 4
		redlock status -S "$SERVERS" -q "a'b \$c" && exit 5
		redlock_with "$KEY" -enS "$SERVERS" -- redlock_check "$KEY" || exit 6
		redlock status -S "$SERVERS" -q "$KEY" && exit 7
		redlock_with "$KEY" -xS"$SERVERS" -- redlock_check "$KEY" || exit 8
		redlock status -S "$SERVERS" -q "$KEY" && exit 9
		:
	end
}

@test "a trap may call them between any two commands of a call" {
	SHELLS=("${SHELLS[@]/#ksh/none}") # it ends a substitution when a signal comes
	mkdir "$TMP/told"
	# shellcheck disable=SC2016 # the inner shell's
	local tells='[ "$QUIET" ] || kill -USR1 "$SCRIPT"'
	printf '#!/bin/sh\n%s\nexec /bin/sh "$@"\n' "$tells" >"$TMP/told/sh"
	printf '#!/bin/sh\n"%s" "$@"\nstatus=$?\n%s\nexit "$status"\n' "$REDLOCK" "$tells" >"$TMP/told/redlock"
	chmod +x "$TMP/told/"*
	in_each_shell <<-'end'
		export QUIET=1 SCRIPT=$$
		PATH=$TMP/told:$PATH
		. redlock.sh
		traps=0
		trapped() {
			QUIET=1
			redlock_check "$KEY-outer" || echo "outer: $?" >&2
			redlock_with "$KEY-inner" -n -- true || echo "inner: $?" >&2
			traps=$((traps + 1))
			QUIET=
		}
		trap trapped USR1
		redlock_guard "$KEY-outer" -w 20s
		work() { QUIET=1; redlock status -q "$KEY" || echo 'not held' >&2; QUIET=; return 3; }
		QUIET=
		redlock_with "$KEY" -n -- work
		[ "$?" = 3 ] || exit 2
		redlock_check "$KEY-outer" || exit 3
		QUIET=1
		[ "$traps" -ge 4 ] || exit 4 # behind sh, acquire, release and status
		redlock status -q "$KEY" && exit 5
		[ "$REDLOCK_KEY" = "$KEY-outer" ] || exit 6
	end
	[[ ! -s $TMP/err ]]
}

@test "in a trap, too, their status is their own" {
	redlock acquire -t 1h "$KEY-busy"
	in_each_shell <<-'end'
		. redlock.sh
		redlock_guard "$KEY" --on-lost warn
		redlock release "$KEY" "$REDLOCK_TOKEN"
		(trap 'redlock_guard "$KEY-busy" -n' EXIT; exit 0)
		[ "$?" = 75 ] || exit 2
		last() {
			redlock_check "$KEY"
			[ "$?" = 1 ] || kill -9 $$
			redlock_with "$KEY-busy" -n -- echo ran
			[ "$?" = 75 ] || kill -9 $$
			redlock_with
			[ "$?" = 64 ] || kill -9 $$
			redlock_with "$KEY" -- true
			[ "$?" = 0 ] || kill -9 $$
			trap - EXIT
			exit 0
		}
		trap last EXIT
		exit 5
	end
	[[ ! -s $TMP/out ]]
}

@test "the value of an option is none itself" {
	local line word words
	redlock acquire --help=all
	while read -r line; do
		line=${line%%  *} # -w, --wait DURATION
		[[ $line == -* ]] || continue
		read -ra words <<<"${line//,/}"
		for word in "${words[@]}"; do
			[[ $word != -* ]] || echo "${word%%[*} $([[ ${words[-1]} == -* ]] || echo yes)"
		done
	done <<<"$output" >"$TMP/options"
	in_each_shell <<-'end'
		. redlock.sh
		redlock_with "$KEY" -n --label '-Sales report' -- redlock_check "$KEY" || exit 2
		redlock status -q "$KEY" && exit 3
		redlock_with "$KEY" -xnE 3 --label --also -- redlock_check "$KEY" || exit 4
		redlock status -q "$KEY" && exit 5
		while read -r option has_value; do
			case $(_redlock_servers "$option" -Sx),$has_value in
			"'$option' '-Sx' ,yes" | "'-S' '-Sx' ,yes" | ,yes | "'-Sx' ," | "'$option' '-Sx' ,") echo "$option" ;;
			*) echo "$option $has_value: $(_redlock_servers "$option" -Sx)" >&2 ;;
			esac
		done <"$TMP/options"
	end
	[[ ! -s $TMP/err ]]
	(($(wc -l <"$TMP/out") > 35))
}

@test "a lock that is lost stops the script; redlock_check says it before" {
	in_each_shell <<-'end'
		. redlock.sh
		redlock_guard "$KEY" --on-lost warn 2>/dev/null
		redlock_check "$KEY" || exit 2
		redlock break --now -yq "$KEY"
		redlock_check "$KEY" && exit 3
		:
	end
}

@test "redlock_check says by its status that no server answers" {
	in_each_shell <<-end
		. redlock.sh
		redlock_guard "\$KEY"
		export REDLOCK_SERVERS=$NOWHERE
		redlock_check "\$KEY" 2>/dev/null
		[ "\$?" = 69 ]
	end
}
