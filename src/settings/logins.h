/*
 * Which server is sent which password.
 *
 * A password belongs to the servers that are named in the same place as it is:
 *
 *	servers named by     password of          why no other
 *	any, in its URL      that URL             it is for that server only
 *	-S                   the environment      a file's is for the file's own
 *	REDLOCK_SERVERS      the environment      the same
 *	FILE, section        FILE, that section   others may set -S and the
 *	                                          environment; other sections
 *	                                          are other servers
 *	nobody: the default  none                 nobody has named it
 *	local:               none                 it has none
 *
 * The password of the environment is REDLOCK_PASSWORD, else
 * REDLOCK_PASSWORD_FILE; that of a file is `password` or `password-file`. The
 * lines before the first section of a file are a section as any other; the
 * user's file and the system's are two files. A user name can only stand in a
 * URL, and is used with the password of this table.
 *
 * So a password goes only to servers that its owner has named beside it, or
 * that the command line names while the password is in the environment. There
 * is one exception: if REDLOCK_SERVERS is set and names TLS servers only, the
 * password of the environment is not sent to -S redis://, as it would be
 * unencrypted.
 *
 * A server without a password is used without a login. If it requires one, the
 * error names a password that was not used, and the reason (url->advice).
 */
#ifndef LOGINS_H
#define LOGINS_H

#include "settings/config.h"

/* Notes that there is a password for other servers than those that are used.
 * where says which, for people, and stays the caller's. The first one counts.
 * */
void logins_spare(struct settings *settings, const char *where);

/* Whether servers, a list with commas, has TLS servers and none without, except
 * for sockets, which nobody can listen to. A text that is no URL does not
 * count. */
bool logins_are_only_tls(const char *servers);

/* The first line of a file, which others may read but not write, or of a pipe,
 * into which it is written within 10 s; NULL with *error (EXIT_CONFIG). The
 * caller frees it. */
char *logins_read_file(const char *path, struct error *error);

/* Gives each server the password that it is to be sent, if any. -1 with *error
 * if a URL with a user is left without. */
int logins_hand_out(struct settings *settings, struct error *error);

#endif
