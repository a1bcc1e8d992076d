#ifndef GAVEL_APP_H
#define GAVEL_APP_H

#include "config/config.h"

/* Runs the sidecar until it is drained. Returns the exit status: 0 drained, 1 could not start or
 * go on. Logs why. The configuration must outlive the call; its secrets may be replaced (SIGHUP).
 */
int app_run(struct config *config);

#endif
