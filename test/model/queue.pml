/*
 * Waiting for a lock on one server, and being told (redlock-protocol(7)).
 * See README for what is left out and why, ./check for how it is run.
 *
 * WAITERS, TTL, LEASE, DRIFT; FAULTS bounds how much is lost, late, repeated
 * or given up (without it: any number); STAYS adds the claim that a waiter
 * that stays has its turn.
 * One rule is left out by STALE, FROM_RECEIPT, NO_SETTLE, NO_HEARTBEAT.
 */
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef TTL
#define TTL 4
#endif
#ifndef LEASE
#define LEASE 3		/* of a grant that is told by a message */
#endif
#ifndef DRIFT
#define DRIFT 1		/* how much sooner a server's clock ends a lease */
#endif
#define VALID (TTL - DRIFT)
#define PLACES (2 * WAITERS)

/*
 * Who has a token is named by it, from 1; what is left of one that is done
 * with its token, GONE(of it).
 */
#define TOKEN(w) ((w) + 1)
#define GONE(w) ((w) + 1 + WAITERS)
#define NOBODY 0

byte owner, left;	/* KEY, and its lease by the server's clock */
byte queue[PLACES];	/* tokens, first come first; then NOBODY */
byte wish[WAITERS];	/* the last request's number that the server knows */
bool deaf[WAITERS];	/* the subscription is broken */

#define OUT 0		/* what a waiter does */
#define WAIT 1
#define HOLD 2
byte phase[WAITERS];
byte valid[WAITERS];	/* of the lock that it holds */
bool due[WAITERS];	/* a heartbeat */

/* A request's number is how many have been sent since, up to RECENT. */
#define RECENT 2
byte worth[WAITERS * RECENT];	/* what a grant of it is worth */
byte current[WAITERS];	/* that many last requests may still be answered */

#ifdef STAYS
bool tired[WAITERS];	/* comes again when time has passed */
#define IS_FRESH(w) !tired[w]
#else
#define IS_FRESH(w) true
#endif

#define NONE 0		/* the last request and its answer */
#define ASKED 1
#define GRANTED 2
#define REFUSED 3
byte slot[WAITERS];
byte late[WAITERS];	/* an older request under way: its number */
byte heard[WAITERS];	/* messages under way: a bit for each number */
bool ask_gone[WAITERS], release_gone[WAITERS]; /* of an earlier token */

#ifdef FAULTS
byte faults;
#define MAY_FAIL (faults < FAULTS)
#define FAIL faults++
#else
#define MAY_FAIL true
#define FAIL skip
#endif

hidden byte each, head, result, holders;

#define ABOUT(w, k) ((w) * RECENT + (k))
#define MINUS_ONE(x) x = (x > 0 -> x - 1 : 0)

inline done() {
	each = 0; head = 0; result = 0; holders = 0
}

inline check_exclusion() {
	holders = 0;
	for (each : 0 .. WAITERS - 1) {
		holders = holders + (phase[each] == HOLD && valid[each] > 0)
	}
	assert(holders <= 1)
}

#if WAITERS == 2
#define NOT_QUEUED(x) (queue[0] != x && queue[1] != x && queue[2] != x && queue[3] != x)
#else
#define NOT_QUEUED(x) (queue[0] != x && queue[1] != x && queue[2] != x && queue[3] != x && \
	queue[4] != x && queue[5] != x)
#endif

/* --- the server ---------------------------------------------------------- */

/* The place of a token, or PLACES. */
inline leave_queue(who) {
	result = PLACES;
	for (each : 0 .. PLACES - 1) {
		if
		:: queue[each] == who -> result = each
		:: else
		fi
	}
	if
	:: result < PLACES ->
		for (each : 0 .. PLACES - 2) {
			if
			:: each >= result -> queue[each] = queue[each + 1]
			:: else
			fi
		}
		queue[PLACES - 1] = NOBODY
	:: else
	fi
}

inline join_queue(who) {
	result = 0;
	for (each : 0 .. PLACES - 1) {
		if
		:: result == 0 && queue[each] == who -> result = 1
		:: result == 0 && queue[each] == NOBODY -> queue[each] = who; result = 1
		:: else
		fi
	}
}

/* As src/lua/settle.lua does it. */
inline settle(caller) {
	do
	:: queue[0] == NOBODY -> break
	:: queue[0] != NOBODY && owner != NOBODY ->
		head = queue[0];
		if
		:: head == caller || head <= WAITERS && !deaf[(head - 1) % WAITERS] -> break
		:: else -> leave_queue(head) /* it is away */
		fi
	:: queue[0] != NOBODY && owner == NOBODY ->
		head = queue[0];
		leave_queue(head);
		if
		:: head == caller ->
			owner = head;
			left = TTL
		:: head != caller && head <= WAITERS && !deaf[(head - 1) % WAITERS] ->
			owner = head;
			left = LEASE;
			heard[head - 1] = heard[head - 1] | (1 << wish[head - 1])
		:: else /* nobody has received it: undone */
		fi
	od
}

