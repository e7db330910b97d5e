/*
 * Permits as numbered slots: votes name a slot, and may be moved to another
 * (redlock-protocol(7), Slots; src/lock/slots.h). See README for what is left out and
 * why, ./check for how it is run.
 *
 * CLIENTS, SLOTS, MOVES; COPIES bounds how many requests are executed twice, or late;
 * RESTARTS, how often a server loses everything. QUEUE adds waiting, and grants by
 * message. With FENCE no server restarts.
 * With NARROW only client 0 moves and renews, and only its requests come late; only server
 * 2 restarts, and client 1 comes after that; a third client has slot 2 on servers 1 and 2
 * for a while. One rule is left out by TOGETHER, UNCHECKED, UNNUMBERED,
 * UNSETTLED, STALE, OLD_FENCE, EAGER, NO_QUARANTINE. IN_ORDER keeps the servers and
 * clients where they are, for a trail that is easier to follow.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef MOVES
#define MOVES 2
#endif
#ifndef COPIES
#define COPIES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef FENCES
#define FENCES 5
#endif
#define SERVERS 3
#define MAJORITY 2
#define AT(c, i) ((c) * SERVERS + (i))

/* Servers: which slot a token has, and after how many moves it was asked for. */
byte has[CLIENTS * SERVERS], moved[CLIENTS * SERVERS];
byte young[SERVERS];	/* clients whose belief may be older than its start: it has no vote */
#define ROUND(c) (1 << ((c) + 4))	/* it is of before a restart, and a round has begun since */
#ifdef QUEUE
byte wish[CLIENTS * SERVERS];	/* the last request of one that waits there */
byte told[CLIENTS * SERVERS];	/* a message on its way: the slot, and what it answers */
#endif

#define OUT 0		/* what a client does */
#define ASKS 1
#define HOLDS 2
#define DONE 3
byte phase[CLIENTS];
byte slot[CLIENTS];	/* that it asks for, or holds */
byte moves[CLIENTS];	/* how often it has moved its votes */

#define PENDING 0	/* what it knows of a server: this, or a slot */
#define NO 4
byte vote[CLIENTS * SERVERS];

/* A request on its way: a slot (1 to 3) and a number of moves; or another. */
#define TAKE(s, n) ((s) + 3 * (n))
#define BACK(s) TAKE(s, 3)
#define SLOT_OF(r) (((r) - 1) % 3 + 1)
#define NUMBER_OF(r) (((r) - 1) / 3)
#define EXTEND 13
#define RELEASE 14
byte asked[CLIENTS * SERVERS];	/* the last one */
byte late[CLIENTS * SERVERS];	/* an earlier one, or the same again */

#if COPIES > 0
byte copies;
#endif
#if RESTARTS > 0
byte restarts;
#endif
#ifdef FENCE
byte fence[SERVERS];	/* stored */
byte given[CLIENTS * SERVERS];	/* of the token there */
byte largest[SLOTS + 1];	/* of all who have held the slot */
#endif

hidden byte c, i, k, s, r, picked;	/* what is being done; and within one d_step: */
hidden byte j, n, to;

/* --- one state for all that are alike ---------------------------------------- */

c_decl {
#define SWAP(array, a, b) \
	do { unsigned char x = array[a]; array[a] = array[b]; array[b] = x; } while (0)

	static unsigned mix(unsigned h, unsigned char value)
	{
		return h * 31 + value;
	}
}

