/*
 * Upper bounds. The settings refuse more than this, and the rooms above rely on
 * it: their tables and texts have room for this much. And how many are a majority.
 */
#ifndef BASE_BOUNDS_H
#define BASE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVERS_MAX 32 /* as many as a uint32_t has bits */
#define PERMITS_MOST 10000
#define LOCKS_MOST 16     /* that are taken together */
#define KEY_LONGEST 4096  /* bytes */
#define TOKEN_DIGITS 32   /* hex, of a token that redlock draws */
#define TOKEN_LONGEST 256 /* bytes, of tokens that other programs made */
#define FENCE_LARGEST (INT64_C(1) << 53) /* Lua counts in doubles */
#define REPLICAS_MOST 1000               /* of one server */

/* Whether a token that a user chose can stand wherever tokens do: 1 to 256
 * printable ASCII characters but '%' and '='. */
bool bounds_allow_token(const char *token);

/* How many of them are a majority. They are servers, or Sentinels or nodes of one. */
static inline size_t majority(size_t count)
{
	return count / 2 + 1;
}

#endif
