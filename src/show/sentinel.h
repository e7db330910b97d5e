/*
 * What Sentinels (discovery.h) say of the master that they watch. Only doctor
 * asks for it, no lock does.
 */
#ifndef SENTINEL_H
#define SENTINEL_H

#include <stdint.h>

#include "base/output.h"
#include "net/url.h"

/* How long the Sentinels of a URL_SENTINEL wait for a silent master before they
 * make another one: the longest time that one of them names, in ms; -1 if none
 * does within timeout (ms). */
int64_t sentinel_down_after(const struct url *url, int64_t timeout);

/* Warns (checkup.h) if a run with this ttl (ms) would be over before there is
 * another master. */
void sentinel_advise(struct buffer *warnings, int64_t down_after, int64_t ttl);

#endif
