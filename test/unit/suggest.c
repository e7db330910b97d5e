/* "did you mean": the nearest word, whatever is compared with whatever. */
#include "settings/suggest.h"

#include "check.h"

static const char *const words[] = {"acquire", "release", "run", "status"};

static void check(const char *text, const char *wanted)
{
	const char *got = suggest_nearest(text, words, COUNT(words));

	CHECK(same(got, wanted), "%s: %s", text, shown(got));
}

static void test_words(void)
{
	check("acquire", "acquire");
	check("aquire", "acquire");
	check("acqiure", "acquire");
	check("rleasee", "release");
	check("statusss", "status");
	check("statussss", NULL);
	check("rnu", "run");
	check("ru", "run");
	check("r", NULL);
	check("", NULL);
	check("unlock", NULL);
	check("RUN", "run");
	check("ron", "run");
	check("rin2", "run");
	check("urn3", "run");
	check("ruin", "run");
	check("fan", NULL); /* two letters of three */
}

/* Every length against every other: one of a's against one of a's. */
static void test_lengths(void)
{
	char text[200] = "", name[200] = "";
	const char *const names[] = {name};

	for (size_t a = 0; a < sizeof(text) - 1; a++) {
		memset(text, 'a', a);
		text[a] = '\0';
		for (size_t b = 0; b < sizeof(name) - 1; b++) {
			const char *got;
			size_t edits = a > b ? a - b : b - a;

			memset(name, 'a', b);
			name[b] = '\0';
			got = suggest_nearest(text, names, 1);
			CHECK((got != NULL) ==
				      (a <= 64 && b <= 64 && edits <= 2 &&
				       a > 0 && edits * 2 <= a),
			      "%zu and %zu", a, b);
		}
	}
}

int main(void)
{
	test_words();
	test_lengths();
	return check_result();
}
