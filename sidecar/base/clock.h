#ifndef GAVEL_BASE_CLOCK_H
#define GAVEL_BASE_CLOCK_H

#include "election/instant.h"

/* Reads CLOCK_BOOTTIME first, then CLOCK_REALTIME. Never uv_now(), which is cached. */
struct instant clock_now(void);

#endif
