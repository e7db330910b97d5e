/*
 * Servers that have yet to read what was sent to them when all else is done.
 *
 * A connection that is closed while an answer is still to come may lose what
 * was sent behind the request: Redis hangs up where it cannot write the
 * answer, and never reads the rest. So where the request was sticky (an
 * acquire, with its release behind it), the connection has to stay until that
 * is answered, or KEY is held there by nobody for a ttl.
 *
 * Nobody should have to wait for that: a minority of servers that has stopped
 * costs no time. So a child of ours stays with the connections, 100 ms at
 * most, and the process ends without it. It keeps no other descriptor, so that
 * neither the reader of a pipe nor another program's lock waits for it, and it
 * has a session of its own: ^C does not reach it.
 */
#ifndef LINGER_H
#define LINGER_H

#include "server/quorum.h"

/* Last use of the connections; nothing may be sent on them any more. There must
 * be no second thread that uses them. */
void linger(struct quorum *quorum);

#endif
