#include "settings/suggest.h"

#include <ctype.h>
#include <string.h>

#define WORD_LONGEST 64
#define EDITS_MOST 2 /* for a word to be near: and half of it stays */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) between two words; more than
 * EDITS_MOST if one is longer than WORD_LONGEST. */
static size_t distance(const char *a, const char *b)
{
	size_t rows = strlen(a), columns = strlen(b);
	size_t cost[WORD_LONGEST + 1][WORD_LONGEST + 1];

	if (rows > WORD_LONGEST || columns > WORD_LONGEST)
		return EDITS_MOST + 1;
	for (size_t i = 0; i <= rows; i++)
		cost[i][0] = i;
	for (size_t k = 0; k <= columns; k++)
		cost[0][k] = k;
	for (size_t i = 1; i <= rows; i++) {
		for (size_t k = 1; k <= columns; k++) {
			size_t best = cost[i - 1][k - 1] +
				      (tolower((unsigned char)a[i - 1]) !=
				       tolower((unsigned char)b[k - 1]));

			best = least(best, cost[i - 1][k] + 1);
			best = least(best, cost[i][k - 1] + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1])
				best = least(best, cost[i - 2][k - 2] + 1);
			cost[i][k] = best;
		}
	}
	return cost[rows][columns];
}

const char *suggest_nearest(const char *text, const char *const *names,
			    size_t count)
{
	const char *nearest = NULL;
	size_t best = EDITS_MOST + 1;

	for (size_t i = 0; i < count; i++) {
		size_t edits = distance(text, names[i]);

		if (edits < best && *text != '\0' &&
		    edits * 2 <= strlen(text)) {
			best = edits;
			nearest = names[i];
		}
	}
	return nearest;
}
