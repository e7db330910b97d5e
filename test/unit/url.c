/* Server URLs of every right and wrong shape; no secret in what is shown. */
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define SECRET "hunter2" /* stands in every URL below that has a password */

static void test_good(void)
{
	static const struct {
		const char *text;
		enum url_kind kind;
		const char *user, *password, *host;
		unsigned port;
		const char *path;
		unsigned db;
		const char *name;
	} good[] = {
		{"redis://h", URL_TCP, NULL, NULL, "h", 6379, NULL, 0,
		 "redis://h:6379"},
		{"redis://h/", URL_TCP, NULL, NULL, "h", 6379, NULL, 0,
		 "redis://h:6379"},
		{"redis://10.0.0.1:1", URL_TCP, NULL, NULL, "10.0.0.1", 1, NULL,
		 0, "redis://10.0.0.1:1"},
		{"redis://h:65535/15", URL_TCP, NULL, NULL, "h", 65535, NULL,
		 15, "redis://h:65535/15"},
		{"redis://a-b.c_d.example.:7/0", URL_TCP, NULL, NULL,
		 "a-b.c_d.example.", 7, NULL, 0, "redis://a-b.c_d.example.:7"},
		{"redis://:hunter2@h", URL_TCP, NULL, "hunter2", "h", 6379,
		 NULL, 0, "redis://h:6379"},
		{"redis://bob:hunter2@h:7/2", URL_TCP, "bob", "hunter2", "h", 7,
		 NULL, 2, "redis://h:7/2"},
		{"redis://b%40b:p%40s%3As%2f%25@[::1]:6379/15", URL_TCP, "b@b",
		 "p@s:s/%", "::1", 6379, NULL, 15, "redis://[::1]:6379/15"},
		{"redis://[fe80::1%eth0]", URL_TCP, NULL, NULL, "fe80::1%eth0",
		 6379, NULL, 0, "redis://[fe80::1%eth0]:6379"},
		{"redis://[fe80::1%25eth0.7]:7/2", URL_TCP, NULL, NULL,
		 "fe80::1%eth0.7", 7, NULL, 2, "redis://[fe80::1%eth0.7]:7/2"},
		{"redis://[fe80::1%25]", URL_TCP, NULL, NULL, "fe80::1%25",
		 6379, NULL, 0, "redis://[fe80::1%25]:6379"},
		{"redis://bob:a:b/c@d@h", URL_TCP, "bob", "a:b/c@d", "h", 6379,
		 NULL, 0, "redis://h:6379"},
		{"rediss://h", URL_TCP, NULL, NULL, "h", 6379, NULL, 0,
		 "rediss://h:6379"},
		{"rediss://bob:hunter2@[::1]:7/2", URL_TCP, "bob", "hunter2",
		 "::1", 7, NULL, 2, "rediss://[::1]:7/2"},
		{"unix:///run/redis.sock", URL_UNIX, NULL, NULL, NULL, 0,
		 "/run/redis.sock", 0, "unix:///run/redis.sock"},
		{"unix:///run/a@b.sock", URL_UNIX, NULL, NULL, NULL, 0,
		 "/run/a@b.sock", 0, "unix:///run/a@b.sock"},
		{"unix:///s?db=9", URL_UNIX, NULL, NULL, NULL, 0, "/s", 9,
		 "unix:///s?db=9"},
		{"unix://bob:hunter2@/s?db=0", URL_UNIX, "bob", "hunter2", NULL,
		 0, "/s", 0, "unix:///s"},
		{"local:", URL_LOCAL, NULL, NULL, NULL, 0, NULL, 0, "local:"},
		{"redis+sentinel://h/m", URL_SENTINEL, NULL, NULL, NULL, 0,
		 NULL, 0, "redis+sentinel://h:26379/m"},
		{"redis+sentinel://bob:hunter2@h:1,[::1],10.0.0.1:3/a-b.c_1/9",
		 URL_SENTINEL, "bob", "hunter2", NULL, 0, NULL, 9,
		 "redis+sentinel://h:1,[::1]:26379,10.0.0.1:3/a-b.c_1/9"},
		{"redis+sentinel://h/m/", URL_SENTINEL, NULL, NULL, NULL, 0,
		 NULL, 0, "redis+sentinel://h:26379/m"},
		{"redis+sentinel://h/m?db=2", URL_SENTINEL, NULL, NULL, NULL, 0,
		 NULL, 2, "redis+sentinel://h:26379/m/2"},
		{"redis+sentinel://h/m/?db=2", URL_SENTINEL, NULL, NULL, NULL,
		 0, NULL, 2, "redis+sentinel://h:26379/m/2"},
		{"rediss+sentinel://:hunter2@h:1,g/m?db=0&sentinel=:hunter2",
		 URL_SENTINEL, NULL, "hunter2", NULL, 0, NULL, 0,
		 "rediss+sentinel://h:1,g:26379/m"},
		{"rediss+cluster://bob:hunter2@a,b:7/", URL_CLUSTER, "bob",
		 "hunter2", NULL, 0, NULL, 0, "rediss+cluster://a:6379,b:7"},
		{"redis+cluster://h", URL_CLUSTER, NULL, NULL, NULL, 0, NULL, 0,
		 "redis+cluster://h:6379"},
		{"redis+cluster://:hunter2@[::1]:7,h/", URL_CLUSTER, NULL,
		 "hunter2", NULL, 0, NULL, 0, "redis+cluster://[::1]:7,h:6379"},
		{"redis+cluster://a,b,c,d,e,f,g,h", URL_CLUSTER, NULL, NULL,
		 NULL, 0, NULL, 0,
		 "redis+cluster://a:6379,b:6379,c:6379,d:6379,e:6379,f:6379,"
		 "g:6379,h:6379"},
	};

	for (size_t i = 0; i < COUNT(good); i++) {
		struct error error = {0};
		struct url url;

		CHECK(url_parse(&url, good[i].text, &error) == 0, "%s: %s",
		      good[i].text, error.text);
		CHECK(url.kind == good[i].kind && url.db == good[i].db &&
			      (url.kind != URL_TCP ||
			       url.at.port == good[i].port),
		      "%s: kind %d db %u port %u", good[i].text, url.kind,
		      url.db, url.at.port);
		CHECK(url.tls == (strncmp(url.name, "rediss", 6) == 0),
		      "%s: TLS %d", good[i].text, url.tls);
		CHECK(same(url.user, good[i].user), "%s: user %s", good[i].text,
		      shown(url.user));
		CHECK(same(url.password, good[i].password), "%s: password %s",
		      good[i].text, shown(url.password));
		CHECK(same(url.at.host, good[i].host), "%s: host %s",
		      good[i].text, shown(url.at.host));
		CHECK(same(url.at.path, good[i].path), "%s: path %s",
		      good[i].text, shown(url.at.path));
		CHECK(same(url.name, good[i].name), "%s: name %s", good[i].text,
		      shown(url.name));
		url_release(&url);
		CHECK(url.password == NULL && url.name == NULL, "%s",
		      good[i].text);
	}
}

