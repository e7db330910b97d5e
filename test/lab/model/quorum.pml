/*
 * A lock on three servers, of which a quorum must agree (redlock-protocol(7)).
 * See README for what is left out and why, ./check for how it is run.
 *
 * CLIENTS, TTL, DRIFT; RENEW, HEAL, RESTART, FENCE, REPEAT add what
 * they say; with BREAK an operator takes locks away, and there is no time; with
 * AT_ONCE that, and putting back, is one step on all servers; with WISHED an operator
 * asks holders to stop, with FROZEN ends leases that cannot be renewed; with ONCE no
 * client comes again, with LOST what nobody waits for never arrives.
 * With FORGET servers restart empty or are emptied while they run, one of three
 * within the longest lease, of LONG, which client 0 asks for; with ANY, restart
 * only, all and at any time, but none has a vote for QUARANTINE. With AGAIN it is
 * once, while client 0 holds; client 1 begins after that, and comes again. KEY is
 * known everywhere at first, but with NEW_KEY.
 * One rule is left out by RAISE_ANYWHERE, NO_RAISE, NO_QUARANTINE, NO_DRIFT,
 * FROM_REPLY, ONE_TOKEN, PLAIN_DEL, EXTEND_ANY, EXTEND_TAKES, HEAL_ALONE,
 * LATE_REPLY, KEPT_ALIVE, NO_LEARNING, NO_HEARING, HEAR_NEAR, NO_RECORD,
 * BLIND_TO_HOLDERS, READ_ON, FREES, BROKEN_KEPT; with OVERLAP the search goes on to two
 * holders at once. IN_ORDER keeps the servers and clients where they are, for a
 * trail that is easier to read.
 */
#define M 3
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef TTL
#define TTL 3
#endif
#ifndef DRIFT
#define DRIFT 1		/* how much sooner a server's clock ends a lease */
#endif
#ifndef NAMES
#define NAMES 2		/* tokens of a client: used again when forgotten */
#endif
#ifndef FENCES
#define FENCES 3	/* the search ends with this fence */
#endif
#define TOKENS (CLIENTS * NAMES)

#define QUORUM (M / 2 + 1)

#ifdef FORGET
#ifndef LONG
#define LONG (TTL + 1)	/* also how long uptimes and ages are told apart */
#endif
#ifndef QUARANTINE
#define QUARANTINE TTL
#endif
#ifndef APART
#define APART 0		/* how much older a record must be to show a loss */
#endif
#ifndef SURE
#define SURE LONG	/* the age of records beside which nobody need be heard */
#endif
#define TTL_OF(c) ((c) == 0 -> LONG : TTL)
#define TTL_OF_TOKEN(t) TTL_OF((t) / NAMES)
#else
#define TTL_OF(c) TTL
#define TTL_OF_TOKEN(t) TTL
#endif

#ifdef NO_DRIFT
#define VALID(c) TTL_OF(c)
#else
#define VALID(c) (TTL_OF(c) - DRIFT)
#endif

#define IDLE 0		/* what a client does */
#define ASK 1
#define LIFT 2		/* raising the fences */
#define HOLD 3
#define RENEW_ROUND 4
#define DONE 5		/* it comes once only */
byte phase[CLIENTS];
byte name[CLIENTS];	/* which of its tokens */
byte valid[CLIENTS];	/* of the lock that it holds */
byte round[CLIENTS];	/* what its present round will be worth */

#define NONE 0		/* the present round's request and its answer */
#define ASKED 1
#define YES 2
#define GONE 3		/* an extension's: nobody has it */
#define HELD 4		/* with FORGET, an acquire's: another has it */
byte reply[M * CLIENTS];

#define ACQUIRE 1	/* requests under way that nobody waits for */
#define EXTEND 2
#define RELEASE 4
#define PUT_BACK 8
#define RAISE 16
byte late[M * TOKENS];
/* those that do something for a token that owns nothing: none should */
#ifdef PLAIN_DEL
#define WITHOUT_OWNER RELEASE
#elif defined(RAISE_ANYWHERE)
#define WITHOUT_OWNER RAISE
#elif defined(ONE_TOKEN)
#define WITHOUT_OWNER RELEASE
#else
#define WITHOUT_OWNER 0
#endif
byte left[M * TOKENS];	/* each lease, by the server's clock; 0: none */

#ifdef WISHED
bool wish[M * TOKENS];	/* the holder is asked to stop */
bool doomed[CLIENTS];	/* a quorum had the wish when its renewal began */
#endif
#ifdef FROZEN
byte cold[M * TOKENS];	/* a lease that is nobody's any more */
#endif

