/*
 * Redlock with tokens: 3 masters, 2 candidates, in discrete time. Checked exhaustively by spin:
 * never two leaders, and tokens rise. redlock_spin.sh runs it, whole and with one clause left out
 * (-DNO_...), which has to be found out.
 *
 * Nodes forget all they know, or lose a key; replies are lost; candidates stand still, lose their
 * nodes, give up and come back. A lease is good for TTL ticks from the send; W is TTL. A tick is
 * anybody's: it may come between any two actions.
 */
#ifndef TTL
#define TTL 2
#endif
#define W TTL
#define NODES 3
#define MAJORITY 2
#ifndef FAULTS
#define FAULTS 2 /* how often nodes forget or lose a key */
#endif
#ifndef LOSSES
#define LOSSES 1 /* how many replies are lost */
#endif
#ifdef TOKEN_MOST /* tokens are looked at, up to this one */
#define MORE(n) (recorded[n] < TOKEN_MOST)
#define MINT(n) recorded[n]++
#define CHECK(token) assert(token > last_token)
#else
#define MORE(n) true
#define MINT(n) skip
#define CHECK(token) skip
#endif

#define FREE 0
#define DEAD 3 /* held by a grant that is over for its candidate */

/* A master. */
byte holder[NODES];   /* FREE, candidate 1 or 2, DEAD */
byte expires[NODES];  /* ticks until its key goes */
byte ends[NODES];     /* ticks until the recorded end of its last lease */
bool records[NODES];  /* it knows of a last lease at all */
byte recorded[NODES]; /* its last token */

/* What a candidate knows of its grant, by node. */
typedef grant_t {
    byte left[NODES]; /* ticks that the lease there is good for still */
    byte wait[NODES]; /* ticks until the node counts */
    byte token[NODES];
    bool leads;
    byte until; /* ticks that it leads for still: a majority's leases, when it last looked */
    byte published;
}
grant_t grant[3]; /* 1 and 2 */

byte faults = FAULTS;
byte losses = LOSSES;
byte last_token = 0;

#define COUNTS(c, n) (grant[c].left[n] > 0 && grant[c].wait[n] == 0)
#define COUNTING(c) (COUNTS(c, 0) + COUNTS(c, 1) + COUNTS(c, 2))
#define TELLS(c, n) (COUNTS(c, n) && grant[c].token[n] >= best)
#define LEADS(c) (grant[c].leads && grant[c].until > 0)

/* The second longest of three leases that count. */
#define OF(c, n) (COUNTS(c, n) -> grant[c].left[n] : 0)
inline look_until(c) {
    x = OF(c, 0); y = OF(c, 1); z = OF(c, 2);
    x = (x > y -> (y > z -> y : (x > z -> z : x)) : (x > z -> x : (y > z -> z : y)));
    grant[c].until = (x > grant[c].until -> x : grant[c].until);
    x = 0; y = 0; z = 0
}

inline forget_grant(c) {
    for (i : 0 .. NODES - 1) {
        if
        :: holder[i] == c -> holder[i] = DEAD
        :: else
        fi
        grant[c].left[i] = 0;
        grant[c].wait[i] = 0;
        grant[c].token[i] = 0
    }
    grant[c].leads = false;
    grant[c].until = 0;
    grant[c].published = 0
}

/* The reply comes, or is lost. */
inline lose_or(lost) {
    if
    :: lost = false
    :: losses > 0 -> losses--; lost = true
    fi
}

/* Takes the lock on a node; a leader makes a missing key anew in the same way. */
inline acquire(c, n) {
    bool proved = records[n] && ends[n] == 0;
#ifdef NO_WAIT
    proved = true;
#endif
    grant[c].left[n] = 0; /* what it held there before is gone */
    grant[c].wait[n] = 0;
    holder[n] = c;
    expires[n] = TTL;
    ends[n] = W;
    records[n] = true;
    MINT(n);
    lose_or(lost);
    if
    :: lost
    :: else ->
        grant[c].left[n] = TTL;
        grant[c].wait[n] = (proved -> 0 : W);
        grant[c].token[n] = recorded[n]
    fi
}

/* Renews there. What the candidate did not know to be its own, or what ran out for it, is new; a
 * leader's token is carried along. */
