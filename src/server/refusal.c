#include "server/refusal.h"

#include <stdio.h>
#include <string.h>

#include "base/bounds.h"

#define MORE_LONGEST 16   /* bytes of ", and 7 more" */
#define SHOWN_LONGEST 160 /* bytes of a server's error text */

void refusal_set(struct refusal *refusal, enum cause cause, const char *text)
{
	refusal->cause = cause;
	strlcpy(refusal->text, text, sizeof(refusal->text));
}

void refusal_print(struct refusal *refusal, const struct endpoint *endpoint,
		   enum cause cause, const char *format, va_list arguments)
{
	char name[ENDPOINT_TEXT];
	int length = 0;

	if (endpoint != NULL)
		length = snprintf(refusal->text, sizeof(refusal->text),
				  "%.99s: ", endpoint_format(name, endpoint));
	vsnprintf(refusal->text + length,
		  sizeof(refusal->text) - (size_t)length, format, arguments);
	refusal->cause = cause;
}

void refusals_add(struct refusals *refusals, const struct refusal *refusal)
{
	if (refusal->text[0] == '\0')
		return;
	if (!cause_is_transient(refusal->cause)) {
		refusals->final = refusal;
		refusals->final_count++;
	} else if (refusals->transient == NULL) {
		refusals->transient = refusal;
	}
}

bool refusals_are_final(const struct refusals *refusals, size_t seed_count)
{
	return seed_count - refusals->final_count < majority(seed_count);
}

enum cause refusals_cause(const struct refusals *refusals, size_t seed_count,
			  enum cause otherwise)
{
	if (refusals_are_final(refusals, seed_count))
		return refusals->final->cause;
	return refusals->transient != NULL ? refusals->transient->cause
					   : otherwise;
}

void refusal_list_add(struct refusal_list *list, const char *name,
		      const char *said)
{
	char *text = list->refusal->text;
	size_t length = strlen(text);
	size_t room = sizeof(list->refusal->text) - MORE_LONGEST - length;
	int needed = snprintf(text + length, room, "%s%s: %s",
			      list->told > 0 ? ", " : ": ", name, said);

	/* the first one is cut rather than left out */
	if (list->told == 0 || (list->more == 0 && needed < (int)room)) {
		list->told++;
		return;
	}
	text[length] = '\0';
	list->more++;
}

void refusal_list_end(struct refusal_list *list)
{
	char *text = list->refusal->text;
	size_t length = strlen(text);

	if (list->more > 0)
		snprintf(text + length, sizeof(list->refusal->text) - length,
			 ", and %zu more", list->more);
}

/* A server may repeat what it was asked. So a login comes back if AUTH is no
 * command there, or if it was sent to an impostor. */
static void copy_shown(char shown[SHOWN_LONGEST + 1], struct error_reply reply,
		       const char *secret)
{
	static const char hidden[] = "***";
	size_t length = secret != NULL ? strlen(secret) : 0, used = 0;
	const char *text = reply.text, *end = text + reply.length;

	while (text < end && used < SHOWN_LONGEST) {
		if (length == 0 || strncmp(text, secret, length) != 0) {
			shown[used++] = *text++;
			continue;
		}
		text += length;
		for (size_t i = 0; hidden[i] != '\0' && used < SHOWN_LONGEST;
		     i++)
			shown[used++] = hidden[i];
	}
	shown[used] = '\0';
}

const char *refusal_explain(char text[REPLY_TEXT], struct error_reply reply,
			    const char *secret)
{
	char shown[SHOWN_LONGEST + 1];
	bool whole;
	const char *words = cause_words(reply.cause, &whole);

	copy_shown(shown, reply, secret);
	if (shown[0] == '\0')
		strlcpy(shown, "an empty error", sizeof(shown));
	if (!whole)
		strlcpy(text, words, REPLY_TEXT);
	else if (*words == '\0')
		strlcpy(text, shown, REPLY_TEXT);
	else
		snprintf(text, REPLY_TEXT, "%s (%s)", words, shown);
	return text;
}
