#ifndef GAVEL_STORE_REDIS_REDIS_H
#define GAVEL_STORE_REDIS_REDIS_H

#include "store/store.h"

/*
 * One Redis server, version 4 or later, as the store.
 *
 *     redis://[user[:password]@]host[:port][/database]
 *     rediss://...                          the same over TLS, see tls.h
 *     redis+unix://[user[:password]@]/path[?db=N]
 *     redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/database]
 *
 * All elections share one connection for requests, which are Lua scripts (the folder lua/), and
 * one that listens for releases. The server must allow EVAL and, in scripts, GET PTTL SET PEXPIRE
 * DEL HMGET HSET TIME. It is better off with EVALSHA, INFO, ROLE, PUBLISH and SUBSCRIBE: without
 * INFO no end of a lease can be proved, so that every takeover waits.
 */
extern const struct store_ops redis_store_ops;

#endif