#ifdef FORGET
byte up[M];		/* since its start, up to LONG */
byte record[M];		/* since it began, and 1, up to LONG + 1; 0: none */
byte since[M];		/* the same of its holder */
byte last[M];		/* who had it last, as the record knows: a token + 1 */
byte calm;		/* until the next one may forget */
byte told[M * CLIENTS];	/* record, as an answer has told it */
byte held[M * CLIENTS];	/* since, as a refusal has */
bool knew[M * CLIENTS];	/* whether it knows of the other client's lease */
byte learned[CLIENTS];	/* the longest ttl that a refusal has told */
#endif
#ifdef RESTART
byte young[M];		/* time until it has a vote */
#endif
#ifdef FENCE
byte fence[M];		/* stored; 0: none */
byte vote[M * CLIENTS];
byte agreed[TOKENS];	/* the fence of a lock */
byte top;		/* of all holders so far */
byte base;		/* the same, a ttl ago: what clocks are above */
byte age;
#ifdef BREAK
byte given;		/* a bit for each fence that a holder has had */
byte seen[CLIENTS];	/* top, when its present round began */
#endif
#endif

hidden byte each, result, token, most;

#define AT(s, t) ((s) * TOKENS + (t))
#define OF(s, c) ((s) * CLIENTS + (c))
#define TOKEN(c) ((c) * NAMES + name[c])
#define TOKEN_OF(c) ((c) * NAMES + now.name[c])
#define ALL(f, x) (f(0, x) && f(1, x) && f(2, x))
#define COUNT(f, x) (f(0, x) + f(1, x) + f(2, x))
#define HAS_LEFT(s, t) (left[AT(s, t)] > 0)
#ifdef FROZEN
#define IS_TAKEN(s, t) (left[AT(s, t)] > 0 || cold[AT(s, t)] > 0)
#define IS_FREE(s, t) (left[AT(s, t)] == 0 && cold[AT(s, t)] == 0)
#else
#define IS_TAKEN(s, t) HAS_LEFT(s, t)
#define IS_FREE(s, t) (left[AT(s, t)] == 0)
#endif
#define HAS_WISH(s, t) wish[AT(s, t)]
#define IS_QUIET(s, t) (late[AT(s, t)] == 0)

#ifdef FORGET	/* as src/lock/trust.c has it */
#define LARGER(a, b) ((a) > (b) -> (a) : (b))
#define LONGEST(c) LARGER(TTL_OF(c), learned[c])
#define IS_OLD(s, c) (told[OF(s, c)] > LONGEST(c))
#ifdef BLIND_TO_HOLDERS
#define KNOWS_HOLDER(k, s, c) false
#else
#define KNOWS_HOLDER(k, s, c) (held[OF(k, c)] >= told[OF(s, c)] && !knew[OF(s, c)])
#endif
#define KNOWS_MORE(k, s, c) ((k) != (s) && \
	(told[OF(k, c)] > told[OF(s, c)] + APART || KNOWS_HOLDER(k, s, c)))
#if defined(NO_RECORD) || defined(ANY)
#define HAS_RECORD(s, c) true
#else
#define HAS_RECORD(s, c) (IS_OLD(s, c) || !KNOWS_MORE(0, s, c) && \
	!KNOWS_MORE(1, s, c) && !KNOWS_MORE(2, s, c))
#endif
#define HAS_VOTE(s, c) (up[s] >= LARGER(QUARANTINE, learned[c]) && HAS_RECORD(s, c))
#elif defined(RESTART) && !defined(NO_QUARANTINE)
#define HAS_VOTE(s, c) (young[s] == 0)
#else
#define HAS_VOTE(s, c) true
#endif
#define VOTED(s, c) (reply[OF(s, c)] == YES && HAS_VOTE(s, c))

/* Whether the others need not be heard, or have been. */
#if !defined(FORGET) || defined(NO_HEARING) || defined(ANY)
#define IS_HEARD(c) true
#else
#ifdef HEAR_NEAR	/* a young record is no reason to wait for those that are far */
#define IS_FIRM(s, c) (VOTED(s, c) && up[s] >= LONG)
#else
#define IS_FIRM(s, c) (VOTED(s, c) && up[s] >= LONG && IS_OLD(s, c) && told[OF(s, c)] > SURE)
#endif
#define HAS_ANSWERED(s, c) (reply[OF(s, c)] != ASKED)
#define IS_HEARD(c) (COUNT(IS_FIRM, c) >= QUORUM || ALL(HAS_ANSWERED, c))
#endif
#define KEPT(s, c) (reply[OF(s, c)] == YES)
#define IS_NOT_GONE(s, c) (reply[OF(s, c)] != GONE)

#ifdef KEPT_ALIVE	/* the end of validity is seen between rounds only */
#define IS_ALIVE(c) (phase[c] == HOLD && valid[c] > 0 || phase[c] == RENEW_ROUND)
#else			/* the guard sees to it */
#define IS_ALIVE(c) (phase[c] >= HOLD && valid[c] > 0)
#endif

/* --- what must never be -------------------------------------------------- */

inline check_exclusion() {
#ifndef BREAK
	result = 0;
	for (each : 0 .. CLIENTS - 1) {
		if
		:: IS_ALIVE(each) -> result++
		:: else
		fi
	}
	assert(result <= 1);
#endif
	skip
}

