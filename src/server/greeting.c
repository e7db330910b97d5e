#include "server/greeting.h"

#include <string.h>

#include "server/refusal.h"

static void ask(struct server *server, enum owed_kind kind,
		const char *const *words, size_t count)
{
	struct argument arguments[4];

	for (size_t i = 0; i < count; i++)
		arguments[i] = (struct argument){words[i], strlen(words[i])};
	server_put(server, (struct owed){.kind = kind}, arguments, count);
}

void greeting_put(struct server *server)
{
	const struct url *url = &server->url;

	if (url->password != NULL && url->user != NULL)
		ask(server, OWED_LOGIN,
		    (const char *[]){"AUTH", url->user, url->password}, 3);
	else if (url->password != NULL)
		ask(server, OWED_LOGIN, (const char *[]){"AUTH", url->password},
		    2);
	ask(server, OWED_NAME, (const char *[]){"CLIENT", "SETNAME", "redlock"},
	    3);
	if (!server->identify)
		return;
	ask(server, OWED_INFO, (const char *[]){"INFO", "server"}, 2);
	ask(server, OWED_CONFIG, (const char *[]){"CONFIG", "GET", "append*"},
	    3);
}

int greeting_take(struct server *server, enum owed_kind kind,
		  const struct reply *reply)
{
	bool refused = reply->failure != NULL;

	server->complained = refused;
	if (kind == OWED_CONFIG && !refused)
		identity_read_config(&server->identity, reply);
	else if (refused && kind != OWED_CONFIG && !server->login_failed)
		blame_refusal(server, kind == OWED_LOGIN
					      ? cause_of_login(reply->failure)
					      : cause_of(reply->failure));
	if (kind == OWED_LOGIN && refused) {
		/* what is behind it in the pipeline runs as the default user */
		server->login_failed = true;
	} else if (kind == OWED_INFO && !refused &&
		   identity_read_info(&server->identity, reply) < 0) {
		return -1;
	}
	return 0;
}
