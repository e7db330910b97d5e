# shellcheck shell=sh
# Locks for scripts of any POSIX shell, to be sourced; see redlock.sh(1).
#
#	. redlock.sh
#	redlock_guard deploy -w 10m	# held until this shell ends
#	redlock_with photos -- publish	# held while a function runs
#	redlock_check deploy || exit	# still held?
#
# What a call has to remember while a COMMAND runs stands in its positional parameters, which
# are its own in every shell: so a COMMAND of redlock_with may call all of these again. So may a
# trap, between any two commands of a call: each call leaves the other variables as they were.
# In a trap a bare `return` or `exit` would have the status from before it. Names that begin with
# _redlock are not for scripts.

_redlock_count=0 # of locks so far
_redlock_key='' _redlock_token='' _redlock_text='' _redlock_shell='' _redlock_lock='' _redlock_number=''
_redlock_words='' _redlock_word='' _redlock_rest='' _redlock_entries='' _redlock_keys='' _redlock_since=''

# FUNCTION [ARGUMENT ...]: runs it, and puts back what it has changed of these.
_redlock_call() {
	set -- "$_redlock_key" "$_redlock_token" "$_redlock_text" "$_redlock_shell" "$_redlock_lock" \
		"$_redlock_number" "$_redlock_words" "$_redlock_word" "$_redlock_rest" \
		"$_redlock_entries" "$_redlock_keys" "$_redlock_since" "$@"
	_redlock_call_past "$@"
	set -- "$?" "$@"
	_redlock_key=$2 _redlock_token=$3 _redlock_text=$4 _redlock_shell=$5 _redlock_lock=$6
	_redlock_number=$7 _redlock_words=$8 _redlock_word=$9 _redlock_rest=${10}
	_redlock_entries=${11} _redlock_keys=${12} _redlock_since=${13}
	return "$1"
}

_redlock_call_past() {
	shift 12
	"$@"
}

# Prints a word so that eval reads it back.
_redlock_quote() {
	printf '%s ' "$(printf '%s\n' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/")"
}

# Prints those of the options that say which servers there are, and which keys, for eval.
_redlock_servers() {
	while [ "$#" -gt 0 ]; do
		_redlock_word=$1
		case $1 in
		-[!-]*) # as of -nqS what is left when those are gone that take no value
			_redlock_word=${1#-}
			while :; do
				case $_redlock_word in
				[nxesrqv]*) _redlock_word=${_redlock_word#?} ;;
				*) break ;;
				esac
			done
			;;
		esac
		case $_redlock_word in
		S | --server | --config | --set | --server-timeout | --cacert | --crl | --cert | \
			--key-file | --sni | --also)
			case $_redlock_word in S) _redlock_word=-S ;; esac
			_redlock_quote "$_redlock_word"
			[ "$#" -eq 1 ] || shift
			_redlock_quote "$1"
			;;
		S*) _redlock_quote "-$_redlock_word" ;;
		--server=* | --config=* | --set=* | --server-timeout=* | --cacert=* | --crl=* | \
			--cert=* | --key-file=* | --sni=* | --also=* | --insecure) _redlock_quote "$1" ;;
		[wtEPpk] | --wait | --timeout | --conflict-exit-code | --tries | --ttl | --permits | \
			--token | --quarantine | --replicas | --label | --remember | --pid | \
			--kill-after | --max-hold | --on-lost | --format)
			[ "$#" -eq 1 ] || shift # the next word is its value
			;;
		esac
		shift
	done
}

# FUNCTION WORDS [KEY ...]: KEY has to come first.
_redlock_has_key() {
	case ${3--} in
	-*)
		echo "$1: usage: $1 KEY $2" >&2
		return 64
		;;
	esac
}

