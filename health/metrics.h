#ifndef GAVEL_HEALTH_METRICS_H
#define GAVEL_HEALTH_METRICS_H

#include "base/counters.h"
#include "publish/board.h"
#include "store/store.h"

#include <stddef.h>

/* Everything that Prometheus may ask for, in its text format 0.0.4. Views are evaluated at the
 * time of the call, without noting anything: nobody acts on a metric. Heap, to be freed with
 * free(). */
char *metrics_text(const struct board *board, const struct counters *counters,
                   const struct store_status *store, size_t *length);

#endif
