#ifndef GAVEL_CONFIG_ADDRESS_H
#define GAVEL_CONFIG_ADDRESS_H

#include "config/config.h"

/* Listening addresses: "localhost:4040", "127.0.0.1:4040", "[::1]:4040", ":4041" (all addresses),
 * "off". Host names other than localhost are refused: looking them up would block, and a listener
 * that moves with a name service is no good. Re-entrant. */

/* False: `text` is none of these. */
bool address_parse(const char *text, struct listen_address *address);

#define ADDRESS_TEXT_MAX 272
const char *address_format(const struct listen_address *address, char text[ADDRESS_TEXT_MAX]);

/* True when both cannot listen at once: the same port, not 0, on an address that both cover. */
bool address_overlaps(const struct listen_address *a, const struct listen_address *b);

#endif
