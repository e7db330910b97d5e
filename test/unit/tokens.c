/* One text for the tokens of several locks. */
#include "base/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static char *join(const char *const *tokens, size_t count)
{
	struct buffer text = {0};

	tokens_join(&text, tokens, count);
	return text.data;
}

static void test_there_and_back(void)
{
	static const char *const tokens[] = {"one", "two", "a,b", "+3"};
	char *text = join(tokens, COUNT(tokens)), token[TOKEN_LONGEST + 1];

	CHECK(strcmp(text, "one=two=a,b=+3") == 0, "%s", text);
	CHECK(tokens_count(text, 4) == 4, "%s", text);
	for (size_t i = 0; i < COUNT(tokens); i++)
		CHECK(tokens_pick(text, COUNT(tokens), i, token) &&
			      strcmp(token, tokens[i]) == 0,
		      "%s", token);
	CHECK(!tokens_pick(text, 3, 0, token), "for three");
	CHECK(!tokens_pick(text, 5, 0, token), "for five");
	free(text);
}

static void test_one_for_all(void)
{
	static const char *const tokens[] = {"me", "me"};
	char *text = join(tokens, 2), token[TOKEN_LONGEST + 1];

	CHECK(strcmp(text, "me") == 0, "%s", text);
	CHECK(tokens_pick(text, 2, 1, token) && strcmp(token, "me") == 0, "%s",
	      token);
	free(text);
}

#define DRAWN "0123456789abcdef0123456789abcdef"

/* One key may have the token of another program. */
static void test_single(void)
{
	char token[TOKEN_LONGEST + 1], text[TOKEN_LONGEST + 2];

	CHECK(tokens_pick("a=b==", 1, 0, token) && strcmp(token, "a=b==") == 0,
	      "%s", token);
	CHECK(tokens_count(DRAWN "=" DRAWN, 1) == 2, "not another program's");
	CHECK(!tokens_pick(DRAWN "=" DRAWN, 1, 0, token), "for two");
	CHECK(tokens_count(DRAWN "=" DRAWN "=", 1) == 1, "the last is empty");
	CHECK(tokens_count(DRAWN "=A" DRAWN, 1) == 1, "33 digits");
	CHECK(tokens_count(DRAWN, 1) == 1, "one");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(!tokens_pick(text, 1, 0, token), "too long");
	CHECK(tokens_pick(text + 1, 1, 0, token), "as long as it may be");
}

static void test_wrong(void)
{
	char token[TOKEN_LONGEST + 1];

	CHECK(!tokens_pick("", 1, 0, token), "empty");
	CHECK(!tokens_pick("", 2, 0, token), "empty for two");
	CHECK(!tokens_pick("=x", 2, 0, token), "the first is empty");
	CHECK(tokens_pick("=x", 2, 1, token), "the second is not");
	CHECK(!tokens_pick("x=", 2, 1, token), "the second is empty");
	CHECK(!tokens_pick("x==y", 3, 1, token), "one between is empty");
}

int main(void)
{
	test_there_and_back();
	test_one_for_all();
	test_single();
	test_wrong();
	return check_result();
}
