#!/usr/bin/env bats
# The bench itself, with as few repetitions as it can: what it measures then means nothing.

load helper

bench() {
	"$ROOT/test/bench/bench" --quick "$@" 3>&- 4>&-
}

is_sanitized() {
	[[ $REDLOCK != */build/redlock ]]
}

setup() {
	! is_sanitized || skip "what sanitizers cost is not to be measured"
}

setup_file() {
	is_sanitized || bench --json >"$BATS_FILE_TMPDIR/results" 2>"$BATS_FILE_TMPDIR/said" ||
		{ cat "$BATS_FILE_TMPDIR/said" >&2 && return 1; }
}

results() {
	jq -e "$@" "$BATS_FILE_TMPDIR/results"
}

@test "every topic of the bench has figures, and says why where it has none" {
	results '.topics | length == 9 and
		all(.[]; (.tables | length) > 0 or (.notes | length) > 0)'
	results '[.topics[].tables[] | .title, (.rows | length > 0)] | all'
	results '[.. | numbers] | all(. > -1 and . < 1e9)'
}

@test "redlock and the floor are beside each other in the bench" {
	for topic in start handover contention scale; do
		results --arg topic $topic '.topics[$topic].tables[0].rows |
			map(.[""]) | any(test("redlock")) and any(test("floor"))'
	done
}

@test "the bench says of each goal whether it is met" {
	results '[.topics[].goals[] | (.value <= .limit + 0.5 or .met == false) and
		(.value > .limit - 0.5 or .met == true)] | length > 15 and all'
}

@test "what the bench prints for machines can be shown to people" {
	run --separate-stderr "$ROOT/test/bench/bench" --show "$BATS_FILE_TMPDIR/results"
	[[ $status == 0 && $output == *"noise: "* && $output == *"goals met" ]]
	for topic in start trips handover distance contention idle quorum size scale; do
		[[ $output == *$'\n'"$topic: "* ]]
	done
}

@test "a topic can be benched alone" {
	run --separate-stderr bench size
	[[ $status == 0 && $output == *$'\nsize: '*"stripped, KiB"* && $output != *$'\nstart: '* ]]
	run --separate-stderr bench sizes
	[[ $status == 2 && ! $output ]]
}
