# What is built to try redlock, and the laboratory: what takes long, or measures.

TOOL_SOURCES := $(wildcard test/lib/tools/*.c) \
	$(foreach room,bench inject soak stress valgrind,$(wildcard test/lab/$(room)/*.c))
PRELOADED = clock inject shim tap valid
BUILTINS = ask at_most
TOOLS = $(patsubst %,$(BUILD)/test/%,$(PRELOADED:=.so) $(BUILTINS:=.so) \
	$(filter-out $(PRELOADED) at_most,$(notdir $(TOOL_SOURCES:.c=))))
UNITS = $(patsubst test/unit/%.c,$(BUILD)/test/unit_%,$(wildcard test/unit/*.c))
# No sanitizer in them: they are not what is tested. Those that are measured, or
# started twenty thousand times, have nothing to load.
TOOL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -pthread -Isrc -MMD -MP
STATIC = ask distance floor nap race start
vpath %.c $(sort $(dir $(TOOL_SOURCES)))

## tests       all that the tests need, besides redlock
tests: all $(TOOLS) $(UNITS)

$(BUILD)/test/unit_%: test/unit/%.c $(OBJECTS)
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $(ALL_LDFLAGS) -o $@ $< \
		$(filter-out $(BUILD)/redlock.o,$(OBJECTS)) $(LIBRARIES)

$(STATIC:%=$(BUILD)/test/%): TOOL_CFLAGS += -static
$(BUILD)/test/%: %.c
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -o $@ $<

# for this machine, whatever redlock is built for: builtins of its bash, and what starts its redis-server; the
# headers of bash are older than our warnings
$(BUILTINS:%=$(BUILD)/test/%.so) $(BUILD)/test/start: override CC = cc
$(BUILTINS:%=$(BUILD)/test/%.so): TOOL_CFLAGS += -DBUILTIN -DSHELL $(patsubst %,-isystem /usr/include/bash%,/ /builtins /include)
$(BUILD)/test/%.so: %.c
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -fPIC -shared -o $@ $<

## mutants     redlock without one of its safety mechanisms, for the test that has to notice
# test/lab/mutants/NAME.patch is applied to a copy of src/, and built beside it.
MUTANTS = $(patsubst test/lab/mutants/%.patch,%,$(wildcard test/lab/mutants/*.patch))
mutants: $(MUTANTS:%=$(BUILD)/mutant/%/build/redlock)

$(BUILD)/mutant/%/build/redlock: test/lab/mutants/%.patch $(BUILD)/redlock
	$(call say,MUTANT)
	$(call build_mutant,$(BUILD)/mutant/$*)

# $(1): the directory of its own
define build_mutant
	$(Q)rm -rf $(1) && mkdir -p $(@D) $(1)/test/lab
	$(Q)cp -a Makefile scripts src $(1)
	$(Q)cp -a test/lab/rules.mk $(1)/test/lab
	$(Q)tar -C $(BUILD) -cf - scripts.h flags probed.mk built.h \
		$(SOURCES:.c=.o) $(SOURCES:.c=.d) | tar -C $(@D) -xf -
	$(Q)sed -i 's,$(BUILD)/,build/,g' $(@D)/*.d $(@D)/*/*.d
	$(Q)patch -s -p1 -F0 -d $(1) <$<
	$(Q)$(MAKE) -s -C $(1) BUILD=build build/redlock
endef

## mutate      what the tests notice of COUNT=100 small changes; SEED=1; test/lab/mutate/mutate -h
export ONLY SHOW TIME
mutate:
	$(Q)BUILD=$(abspath $(BUILD)) test/lab/mutate/mutate

## valgrind    the tests with all memory watched, or TESTS='FILE ...'
# On a machine that has nothing else to do: a start costs as much as 200 do
# otherwise. Some tests are left out, each of which says why.
valgrind: tests
	$(Q)BUILD=$(abspath $(BUILD)) test/lab/valgrind/run \
		$(or $(TESTS),$(filter-out test/lab/%,$(wildcard test/*/*.bats)))

## bench       what it costs: all of it, or BENCH='TOPIC ...'; BENCH=--help
bench: tests
	$(Q)REDLOCK=$(abspath $(BUILD)/redlock) test/lab/bench/bench $(BENCH)

## stress      what must never happen, by many processes; STRESS=--help
STRESS = all
export COUNT DURATION SEED CLIENTS
stress: tests
	$(Q)REDLOCK=$(abspath $(BUILD)/redlock) test/lab/stress/stress $(STRESS)

## mixed       the same, half of the processes being of an earlier version: OLD=COMMIT
OLD = $(shell git rev-parse --short HEAD~)
mixed: tests
	$(Q)mkdir -p $(BUILD)/old/$(OLD)
	$(Q)git archive $(OLD) | tar -C $(BUILD)/old/$(OLD) -xf -
	$(Q)$(MAKE) -s -C $(BUILD)/old/$(OLD) BUILD=build build/redlock
	$(Q)OLD=$(abspath $(BUILD)/old/$(OLD)/build/redlock) \
		REDLOCK=$(abspath $(BUILD)/redlock) test/lab/stress/stress mixed

## soak        the same while everything around it breaks; test/lab/soak/soak --help
soak: tests
	$(Q)REDLOCK=$(abspath $(BUILD)/redlock) test/lab/soak/soak

## fleet       a day of many hosts with one crontab, and what is told of it: DURATION, HOSTS, KEYS
fleet: tests
	$(Q)REDLOCK=$(abspath $(BUILD)/redlock) test/lab/fleet/fleet

## inject      each call of the system fails once, by each of its errors
inject: tests
	$(Q)REDLOCK=$(abspath $(BUILD)/redlock) test/lab/inject/drive --all $(INJECT)

## coverage    which lines the tests run; test/lab/coverage/report has what they must
# Counters that cannot be written, or take memory, make some tests fail, which
# `make check` is there to judge. COVERAGE_KEEP=1 adds to what was run before.
COVERAGE = build/coverage
COVERAGE_TESTS = $(filter-out test/lab/%,$(wildcard test/*/*.bats)) test/lab/inject.bats
COVERAGE_FLAGS = BUILD=$(COVERAGE) HARDENING= \
	CFLAGS='-O0 -g --coverage -fprofile-update=atomic' \
	LDFLAGS='--coverage -Wl,--wrap=_exit,--wrap=raise $(CURDIR)/$(COVERAGE)/dump.o'

coverage: counters
	$(Q)$(if $(COVERAGE_KEEP),,find $(COVERAGE) -name '*.gcda' -delete)
	$(Q)-GCOV_ERROR_FILE=/dev/null $(MAKE) $(COVERAGE_FLAGS) check \
		TESTS='$(or $(TESTS),$(COVERAGE_TESTS))'
	$(Q)test/lab/coverage/report $(COVERAGE)

counters:
	$(Q)mkdir -p $(COVERAGE)
	$(Q)$(CC) -O2 -Wall -c -o $(COVERAGE)/dump.o test/lab/coverage/dump.c
	$(Q)$(MAKE) $(COVERAGE_FLAGS) tests

## sanitized   the tests with SANITIZE=..., but for those of test/lab/repeats, which run nothing that others do not
# Not the laboratory, nor what runs no redlock. With SANITIZE=thread, where a second thread is at work: a command
# runs, or a name is looked up.
WATCHED = $(filter-out test/lab/% test/servers/recipe.bats $(patsubst %,test/commands/%.bats,build completion \
	diagnostics examples help package readme shell_library),$(wildcard test/*/*.bats))
THREADED = $(patsubst %,test/%.bats,commands/run holding/guard holding/hold holding/renewal holding/signals \
	servers/lost_reply servers/servers waiting/queue)
sanitized:
	$(Q)WITHOUT=test/lab/repeats $(MAKE) --no-print-directory check \
		TESTS='$(if $(filter thread,$(SANITIZE)),$(THREADED),$(WATCHED))'

## repeats     makes test/lab/repeats anew, by what each test runs: after many tests, or much of src/, have changed
repeats: counters
	$(Q)rm -rf $(COVERAGE)/tests && mkdir $(COVERAGE)/tests
	$(Q)-GCOV_ERROR_FILE=/dev/null COVERED=$(CURDIR)/$(COVERAGE)/tests $(MAKE) $(COVERAGE_FLAGS) check \
		TESTS='$(WATCHED)' >$(COVERAGE)/log
	$(Q)tail -n 1 $(COVERAGE)/log
	$(Q)test/lab/coverage/repeats $(COVERAGE)/log $(COVERAGE)/tests $(WATCHED) -- $(THREADED) >$(COVERAGE)/repeats
	$(Q)mv $(COVERAGE)/repeats test/lab

## fuzz        libFuzzer looks for inputs that break the parsers, SECONDS for each target
# All at once, so that no processor is idle at the end. test/lab/fuzz/world.h is what they run in.
SECONDS = 30
FUZZERS = text replies config
FUZZ_FLAGS = $(filter-out -fcf-protection -D_FORTIFY_SOURCE=2,$(ALL_CFLAGS)) \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	-Dclock_gettime=world_gettime
FUZZ_OBJECTS = $(patsubst %.c,$(BUILD)/fuzz/%.o,cmd/json.c cmd/print.c cmd/several.c cmd/session.c \
	cmd/text.c $(filter-out redlock.c cmd/%.c net/stream.c base/deadline.c base/threads.c \
	server/last_place.c run/watchdogs.c,$(SOURCES)))

fuzzers: $(FUZZERS:%=$(BUILD)/fuzz/%)

fuzz: fuzzers
	$(Q)$(MAKE) --no-print-directory -Oline -j $(FUZZERS:%=fuzz-%)

fuzz-%: $(BUILD)/fuzz/%
	$(Q)mkdir -p $<.corpus
	$(Q)$< -max_total_time=$(SECONDS) -timeout=5 -rss_limit_mb=512 \
		-verbosity=0 -print_final_stats=1 -artifact_prefix=$<. \
		$(addprefix -dict=,$(wildcard test/lab/fuzz/$*.dict)) \
		$<.corpus test/lab/fuzz/corpus/$*

$(BUILD)/fuzz/%: test/lab/fuzz/%.c test/lab/fuzz/world.c test/lab/fuzz/world.h $(FUZZ_OBJECTS)
	$(call say,FUZZ)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< test/lab/fuzz/world.c \
		$(FUZZ_OBJECTS) $(LIBRARIES)

$(BUILD)/fuzz/%.o: src/%.c | $(BUILD)/scripts.h
	$(call say,FUZZ)
	$(Q)mkdir -p $(@D)
	$(Q)clang $(FUZZ_FLAGS) -MMD -MP -c -o $@ $<

## simulate    redlock itself in simulated time: SEEDS=1000 from FIRST=1 on
# test/lab/simulate/simulate.c says more. What is tried are the very objects that redlock is
# linked from, but for those that call the system.
SEEDS = 1000
FIRST = 1
JOBS ?= $(shell nproc)
SIMULATE = $(addprefix $(BUILD)/simulate/,$(notdir $(patsubst %.c,%.o, \
	$(filter-out %/differential.c,$(wildcard test/lab/simulate/*.c)))))
DIFFERENTIAL = $(addprefix $(BUILD)/,$(addprefix simulate/,differential.o store.o script.o) \
	base/buffer.o base/alloc.o)
SIMULATED = $(filter-out $(patsubst %,base/%.o,deadline descriptors log replace signals threads title) \
	server/last_place.o server/drain.o,$(filter lock/% wait/% server/% base/% \
	net/endpoint.o net/url.o run/ancestry.o run/watchdog.o run/watchdogs.o cmd/session.o \
	cmd/several.o settings/settings.o show/holders.o show/inspect.o show/stopping.o,$(SOURCES:.c=.o)))
SIMULATE_CFLAGS = $(filter-out -O2,$(TOOL_CFLAGS)) -O2 -U_FORTIFY_SOURCE -fPIE \
	-fno-builtin-malloc $(INCLUDES) $(shell $(PKG_CONFIG) --cflags lua5.1)
WRAPPED = clock_gettime gethostname getppid getenv getuid eventfd eventfd_write close pthread_join
link_simulate = $(Q)$(CC) $(ALL_CFLAGS) -pie $(WRAPPED:%=-Wl,--wrap=%) -o $@ $(SIMULATE) \
	$(1) $(shell $(PKG_CONFIG) --libs lua5.1) $(OPENSSL) $(LIBRARIES) -lm

simulate: $(BUILD)/simulate/simulate
	$(Q)$< --jobs $(JOBS) $(FIRST) $$(($(FIRST) + $(SEEDS) - 1))

$(BUILD)/simulate/simulate: $(SIMULATE) $(addprefix $(BUILD)/,$(SIMULATED))
	$(call say,LINK)
	$(call link_simulate,$(addprefix $(BUILD)/,$(SIMULATED)))

## simulate-differential  its Redis compared with a real one: COUNT=100000 commands, SEEDS=20 runs
simulate-differential: COUNT = 100000
simulate-differential: SEEDS = 20
simulate-differential: $(BUILD)/simulate/simulate $(BUILD)/simulate/differential \
	$(BUILD)/test/clock.so
	$(Q)BUILD=$(abspath $(BUILD)) COUNT=$(COUNT) SEEDS=$(SEEDS) test/lab/simulate/differential

$(BUILD)/simulate/differential: $(DIFFERENTIAL)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_CFLAGS) -pie -o $@ $(DIFFERENTIAL) \
		$(shell $(PKG_CONFIG) --libs lua5.1) $(OPENSSL) $(LIBRARIES) -lm

$(BUILD)/simulate/%.o: test/lab/simulate/%.c
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SIMULATE_CFLAGS) -c -o $@ $<

# Beside those of `make mutants`, as two may build at a time.
$(BUILD)/simulate/mutant/%/build/redlock: test/lab/mutants/%.patch $(BUILD)/redlock
	$(call say,MUTANT)
	$(call build_mutant,$(BUILD)/simulate/mutant/$*)

$(BUILD)/simulate/mutant/%/simulate: $(BUILD)/simulate/mutant/%/build/redlock $(SIMULATE)
	$(call say,LINK)
	$(call link_simulate,$(SIMULATED:%=$(BUILD)/simulate/mutant/$*/build/%))

## model       the protocol, searched by spin; DEPTH=full for long; test/lab/model/README
DEPTH = short
model:
	$(Q)DEPTH=$(DEPTH) MODELS=$(CURDIR)/$(BUILD)/model test/lab/model/check

## debian      README's two commands in a fresh RELEASE=trixie of Debian; SERVER=valkey, ARCH=arm64
# test/lab/debian/run says more. RELEASE may also be sid, or bookworm, which has no Valkey.
RELEASE = trixie
SERVER = redis
debian:
	$(Q)ARCH=$(ARCH) test/lab/debian/run "$(RELEASE)" "$(SERVER)"

## package     the .debs of RELEASE in fresh systems: built twice, installed, used, removed
package:
	$(Q)test/lab/package/run $(RELEASE)

.PHONY: tests mutants mutate valgrind bench stress mixed soak fleet inject coverage counters sanitized repeats \
	fuzzers fuzz simulate \
	simulate-differential model \
	debian package
.SECONDARY: $(FUZZ_OBJECTS) $(SIMULATE) $(DIFFERENTIAL)
-include $(addsuffix .d,$(basename $(TOOLS)) $(UNITS)) $(FUZZ_OBJECTS:.o=.d) \
	$(SIMULATE:.o=.d) $(BUILD)/simulate/differential.d
