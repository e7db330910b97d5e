/*
 * Several keys at once (redlock-run(1), --also): all or none.
 * See README for what is left out and why, ./check for how it is run.
 *
 * KEYS, CLIENTS; TTL and DRIFT (without TTL no lease ends, nor does time pass);
 * FAULTS bounds how many give up (without it: none). STAYS adds the claim that
 * client 0, which does not give up, has its turn; with it a tick finds all
 * requests answered, all leases renewed, and nobody who has held for LONGEST.
 * With NO_WAIT (-n) each comes once, and goes without if a key is held.
 * One rule is left out by KEEPS_LARGER, NO_RENEWAL, NOT_MINIMUM, KEEPS_SOME;
 * with NO_WAIT by AT_ONCE.
 */
#ifndef KEYS
#define KEYS 2
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef DRIFT
#define DRIFT 1		/* how much sooner a server's clock ends a lease */
#endif
#ifdef TTL
#define VALID (TTL - DRIFT)
#else
#define TTL 1
#define VALID 1
#define UNTIMED
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef LONGEST
#define LONGEST (TTL + 1)
#endif

/* A key is a lock as queue.pml has it: who holds it, and who waits in line. */
#define NOBODY 0
#define ME(c) ((c) + 1)
byte holder[KEYS], left[KEYS];
byte queue[KEYS * CLIENTS];	/* first come first; then NOBODY */

/* What a client does. */
#define OUT 0
#define TRY 1		/* it has asked for all that it has not, at once */
#define WAIT 2		/* for the first one that was refused */
#define AGAIN 3		/* something was lost, and will be asked for anew */
#define HOLD 4		/* COMMAND runs */
#define DONE 5		/* with NO_WAIT: it went without */
byte phase[CLIENTS];
byte wants[CLIENTS], has[CLIENTS];	/* a bit for each key */
byte waits[CLIENTS];	/* for this key */
byte valid[CLIENTS * KEYS];	/* counted from the request, or a message's grant */

#define NONE 0		/* what is under way between a client and a key */
#define ASKED 1
#define QUEUED 2
#define GRANTED 3
#define REFUSED 4
#define LEAVING 5	/* a release, not yet executed */
#define ASKED_LEAVING 6	/* after a request that is not either */
byte reply[CLIENTS * KEYS];

byte faults;
#ifdef STAYS
bool due[CLIENTS];	/* its renewals */
byte held_for[CLIENTS];
#endif

hidden byte each, other, first, result;

#define AT(c, k) ((c) * KEYS + (k))
#define IN(set, k) ((set) & (1 << (k)))
#define MINUS_ONE(x) x = (x > 0 -> x - 1 : 0)

inline done() {
	each = 0; other = 0; first = 0; result = 0
}

/* Whether COMMAND may live: until the first of its leases is over. */
#define ENDS(c, k) (IN(wants[c], k) && valid[AT(c, k)] == 0)
#define LASTS(c, k) (IN(wants[c], k) && valid[AT(c, k)] > 0)
#if KEYS == 2
#define ANY_OF(what, c) (what(c, 0) || what(c, 1))
#else
#define ANY_OF(what, c) (what(c, 0) || what(c, 1) || what(c, 2))
#endif
#ifdef NOT_MINIMUM	/* of the last one */
#define RUNS(c) (phase[c] == HOLD && ANY_OF(LASTS, c))
#else
#define RUNS(c) (phase[c] == HOLD && !ANY_OF(ENDS, c))
#endif

/* Who runs holds all keys that it wants: so nobody else runs with one of them. */
inline check_holders() {
	for (each : 0 .. KEYS - 1) {
		result = 0;
		for (other : 0 .. CLIENTS - 1) {
			result = result + (RUNS(other) && IN(wants[other], each));
			assert(!(RUNS(other) && IN(wants[other], each)) ||
				holder[each] == ME(other))
		}
		assert(result <= 1)
	}
	each = 0; other = 0; result = 0
}

/* --- the servers ----------------------------------------------------------- */

#define LAST(k) ((k) * CLIENTS + CLIENTS - 1)

inline pop(k) {
	for (other : (k) * CLIENTS .. LAST(k) - 1) {
		queue[other] = queue[other + 1]
	}
	queue[LAST(k)] = NOBODY
}

