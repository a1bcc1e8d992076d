#ifndef GAVEL_BASE_DUMP_H
#define GAVEL_BASE_DUMP_H

/*
 * Passwords are in our memory and environment, and in copies that libraries make. A core dump is
 * to keep its notes and registers, no memory: core(5), coredump_filter. Main thread only; children
 * inherit it.
 */

/* To be called before anything else. Where the filter cannot be set, nothing is dumped at all
 * (PR_SET_DUMPABLE). */
void dump_keep_memory_out(void);

/* Why the filter could not be set; NULL: it is. */
const char *dump_problem(void);

#endif
