/*
 * Waiting for a lock on one server, and being told (redlock-protocol(7)).
 * See README for what is left out and why, ./check for how it is run.
 *
 * WAITERS, TTL, LEASE, DRIFT; FAULTS bounds how much is lost, late, repeated
 * or given up (without it: any number); STAYS adds the claim that a waiter
 * that stays has its turn. With RENEW a holder that was told by a message
 * renews its first lease. With ONE_TOKEN the waiters have one token, for a
 * reentrant lock. With BESIDE waiter 0 takes nothing: it waits until KEY is free.
 * With either there is a rival, which has KEY at once or not at all.
 * One rule is left out by STALE, FROM_RECEIPT, WHOLE_TTL, FROM_FIRST, NO_SETTLE,
 * NO_HEARTBEAT; with ONE_TOKEN by PLACE_OF_TOKEN, ANY_HOLD, SHORTENS; with BESIDE
 * by UNTOLD, STALE_TOO.
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
 * A place, and a hold of KEY, are named by whose request it was, from 1; what is
 * left of one that is done with it, by GONE(of it). Each has a token of its own,
 * or with ONE_TOKEN all the same.
 */
#define PLACE(w) ((w) + 1)
#define GONE(w) ((w) + 1 + WAITERS)
#define NOBODY 0
#define RIVAL 128	/* its hold */
#define HOLD_OF(p) (1 << ((p) - 1))

byte holds, left;	/* KEY: a bit for each hold; its lease by the server's clock */
byte queue[PLACES];	/* places, first come first; then NOBODY */
byte wish[WAITERS];	/* the last request's number that the server knows */
byte since[WAITERS];	/* how long ago it came, up to TTL - LEASE */
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
byte reply[WAITERS];
byte late[WAITERS];	/* an older request under way: its number */
byte heard[WAITERS];	/* messages under way: a bit for each number */
byte ends[WAITERS * RECENT];	/* how long after the request the grant does */
#ifdef RENEW
bool first[WAITERS];	/* it holds the lock by a message, and has not renewed it */
#endif
#if defined(ONE_TOKEN) || defined(BESIDE)
#define WITH_RIVAL
byte rival;		/* its validity */
#endif
bool ask_gone[WAITERS], release_gone[WAITERS]; /* of an earlier token */

#ifdef FAULTS
byte faults;
#define MAY_FAIL (faults < FAULTS)
#define FAIL faults++
#else
#define MAY_FAIL true
#define FAIL skip
#endif

hidden byte each, head, result, holders, taken, before;

#define ABOUT(w, k) ((w) * RECENT + (k))
#define MINUS_ONE(x) x = (x > 0 -> x - 1 : 0)

inline done() {
	each = 0; head = 0; result = 0; holders = 0; taken = 0; before = 0
}

#define BELIEVES(w) (phase[w] == HOLD && valid[w] > 0)

inline check_exclusion() {
	holders = 0;
#ifdef ONE_TOKEN
	for (each : 0 .. WAITERS - 1) {
		holders = (BELIEVES(each) -> 1 : holders);
		assert(!BELIEVES(each) || holds & HOLD_OF(PLACE(each)))
	}
#else
	for (each : 0 .. WAITERS - 1) {
		holders = holders + BELIEVES(each)
	}
#endif
#ifdef WITH_RIVAL
	holders = holders + (rival > 0);
#endif
	assert(holders <= 1)
}

#if WAITERS == 2
#define NOT_QUEUED(x) (queue[0] != x && queue[1] != x && queue[2] != x && queue[3] != x)
#else
#define NOT_QUEUED(x) (queue[0] != x && queue[1] != x && queue[2] != x && queue[3] != x && \
	queue[4] != x && queue[5] != x)
#endif

/* --- the server ---------------------------------------------------------- */

#define LISTENS(p) ((p) <= WAITERS && !deaf[((p) - 1) % WAITERS])

