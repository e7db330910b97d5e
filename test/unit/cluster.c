/* Which slot a key is in; which masters CLUSTER NODES names. */
#include "server/cluster.h"
#include "base/buffer.h"
#include "server/hash_slot.h"

#include "check.h"

/* As CLUSTER KEYSLOT says. */
static void test_slots(void)
{
	static const struct {
		const char *key;
		unsigned slot;
	} slots[] = {
		{"", 0},
		{"123456789", 0x31c3},
		{"foo", 12182},
		{"{foo}", 12182},
		{"a{foo}b{bar}", 12182},
		{"{foo}:redlock:queue", 12182},
		{"{}foo", 9500},
		{"foo{}{bar}", 8363},
		{"{{bar}}zap", 4015},
		{"foo}", 15679},
		{"{foo", 13308},
	};

	for (size_t i = 0; i < COUNT(slots); i++) {
		unsigned slot = hash_slot(slots[i].key, strlen(slots[i].key));

		CHECK(slot == slots[i].slot, "%s is in %u", slots[i].key, slot);
	}
}

static void check_named(const char *text, bool by_name, const char *wanted)
{
	struct nodes nodes;
	char got[300] = "", name[ENDPOINT_TEXT];
	int result = nodes_read(&nodes, text, "self", by_name);

	for (size_t i = 0; i < nodes.count; i++) {
		strcat(got, endpoint_format(name, &nodes.list[i]));
		strcat(got, " ");
	}
	CHECK(result == (wanted[0] != '\0' ? 0 : -1), "%s", text);
	CHECK(same(got, wanted), "%s: %s", text, got);
	nodes_release(&nodes);
}

static void check_nodes(const char *text, const char *wanted)
{
	check_named(text, false, wanted);
}

static void test_nodes(void)
{
	check_nodes("id1 10.0.0.1:7000@17000 myself,master - 0 0 1 connected "
		    "0-5460\n"
		    "id2 ::1:7001@17001,host.example master - 0 1 2 connected "
		    "5461 7000-8000 [93->-id1]\n"
		    "id3 10.0.0.3:7002@17002 slave id1 0 1 2 connected\n"
		    "id4 :0@0 master,noaddr - 0 1 2 disconnected\n"
		    "id5 10.0.0.5:7005@17005 master - 0 1 2 connected\n",
		    "10.0.0.1:7000 [::1]:7001 ");
	check_nodes("id1 :7000@17000 myself,master - 0 0 1 connected 0-16383\n",
		    "self:7000 ");
	check_nodes("", "");
	check_nodes("\r\n\n", "");
	check_nodes("OK", "");
	check_nodes("id 10.0.0.1 master - 0 0 1 connected 0-1\n", "");
	check_nodes("id 10.0.0.1:0@1 master - 0 0 1 connected 0-1\n", "");
	check_nodes("id a\033b:1@1 master - 0 0 1 connected 0-1\n", "");
	check_nodes("id a:1@1 master - 0 0 1 connected \n", "");
	check_nodes("id a:1@1 slave x 0 0 1 connected 0-1\n", "");
}

#define NAMED                                                             \
	"id1 10.0.0.1:7000@17000,a.example myself,master - 0 0 1 c 0-1\n" \
	"id2 ::1:7001@17001,b.example,more=x master - 0 1 2 c 2-3\n"      \
	"id3 10.0.0.3:7002@17002, master - 0 1 2 c 4\n"                   \
	"id4 10.0.0.4:7003@17003,d/e master - 0 1 2 c 5\n"                \
	"id5 10.0.0.5:7004@17004,e.example slave id1 0 1 2 c\n"

static void check_name(const char *text, const char *address,
		       const char *wanted)
{
	struct endpoint at = {0}, name = {0};
	char got[ENDPOINT_TEXT] = "";

	CHECK(address == NULL || endpoint_read(&at, address, "") == 0, "%s",
	      address);
	if (nodes_find_name(text, address != NULL ? &at : NULL, &name) == 0)
		endpoint_format(got, &name);
	CHECK(same(got, wanted), "%s: %s", address != NULL ? address : "self",
	      got);
	endpoint_release(&at);
	endpoint_release(&name);
}

/* A name that a node announces counts before its address, if names are wanted. */
static void test_names(void)
{
	check_named(NAMED, true,
		    "a.example:7000 b.example:7001 10.0.0.3:7002 "
		    "10.0.0.4:7003 ");
	check_named(NAMED, false,
		    "10.0.0.1:7000 [::1]:7001 10.0.0.3:7002 10.0.0.4:7003 ");
	check_name(NAMED, NULL, "a.example:7000");
	check_name(NAMED, "10.0.0.1:7000", "a.example:7000");
	check_name(NAMED, "::1:7001", "b.example:7001");
	check_name(NAMED, "10.0.0.5:7004", "e.example:7004");
	check_name(NAMED, "10.0.0.1:7001", "");
	check_name(NAMED, "10.0.0.3:7002", "");
	check_name(NAMED, "10.0.0.4:7003", "");
	check_name(NAMED, "a.example:7000", "");
	check_name("", NULL, "");
	check_name("id1 10.0.0.1:7000@1,a master - 0 0 1 c 0\n", NULL, "");
	check_name("id1 :7000@1,a myself,master - 0 0 1 c 0\n", NULL, "a:7000");
	check_name("id1 10.0.0.1:0@1,a myself - 0 0 1 c 0\n", NULL, "");
	check_name("id1 x,a myself - 0 0 1 c 0\n", NULL, "");
}

/* As many masters as lines, whatever ends a line. */
static void check_lines(size_t count, const char *end, int wanted)
{
	struct buffer text = {0};
	struct nodes nodes;

	for (size_t i = 0; i < count; i++)
		buffer_print(&text,
			     "id 10.0.%zu.%zu:7 master - 0 0 1 connected %zu%s",
			     i / 250, i % 250, i, end);
	CHECK(nodes_read(&nodes, text.data, "self", false) == wanted, "%zu",
	      count);
	CHECK(nodes.count == (wanted == 0 ? count : 0), "%zu of %zu",
	      nodes.count, count);
	for (size_t i = 0; i < nodes.count; i += nodes.count - 1)
		CHECK(nodes.list[i].host != NULL && nodes.list[i].port == 7,
		      "%zu", i);
	nodes_release(&nodes);
	buffer_release(&text);
}

static void test_lines(void)
{
	static const char *const ends[] = {"\n", "\r", "\r\n", "\n\r", "\r\r"};

	for (size_t i = 0; i < COUNT(ends); i++) {
		check_lines(2, ends[i], 0);
		check_lines(1000, ends[i], 0);
	}
	check_lines(NODES_MAX, "\n", 0);
	check_lines(NODES_MAX + 1, "\n", -1);
}

int main(void)
{
	test_slots();
	test_nodes();
	test_names();
	test_lines();
	return check_result();
}