/* result: whether it is granted */
inline acquire(who) {
	if
	:: owner == who -> left = TTL; leave_queue(who)
	:: owner == NOBODY && queue[0] == NOBODY -> owner = who; left = TTL
	:: else -> join_queue(who); settle(who)
	fi;
	result = (owner == who)
}

inline release(who) {
	if
	:: owner == who -> owner = NOBODY; left = 0
	:: else
	fi;
	leave_queue(who);
#ifndef NO_SETTLE
	settle(NOBODY);
#endif
	/* nobody is left waiting for a KEY that is free, nor a place behind */
	assert(owner != NOBODY || queue[0] == NOBODY);
	assert(NOT_QUEUED(who))
}

/* Requests arrive, in any order but that of one connection. */
proctype link(byte w)
{
	do
	:: d_step { slot[w] == ASKED ->
		wish[w] = 0;
		acquire(TOKEN(w));
		slot[w] = (result -> GRANTED : REFUSED);
		done() }
	:: d_step { late[w] > 0 ->
		wish[w] = (late[w] == 3 -> 0 : late[w]);
		late[w] = 0;
		acquire(TOKEN(w));
		done() }
	:: d_step { ask_gone[w] -> ask_gone[w] = false; acquire(GONE(w)); done() }
	:: d_step { release_gone[w] ->
		release_gone[w] = false; release(GONE(w)); done() }
	od
}

/* --- faults -------------------------------------------------------------- */

/* Fairness makes a process that could go on do so: by this, what may be need not. */
#ifdef STAYS
#define NEED_NOT(may) :: d_step { (may) -> skip }
#else
#define NEED_NOT(may)
#endif

proctype trouble(byte w)
{
	do
	NEED_NOT(true)
	:: d_step { MAY_FAIL && slot[w] == ASKED -> slot[w] = NONE; FAIL }
	:: d_step { MAY_FAIL && slot[w] >= GRANTED -> slot[w] = NONE; FAIL }
	:: d_step { MAY_FAIL && late[w] > 0 -> late[w] = 0; FAIL }
	:: d_step { MAY_FAIL && ask_gone[w] -> ask_gone[w] = false; FAIL }
	:: d_step { MAY_FAIL && release_gone[w] -> release_gone[w] = false; FAIL }
	:: d_step { MAY_FAIL && (heard[w] & 1) -> heard[w] = heard[w] & 6; FAIL }
	:: d_step { MAY_FAIL && (heard[w] & 2) -> heard[w] = heard[w] & 5; FAIL }
	:: d_step { MAY_FAIL && (heard[w] & 4) -> heard[w] = heard[w] & 3; FAIL }
	:: d_step { MAY_FAIL && phase[w] == WAIT && !deaf[w] -> deaf[w] = true; FAIL }
	/* its connection has died, and it may arrive yet */
	:: d_step { MAY_FAIL && slot[w] == ASKED && late[w] == 0 ->
		slot[w] = NONE; late[w] = 3; FAIL }
	od
}

/* --- waiters ------------------------------------------------------------- */

/* Numbers the requests anew, with one more behind them. */
inline ask(w) {
	heard[w] = ((heard[w] << 1) & 6) | (heard[w] & 4);
	wish[w] = (wish[w] < RECENT -> wish[w] + 1 : RECENT);
	late[w] = (late[w] == 3 -> 1 : (late[w] == 1 -> RECENT : late[w]));
	current[w] = (current[w] < RECENT -> current[w] + 1 : RECENT);
	worth[ABOUT(w, 1)] = worth[ABOUT(w, 0)];
	worth[ABOUT(w, 0)] = VALID;
	slot[w] = ASKED;
	due[w] = false;
	done()
}

/* It holds the lock for so long as the result says, or else will ask again. */
inline take(w) {
	slot[w] = NONE;
	heard[w] = 0;
	current[w] = 0;
	if
	:: result > 0 ->
		phase[w] = HOLD;
		valid[w] = result;
		worth[ABOUT(w, 0)] = 0;
		worth[ABOUT(w, 1)] = 0;
		check_exclusion()
	:: else -> due[w] = true
	fi;
	done()
}

#define LEFT_OF(x) ((x) > TTL - LEASE -> (x) - (TTL - LEASE) : 0)
#ifdef FROM_RECEIPT
#define TIME(w, k) (LEASE - DRIFT)
#else
#define TIME(w, k) (k < RECENT -> LEFT_OF(worth[ABOUT(w, (k < RECENT -> k : 0))]) : 0)
#endif

