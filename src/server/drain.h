/*
 * Keeps connections open, when all else is done, until servers have read what was sent
 * to them.
 *
 * If a connection is closed while an answer is due, what was sent after that
 * request may be lost: Redis hangs up when it cannot write the answer, and
 * never reads the rest. Nor does it read what follows a WAIT, if the connection is
 * closed while WAIT lasts (conn.h). So if another answer is due before the last (of a
 * renewal, say, that is followed by the release), or a sticky one (of an acquire), the
 * connection has to stay until it has come. Otherwise KEY stays locked there for a ttl,
 * without a holder.
 *
 * A request without its script may be refused (server.h). If the answer to a release or an
 * extension has not come in half of the time, it is sent whole: so it gets to a server that is
 * slow and does not know the script, and the next one finds it known there. An acquire is
 * not sent twice without an answer: another process may have given KEY back in between,
 * and nobody would have it there until its lease ends.
 *
 * Nor may a server be forgotten that is so far away that others have answered before it is
 * connected, as it happens to each `redlock release` of a script: what it is asked has
 * not left yet. So a release or an extension gets there. An acquire does not: it could come
 * after the release of another process, and KEY would be held there by nobody.
 *
 * The user should not have to wait for that: a stopped minority of the servers
 * costs no time. So a child process stays with the connections, and the process ends
 * without it. It stays for 100 ms at most, as a server that is stopped need not be waited
 * for. For one that has answered this process before, and so is only slow, it stays for
 * the time of a round more, and so for one that it is still connecting to, and if WAIT was
 * asked. And so for one that owes two answers, if neither is to be a grant: a release by a
 * token alone asks which holds there are, and a break who holds KEY, and both are decided by
 * the others' answers; a server that works on that question has not read the release or the
 * break yet. The child keeps no other descriptor, so that neither the reader of a pipe nor
 * another program's lock waits for it, nor a server that owes nothing. It has a session of
 * its own, so that ^C does not reach it, and no directory that one might want to unmount.
 * If there can be no child, servers that are not connected yet are given up.
 */
#ifndef SERVER_DRAIN_H
#define SERVER_DRAIN_H

#include "server/quorum.h"

/* The last use of the connections: nothing may be sent on them afterwards. No
 * other thread may use them. */
void drain_connections(struct quorum *quorum);

#endif
