#ifndef GAVEL_CONFIG_CHECK_H
#define GAVEL_CONFIG_CHECK_H

#include "config/config.h"

/* Fills in the defaults that depend on other things, then checks what options say about each
 * other and what the store says of its URL. Values that were refused before are left out. */
void config_check(struct config *config, char *const *environment, struct config_report *report);

#endif
