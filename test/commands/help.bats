#!/usr/bin/env bats
# help: what redlock says of itself, and that the manual says the same.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for inner shells; tests are subshells; helpers set them

load ../lib/helper
load ../lib/cli

COMMANDS=(run acquire release extend status list history check wait break doctor fence)
MAN=$ROOT/man/redlock.1
PAGES=("$ROOT"/man/*.[15])

setup() {
	TMP=$BATS_TEST_TMPDIR
	# help needs none of it
	export REDLOCK_SERVERS=nonsense REDLOCK_PASSWORD_FILE=/nonexistent
}

@test "redlock help, --help and -h list the commands, on standard output" {
	local how command
	for how in help --help -h 'help help' 'help -h' 'help --help'; do
		# shellcheck disable=SC2086 # words
		redlock $how
		[[ $status == 0 && $stderr == '' && $output == usage:*'redlock-messages(7)'* ]]
		for command in "${COMMANDS[@]}" help; do
			[[ $output =~ $'\n'\ +$command\  ]]
		done
	done
}

@test "each command has its help, however it is asked for" {
	local command text
	for command in "${COMMANDS[@]}"; do
		redlock help "$command"
		[[ $status == 0 && $stderr == '' && $output == "usage: redlock $command"* ]]
		text=$output
		for how in --help -h; do
			redlock help "$command" "$how"
			[[ $status == 0 && $stderr == '' && $output == "$text" ]]
			redlock "$command" "$how"
			[[ $status == 0 && $stderr == '' && $output == "$text" ]]
		done
		redlock "$command" -v --help ''
		[[ $status == 0 && $stderr == '' && $output == "$text" ]]
	done
}

@test "an option after COMMAND is COMMAND's: its --help is not redlock's" {
	unset REDLOCK_PASSWORD_FILE
	redlock run -S "$NOWHERE" key cat --help
	[[ $status == 69 && $output == '' ]]
}

@test "each help fits a terminal of 80 x 24, and has what is needed most at its top" {
	local command line
	for command in '' "${COMMANDS[@]}"; do
		# shellcheck disable=SC2086 # none or one
		redlock help $command
		((${#lines[@]} <= 23)) || { echo "$command: ${#lines[@]} lines" && false; }
		for line in "${lines[@]}"; do
			((${#line} <= 80)) || { echo "${#line}: $line" && false; }
		done
	done
	for command in run acquire; do
		redlock "$command" --help
		[[ $(grep -oE '^  -.' <<<"$output" | head -n 3 | paste -sd '') == '  -n  -w  -t' ]]
		[[ ${lines[-1]} =~ ^"redlock $command --help=all lists "[0-9]+" more options, --help=man explains them."$ ]]
	done
}

@test "--help=all has all options in groups, none twice, and fits 80 columns" {
	local command line
	for command in "${COMMANDS[@]}"; do
		redlock "$command" --help=all
		[[ $status == 0 && $stderr == '' && $output == "usage: redlock $command"*$'\nOther:\n'* ]]
		for line in "${lines[@]}"; do
			((${#line} <= 80)) || { echo "${#line}: $line" && false; }
		done
		[[ ! $(grep -oE '^ +-.*--[a-z-]+' <<<"$output" | sort | uniq -d) ]]
		# nothing is on the first page that is not here
		redlock "$command" --help
		[[ ! $(grep -E '^ +-' <<<"$output" | grep -vxFf <("$REDLOCK" "$command" --help=all)) ]]
	done
	redlock run --help=all
	[[ $(grep -E '^[A-Z].*:$' <<<"$output" | paste -sd ' ') == 'Waiting: The lock: COMMAND: Servers: TLS (rediss://): Other:' ]]
	[[ $output =~ $'\nThe lock:\n'.*' --also KEY '.*$'\nCOMMAND:\n' ]]
	refuses 64 "--help 'x' is not all or man" run --help=x
	no_row_failed
}

@test "the help of run speaks of COMMAND, that of acquire of PID; and so do completions" {
	local command option
	redlock run --help=all
	[[ $status == 0 && $output == *COMMAND* && $output != *PID* ]]
	redlock acquire --help=all
	for option in max-hold on-lost; do
		grep -A 2 -e "--$option " <<<"$output" | grep -w PID
	done
	[[ $(grep -v '^COMMAND:$' <<<"$output") != *COMMAND* ]]
	for command in run acquire; do
		"$REDLOCK" help --complete "$command" -- | sed -n 's/^--on-lost\t//p' >"$TMP/$command"
	done
	grep -w COMMAND "$TMP/run"
	grep -w PID "$TMP/acquire"
}

@test "the help of extend says which lease it is without -t, and that of status that --also needs -q; and so it is" {
	local token KEY=key
	redlock extend --help=all
	[[ $output == *' length of the lease (as acquired, or else 30s)'* ]]
	redlock run --help=all
	[[ $output == *' length of the lease (30s)'* ]]
	redlock status --help=all
	[[ $output == *'--also KEY '*' with -q: another KEY; repeat it for more'* ]]
	refuses 64 '--also' status --also other key
	unset REDLOCK_PASSWORD_FILE
	servers_start 1
	token=$("$REDLOCK" acquire -t 1h "$KEY")
	rcli 0 PEXPIRE "$KEY" 10000
	redlock extend "$KEY" "$token"
	[[ $status == 0 ]] && (($(rcli 0 PTTL "$KEY") > 3500000))
	rcli 0 DEL "$(record)"
	rcli 0 PEXPIRE "$KEY" 1000
	redlock extend "$KEY" "$token"
	[[ $status == 0 ]] && (($(rcli 0 PTTL "$KEY") <= 30000 && $(rcli 0 PTTL "$KEY") > 10000))
	no_row_failed
}

@test "the help of a command says whether -q leaves its result; and so it does" {
	local help line command
	unset REDLOCK_PASSWORD_FILE
	servers_start 1
	for line in 'acquire key' list 'history key' 'status key' 'check key' 'break -y --now key' 'wait key' 'run key true'; do
		read -ra command <<<"$line"
		redlock "${command[0]}" -q "${command[@]:1}"
		[[ $status == 0 && $stderr == '' ]]
		help='print only what is wrong'
		[[ ! $output ]] || help+=', and the result'
		"$REDLOCK" "${command[0]}" --help=all | grep -E -- "--quiet +$help\$"
	done
}

@test "--help=all ends with what a DURATION is, if an option takes one" {
	local command text
	for command in "${COMMANDS[@]}"; do
		redlock "$command" --help=all
		if [[ $output == *DURATION[$' \n]']* ]]; then
			[[ $output == *$'\n\nA DURATION is a number with ms, s, m, h or d, or several: '*$'\nA number alone means seconds, up to 3600.' ]]
			text=$output
		else
			[[ $command == fence ]]
		fi
	done
	# all of it is so
	unset REDLOCK_PASSWORD_FILE
	[[ $text =~ several:\ (.*)\.$'\n' ]]
	for text in ${BASH_REMATCH[1]//,/} 1{ms,s,m,h,d} 3600; do
		redlock wait -S "$NOWHERE" -w 1ms --server-timeout "$text" key
		[[ $status == 69 ]]
	done
	refuses 64 'clear: 3601ms or 3601s' wait -w 3601 key
	no_row_failed
}

# native: valgrind has a program of its own in place of this one
# bats test_tags=native
@test "--version tells the version in a line of its own, then the libraries and how it was built" {
	local how
	for how in --version -V; do
		redlock "$how"
		[[ $status == 0 && $stderr == '' && ${#lines[@]} == 7 ]]
		[[ ${lines[0]} =~ ^'redlock '[0-9]+\.[0-9]+(\.[0-9]+)?$ ]]
		[[ ${lines[1]} =~ ^'hiredis: '/.*/libhiredis\.so\.[0-9.]+', built with '[0-9]+\.[0-9]+\.[0-9]+$ ]]
		[[ ${lines[2]} =~ ^'TLS: OpenSSL '[0-9]+\.[0-9]+\.[0-9]+.*', by '/.*/redlock-tls\.so$ ]]
		[[ ${lines[3]} =~ ^'libbsd: '[0-9.]+', '(static|shared)$ ]]
		[[ ${lines[4]} == "C library: $(getconf GNU_LIBC_VERSION 2>/dev/null || echo 'not the GNU C library')" ]]
		[[ ${lines[5]} =~ ^'built by: '.+', for '[a-z0-9_]+-.*', '(32|64)' bits'$ ]]
		[[ ${lines[6]} =~ ^'flags: '.*-fPIE.*-pie ]]
		# it is the hiredis that is loaded
		[[ $(ldd "$REDLOCK") == *" => $(sed 's/^hiredis: //; s/, built with.*//' <<<"${lines[1]}") "* ]]
	done
}

