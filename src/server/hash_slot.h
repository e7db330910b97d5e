/*
 * The slot of a cluster that a key is in: CRC-16/XMODEM of its hash tag, or of
 * all of it where it has none, modulo 16384 (Redis Cluster Specification, Key
 * distribution model).
 */
#ifndef SLOT_H
#define SLOT_H

#include <stddef.h>

unsigned slot_find(const char *key, size_t length);

#endif