inline settle(k) {
	if
	:: holder[k] == NOBODY && queue[(k) * CLIENTS] != NOBODY ->
		holder[k] = queue[(k) * CLIENTS];
		left[k] = TTL;
		result = AT(holder[k] - 1, k);
		valid[result] = VALID;
		reply[result] = (reply[result] == QUEUED -> GRANTED : reply[result]);
		pop(k)
	:: else
	fi
}

inline join_queue(c, k) {
	result = LAST(k);
	for (other : (k) * CLIENTS .. LAST(k)) {
		result = (queue[other] == NOBODY && other < result -> other : result)
	}
	queue[result] = ME(c)
}

inline leave_queue(c, k) {
	result = 0;
	for (other : (k) * CLIENTS .. LAST(k)) {
		result = (queue[other] == ME(c) -> 1 : result);
		queue[other] = (result && other < LAST(k) -> queue[(other + 1) % (KEYS * CLIENTS)] :
			(result -> NOBODY : queue[other]))
	}
}

inline acquire(c, k) {
	if
	:: holder[k] == NOBODY ->
		holder[k] = ME(c);
		left[k] = TTL;
		reply[AT(c, k)] = (reply[AT(c, k)] == ASKED -> GRANTED : LEAVING)
	:: holder[k] != NOBODY && reply[AT(c, k)] == ASKED_LEAVING -> reply[AT(c, k)] = LEAVING
	:: holder[k] != NOBODY && reply[AT(c, k)] == ASKED && phase[c] == WAIT ->
		join_queue(c, k); reply[AT(c, k)] = QUEUED
	:: else -> reply[AT(c, k)] = REFUSED
	fi
}

inline release(c, k) {
	reply[AT(c, k)] = NONE;
	valid[AT(c, k)] = 0;
	leave_queue(c, k);
	if
	:: holder[k] == ME(c) -> holder[k] = NOBODY; left[k] = 0; settle(k)
	:: else
	fi;
	check_holders()
}

#define SERVES(k) \
	:: d_step { reply[AT(c, k)] == ASKED || reply[AT(c, k)] == ASKED_LEAVING -> \
		acquire(c, k); done() } \
	:: d_step { reply[AT(c, k)] == LEAVING -> release(c, k); done() }

/* What one client has asked, in any order of keys. */
proctype link(byte c)
{
end:	do
	SERVES(0)
	SERVES(1)
#if KEYS > 2
	SERVES(2)
#endif
	od
}

/* --- clients ---------------------------------------------------------------- */

#if KEYS == 2
#define FOR_ALL(what, c) (what(c, 0) && what(c, 1))
#else
#define FOR_ALL(what, c) (what(c, 0) && what(c, 1) && what(c, 2))
#endif
#define IS_QUIET(c, k) (reply[AT(c, k)] == NONE)
#define HAS_ANSWER(c, k) (reply[AT(c, k)] != ASKED && reply[AT(c, k)] < LEAVING)
/* nothing is on its way to a key that would be asked for */
#define MAY_ASK(c, k) (IN(has[c], k) || !IN(wants[c], k) || reply[AT(c, k)] == NONE || (k) == waits[c])

inline give_back(c, k) {
	reply[AT(c, k)] = (reply[AT(c, k)] == ASKED -> ASKED_LEAVING :
		(IN(has[c], k) || reply[AT(c, k)] == QUEUED || reply[AT(c, k)] == GRANTED -> LEAVING :
		(reply[AT(c, k)] == REFUSED -> NONE : reply[AT(c, k)])));
	has[c] = (IN(has[c], k) -> has[c] - (1 << (k)) : has[c])
}

inline give_all_back(c) {
	for (each : 0 .. KEYS - 1) {
		give_back(c, each)
	}
}

/* All that it has not. */
inline ask(c) {
	phase[c] = TRY;
	for (each : 0 .. KEYS - 1) {
		if
		:: IN(wants[c], each) && !IN(has[c], each) ->
			reply[AT(c, each)] = ASKED;
			valid[AT(c, each)] = VALID
		:: else
		fi
	}
	done()
}

