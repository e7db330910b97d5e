#include "server/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "net/endpoint.h"

#define FIELDS 9 /* of one with slots, at least */

void nodes_release(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		url_release(&nodes->list[i]);
	free(nodes->list);
	*nodes = (struct nodes){0};
}

static int add(struct nodes *nodes, const char *host, const char *port)
{
	struct url node = {0};

	if (nodes->count == NODES_MAX || place_set(&node, host, port) < 0)
		return -1;
	/* a power of two: as many as it takes */
	if ((nodes->count & (nodes->count - 1)) == 0) {
		size_t room = nodes->count == 0 ? 1 : 2 * nodes->count;

		nodes->list = heap_grow(nodes->list, room * sizeof(node));
	}
	nodes->list[nodes->count++] = node;
	return 0;
}

/* "id host:port@bus,name flags master sent got epoch state slot ..." */
static int read_line(struct nodes *nodes, char *line, const char *host)
{
	char *field[FIELDS], *port, *word;
	size_t count = 0;

	while (count < FIELDS && (word = strsep(&line, " ")) != NULL)
		field[count++] = word;
	if (count < FIELDS - 1)
		return -1;
	if (count < FIELDS || *field[FIELDS - 1] == '\0' ||
	    strstr(field[2], "master") == NULL)
		return 0;
	field[1][strcspn(field[1], "@,")] = '\0';
	port = strrchr(field[1], ':');
	if (port == NULL)
		return -1;
	*port++ = '\0';
	return add(nodes, *field[1] != '\0' ? field[1] : host, port);
}

int nodes_read(struct nodes *nodes, const char *text, const char *host)
{
	char *copy = heap_copy(text), *rest = copy, *line;
	int result = 0;

	*nodes = (struct nodes){0};
	while (result == 0 && (line = strsep(&rest, "\r\n")) != NULL)
		if (*line != '\0')
			result = read_line(nodes, line, host);
	free(copy);
	if (result < 0 || nodes->count == 0) {
		nodes_release(nodes);
		return -1;
	}
	return 0;
}