/* The login of Sentinels, and who gets which one. */
static void test_seed_login(void)
{
	static const struct {
		const char *text, *user, *password, *seed_user, *seed_password;
	} list[] = {
		{"redis+sentinel://h/m", NULL, NULL, NULL, NULL},
		{"redis+sentinel://bob:hunter2@h/m", "bob", "hunter2", "bob",
		 "hunter2"},
		{"redis+sentinel://bob:x@h/m?sentinel=:hunter2", "bob", "x",
		 NULL, "hunter2"},
		{"redis+sentinel://h/m?sentinel=ann:hun%26t:er%402", NULL, NULL,
		 "ann", "hun&t:er@2"},
		{"rediss+sentinel://:x@h/m?sentinel=ann:hunter2&db=3", NULL,
		 "x", "ann", "hunter2"},
	};

	for (size_t i = 0; i < COUNT(list); i++) {
		struct error error = {0};
		struct url url, copy, seed;

		CHECK(url_parse(&url, list[i].text, &error) == 0, "%s: %s",
		      list[i].text, error.text);
		copy = url_copy(&url);
		seed = url_seed(&copy, 0);
		CHECK(same(copy.user, list[i].user) &&
			      same(copy.password, list[i].password),
		      "%s: %s %s", list[i].text, shown(copy.user),
		      shown(copy.password));
		CHECK(same(seed.user, list[i].seed_user) &&
			      same(seed.password, list[i].seed_password),
		      "%s: %s %s", list[i].text, shown(seed.user),
		      shown(seed.password));
		CHECK(seed.tls == url.tls, "%s", list[i].text);
		url_release(&seed);
		url_release(&copy);
		url_release(&url);
	}
}