c_code {
	/* what server i knows of client c, and c of i */
	static unsigned cell(int c, int i)
	{
		int at = AT(c, i);
		unsigned h = mix(mix(mix(mix(0, now.has[at]), now.moved[at]), now.vote[at]), now.asked[at]);

		h = mix(h, now.late[at]);
#ifdef QUEUE
		h = mix(mix(h, now.wish[at]), now.told[at]);
#endif
#ifdef FENCE
		h = mix(h, now.given[at]);
#endif
		return h;
	}

	static void swap_cells(int a, int b)
	{
		SWAP(now.has, a, b);
		SWAP(now.moved, a, b);
		SWAP(now.vote, a, b);
		SWAP(now.asked, a, b);
		SWAP(now.late, a, b);
#ifdef QUEUE
		SWAP(now.wish, a, b);
		SWAP(now.told, a, b);
#endif
#ifdef FENCE
		SWAP(now.given, a, b);
#endif
	}

	static unsigned row(int i)
	{
		unsigned h = now.young[i];
		int c;

#ifdef FENCE
		h = mix(h, now.fence[i]);
#endif
		for (c = 0; c < CLIENTS; c++)
			h = h * 8191 + cell(c, i);
		return h;
	}

	static void order_servers(int a, int b)
	{
		int c;

		if (row(a) <= row(b))
			return;
		for (c = 0; c < CLIENTS; c++)
			swap_cells(AT(c, a), AT(c, b));
		SWAP(now.young, a, b);
#ifdef FENCE
		SWAP(now.fence, a, b);
#endif
	}

	/* the same in any order of the servers */
	static unsigned column(int c)
	{
		unsigned h = mix(mix(now.phase[c], now.slot[c]), now.moves[c]), sum = 0;
		int i;

		for (i = 0; i < SERVERS; i++) {
			unsigned of = mix(cell(c, i), now.young[i] >> c & (1 | ROUND(0)));

			sum += of * of;
		}
		return h * 65521 + sum;
	}

	static void order_clients(int a, int b)
	{
		int i;

		if (column(a) <= column(b))
			return;
		SWAP(now.phase, a, b);
		SWAP(now.slot, a, b);
		SWAP(now.moves, a, b);
		for (i = 0; i < SERVERS; i++) {
			unsigned char young = now.young[i], both = 1 | ROUND(0);

			swap_cells(AT(a, i), AT(b, i));
			now.young[i] = (young & ~(both << a | both << b)) |
				       (young >> a & both) << b | (young >> b & both) << a;
		}
	}

	/* What has no effect, now or later, of a client that is done. */
	static void forget(void)
	{
		int c, i;

		for (c = 0; c < CLIENTS; c++)
			for (i = 0; i < SERVERS && now.phase[c] == DONE; i++) {
				int at = AT(c, i), idle = now.has[at] == 0 && now.moved[at] == 0 && now.late[at] == 0;

#ifdef QUEUE
				now.told[at] = 0;
				idle &= now.wish[at] == 0;
#endif
#ifdef FENCE
				now.given[at] = 0;
#endif
				if (idle && now.asked[at] == RELEASE)
					now.asked[at] = 0;
			}
	}

	static void canonical(void)
	{
		forget();
#if !defined(IN_ORDER) && !defined(NARROW)	/* there they have parts of their own */
		order_clients(0, 1);
#if CLIENTS > 2
		order_clients(1, 2);
		order_clients(0, 1);
#endif
		order_servers(1, 2);
#ifndef QUEUE					/* server 0 has others in line */
		order_servers(0, 1);
		order_servers(1, 2);
#endif
#endif
	}
}

inline check_exclusion() {
	for (j : 0 .. CLIENTS - 2) {
		for (n : j + 1 .. CLIENTS - 1) {
			assert(phase[j] != HOLDS || phase[n] != HOLDS || slot[j] != slot[n])
		}
	}
}

/* --- the servers ----------------------------------------------------------- */

#ifdef NARROW
bool is_third = 1;
#define MOST_ACTIVE 0
#define RESTARTING 2
#define MAY_COME(c) (c == 0 || restarts == RESTARTS)
#define IS_FREE(i, s) (has[AT(0, i)] != (s) && has[AT(1, i)] != (s) && ((s) != 2 || i == 0 || !is_third))
#else
#define MOST_ACTIVE (CLIENTS - 1)
#define RESTARTING 0
#define MAY_COME(c) true
#if CLIENTS == 2
#define IS_FREE(i, s) (has[AT(0, i)] != (s) && has[AT(1, i)] != (s))
#else
#define IS_FREE(i, s) (has[AT(0, i)] != (s) && has[AT(1, i)] != (s) && has[AT(2, i)] != (s))
#endif
#endif
/* The first free one from that which the request names may be any: others come and go. */
#define TAKES_ANY(c, i, r) (r < EXTEND && NUMBER_OF(r) < 3 && has[AT(c, i)] == 0)
inline pick_free(c, i, r) {
	if
	:: TAKES_ANY(c, i, r) && IS_FREE(i, 1) -> picked = 1
#if SLOTS > 1
	:: TAKES_ANY(c, i, r) && IS_FREE(i, 2) -> picked = 2
#endif
#if SLOTS > 2
	:: TAKES_ANY(c, i, r) && IS_FREE(i, 3) -> picked = 3
#endif
#ifdef QUEUE
	:: TAKES_ANY(c, i, r) && i == 0 -> picked = 0 /* others are before it */
#endif
	:: else -> picked = 0
	fi
}

#ifdef FENCE
#define NEW_FENCE(c, i) \
	fence[i] = (fence[i] < FENCES -> fence[i] + 1 : FENCES); given[AT(c, i)] = fence[i]
#else
#define NEW_FENCE(c, i) skip
#endif

