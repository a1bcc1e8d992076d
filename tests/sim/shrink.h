#ifndef GAVEL_SIM_SHRINK_H
#define GAVEL_SIM_SHRINK_H

#include "schedule.h"

/*
 * Leaves out of a schedule whatever the violation does not need: parts of the network, hosts, the
 * applications, and one fault after another, again and again until nothing more can go.
 * `fails` plays a schedule and says whether it goes wrong in the same way. Returns how many were
 * played.
 */
unsigned shrink(struct schedule *schedule,
                bool (*fails)(void *context, const struct schedule *schedule), void *context);

/* Two violations of one promise, or two texts that differ in numbers alone: a schedule is shrunk to
 * one that breaks what it broke before. */
bool shrink_same_kind(const char *a, const char *b);

#endif