/* What is one server by its text. */
static void test_same(void)
{
	static const struct {
		const char *one, *other;
		bool same;
	} pairs[] = {
		{"redis+sentinel://a,b/m", "redis+sentinel://c,B./m/2", true},
		{"redis+sentinel://a,b/m", "rediss+sentinel://b/m", true},
		{"redis+sentinel://a,b/m", "redis+sentinel://a,b/n", false},
		{"redis+sentinel://a/m", "redis+sentinel://a:1/m", false},
		{"redis+cluster://a,b", "rediss+cluster://b,c", true},
		{"redis+cluster://a,b", "redis+cluster://c,d", false},
		{"redis+cluster://a", "redis://a", false},
		{"redis://a", "rediss://A.", true},
	};

	for (size_t i = 0; i < COUNT(pairs); i++) {
		struct error error = {0};
		struct url one, other;

		CHECK(url_parse(&one, pairs[i].one, &error) == 0 &&
			      url_parse(&other, pairs[i].other, &error) == 0,
		      "%s", error.text);
		CHECK(url_is_same(&one, &other) == pairs[i].same, "%s and %s",
		      pairs[i].one, pairs[i].other);
		url_release(&one);
		url_release(&other);
	}
}

/* A list is cut where a URL begins. */
static void test_separate(void)
{
	static const struct {
		const char *list, *first, *rest;
	} cuts[] = {
		{"redis://a,redis://b", "redis://a", "redis://b"},
		{"redis://a,b", "redis://a", "b"},
		{"redis+cluster://a,b:1", "redis+cluster://a,b:1", NULL},
		{"rediss+cluster://a,b,redis://c,d", "rediss+cluster://a,b",
		 "redis://c,d"},
		{"rediss+sentinel://a,b/m?db=1,rediss+sentinel://c/m",
		 "rediss+sentinel://a,b/m?db=1", "rediss+sentinel://c/m"},
		{"redis+cluster://a,b,redis://c,d", "redis+cluster://a,b",
		 "redis://c,d"},
		{"redis+sentinel://a,b/m,local:,x", "redis+sentinel://a,b/m",
		 "local:,x"},
		{"redis+cluster://a,local:7", "redis+cluster://a,local:7",
		 NULL},
		{"redis+cluster://a,local:", "redis+cluster://a", "local:"},
		{"redis+cluster://a,", "redis+cluster://a,", NULL},
		{"", "", NULL},
	};

	for (size_t i = 0; i < COUNT(cuts); i++) {
		char text[100], *rest = text, *first;

		strcpy(text, cuts[i].list);
		first = url_separate(&rest);
		CHECK(same(first, cuts[i].first), "%s: %s", cuts[i].list,
		      first);
		CHECK(same(rest, cuts[i].rest), "%s: %s", cuts[i].list,
		      shown(rest));
	}
}

static void check_bad(const char *text)
{
	static const struct url nothing;
	struct error error = {0};
	struct url url;

	CHECK(url_parse(&url, text, &error) == -1, "'%.100s' was accepted",
	      text);
	CHECK(error.code == EXIT_USAGE, "'%.100s': code %d", text, error.code);
	CHECK(error.text[0] != '\0', "'%.100s': no word why", text);
	CHECK(strstr(error.text, SECRET) == NULL, "a secret is shown: %s",
	      error.text);
	CHECK(memcmp(&url, &nothing, sizeof(url)) == 0, "'%.100s': not zeroed",
	      text);
}