#ifdef ONE_TOKEN
#define HAS_IT(p) (holds != 0 && holds != RIVAL)
#define FITS(p) (holds != RIVAL)
#else
#define HAS_IT(p) (holds == HOLD_OF(p))
#define FITS(p) (holds == 0)
#endif
#ifdef BESIDE
#define TAKES(p) ((p) != PLACE(0) && (p) != GONE(0))
#else
#define TAKES(p) true
#endif

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

inline grant(who, lease) {
	holds = holds | HOLD_OF(who);
#ifdef SHORTENS
	left = lease
#else
	left = (left > lease -> left : lease)
#endif
}

/* The first place that takes something, or NOBODY. */
inline find_head() {
	head = NOBODY;
	for (each : 0 .. PLACES - 1) {
		head = (head == NOBODY && TAKES(queue[each]) -> queue[each] : head)
	}
}

#define ABOUT_WISH(p) ABOUT((p) - 1, (wish[(p) - 1] < RECENT -> wish[(p) - 1] : 0))

/* It is told when the grant ends, from when its request came. */
inline tell(who) {
	if
	:: phase[who - 1] == WAIT ->
		heard[who - 1] = heard[who - 1] | (1 << wish[who - 1]);
		ends[ABOUT_WISH(who)] = (wish[who - 1] < RECENT ->
			since[who - 1] + LEASE : ends[ABOUT_WISH(who)])
	:: else /* it has the lock, and reads no message more */
	fi;
	since[who - 1] = 0
}

/* As src/lock/lua/settle.lua does it. taken: the caller only waits, and KEY was free. */
inline settle(caller) {
	do
	:: queue[0] == NOBODY -> break
#ifdef BESIDE
	:: queue[0] != NOBODY && !TAKES(queue[0]) && holds == 0 ->
		head = queue[0];
		leave_queue(head);
		if
		:: head == caller -> taken = 1
#ifndef UNTOLD
		:: head != caller && LISTENS(head) -> tell(head)
#endif
		:: else
		fi
#endif
	:: queue[0] != NOBODY && (TAKES(queue[0]) || holds != 0) ->
		find_head();
		if
		:: head == NOBODY -> break
		:: head != NOBODY && !FITS(head) ->
			if
			:: head == caller || LISTENS(head) -> break
			:: else -> leave_queue(head) /* it is away */
			fi
		:: head != NOBODY && FITS(head) ->
			leave_queue(head);
			if
			:: head == caller -> grant(head, TTL)
			:: head != caller && LISTENS(head) -> grant(head, LEASE); tell(head)
			:: else /* nobody has received it: undone */
			fi
		fi
	od
}

/* result: whether it is granted */
inline acquire(who) {
	if
	:: TAKES(who) && HAS_IT(who) -> grant(who, TTL); leave_queue(who)
	:: !(TAKES(who) && HAS_IT(who)) && queue[0] == NOBODY && FITS(who) ->
		if
		:: TAKES(who) -> grant(who, TTL)
		:: else -> taken = 1
		fi
	:: else -> join_queue(who); settle(who)
	fi;
	result = (taken || holds & HOLD_OF(who))
}

/* Who listens and has a place, but the one that leaves. */
inline note_places(who) {
	before = 0;
	for (each : 0 .. PLACES - 1) {
		before = (queue[each] != NOBODY && queue[each] != who && LISTENS(queue[each]) ->
			before | HOLD_OF(queue[each]) : before)
	}
}

/* They have it still, or have been told. */
#define HAS_TURN(w) (!NOT_QUEUED(PLACE(w)) || holds & HOLD_OF(PLACE(w)) || heard[w] != 0)
inline check_places() {
	for (each : 0 .. WAITERS - 1) {
		assert(!(before & HOLD_OF(PLACE(each))) || HAS_TURN(each))
	}
}

