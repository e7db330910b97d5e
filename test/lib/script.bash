# shellcheck shell=bash
# Scripts that hold locks, step by step, and the keepers that keep them. Load it after helper.bash.

# shellcheck disable=SC2154 # helper.bash sets it

# script_text: the text of a script from standard input, for $TMP, $KEY and $REDLOCK in its environment.
# It goes on at `step N` when the test says `step N`, and what it has `said` is in $TMP/said.
script_text() {
	cat <<-end
		#!/bin/sh
		step() { until [ -e "\$TMP/step\$1" ]; do "$TOOLS/nap" "\$TMP/step\$1"; done; }
		said() { echo "\$*" >>"\$TMP/said"; }
	end
	cat
	export TMP KEY REDLOCK
}

# script NAME [SHELL]: a script from standard input, in the background.
script() {
	local name=$1
	script_text >"$TMP/$name.sh"
	# shellcheck disable=SC2086 # words
	spawn "$name" ${2:-sh} "$TMP/$name.sh"
}

step() {
	touch "$TMP/step$1"
}

# has_said TEXT: the script has.
has_said() {
	grep -qxF -- "$*" "$TMP/said"
}

keepers() {
	pgrep -f "^redlock-keeper $KEY for " || :
}

is_held() {
	[[ $(rcli 0 EXISTS "$KEY") == 1 ]]
}