static void test_bad(void)
{
	static const char *const bad[] = {
		"",
		":",
		"/",
		"h",
		"h:6379",
		"127.0.0.1:6379",
		"//h",
		"redis:",
		"redis:/",
		"redis:/h",
		"redis://",
		"redis:///",
		"redis:///3",
		"redis://:6379",
		"redis://:6379/1",
		"REDIS://h",
		"Redis://h",
		" redis://h",
		"redis://h ",
		"redis://h\n",
		"redis://h\t",
		"redis://h h",
		"redis://h\x7f",
		"http://h",
		"rediss:/h",
		"rediss://",
		"redisss://h",
		"redis+sentinel://",
		"redis+sentinel://h",
		"redis+sentinel://h/",
		"redis+sentinel://h//1",
		"redis+sentinel:///m",
		"redis+sentinel://h,/m",
		"redis+sentinel://,h/m",
		"redis+sentinel://h:0/m",
		"redis+sentinel://h/m/x",
		"redis+sentinel://h/m/1/2",
		"redis+sentinel://h/m:x",
		"redis+sentinel://h/m,h2",
		"redis+sentinel://h,h/m",
		"redis+sentinel://h,h:26379/m",
		"redis+sentinel://bob:hunter2@/m",
		"rediss+sentinel://h",
		"redis+sentinel://h?db=1",
		"redis+sentinel://h/m?",
		"redis+sentinel://h/m?db=",
		"redis+sentinel://h/m?db=-1",
		"redis+sentinel://h/m?db=65536",
		"redis+sentinel://h/m?db=1&",
		"redis+sentinel://h/m?db=1&db=1",
		"redis+sentinel://h/m/1?db=1",
		"redis+sentinel://h/m?x=1",
		"redis+sentinel://h/m?sentinel",
		"redis+sentinel://h/m?sentinel=",
		"redis+sentinel://h/m?sentinel=:",
		"redis+sentinel://h/m?sentinel=bob:",
		"redis+sentinel://h/m?sentinel=:a&sentinel=:b",
		"redis+sentinel://h/m?sentinel=:hunter2@x/y",
		"redis+sentinel://h/m?sentinel=:hunter2&x",
		"redis+sentinel://h/m?sentinel=:hunter2%",
		"redis+sentinel://h/m?sentinel=a/b:hunter2",
		"redis+sentinel://h/m?sentinel_password=hunter2",
		"redis+cluster://h?sentinel=:hunter2",
		"redis+cluster://h?db=0",
		"rediss+cluster://",
		"rediss+cluster://h/1",
		"rediss+unix://h",
		"redis://h?sentinel=:hunter2",
		"redis+cluster://",
		"redis+cluster:///",
		"redis+cluster://h/0",
		"redis+cluster://h,",
		"redis+cluster://h,h:6379",
		"redis+cluster://h:x,h",
		"redis+cluster://a,b,c,d,e,f,g,h,i",
		"redis+cluster://:hunter2@h:0",
		"redis+clusters://h",
		"tcp://h:6379",
		"foo://h",
		"://h",
		"redis://h:",
		"redis://h:0",
		"redis://h:65536",
		"redis://h:6379x",
		"redis://h:x",
		"redis://h:-1",
		"redis://h:+1",
		"redis://h:0x10",
		"redis://h:1.5",
		"redis://h:99999999999999999999999",
		"redis://h: 1",
		"redis://h:1:2",
		"redis://::1",
		"redis://::1:6379",
		"redis://h/-1",
		"redis://h/16x",
		"redis://h/x",
		"redis://h/+1",
		"redis://h/65536",
		"redis://h/1/2",
		"redis://h/99999999999999999999",
		"redis://h/0x1",
		"redis://[::1",
		"redis://::1]",
		"redis://[::1:6379",
		"redis://[]",
		"redis://[]:6379",
		"redis://[h]",
		"redis://[::1]6379",
		"redis://[::1]]",
		"redis://[[::1]]",
		"redis://[::1]:",
		"redis://[::1]:0",
		"redis://bob:hunter2@",
		"redis://bob:hunter2@/1",
		"redis://bob:hunter2@:7",
		"redis://bob:hunter2@h:0",
		"redis://bob:hunter2@h:6379/hunter2x@:99999",
		"redis://@h",
		"redis://:@h",
		"redis://hunter2%@h",
		"redis://:hunter2%2@h",
		"redis://:hunter2%zz@h",
		"redis://:hunter2%00x@h",
		"redis://%:hunter2@h",
		"redis://bob:hunter2@h h",
		"redis://bob:hun ter2hunter2@h",
		"bob:hunter2@h",
		"redis:bob:hunter2@h",
		"redis:/:hunter2@h",
		"foo://bob:hunter2@h",
		"rediss://bob:hunter2@h:0",
		"redisss://bob:hunter2@h",
		"redis://h\"",
		"redis://h;x",
		"redis://h$x",
		"redis://h?db=1",
		"unix:",
		"unix:/s",
		"unix://",
		"unix://s",
		"unix://?db=1",
		"unix:///s?",
		"unix:///s?db=",
		"unix:///s?db=-1",
		"unix:///s?db=x",
		"unix:///s?db=16x",
		"unix:///s?db=65536",
		"unix:///s?x=1",
		"unix:///s?db=1?db=2",
		"unix:///s?db=1&x=2",
		"unix://bob:hunter2@s",
		"unix://bob:hunter2@",
		"local",
		"local:/",
		"local://",
		"local:x",
		"LOCAL:",
	};

	for (size_t i = 0; i < COUNT(bad); i++)
		check_bad(bad[i]);
}

