#ifndef GAVEL_SIM_SCENARIO_H
#define GAVEL_SIM_SCENARIO_H

#include "world.h"

/* What the files of the scenarios share. */

/* A time between two percentages of the longest ttl. */
int64_t scenario_of_ttl(struct world *world, int64_t low_percent, int64_t high_percent);

/* It is over; another may start. */
void scenario_done(struct world *world);

/* The step is not possible yet: once more, a little later; given up after many tries. */
void scenario_again(struct world *world, const struct message *message, int64_t delay_ns);

/* The leader, noted in the scenario; NULL: none now. */
struct host *scenario_find_leader(struct world *world);
struct host *scenario_pick_other(struct world *world);

/* All but the leader. */
void scenario_crash_others(struct world *world, int64_t back_after_ns);

void scenario_lose(struct world *world, const struct message *message);
void scenario_fall_back(struct world *world, const struct message *message);
void scenario_retry(struct world *world, const struct message *message);
void scenario_unled(struct world *world, const struct message *message);
void scenario_late_release(struct world *world, const struct message *message);
void scenario_late_acquire(struct world *world, const struct message *message);
void scenario_vm_pause(struct world *world, const struct message *message);
void scenario_silence(struct world *world, const struct message *message);
void scenario_slow_grant(struct world *world, const struct message *message);
void scenario_short_grant(struct world *world, const struct message *message);
void scenario_revival(struct world *world, const struct message *message);

#endif
