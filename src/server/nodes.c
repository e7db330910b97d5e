#include "server/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define FIELDS 9 /* of a node with hash slots, at least */

void nodes_release(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		endpoint_release(&nodes->list[i]);
	free(nodes->list);
	*nodes = (struct nodes){0};
}

/* Takes over *node. */
static int add(struct nodes *nodes, struct endpoint *node)
{
	if (nodes->count == NODES_MAX) {
		endpoint_release(node);
		return -1;
	}
	/* a power of two: as many as it takes */
	if ((nodes->count & (nodes->count - 1)) == 0) {
		size_t capacity = nodes->count == 0 ? 1 : 2 * nodes->count;

		nodes->list = xrealloc(nodes->list, capacity * sizeof(*node));
	}
	nodes->list[nodes->count++] = *node;
	return 0;
}

/* "host:port@bus,name" to "host:port", and the name: "" if there is none. */
static const char *split_place(char *place)
{
	char *name = strchr(place, ',');

	if (name != NULL) {
		*name++ = '\0';
		name[strcspn(name, ",")] = '\0'; /* of later versions */
	}
	place[strcspn(place, "@")] = '\0';
	return name != NULL ? name : "";
}

static int read_name(struct endpoint *node, const char *place, const char *name)
{
	const char *colon = strrchr(place, ':');

	return *name != '\0' && colon != NULL
		       ? endpoint_set(node, name, colon + 1)
		       : -1;
}

/* "id place flags master sent got epoch state slot ..." */
static size_t split_line(char *line, char *field[FIELDS])
{
	size_t count = 0;
	char *word;

	while (count < FIELDS && (word = strsep(&line, " ")) != NULL)
		field[count++] = word;
	return count;
}

static int read_line(struct nodes *nodes, char *line, const char *host,
		     bool by_name)
{
	struct endpoint node = {0};
	char *field[FIELDS];
	size_t count = split_line(line, field);
	const char *name;

	if (count < FIELDS - 1)
		return -1;
	if (count < FIELDS || *field[FIELDS - 1] == '\0' ||
	    strstr(field[2], "master") == NULL)
		return 0;
	name = split_place(field[1]);
	if (by_name && read_name(&node, field[1], name) == 0)
		return add(nodes, &node);
	return endpoint_read(&node, field[1], host) < 0 ? -1
							: add(nodes, &node);
}

int nodes_read(struct nodes *nodes, const char *text, const char *host,
	       bool by_name)
{
	char *copy = xstrdup(text), *rest = copy, *line;
	int result = 0;

	*nodes = (struct nodes){0};
	while (result == 0 && (line = strsep(&rest, "\r\n")) != NULL)
		if (*line != '\0')
			result = read_line(nodes, line, host, by_name);
	free(copy);
	if (result < 0 || nodes->count == 0) {
		nodes_release(nodes);
		return -1;
	}
	return 0;
}

/* Whether the line is that of this node, whose name it then has. */
static bool has_name(char *line, const struct endpoint *address,
		     struct endpoint *name)
{
	struct endpoint node = {0};
	char *field[FIELDS];
	const char *said;
	bool is_it;

	if (split_line(line, field) < FIELDS - 1)
		return false;
	said = split_place(field[1]);
	if (address == NULL)
		is_it = strstr(field[2], "myself") != NULL;
	else
		is_it = endpoint_read(&node, field[1], "") == 0 &&
			endpoint_is_same(&node, address);
	endpoint_release(&node);
	return is_it && read_name(name, field[1], said) == 0;
}

int nodes_find_name(const char *text, const struct endpoint *address,
		    struct endpoint *name)
{
	char *copy = xstrdup(text), *rest = copy, *line;
	bool found = false;

	endpoint_release(name);
	while (!found && (line = strsep(&rest, "\r\n")) != NULL)
		found = has_name(line, address, name);
	free(copy);
	return found ? 0 : -1;
}