# native: valgrind has a program of its own in place of this one
# bats test_tags=native
@test "--version without the module names it, and is no failure" {
	install -m 755 "$REDLOCK" -t "$TMP"
	REDLOCK=$TMP/redlock
	redlock --version
	[[ $status == 0 && $stderr == '' ]]
	[[ ${lines[2]} == "TLS: none, as rediss:// needs redlock-tls.so, which is neither in $TMP nor in /"*': install redlock-tls' ]]
}

@test "help that can't be written fails" {
	local code=0 what
	for what in help --version 'run --help'; do
		code=0
		# shellcheck disable=SC2086 # two words
		timeout -k 1 20 "$REDLOCK" $what >/dev/full 2>"$TMP/err" || code=$?
		[[ $code == 71 && $(<"$TMP/err") == "redlock: standard output: No space left on device" ]]
	done
}

# the options of help, `-x` and `--long`, sorted
options_in_help() {
	local command
	{
		"$REDLOCK" help | grep -E 'redlock -'
		for command in "${COMMANDS[@]}"; do "$REDLOCK" "$command" --help=all | grep -E '^ +-'; done
	} | grep -oE '(^| )(-[a-zA-Z]|--[a-z][a-z-]*)' | tr -d ' ' | sort -u
}

# the options that the manuals have an item for
options_in_manual() {
	grep -hE '^\.It Fl' "${PAGES[@]}" | grep -oE 'Fl -?[a-zA-Z][a-z-]*' | sed 's/^Fl /-/' | sort -u
}

