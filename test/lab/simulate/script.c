/*
 * Scripts, executed by the Lua that Redis has, in surroundings like those that Redis
 * gives them. They are compiled once for all servers, and for all runs of one simulate;
 * each server knows those only that it was sent since it was started.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store.h"

#define WORDS_MOST 8000

static lua_State *lua;
static struct store *store; /* whose script runs */

static struct script {
	struct word text;
	char sha1[41];
	int function; /* in the registry */
} scripts[SCRIPTS_MOST];
static size_t script_count, inherited;

void store_sha1(char sha1[41], struct word text)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char digest[SHA_DIGEST_LENGTH];

	SHA1((const unsigned char *)text.data, text.length, digest);
	for (size_t i = 0; i < 2 * sizeof(digest); i += 2) {
		sha1[i] = digits[digest[i / 2] >> 4];
		sha1[i + 1] = digits[digest[i / 2] & 15];
	}
	sha1[2 * sizeof(digest)] = '\0';
}

/* --- from answers to Lua, and back ----------------------------------------- */

static void push_table(lua_State *state, const char *field, const char *text,
		       size_t length)
{
	lua_newtable(state);
	lua_pushstring(state, field);
	lua_pushlstring(state, text, length);
	lua_rawset(state, -3);
}

/* Pushes what stands at `at`, and returns where it ends. */
static const char *push_answer(lua_State *state, const char *at)
{
	const char *line = at + 1, *end = strchr(line, '\r');
	long long number;

	switch (*at) {
	case ':':
		lua_pushnumber(state, (lua_Number)strtoll(line, NULL, 10));
		return end + 2;
	case '+':
	case '-':
		push_table(state, *at == '+' ? "ok" : "err", line,
			   (size_t)(end - line));
		return end + 2;
	case '$':
		number = strtoll(line, NULL, 10);
		if (number < 0) {
			lua_pushboolean(state, 0);
			return end + 2;
		}
		lua_pushlstring(state, end + 2, (size_t)number);
		return end + 2 + number + 2;
	default:
		number = strtoll(line, NULL, 10);
		lua_createtable(state, number > 0 ? (int)number : 0, 0);
		at = end + 2;
		for (int i = 1; i <= number; i++) {
			at = push_answer(state, at);
			lua_rawseti(state, -2, i);
		}
		return at;
	}
}

static bool answer_field(lua_State *state, const char *field, char sign,
			 struct buffer *answer)
{
	lua_getfield(state, -1, field);
	if (lua_type(state, -1) == LUA_TSTRING)
		buffer_print(answer, "%c%s\r\n", sign, lua_tostring(state, -1));
	else
		field = NULL;
	lua_pop(state, 1);
	return field != NULL;
}

/* Appends what is on top of the stack, and takes it off. */
static void pop_answer(lua_State *state, struct buffer *answer)
{
	size_t length;
	const char *text;
	int count = 0;

	switch (lua_type(state, -1)) {
	case LUA_TSTRING:
		text = lua_tolstring(state, -1, &length);
		answer_word(answer, (struct word){text, length});
		break;
	case LUA_TNUMBER:
		answer_number(answer, ':', (int64_t)lua_tonumber(state, -1));
		break;
	case LUA_TTABLE:
		if (answer_field(state, "err", '-', answer) ||
		    answer_field(state, "ok", '+', answer))
			break;
		for (bool more = true; more; count += more) {
			lua_rawgeti(state, -1, count + 1);
			more = !lua_isnil(state, -1);
			lua_pop(state, 1);
		}
		answer_number(answer, '*', count);
		for (int i = 1; i <= count; i++) {
			lua_rawgeti(state, -1, i);
			pop_answer(state, answer);
		}
		break;
	case LUA_TBOOLEAN:
		if (lua_toboolean(state, -1)) {
			buffer_append(answer, ":1\r\n", 4);
			break;
		}
		/* fall through */
	default:
		buffer_append(answer, "$-1\r\n", 5);
	}
	lua_pop(state, 1);
}

/* --- what Redis adds to Lua ------------------------------------------------ */

/* As "%.17g" does, but faster if it is a whole number. */
static struct word write_number(char text[32], double number)
{
	char *end = text + 32, *at;

	if (fabs(number) < 1 || fabs(number) > 1e15 || number != floor(number))
		return (struct word){
			text, (size_t)snprintf(text, 32, "%.17g", number)};
	at = write_integer(end, (int64_t)number);
	return (struct word){at, (size_t)(end - at)};
}

