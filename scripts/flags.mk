# What a build depends on beside its sources: if it changes, what it concerns is built
# again. If nothing has changed this starts no process.
#
#	$(BUILD)/flags		the compiler and its options: for all objects
#	$(BUILD)/probed.mk	what scripts/probe found with these
#	$(BUILD)/built.h	what the program says of itself, and where it is installed

TOLD = CC PKG_CONFIG CPPFLAGS CFLAGS LDFLAGS
FLAGS := $(strip $(file <scripts/probe) $(foreach name,$(TOLD),$(name)=$($(name))) SANITIZE=$(SANITIZE) \
	$(foreach name,WARNINGS HARDENING SANITIZERS ALL_CFLAGS ALL_LDFLAGS,$(value $(name))))
quoted = '$(subst ','\'',$($(1)))'
in_c = $(subst ",\",$(subst \,\\,$(1)))

# Those that make a difference to the program; no path, as that may be of this machine.
flags_that_matter = $(strip $(foreach flag,$(filter-out -W% -U%,$(HARDENING) $(SANITIZERS) \
	$(CPPFLAGS) $(CFLAGS)) -pie $(filter -Wl$(comma)% -f%,$(ALL_LDFLAGS)),\
	$(if $(findstring /,$(flag)),,$(flag))))
comma = ,

define BUILT_H
#define VERSION "$(VERSION)"
#define BINDIR "$(call in_c,$(BINDIR))"
#define MODULEDIR "$(call in_c,$(MODULEDIR))"
#define BUILT_BY "$(call in_c,$(BUILT_BY))"
#define BUILT_LIBBSD "$(BUILT_LIBBSD)"
#define BUILT_FLAGS "$(call in_c,$(BUILT_FLAGS))"
endef

# sudo(8) passes no CFLAGS on: `make install` installs what was built, unless told otherwise
told_now = $(filter command,$(foreach name,$(TOLD),$(firstword $(origin $(name)))))
installs_only = $(if $(filter-out install,$(or $(MAKECMDGOALS),all)),,yes)

ifneq ($(filter-out help clean uninstall dist,$(or $(MAKECMDGOALS),all)),)
ASKED := $(file <$(BUILD)/flags)
ifneq ($(and $(ASKED),$(installs_only),$(if $(told_now),,yes)),)
ASKED := $(FLAGS)
endif
ifneq ($(FLAGS),$(ASKED))
ifneq ($(shell mkdir -p $(BUILD) && CC=$(call quoted,CC) PKG_CONFIG=$(call quoted,PKG_CONFIG) \
	FLAGS='$(subst ','\'',$(CPPFLAGS) $(CFLAGS))' SANITIZE=$(SANITIZE) LINKING=$(call quoted,LDFLAGS) \
	scripts/probe >$(BUILD)/probed.new && mv $(BUILD)/probed.new $(BUILD)/probed.mk && \
	rm -f $(BUILD)/flags && echo yes),yes)
$(error scripts/probe failed)
endif
endif
include $(BUILD)/probed.mk
ifneq ($(FLAGS),$(ASKED))
BUILT_FLAGS := $(flags_that_matter)
$(file >>$(BUILD)/probed.mk,BUILT_FLAGS = $(subst $$,$$$$,$(BUILT_FLAGS)))
$(file >$(BUILD)/flags,$(FLAGS))
endif
ifneq ($(BUILT_H),$(file <$(BUILD)/built.h))
$(if $(shell rm -f $(BUILD)/built.h && echo yes),,$(error $(BUILD) cannot be written to: name another directory with BUILD=DIR))
$(file >$(BUILD)/built.h,$(BUILT_H))
endif
endif
