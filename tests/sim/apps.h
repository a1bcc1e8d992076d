#ifndef GAVEL_SIM_APPS_H
#define GAVEL_SIM_APPS_H

#include "world.h"

/*
 * Applications that are attached to their host's process: they ask, work while what they were told
 * is valid, and stop when they are told to: at once, late or never. They die, fall silent, are cut
 * off, give up, and fail their check. Numbers of their own: a schedule without them stays what it
 * was.
 */

/* Whether and how they play a part in this schedule. */
void apps_plan(struct world *world);

/* The host's process has started. */
void apps_start(struct world *world, struct host *host);

/* A message for an application: it speaks, or asks. */
void apps_message(struct world *world, struct host *host, const struct message *message);

/* The core told it to stop, or lets what it was told end with it. */
void apps_actions(struct world *world, struct host *host, const struct election_actions *actions);

/* A fault of an application. */
void apps_fault(struct world *world);

/* All behave from now on. */
void apps_calm_down(struct world *world);

/* A lock is about to be given back, or taken; a reader of the host was told "leader". */
void apps_check_operation(struct world *world, const struct host *host,
                          const struct election_actions *actions);
void apps_check_answer(struct world *world, const struct host *host);

#endif