inline release(who) {
	note_places(who);
	if
	:: holds & HOLD_OF(who) -> holds = holds - HOLD_OF(who)
#ifdef ANY_HOLD		/* it counts down, whose hold it may be */
	:: !(holds & HOLD_OF(who)) && HAS_IT(who) ->
		each = (holds & 1 -> 1 : (holds & 2 -> 2 : (holds & 4 -> 4 : 8)));
		holds = holds - each
#endif
	:: else
	fi;
	left = (holds == 0 -> 0 : left);
	leave_queue(who);
#ifdef PLACE_OF_TOKEN
	leave_queue(PLACE(0)); leave_queue(PLACE(1));
#endif
#ifndef NO_SETTLE
	settle(NOBODY);
#endif
	/* nobody is left waiting for a KEY that is free, nor a place behind */
	assert(holds != 0 || queue[0] == NOBODY);
	assert(NOT_QUEUED(who));
	check_places();
	check_exclusion()
}

#ifdef FROM_FIRST	/* of its place, and not of the last request */
#define COMES(w) since[w] = (NOT_QUEUED(PLACE(w)) -> 0 : since[w])
#else
#define COMES(w) since[w] = 0
#endif

inline serve(w) {
	if
	:: phase[w] == HOLD -> /* an extension, if it is not too late for that */
		result = (holds & HOLD_OF(PLACE(w)));
		left = (result -> TTL : left)
	:: else ->
		COMES(w);
		acquire(PLACE(w))
	fi
}

/* Requests arrive, in any order but that of one connection. */
proctype link(byte w)
{
	do
	:: d_step { reply[w] == ASKED ->
		wish[w] = 0;
		serve(w);
		reply[w] = (result -> GRANTED : REFUSED);
		done() }
	:: d_step { late[w] > 0 && phase[w] != HOLD ->
		wish[w] = (late[w] == 3 -> 0 : late[w]);
		late[w] = 0;
		serve(w);
		done() }
	:: d_step { late[w] > 0 && phase[w] == HOLD -> late[w] = 0; acquire(PLACE(w)); done() }
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
	:: d_step { MAY_FAIL && reply[w] == ASKED -> reply[w] = NONE; FAIL }
	:: d_step { MAY_FAIL && reply[w] >= GRANTED -> reply[w] = NONE; FAIL }
	:: d_step { MAY_FAIL && late[w] > 0 -> late[w] = 0; FAIL }
	:: d_step { MAY_FAIL && ask_gone[w] -> ask_gone[w] = false; FAIL }
	:: d_step { MAY_FAIL && release_gone[w] -> release_gone[w] = false; FAIL }
	:: d_step { MAY_FAIL && (heard[w] & 1) -> heard[w] = heard[w] & 6; FAIL }
	:: d_step { MAY_FAIL && (heard[w] & 2) -> heard[w] = heard[w] & 5; FAIL }
	:: d_step { MAY_FAIL && (heard[w] & 4) -> heard[w] = heard[w] & 3; FAIL }
	:: d_step { MAY_FAIL && phase[w] == WAIT && !deaf[w] -> deaf[w] = true; FAIL }
	/* its connection has died, and it may arrive yet */
	:: d_step { MAY_FAIL && phase[w] == WAIT && reply[w] == ASKED && late[w] == 0 ->
		reply[w] = NONE; late[w] = 3; FAIL }
	od
}

/* --- waiters ------------------------------------------------------------- */

/* Numbers the requests anew, with one more after them. */
inline ask(w) {
	heard[w] = ((heard[w] << 1) & 6) | (heard[w] & 4);
	wish[w] = (wish[w] < RECENT -> wish[w] + 1 : RECENT);
	late[w] = (late[w] == 3 -> 1 : (late[w] == 1 -> RECENT : late[w]));
	current[w] = (current[w] < RECENT -> current[w] + 1 : RECENT);
	worth[ABOUT(w, 1)] = worth[ABOUT(w, 0)];
	worth[ABOUT(w, 0)] = VALID;
	ends[ABOUT(w, 1)] = ends[ABOUT(w, 0)];
	ends[ABOUT(w, 0)] = 0;
	reply[w] = ASKED;
	due[w] = false;
	done()
}

inline forget_requests(w) {
	heard[w] = 0;
	current[w] = 0;
	worth[ABOUT(w, 0)] = 0;
	worth[ABOUT(w, 1)] = 0;
	ends[ABOUT(w, 0)] = 0;
	ends[ABOUT(w, 1)] = 0
}

