#include "net/tls.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "built.h"

#define TAKEN_MOST 65536   /* bytes off the socket, by one call */
#define QUOTED_LONGEST 200 /* bytes of a path */

struct tls {
	SSL *ssl;
	int fd;
	struct tls_failure *failure;
	size_t left;  /* of what this call may take off the socket */
	int cause;    /* errno of the socket; 0: it has not failed */
	bool wanted;  /* the peer has asked for a certificate */
	bool greeted; /* the handshake is done */
	bool read_writes, write_reads; /* what the last one waits for */
};

/* Of a file: a change is seen by it. */
struct stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec written, changed;
};

enum { CACERT, CRL, CERT, KEY_FILE, FILES };

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* a context */
static SSL_CTX *context;
static struct stamp stamps[FILES]; /* of what it was made of */
static BIO_METHOD *method;
static struct tls_settings settings;

static const char *reason(void)
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

/* Only a regular file: others may have no end, or never begin. A user who can
 * write the key's file chooses our identity. */
static const char *why_unfit(const char *path, bool secret)
{
	struct stat found;
	FILE *file;

	if (stat(path, &found) < 0)
		return strerror(errno);
	if (!S_ISREG(found.st_mode))
		return "it is not a regular file";
	if (secret && (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others may write it: chmod go-w";
	file = fopen(path, "re");
	if (file == NULL)
		return strerror(errno);
	fclose(file);
	return NULL;
}

static int use_cacert(const char *path)
{
	return SSL_CTX_load_verify_locations(context, path, NULL);
}

/* An authority between that is revoked is as bad as a server that is. */
static int use_crl(const char *path)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	return lookup != NULL &&
	       X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) > 0 &&
	       X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK |
						   X509_V_FLAG_CRL_CHECK_ALL);
}

static int use_cert(const char *path)
{
	return SSL_CTX_use_certificate_chain_file(context, path);
}

static int use_key(const char *path)
{
	return SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) &&
	       SSL_CTX_check_private_key(context);
}

static int read_files(char *text, size_t size)
{
	const struct {
		const char *option, *path;
		int (*use)(const char *path);
	} files[FILES] = {
		[CACERT] = {"cacert", settings.cacert, use_cacert},
		[CRL] = {"crl", settings.crl, use_crl},
		[CERT] = {"cert", settings.cert, use_cert},
		[KEY_FILE] = {"key-file", settings.key_file, use_key},
	};

	for (size_t i = 0; i < FILES; i++) {
		const char *why;

		if (files[i].path == NULL)
			continue;
		why = why_unfit(files[i].path, files[i].use == use_key);
		ERR_clear_error();
		if (why == NULL && files[i].use(files[i].path) != 1)
			why = reason();
		if (why != NULL)
			return refuse(text, size, files[i].option,
				      files[i].path, why);
	}
	return 0;
}

/* A keeper has left the directory that other names begin in. */
static void stamp_files(struct stamp now[FILES])
{
	const char *const paths[FILES] = {
		[CACERT] = settings.cacert,
		[CRL] = settings.crl,
		[CERT] = settings.cert,
		[KEY_FILE] = settings.key_file,
	};
	struct stat found;

	memset(now, 0, FILES * sizeof(*now)); /* and all between the members */
	for (size_t i = 0; i < FILES; i++) {
		if (paths[i] == NULL || paths[i][0] != '/' ||
		    stat(paths[i], &found) < 0)
			continue;
		now[i].device = found.st_dev;
		now[i].inode = found.st_ino;
		now[i].size = found.st_size;
		now[i].written = found.st_mtim;
		now[i].changed = found.st_ctim;
	}
}

/* --- rules --------------------------------------------------------------- */

/* A passphrase is never asked for. */
static int no_passphrase(char *text, int size, int writing, void *unused)
{
	(void)text;
	(void)size;
	(void)writing;
	(void)unused;
	return -1;
}

static int on_wanted(SSL *ssl, void *unused)
{
	struct tls *tls = SSL_get_app_data(ssl);

	(void)unused;
	tls->wanted = true;
	return 1;
}

static void set_rules(void)
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
	SSL_CTX_set_verify(
		context, settings.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
		NULL);
	SSL_CTX_set_cert_cb(context, on_wanted, NULL);
}

static int make_context(char *text, size_t size)
{
	/* threads may still run when the process exits */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
	context = SSL_CTX_new(TLS_client_method());
	if (context == NULL) {
		snprintf(text, size, "OpenSSL cannot be used: %s", reason());
		return -1;
	}
	set_rules();
	if (settings.cacert == NULL && !settings.insecure)
		SSL_CTX_set_default_verify_paths(context);
	return read_files(text, size);
}