/* What was granted it has, unless the lease is over: that is given back. */
inline take(c) {
	for (each : 0 .. KEYS - 1) {
		if
		:: reply[AT(c, each)] == GRANTED && valid[AT(c, each)] > 0 ->
			reply[AT(c, each)] = NONE;
			has[c] = has[c] | (1 << each)
		:: reply[AT(c, each)] == GRANTED && valid[AT(c, each)] == 0 ->
			reply[AT(c, each)] = LEAVING
		:: else
		fi
	}
}

inline leave(c) {
#ifdef KEEPS_SOME	/* a grant that it has not yet read is not given back */
	for (each : 0 .. KEYS - 1) {
		reply[AT(c, each)] = (reply[AT(c, each)] == GRANTED -> NONE : reply[AT(c, each)])
	}
#endif
	give_all_back(c);
	phase[c] = OUT;
	wants[c] = 0;
	waits[c] = 0;
#ifdef STAYS
	due[c] = false;
	held_for[c] = 0;
#endif
	done()
}

/* With NO_WAIT one that was refused its first key goes without it. */
#ifdef NO_WAIT
#ifdef AT_ONCE
#define GOES_WITHOUT(c, k) true
#else
#define GOES_WITHOUT(c, k) ((wants[c] & ((1 << (k)) - 1)) == 0)
#endif
#else
#define GOES_WITHOUT(c, k) false
#endif

/* One of them may run, where all have asked. */
inline go_without(c) {
	leave(c);
	phase[c] = DONE;
	result = 0;
	for (each : 0 .. CLIENTS - 1) {
		result = (phase[each] != DONE -> 1 : result)
	}
	assert(result);
	done()
}

/* All is answered: COMMAND is started, or the first that was refused waited for. */
inline decide(c) {
	take(c);
	first = KEYS;
	for (each : 0 .. KEYS - 1) {
		first = (first == KEYS && IN(wants[c], each) && !IN(has[c], each) -> each : first);
		reply[AT(c, each)] = (reply[AT(c, each)] == REFUSED -> NONE : reply[AT(c, each)])
	}
	if
	:: first == KEYS -> phase[c] = HOLD; check_holders()
	:: first < KEYS && GOES_WITHOUT(c, first) -> go_without(c)
	:: first < KEYS && !GOES_WITHOUT(c, first) ->
		phase[c] = WAIT;
		waits[c] = first;
#ifndef KEEPS_LARGER
		for (each : 0 .. KEYS - 1) {
			if
			:: each > first -> give_back(c, each)
			:: else
			fi
		}
		assert(has[c] < (1 << first))
#endif
	fi;
	done()
}

#define HAS_LOST(c, k) (IN(has[c], k) && valid[AT(c, k)] == 0)
#ifdef NO_RENEWAL
#define IS_RENEWED(c, k) (IN(has[c], k) && phase[c] == HOLD)
#else
#define IS_RENEWED(c, k) IN(has[c], k)
#endif
#define MAY_RENEW(c, k) (IS_RENEWED(c, k) && valid[AT(c, k)] > 0 && valid[AT(c, k)] < VALID)

inline renew(c, k) {
	if
	:: MAY_RENEW(c, k) && holder[k] == ME(c) -> left[k] = TTL; valid[AT(c, k)] = VALID
	:: else
	fi
}

#ifdef STAYS
#define MAY_GIVE_UP(c) ((c) > 0 && faults < FAULTS)
#else
#define MAY_GIVE_UP(c) (faults < FAULTS)
#endif

inline give_lost_back(c) {
	for (each : 0 .. KEYS - 1) {
		if
		:: HAS_LOST(c, each) || reply[AT(c, each)] == REFUSED -> give_back(c, each)
		:: else
		fi
	}
	phase[c] = AGAIN;
	waits[c] = 0;
	done()
}

#define WANTS(set) \
	:: d_step { phase[c] == OUT && FOR_ALL(IS_QUIET, c) -> \
		for (each : 0 .. KEYS - 1) { assert(holder[each] != ME(c)) } \
		wants[c] = set; ask(c) }
#define RENEWS(k) \
	:: d_step { MAY_RENEW(c, k) -> renew(c, k); done() }

/* It has been refused an earlier one, or may yet be. */
#define GIVES_BACK(c, k) (phase[c] == TRY || reply[AT(c, k)] == LEAVING)

