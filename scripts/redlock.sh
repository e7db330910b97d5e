# shellcheck shell=sh
# Locks for scripts of any POSIX shell, to be sourced; see redlock.sh(1).
#
#	. redlock.sh
#	redlock_guard deploy -w 10m	# held until this shell ends
#	redlock_with photos -- publish	# held while a function runs
#	redlock_check deploy || exit	# still held?
#
# What a call has to remember stands in its positional parameters, which are its own in
# every shell: so a COMMAND of redlock_with may call all of these again. Names that begin
# with _redlock are not for scripts.

_redlock_count=0 # of locks so far

# Prints a word so that eval reads it back.
_redlock_quote() {
	printf '%s ' "$(printf '%s\n' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/")"
}

# Prints those of the options that say which servers there are, and which keys, for eval.
_redlock_servers() {
	while [ "$#" -gt 0 ]; do
		case $1 in
		-S | --server | --config | --set | --server-timeout | --cacert | --crl | --cert | \
			--key-file | --sni | --also)
			_redlock_quote "$1"
			[ "$#" -eq 1 ] || shift
			_redlock_quote "$1"
			;;
		-S* | --server=* | --config=* | --set=* | --server-timeout=* | --cacert=* | \
			--crl=* | --cert=* | --key-file=* | --sni=* | --also=* | --insecure) _redlock_quote "$1" ;;
		-[nxesrqv]*S) # -nS URL
			_redlock_quote "-S${2-}"
			[ "$#" -eq 1 ] || shift
			;;
		-[nxesrqv]*S*) _redlock_quote "-S${1#*S}" ;;
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

# KEY [OPTION ...]: if KEY was granted, lock number _redlock_count is this one. It ends with
# this shell, which may be a subshell of $$.
_redlock_take() {
	_redlock_key=$1
	shift
	# shellcheck disable=SC2016 # the inner shell's
	_redlock_shell=$(exec sh -c 'echo "$PPID"')
	_redlock_text=$(redlock acquire --format shell --pid "$_redlock_shell" "$_redlock_key" "$@") ||
		return
	case $_redlock_text in
	'exit 0') return 0 ;; # -E 0
	REDLOCK_KEY=*) eval "$_redlock_text" ;;
	*) # --help
		echo "redlock.sh: $_redlock_key: these options ask for no lock" >&2
		return 64
		;;
	esac
	_redlock_find_entries
	_redlock_text=$(_redlock_servers "$@")
	_redlock_count=$((_redlock_count + 1))
	eval "_redlock_key_$_redlock_count=\$_redlock_key
		_redlock_token_$_redlock_count=\$REDLOCK_TOKEN
		_redlock_entries_$_redlock_count=\$_redlock_entries
		_redlock_servers_$_redlock_count=\$_redlock_text"
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
redlock_guard() {
	_redlock_has_key redlock_guard '[OPTION ...]' "$@" || exit
	_redlock_before=$_redlock_count
	_redlock_take "$@" || exit
	[ "$_redlock_count" -gt "$_redlock_before" ] || exit 0
}

# What redlock_with remembers, before its own words: how many of these precede `--`, the
# variables as they were, and how many locks there were.
_redlock_with_take() {
	_redlock_words=$1
	_redlock_rest=$(($# - 10 - $1))
	shift 10
	while [ "$_redlock_words" -gt 0 ]; do
		set -- "$@" "$1"
		shift
		_redlock_words=$((_redlock_words - 1))
	done
	shift "$_redlock_rest"
	_redlock_take "$@"
}

_redlock_with_run() {
	shift "$(($1 + 11))"
	"$@"
}

# N HELD: takes lock number N out of REDLOCK_HELD, which was HELD before it. What was taken
# since then stays, even if it has the same entry (-r). _redlock_since: the entries of those
# locks, or nothing.
_redlock_forget() {
	_redlock_since='' _redlock_number=$_redlock_count
	while [ "$_redlock_number" -gt "$1" ]; do
		eval "[ -z \"\$_redlock_token_$_redlock_number\" ] ||
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

_redlock_with_end() {
	_redlock_ask release "$(($6 + 1))" || :
	eval "_redlock_token_$(($6 + 1))="
	_redlock_forget "$(($6 + 1))" "$5"
	# the other variables are those of the innermost lock
	[ -z "$_redlock_since" ] || return 0
	REDLOCK_KEY=$2 REDLOCK_TOKEN=$3 REDLOCK_FENCE=$4
	[ -n "$2" ] || unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE
	# these may have been unset meanwhile
	export REDLOCK_FENCES="$7" REDLOCK_UNLOCKED="$8" REDLOCK_SLOT="$9" REDLOCK_VALID_UNTIL="${10}"
	[ -n "$7" ] || unset REDLOCK_FENCES
	[ -n "$8" ] || unset REDLOCK_UNLOCKED
	[ -n "$9" ] || unset REDLOCK_SLOT
	[ -n "${10}" ] || unset REDLOCK_VALID_UNTIL
}

# redlock_with KEY [OPTION ...] -- COMMAND [ARGUMENT ...]: holds KEY while COMMAND runs, which
# may be a function. The status is COMMAND's, or that of `redlock acquire`.
redlock_with() {
	_redlock_has_key redlock_with '[OPTION ...] -- COMMAND [ARGUMENT ...]' "$@" || return
	_redlock_words=0
	for _redlock_word; do
		[ "$_redlock_word" != -- ] || break
		_redlock_words=$((_redlock_words + 1))
	done
	if [ "$((_redlock_words + 1))" -ge "$#" ]; then
		_redlock_has_key redlock_with '[OPTION ...] -- COMMAND [ARGUMENT ...]'
		return
	fi
	set -- "$_redlock_words" "${REDLOCK_KEY-}" "${REDLOCK_TOKEN-}" "${REDLOCK_FENCE-}" \
		"${REDLOCK_HELD-}" "$_redlock_count" "${REDLOCK_FENCES-}" \
		"${REDLOCK_UNLOCKED-}" "${REDLOCK_SLOT-}" "${REDLOCK_VALID_UNTIL-}" "$@"
	_redlock_with_take "$@" || return
	[ "$_redlock_count" -gt "$6" ] || return 0
	_redlock_with_run "$@"
	_redlock_status=$?
	_redlock_with_end "$@"
	return "$_redlock_status"
}

# redlock_check KEY: 0 if the lock that this script has taken is still held, 1 if not, 69 if
# too few servers answer.
redlock_check() {
	_redlock_number=$_redlock_count
	while [ "$_redlock_number" -gt 0 ]; do
		eval "_redlock_key=\$_redlock_key_$_redlock_number
			_redlock_token=\$_redlock_token_$_redlock_number"
		if [ "$_redlock_key" = "${1-}" ] && [ -n "$_redlock_token" ]; then
			_redlock_ask 'status -q' "$_redlock_number"
			return
		fi
		_redlock_number=$((_redlock_number - 1))
	done
	echo "redlock_check: this script has not taken '${1-}'" >&2
	return 64
}