/* Nothing takes a lock away from one who believes in it. */
inline check_ownership() {
#if !defined(RESTART) && !defined(FORGET) && !defined(BREAK) && !defined(OVERLAP)
	for (each : 0 .. CLIENTS - 1) {
		assert(!(phase[each] >= HOLD && valid[each] > 0) ||
		       COUNT(IS_TAKEN, TOKEN(each)) >= QUORUM)
	}
#endif
	skip
}

/*
 * A later holder has a larger fence. Where locks are broken one may learn late
 * that it holds one: no two have one fence, a holder's is larger than any that
 * was held when it asked, and who is kept has none above it.
 */
inline check_fence(c) {
#ifdef BREAK
	assert(phase[c] >= HOLD || !(given & (1 << agreed[TOKEN(c)])));
	assert(phase[c] >= HOLD || agreed[TOKEN(c)] > seen[c]);
	assert(agreed[TOKEN(c)] >= seen[c]);
	given = given | (1 << agreed[TOKEN(c)]);
	top = (agreed[TOKEN(c)] > top -> agreed[TOKEN(c)] : top);
	seen[c] = 0
#else
	if
	:: phase[c] < HOLD ->
		assert(agreed[TOKEN(c)] > top);
		top = agreed[TOKEN(c)];
		age = TTL
	:: else
	fi
#endif
}

/*
 * Servers are alike, and so are clients: of states that differ in their order
 * one is kept. And what can have no effect any more is forgotten: requests for
 * a token that its client has done with, where it is not, and cannot come to
 * be, on that server.
 */
c_code {
	static unsigned long mix(unsigned long h, unsigned long x)
	{
		return (h ^ x) * 0x9e3779b97f4a7c15 ^ (h >> 29);
	}

#ifdef WISHED
#define BROKEN_AT(s, k) (now.wish[AT(s, k)] << 16)
#elif defined(FROZEN)
#define BROKEN_AT(s, k) (now.cold[AT(s, k)] << 16)
#else
#define BROKEN_AT(s, k) 0
#endif

	static unsigned long row(int s)
	{
		unsigned long h = 17;
		int k;

		for (k = 0; k < TOKENS; k++)
			h = mix(h, now.left[AT(s, k)] * 32 + now.late[AT(s, k)] + BROKEN_AT(s, k));
		for (k = 0; k < CLIENTS; k++) {
			h = mix(h, now.reply[OF(s, k)]);
#ifdef FENCE
			h = mix(h, now.vote[OF(s, k)]);
#endif
		}
#ifdef FENCE
		h = mix(h, now.fence[s]);
#endif
#ifdef RESTART
		h = mix(h, now.young[s]);
#endif
#ifdef FORGET
		h = mix(h, now.up[s] | now.record[s] << 8 | now.since[s] << 16 | now.last[s] << 24);
		for (k = 0; k < CLIENTS; k++)
			h = mix(h, now.told[OF(s, k)] | now.held[OF(s, k)] << 8 | now.knew[OF(s, k)] << 16);
#endif
		return h;
	}

	static unsigned long column(int c)
	{
		unsigned long sum = 0, h;
		int s, k;

		for (s = 0; s < M; s++) {
			h = 19;
			for (k = c * NAMES; k < (c + 1) * NAMES; k++)
				h = mix(h, now.left[AT(s, k)] * 32 + now.late[AT(s, k)] + BROKEN_AT(s, k));
			h = mix(h, now.reply[OF(s, c)]);
#ifdef FENCE
			h = mix(h, now.vote[OF(s, c)]);
#endif
			sum += h;
		}
		h = mix(sum, now.phase[c]);
		h = mix(h, now.name[c]);
		h = mix(h, now.valid[c]);
		h = mix(h, now.round[c]);
#ifdef WISHED
		h = mix(h, now.doomed[c]);
#endif
#ifdef FENCE
		for (k = c * NAMES; k < (c + 1) * NAMES; k++)
			h = mix(h, now.agreed[k]);
#ifdef BREAK
		h = mix(h, now.seen[c]);
#endif
#endif
		return h;
	}

#define SWAP(array, a, b) \
	do { unsigned char x = array[a]; array[a] = array[b]; array[b] = x; } while (0)

#ifdef WISHED
#define SWAP_BROKEN(a, b) SWAP(now.wish, a, b)
#elif defined(FROZEN)
#define SWAP_BROKEN(a, b) SWAP(now.cold, a, b)
#else
#define SWAP_BROKEN(a, b)
#endif

	static void order_servers(unsigned long *rows, int a, int b)
	{
		unsigned long x = rows[a];
		int k;

		if (x <= rows[b])
			return;
		rows[a] = rows[b];
		rows[b] = x;
		for (k = 0; k < TOKENS; k++) {
			SWAP(now.left, AT(a, k), AT(b, k));
			SWAP(now.late, AT(a, k), AT(b, k));
			SWAP_BROKEN(AT(a, k), AT(b, k));
		}
		for (k = 0; k < CLIENTS; k++) {
			SWAP(now.reply, OF(a, k), OF(b, k));
#ifdef FENCE
			SWAP(now.vote, OF(a, k), OF(b, k));
#endif
		}
#ifdef FENCE
		SWAP(now.fence, a, b);
#endif
#ifdef RESTART
		SWAP(now.young, a, b);
#endif
#ifdef FORGET
		SWAP(now.up, a, b);
		SWAP(now.record, a, b);
		SWAP(now.since, a, b);
		SWAP(now.last, a, b);
		for (k = 0; k < CLIENTS; k++) {
			SWAP(now.told, OF(a, k), OF(b, k));
			SWAP(now.held, OF(a, k), OF(b, k));
			SWAP(now.knew, OF(a, k), OF(b, k));
		}
#endif
	}

	static void order_clients(int a, int b)
	{
		int s, k;

		if (column(a) <= column(b))
			return;
		for (s = 0; s < M; s++) {
			for (k = 0; k < NAMES; k++) {
				SWAP(now.left, AT(s, a * NAMES + k), AT(s, b * NAMES + k));
				SWAP(now.late, AT(s, a * NAMES + k), AT(s, b * NAMES + k));
				SWAP_BROKEN(AT(s, a * NAMES + k), AT(s, b * NAMES + k));
			}
			SWAP(now.reply, OF(s, a), OF(s, b));
#ifdef FENCE
			SWAP(now.vote, OF(s, a), OF(s, b));
#endif
		}
		SWAP(now.phase, a, b);
		SWAP(now.name, a, b);
		SWAP(now.valid, a, b);
		SWAP(now.round, a, b);
#ifdef WISHED
		SWAP(now.doomed, a, b);
#endif
#ifdef FENCE
		for (k = 0; k < NAMES; k++)
			SWAP(now.agreed, a * NAMES + k, b * NAMES + k);
#ifdef BREAK
		SWAP(now.seen, a, b);
#endif
#endif
	}

	static void forget(void)
	{
		int s, c, k;

#ifdef WISHED
		for (s = 0; s < M; s++)
			for (k = 0; k < TOKENS; k++)
				if (now.left[AT(s, k)] == 0)
					now.wish[AT(s, k)] = 0;
#endif

		for (c = 0; c < CLIENTS; c++)
			for (k = c * NAMES; k < (c + 1) * NAMES; k++)
				for (s = 0; s < M; s++)
					if ((now.phase[c] == IDLE || now.phase[c] == DONE || k != TOKEN_OF(c)) &&
					    now.left[AT(s, k)] == 0 &&
					    !(now.late[AT(s, k)] & (ACQUIRE | PUT_BACK)))
						now.late[AT(s, k)] &= WITHOUT_OWNER;
	}

#ifdef FORGET
	static void end_leases(void)
	{
		int s, k, any;

		for (s = 0; s < M; s++) {
			for (k = 0, any = 0; k < TOKENS; k++)
				any |= now.left[AT(s, k)];
			if (!any)
				now.since[s] = 0;
		}
	}
#endif

	static void canonical(void)
	{
		forget();
#ifdef FORGET
		end_leases();
#endif
#ifndef IN_ORDER
#ifndef FORGET		/* their ttls differ */
		order_clients(0, 1);
#endif
#if CLIENTS > 2
		order_clients(1, 2);
		order_clients(0, 1);
#endif
		unsigned long rows[M] = { row(0), row(1), row(2) };
		order_servers(rows, 0, 1);
		order_servers(rows, 1, 2);
		order_servers(rows, 0, 1);
#endif
	}
}

