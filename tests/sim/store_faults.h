#ifndef GAVEL_SIM_STORE_FAULTS_H
#define GAVEL_SIM_STORE_FAULTS_H

#include "world.h"

/*
 * What happens to a server. Never two masters at once: one server answers, its data and identity
 * change.
 *
 * Some things are not played, since no client could tell:
 * - steps of the server's clock that cancel each other while a candidate that has measured it does
 *   not look: a step needs every process to have measured the clock since the one before;
 * - where margins differ, steps that are more than the smallest margin covers and less than a
 *   candidate with the largest is sure to see;
 * - a server that is rolled back and keeps its identity, where a candidate has not seen the token
 *   that is lost: its record is then as good as any. The rollback needs every process to have seen
 *   the token, and no process starts for the time of a lease after it; connections to the server
 *   end with it. Where its clock is set right at once, or goes back by less than a candidate is
 *   sure to see, it needs in addition that everybody has seen the lock held after the end that the
 *   old record tells, or knows a greater token: else one renewal may be lost without a trace;
 * - where the lock goes with a connection or a process: a server that is rolled back with all that
 *   it has in memory, and an old record's file that is put in the place of the newer one.
 */

void store_delete_key(struct world *world);
void store_persist_key(struct world *world);
void store_delete_record(struct world *world);
void store_damage_record(struct world *world);
void store_flush(struct world *world);

/* Another process with the same data, or with none. */
void store_restart(struct world *world, bool empty);

/* Another process with older data. */
void store_restore(struct world *world, const struct store_copy *copy);

/* Another server with older data and a clock of its own, so much ahead of the old one's. */
void store_promote(struct world *world, const struct store_copy *copy, int64_t ahead_ns);

/* The same process with older data: it was a replica for a while. */
void store_promote_back(struct world *world, const struct store_copy *copy);

/* The same process in memory, as it was; `right` when its clock is right at once. False: not
 * possible now. */
bool store_roll_back(struct world *world, const struct store_copy *copy, bool right);

/* False: not possible now. */
bool store_step_clock(struct world *world, int64_t step_ns);

#endif