/* A connection that is made now, or NULL. If a file has changed, all are read again: as long as
 * they cannot be, as when only some of them have been replaced, those of before count. */
static SSL *make_connection(void)
{
	struct stamp now[FILES];
	SSL_CTX *before;
	char ignored[512];
	SSL *ssl;

	pthread_mutex_lock(&making);
	before = context;
	stamp_files(now);
	if (memcmp(now, stamps, sizeof(now)) != 0) {
		if (make_context(ignored, sizeof(ignored)) == 0) {
			memcpy(stamps, now, sizeof(now));
			SSL_CTX_free(before);
		} else {
			SSL_CTX_free(context);
			context = before;
		}
	}
	ssl = SSL_new(context);
	pthread_mutex_unlock(&making);
	return ssl;
}

/* --- the socket ---------------------------------------------------------- */
/* A BIO of our own, as OpenSSL's raises SIGPIPE and reads without a bound. */

static int socket_read(BIO *bio, char *data, int size)
{
	struct tls *tls = BIO_get_data(bio);
	ssize_t got = -1;

	BIO_clear_retry_flags(bio);
	errno = EAGAIN;
	if (tls->left > 0)
		do
			got = recv(tls->fd, data, (size_t)size, 0);
		while (got < 0 && errno == EINTR);
	if (got > 0)
		tls->left -= (size_t)got < tls->left ? (size_t)got : tls->left;
	else if (got < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	else if (got < 0)
		tls->cause = errno;
	return (int)got;
}

static int socket_write(BIO *bio, const char *data, int size)
{
	struct tls *tls = BIO_get_data(bio);
	ssize_t sent;

	BIO_clear_retry_flags(bio);
	do
		sent = send(tls->fd, data, (size_t)size, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno == EAGAIN)
		BIO_set_retry_write(bio);
	else if (sent < 0)
		tls->cause = errno;
	return (int)sent;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
	BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "redlock");

	if (made != NULL) {
		BIO_meth_set_read(made, socket_read);
		BIO_meth_set_write(made, socket_write);
		BIO_meth_set_ctrl(made, socket_control);
	}
	return made;
}

/* --- what went wrong ------------------------------------------------------ */

static void say(struct tls *tls, const char *what, const char *why)
{
	snprintf(tls->failure->text, sizeof(tls->failure->text), "%s%s", what,
		 why);
}

/* Whether an alert of the server's is about our certificate, or its lack. */
static bool is_about_us(const struct tls *tls, int alert)
{
	switch (alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_ACCESS_DENIED:
	case SSL_AD_CERTIFICATE_REQUIRED:
		return true;
	default:
		/* TLS 1.2 has no better word for it */
		return alert == SSL_AD_HANDSHAKE_FAILURE && tls->wanted;
	}
}

/* "tlsv1 alert unknown ca" and the like */
static void explain_alert(struct tls *tls, int alert)
{
	const char *text = reason();
	const char *name = strstr(text, "alert ");

	if (name != NULL)
		text = name + strlen("alert ");
	tls->failure->refused = is_about_us(tls, alert);
	if (!tls->failure->refused)
		say(tls, "it refuses TLS with us: ", text);
	else if (settings.cert == NULL)
		say(tls, "it requires a certificate: see --cert and --key-file",
		    "");
	else
		say(tls, "it refuses our certificate: ", text);
}

static void explain_certificate(struct tls *tls)
{
	long verified = SSL_get_verify_result(tls->ssl);

	tls->failure->refused = true;
	say(tls, "its certificate is refused: ",
	    X509_verify_cert_error_string(verified));
}

static void explain(struct tls *tls)
{
	int why = ERR_GET_REASON(ERR_peek_error());

	if (why == SSL_R_CERTIFICATE_VERIFY_FAILED)
		explain_certificate(tls);
	else if (why > SSL_AD_REASON_OFFSET)
		explain_alert(tls, why - SSL_AD_REASON_OFFSET);
	else if (why == SSL_R_WRONG_VERSION_NUMBER)
		say(tls, "it does not speak TLS (is it redis://?)", "");
	else
		say(tls, "TLS: ", reason());
}

/* The result of a call that did not do its work: -1 with errno, which
 * is EAGAIN if it goes on later; 0 at the end of the stream. */