/* Whatever shape it has: a password is in no error, and in no name. */
static void test_secrets(void)
{
	static const char *const texts[] = {
		"hunter2",
		":hunter2",
		"@hunter2@",
		"bob:hunter2",
		"bob:hunter2@h",
		"h:6379:hunter2",
		"h:6379?password=hunter2",
		"hunter2@h:6379",
		"//:hunter2@h",
		"redis:hunter2",
		"redis:hunter2@h",
		"redis:/hunter2@h",
		"redis:/:hunter2@h",
		"redis:bob:hunter2@h",
		"redis://:hunter2",
		"redis://:hunter2@",
		"redis://:hunter2@h",
		"redis://hunter2@h",
		"redis://bob:hunter2",
		"redis://bob:hunter2/0",
		"redis://bob:hunter2:6379",
		"redis://bob:hunter2@",
		"redis://bob:hunter2@:7",
		"redis://bob:hunter2@/1",
		"redis://bob:hunter2@h:0",
		"redis://bob:hunter2@h:x",
		"redis://bob:hunter2@h:99999",
		"redis://bob:hunter2@h/x",
		"redis://bob:hunter2@h/1/2",
		"redis://bob:hunter2@[::1",
		"redis://bob:hunter2@[::1]x",
		"redis://bob:hunter2@@h:0",
		"redis://bob:a@hunter2@h:0",
		"redis://bob:a/hunter2@h:0",
		"redis://bob:a?hunter2@h:0",
		"redis://bob:a#hunter2@h:0",
		"redis://bob:hunter2 @h",
		"redis://bob: hunter2@h",
		"redis://bob:\thunter2@h",
		"redis://bob:hunter2\n@h",
		"redis://bob:hunter2%@h",
		"redis://bob:hunter2%zz@h",
		"redis://bob:hunter2%00@h",
		"redis://%zz:hunter2@h",
		"redis://h:hunter2",
		"redis://h:6379:hunter2",
		"redis://h:6379hunter2",
		"redis://h/hunter2",
		"redis://h/0/hunter2",
		"redis://h/0 hunter2",
		"redis://h hunter2",
		"redis://h;hunter2",
		"redis://h#hunter2",
		"redis://h?hunter2",
		"redis://h?password=hunter2",
		"redis://h/?password=hunter2",
		"redis://h/0?password=hunter2",
		"redis://h:6379/0?password=hunter2",
		"redis://h/0?db=1&password=hunter2",
		"redis://h/0?username=bob&password=hunter2",
		"redis://h/0?password=a@hunter2",
		"redis://h:6379/0?password=a@hunter2",
		"redis://h/0?password=hunter2@b",
		"redis://h/0@hunter2",
		"redis://[::1]:hunter2",
		"redis://[::1]hunter2",
		"redis://[:hunter2",
		"redis:///:hunter2@h",
		"redis:///hunter2",
		"REDIS://bob:hunter2@h",
		"rediss:bob:hunter2@h",
		"rediss://bob:hunter2",
		"rediss://bob:hunter2@h:0",
		"rediss://h?password=hunter2",
		"rediss://h:6379/0?password=hunter2",
		"http://bob:hunter2@h",
		"foo://bob:hunter2@h/hunter2",
		"unix:hunter2",
		"unix:/s?password=hunter2",
		"unix://hunter2/s",
		"unix://:hunter2/s",
		"unix://bob:hunter2/s",
		"unix://:hunter2@s",
		"unix://:hunter2@",
		"unix://:hunter2@/s",
		"unix://:hunter2@/s?db=x",
		"unix://:hunter2%zz@/s",
		"unix:///:hunter2@/s",
		"unix:///bob:hunter2@/s",
		"unix:///s:hunter2@/s?db=1",
		"unix:///s?hunter2",
		"unix:///s?password=hunter2",
		"unix:///s?db=0&password=hunter2",
		"unix:///s?password=hunter2&db=0",
		"unix:///s?username=bob&password=hunter2",
		"unix:///s hunter2",
		"local:hunter2",
		"local://:hunter2@h",
		"local://hunter2",
		"local:?password=hunter2",
		"redis+sentinel://bob:hunter2@h",
		"redis+sentinel://bob:hunter2@/m",
		"redis+sentinel://bob:hunter2@h,/m",
		"redis+sentinel://bob:hunter2@h,h/m",
		"redis+sentinel://bob:hunter2@h:0/m",
		"redis+sentinel://bob:hunter2@h/m:x",
		"redis+sentinel://bob:hunter2@h/m/x",
		"redis+sentinel://bob:hunter2@h/m",
		"redis+sentinel://bob:hunter2,h/m",
		"redis+sentinel://h,bob:hunter2/m",
		"redis+sentinel://h,bob:hunter2@/m",
		"redis+sentinel://h:hunter2/m",
		"redis+sentinel://h/m?password=hunter2",
		"redis+sentinel://h/m/0?password=hunter2",
		"redis+sentinel://h/m/hunter2",
		"redis+cluster://:hunter2",
		"redis+cluster://bob:hunter2@h",
		"redis+cluster://bob:hunter2@h:0",
		"redis+cluster://bob:hunter2@h,h",
		"redis+cluster://bob:hunter2@h/1",
		"redis+cluster://h,bob:hunter2",
		"redis+cluster://h,bob:hunter2@",
		"redis+cluster://h/hunter2",
		"redis+cluster://h?password=hunter2",
		"rediss+cluster://bob:hunter2@h:x",
		"rediss+sentinel://bob:hunter2@h:x/m",
		"rediss+sentinel://h/m?sentinel=bob:hunter2",
		"rediss+sentinel://h/m?sentinel=bob:hunter2@",
		"rediss+sentinel://h/m?sentinel=bob:hunter2@x",
		"rediss+sentinel://h/m?sentinel=bob:x@hunter2/m",
		"rediss+sentinel://ann:hunter2@h/m?sentinel=b:c@hunter2/n",
		"rediss+sentinel://h/m?sentinel=bob:a&hunter2",
		"rediss+sentinel://h/m?sentinel=bob:a?hunter2",
		"rediss+sentinel://h/m?sentinel=bob:a,hunter2",
		"rediss+sentinel://h?sentinel=:hunter2",
		"rediss+sentinel://h/m?sentinel:hunter2",
		"rediss+sentinel://h/m/x?sentinel=:hunter2",
		"redis+cluster://h?sentinel=:hunter2",
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		char shown[URL_QUOTED], *rest, *list, *text;
		struct error error = {0};
		struct url url;

		if (url_parse(&url, texts[i], &error) == 0)
			CHECK(strstr(url.name, SECRET) == NULL, "%s: %s",
			      texts[i], url.name);
		url_release(&url);
		CHECK(strstr(error.text, SECRET) == NULL, "%s: %s", texts[i],
		      error.text);
		url_quote(texts[i], shown);
		CHECK(strstr(shown, SECRET) == NULL, "%s: %s", texts[i], shown);
		/* also cut at commas, as a list is */
		list = rest = strdup(texts[i]);
		while ((text = url_separate(&rest)) != NULL)
			CHECK(strstr(url_quote(text, shown), SECRET) == NULL,
			      "%s: %s", texts[i], shown);
		free(list);
	}
}