/* It holds the lock for so long as the result says, or else will ask again. */
inline take(w) {
	reply[w] = NONE;
	forget_requests(w);
	if
	:: result > 0 ->
		phase[w] = HOLD;
		valid[w] = result;
		check_exclusion()
	:: else -> due[w] = true
	fi;
	done()
}

/* What it has, and what is under way, is another's from here. */
inline leave(w) {
	for (each : 0 .. PLACES - 1) {
		queue[each] = (queue[each] == PLACE(w) -> GONE(w) : queue[each])
	}
	holds = (holds & HOLD_OF(PLACE(w)) -> holds - HOLD_OF(PLACE(w)) + HOLD_OF(GONE(w)) : holds);
	ask_gone[w] = (phase[w] == WAIT && reply[w] == ASKED || late[w] > 0);
	release_gone[w] = true;
	phase[w] = OUT;
	valid[w] = 0;
	reply[w] = NONE;
	late[w] = 0;
	wish[w] = 0;
	since[w] = 0;
	deaf[w] = false;
	due[w] = false;
#ifdef STAYS
	tired[w] = true;
#endif
#ifdef RENEW
	first[w] = false;
#endif
	forget_requests(w);
	done()
}

/* How long a grant lasts yet, of a request that was worth so much, by when it ends. */
#define LAST(k) ((k) < RECENT -> (k) : 0)
#define LEFT_OF(x, end) ((x) + (end) > TTL -> (x) + (end) - TTL : 0)
#define AT_MOST(x, most) ((x) < (most) -> (x) : (most))
#if defined(FROM_RECEIPT)
#define TIME(w, k) (LEASE - DRIFT)
#elif defined(WHOLE_TTL)
#define TIME(w, k) ((k) < RECENT -> worth[ABOUT(w, LAST(k))] : 0)
#elif defined(STALE)	/* news of the newest request */
#define TIME(w, k) AT_MOST(LEFT_OF(worth[ABOUT(w, 0)], ends[ABOUT(w, LAST(k))]), LEASE - DRIFT)
#else
#define TIME(w, k) ((k) < RECENT -> AT_MOST(LEFT_OF(worth[ABOUT(w, LAST(k))], \
	ends[ABOUT(w, LAST(k))]), LEASE - DRIFT) : 0)
#endif
#ifdef STALE
#define IS_CURRENT(w, k) true
#else
#define IS_CURRENT(w, k) ((k) < current[w])
#endif
#ifdef STALE_TOO
#define HAS_COME(w, k) ((k) < current[w] && worth[ABOUT(w, LAST(k))] > 0)
#else
#define HAS_COME(w, k) ((k) < RECENT && worth[ABOUT(w, LAST(k))] > 0)
#endif

inline hear(w, k) {
	if
#ifdef BESIDE		/* that KEY was free is news, however late */
	:: w == 0 && HAS_COME(w, k) -> leave(w)
	:: w == 0 && !HAS_COME(w, k)
#endif
	:: TAKES(PLACE(w)) && IS_CURRENT(w, k) ->
		result = TIME(w, k);
		current[w] = k;
		if
		:: result > 0 ->
			take(w);
#ifdef RENEW
			first[w] = true
#endif
		:: else
		fi
	:: TAKES(PLACE(w)) && !IS_CURRENT(w, k)
	fi;
	done()
}

/* A message repeats itself: that is a fault. */
#define HEARS(w, k) \
	:: d_step { phase[w] == WAIT && (heard[w] & (1 << k)) -> \
		heard[w] = heard[w] & (7 - (1 << k)); hear(w, k) } \
	:: d_step { MAY_FAIL && phase[w] == WAIT && (heard[w] & (1 << k)) -> \
		FAIL; hear(w, k) }

#define IS_QUIET(w) (!ask_gone[w] && !release_gone[w] && \
	!(holds & HOLD_OF(GONE(w))) && NOT_QUEUED(GONE(w)))
#ifdef STAYS
#define GIVES_UP(w) (w) > 0
#else
#define GIVES_UP(w) true
#endif

