# shellcheck shell=bash
# What the tests of metrics share; load it after helper.bash.

# well_formed FILE: for promtool, if it is here (metrics.bats says if it is not): names, help, types and units. And for
# OpenMetrics each metric is in one piece, no series is there twice, and the end is.
well_formed() {
	[[ ! $(type -P promtool) ]] || promtool check metrics <"$1" || return
	[[ $(tail -n 1 "$1") == '# EOF' ]] || return
	[[ ! $(grep -v '^#' "$1" | sed 's/ [^ ]*$//' | sort | uniq -d | tee /dev/stderr) ]] || return
	[[ ! $(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p; s/^\([a-z_]*\)[ {].*/\1/p' "$1" | uniq | sort | uniq -d | tee /dev/stderr) ]]
}

# metric FILE SERIES: its value; nothing if it is not there.
metric() {
	SERIES=$2 awk 'index($0, ENVIRON["SERIES"] " ") == 1 { print substr($0, length(ENVIRON["SERIES"]) + 2) }' "$1"
}

# between FILE SERIES LEAST MOST
between() {
	awk -v value="$(metric "$1" "$2")" -v least="$3" -v most="$4" 'BEGIN { exit !(value != "" && value >= least && value <= most) }' || {
		echo "$2: $(metric "$1" "$2")" >&2
		false
	}
}
