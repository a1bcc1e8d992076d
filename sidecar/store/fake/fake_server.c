#include "base/clock.h"
#include "base/memory.h"
#include "store/fake/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_server *servers;

struct fake_server *fake_server_create(const char *name) {
    struct fake_server *server = memory_zeroed(1, sizeof *server);
    snprintf(server->name, sizeof server->name, "%s", name);
    snprintf(server->id, sizeof server->id, "run-1:%s", name);
    server->next = servers;
    servers = server;
    return server;
}

void fake_server_destroy(struct fake_server *server) {
    if (server == NULL) {
        return;
    }
    if (server->stores != NULL) {
        abort();
    }
    struct fake_server **link = &servers;
    while (*link != server) {
        link = &(*link)->next;
    }
    *link = server->next;
    free(server->locks);
    free(server);
}

struct fake_server *fake_server_find(const char *name) {
    struct fake_server *server = servers;
    while (server != NULL && strcmp(server->name, name) != 0) {
        server = server->next;
    }
    return server;
}

void fake_server_forget(struct fake_server *server) {
    free(server->locks);
    server->locks = NULL;
    server->lock_count = 0;
}

struct fake_lock *fake_server_lock(struct fake_server *server, const char *namespace_,
                                   const char *election) {
    char key[sizeof server->locks->key];
    snprintf(key, sizeof key, "%s/%s", namespace_, election);
    for (size_t i = 0; i < server->lock_count; i++) {
        if (strcmp(server->locks[i].key, key) == 0) {
            return &server->locks[i];
        }
    }
    server->locks = memory_grow(server->locks, server->lock_count + 1, sizeof *server->locks);
    struct fake_lock *lock = &server->locks[server->lock_count++];
    memset(lock, 0, sizeof *lock);
    memcpy(lock->key, key, sizeof key);
    return lock;
}

void fake_server_lose(struct fake_server *server, const char *namespace_, const char *election) {
    fake_stores_notify(server, fake_server_lock(server, namespace_, election)->key, STORE_LOST,
                       false);
}

