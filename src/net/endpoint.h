/*
 * A host and a port, as users write them and as servers name others.
 */
#ifndef PLACE_H
#define PLACE_H

#include "base/output.h"
#include "net/url.h"

/* A number without sign or blank, at most limit; -1 otherwise. */
long place_number(const char *text, long limit);

/* Takes "host", "host:port", "[v6]" or "[v6]:port" over to url (a v6 may have a
 * zone: fe80::1%eth0, or fe80::1%25eth0 as RFC 6874 has it), whose port stays
 * where none is named; text is changed. NULL, or what is wrong. */
const char *place_parse(struct url *url, char *text);

/* Whether it is letters, digits and these signs. NULL, or what is wrong. */
const char *place_check_host(const char *text, const char *signs);

/* The same as one text. */
void place_print(struct buffer *text, const struct url *url);

/* Makes url, which is released first, a host and port that a server has named.
 * -1 where they are fit for none: then url is zeroed. */
int place_set(struct url *url, const char *host, const char *port);

#endif