inline done() {
	each = 0; result = 0; token = 0; most = 0;
	c_code { canonical(); }
}

/* A late one of the owner's only keeps others out for longer. */
#ifdef REPEAT
#define LATE_EXTEND EXTEND
#else
#define LATE_EXTEND 0
#endif

/* --- granting ------------------------------------------------------------ */

inline count_holders(s) {
	result = 0;
	for (each : 0 .. TOKENS - 1) {
		if
		:: IS_TAKEN(s, each) -> result++
		:: else
		fi
	}
}

#ifdef FENCE
#define AGREED(t) agreed[t]
#else
#define AGREED(t) 1
#endif

#define CLOCK (base + 1)
inline next_fence(s) {
#ifdef COUNT_ON		/* the clock is for where no fence is stored */
	if
	:: fence[s] == 0 -> fence[s] = CLOCK
	:: else -> fence[s]++
	fi
#else
	fence[s] = (fence[s] + 1 > CLOCK -> fence[s] + 1 : CLOCK)
#endif
}

inline store_kept(s, kept) {
	fence[s] = (fence[s] > kept -> fence[s] : kept)
}

inline release_all(s) {
	for (each : 0 .. TOKENS - 1) {
		left[AT(s, each)] = 0
	}
}

/* A token that has it is told so again. result: it is granted. */
inline acquire(s, t, kept) {
#if defined(FORGET) && !defined(ANY)
	record[s] = (record[s] > 0 -> record[s] : 1);
#endif
	count_holders(s);
	result = (HAS_LEFT(s, t) || result == 0);
	if
	:: result ->
#ifdef FENCE
		if
		:: kept > 0 -> store_kept(s, kept)
		:: kept == 0 && IS_FREE(s, t) -> next_fence(s)
		:: else
		fi;
#endif
#if defined(FORGET) && !defined(ANY)
		since[s] = (HAS_LEFT(s, t) -> since[s] : 1);
		last[s] = t + 1;
#endif
		left[AT(s, t)] = TTL_OF_TOKEN(t)
	:: else
	fi
}