static int64_t server_now_us(const struct fake_server *server) {
    return clock_now().real_ns / NS_PER_US + server->clock_offset_us;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static int64_t larger_ns(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* False: above the largest token there may be. */
static bool mint(const struct fake_server *server, const struct fake_lock *lock,
                 const struct store_setup *client, const struct store_request *request,
                 struct store_event *event, uint64_t *token) {
    uint64_t minted = larger(lock->token + 1, request->seen_token + 1);
    minted = larger(minted, (uint64_t)(server_now_us(server) / 1000));
    *token = larger(minted, client->token_floor);
    if (*token <= TOKEN_MAX) {
        return true;
    }
    event->reply.outcome = OUTCOME_UNSURE;
    event->reply.reason = REASON_STORE_REFUSED;
    snprintf(event->text, sizeof event->text, "the next token is above 10^14");
    return false;
}

static void judge_prior(const struct fake_server *server, struct fake_lock *lock,
                        uint64_t seen_token) {
    lock->prior = PRIOR_NONE;
    if (!lock->recorded) {
        lock->doubt = DOUBT_NO_RECORD;
    } else if (strcmp(lock->server, server->id) != 0) {
        lock->doubt = DOUBT_OTHER_SERVER;
    } else if (lock->token < seen_token) {
        lock->doubt = DOUBT_TOKEN_BEHIND;
    } else {
        lock->prior = lock->clean ? PRIOR_CLEAN : PRIOR_END;
        lock->doubt = DOUBT_NONE;
    }
}

static void extend(const struct fake_server *server, struct fake_lock *lock,
                   const struct store_setup *client) {
    lock->expires_boot_ns = clock_now().boot_ns + client->ttl_ns;
    int64_t end_us = server_now_us(server) + client->ttl_ns / NS_PER_US;
    if (end_us > lock->end_us) {
        lock->end_us = end_us;
    }
}

static void grant(struct fake_server *server, struct fake_lock *lock,
                  const struct store_setup *client, const struct store_request *request,
                  struct store_event *event) {
    uint64_t token;
    if (!mint(server, lock, client, request, event, &token)) {
        return;
    }
    judge_prior(server, lock, request->seen_token);
    event->reply.outcome = OUTCOME_YES;
    event->reply.prior = lock->prior;
    event->reply.doubt = lock->doubt;
    event->reply.prior_end_us = lock->end_us;

    /* Without a clean end an older lease may be trusted as long as this, whatever becomes of
     * the new one. */
    int64_t trusted_ns = larger_ns(request->wait_ns, lock->longest_ttl_ns);
    lock->end_us = lock->prior == PRIOR_CLEAN ? 0 : server_now_us(server) + trusted_ns / NS_PER_US;
    lock->longest_ttl_ns =
        lock->prior == PRIOR_CLEAN ? client->ttl_ns : larger_ns(client->ttl_ns, trusted_ns);
    lock->held = true;
    memcpy(lock->nonce, request->nonce, NONCE_BYTES);
    snprintf(lock->holder, sizeof lock->holder, "%s", client->identity);
    lock->recorded = true;
    lock->clean = false;
    lock->token = token;
    memcpy(lock->server, server->id, sizeof lock->server);
    extend(server, lock, client);
}

static void acquire(struct fake_server *server, struct fake_lock *lock,
                    const struct store_setup *client, const struct store_request *request,
                    struct store_event *event) {
    bool ours = lock->held && memcmp(lock->nonce, request->nonce, NONCE_BYTES) == 0;
    if (ours && request->take) {
        if (lock->prior == PRIOR_END) {
            lock->prior = PRIOR_NONE; /* its own lease has hidden that end by now */
            lock->doubt = DOUBT_UNCLEAN;
        }
        extend(server, lock, client);
        event->reply.outcome = OUTCOME_YES;
        event->reply.prior = lock->prior;
        event->reply.doubt = lock->doubt;
    } else if (!lock->held && request->take) {
        grant(server, lock, client, request, event);
    } else {
        event->reply.reason = REASON_HELD_BY_OTHER;
    }
}

static void renew(struct fake_server *server, struct fake_lock *lock,
                  const struct store_setup *client, const struct store_request *request,
                  struct store_event *event) {
    if (request->raise_token && !mint(server, lock, client, request, event, &lock->token)) {
        lock->token = TOKEN_MAX;
        return;
    }
    extend(server, lock, client);
    event->reply.outcome = OUTCOME_YES;
}

static void release(struct fake_server *server, struct fake_lock *lock,
                    const struct store_request *request, struct store_event *event) {
    lock->held = false;
    lock->clean = request->clean && request->token == lock->token;
    if (lock->clean) {
        lock->end_us = server_now_us(server);
    }
    event->reply.outcome = OUTCOME_YES;
    fake_stores_notify(server, lock->key, STORE_WAKE, lock->clean);
}

void fake_server_answer(struct fake_server *server, enum store_event_type type,
                        const struct store_setup *client, const struct store_request *request,
                        struct store_event *event) {
    struct fake_lock *lock =
        fake_server_lock(server, client->namespace_, client->elections[request->election]);
    struct store_reply *reply = &event->reply;

    lock->held = lock->held && clock_now().boot_ns < lock->expires_boot_ns;
    bool ours = lock->held && memcmp(lock->nonce, request->nonce, NONCE_BYTES) == 0;
    reply->outcome = OUTCOME_NO;
    reply->reason = REASON_RENEWAL_REFUSED;
    if (type == STORE_ACQUIRED) {
        acquire(server, lock, client, request, event);
    } else if (type == STORE_RENEWED && ours) {
        renew(server, lock, client, request, event);
    } else if (type == STORE_RELEASED && ours) {
        release(server, lock, request, event);
    }
    reply->token = lock->token;
    reply->longest_ttl_ns = lock->longest_ttl_ns;
    reply->server_now_us = server_now_us(server);
    reply->warnings = server->warnings;
    memcpy(reply->server, server->id, sizeof reply->server);
    if (reply->outcome == OUTCOME_NO && lock->held) {
        reply->held = true;
        reply->holder_nonce_known = true;
        memcpy(reply->holder_nonce, lock->nonce, NONCE_BYTES);
        memcpy(reply->holder, lock->holder, sizeof reply->holder);
        reply->expires_in_ns = lock->expires_boot_ns - clock_now().boot_ns;
    }
}
