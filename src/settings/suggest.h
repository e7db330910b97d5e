/*
 * "did you mean": what a wrong word was perhaps meant to be. An error says so;
 * nobody acts on it.
 */
#ifndef SETTINGS_SUGGEST_H
#define SETTINGS_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* The nearest of count names; NULL if none is near enough. */
const char *suggest_nearest(const char *text, const char *const *names,
			    size_t count);

/* What users of other programs (flock, timeout, consul lock, etcdctl,
 * redis-cli, redis-py ...) call one of our options. */
struct synonym {
	char word[18];
	char option[19];    /* of options.h; "": the text is all */
	unsigned char text; /* for suggest_text */
};

/* NULL if no program is known to call an option so. Case counts for one letter
 * only. */
const struct synonym *suggest_option(const char *word);

/* How it is written here; NULL: as --option. */
const char *suggest_text(const struct synonym *synonym);

/* Whether there is no such option, because nobody needs it; suggest_text says why. */
bool suggest_needless(const struct synonym *synonym);

/* What a word that is no command may mean: "run, or acquire" and such, or NULL. */
const char *suggest_command(const char *word);

#endif