/* --- clients ------------------------------------------------------------- */

inline post(s, t, what) {
#ifdef LOST		/* whatever nobody waits for */
	late[AT(s, t)] = late[AT(s, t)] | ((what) & PUT_BACK)
#else
	late[AT(s, t)] = late[AT(s, t)] | (what)
#endif
}

/* An answer that has not come will not be waited for. */
inline leave_round(c, what) {
	for (each : 0 .. M - 1) {
		if
		:: reply[OF(each, c)] == ASKED -> post(each, TOKEN(c), what)
		:: else
		fi;
#ifdef LATE_REPLY
		if
		:: reply[OF(each, c)] == YES
		:: else -> reply[OF(each, c)] = NONE
		fi
#else
		reply[OF(each, c)] = NONE
#endif
	}
}

inline ask_all(c) {
	for (each : 0 .. M - 1) {
#ifdef LATE_REPLY
		if
		:: reply[OF(each, c)] == YES
		:: else -> reply[OF(each, c)] = ASKED
		fi
#else
		reply[OF(each, c)] = ASKED
#endif
	}
	round[c] = VALID(c);
#ifdef WISHED
	doomed[c] = (COUNT(HAS_WISH, TOKEN(c)) >= QUORUM);
#endif
#ifdef BREAK
	seen[c] = top
#endif
}

inline begin(c, which) {
	name[c] = which;
	token = TOKEN(c);
#ifndef ONE_TOKEN
	for (each : 0 .. M - 1) {
		late[AT(each, token)] = 0
	}
#endif
#ifdef FENCE
	agreed[token] = 0;
#endif
	ask_all(c);
	phase[c] = ASK;
	done()
}

/* What was told in this wait. */
inline forget_told(c) {
#ifdef FORGET
	for (each : 0 .. M - 1) {
		told[OF(each, c)] = 0;
		held[OF(each, c)] = 0;
		knew[OF(each, c)] = false;
		reply[OF(each, c)] = (reply[OF(each, c)] == HELD -> NONE : reply[OF(each, c)])
	}
	learned[c] = 0
#endif
	skip
}

inline take(c) {
#if defined(WISHED) && !defined(OVERLAP)
	assert(!(phase[c] == RENEW_ROUND && doomed[c]));
	doomed[c] = false;
#endif
#ifdef FROM_REPLY
	valid[c] = VALID(c);
#else
	valid[c] = round[c];
#endif
	round[c] = 0;
#ifdef FENCE
	check_fence(c);
	for (each : 0 .. M - 1) {
		vote[OF(each, c)] = 0
	}
#endif
	for (each : 0 .. M - 1) {
		if
#ifndef LATE_REPLY
		:: reply[OF(each, c)] == YES -> reply[OF(each, c)] = NONE
#endif
		:: reply[OF(each, c)] == ASKED && phase[c] < HOLD ->
			post(each, TOKEN(c), (phase[c] == ASK -> ACQUIRE : RAISE));
			reply[OF(each, c)] = NONE
		:: else
		fi
	}
	phase[c] = HOLD;
	forget_told(c);
	check_exclusion();
	check_ownership();
	done()
}

/* The largest of the votes; who is below it is told. */
inline lift(c) {
#ifdef FENCE
	most = 0;
	for (each : 0 .. M - 1) {
		if
		:: VOTED(each, c) && vote[OF(each, c)] > most -> most = vote[OF(each, c)]
		:: else
		fi
	}
	agreed[TOKEN(c)] = most;
#ifdef NO_RAISE
	take(c)
#else
	for (each : 0 .. M - 1) {
		if
		:: VOTED(each, c) && vote[OF(each, c)] == most
		:: VOTED(each, c) && vote[OF(each, c)] < most -> reply[OF(each, c)] = ASKED
		:: !VOTED(each, c) && reply[OF(each, c)] == ASKED ->
			post(each, TOKEN(c), ACQUIRE | RAISE);
			reply[OF(each, c)] = NONE
		:: !VOTED(each, c) && reply[OF(each, c)] == YES ->
			post(each, TOKEN(c), RAISE);
			reply[OF(each, c)] = NONE
		:: else
		fi;
		vote[OF(each, c)] = 0
	}
	phase[c] = LIFT;
	done()
#endif
#else
	take(c)
#endif
}

