#ifndef GAVEL_STORE_POSTGRES_POSTGRES_H
#define GAVEL_STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

/*
 * postgres://, PostgreSQL 14 or later: one advisory lock for each election, all on one connection
 * (--pg-lock transaction: one connection each), and a table for what is remembered. Who leads and
 * since when, as seen from the database, is in the README.
 *
 * - The lock lives as long as its session. Losing the connection loses every election on it; each
 *   is told LOST at once.
 * - Tokens, the clean mark and probes that write go over a second, short-lived connection, so that
 *   no statement on the first one ever waits.
 * - The store tells no time: a grant counts as PRIOR_CLEAN only with the mark of the row's own
 *   token, on the same server since the same start, else it has to wait.
 * - A probe that is not answered in time is UNSURE; the connection is given up only when no lease
 *   on it can run any more.
 */
extern const struct store_ops postgres_store_ops;

#endif
