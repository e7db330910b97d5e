#include "cmd/version.h"

#include <unistd.h>

#include "built.h"
#include "cmd/print.h"
#include "net/tls_load.h"
#include "server/reply.h"

static void add_openssl(struct buffer *text)
{
	struct error error;

	buffer_print(text, "\nTLS: ");
	if (tls_describe(text, &error) < 0)
		buffer_print(text, "none, as %s", error.text);
}

static void add_c_library(struct buffer *text)
{
	char name[128] = "not the GNU C library";

#ifdef _CS_GNU_LIBC_VERSION
	confstr(_CS_GNU_LIBC_VERSION, name, sizeof(name));
#endif
	buffer_print(text, "\nC library: %s", name);
}

int cmd_version(void)
{
	struct buffer text = {0};
	int status;

	buffer_print(&text, "redlock %s\nhiredis: ", VERSION);
	reply_describe_reader(&text);
	add_openssl(&text);
	buffer_print(&text, "\nlibbsd: %s", BUILT_LIBBSD);
	add_c_library(&text);
	buffer_print(&text, "\nbuilt by: %s\nflags: %s\n", BUILT_BY,
		     BUILT_FLAGS);
	status = cmd_show(text.data, text.length);
	buffer_release(&text);
	return status;
}
