/*
 * The hash slot of a cluster that a key is in: CRC-16/XMODEM of its hash tag,
 * or of all of it if it has none, modulo 16384 (Redis Cluster Specification,
 * Key distribution model).
 */
#ifndef SERVER_HASH_SLOT_H
#define SERVER_HASH_SLOT_H

#include <stddef.h>

unsigned hash_slot(const char *key, size_t length);

#endif