static int conclude(struct tls *tls, int result)
{
	int error = SSL_get_error(tls->ssl, result);

	errno = EAGAIN;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -1;
	if (error == SSL_ERROR_SSL) {
		explain(tls);
		errno = EPROTO;
		return -1;
	}
	errno = tls->cause;
	return tls->cause != 0 ? -1 : 0;
}

/* An error that another connection has left in the queue would be taken for
 * this one's. */
static void begin(struct tls *tls)
{
	ERR_clear_error();
	tls->left = TAKEN_MOST;
}

/* --- connections ---------------------------------------------------------- */

/* The name without what is not part of it in a certificate: an IPv6 address's
 * zone, a root's dot. If it cannot be set no certificate is accepted. */
static bool expect(SSL *ssl, const char *host)
{
	char name[256];
	size_t length = strcspn(host, "%");

	if (length > 1 && host[length - 1] == '.')
		length--;
	snprintf(name, sizeof(name), "%.*s", (int)length, host);
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1)
		return true;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
				       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set_tlsext_host_name(ssl, name) == 1 &&
	       SSL_set1_host(ssl, name) == 1;
}

static struct tls *tls_open(int fd, const char *host,
			    struct tls_failure *failure)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	SSL *ssl = make_connection();
	BIO *bio = BIO_new(method);

	*failure = (struct tls_failure){0};
	if (tls == NULL || ssl == NULL || bio == NULL ||
	    !expect(ssl, settings.sni != NULL ? settings.sni : host)) {
		snprintf(failure->text, sizeof(failure->text),
			 "TLS cannot be set up: %s", reason());
		BIO_free(bio);
		SSL_free(ssl);
		free(tls);
		return NULL;
	}
	*tls = (struct tls){.ssl = ssl, .fd = fd, .failure = failure};
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_app_data(ssl, tls);
	SSL_set_connect_state(ssl);
	return tls;
}

static int tls_handshake(struct tls *tls)
{
	int result;

	begin(tls);
	result = SSL_do_handshake(tls->ssl);
	tls->greeted = result == 1;
	if (tls->greeted)
		return 1;
	if (conclude(tls, result) < 0 && errno == EAGAIN)
		return 0;
	if (tls->failure->text[0] == '\0')
		say(tls, "TLS handshake: ",
		    tls->cause != 0 ? strerror(tls->cause) : "it hung up");
	return -1;
}

static ssize_t tls_read(struct tls *tls, void *data, size_t size)
{
	int got;

	begin(tls);
	got = SSL_read(tls->ssl, data, (int)size);
	tls->read_writes = got <= 0 && SSL_want_write(tls->ssl);
	return got > 0 ? got : conclude(tls, got);
}

static ssize_t tls_write(struct tls *tls, const void *data, size_t size)
{
	int sent;

	begin(tls);
	sent = SSL_write(tls->ssl, data, (int)size);
	tls->write_reads = sent <= 0 && SSL_want_read(tls->ssl);
	if (sent > 0)
		return sent;
	/* there may be an alert that says why */
	if (conclude(tls, sent) == 0 || errno == ECONNRESET)
		errno = EPIPE;
	return -1;
}

static short tls_events(const struct tls *tls, bool output)
{
	if (!tls->greeted)
		return SSL_want_write(tls->ssl) ? POLLOUT : POLLIN;
	if (tls->read_writes)
		return POLLOUT; /* with POLLIN, what is there would wake us */
	return output && !tls->write_reads ? POLLIN | POLLOUT : POLLIN;
}

static void tls_close(struct tls *tls, bool goodbye)
{
	if (goodbye && tls->greeted && tls->failure->text[0] == '\0') {
		begin(tls);
		SSL_shutdown(tls->ssl);
	}
	SSL_free(tls->ssl);
	free(tls);
}

/* --- the module ---------------------------------------------------------- */

static int tls_start(const struct tls_settings *from, char *text, size_t size)
{
	settings = *from;
	stamp_files(stamps);
	if (make_context(text, size) < 0)
		return -1;
	method = make_method();
	if (method != NULL)
		return 0;
	snprintf(text, size, "OpenSSL cannot be used: %s", reason());
	return -1;
}

static const char *tls_library(void)
{
	return OpenSSL_version(OPENSSL_VERSION);
}

extern const struct tls_module redlock_tls;

__attribute__((visibility("default"))) const struct tls_module redlock_tls = {
	TLS_VERSION, tls_library, tls_start,  tls_open,  tls_handshake,
	tls_read,    tls_write,   tls_events, tls_close,
};
