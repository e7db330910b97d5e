/*
 * Finds the TLS module (tls.h) and opens it when the first rediss:// server
 * needs it: redlock-tls.so beside the program, as the build leaves it, else in
 * MODULEDIR, as it is installed.
 *
 * If the program is not in BINDIR, but in a directory that ends as BINDIR does, the
 * module is looked for where MODULEDIR is seen from there: so an installation may
 * be put into another directory (DESTDIR), or be moved. Only the part of BINDIR that
 * differs from MODULEDIR counts.
 */
#ifndef NET_TLS_LOAD_H
#define NET_TLS_LOAD_H

#include "base/buffer.h"
#include "base/error.h"
#include "net/tls.h"

/* Once, before any connection. 0, or -1 with *error (EXIT_CONFIG): there is no
 * module, it is not this program's, or a file of the settings is no good. */
int tls_load(const struct tls_settings *settings, struct error *error)
	__attribute__((noinline)); /* its paths are no stack of other runs */

/* What was loaded. */
const struct tls_module *tls_module(void);

/* Appends which OpenSSL it uses, and where the module is. 0, or -1 with *error as of
 * tls_load. */
int tls_describe(struct buffer *text, struct error *error);

#endif
