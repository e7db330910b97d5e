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
 * lines before the first section of a file are a section like any other. The
 * user's file and the system's are two files. A user name can only be in a URL,
 * and is used with the password of this table.
 *
 * So a password goes only to servers that its owner has named beside it, or
 * that the command line names while the password is in the environment. There
 * is one exception: if REDLOCK_SERVERS is set and names only TLS servers, the
 * password of the environment is not sent to -S redis://, as it would be
 * unencrypted.
 *
 * Sentinels may have a login of their own, which nobody else is sent: ?sentinel= in
 * their URL, else REDLOCK_SENTINEL_PASSWORD or its _FILE, else a file's
 * `sentinel-password` or its -file; for the Sentinels of the same servers as in the
 * table. With it, they are not sent the server's. Without it they are, as Sentinels
 * know that password anyway (sentinel auth-pass).
 *
 * A server without a password is used without a login. If it requires one, the
 * error names a password that was not used, and the reason (url->advice).
 */
#ifndef SETTINGS_LOGINS_H
#define SETTINGS_LOGINS_H

#include "settings/settings.h"

/* Notes that there is a password, but for servers that are not used. where names
 * its place for people, and stays the caller's. Only the first call counts. */
void logins_spare(struct settings *settings, const char *where);

/* Whether servers, a list with commas, names TLS servers and no server without
 * TLS. Unix sockets do not count, as nobody can listen in, nor does a text that is
 * no URL. */
bool logins_are_only_tls(const char *servers);

/* The first line of a file, or of a pipe, which is waited for up to 10 s. Others
 * may be able to read the file, but not to write it. Returns NULL with *error
 * (EXIT_CONFIG) otherwise. The caller frees the line. */
char *logins_read_file(const char *path, struct error *error);

/* Gives each server its password, if it has one. Returns 0, or -1 with *error if
 * a URL names a user and there is no password for it. */
int logins_hand_out(struct settings *settings, struct error *error);

#endif
