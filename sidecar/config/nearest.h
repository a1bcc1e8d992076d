#ifndef GAVEL_CONFIG_NEAREST_H
#define GAVEL_CONFIG_NEAREST_H

/* Names of options that somebody may have meant, at most two letters away; NULL: none. Static
 * text, without dashes and prefix. */
const char *nearest_option(const char *name);       /* "tll" */
const char *nearest_variable(const char *variable); /* "GAVEL_TLL" */

#endif
