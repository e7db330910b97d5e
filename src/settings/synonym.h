/*
 * What users of other programs (flock, timeout, consul lock, etcdctl,
 * redis-cli, redis-py ...) call an option or a command of ours: only to say in an
 * error what was meant, never to take it.
 */
#ifndef SYNONYM_H
#define SYNONYM_H

struct synonym {
	char word[18];
	char option[19];    /* of options.h; "": the text is all */
	unsigned char text; /* for synonym_text */
};

/* NULL where nobody is known to say so. Case counts for one letter only. */
const struct synonym *synonym_find(const char *word);

/* How it is written here; NULL: as --option. */
const char *synonym_text(const struct synonym *synonym);

/* What a word that is no command may mean: NULL, or "run, or acquire" and such. */
const char *synonym_of_command(const char *word);

#endif