#ifdef UNNUMBERED
#define IS_NEWER(c, i, r) true
#else
#define IS_NEWER(c, i, r) (NUMBER_OF(r) > moved[AT(c, i)])
#endif

inline note_number(c, i, r) {
	moved[AT(c, i)] = (NUMBER_OF(r) > moved[AT(c, i)] -> NUMBER_OF(r) : moved[AT(c, i)])
}

/* slots.lua: the slot that the token has after this is has[]. */
inline take(c, i, r) {
	to = SLOT_OF(r);
	if
	:: has[AT(c, i)] == 0 ->
		if
		:: NUMBER_OF(r) == 3 -> to = (IS_FREE(i, to) -> to : 0)
		:: else -> to = picked
		fi;
		if
		:: to > 0 ->
			has[AT(c, i)] = to;
			moved[AT(c, i)] = NUMBER_OF(r);
			NEW_FENCE(c, i)
		:: else -> skip
		fi
	:: has[AT(c, i)] == to || (has[AT(c, i)] > 0 && NUMBER_OF(r) < 3 && !IS_NEWER(c, i, r)) ->
		note_number(c, i, r)
	:: else ->
		if
		:: IS_FREE(i, to) ->
			has[AT(c, i)] = to;
#ifndef OLD_FENCE
			NEW_FENCE(c, i)
#endif
		:: !IS_FREE(i, to) && NUMBER_OF(r) == 3 -> has[AT(c, i)] = 0
		:: else -> skip
		fi;
		note_number(c, i, r)
	fi
}

inline execute(c, i, r) {
	if
	:: r == EXTEND ->
		vote[AT(c, i)] = (has[AT(c, i)] > 0 -> has[AT(c, i)] : NO);
#ifndef UNSETTLED
		moved[AT(c, i)] = (has[AT(c, i)] > 0 -> 3 : 0)
#endif
	:: r == RELEASE ->
		has[AT(c, i)] = 0;
		moved[AT(c, i)] = 0;
#ifdef QUEUE
		wish[AT(c, i)] = 0
#endif
	:: else ->
		take(c, i, r)
#ifdef QUEUE
		;
		wish[AT(c, i)] = (has[AT(c, i)] > 0 || NUMBER_OF(r) == 3 -> 0 : r)
#endif
	fi
}

/* --- the clients ------------------------------------------------------------- */

/* A request that was not executed yet may be later, or never. */
inline send(c, i, what) {
#if COPIES > 0
	if
	:: c <= MOST_ACTIVE && asked[AT(c, i)] > 0 && asked[AT(c, i)] < EXTEND && copies < COPIES ->
		copies++;
		late[AT(c, i)] = asked[AT(c, i)]
	:: true
	fi;
#endif
	asked[AT(c, i)] = what
}

/* Nothing is asked there: it has answered, or its answer will not come. */
#define IS_VOTE(c, i, s) (vote[AT(c, i)] == (s) && young[i] == 0)
#define VOTES(c, s) (IS_VOTE(c, 0, s) + IS_VOTE(c, 1, s) + IS_VOTE(c, 2, s))
#define IS_ANY(c, i) (vote[AT(c, i)] > 0 && vote[AT(c, i)] != NO && young[i] == 0)
#define ANY(c) (IS_ANY(c, 0) + IS_ANY(c, 1) + IS_ANY(c, 2))
#ifdef TOGETHER
#define HAS_QUORUM(c, s) (VOTES(c, s) > 0 && ANY(c) >= MAJORITY)
#else
#define HAS_QUORUM(c, s) (VOTES(c, s) >= MAJORITY)
#endif
#ifdef UNCHECKED
#define IS_KEPT(c) (ANY(c) >= MAJORITY)
#else
#define IS_KEPT(c) (VOTES(c, slot[c]) >= MAJORITY)
#endif

inline begin_round(c) {
	for (j : 0 .. SERVERS - 1) {
		young[j] = (young[j] & 1 << c -> (young[j] & ~(1 << c)) | ROUND(c) : young[j])
	}
}

inline end_round(c) {
	for (j : 0 .. SERVERS - 1) {
		young[j] = young[j] & ~ROUND(c)
	}
}

inline believe(c) {
	phase[c] = HOLDS;
#ifdef FENCE
	n = 0;
	for (j : 0 .. SERVERS - 1) {
		n = (vote[AT(c, j)] == slot[c] && given[AT(c, j)] > n -> given[AT(c, j)] : n)
	}
	for (j : 0 .. SERVERS - 1) {
		if
		:: vote[AT(c, j)] == slot[c] && has[AT(c, j)] > 0 ->
			fence[j] = (fence[j] < n -> n : fence[j])
		:: else -> skip
		fi
	}
	/* at the bound there is nothing to be told apart */
	assert(n > largest[slot[c]] || n == FENCES);
	largest[slot[c]] = n;
#endif
	check_exclusion()
}