inline hear(w, k) {
#ifdef STALE		/* news of the newest request */
	result = TIME(w, 0);
	take(w)
#else
	if
	:: k < current[w] ->
		result = TIME(w, k);
		current[w] = k;
		if
		:: result > 0 -> take(w)
		:: else
		fi
	:: else
	fi;
	done()
#endif
}

/* A message repeats itself: that is a fault. */
#define HEARS(w, k) \
	:: d_step { phase[w] == WAIT && (heard[w] & (1 << k)) -> \
		heard[w] = heard[w] & (7 - (1 << k)); hear(w, k) } \
	:: d_step { MAY_FAIL && phase[w] == WAIT && (heard[w] & (1 << k)) -> \
		FAIL; hear(w, k) }

/* What the token has, and what is under way, is another's from here. */
inline leave(w) {
	for (each : 0 .. PLACES - 1) {
		queue[each] = (queue[each] == TOKEN(w) -> GONE(w) : queue[each])
	}
	owner = (owner == TOKEN(w) -> GONE(w) : owner);
	ask_gone[w] = (slot[w] == ASKED || late[w] > 0);
	release_gone[w] = true;
	phase[w] = OUT;
	valid[w] = 0;
	slot[w] = NONE;
	late[w] = 0;
	heard[w] = 0;
	current[w] = 0;
	wish[w] = 0;
	deaf[w] = false;
	due[w] = false;
#ifdef STAYS
	tired[w] = true;
#endif
	worth[ABOUT(w, 0)] = 0;
	worth[ABOUT(w, 1)] = 0;
	done()
}

#define IS_QUIET(w) (!ask_gone[w] && !release_gone[w] && owner != GONE(w) && NOT_QUEUED(GONE(w)))
#ifdef STAYS
#define GIVES_UP(w) (w) > 0
#else
#define GIVES_UP(w) true
#endif

proctype waiter(byte w)
{
	do
	:: d_step { phase[w] == OUT && IS_QUIET(w) && IS_FRESH(w) -> phase[w] = WAIT; ask(w) }
	:: d_step { phase[w] == WAIT && due[w] && slot[w] != ASKED && !deaf[w] -> ask(w) }
	:: d_step { phase[w] == WAIT && slot[w] == GRANTED ->
		result = worth[ABOUT(w, 0)]; take(w) }
	:: d_step { phase[w] == WAIT && slot[w] == REFUSED ->
		slot[w] = NONE; current[w] = (current[w] > 0 -> 1 : 0) }
	HEARS(w, 0)
	HEARS(w, 1)
	HEARS(w, 2)
	:: d_step { phase[w] == WAIT && deaf[w] -> deaf[w] = false; due[w] = true }
	:: d_step { phase[w] == HOLD -> leave(w) }
	NEED_NOT(w > 0 && phase[w] != WAIT)
	:: d_step { MAY_FAIL && phase[w] == WAIT && GIVES_UP(w) -> leave(w); FAIL }
	od
}

/* --- time ---------------------------------------------------------------- */

inline lease_ends() {
	owner = NOBODY;
	left = 0
}

/* With STAYS what is under way comes before time passes; else that is a fault. */
#ifdef STAYS
#define IS_CALM(w) (slot[w] == NONE && late[w] == 0 && heard[w] == 0 && (phase[w] != WAIT || !due[w] && !deaf[w]) && \
	!ask_gone[w] && !release_gone[w])
#if WAITERS == 2
#define CALM (IS_CALM(0) && IS_CALM(1))
#else
#define CALM (IS_CALM(0) && IS_CALM(1) && IS_CALM(2))
#endif
#else
#define CALM true
#endif

proctype clock()
{
	do
	:: d_step { CALM || MAY_FAIL ->
		if
		:: CALM
		:: else -> FAIL
		fi;
		MINUS_ONE(left);
		if
		:: left == 0 -> owner = NOBODY
		:: else
		fi;
		for (each : 0 .. WAITERS - 1) {
			MINUS_ONE(valid[each]);
			MINUS_ONE(worth[ABOUT(each, 0)]);
			MINUS_ONE(worth[ABOUT(each, 1)]);
#ifdef STAYS
			tired[each] = false;
#endif
#ifndef NO_HEARTBEAT
			due[each] = (phase[each] == WAIT);
#endif
		}
		done() }
	:: d_step { left > 0 && left <= DRIFT -> lease_ends() }
	od
}

init {
	atomic {
		run link(0); run waiter(0); run trouble(0);
		run link(1); run waiter(1); run trouble(1);
#if WAITERS > 2
		run link(2); run waiter(2); run trouble(2);
#endif
		run clock()
	}
}

#ifdef STAYS
ltl has_its_turn { [] (phase[0] == WAIT -> <> (phase[0] != WAIT)) }
#endif
