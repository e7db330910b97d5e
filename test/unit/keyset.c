/* What has been seen is known, and nothing else is. */
#include "../../src/base/keyset.h"

#include "check.h"

#define MANY 100000

int main(void)
{
	struct keyset set = {0};
	char key[32];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < MANY; i++) {
			int length = snprintf(key, sizeof(key), "key-%d", i);

			CHECK(keyset_add(&set, key, (size_t)length) ==
				      (round == 0),
			      "%s in round %d", key, round);
		}
	CHECK(set.count == MANY, "%zu", set.count);
	CHECK(keyset_add(&set, "", 0), "the empty one is one too");
	CHECK(keyset_add(&set, "a\0b", 3) && keyset_add(&set, "a\0c", 3),
	      "NULs count");
	keyset_release(&set);
	CHECK(keyset_add(&set, "key-1", 5), "released is empty");
	keyset_release(&set);
	return check_result();
}