/* Gives up, or is done: what is sent may be late, or be lost. */
inline let_go(c) {
	leave_round(c, (phase[c] == ASK -> ACQUIRE : (phase[c] == LIFT -> RAISE : LATE_EXTEND)));
	for (each : 0 .. M - 1) {
		post(each, TOKEN(c), RELEASE);
#ifdef FENCE
		vote[OF(each, c)] = 0
#endif
	}
#ifdef AGAIN
	phase[c] = (c == 0 -> DONE : IDLE);
#elif defined(ONCE)
	phase[c] = DONE;
#else
	phase[c] = IDLE;
#endif
	valid[c] = 0;
	round[c] = 0;
	forget_told(c);
#ifdef BREAK
	seen[c] = 0;
#endif
	done()
}

#ifdef FROM_REPLY
#define IN_TIME(c) true
#else
#define IN_TIME(c) (round[c] > 0)
#endif

inline put_back(s, c) {
	if
	:: reply[OF(s, c)] == GONE ->
#ifdef AT_ONCE
		acquire(s, TOKEN(c), AGREED(TOKEN(c)));
#else
		post(s, TOKEN(c), PUT_BACK);
#endif
		reply[OF(s, c)] = NONE
	:: else
	fi
}

#ifdef HEAL_ALONE	/* whether a quorum has kept it or not */
#define MAY_HEAL(c) (phase[c] >= HOLD)
#else
#define MAY_HEAL(c) (phase[c] == HOLD)
#endif

#ifdef AGAIN
#define MAY_BEGIN(c) ((c) == 0 || calm > 0)
#else
#define MAY_BEGIN(c) true
#endif

proctype client(byte c)
{
	do
#ifdef ONE_TOKEN
	:: d_step { phase[c] == IDLE -> begin(c, 0) }
#else
	:: d_step { phase[c] == IDLE && MAY_BEGIN(c) && ALL(IS_FREE, c * NAMES) -> begin(c, 0) }
#if NAMES > 1
	:: d_step { phase[c] == IDLE && ALL(IS_FREE, c * NAMES + 1) -> begin(c, 1) }
#endif
#endif
	:: d_step { phase[c] == ASK && COUNT(VOTED, c) >= QUORUM && IS_HEARD(c) && IN_TIME(c) ->
		lift(c) }
#ifdef FENCE
	:: d_step { phase[c] == LIFT && COUNT(VOTED, c) >= QUORUM && IN_TIME(c) -> take(c) }
#endif
	:: d_step { phase[c] != IDLE && phase[c] != DONE -> let_go(c) }
#ifdef RENEW
	:: d_step { phase[c] >= HOLD && valid[c] > 0 ->
		leave_round(c, LATE_EXTEND); ask_all(c); phase[c] = RENEW_ROUND; done() }
#ifdef KEPT_ALIVE
	:: d_step { phase[c] == RENEW_ROUND && COUNT(KEPT, c) >= QUORUM && IN_TIME(c) -> take(c) }
#else
	:: d_step { phase[c] == RENEW_ROUND && valid[c] > 0 && COUNT(KEPT, c) >= QUORUM &&
		IN_TIME(c) -> take(c) }
#endif
#endif
#ifdef HEAL
	/* after a good round; it may be paused before it does so */
	:: d_step { MAY_HEAL(c) && !ALL(IS_NOT_GONE, c) ->
		put_back(0, c); put_back(1, c); put_back(2, c); done() }
#endif
	od
}
/* --- servers ------------------------------------------------------------- */

inline extend(s, t) {
#ifdef EXTEND_ANY
	result = 0;
	for (each : 0 .. TOKENS - 1) {
		if
		:: HAS_LEFT(s, each) -> left[AT(s, each)] = TTL; result = 1
		:: else
		fi
	}
	result = (result -> YES : GONE)
#else
	count_holders(s);
	if
#ifdef WISHED
#ifdef BROKEN_KEPT
	:: HAS_LEFT(s, t) && HAS_WISH(s, t) -> result = YES
#else
	:: HAS_LEFT(s, t) && HAS_WISH(s, t) -> result = NONE
#endif
	:: HAS_LEFT(s, t) && !HAS_WISH(s, t) -> left[AT(s, t)] = TTL_OF_TOKEN(t); result = YES
#else
	:: HAS_LEFT(s, t) -> left[AT(s, t)] = TTL_OF_TOKEN(t); result = YES
#endif
#ifdef EXTEND_TAKES
	:: !HAS_LEFT(s, t) && result == 0 -> acquire(s, t, AGREED(t)); result = YES
#endif
	:: else -> result = (result > 0 -> NONE : GONE)
	fi
#endif
}

inline release(s, t) {
#ifdef PLAIN_DEL
	release_all(s)
#else
	left[AT(s, t)] = 0
#endif
}

inline raise(s, t) {
#ifdef FENCE
#ifdef RAISE_ANYWHERE
	result = YES;
#else
	result = (HAS_LEFT(s, t) -> YES : NONE);
#endif
	if
	:: result == YES && fence[s] < agreed[t] -> fence[s] = agreed[t]
	:: else
	fi
#endif
	skip
}

#ifdef FENCE
#define MAY_GRANT(s) (fence[s] < FENCES)
#else
#define MAY_GRANT(s) true
#endif