static int call(lua_State *state, bool raises)
{
	static struct word words[WORDS_MOST];
	static char numbers[WORDS_MOST][32];
	static struct buffer answer;
	int count = lua_gettop(state);

	if (count == 0 || count > WORDS_MOST)
		return luaL_error(state, "Please specify at least one "
					 "argument for this call");
	for (int i = 0; i < count; i++) {
		if (lua_type(state, i + 1) == LUA_TNUMBER) {
			words[i] = write_number(numbers[i],
						lua_tonumber(state, i + 1));
		} else if (lua_type(state, i + 1) == LUA_TSTRING) {
			words[i].data =
				lua_tolstring(state, i + 1, &words[i].length);
		} else {
			return luaL_error(state,
					  "Lua redis lib command arguments "
					  "must be strings or integers");
		}
	}
	answer.length = 0;
	store_call(store, words, (size_t)count, &answer);
	push_answer(state, answer.data);
	raises = raises && answer.data[0] == '-';
	return raises ? lua_error(state) : 1;
}

static int redis_call(lua_State *state)
{
	return call(state, true);
}

static int redis_pcall(lua_State *state)
{
	return call(state, false);
}

static int redis_error_reply(lua_State *state)
{
	size_t length;
	const char *text = luaL_checklstring(state, 1, &length);

	push_table(state, "err", text, length);
	return 1;
}

static int redis_status_reply(lua_State *state)
{
	size_t length;
	const char *text = luaL_checklstring(state, 1, &length);

	push_table(state, "ok", text, length);
	return 1;
}

static int redis_sha1hex(lua_State *state)
{
	struct word text;
	char sha1[41];

	text.data = luaL_checklstring(state, 1, &text.length);
	store_sha1(sha1, text);
	lua_pushstring(state, sha1);
	return 1;
}

/* The user may do everything. As on the strictest of servers, a command is asked for
 * with as many words as it can have. */
static int redis_acl_check_cmd(lua_State *state)
{
	struct word name;

	name.data = luaL_checklstring(state, 1, &name.length);
	if (!store_takes(name, (size_t)lua_gettop(state)))
		return luaL_error(state, "Wrong number of args for "
					 "redis.acl_check_cmd()");
	lua_pushboolean(state, 1);
	return 1;
}

static int refuse_global(lua_State *state)
{
	return luaL_error(state,
			  "Script attempted to access nonexistent global "
			  "variable '%s'",
			  luaL_checkstring(state, 2));
}

static int refuse_new_global(lua_State *state)
{
	return luaL_error(state,
			  "Attempt to modify a readonly table (global '%s')",
			  luaL_checkstring(state, 2));
}