@test "every option that help lists is in the manual, and the other way round" {
	[[ $(options_in_help | wc -l) -gt 20 ]]
	diff <(options_in_help) <(options_in_manual)
}

# the page of command $1: it may be another's, too
page_of() {
	grep -lE "^\.Nm redlock-$1( ,)?\$" "$ROOT"/man/redlock-*.1
}

# the options on page $1
options_on() {
	grep -E '^\.(It )?Fl ' "$1" | sed -E 's/^\.(It )?Fl/ /' | grep -oE ' -?[a-zA-Z][a-z-]*' | sort -u
}

@test "each command's page has every option of the command, or redlock(1) has" {
	local command letter option has wrong=''
	for command in "${COMMANDS[@]}"; do
		has=$'\n'$(options_on "$MAN" && options_on "$(page_of "$command")")$'\n'
		while read -r letter option; do
			[[ $has == *$'\n'" -$option"$'\n'* || $has == *$'\n'" $letter"$'\n'* ]] ||
				wrong+="$command --$option"$'\n'
		done < <("$REDLOCK" "$command" --help=all | sed -nE 's/^ +(-(.), )?--([a-z-]+).*/\2 \3/p' | sed 's/^ /none /')
	done
	[[ ! $wrong ]] || { echo "$wrong" >&2 && false; }
}

# what stands in a command's own part of help is accepted there, and nowhere else is it promised
@test "help and manual give an option the same argument" {
	local option argument
	while read -r option argument; do
		grep -E -h "^\\.It .*Fl -$option( |\$)" "${PAGES[@]}" | sed 's/Ns \|Op \|Ar \|Cm \|Fl \|= //g' | grep -F -- "${argument//|/ | }" || {
			echo "--$option $argument" >&2
			false
		}
	done < <(for command in "${COMMANDS[@]}"; do "$REDLOCK" "$command" --help=all; done |
		sed -n 's/^ *\(-[a-zA-Z], \)\?--\([a-z-]*\)\(, --[a-z-]*\)\?[ =[]*\([A-Z|a-z]*\).*/\2 \4/p' | sort -u | awk 'NF == 2 && $2 ~ /[A-Z|]/')
}

