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

/* What the models of stores share: the host's request on its way, one that was carried out, a reply
 * on its way back, and the word that the lock was given back. */
void network_put(struct world *world, struct host *host);
void network_put_back(struct world *world, struct message *message);
void network_trace_request(const struct world *world, const struct message *message,
                           const struct lock_result *result);
void network_wake_all(struct world *world, bool clean);

#endif
