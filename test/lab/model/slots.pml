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

hidden byte c, i, k, s, r, n;

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

inline done() {
	c = 0; i = 0; k = 0; s = 0; r = 0; n = 0
}

inline check_exclusion() {
	for (k : 0 .. CLIENTS - 2) {
		for (n : k + 1 .. CLIENTS - 1) {
			assert(phase[k] != HOLDS || phase[n] != HOLDS || slot[k] != slot[n])
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
inline pick_free(i) {
	if
	:: IS_FREE(i, 1) -> s = 1
#if SLOTS > 1
	:: IS_FREE(i, 2) -> s = 2
#endif
#if SLOTS > 2
	:: IS_FREE(i, 3) -> s = 3
#endif
#ifdef QUEUE
	:: i == 0 -> s = 0 /* others are before it */
#endif
	:: else -> s = 0
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
	s = SLOT_OF(r);
	if
	:: has[AT(c, i)] == 0 ->
		if
		:: NUMBER_OF(r) == 3 -> s = (IS_FREE(i, s) -> s : 0)
		:: else -> pick_free(i)
		fi;
		if
		:: s > 0 ->
			has[AT(c, i)] = s;
			moved[AT(c, i)] = NUMBER_OF(r);
			NEW_FENCE(c, i)
		:: else -> skip
		fi
	:: has[AT(c, i)] == s || (has[AT(c, i)] > 0 && NUMBER_OF(r) < 3 && !IS_NEWER(c, i, r)) ->
		note_number(c, i, r)
	:: else ->
		if
		:: IS_FREE(i, s) ->
			has[AT(c, i)] = s;
#ifndef OLD_FENCE
			NEW_FENCE(c, i)
#endif
		:: !IS_FREE(i, s) && NUMBER_OF(r) == 3 -> has[AT(c, i)] = 0
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
	for (k : 0 .. SERVERS - 1) {
		young[k] = (young[k] & 1 << c -> (young[k] & ~(1 << c)) | ROUND(c) : young[k])
	}
}

inline end_round(c) {
	for (k : 0 .. SERVERS - 1) {
		young[k] = young[k] & ~ROUND(c)
	}
}

inline believe(c) {
	phase[c] = HOLDS;
#ifdef FENCE
	for (k : 0 .. SERVERS - 1) {
		n = (vote[AT(c, k)] == slot[c] && given[AT(c, k)] > n -> given[AT(c, k)] : n)
	}
	for (k : 0 .. SERVERS - 1) {
		if
		:: vote[AT(c, k)] == slot[c] && has[AT(c, k)] > 0 ->
			fence[k] = (fence[k] < n -> n : fence[k])
		:: else -> skip
		fi
	}
	/* at the bound there is nothing to be told apart */
	assert(n > largest[slot[c]] || n == FENCES);
	largest[slot[c]] = n;
	n = 0;
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

inline end_attempt(c) {
	phase[c] = DONE;
	begin_round(c);
	end_round(c);
	slot[c] = 0;
	moves[c] = 0;
	for (k : 0 .. SERVERS - 1) {
		vote[AT(c, k)] = PENDING;
		send(c, k, RELEASE)
	}
}

#define PICK(x, least, most) x = least; do :: x < (most) -> x++ :: break od

active proctype world()
{
	do
	/* a client begins */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		if
		:: phase[c] == OUT && MAY_COME(c) ->
		phase[c] = ASKS;
		slot[c] = 1;
		for (k : 0 .. SERVERS - 1) {
			asked[AT(c, k)] = TAKE(slot[c], 0)
		};
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
	/* a request is executed */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(i, 0, SERVERS - 1);
		if
		:: asked[AT(c, i)] > 0 ->
		r = asked[AT(c, i)];
		execute(c, i, r);
		if
		:: r < EXTEND && NUMBER_OF(r) < 3 ->
			vote[AT(c, i)] = (has[AT(c, i)] > 0 -> has[AT(c, i)] : NO)
		:: else -> skip
		fi;
#if COPIES > 0
		if
		:: c <= MOST_ACTIVE && r < EXTEND && copies < COPIES ->
			copies++;
			late[AT(c, i)] = r
		:: true
		fi;
#endif
		asked[AT(c, i)] = 0;
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#ifdef LOST
	/* its answer is lost, and nobody asks again */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(i, 0, SERVERS - 1);
		if
		:: phase[c] == ASKS && vote[AT(c, i)] != PENDING ->
		vote[AT(c, i)] = PENDING;
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#endif
#if COPIES > 0
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(i, 0, SERVERS - 1);
		if
		:: late[AT(c, i)] > 0 ->
		r = late[AT(c, i)];
		execute(c, i, r);
		late[AT(c, i)] = 0;
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#endif
#if RESTARTS > 0
	:: atomic {
		PICK(i, RESTARTING, SERVERS - 1);
		if
		:: restarts < RESTARTS ->
		restarts++;
		for (k : 0 .. CLIENTS - 1) {
			has[AT(k, i)] = 0;
			moved[AT(k, i)] = 0;
#ifdef QUEUE
			wish[AT(k, i)] = 0;
#endif
#ifndef NO_QUARANTINE
			young[i] = (phase[k] == ASKS || phase[k] == HOLDS -> young[i] | 1 << k : young[i])
#endif
		};
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#endif
#ifdef QUEUE
	/* a slot is free for one that waits: settle.lua */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(i, 0, SERVERS - 1);
		r = wish[AT(c, i)];
		if
		:: r > 0 && has[AT(c, i)] == 0 ->
		take(c, i, r);
		if
		:: has[AT(c, i)] > 0 ->
			wish[AT(c, i)] = 0;
			told[AT(c, i)] = TAKE(has[AT(c, i)], NUMBER_OF(r))
		:: else -> skip
		fi;
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
	/* the message comes, or is lost */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(i, 0, SERVERS - 1);
		if
		:: told[AT(c, i)] > 0 ->
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
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
	/* a heartbeat */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(i, 0, SERVERS - 1);
		if
		:: phase[c] == ASKS && (vote[AT(c, i)] == NO || vote[AT(c, i)] == PENDING) && asked[AT(c, i)] == 0 ->
		send(c, i, TAKE(slot[c], moves[c]));
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#endif
	/* votes for different slots are moved */
	:: atomic {
		PICK(c, 0, MOST_ACTIVE);
		PICK(s, 1, SLOTS);
		if
		:: phase[c] == ASKS && moves[c] < MOVES && ANY(c) > 0 && VOTES(c, s) < MAJORITY ->
		moves[c] = moves[c] + 1;
		slot[c] = s;
		for (i : 0 .. SERVERS - 1) {
			if
			:: vote[AT(c, i)] != slot[c] ->
#ifndef EAGER
				vote[AT(c, i)] = PENDING;
#endif
				send(c, i, TAKE(slot[c], moves[c]))
			:: else -> skip
			fi
		};
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
	/* enough votes */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		PICK(s, 1, SLOTS);
		if
		:: phase[c] == ASKS && HAS_QUORUM(c, s) ->
		slot[c] = s;
		believe(c);
#ifdef RENEW
		put_back(c);
#endif
		for (k : 0 .. SERVERS - 1) {
			vote[AT(c, k)] = PENDING
		};
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#ifdef RENEW
	/* a renewal */
	:: atomic {
		PICK(c, 0, MOST_ACTIVE);
		if
		:: phase[c] == HOLDS && moves[c] != 9 ->
		moves[c] = 9; /* a round is under way */
		begin_round(c);
		for (k : 0 .. SERVERS - 1) {
			vote[AT(c, k)] = PENDING;
			send(c, k, EXTEND)
		};
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		if
		:: phase[c] == HOLDS && moves[c] == 9 && IS_KEPT(c) ->
		moves[c] = 0;
		end_round(c);
		put_back(c);
		for (k : 0 .. SERVERS - 1) {
			vote[AT(c, k)] = PENDING
		};
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
#endif
#ifdef NARROW
	:: is_third = 0
#endif
	/* the end */
	:: atomic {
		PICK(c, 0, CLIENTS - 1);
		if
		:: phase[c] == ASKS || phase[c] == HOLDS ->
		end_attempt(c);
		c_code { canonical(); }
		:: else -> skip
		fi;
		done()
	}
	od
}