@test "every exit status that redlock has is in the manual" {
	local code
	for code in 0 1 64 65 69 70 71 75 76 77 78 124 126 127; do
		grep -qE "^\\.It (Li |Er |Dv )?$code\\b|^\\.It .*\\b$code\\b" "$MAN" || {
			echo "no item for $code" >&2
			false
		}
	done
}

@test "every variable that redlock reads or sets is in the manual" {
	local name
	for name in $(sed -n '/^.Ss Settings/,/^.Ss Server/p' "$ROOT/man/redlock.conf.5" | grep -oE '^\.It Li [a-z-]+' | cut -d ' ' -f 3); do
		[[ $name != server ]] || name=servers
		[[ $name != insecure ]] || continue
		name=$(tr a-z- A-Z_ <<<"REDLOCK_$name")
		grep -qE "^\\.It (Ev|Xo) .*$name\\b|^\\.Ev .*$name\\b" "$MAN" || {
			echo "no item for $name" >&2
			false
		}
	done
	for name in $(grep -ohE '"(REDLOCK_[A-Z_]+|SHELL|HOME|XDG_CONFIG_HOME|XDG_RUNTIME_DIR)"' "$ROOT"/src/*/*.c | tr -d '"' | sort -u); do
		grep -qE "^\\.(It )?Ev .*$name|^\\.It .*Ev $name" "$MAN" || {
			echo "no item for $name" >&2
			false
		}
	done
}

@test "man finds a page for each command, and it is that command's" {
	local command
	mkdir -p "$TMP/man/man1"
	for command in "${COMMANDS[@]}"; do # as make install does it
		ln -s "$(page_of "$command")" "$TMP/man/man1/redlock-$command.1"
	done
	if [[ ! $(command -v man) ]]; then # mandoc's, which Debian calls so
		printf '#!/bin/sh\nexec mman "$@"\n' >"$TMP/man/man"
		chmod +x "$TMP/man/man"
		PATH=$TMP/man:$PATH
	fi
	for command in "${COMMANDS[@]}"; do
		run -0 --separate-stderr env MANPATH="$TMP/man" MANWIDTH=80 "$REDLOCK" "$command" --help=man
		# (mandoc's man has no index of them, and says so)
		[[ $(grep -v 'outdated mandoc.db' <<<"$stderr") == '' && $output != *$'\e'* ]]
		output=$(sed $'s/.\b//g' <<<"$output") # some men make letters bold so, for a pager
		[[ $output == *$'\nNAME\n'*redlock-$command*$'\nSYNOPSIS\n'*"redlock $command"*$'\nDESCRIPTION\n'* ]]
	done
}

# a man(1) that has only redlock-run, and shows it with status 3
make_man() {
	printf '%s\n' '#!/bin/sh' '[ "$#:$1:$2" != 2:-w:redlock-run ] || exit 0' '[ "$#:$1" = 1:redlock-run ] || exit 16' \
		'echo a manual; exit 3' >"$TMP/man"
	chmod +x "$TMP/man"
}

@test "--help=man opens the command's manual, and exits as man does" {
	make_man
	PATH=$TMP:$PATH redlock run --help=man
	expect 3 'a manual'
}

@test "help of a command is its manual on a terminal, and its options elsewhere" {
	make_man
	PATH=$TMP:$PATH at_terminal "$REDLOCK" help run <<<'see ^a manual'
	[[ $status == 3 ]]
	PATH=$TMP:$PATH redlock help run
	[[ $status == 0 && $output == 'usage: redlock run'* ]]
}

@test "without man, or the page, --help=man says so and lists all options" {
	local path
	make_man
	redlock list --help=all
	for path in "$TMP:$PATH" /nonexistent; do
		run -0 --separate-stderr env PATH="$path" "$REDLOCK" list --help=man
		[[ $output == "$(<"$TMP/redlock.out")" ]]
		[[ $stderr == 'redlock: man(1) does not find redlock-list(1), so these are the options' ]]
	done
}