proctype client(byte c)
{
#ifdef NO_WAIT
end:
#endif
	do
	WANTS(1)
	WANTS(2)
	WANTS(3)
#if KEYS > 2
	WANTS(4)
	WANTS(5)
	WANTS(6)
	WANTS(7)
#endif
	:: d_step { phase[c] == TRY && FOR_ALL(HAS_ANSWER, c) && !ANY_OF(HAS_LOST, c) -> decide(c) }
	:: d_step { phase[c] == TRY && FOR_ALL(HAS_ANSWER, c) && ANY_OF(HAS_LOST, c) -> take(c); give_lost_back(c) }
	:: d_step { phase[c] == WAIT && reply[AT(c, waits[c])] == NONE ->
		reply[AT(c, waits[c])] = ASKED; valid[AT(c, waits[c])] = VALID }
	:: d_step { phase[c] == WAIT && reply[AT(c, waits[c])] == GRANTED &&
			!ANY_OF(HAS_LOST, c) && FOR_ALL(MAY_ASK, c) ->
		take(c);
		if
		:: IN(has[c], waits[c]) -> ask(c)
		:: else
		fi;
		done() }
	:: d_step { phase[c] == WAIT && reply[AT(c, waits[c])] == GRANTED && ANY_OF(HAS_LOST, c) ->
		take(c); give_lost_back(c) }
	:: d_step { phase[c] == AGAIN && FOR_ALL(IS_QUIET, c) -> ask(c) }
#ifndef NO_WAIT
	:: d_step { phase[c] == HOLD -> leave(c) }
#else
	:: d_step { phase[c] == WAIT && reply[AT(c, waits[c])] == QUEUED &&
			!GIVES_BACK(holder[waits[c]] - 1, waits[c]) ->
		go_without(c) }
#endif
#ifdef STAYS
	:: d_step { due[c] ->
		for (each : 0 .. KEYS - 1) { renew(c, each) }
		due[c] = false; done() }
#else
	RENEWS(0)
	RENEWS(1)
#if KEYS > 2
	RENEWS(2)
#endif
#endif
	:: d_step { MAY_GIVE_UP(c) && phase[c] > OUT && phase[c] < HOLD -> leave(c); faults++ }
	od
}

/* --- time ---------------------------------------------------------------- */

#define IS_CALM_AT(c, k) (reply[AT(c, k)] == NONE || reply[AT(c, k)] == QUEUED)
#define IS_CALM(c) (FOR_ALL(IS_CALM_AT, c) && (phase[c] == OUT || phase[c] == HOLD || \
	phase[c] == WAIT && reply[AT(c, waits[c])] == QUEUED && !ANY_OF(HAS_LOST, c)) && \
	!due[c] && held_for[c] < LONGEST)
#ifndef STAYS
#define CALM true
#elif CLIENTS == 2
#define CALM (IS_CALM(0) && IS_CALM(1))
#else
#define CALM (IS_CALM(0) && IS_CALM(1) && IS_CALM(2))
#endif

#define ENDS_SOONER(k) \
	:: d_step { left[k] > 0 && left[k] <= DRIFT -> \
		left[k] = 0; holder[k] = NOBODY; settle(k); check_holders(); done() }

proctype clock()
{
	do
	:: d_step { CALM ->
		for (each : 0 .. CLIENTS * KEYS - 1) {
			MINUS_ONE(valid[each])
		}
		for (first : 0 .. KEYS - 1) {
			MINUS_ONE(left[first]);
			holder[first] = (left[first] == 0 -> NOBODY : holder[first]);
			settle(first)
		}
#ifdef STAYS
		for (each : 0 .. CLIENTS - 1) {
			due[each] = (has[each] > 0);
			held_for[each] = (phase[each] == HOLD -> held_for[each] + 1 : 0)
		}
#endif
		check_holders();
		done() }
#ifndef STAYS
	ENDS_SOONER(0)
	ENDS_SOONER(1)
#if KEYS > 2
	ENDS_SOONER(2)
#endif
#endif
	od
}

init {
	atomic {
		run link(0); run client(0);
		run link(1); run client(1);
#if CLIENTS > 2
		run link(2); run client(2);
#endif
#ifndef UNTIMED
		run clock()
#endif
	}
}

#ifdef STAYS
ltl has_its_turn { [] ((phase[0] >= TRY && phase[0] <= AGAIN) -> <> (phase[0] == HOLD)) }
#endif