/* In a command line: the rest stays. */
static void test_hide_logins(void)
{
	static const struct {
		const char *text, *wanted;
	} list[] = {
		{"", ""},
		{"psql -h h", "psql -h h"},
		{"psql postgres://bob:hunter2@db/x -c 'a@b:c'",
		 "psql postgres://***@db/x -c 'a@b:c'"},
		{"a://:hunter2@b c://d:hunter2@e", "a://***@b c://***@e"},
		{"-S redis://:hunter2@a,redis://:hunter2@b k",
		 "-S redis://***@b k"},
		{"x=\"a://b:hunter2@c\";y", "x=\"a://***@c\";y"},
		{"unix://:hunter2@/s", "unix://***@/s"},
		{"a://b:hunter2@hunter2@c", "a://***@c"},
		{"ssh://git@host:1 http://h:1/?a@b",
		 "ssh://***@host:1 http://***@b"},
		{"https://hunter2@h/a/b.git", "https://***@h/a/b.git"},
		{"redis://hunter2@h#x@y", "redis://***@h#x@y"},
		{"https://h/@scope/x 'http://h?to=a@b'",
		 "https://h/@scope/x 'http://h?to=a@b'"},
		{"amqp://u:it's-hunter2@db/v", "amqp://***@db/v"},
		{"'a://u:it'\\''s-\"hunter2@db/v' c@d", "'a://***@db/v' c@d"},
		{"a://u:p/hunter2?#@h/x", "a://***@h/x"},
		{"sh -c redis-cli -u 'redis://u:hunter2@h' 'x@y' a@b",
		 "sh -c redis-cli -u 'redis://***@h' 'x@y' a@b"},
		{"a://u:hunter2@h\vx@y a://u:hunter2@h\rx@y",
		 "a://***@h\vx@y a://***@h\rx@y"},
		{"-S redis+sentinel://a/m?sentinel=:it's-hunter2 k",
		 "-S redis+sentinel://a/m?sentinel=*** k"},
		{"-S redis+sentinel://a,b/m?db=1&sentinel=bob:hunter2,x k",
		 "-S redis+sentinel://a,b/m?db=1&sentinel=*** k"},
		{"'redis+sentinel://c:d@a/m?sentinel=:hunter2' k",
		 "'redis+sentinel://***@a/m?sentinel=***' k"},
		{"a://b?sentinel=x@hunter2@c d", "a://b?sentinel=*** d"},
		{"http://b/?sentinels=x", "http://b/?sentinels=x"},
		{"a://:@", "a://*@"},
		{"a://", "a://"},
		{"://://:x@", "://***@"},
	};

	for (size_t i = 0; i < COUNT(list); i++) {
		char text[100];

		strcpy(text, list[i].text);
		url_hide_logins(text);
		CHECK(same(text, list[i].wanted), "%s: %s", list[i].text, text);
	}
}

