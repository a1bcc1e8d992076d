#ifndef GAVEL_SIM_NETWORK_H
#define GAVEL_SIM_NETWORK_H

#include "world.h"

/* Requests, replies and the channel, with everything that a network does to them. */

/* The host's process asks for the operation. */
void network_begin(struct world *world, struct host *host, const struct election_actions *actions);

/* SEND, TIMEOUT and REPLY. */
void network_host_message(struct world *world, struct host *host, const struct message *message);

/* REQUEST: the store carries it out. */
void network_request(struct world *world, const struct message *message);

#endif
