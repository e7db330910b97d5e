/*
 * Finds the TLS module (tls.h) and opens it when the first rediss:// server
 * needs it: redlock-tls.so beside the program, as the build leaves it, else in
 * ../lib/redlock from there, as it is installed.
 */
#ifndef TLS_LOAD_H
#define TLS_LOAD_H

#include "base/error.h"
#include "net/tls.h"

/* Once, before any connection. 0, or -1 with *error (EXIT_CONFIG): there is no
 * module, it is not this program's, or a file of the settings is no good. */
int tls_load(const struct tls_settings *settings, struct error *error)
	__attribute__((noinline)); /* its paths are no stack of other runs */

/* What was loaded. */
const struct tls_module *tls_module(void);

#endif
