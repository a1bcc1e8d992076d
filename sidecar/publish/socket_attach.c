#include "publish/socket_parts.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * The connection that stands for the whole application. Its end by the peer is told from one that
 * we bring about: only the first says that the application has stopped.
 */

static size_t index_of(const struct socket_client *client) {
    return (size_t)(client->entry - client->server->setup.board->entries);
}

static void tell(struct socket_client *client, enum app_event event, uint64_t token) {
    const struct socket_setup *setup = &client->server->setup;
    if (setup->application != NULL) {
        setup->application(setup->context, index_of(client), event, token);
    }
}

void socket_attach_start(struct socket_client *client, struct board_entry *entry) {
    struct socket_server *server = client->server;
    client->entry = entry;
    server->attached[index_of(client)] = client;
    socket_client_set_phase(client, PHASE_ATTACHED);
    uv_timer_stop(&client->timer);
    socket_client_count(client, CODE_OK);
    client->attach = (struct socket_attach){.ok = true, .last_number = server->last_number};
    socket_attach_push(client);
    if (client->phase == PHASE_ATTACHED) {
        tell(client, APP_ATTACHED, 0);
    }
}

void socket_attach_ended(struct socket_client *client) {
    client->server->attached[index_of(client)] = NULL;
    tell(client, client->attach.by_peer ? APP_GONE : APP_CUT, 0);
}

/* The lease itself, for one that supervises others: it is revoked, so no shorter validity is
 * needed. What is told counts as handed out to the application. */
static size_t lease_line(struct socket_client *client, char *line, size_t size) {
    struct board_entry *entry = client->entry;
    struct instant now = clock_now();
    struct socket_attach *attach = &client->attach;
    bool doubted = entry->handouts.doubted_ns > entry->view.doubt_seen_ns;
    int64_t left_ns = lease_remaining_ns(&entry->view.lease, now);
    if (entry->view.state != STATE_LEADER || doubted || left_ns < NS_PER_MS) {
        return 0;
    }
    left_ns -= left_ns % NS_PER_MS;
    int64_t deadline_ns = now.boot_ns + left_ns;
    if (deadline_ns > entry->handouts.app_until_ns) {
        entry->handouts.app_until_ns = deadline_ns;
    }
    attach->leased_ns = entry->view.lease.boot_deadline_ns;
    attach->leased_token = entry->view.token;
    return (size_t)snprintf(line, size, "lease %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
                            entry->view.token, left_ns / NS_PER_MS, deadline_ns,
                            client->server->setup.ttl_ns / NS_PER_MS);
}

static size_t revoke_line(const struct socket_client *client, char *line, size_t size) {
    int64_t left_ns = client->attach.revoke_by_ns - clock_now().boot_ns;
    return (size_t)snprintf(line, size, "revoke %" PRIu64 " %" PRId64 "\n",
                            client->attach.revoke_token,
                            left_ns > 0 ? left_ns / NS_PER_MS : INT64_C(0));
}

/* The next line that is due; 0: none. What it says is of this moment, so nothing old is queued. */
static size_t next_line(struct socket_client *client, char *line, size_t size) {
    struct socket_attach *attach = &client->attach;
    if (attach->ok) {
        attach->ok = false;
        return (size_t)snprintf(line, size, "ok\n");
    }
    if (attach->revoke) {
        attach->revoke = false;
        return revoke_line(client, line, size);
    }
    if (attach->beat) {
        attach->beat = false;
        return (size_t)snprintf(line, size, "beat %" PRId64 "\n",
                                client->server->setup.app_timeout_ns / NS_PER_MS);
    }
    if (attach->lease) {
        attach->lease = false;
        return lease_line(client, line, size);
    }
    return 0;
}

void socket_attach_push(struct socket_client *client) {
    char line[128];
    size_t length;
    while (client->phase == PHASE_ATTACHED && client->unsent == NULL && !client->attach.deaf &&
           (length = next_line(client, line, sizeof line)) > 0) {
        socket_client_send(client, line, length);
    }
}

void socket_attach_refresh(struct socket_client *client) {
    struct socket_attach *attach = &client->attach;
    const struct view *view = &client->entry->view;
    bool newer =
        view->lease.boot_deadline_ns != attach->leased_ns || view->token != attach->leased_token;
    if (attach->leases && view->state == STATE_LEADER && newer) {
        attach->lease = true;
        socket_attach_push(client);
    }
}

static bool read_token(const char *text, size_t length, uint64_t *token) {
    *token = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        *token = *token * 10 + (uint64_t)(text[i] - '0');
    }
    return length > 0 && length <= 15;
}

static bool is(const char *line, size_t length, const char *word) {
    return length == strlen(word) && memcmp(line, word, length) == 0;
}

void socket_attach_line(struct socket_client *client, const char *line, size_t length) {
    uint64_t token;
    if (is(line, length, "beat")) {
        tell(client, APP_BEATS, 0);
    } else if (is(line, length, "resign")) {
        client->attach.resigns = true;
        tell(client, APP_RESIGNS, 0);
    } else if (is(line, length, "lease")) {
        client->attach.leases = true;
        client->attach.leased_ns = 0;
        client->attach.beat = client->server->setup.app_timeout_ns > 0;
        socket_attach_push(client);
        socket_attach_refresh(client);
    } else if (length > 5 && memcmp(line, "done ", 5) == 0 &&
               read_token(line + 5, length - 5, &token)) {
        tell(client, APP_DONE, token);
    } else {
        socket_client_refuse(client, FAULT_BAD_REQUEST,
                             "an attached connection takes beat, done TOKEN, resign, lease");
    }
}

void socket_attach_resigned(struct socket_client *client) {
    if (client->attach.resigns) {
        client->attach.resigns = false;
        client->attach.ok = true;
        socket_attach_push(client);
    }
}

bool socket_attach_is_of(const struct socket_client *client, const struct board_entry *entry) {
    const struct socket_server *server = client->server;
    const struct socket_client *attached =
        server->attached[(size_t)(entry - server->setup.board->entries)];
    /* 0: its process is not visible from here, and any other might be as well. A connection made
     * before may be shared with a child that outlives the attachment; a later one is shared only
     * by those that have the attachment too. */
    return attached != NULL && client->pid != 0 && attached->pid == client->pid &&
           client->number > attached->attach.last_number;
}

void socket_revoke(struct socket_server *server, size_t election, uint64_t token, int64_t by_ns) {
    struct socket_client *client = server->attached[election];
    if (client != NULL) {
        client->attach.revoke = true;
        client->attach.revoke_token = token;
        client->attach.revoke_by_ns = by_ns;
        client->attach.lease = false;
        socket_attach_push(client);
    }
}

void socket_lease(struct socket_server *server, size_t election) {
    if (server->attached[election] != NULL) {
        socket_attach_refresh(server->attached[election]);
    }
}
