#ifndef GAVEL_HEALTH_READINESS_H
#define GAVEL_HEALTH_READINESS_H

#include "base/counters.h"
#include "publish/board.h"
#include "store/store.h"

/* The checks behind /readyz?verbose, one a line, for people. Only the listeners decide; the rest
 * is information. Notes nothing in the handouts. Heap, to be freed with free(). */
char *readiness_text(bool ready, const struct board *board, const struct counters *counters,
                     const struct store_status *store, size_t *length);

#endif
