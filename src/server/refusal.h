/*
 * Why a server does not count, as a value that can be kept and copied. The
 * cause decides the exit status, the advice, and whether another try may do
 * better (cause.h); the text is for people, without the server's name.
 */
#ifndef SERVER_REFUSAL_H
#define SERVER_REFUSAL_H

#include <stdarg.h>

#include "net/endpoint.h"
#include "server/cause.h"

#define REFUSAL_TEXT 512 /* bytes */

struct refusal {
	enum cause cause;
	char text[REFUSAL_TEXT]; /* "": there is none */
};

void refusal_set(struct refusal *refusal, enum cause cause, const char *text);

/* The same with a format. endpoint: stands in front if the URL does not name
 * it; or NULL. */
void refusal_print(struct refusal *refusal, const struct endpoint *endpoint,
		   enum cause cause, const char *format, va_list arguments)
	__attribute__((format(printf, 4, 0)));

/* Why the seeds of a server do not say where it is. */
struct refusals {
	size_t final_count; /* of those that no other try will change */
	const struct refusal *final, *transient; /* one of each, or NULL */
};

/* With the refusal of one more seed that has not said it. */
void refusals_add(struct refusals *refusals, const struct refusal *refusal);

/* Whether those that may yet say it are no majority of the seeds. */
bool refusals_are_final(const struct refusals *refusals, size_t seed_count);

/* What all of it comes to: an outage beside a refusal may end, so it is waited
 * for, unless the refusals alone are enough to leave no majority. otherwise: if all
 * have said it, but do not agree. */
enum cause refusals_cause(const struct refusals *refusals, size_t seed_count,
			  enum cause otherwise);

/* Adds to a refusal's text what each seed said, ": NAME: SAID, NAME: SAID". The seeds for
 * which there is no room are counted: ", and 3 more". Zeroed but for refusal. */
struct refusal_list {
	struct refusal *refusal;
	size_t told, more;
};

void refusal_list_add(struct refusal_list *list, const char *name,
		      const char *said);
void refusal_list_end(struct refusal_list *list);

#define REPLY_TEXT 320 /* bytes */

/* An error reply as people are told it. secret, or NULL, is not shown. */
const char *refusal_explain(char text[REPLY_TEXT], struct error_reply reply,
			    const char *secret);

#endif
