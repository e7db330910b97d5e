# redlock: build, check, install. `make help` says what there is.

VERSION = 0.2.0
PREFIX = /usr/local
BINDIR = $(PREFIX)/bin
LIBDIR = $(PREFIX)/lib
MANDIR = $(PREFIX)/share/man
COMPLETIONDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d
# redlock-tls.so; net/tls_load.h says how the program finds it
MODULEDIR = $(LIBDIR)/redlock

# rm -f "/a b/redlock" would be rm -f /a b/redlock
$(foreach place,DESTDIR PREFIX BINDIR LIBDIR MANDIR COMPLETIONDIR ZSHDIR FISHDIR MODULEDIR, \
	$(if $(word 2,$($(place))),$(error $(place) must not contain blanks: '$($(place))')))

# SANITIZE=address,undefined or SANITIZE=thread builds beside the normal tree.
BUILD = build$(if $(SANITIZE),/$(SANITIZE))

PKG_CONFIG ?= pkg-config
# what a run costs is mostly its start: -O2 makes it no faster, only larger
CFLAGS ?= -Os -g
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wconversion -Wno-sign-conversion -Wvla -Wno-missing-field-initializers
# HAS is scripts/probe's
HARDENING = $(if $(SANITIZE)$(findstring FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),, \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2) -fstack-protector-strong -fPIE $(HAS)
# ThreadSanitizer takes clone for a fork, and sees no mutex of the caller any more
# after one with shared memory
SANITIZERS = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer $(if $(filter thread,$(SANITIZE)),-Dclone=__clone))
# no tables for exceptions, and packed relocations: the file is much smaller; times
# and sizes of files have 64 bits everywhere
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 \
	$(WARNINGS) $(HARDENING) -pthread -fno-asynchronous-unwind-tables \
	-Isrc -I$(BUILD) $(INCLUDES) $(SANITIZERS) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now $(LINKER_HAS) -Wl,--as-needed $(RUNTIME) $(LDFLAGS)
# hiredis, which reads what servers send, is always the system's shared one. -lc in
# front of libbsd: what both have comes from the C library. And in front of hiredis:
# the loader looks for each symbol in this order, and most are the C library's. That
# has what is in -ldl, too, but older ones do not.
LIBRARIES = -lc $(HIREDIS) -ldl $(LIBBSD)

ALL_SOURCES := $(patsubst src/%,%,$(sort $(wildcard src/*.c src/*/*.c)))
# OpenSSL stays out of the program: only rediss:// opens it
MODULE_SOURCES = net/tls.c
SOURCES = $(filter-out $(MODULE_SOURCES),$(ALL_SOURCES))
OBJECTS = $(SOURCES:%.c=$(BUILD)/%.o)
MODULE_OBJECTS = $(MODULE_SOURCES:%.c=$(BUILD)/%.o)

include scripts/flags.mk

Q = $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$(@:$(BUILD)/%=%)")

## all         the program, and its module for rediss:// (the default)
all: $(BUILD)/redlock $(BUILD)/redlock-tls.so

$(BUILD)/redlock: $(OBJECTS)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(OBJECTS) $(LIBRARIES)

$(BUILD)/redlock-tls.so: ALL_CFLAGS += -fPIC -fvisibility=hidden
$(BUILD)/redlock-tls.so: RUNTIME =
$(BUILD)/redlock-tls.so: $(MODULE_OBJECTS)
	$(call say,LINK)
	$(Q)$(CC) $(filter-out $(SANITIZERS),$(ALL_CFLAGS)) -shared $(filter-out -pie,$(ALL_LDFLAGS)) \
		-o $@ $^ $(OPENSSL)

$(BUILD)/%.o: src/%.c $(BUILD)/flags | $(BUILD)/scripts.h
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# a server reads 16 KiB at once, and acquire, raise and release should be among them
$(BUILD)/scripts.h: scripts/embed scripts/name-script $(wildcard src/lock/lua/*.lua)
	$(call say,LUA)
	$(Q)mkdir -p $(@D)
	$(Q)scripts/embed $(filter %.lua,$^) >$@.new
	$(Q)scripts/name-script $@.new >>$@.new
	$(Q)mv $@.new $@

## check       all tests, or TESTS='FILE ...'; scripts/check installs what they need
check: tests
	$(Q)REDLOCK=$(abspath $(BUILD)/redlock) MODULEDIR=$(MODULEDIR) scripts/run-tests $(TESTS)

## lint        what can be said of the source without running it
lint: export FLAGS = $(ALL_CFLAGS)
lint: tests
	$(Q)scripts/lint

## install     to DESTDIR and PREFIX, or BINDIR, LIBDIR, MANDIR, COMPLETIONDIR
install: all
	scripts/place 644 $(BUILD)/redlock-tls.so $(DESTDIR)$(MODULEDIR)/redlock-tls.so
	scripts/place 755 $(BUILD)/redlock $(DESTDIR)$(BINDIR)/redlock
	scripts/place 644 scripts/redlock.sh $(DESTDIR)$(BINDIR)/redlock.sh
	scripts/place 644 scripts/redlock.bash-completion $(DESTDIR)$(COMPLETIONDIR)/redlock
	scripts/place 644 scripts/redlock.zsh-completion $(DESTDIR)$(ZSHDIR)/_redlock
	scripts/place 644 scripts/redlock.fish $(DESTDIR)$(FISHDIR)/redlock.fish
	for page in $(PAGES); do scripts/place 644 man/$${page##*/} $(DESTDIR)$$page || exit; done
	for page in $(SHARED); do \
		ln -sf redlock-$${page#*=}.1 $(DESTDIR)$(MANDIR)/man1/redlock-$${page%=*}.1 || exit; done

## uninstall   what install has put there
uninstall:
	rm -f $(addprefix $(DESTDIR),$(BINDIR)/redlock $(BINDIR)/redlock.sh $(COMPLETIONDIR)/redlock \
		$(ZSHDIR)/_redlock $(FISHDIR)/redlock.fish $(PAGES) \
		$(foreach page,$(SHARED),$(MANDIR)/man1/redlock-$(firstword $(subst =, ,$(page))).1))
	rm -f $(DESTDIR)$(MODULEDIR)/redlock-tls.so
	-rmdir $(DESTDIR)$(MODULEDIR) 2>/dev/null || :

PAGES = $(foreach page,$(notdir $(wildcard man/*)),$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page))
# COMMAND=PAGE: one page has several commands
SHARED = extend=acquire release=acquire list=status history=status check=status wait=status break=status

## dist        the source as build/redlock-VERSION.tar.gz, the same for a commit anywhere
dist:
	$(Q)scripts/package.d/dist

## clean       all that was built
clean:
	rm -rf build

help:
	@sed -n 's/^## /make /p' Makefile test/lab/rules.mk

.PHONY: all check lint install uninstall dist clean help
.DELETE_ON_ERROR:

include test/lab/rules.mk
-include $(OBJECTS:.o=.d) $(MODULE_OBJECTS:.o=.d)