static void test_is_meant(void)
{
	static const char *const yes[] = {"redis://", "rediss://:p@h:x",
					  "redis+x://h", "unix:///s",
					  "local://"};
	static const char *const no[] = {"",        "redis",       "redis:/h",
					 "redis+x", "./redis://h", "http://h",
					 "+://h"};

	for (size_t i = 0; i < COUNT(yes); i++)
		CHECK(url_is_meant(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < COUNT(no); i++)
		CHECK(!url_is_meant(no[i]), "%s", no[i]);
}

static void check_quote(const char *text, const char *wanted)
{
	char shown[URL_QUOTED];

	url_quote(text, shown);
	CHECK(same(shown, wanted), "%s: %s", text, shown);
}

/* What is quoted says which server is meant. */
static void test_quote(void)
{
	char text[700] = "redis://", cut[700];

	check_quote("redis://", "redis://");
	check_quote("redis://h", "redis://h");
	check_quote("redis://a-b.c_d:x/1", "redis://a-b.c_d...");
	check_quote("redis://bob:p@h:0", "redis://h...");
	check_quote("redis://bob:p@[::1]:0", "redis://[::1]...");
	check_quote("redis://[fe80::1%eth0]", "redis://[fe80::1%eth0]");
	check_quote("redis+sentinel://a,b/m/x", "redis+sentinel://a...");
	check_quote("unix:///run/a-b.sock?db=x", "unix:///run/a-b.sock...");
	check_quote("unix:///s", "unix:///s");
	check_quote("unix://s", "unix://...");
	check_quote("local:/", "local:...");
	check_quote("http://h", "http://h");
	check_quote("h:6379", "...");
	check_quote("", "");
	memset(text + 8, 'h', 253);
	check_quote(text, text);
	memset(text + 8, 'h', 600);
	check_quote(text, "redis://...");
	memset(text, 'x', 600);
	strcpy(text + 600, "://h");
	check_quote(text, "...");
	url_quote_any("acquire", cut);
	CHECK(same(cut, "acquire"), "%s", cut);
	url_quote_any("=redis://:hunter2@h", cut);
	CHECK(same(cut, "..."), "%s", cut);
}

/* A socket's path is never cut: 107 bytes fit, 108 are refused. */
static void test_path_length(void)
{
	char text[200] = "unix://";
	struct error error;
	struct url url;

	memset(text + 7, 'p', 108);
	text[7] = '/';
	text[7 + 107] = '\0';
	CHECK(url_parse(&url, text, &error) == 0 && strlen(url.at.path) == 107,
	      "107 bytes: %s", error.text);
	url_release(&url);
	text[7 + 107] = 'p';
	text[7 + 108] = '\0';
	check_bad(text);
}

static void test_host_length(void)
{
	char text[400] = "redis://";

	memset(text + 8, 'h', 254);
	text[8 + 254] = '\0';
	check_bad(text);
}

/* The quoted part of an endless URL is cut, and hides what it hid before. */
static void test_long_secret(void)
{
	char text[700] = "redis://bob:" SECRET;
	size_t used = strlen(text);

	memset(text + used, 'x', 400);
	strcpy(text + used + 400, "@h:0");
	check_bad(text);
}

/* What is no secret stays readable. */
static void test_hide_secret(void)
{
	static const struct {
		const char *text, *start, *end;
	} list[] = {
		{"redis://bob:hunter2@h:7", "redis://", "@h:7"},
		{"redis://:hunter2@h:7/1", "redis://", "@h:7/1"},
		{"redis://bob:hunter2@x@h", "redis://", "@h"},
		{"redis://h:7/1", "redis://h:7/1", "redis://h:7/1"},
		{"bob:hunter2@h", "", "@h"},
		{"redis+sentinel://h/m?sentinel=:hunter2",
		 "redis+sentinel://h/m?sentinel=", "***"},
		{"redis+sentinel://:hunter2@h/m?db=1&sentinel=:hunter2,redis://"
		 ":hunter2@h",
		 "redis+sentinel://", "@h/m?db=1&sentinel=***"},
		{"", "", ""},
	};

	for (size_t i = 0; i < COUNT(list); i++) {
		const char *start = list[i].start, *end = list[i].end;
		char text[100];

		strcpy(text, list[i].text);
		url_hide_secret(text);
		CHECK(strstr(text, SECRET) == NULL, "%s", text);
		CHECK(strncmp(text, start, strlen(start)) == 0, "%s", text);
		CHECK(strlen(text) >= strlen(end) &&
			      same(text + strlen(text) - strlen(end), end),
		      "%s", text);
	}
}

int main(void)
{
	test_good();
	test_separate();
	test_bad();
	test_secrets();
	test_hide_logins();
	test_seed_login();
	test_same();
	test_is_meant();
	test_quote();
	test_path_length();
	test_host_length();
	test_long_secret();
	test_hide_secret();
	return check_result();
}