proctype waiter(byte w)
{
	do
	:: d_step { phase[w] == OUT && IS_QUIET(w) && IS_FRESH(w) -> phase[w] = WAIT; ask(w) }
	:: d_step { phase[w] == WAIT && due[w] && reply[w] != ASKED && !deaf[w] -> ask(w) }
	:: d_step { phase[w] == WAIT && reply[w] == GRANTED && TAKES(PLACE(w)) ->
		result = worth[ABOUT(w, 0)]; take(w) }
#ifdef BESIDE
	:: d_step { phase[w] == WAIT && reply[w] == GRANTED && !TAKES(PLACE(w)) -> leave(w) }
#endif
	:: d_step { phase[w] == WAIT && reply[w] == REFUSED ->
		reply[w] = NONE; current[w] = (current[w] > 0 -> 1 : 0) }
	HEARS(w, 0)
	HEARS(w, 1)
	HEARS(w, 2)
	:: d_step { phase[w] == WAIT && deaf[w] -> deaf[w] = false; due[w] = true }
	:: d_step { phase[w] == HOLD -> leave(w) }
#ifdef RENEW
	:: d_step { first[w] && valid[w] > 0 && reply[w] == NONE ->
		reply[w] = ASKED; worth[ABOUT(w, 0)] = VALID }
	:: d_step { first[w] && valid[w] > 0 && reply[w] == GRANTED ->
		reply[w] = NONE; first[w] = false; valid[w] = worth[ABOUT(w, 0)];
		worth[ABOUT(w, 0)] = 0; check_exclusion(); done() }
#endif
	NEED_NOT(w > 0 && phase[w] != WAIT)
	:: d_step { MAY_FAIL && phase[w] == WAIT && GIVES_UP(w) -> leave(w); FAIL }
	od
}

/* --- time ---------------------------------------------------------------- */

inline lease_ends() {
	holds = 0;
	left = 0
}

/* With STAYS what is under way comes before time passes; else that is a fault. */
#ifdef STAYS
#define IS_CALM(w) (reply[w] == NONE && late[w] == 0 && heard[w] == 0 && (phase[w] != WAIT || !due[w] && !deaf[w]) && \
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
		:: left == 0 -> holds = 0
		:: else
		fi;
		for (each : 0 .. WAITERS - 1) {
			MINUS_ONE(valid[each]);
			MINUS_ONE(worth[ABOUT(each, 0)]);
			MINUS_ONE(worth[ABOUT(each, 1)]);
			since[each] = (NOT_QUEUED(PLACE(each)) -> 0 : AT_MOST(since[each] + 1, TTL - LEASE));
#ifdef STAYS
			tired[each] = false;
#endif
#ifndef NO_HEARTBEAT
			due[each] = (phase[each] == WAIT);
#endif
		}
#ifdef WITH_RIVAL
		MINUS_ONE(rival);
#endif
		done() }
	:: d_step { left > 0 && left <= DRIFT -> lease_ends() }
	od
}

#ifdef WITH_RIVAL
/* Another, whose token is its own: it has KEY at once, or comes again. */
proctype another()
{
	do
	NEED_NOT(true)
	:: d_step { holds == 0 ->
		settle(NOBODY);
		if
		:: holds == 0 -> holds = RIVAL; left = TTL; rival = VALID; check_exclusion()
		:: else
		fi;
		done() }
	:: d_step { holds == RIVAL ->
		holds = 0; left = 0; rival = 0;
		settle(NOBODY);
		assert(holds != 0 || queue[0] == NOBODY);
		done() }
	od
}
#endif

init {
	atomic {
		run link(0); run waiter(0); run trouble(0);
		run link(1); run waiter(1); run trouble(1);
#if WAITERS > 2
		run link(2); run waiter(2); run trouble(2);
#endif
#ifdef WITH_RIVAL
		run another();
#endif
		run clock()
	}
}

#ifdef STAYS
ltl has_its_turn { [] (phase[0] == WAIT -> <> (phase[0] != WAIT)) }
#endif