/* Those that were not needed get the slot, too. */
inline put_back(c) {
	for (k : 0 .. SERVERS - 1) {
		if
		:: vote[AT(c, k)] != slot[c] -> send(c, k, BACK(slot[c]))
		:: else -> skip
		fi
	}
}

inline forget_votes(c) {
	for (j : 0 .. SERVERS - 1) {
		vote[AT(c, j)] = PENDING
	}
}

inline end_attempt(c) {
	phase[c] = DONE;
	begin_round(c);
	end_round(c);
	slot[c] = 0;
	moves[c] = 0;
	forget_votes(c)
}

/*
 * One of those that may, as the first of an atomic step: nothing is done where none may.
 * What has one outcome only is one step (d_step); where requests are copied, sending has two.
 * A d_step sets nothing hidden that is read after it: spin would not set it back.
 */
#define IF_CLIENT(may, x) :: may(x) -> c = x
#define IF_THERE(may, x, y) :: may(x, y) -> c = x; i = y
#define IF_SLOT(may, x, y) :: may(x, y) -> c = x; s = y
#define IF_SERVERS(may, x) IF_THERE(may, x, 2) IF_THERE(may, x, 1) IF_THERE(may, x, 0)
#if SLOTS == 1
#define IF_SLOTS(may, x) IF_SLOT(may, x, 1)
#elif SLOTS == 2
#define IF_SLOTS(may, x) IF_SLOT(may, x, 2) IF_SLOT(may, x, 1)
#else
#define IF_SLOTS(may, x) IF_SLOT(may, x, 3) IF_SLOT(may, x, 2) IF_SLOT(may, x, 1)
#endif
#if CLIENTS == 2
#define ONE_OF(which, may) if which(may, 1) which(may, 0) fi
#else
#define ONE_OF(which, may) if which(may, 2) which(may, 1) which(may, 0) fi
#endif
#if COPIES > 0
#define SENDING
#else
#define SENDING d_step
#endif

#define IS_OUT(c) (phase[c] == OUT && MAY_COME(c))
#define IS_ASKED(c, i) (asked[AT(c, i)] > 0)
#define HAS_ANSWER(c, i) (phase[c] == ASKS && vote[AT(c, i)] != PENDING)
#define IS_LATE(c, i) (late[AT(c, i)] > 0)
#define IS_IN_LINE(c, i) (wish[AT(c, i)] > 0 && has[AT(c, i)] == 0)
#define IS_TOLD(c, i) (told[AT(c, i)] > 0)
#define IS_DUE(c, i) (phase[c] == ASKS && (vote[AT(c, i)] == NO || vote[AT(c, i)] == PENDING) && \
	asked[AT(c, i)] == 0)
#define MAY_MOVE(c, s) ((c) <= MOST_ACTIVE && phase[c] == ASKS && moves[c] < MOVES && ANY(c) > 0 && \
	VOTES(c, s) < MAJORITY)
#define HAS_ENOUGH(c, s) (phase[c] == ASKS && HAS_QUORUM(c, s))
#define MAY_RENEW(c) ((c) <= MOST_ACTIVE && phase[c] == HOLDS && moves[c] != 9)
#define IS_RENEWED(c) (phase[c] == HOLDS && moves[c] == 9 && IS_KEPT(c))
#define MAY_END(c) (phase[c] == ASKS || phase[c] == HOLDS)