# Sets _redlock_entries to those of REDLOCK_HELD that the lock which was just taken has, a
# blank in front of each: the last ones, one for each of its keys.
_redlock_find_entries() {
	_redlock_entries='' _redlock_rest=$REDLOCK_HELD _redlock_keys="${REDLOCK_FENCES-} "
	while [ -n "$_redlock_keys" ]; do
		_redlock_entries="$_redlock_entries ${_redlock_rest##* }"
		_redlock_rest=${_redlock_rest%  *}
		_redlock_keys=${_redlock_keys#* }
	done
}

# KEY [OPTION ...]: _redlock_lock is the number of the lock, or 0 if KEY was not granted and -E
# says that this is none the less a success. It ends with this shell, which may be a subshell of $$.
_redlock_take() {
	_redlock_key=$1
	shift
	# shellcheck disable=SC2016 # the inner shell's
	_redlock_shell=$(exec sh -c 'echo "$PPID"')
	_redlock_text=$(redlock acquire --format shell --pid "$_redlock_shell" "$_redlock_key" "$@") ||
		return "$?"
	_redlock_lock=0
	case $_redlock_text in
	'exit 0') return 0 ;;
	REDLOCK_KEY=*) eval "$_redlock_text" ;;
	*) # --help
		echo "redlock.sh: $_redlock_key: these options ask for no lock" >&2
		return 64
		;;
	esac
	_redlock_find_entries
	_redlock_text=$(_redlock_servers "$@")
	_redlock_lock=$((_redlock_count += 1)) # at once, so that no trap gets the same one
	eval "_redlock_key_$_redlock_lock=\$_redlock_key
		_redlock_entries_$_redlock_lock=\$_redlock_entries
		_redlock_servers_$_redlock_lock=\$_redlock_text
		_redlock_token_$_redlock_lock=\$REDLOCK_TOKEN"
}

# SUBCOMMAND N: of lock number N.
_redlock_ask() {
	eval "_redlock_key=\$_redlock_key_$2
		_redlock_token=\$_redlock_token_$2
		_redlock_text=\$_redlock_servers_$2"
	eval "redlock $1 $_redlock_text -- \"\$_redlock_key\" \"\$_redlock_token\""
}

# redlock_guard KEY [OPTION ...]: holds KEY until this shell ends. If it does not get KEY, the
# shell ends here, with the status of `redlock acquire`.
redlock_guard() { _redlock_call _redlock_guard "$@"; }

_redlock_guard() {
	_redlock_has_key redlock_guard '[OPTION ...]' "$@" || exit "$?"
	_redlock_take "$@" || exit "$?"
	[ "$_redlock_lock" -gt 0 ] || exit 0
}

# What _redlock_with remembers, before its own words: how many of these precede `--`, and the
# variables as they were.
_redlock_with_take() {
	_redlock_words=$1
	_redlock_rest=$(($# - 9 - $1))
	shift 9
	while [ "$_redlock_words" -gt 0 ]; do
		set -- "$@" "$1"
		shift
		_redlock_words=$((_redlock_words - 1))
	done
	shift "$_redlock_rest"
	_redlock_take "$@"
}

# LOCK WORDS and so on.
_redlock_with_run() {
	shift "$(($2 + 11))"
	"$@"
}

# N HELD: takes lock number N out of REDLOCK_HELD, which was HELD before it. What was taken
# since then stays, even if it has the same entry (-r). _redlock_since: the entries of those
# locks, or nothing.
_redlock_forget() {
	_redlock_since='' _redlock_number=$_redlock_count
	while [ "$_redlock_number" -gt "$1" ]; do
		eval "[ -z \"\${_redlock_token_$_redlock_number-}\" ] ||
			_redlock_since=\$_redlock_since\$_redlock_entries_$_redlock_number"
		_redlock_number=$((_redlock_number - 1))
	done
	eval "_redlock_entries=\$_redlock_entries_$1"
	_redlock_rest="${REDLOCK_HELD-} "
	REDLOCK_HELD=$2
	while [ -n "$_redlock_rest" ]; do
		_redlock_word=${_redlock_rest%% *}
		_redlock_rest=${_redlock_rest#* }
		[ -n "$_redlock_word" ] || continue
		case " $2 " in *" $_redlock_word "*) continue ;; esac
		case "$_redlock_since " in
		*" $_redlock_word "*) ;;
		*) case "$_redlock_entries " in *" $_redlock_word "*) continue ;; esac ;;
		esac
		REDLOCK_HELD="${REDLOCK_HELD:+$REDLOCK_HELD } $_redlock_word"
	done
	[ -n "$REDLOCK_HELD" ] || unset REDLOCK_HELD
}