static void open_lua(void)
{
	static const luaL_Reg functions[] = {
		{"call", redis_call},
		{"pcall", redis_pcall},
		{"error_reply", redis_error_reply},
		{"status_reply", redis_status_reply},
		{"sha1hex", redis_sha1hex},
		{"acl_check_cmd", redis_acl_check_cmd},
		{NULL, NULL},
	};

	lua = luaL_newstate();
	luaL_openlibs(lua);
	luaL_register(lua, "redis", functions);
	lua_pushnumber(lua, 0x0007000f);
	lua_setfield(lua, -2, "REDIS_VERSION_NUM");
	lua_pop(lua, 1);
	/* what would make one script's run depend on another's, or on the host */
	for (const char *const *name =
		     (const char *const[]){"io", "os", "debug", "package",
					   "require", "dofile", "loadfile",
					   "print", NULL};
	     *name != NULL; name++) {
		lua_pushnil(lua);
		lua_setglobal(lua, *name);
	}
	lua_newtable(lua);
	lua_pushcfunction(lua, refuse_global);
	lua_setfield(lua, -2, "__index");
	lua_pushcfunction(lua, refuse_new_global);
	lua_setfield(lua, -2, "__newindex");
	lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

/* --- EVAL ------------------------------------------------------------------ */

static size_t find_script(struct word text)
{
	for (size_t i = 0; i < script_count; i++)
		if (scripts[i].text.length == text.length &&
		    memcmp(scripts[i].text.data, text.data, text.length) == 0)
			return i;
	return script_count;
}

static size_t find_sha1(struct word name)
{
	size_t i = 0;

	while (i < script_count && !word_is(name, scripts[i].sha1))
		i++;
	return i;
}

/* Its number; SCRIPTS_MOST if it cannot be compiled, which was answered. */
static size_t compile(struct word text, struct buffer *answer)
{
	char *copy;

	if (script_count == SCRIPTS_MOST) {
		fprintf(stderr, "simulate: too many scripts\n");
		abort();
	}
	if (lua == NULL)
		open_lua();
	if (luaL_loadbuffer(lua, text.data, text.length, "@user_script") != 0) {
		buffer_print(answer, "-ERR Error compiling script: %s\r\n",
			     lua_tostring(lua, -1));
		lua_pop(lua, 1);
		return SCRIPTS_MOST;
	}
	copy = xcalloc(1, text.length + 1);
	memcpy(copy, text.data, text.length);
	scripts[script_count].text = (struct word){copy, text.length};
	scripts[script_count].function = luaL_ref(lua, LUA_REGISTRYINDEX);
	store_sha1(scripts[script_count].sha1, text);
	return script_count++;
}

static void set_words(const char *name, const struct word *words, size_t count)
{
	lua_createtable(lua, (int)count, 0);
	for (size_t i = 0; i < count; i++) {
		lua_pushlstring(lua, words[i].data, words[i].length);
		lua_rawseti(lua, -2, (int)i + 1);
	}
	lua_pushstring(lua, name);
	lua_insert(lua, -2);
	lua_rawset(lua, LUA_GLOBALSINDEX);
}

static void answer_failure(struct buffer *answer, const char *sha1)
{
	const char *text;

	if (lua_istable(lua, -1))
		lua_getfield(lua, -1, "err");
	else
		lua_pushvalue(lua, -1);
	text = lua_tostring(lua, -1);
	buffer_print(answer, "-%s%s script: %s, on @user_script:1.\r\n",
		     lua_istable(lua, -2) ? "" : "ERR ",
		     text != NULL ? text : "?", sha1);
	lua_pop(lua, 2);
}

static void run(const struct script *script, struct buffer *answer)
{
	lua_rawgeti(lua, LUA_REGISTRYINDEX, script->function);
	if (lua_pcall(lua, 0, 1, 0) != 0)
		answer_failure(answer, script->sha1);
	else
		pop_answer(lua, answer);
}

void store_eval(struct store *of, const struct word *words, size_t count,
		struct buffer *answer)
{
	bool brief = word_is(words[0], "evalsha"), *known = store_scripts(of);
	size_t n, keys;

	if (count < 3) {
		answer_error(answer, "ERR wrong number of arguments for "
				     "'eval' command");
		return;
	}
	n = brief ? find_sha1(words[1]) : find_script(words[1]);
	if (brief && (n == script_count || !known[n])) {
		answer_error(answer, "NOSCRIPT No matching script. Please use "
				     "EVAL.");
		return;
	}
	if (n == script_count)
		n = compile(words[1], answer);
	if (n == SCRIPTS_MOST)
		return;
	known[n] = true;
	keys = strtoul(words[2].data, NULL, 10);
	if (keys > count - 3) {
		answer_error(answer, "ERR Number of keys can't be greater than "
				     "number of args");
		return;
	}
	set_words("KEYS", words + 3, keys);
	set_words("ARGV", words + 3 + keys, count - 3 - keys);
	store = of;
	run(&scripts[n], answer);
	store = NULL;
}

/* --- from one run to those after it ---------------------------------------- */

void scripts_hand_on(int fd)
{
	for (size_t i = inherited; i < script_count; i++) {
		const struct word *text = &scripts[i].text;

		if (write(fd, &text->length, sizeof(text->length)) < 0 ||
		    write(fd, text->data, text->length) < 0)
			return;
	}
}

static bool read_whole(int fd, void *data, size_t size)
{
	ssize_t got = 1;

	for (char *at = data; size > 0 && got > 0; at += got, size -= got)
		got = read(fd, at, size);
	return got > 0;
}

void scripts_inherit(int fd)
{
	struct buffer answer = {0};
	struct word script;

	while (script_count < SCRIPTS_MOST / 2 &&
	       read_whole(fd, &script.length, sizeof(script.length))) {
		char *text = xcalloc(1, script.length);

		script.data = text;
		if (read_whole(fd, text, script.length) &&
		    find_script(script) == script_count)
			compile(script, &answer);
		free(text);
	}
	inherited = script_count;
	buffer_release(&answer);
}