active proctype world()
{
end:	do
	/* a client begins */
	:: atomic {
		ONE_OF(IF_CLIENT, IS_OUT);
		d_step {
			phase[c] = ASKS;
			slot[c] = 1;
			for (j : 0 .. SERVERS - 1) {
				asked[AT(c, j)] = TAKE(slot[c], 0)
			};
			c_code { canonical(); }
		}
	}
	/* a request is executed */
	:: atomic {
		ONE_OF(IF_SERVERS, IS_ASKED);
		r = asked[AT(c, i)];
		pick_free(c, i, r);
		d_step {
			execute(c, i, r);
			if
			:: r < EXTEND && NUMBER_OF(r) < 3 ->
				vote[AT(c, i)] = (has[AT(c, i)] > 0 -> has[AT(c, i)] : NO)
			:: else
			fi;
			asked[AT(c, i)] = 0
		};
#if COPIES > 0
		if
		:: c <= MOST_ACTIVE && r < EXTEND && copies < COPIES ->
			copies++;
			late[AT(c, i)] = r
		:: true
		fi;
#endif
		d_step { c_code { canonical(); } }
	}
#ifdef LOST
	/* its answer is lost, and nobody asks again */
	:: atomic {
		ONE_OF(IF_SERVERS, HAS_ANSWER);
		d_step { vote[AT(c, i)] = PENDING; c_code { canonical(); } }
	}
#endif
#if COPIES > 0
	:: atomic {
		ONE_OF(IF_SERVERS, IS_LATE);
		r = late[AT(c, i)];
		pick_free(c, i, r);
		d_step {
			execute(c, i, r);
			late[AT(c, i)] = 0;
			c_code { canonical(); }
		}
	}
#endif
#if RESTARTS > 0
	:: atomic {
		if
		:: restarts < RESTARTS -> i = 2
#if RESTARTING == 0
		:: restarts < RESTARTS -> i = 1
		:: restarts < RESTARTS -> i = 0
#endif
		fi;
		d_step {
			restarts++;
			for (j : 0 .. CLIENTS - 1) {
				has[AT(j, i)] = 0;
				moved[AT(j, i)] = 0;
#ifdef QUEUE
				wish[AT(j, i)] = 0;
#endif
#ifndef NO_QUARANTINE
				young[i] = (phase[j] == ASKS || phase[j] == HOLDS -> young[i] | 1 << j : young[i])
#endif
			};
			c_code { canonical(); }
		}
	}
#endif
#ifdef QUEUE
	/* a slot is free for one that waits: settle.lua */
	:: atomic {
		ONE_OF(IF_SERVERS, IS_IN_LINE);
		r = wish[AT(c, i)];
		pick_free(c, i, r);
		d_step {
			take(c, i, r);
			if
			:: has[AT(c, i)] > 0 ->
				wish[AT(c, i)] = 0;
				told[AT(c, i)] = TAKE(has[AT(c, i)], NUMBER_OF(r))
			:: else
			fi;
			c_code { canonical(); }
		}
	}
	/* the message comes, or is lost */
	:: atomic {
		ONE_OF(IF_SERVERS, IS_TOLD);
		r = told[AT(c, i)];
		told[AT(c, i)] = 0;
		if
#ifdef STALE
		:: phase[c] == ASKS -> vote[AT(c, i)] = SLOT_OF(r)
#else
		:: phase[c] == ASKS && NUMBER_OF(r) == moves[c] -> vote[AT(c, i)] = SLOT_OF(r)
#endif
		:: true
		fi;
		d_step { c_code { canonical(); } }
	}
	/* a heartbeat */
	:: atomic {
		ONE_OF(IF_SERVERS, IS_DUE);
		SENDING {
			send(c, i, TAKE(slot[c], moves[c]));
			c_code { canonical(); }
		}
	}
#endif
	/* votes for different slots are moved */
	:: atomic {
		ONE_OF(IF_SLOTS, MAY_MOVE);
		SENDING {
			moves[c] = moves[c] + 1;
			slot[c] = s;
			for (k : 0 .. SERVERS - 1) {
				if
				:: vote[AT(c, k)] != slot[c] ->
#ifndef EAGER
					vote[AT(c, k)] = PENDING;
#endif
					send(c, k, TAKE(slot[c], moves[c]))
				:: else
				fi
			};
			c_code { canonical(); }
		}
	}
	/* enough votes */
	:: atomic {
		ONE_OF(IF_SLOTS, HAS_ENOUGH);
		d_step { slot[c] = s; believe(c) };
#ifdef RENEW
		SENDING { put_back(c) };
#endif
		d_step { forget_votes(c); c_code { canonical(); } }
	}
#ifdef RENEW
	/* a renewal */
	:: atomic {
		ONE_OF(IF_CLIENT, MAY_RENEW);
		d_step {
			moves[c] = 9; /* a round is under way */
			begin_round(c);
			forget_votes(c)
		};
		SENDING {
			for (k : 0 .. SERVERS - 1) {
				send(c, k, EXTEND)
			};
			c_code { canonical(); }
		}
	}
	:: atomic {
		ONE_OF(IF_CLIENT, IS_RENEWED);
		d_step { moves[c] = 0; end_round(c) };
		SENDING { put_back(c) };
		d_step { forget_votes(c); c_code { canonical(); } }
	}
#endif
#ifdef NARROW
	:: d_step { is_third -> is_third = 0 }
#endif
	/* the end */
	:: atomic {
		ONE_OF(IF_CLIENT, MAY_END);
		d_step { end_attempt(c) };
		SENDING {
			for (k : 0 .. SERVERS - 1) {
				send(c, k, RELEASE)
			};
			c_code { canonical(); }
		}
	}
	od
}
