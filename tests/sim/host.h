#ifndef GAVEL_SIM_HOST_H
#define GAVEL_SIM_HOST_H

#include "world.h"

/*
 * One candidate's process as the app runs it: an event with its time, one step, the view
 * published in one go, then the operation, then the timer.
 */

struct instant host_now(const struct world *world, const struct host *host);

/* Its process runs and is not paused. */
bool host_is_awake(const struct world *world, const struct host *host);

void host_start(struct world *world, struct host *host);
void host_stop(struct world *world, struct host *host);

/* Gives the process an event; fills in now, handouts and random bytes. */
void host_event(struct world *world, struct host *host, struct election_event *event);

/* The messages that are for a process. */
void host_message(struct world *world, struct host *host, const struct message *message);

/* Runs no code for so long. vm: its BOOTTIME stands too, and REALTIME is right again after. */
void host_pause(struct world *world, struct host *host, int64_t time_ns, bool vm);
void host_resume(struct world *world, struct host *host);

#endif
