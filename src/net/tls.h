/*
 * TLS, which only rediss:// needs: OpenSSL in a module of its own, so that a
 * redlock without such a server loads nothing of it. tls.c is the module; what
 * it hands over is the table below; tls_load.c finds it.
 *
 *	tls->open, then tls->handshake until it returns 1
 *	tls->read, tls->write
 *	tls->close
 *
 * Nothing blocks: a call that cannot go on says EAGAIN, and tls->events tells
 * what to poll the socket for. It may surprise: a handshake reads and writes by
 * turns, and reading may have to write first.
 *
 * No byte waits in here while poll(2) sleeps: a record is only taken off the
 * socket when it is read, and the reader has room for the whole of it
 * (TLS_RECORD). A call takes no more than a bounded number of bytes off the
 * socket, however fast a peer sends what is no data.
 *
 * A server must prove that it is the URL's host, or the name of --sni. The
 * proof is a certificate that has this name as a subjectAltName, by an
 * authority of --cacert, or else of the system's; --insecure asks for none. A
 * common name does not count: authorities do not verify it as a host. With
 * --crl the file must have a current list of each authority up to the root, and
 * none of them may revoke a certificate of the chain. An unencrypted connection
 * is never made here.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Both sides must be of one build (VERSION: built.h); the number is this table's. */
#define TLS_VERSION VERSION " (3)"
#define TLS_SYMBOL "redlock_tls"
#define TLS_RECORD 16384 /* bytes of data, at most */

struct tls_settings {
	const char *cacert, *crl, *cert, *key_file, *sni; /* NULL: none */
	bool insecure;
};

struct tls_failure {
	bool refused; /* a certificate, theirs or ours: trying again is useless */
	char text[128]; /* "": errno says it */
};

struct tls;

struct tls_module {
	const char *version; /* TLS_VERSION; stays in front of all else */

	/* OpenSSL's name and version, as it is in use. */
	const char *(*library)(void);

	/* Once, before all else: reads the files. 0, or -1 with text. settings'
	 * texts are the caller's and stay. */
	int (*start)(const struct tls_settings *settings, char *text,
		     size_t size);

	/* On a socket that is connected and stays the caller's. Files that have
	 * changed are read again if all of them are good. failure is filled by
	 * any call that fails. NULL if it failed. */
	struct tls *(*open)(int fd, const char *host,
			    struct tls_failure *failure);

	/* 1: done. 0: not yet. -1: failed. */
	int (*handshake)(struct tls *tls);

	/* As recv(2), with size at least TLS_RECORD, and send(2). */
	ssize_t (*read)(struct tls *tls, void *data, size_t size);
	ssize_t (*write)(struct tls *tls, const void *data, size_t size);

	/* What to poll for. output: there is something to write. */
	short (*events)(const struct tls *tls, bool output);

	/* Frees it. goodbye: the peer is told that this is the end. */
	void (*close)(struct tls *tls, bool goodbye);
};

#endif
