#ifndef GAVEL_SIM_FAULTS_H
#define GAVEL_SIM_FAULTS_H

#include "world.h"

/*
 * What happens to hosts, and single faults at random.
 *
 * Not played, since P3 excludes it: a VM pause that CLOCK_REALTIME does not show. So REALTIME steps
 * back only when every lease that counts on it to show the last pause has been seen run out, and no
 * VM pause follows a backward step before every lease that was counted on the old clock is over. A
 * validity that was handed out does not grow by a VM pause: its reader sees REALTIME too.
 */

/* One fault, of any kind. */
void faults_random(struct world *world);

/* The key goes, in one of several ways; kind below LOSSES. False: not possible now. */
#define LOSSES 7
bool faults_lose_key(struct world *world, int kind);

void faults_crash(struct world *world, struct host *host, int64_t back_after_ns);
void faults_cut(struct world *world, struct host *host, int64_t time_ns);
void faults_deafen(struct world *world, struct host *host, int64_t time_ns);
void faults_leave(struct world *world, struct host *host, bool drain);
bool faults_vm_pause(struct world *world, struct host *host, int64_t time_ns);
bool faults_step_real(struct world *world, struct host *host, int64_t step_ns);

#endif
