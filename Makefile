# redlock: build, check, install. `make V=1` shows the commands.

VERSION = 0.1.0
PREFIX = /usr/local
DESTDIR =
CC = gcc
PKG_CONFIG = pkg-config
CLANG_FORMAT = clang-format
CLANG_TIDY = clang-tidy

# SANITIZE=address,undefined or SANITIZE=thread builds beside the normal tree.
SANITIZE =
BUILD = build$(if $(SANITIZE),/$(SANITIZE))

SOURCES = redlock.c cmd/session.c cmd/run.c cmd/acquire.c cmd/release.c cmd/extend.c cmd/status.c cmd/list.c cmd/wait.c cmd/break.c cmd/doctor.c cmd/json.c run/watchdog.c wait/waiter.c wait/progress.c wait/queue.c wait/requests.c wait/message.c run/max_hold.c run/child.c run/job.c run/guard.c run/process.c run/tree.c lock/lock.c lock/lock_acquire.c show/inspect.c show/scan.c show/batch.c show/holders.c lock/attempt.c lock/ballot.c lock/trust.c lock/silence.c lock/alias.c show/doctor.c show/sentinel.c show/server_facts.c lock/script.c server/quorum.c server/drain.c server/mailbox.c server/server.c server/greeting.c server/refusal.c server/cause.c server/reply.c server/resp.c server/identity.c net/stream.c net/tls_load.c net/resolve.c net/local.c net/runtime.c server/discovery.c server/cluster.c server/nodes.c server/last_place.c server/hash_slot.c settings/config.c settings/logins.c settings/arguments.c settings/sources.c settings/environment.c settings/conffile.c settings/options.c settings/help.c settings/suggest.c settings/synonym.c net/url.c net/endpoint.c base/duration.c base/deadline.c lock/token.c run/ancestry.c lock/record.c base/glob.c base/keyset.c base/output.c base/log.c base/title.c base/error.c base/alloc.c base/signals.c
OBJECTS = $(SOURCES:%.c=$(BUILD)/%.o)
TOOLS = $(patsubst test/tools/%.c,$(BUILD)/test/%,$(wildcard test/tools/*.c)) \
	$(patsubst test/load/%.c,$(BUILD)/test/%,$(wildcard test/load/*.c)) \
	$(patsubst test/bench/%.c,$(BUILD)/test/%,$(wildcard test/bench/*.c)) \
	$(patsubst %,$(BUILD)/test/%,section wire clock.so valid.so witness inject.so \
	watched shim.so)
UNITS = $(patsubst test/unit/%.c,$(BUILD)/test/unit_%,$(wildcard test/unit/*.c))

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wconversion -Wno-sign-conversion -Wvla -Wno-missing-field-initializers
HARDENING = $(if $(SANITIZE),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong \
	-fstack-clash-protection -fcf-protection -fPIE
# small, because what a run costs is mostly its start: pages that are mapped and
# touched, not instructions
# ... and without what gcc does at -Oz all the same and makes nothing smaller; no
# floating point is used, whose registers variadic functions would save
supported = $(shell $(CC) -Werror $(1) -E -xc /dev/null >/dev/null 2>&1 && echo '$(1)')
CFLAGS := $(or $(call supported,-Oz),-Os) -g
SMALL := $(if $(SANITIZE),,$(call supported,-fno-plt -mgeneral-regs-only \
	-fno-expensive-optimizations -fno-tree-loop-im -fno-tree-forwprop \
	-fno-move-loop-invariants -fno-tree-dominator-opts))
LTO := $(if $(SANITIZE)$(findstring clang,$(shell $(CC) --version)),,\
	-flto=1 -flto-partition=one)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) \
	$(HARDENING) -fno-asynchronous-unwind-tables -pthread -Isrc -I$(BUILD) \
	$(subst -I/,-isystem /,$(shell $(PKG_CONFIG) --cflags hiredis libbsd-overlay)) \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer \
	-fno-sanitize-recover=all) $(CFLAGS) $(EXTRA_CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,-z,pack-relative-relocs -Wl,--as-needed -pthread \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
# Of libbsd a handful of functions that the C library lacks, from its archive
# where there is one: loading it and its libmd would be a twelfth of a run.
# hiredis, which reads what servers send, is always the system's shared one.
LIBBSD = $(or $(filter /%,$(shell $(CC) -print-file-name=libbsd.a)),\
	$(shell $(PKG_CONFIG) --libs libbsd-overlay))
LIBRARIES = $(shell $(PKG_CONFIG) --libs hiredis) -lc $(LIBBSD)

Q = $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$(@:$(BUILD)/%=%)")

# OpenSSL stays out of the program: only rediss:// opens it
MODULE = $(BUILD)/redlock-tls.so
TLS_OBJECTS = $(BUILD)/net/tls.o $(BUILD)/net/tls_context.o

all: $(BUILD)/redlock $(MODULE)

$(BUILD)/redlock.o $(BUILD)/net/tls_load.o $(TLS_OBJECTS): \
	ALL_CFLAGS += -DVERSION='"$(VERSION)"' -DBINDIR='"$(PREFIX)/bin"'
$(TLS_OBJECTS): ALL_CFLAGS += -fPIC -fvisibility=hidden
# ThreadSanitizer takes clone for a fork: after one with shared memory it does not
# see the caller's mutexes any more
$(BUILD)/run/child.o: ALL_CFLAGS += $(if $(filter thread,$(SANITIZE)),-Dclone=__clone)

$(MODULE): $(TLS_OBJECTS)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(filter-out -pie %.o,$(ALL_LDFLAGS)) \
		-o $@ $^ $(shell $(PKG_CONFIG) --libs openssl)

$(BUILD)/redlock: $(OBJECTS)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_CFLAGS) $(SMALL) $(LTO) $(ALL_LDFLAGS) -o $@ $(OBJECTS) $(LIBRARIES)

$(BUILD)/%.o: src/%.c | $(BUILD)/scripts.h
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SMALL) $(LTO:%=% -ffat-lto-objects) -MMD -MP -c -o $@ $<

# a server reads 16 KiB at once, and acquire, raise and release should be among
# them
$(BUILD)/scripts.h: $(wildcard src/lock/lua/*.lua) scripts/embed | $(BUILD)
	$(call say,LUA)
	$(Q)scripts/embed $(filter %.lua,$^) >$@.new && mv $@.new $@

vpath %.c test/tools test/load test/soak test/inject test/valgrind

$(BUILD)/test/%: %.c | $(BUILD)/test
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $<

# it is started twenty thousand times
$(BUILD)/test/ask: ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -static

# for programs that are preloaded with it, whatever they are built with
$(BUILD)/test/%.so: %.c | $(BUILD)/test
	$(call say,CC)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize% -fPIE,$(ALL_CFLAGS)) \
		-fPIC -shared -o $@ $<

$(BUILD)/test/watched $(BUILD)/test/shim.so: test/valgrind/watched.h

# what is measured against, and what measures, is small, whatever redlock is
$(BUILD)/test/%: test/bench/%.c | $(BUILD)/test
	$(call say,CC)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -static -o $@ $<

$(BUILD)/test/tap: test/bench/tap.c | $(BUILD)/test
	$(call say,CC)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -fPIC -shared -o $@ $<

$(BUILD)/test/unit_%: test/unit/%.c $(OBJECTS) | $(BUILD)/test
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -fno-lto $(ALL_LDFLAGS) -o $@ $< \
		$(filter-out $(BUILD)/redlock.o,$(OBJECTS)) $(LIBRARIES)

# redlock without one of its safety mechanisms, for the test that has to notice:
# test/mutants/NAME.patch, applied to a copy of src/ and built beside it
MUTANTS = $(patsubst test/mutants/%.patch,%,$(wildcard test/mutants/*.patch))

mutants: $(MUTANTS:%=$(BUILD)/mutant/%/build/redlock)

$(BUILD)/mutant/%/build/redlock: test/mutants/%.patch $(BUILD)/redlock
	$(call say,MUTANT)
	$(Q)rm -rf $(BUILD)/mutant/$* && mkdir -p $(@D)
	$(Q)cp -a Makefile scripts src $(BUILD)/mutant/$*
	$(Q)cd $(BUILD) && cp -a --parents $(patsubst $(BUILD)/%,%,$(OBJECTS) $(OBJECTS:.o=.d)) scripts.h $(abspath $(@D))
	$(Q)sed -i 's,$(BUILD)/,build/,g' $(@D)/*.d $(@D)/*/*.d
	$(Q)patch -s -p1 -F0 -d $(BUILD)/mutant/$* <$<
	$(Q)$(MAKE) -s -C $(BUILD)/mutant/$* BUILD=build LTO= build/redlock

$(BUILD) $(BUILD)/test:
	$(Q)mkdir -p $@

tests: all $(TOOLS) $(UNITS)

check: tests
	$(Q)REDLOCK=$(CURDIR)/$(BUILD)/redlock BUILD=$(CURDIR)/$(BUILD) \
		scripts/run-tests $(TESTS)

# The tests with all memory watched, on a machine that has nothing else to do, as
# a start costs as much as 200 do otherwise; TESTS names others. Left out are those
# that start no redlock, or one of their own, or measure; and 24 tests that say why.
VALGRIND_TESTS = $(filter-out $(patsubst %,test/%.bats,bench checker inject \
	model mutants soak stress),$(wildcard test/*.bats))

valgrind: tests
	$(Q)BUILD=$(CURDIR)/$(BUILD) scripts/run-valgrind $(or $(TESTS),$(VALGRIND_TESTS))

# What it costs: BENCH names topics, or is --json for machines; BENCH=--help.
BENCH =
bench: tests
	$(Q)REDLOCK=$(CURDIR)/$(BUILD)/redlock test/bench/bench $(BENCH)

# What must never happen, for long; what COUNT, DURATION and SEED mean is said
# by test/load/stress --help.
export COUNT DURATION SEED CLIENTS
STRESS = all
stress: tests
	$(Q)REDLOCK=$(CURDIR)/$(BUILD)/redlock test/load/stress $(STRESS)

# What must never happen, while everything around it breaks: test/soak/soak --help.
soak: tests
	$(Q)REDLOCK=$(CURDIR)/$(BUILD)/redlock test/soak/soak

# What each failing call of the system does: all of them; SEED as above.
INJECT =
inject: tests
	$(Q)REDLOCK=$(CURDIR)/$(BUILD)/redlock test/inject/drive --all $(INJECT)

# Which lines the tests run; what must have been run is in test/coverage/report.
# Counters that cannot be written, or take memory, make some tests fail, which
# `make check` is there to judge. COVERAGE_KEEP=1 adds to what was run before.
COVERAGE = build/coverage
COVERAGE_KEEP =
COVERAGE_TESTS = $(filter-out $(patsubst %,test/%.bats,bench checker model \
	mutants soak stress),$(wildcard test/*.bats))
COVERAGE_FLAGS = BUILD=$(COVERAGE) HARDENING= LTO= CFLAGS='-O0 -g --coverage -fprofile-update=atomic' \
	LDFLAGS='--coverage -Wl,--wrap=_exit,--wrap=raise $(CURDIR)/$(COVERAGE)/dump.o'

coverage:
	$(Q)mkdir -p $(COVERAGE)
	$(Q)$(if $(COVERAGE_KEEP),,rm -f $(COVERAGE)/*.gcda)
	$(Q)$(CC) -O2 -Wall -c -o $(COVERAGE)/dump.o test/coverage/dump.c
	$(Q)$(MAKE) $(COVERAGE_FLAGS) tests
	$(Q)-GCOV_ERROR_FILE=/dev/null $(MAKE) $(COVERAGE_FLAGS) check \
		TESTS='$(or $(TESTS),$(COVERAGE_TESTS))'
	$(Q)test/coverage/report $(COVERAGE)

# libFuzzer finds inputs that break the parsers: SECONDS for each target, as many
# at a time as there are processors. test/fuzz/world.h is what they run in.
SECONDS = 30
FUZZERS = text replies config
FUZZ_FLAGS = $(subst -fcf-protection,,$(filter-out -D_FORTIFY_SOURCE=2,$(ALL_CFLAGS))) \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	-Dclock_gettime=world_gettime
FUZZ_OBJECTS = $(patsubst %.c,$(BUILD)/fuzz/%.o,cmd/json.c \
	$(filter-out redlock.c cmd/%.c net/stream.c base/deadline.c server/last_place.c,$(SOURCES)))

$(BUILD)/fuzz/%.o: src/%.c $(BUILD)/scripts.h
	$(call say,FUZZ)
	$(Q)mkdir -p $(@D)
	$(Q)clang $(FUZZ_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/%: test/fuzz/%.c test/fuzz/world.c test/fuzz/world.h $(FUZZ_OBJECTS)
	$(call say,FUZZ)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< test/fuzz/world.c \
		$(FUZZ_OBJECTS) $(LIBRARIES)

fuzz: $(FUZZERS:%=$(BUILD)/fuzz/%)
	$(Q)$(MAKE) --no-print-directory -Oline -j$(shell nproc) $(FUZZERS:%=fuzz-%)

fuzz-%: $(BUILD)/fuzz/%
	$(Q)mkdir -p $<.corpus
	$(Q)$< -max_total_time=$(SECONDS) -timeout=5 -rss_limit_mb=512 \
		-verbosity=0 -print_final_stats=1 -artifact_prefix=$<. \
		$(addprefix -dict=,$(wildcard test/fuzz/$*.dict)) \
		$<.corpus test/fuzz/corpus/$*

# The protocol, searched by spin; DEPTH=full for long. See test/model/README.
DEPTH = short
model:
	$(Q)DEPTH=$(DEPTH) MODELS=$(CURDIR)/$(BUILD)/model test/model/check

lint: tests
	$(Q)CLANG_FORMAT=$(CLANG_FORMAT) CLANG_TIDY=$(CLANG_TIDY) \
		FLAGS='$(ALL_CFLAGS)' scripts/lint

install: all
	install -d $(DESTDIR)$(PREFIX)/bin \
		$(DESTDIR)$(PREFIX)/lib/redlock \
		$(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man5 \
		$(DESTDIR)$(PREFIX)/share/man/man7 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 $(BUILD)/redlock $(DESTDIR)$(PREFIX)/bin/redlock
	install -m 644 $(MODULE) $(DESTDIR)$(PREFIX)/lib/redlock
	install -m 644 man/redlock.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 man/redlock.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 man/redlock-protocol.7 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 644 man/redlock-messages.7 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 644 man/redlock-servers.7 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 644 scripts/redlock.bash-completion \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/redlock

clean:
	rm -rf build

.PHONY: all tests mutants check valgrind bench stress soak inject coverage fuzz lint model install clean
.DELETE_ON_ERROR:
.SECONDARY: $(FUZZ_OBJECTS)

-include $(OBJECTS:.o=.d) $(TLS_OBJECTS:.o=.d) $(FUZZ_OBJECTS:.o=.d)