/* Beside an answer: what src/lock/lua/acquire.lua tells of KEY. */
inline tell(s, c) {
#if defined(FORGET) && !defined(ANY)
	told[OF(s, c)] = record[s];
	held[OF(s, c)] = (result -> 0 : since[s]);
#ifndef NO_LEARNING
	learned[c] = (result -> learned[c] : LARGER(learned[c], TTL_OF(1 - (c))));
#endif
#endif
	skip
}

inline know(s, c) {
#if defined(FORGET) && !defined(ANY)
	knew[OF(s, c)] = (last[s] == (1 - (c)) * NAMES + 1)
#endif
	skip
}

/* The request of a client that still waits for the answer. */
inline answer(s, c) {
	token = TOKEN(c);
	if
	:: phase[c] == ASK ->
		know(s, c);
		acquire(s, token, 0);
#ifdef FENCE
		vote[OF(s, c)] = (result -> fence[s] : 0);
#endif
		tell(s, c);
#if defined(FORGET) && !defined(ANY)
		result = (result -> YES : HELD)
#else
		result = (result -> YES : NONE)
#endif
	:: phase[c] == LIFT -> raise(s, token)
	:: else -> extend(s, token)
	fi;
	/* nobody asks for the votes of a round that has its quorum */
	reply[OF(s, c)] = (phase[c] == HOLD && result == YES -> NONE : result);
#ifndef HEAL
	reply[OF(s, c)] = (result == GONE -> NONE : reply[OF(s, c)]);
#endif
	done()
}

#define IS_LATE(s, t, what) (late[AT(s, t)] & (what))

inline received(s, t, what) {
	late[AT(s, t)] = late[AT(s, t)] & (31 - (what))
}

#ifdef REPEAT
/* the answer was lost with its connection: it is asked again */
#define REPEATS_REQUEST(c) \
	:: d_step { phase[c] == ASK && reply[OF(s, c)] == YES -> reply[OF(s, c)] = ASKED; done() }
#else
#define REPEATS_REQUEST(c)
#endif

#define SERVES_CLIENT(c) \
	:: d_step { reply[OF(s, c)] == ASKED && (phase[c] != ASK || MAY_GRANT(s)) -> answer(s, c) } \
	REPEATS_REQUEST(c)

#ifdef RENEW
#define SERVES_RENEWAL(t) \
	:: d_step { IS_LATE(s, t, EXTEND) -> \
		received(s, t, EXTEND); extend(s, t); check_ownership(); done() } \
	:: d_step { IS_LATE(s, t, PUT_BACK) -> \
		received(s, t, PUT_BACK); acquire(s, t, AGREED(t)); done() }
#else
#define SERVES_RENEWAL(t)
#endif
#ifdef FENCE
#define SERVES_RAISE(t) \
	:: d_step { IS_LATE(s, t, RAISE) -> \
		received(s, t, RAISE); raise(s, t); done() }
#else
#define SERVES_RAISE(t)
#endif

/* A message that comes while fences are raised counts as a vote for the fence. */
inline read_on(s, t) {
#ifdef READ_ON
	reply[OF(s, t / NAMES)] = (result && phase[t / NAMES] == LIFT && TOKEN(t / NAMES) == t ->
		YES : reply[OF(s, t / NAMES)])
#endif
	skip
}

#ifdef WISHED
#ifdef FREES		/* KEY is free at once: --now */
#define BREAKS_TOKEN(t) \
	:: d_step { HAS_LEFT(s, t) -> left[AT(s, t)] = 0; done() }
#else
#define BREAKS_TOKEN(t) \
	:: d_step { HAS_LEFT(s, t) && !HAS_WISH(s, t) -> wish[AT(s, t)] = true; done() }
#endif
#elif defined(FROZEN)
#define BREAKS_TOKEN(t) \
	:: d_step { HAS_LEFT(s, t) -> \
		cold[AT(s, t)] = left[AT(s, t)]; left[AT(s, t)] = 0; check_ownership(); done() } \
	:: d_step { cold[AT(s, t)] > 0 && cold[AT(s, t)] <= DRIFT -> \
		cold[AT(s, t)] = 0; check_ownership(); done() }
#else
#define BREAKS_TOKEN(t)
#endif

#define SERVES_TOKEN(t) \
	BREAKS_TOKEN(t) \
	:: d_step { IS_LATE(s, t, ACQUIRE) && MAY_GRANT(s) -> \
		received(s, t, ACQUIRE); acquire(s, t, 0); read_on(s, t); done() } \
	:: d_step { IS_LATE(s, t, RELEASE) -> \
		received(s, t, RELEASE); release(s, t); check_ownership(); done() } \
	:: d_step { left[AT(s, t)] > 0 && left[AT(s, t)] <= DRIFT -> \
		left[AT(s, t)] = 0; check_ownership(); done() } \
	SERVES_RENEWAL(t) \
	SERVES_RAISE(t)

