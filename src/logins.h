/*
 * Which server is sent which password.
 *
 * A password belongs to the servers that are named in the same place as it is:
 *
 *	servers named by      password of            why no other
 *	any, in its URL       that URL               it is for that server only
 *	-S                    the environment        a file's is for the file's own
 *	REDLOCK_SERVERS       the environment        the same
 *	FILE, section         FILE, that section     -S and the environment are
 *	                                             another's to set, sections are
 *	                                             different sets of servers
 *	nobody: the default   none                   whoever listens there was not
 *	                                             named by anybody
 *	local:                none                   it has none
 *
 * The environment's is REDLOCK_PASSWORD, else REDLOCK_PASSWORD_FILE; a file's is
 * `password` or `password-file`. The lines before the first section of a file are
 * a section as any other, the user's file and the system's are two. The name of a
 * user is in a URL only, and goes with the password of this table.
 *
 * So a password goes to nobody but those whom whoever set it has named beside it,
 * or who are named on the command line by whoever has it in the environment. One
 * case is left: -S redis://, where REDLOCK_SERVERS, beside the password, has
 * servers with TLS only. It is not sent unencrypted then.
 *
 * A server for which there is none is used without a login. Where it wants one,
 * the error tells of a password that was not used, and why (url->withheld).
 */
#ifndef LOGINS_H
#define LOGINS_H

#include "config.h"

/* There is a password for other servers than those that are used: where is for
 * people, and stays the caller's. The first one counts. */
void logins_spare(struct settings *settings, const char *where);

/* Whether servers, a list with commas, are rediss:// and others that nobody can
 * listen to. What is no URL does not matter. */
bool logins_are_only_tls(const char *servers);

/* The first line of a file, which others may read but not write; NULL with
 * *error (EXIT_CONFIG). The caller frees it. */
char *logins_read_file(const char *path, struct error *error);

/* Gives each server the password that it is to be sent, if any. -1 with *error
 * where a user is left without. */
int logins_hand_out(struct settings *settings, struct error *error);

#endif
