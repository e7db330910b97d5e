/*
 * What all connections of the TLS module (tls.h) share: the rules by which
 * OpenSSL is to go, and the files of the settings, read.
 */
#ifndef TLS_CONTEXT_H
#define TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "net/tls.h"

/* NULL with text where a file is no good. */
SSL_CTX *tls_context_new(const struct tls_settings *settings, char *text,
			 size_t size);

/* Why OpenSSL has failed in this thread, since ERR_clear_error. */
const char *tls_reason(void);

#endif