# STATUS LOCK WORDS and so on.
_redlock_with_end() {
	_redlock_ask release "$2" || :
	eval "_redlock_token_$2="
	_redlock_forget "$2" "$7"
	# the other variables are those of the innermost lock
	[ -z "$_redlock_since" ] || return 0
	REDLOCK_KEY=$4 REDLOCK_TOKEN=$5 REDLOCK_FENCE=$6
	[ -n "$4" ] || unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE
	# these may have been unset meanwhile
	export REDLOCK_FENCES="$8" REDLOCK_UNLOCKED="$9" REDLOCK_SLOT="${10}" REDLOCK_VALID_UNTIL="${11}"
	[ -n "$8" ] || unset REDLOCK_FENCES
	[ -n "$9" ] || unset REDLOCK_UNLOCKED
	[ -n "${10}" ] || unset REDLOCK_SLOT
	[ -n "${11}" ] || unset REDLOCK_VALID_UNTIL
}

# redlock_with KEY [OPTION ...] -- COMMAND [ARGUMENT ...]: holds KEY while COMMAND runs, which
# may be a function. The status is COMMAND's, or that of `redlock acquire`.
redlock_with() { _redlock_call _redlock_with "$@"; }

_redlock_with() {
	_redlock_has_key redlock_with '[OPTION ...] -- COMMAND [ARGUMENT ...]' "$@" || return "$?"
	_redlock_words=0
	for _redlock_word; do
		[ "$_redlock_word" != -- ] || break
		_redlock_words=$((_redlock_words + 1))
	done
	if [ "$((_redlock_words + 1))" -ge "$#" ]; then
		_redlock_has_key redlock_with '[OPTION ...] -- COMMAND [ARGUMENT ...]'
		return "$?"
	fi
	set -- "$_redlock_words" "${REDLOCK_KEY-}" "${REDLOCK_TOKEN-}" "${REDLOCK_FENCE-}" \
		"${REDLOCK_HELD-}" "${REDLOCK_FENCES-}" "${REDLOCK_UNLOCKED-}" \
		"${REDLOCK_SLOT-}" "${REDLOCK_VALID_UNTIL-}" "$@"
	_redlock_with_take "$@" || return "$?"
	set -- "$_redlock_lock" "$@"
	[ "$1" -gt 0 ] || return 0
	_redlock_with_run "$@"
	set -- "$?" "$@"
	_redlock_with_end "$@"
	return "$1"
}

# redlock_check KEY: 0 if the lock that this script has taken is still held, 1 if not, 69 if
# too few servers answer to tell.
redlock_check() { _redlock_call _redlock_check "$@"; }

_redlock_check() {
	_redlock_number=$_redlock_count
	while [ "$_redlock_number" -gt 0 ]; do
		eval "_redlock_key=\${_redlock_key_$_redlock_number-}
			_redlock_token=\${_redlock_token_$_redlock_number-}"
		if [ "$_redlock_key" = "${1-}" ] && [ -n "$_redlock_token" ]; then
			_redlock_ask 'status -q' "$_redlock_number"
			return "$?"
		fi
		_redlock_number=$((_redlock_number - 1))
	done
	echo "redlock_check: this script has not taken '${1-}'" >&2
	return 64
}