#if TOKENS == 2
#define HOLDS_ANY(s) (left[AT(s, 0)] + left[AT(s, 1)] > 0)
#elif TOKENS == 3
#define HOLDS_ANY(s) (left[AT(s, 0)] + left[AT(s, 1)] + left[AT(s, 2)] > 0)
#elif TOKENS == 4
#define HOLDS_ANY(s) (left[AT(s, 0)] + left[AT(s, 1)] + left[AT(s, 2)] + left[AT(s, 3)] > 0)
#else
#define HOLDS_ANY(s) true
#endif
#ifdef FENCE
#define HAS_SOMETHING(s) (fence[s] > 0 || HOLDS_ANY(s))
#elif defined(FORGET) && !defined(ANY)
#define HAS_SOMETHING(s) (record[s] > 0)
#else
#define HAS_SOMETHING(s) HOLDS_ANY(s)
#endif

#ifdef FORGET
inline lose_all(s) {
	release_all(s);
	record[s] = 0;
	since[s] = 0;
	last[s] = 0
}

#define NEVER 255
#ifdef AGAIN
#define CALM NEVER
#define MAY_FORGET(s) (calm == 0 && HAS_SOMETHING(s) && phase[0] == HOLD)
#else
#define MAY_FORGET(s) (calm == 0 && HAS_SOMETHING(s))
#define CALM LONG
#endif
#define OLDER(x) x = ((x) > 0 && (x) <= LONG -> (x) + 1 : (x))
#endif

proctype server(byte s)
{
	do
	SERVES_CLIENT(0)
	SERVES_CLIENT(1)
#if CLIENTS > 2
	SERVES_CLIENT(2)
#endif
	SERVES_TOKEN(0)
	SERVES_TOKEN(1)
#if TOKENS > 2
	SERVES_TOKEN(2)
#endif
#if TOKENS > 3
	SERVES_TOKEN(3)
#endif
#if TOKENS > 4
	SERVES_TOKEN(4)
	SERVES_TOKEN(5)
#endif
#if defined(BREAK) && !defined(AT_ONCE)
	:: d_step { HOLDS_ANY(s) -> release_all(s); done() } /* the fence stays */
#endif
#ifdef DUMP		/* a ttl and more after all that it was written after */
	:: d_step { age == 0 && fence[s] > 1 && !HOLDS_ANY(s) -> fence[s]--; done() }
#endif
#ifdef RESTART
	:: d_step { HAS_SOMETHING(s) -> /* everything is lost */
		release_all(s);
#ifdef FENCE
		fence[s] = 0;
#endif
		young[s] = TTL;
		done() }
	:: d_step { young[s] > 0 && young[s] <= DRIFT -> young[s] = 0; done() }
#endif
#ifdef FORGET
#ifdef ANY
	:: d_step { HAS_SOMETHING(s) -> up[s] = 0; lose_all(s); done() }
#else
	:: d_step { MAY_FORGET(s) -> up[s] = 0; calm = CALM; lose_all(s); done() }
	:: d_step { MAY_FORGET(s) -> calm = CALM; lose_all(s); done() }
#endif
#endif
	od
}

/* --- time ---------------------------------------------------------------- */

#define MINUS_ONE(x) x = (x > 0 -> x - 1 : 0)

proctype clock()
{
	do
	:: d_step { true ->
		for (each : 0 .. M * TOKENS - 1) {
			MINUS_ONE(left[each]);
#ifdef FROZEN
			MINUS_ONE(cold[each])
#endif
		}
		for (each : 0 .. CLIENTS - 1) {
			MINUS_ONE(valid[each]);
			MINUS_ONE(round[each])
		}
#ifdef RESTART
		for (each : 0 .. M - 1) {
			MINUS_ONE(young[each])
		}
#endif
#ifdef FORGET
		for (each : 0 .. M - 1) {
			up[each] = (up[each] < LONG -> up[each] + 1 : LONG);
			OLDER(record[each]);
			OLDER(since[each])
		}
		for (each : 0 .. M * CLIENTS - 1) {
			OLDER(told[each]);
			OLDER(held[each])
		}
		calm = (calm > 0 && calm < NEVER -> calm - 1 : calm);
#endif
#ifdef FENCE
		MINUS_ONE(age);
		base = (age == 0 -> top : base);
#endif
		check_ownership();
		done() }
	od
}

#ifdef AT_ONCE
proctype operator()
{
	do
	:: d_step { HOLDS_ANY(0) || HOLDS_ANY(1) || HOLDS_ANY(2) ->
		release_all(0); release_all(1); release_all(2); done() }
	od
}
#endif

init {
	atomic {
#ifdef FORGET
		up[0] = LONG; up[1] = LONG; up[2] = LONG;
#if !defined(NEW_KEY) && !defined(ANY)
		record[0] = LONG + 1; record[1] = LONG + 1; record[2] = LONG + 1;
#endif
#endif
		run server(0); run server(1); run server(2);
		run client(0); run client(1);
#if CLIENTS > 2
		run client(2);
#endif
#ifdef AT_ONCE
		run operator()
#endif
#ifndef BREAK
		run clock()
#endif
	}
}
