#include "net/tls_context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>

#define QUOTED_LONGEST 200 /* bytes of a path */

const char *tls_reason(void)
{
	unsigned long error = ERR_peek_error();
	const char *text = ERR_reason_error_string(error);

	return text != NULL ? text : strerror(ERR_GET_REASON(error));
}

/* --- files --------------------------------------------------------------- */

static int refuse(char *text, size_t size, const char *option, const char *path,
		  const char *why)
{
	snprintf(text, size, "%s '%.*s%s': %s", option, QUOTED_LONGEST, path,
		 strlen(path) > QUOTED_LONGEST ? "..." : "", why);
	return -1;
}

/* Only a regular file: others may have no end, or never begin. Who may write a
 * key's chooses as whom we are known. */
static const char *why_unfit(const char *path, bool secret)
{
	struct stat found;
	FILE *file;

	if (stat(path, &found) < 0)
		return strerror(errno);
	if (!S_ISREG(found.st_mode))
		return "it is no regular file";
	if (secret && (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others may write it: chmod go-w";
	file = fopen(path, "re");
	if (file == NULL)
		return strerror(errno);
	fclose(file);
	return NULL;
}

static int use_cacert(SSL_CTX *context, const char *path)
{
	return SSL_CTX_load_verify_locations(context, path, NULL);
}

/* An authority between that is revoked is as bad as a server that is. */
static int use_crl(SSL_CTX *context, const char *path)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	return lookup != NULL &&
	       X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) > 0 &&
	       X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK |
						   X509_V_FLAG_CRL_CHECK_ALL);
}

static int use_cert(SSL_CTX *context, const char *path)
{
	return SSL_CTX_use_certificate_chain_file(context, path);
}

static int use_key(SSL_CTX *context, const char *path)
{
	return SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) &&
	       SSL_CTX_check_private_key(context);
}

static int read_files(SSL_CTX *context, const struct tls_settings *settings,
		      char *text, size_t size)
{
	const struct {
		const char *option, *path;
		int (*use)(SSL_CTX *context, const char *path);
	} files[] = {
		{"cacert", settings->cacert, use_cacert},
		{"crl", settings->crl, use_crl},
		{"cert", settings->cert, use_cert},
		{"key-file", settings->key_file, use_key},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *why;

		if (files[i].path == NULL)
			continue;
		why = why_unfit(files[i].path, files[i].use == use_key);
		ERR_clear_error();
		if (why == NULL && files[i].use(context, files[i].path) != 1)
			why = tls_reason();
		if (why != NULL)
			return refuse(text, size, files[i].option,
				      files[i].path, why);
	}
	return 0;
}

/* --- rules --------------------------------------------------------------- */

/* Nobody is asked for one. */
static int no_passphrase(char *text, int size, int writing, void *unused)
{
	(void)text;
	(void)size;
	(void)writing;
	(void)unused;
	return -1;
}

static void set_rules(SSL_CTX *context, bool insecure)
{
	/* the system's own settings may ask for more */
	if (SSL_CTX_get_min_proto_version(context) < TLS1_2_VERSION)
		SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_default_passwd_cb(context, no_passphrase);
	SSL_CTX_set_verify(context,
			   insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
}

SSL_CTX *tls_context_new(const struct tls_settings *settings, char *text,
			 size_t size)
{
	SSL_CTX *context;

	/* threads may still run when the process exits */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
	context = SSL_CTX_new(TLS_client_method());
	if (context == NULL) {
		snprintf(text, size, "OpenSSL cannot be used: %s",
			 tls_reason());
		return NULL;
	}
	set_rules(context, settings->insecure);
	if (settings->cacert == NULL && !settings->insecure)
		SSL_CTX_set_default_verify_paths(context);
	if (read_files(context, settings, text, size) == 0)
		return context;
	SSL_CTX_free(context);
	return NULL;
}
