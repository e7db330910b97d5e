#include "run/nearness.h"

#include <string.h>

#include "net/url.h"

void nearness_print(struct buffer *text, const struct quorum *quorum)
{
	for (size_t i = 0; i < quorum->count; i++)
		buffer_print(text, "%s\n", quorum->servers[i].url.name);
}

/* Marks those of ours that this one is. A name that is no URL is itself at least. */
static bool find_in(const struct quorum *quorum, const char *name,
		    bool found[SERVERS_MAX])
{
	struct error ignored;
	struct url url = {0};
	bool any = false, parsed = url_parse(&url, name, &ignored) == 0;

	for (size_t i = 0; i < quorum->count; i++) {
		const struct url *ours = &quorum->servers[i].url;

		if (strcmp(name, ours->name) == 0 ||
		    (parsed && url_is_same(&url, ours) && url.db == ours->db))
			any = found[i] = true;
	}
	url_release(&url);
	return any;
}

enum nearness nearness_read(char *text, const struct quorum *quorum)
{
	bool found[SERVERS_MAX] = {false}, any = false, all = true;
	char *name;

	while ((name = strsep(&text, "\n")) != NULL && *name != '\0') {
		bool is_ours = find_in(quorum, name, found);

		any |= is_ours;
		all &= is_ours;
	}
	for (size_t i = 0; i < quorum->count; i++)
		all &= found[i];
	return !any ? NEAR_NONE : all ? NEAR_ALL : NEAR_SOME;
}
