#!/usr/bin/env bats
# What runs the tests, scripts/run-tests: a test that fails is never taken for one that passes.

load ../lib/helper

# tests [OPTION...] <FILE: $status and $output of run-tests for it.
tests() {
	cat >"$TMP/file.bats"
	run "$ROOT/scripts/run-tests" "$@" "$TMP/file.bats"
	echo "$output"
}

# fails WHERE <BODY: a test with this body, whose first line is 3, fails, and it is said where.
fails() {
	local text
	text=$'# a file\n@test "so" {\n'$(cat)$'\n}\n'
	tests <<<"$text"
	[[ $status == 1 && ${lines[-1]} == '0 passed, 1 failed' && ${lines[0]} == 'FAIL  so' ]] &&
		[[ ${lines[1]} == *"file.bats, $1)" ]]
}

@test "a command that fails ends a test, and its line is shown" {
	fails 'line 4' <<-'end'
		:
		false
		:
	end
	[[ ${lines[2]} == *'false: status 1' ]]
	fails 'line 3' <<<'[[ 1 == 2 ]]; :'
	fails 'line 3' <<<'((0)); :'
	fails 'line 3' <<<'x=$(false); :'
	fails 'line 3' <<<'true | false; :'
	fails 'line 3' <<<'no_such_command; :'
	fails 'line 3' <<<'exit 3'
	fails 'line 3' <<<'run -1 true; :'
	fails 'line 3' <<<'run ! true; :'
	fails 'line 0' <<<'(false); :'
	fails 'line 0' <<<'kill -KILL $BASHPID'
	fails 'line 5' <<-'end'
		inner() { false; :; }
		:
		inner
		:
	end
}

@test "what a test that failed has printed is shown; of one that passed, nothing" {
	tests <<-'end'
		@test "a" {
			echo from a
			false
		}
		@test "b" {
			echo from b
		}
	end
	[[ $status == 1 && ${lines[-1]} == '1 passed, 1 failed' ]]
	[[ $output == *'from a'* && $output != *'from b'* ]]
}

@test "setup, teardown, and a failure in each" {
	tests <<-'end'
		setup_file() { export CREATED=yes; echo >"$BATS_FILE_TMPDIR/file"; }
		setup() { [[ $BATS_TEST_DESCRIPTION != *setup ]]; touch "$BATS_TEST_TMPDIR/here"; }
		teardown() { [[ $BATS_TEST_DESCRIPTION != *teardown ]]; }
		@test "all is there" {
			[[ $CREATED && -e $BATS_FILE_TMPDIR/file && -e $BATS_TEST_TMPDIR/here ]]
			OF_THIS_TEST=yes
		}
		@test "of another test nothing is" {
			[[ ! ${OF_THIS_TEST-} ]]
		}
		@test "in setup" {
			:
		}
		@test "in teardown" {
			:
		}
	end
	[[ $status == 1 && ${lines[-1]} == '2 passed, 2 failed' ]]
}

@test "a file that cannot be set up, or read, has no test that passed" {
	tests <<-'end'
		setup_file() { false; }
		@test "a" {
			:
		}
		@test "b" {
			:
		}
	end
	[[ $status == 1 && ${lines[-1]} == '0 passed, 2 failed' ]]
	tests <<-'end'
		@test "a" {
			:
		}
		if
	end
	[[ $status == 1 && ${lines[-1]} == '0 passed, 1 failed' ]]
	tests <<-'end'
		teardown_file() { false; }
		@test "a" {
			:
		}
	end
	[[ $status == 1 && ${lines[-1]} == '1 passed, 1 failed' ]]
}

@test "a part that is killed has not passed" {
	tests <<-'end'
		@test "a" {
			:
		}
		@test "b" {
			kill -KILL $$
		}
		@test "c" {
			:
		}
	end
	[[ $status == 1 && ${lines[-1]} == '1 passed, 2 failed' ]]
}

@test "tests are skipped with a reason, and chosen by name and tag" {
	local file
	file=$(
		cat <<-'end'
			@test "a" {
				skip "no \$reason"
			}
			# bats test_tags=native,slow
			@test "\"b\"" {
				:
			}
			@test "c" {
				:
			}
		end
	)
	tests <<<"$file"
	[[ $status == 0 && ${lines[*]} == 'skip  a: no $reason ok    "b" ok    c 1 skipped 2 passed, 0 failed' ]]
	tests --filter '^[bc]$' <<<"$file"
	[[ $status == 0 && ${lines[*]} == 'ok    c 1 passed, 0 failed' ]]
	tests --filter-tags '!native,!kernel' <<<"$file"
	[[ $status == 0 && ${lines[-1]} == '1 passed, 0 failed' && $output != *'"b"'* ]]
	tests --filter nothing <<<"$file"
	[[ $status == 1 ]]
}