inline renew(c, n) {
    expires[n] = TTL;
    ends[n] = TTL;
    records[n] = true;
#ifndef NO_WRITE_BACK
    recorded[n] = (grant[c].published > recorded[n] -> grant[c].published : recorded[n]);
#endif
    lose_or(lost);
    if
    :: lost
    :: else ->
        if
        :: grant[c].left[n] == 0 -> grant[c].wait[n] = W
        :: else
        fi
        grant[c].left[n] = TTL;
        grant[c].token[n] = recorded[n]
    fi
}

/* A majority counts: its greatest token is written back to a majority, then it leads. */
inline lead(c) {
    best = 0;
    for (i : 0 .. NODES - 1) {
        best = (COUNTS(c, i) && grant[c].token[i] > best -> grant[c].token[i] : best)
    }
#ifndef NO_WRITE_BACK
    for (i : 0 .. NODES - 1) {
        if
        :: COUNTS(c, i) && holder[i] == c ->
            recorded[i] = (best > recorded[i] -> best : recorded[i]);
            grant[c].token[i] = recorded[i]
        :: true /* it is not reached */
        fi
    }
    if
    :: TELLS(c, 0) + TELLS(c, 1) + TELLS(c, 2) >= MAJORITY ->
#else
    if
    :: true ->
#endif
        grant[c].leads = true;
        grant[c].until = 0;
        look_until(c);
        grant[c].published = best;
        assert(!LEADS(3 - c));
        CHECK(best);
        last_token = best
    :: else
    fi
}

/* Gives back what it holds; a mark only where its grant counted. */
inline release(c) {
    for (i : 0 .. NODES - 1) {
        if
        :: holder[i] == c ->
            ends[i] = (COUNTS(c, i) -> 0 : ends[i]);
            holder[i] = FREE;
            expires[i] = 0
        :: true
        fi
    }
    forget_grant(c)
}

proctype candidate(byte c) {
    byte n, i, best, x, y, z;
    bool lost;
end:
    do
    :: atomic {
        select(n : 0 .. 2);
        if
        :: holder[n] == FREE && MORE(n) -> acquire(c, n)
        :: holder[n] == c -> renew(c, n)
        fi;
        if
        :: grant[c].leads -> look_until(c)
        :: else
        fi;
        n = 0; lost = false
    }
    :: atomic { COUNTING(c) >= MAJORITY && !grant[c].leads -> lead(c); best = 0; i = 0 }
    :: atomic { true -> release(c); i = 0 }
    od
}

proctype world() {
    byte n, i, c;
end:
    do
    :: atomic { /* time */
        for (n : 0 .. NODES - 1) {
            expires[n] = (expires[n] > 0 -> expires[n] - 1 : 0);
            ends[n] = (ends[n] > 0 -> ends[n] - 1 : 0);
            holder[n] = (expires[n] == 0 -> FREE : holder[n]);
            for (c : 1 .. 2) {
                grant[c].left[n] = (grant[c].left[n] > 0 -> grant[c].left[n] - 1 : 0);
                grant[c].wait[n] = (grant[c].wait[n] > 0 -> grant[c].wait[n] - 1 : 0)
            }
        }
        for (c : 1 .. 2) {
            grant[c].until = (grant[c].until > 0 -> grant[c].until - 1 : 0);
            if
            :: grant[c].leads && grant[c].until == 0 -> forget_grant(c) /* over for good */
            :: else
            fi
        }
        n = 0; c = 0; i = 0
    }
    :: atomic { /* a node restarts with nothing in it */
        faults > 0 -> faults--;
        select(n : 0 .. 2);
        holder[n] = FREE; expires[n] = 0; ends[n] = 0; records[n] = false;
        n = 0
    }
    :: atomic { /* somebody deletes a key */
        faults > 0 -> faults--;
        select(n : 0 .. 2);
        holder[n] = FREE; expires[n] = 0;
        n = 0
    }
    od
}

init {
    atomic {
        byte n;
        for (n : 0 .. NODES - 1) {
#ifdef TOKEN_MOST
            recorded[n] = n; /* they differ already */
#endif
            records[n] = true /* of a clean end */
        }
        n = 0;
        run candidate(1);
        run candidate(2);
        run world()
    }
}
