#!/usr/bin/env bats
# The examples of the README, as they stand there.

# shellcheck disable=SC2034,SC2154 # helpers use and set them

load ../lib/helper

@test "the examples of the README do what it says of them" {
	local name
	servers_start 3 --appendonly yes --appendfsync always
	KEY=deploy
	mkdir "$TMP/bin"
	ln -s "$REDLOCK" "$TMP/bin/redlock"
	for name in bin/report.sh bin/build bin/upload deploy.sh; do
		# shellcheck disable=SC2016 # the new script's
		printf '#!/bin/sh\necho "${0##*/} with ${REDLOCK_KEY-nothing}" >>"%s/ran"\n' "$TMP" >"$TMP/$name"
		chmod +x "$TMP/$name"
	done
	sed -n '/^Examples$/,/^Metrics of/s/^\t//p' "$ROOT/README" |
		sed '/^PATH=/d; /^\(export \)\?REDLOCK_SERVERS=/d; s/^15 3 \* \* \* *//' >"$TMP/script"
	cd "$TMP"
	PATH=$TMP/bin:$PATH run --separate-stderr sh -eu script
	[[ $status == 0 && ! $stderr ]]
	[[ ${lines[0]} == 'deploy: free, fence '* ]]
	[[ ${lines[-1]} == '3 of 3 servers would grant a lock, 2 needed: 1 more may fail' ]]
	diff - ran <<-end
		report.sh with nightly
		deploy.sh with deploy
		build with nothing
		upload with nothing
	end
	key_free 0 1 2
}

@test "the crontab of the README names the server that all machines of the fleet use" {
	local line variables=(HOME="$TMP")
	servers_start 1
	KEY=nightly
	mkdir "$TMP/bin"
	ln -s "$REDLOCK" "$TMP/bin/redlock"
	printf '#!/bin/sh\nredlock status nightly >"%s/seen"\n' "$TMP" >"$TMP/bin/report.sh"
	chmod +x "$TMP/bin/report.sh"
	while IFS= read -r line; do # as cron does it
		[[ $line == [A-Z]* ]] || break
		line=${line/redis:\/\/lock1/"$REDLOCK_SERVERS"}
		variables+=("${line/PATH=/PATH=$TMP/bin:}")
	done < <(sed -n '/^\tPATH=/,$s/^\t//p' "$ROOT/README")
	run --separate-stderr env -i "${variables[@]}" /bin/sh -c "redlock${line#*redlock}"
	[[ $status == 0 && ! $output && ! $stderr ]]
	[[ $(<"$TMP/seen") == "nightly: exclusive"* && $(rcli 0 EXISTS nightly) == 1 ]]
}

# native: it runs no redlock
# bats test_tags=native
@test "what the README has of cron, systemd and Prometheus stands in redlock-status(1), where it is tested" {
	local line count=0
	sed -n '/^Metrics of/,/^Locks can/s/^\t//p' "$ROOT/README" >"$TMP/lines"
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$ROOT/man/redlock-status.1" | sed 's/\\e/\\/g; s/^ *//' >"$TMP/page"
	while read -r line; do
		[[ ! $line ]] || grep -qxF -- "$line" "$TMP/page" || { echo "not there: $line" && false; }
		count=$((count + 1))
	done <"$TMP/lines"
	((count >= 15))
	[[ $(type -P promtool) ]] || skip "needs promtool for the rules"
	sed -n '/^groups:/,$p' "$TMP/lines" >"$TMP/rules.yml"
	run promtool check rules "$TMP/rules.yml"
	[[ $status == 0 && $output == *'2 rules found'* ]]
}

# native: it runs no redlock
# bats test_tags=native
@test "without a network bootstrap says at once, in a line, what it cannot install and why" {
	local start alone=(unshare --net)
	[[ $(id -u) == 0 ]] || alone+=(--map-root-user)
	[[ $(command -v apt-get) ]] || skip "needs apt-get"
	"${alone[@]}" true || skip "a network of its own can't be made here"
	sed "s/^needs='\$/&\nbuild cmd:nowhere nowhere-package - -/" "$ROOT/scripts/bootstrap" >"$TMP/bootstrap"
	start=$NOW
	run -1 --separate-stderr "${alone[@]}" sh "$TMP/bootstrap"
	((NOW - start < 10000))
	expect 1 'bootstrap: installing .*' 'bootstrap: could not install .*nowhere-package.*: Failed to fetch .*'
}

# native: it runs no redlock
# bats test_tags=native
@test "bootstrap is content with Redis or with Valkey, and if there is neither, names both" {
	local tool have
	mkdir "$TMP/bin"
	for tool in sh expr sort tr sed id; do ln -s "$(type -P $tool)" "$TMP/bin"; done
	sed -n "/^PATH=/d; /^needs='/,/^'/{/^needs='/p; /any:redis-server/p; /^'/p; d}; p" "$ROOT/scripts/bootstrap" >"$TMP/bootstrap"
	run -1 --separate-stderr env PATH="$TMP/bin" sh "$TMP/bootstrap"
	expect 1 'bootstrap: installing redis-server/valkey-server' \
		'bootstrap: could not install redis-server/valkey-server: no apt-get, dnf or apk here'
	for have in redis-server valkey-server; do
		ln -s /bin/true "$TMP/bin/$have"
		run -0 env PATH="$TMP/bin" sh "$TMP/bootstrap"
		[[ $output == '' ]]
		rm "$TMP/bin/$have"
	done
}
