#include "store/redis/handshake.h"

#include "store/redis/command.h"
#include "store/redis/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_LEAST 4 /* its scripts may write after they have read the clock */

enum command {
    COMMAND_AUTH,
    COMMAND_ROLE,
    COMMAND_SELECT,
    COMMAND_SERVER,
    COMMAND_MEMORY,
    COMMAND_MASTER,
    COMMAND_DETAILS,
};

static enum redis_handshake_result fail(struct redis_handshake *handshake, enum redis_gate_end end,
                                        const char *why) {
    handshake->end = end;
    snprintf(handshake->problem, sizeof handshake->problem, "%s",
             why[0] != '\0' ? why : "an error without a text");
    return REDIS_HANDSHAKE_FAILED;
}

static bool send_command(struct redis_handshake *handshake, struct redis_stream *stream,
                         enum command command, size_t count, const char *const *arguments) {
    struct redis_command bytes = redis_command(count, arguments);
    handshake->commands[handshake->count++] = (int)command;
    return redis_stream_send(stream, bytes.bytes, bytes.size);
}

static bool send_auth(struct redis_handshake *handshake, struct redis_stream *stream) {
    const struct redis_url *url = handshake->setup.url;
    const struct store_secrets *secrets = handshake->setup.secrets;
    const char *user = url->has_user ? url->user : NULL;
    const char *password = url->has_password ? url->password : NULL;
    if (secrets != NULL && secrets->user != NULL) {
        user = secrets->user;
    }
    if (secrets != NULL && secrets->password != NULL) {
        password = secrets->password;
    }
    if (user != NULL) {
        const char *both[] = {"AUTH", user, password != NULL ? password : ""};
        return send_command(handshake, stream, COMMAND_AUTH, 3, both);
    }
    const char *alone[] = {"AUTH", password};
    return password == NULL || send_command(handshake, stream, COMMAND_AUTH, 2, alone);
}

static bool send_requests(struct redis_handshake *handshake, struct redis_stream *stream) {
    char number[16];
    unsigned database = handshake->setup.url->database;
    snprintf(number, sizeof number, "%u", database);
    const char *role[] = {"ROLE"};
    const char *select[] = {"SELECT", number};
    const char *server[] = {"INFO", "server"};
    const char *memory[] = {"INFO", "memory"};
    return send_command(handshake, stream, COMMAND_ROLE, 1, role) &&
           (database == 0 || send_command(handshake, stream, COMMAND_SELECT, 2, select)) &&
           send_command(handshake, stream, COMMAND_SERVER, 2, server) &&
           send_command(handshake, stream, COMMAND_MEMORY, 2, memory);
}

static bool send_questions(struct redis_handshake *handshake, struct redis_stream *stream) {
    const char *master = handshake->setup.url->master;
    const char *address[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master};
    const char *details[] = {"SENTINEL", "MASTER", master};
    return send_command(handshake, stream, COMMAND_MASTER, 3, address) &&
           send_command(handshake, stream, COMMAND_DETAILS, 3, details);
}

enum redis_handshake_result redis_handshake_begin(struct redis_handshake *handshake,
                                                  const struct redis_handshake_setup *setup,
                                                  struct redis_stream *stream) {
    memset(handshake, 0, sizeof *handshake);
    handshake->setup = *setup;
    if (!send_auth(handshake, stream) || (setup->requests && !send_requests(handshake, stream)) ||
        (setup->sentinel && !send_questions(handshake, stream))) {
        return fail(handshake, REDIS_GATE_UNREACHABLE, "the connection broke");
    }
    return handshake->count == 0 ? REDIS_HANDSHAKE_DONE : REDIS_HANDSHAKE_MORE;
}

/* What went wrong in AUTH. The server's own words are not repeated: some servers repeat the
 * arguments of a command that they do not know. */
static const char *auth_problem(const char *text) {
    if (strstr(text, "WRONGPASS") != NULL || strstr(text, "invalid password") != NULL) {
        return "the server refused user and password (WRONGPASS)";
    }
    if (strstr(text, "without any password configured") != NULL ||
        strstr(text, "no password is set") != NULL) {
        return "the server has no password configured, but one is given";
    }
    if (strstr(text, "max number of clients") != NULL) {
        return "the server has reached its number of clients";
    }
    if (strstr(text, "DENIED") != NULL) {
        return "the server is in protected mode and refuses other hosts";
    }
    return "the server refused AUTH";
}

static bool is_status(const redisReply *reply, const char *text) {
    return reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, text) == 0;
}

static const char *element_text(const redisReply *reply, size_t index) {
    bool there = reply->type == REDIS_REPLY_ARRAY && index < reply->elements &&
                 reply->element[index]->type == REDIS_REPLY_STRING;
    return there ? reply->element[index]->str : NULL;
}

/* AUTH: the end of it where nothing else can be told; else the answers that follow say more about
 * what this server is. */
static enum redis_handshake_result take_auth(struct redis_handshake *handshake,
                                             const redisReply *reply) {
    if (is_status(reply, "OK")) {
        return REDIS_HANDSHAKE_DONE;
    }
    const char *said = reply->type == REDIS_REPLY_ERROR ? reply->str : "";
    const char *problem = auth_problem(said);
    if (strstr(said, "max number of clients") != NULL) {
        return fail(handshake, REDIS_GATE_REFUSED, problem);
    }
    if (!handshake->setup.requests && !handshake->setup.sentinel) {
        return fail(handshake, REDIS_GATE_AUTH, problem);
    }
    handshake->auth_problem = problem;
    return REDIS_HANDSHAKE_DONE;
}

/* Somebody gave the address of a Sentinel. */
static enum redis_handshake_result is_sentinel(struct redis_handshake *handshake,
                                               const redisReply *reply) {
    char text[REDIS_HANDSHAKE_TEXT];
    const struct redis_handshake_setup *setup = &handshake->setup;
    const redisReply *names = reply->elements > 1 && reply->element[1]->type == REDIS_REPLY_ARRAY
                                  ? reply->element[1]
                                  : NULL;
    const char *name = names != NULL ? element_text(names, 0) : NULL;
    const char *host = setup->host[0] != '\0' ? setup->host : "HOST";
    bool ipv6 = strchr(host, ':') != NULL;
    snprintf(text, sizeof text, "this is a Sentinel: use %s://%s%.60s%s:%u/%.40s",
             setup->url->tls ? "rediss+sentinel" : "redis+sentinel", ipv6 ? "[" : "", host,
             ipv6 ? "]" : "", (unsigned)setup->port, name != NULL ? name : "MASTER");
    return fail(handshake, REDIS_GATE_REFUSED, text);
}

static enum redis_handshake_result is_no_master(struct redis_handshake *handshake,
                                                const redisReply *reply) {
    char text[REDIS_HANDSHAKE_TEXT];
    const char *host = element_text(reply, 1);
    long long port = reply->elements > 2 && reply->element[2]->type == REDIS_REPLY_INTEGER
                         ? reply->element[2]->integer
                         : 0;
    snprintf(text, sizeof text, "a replica of %.40s:%lld, not a master: %s",
             host != NULL ? host : "?", port,
             handshake->setup.url->sentinel ? "a failover is under way"
                                            : "use that one, or Sentinel (redis+sentinel://)");
    return fail(handshake, REDIS_GATE_REFUSED, text);
}

static enum redis_handshake_result take_role(struct redis_handshake *handshake,
                                             const redisReply *reply) {
    bool error = reply->type == REDIS_REPLY_ERROR;
    const char *role = element_text(reply, 0);
    if (role != NULL && strcmp(role, "sentinel") == 0) {
        return is_sentinel(handshake, reply);
    }
    if (handshake->auth_problem != NULL) {
        return fail(handshake, REDIS_GATE_AUTH, handshake->auth_problem);
    }
    if (error) {
        enum redis_failure failure = redis_failure_of(reply->str);
        if (failure == REDIS_FAILURE_DENIED) {
            return REDIS_HANDSHAKE_DONE; /* the scripts look too */
        }
        return fail(handshake, failure == REDIS_FAILURE_AUTH ? REDIS_GATE_AUTH : REDIS_GATE_REFUSED,
                    reply->str);
    }
    if (role == NULL) {
        return fail(handshake, REDIS_GATE_REFUSED, "a strange answer to ROLE: this is not Redis");
    }
    return strcmp(role, "master") == 0 ? REDIS_HANDSHAKE_DONE : is_no_master(handshake, reply);
}

static enum redis_handshake_result take_select(struct redis_handshake *handshake,
                                               const redisReply *reply) {
    if (is_status(reply, "OK")) {
        return REDIS_HANDSHAKE_DONE;
    }
    return fail(handshake, REDIS_GATE_REFUSED,
                reply->type == REDIS_REPLY_ERROR ? reply->str : "a strange answer to SELECT");
}

/* The rest of the line that begins with `key`, as in "\nredis_version:". False: there is none. */
static bool find_line(const redisReply *info, const char *key, char *out, size_t size) {
    const char *at = info->type == REDIS_REPLY_STRING ? strstr(info->str, key) : NULL;
    if (at == NULL) {
        return false;
    }
    at += strlen(key);
    redis_failure_text(out, size, at, strcspn(at, "\r\n"));
    return out[0] != '\0';
}

/* Says which server it is; one that is too old is of no use. */
static enum redis_handshake_result take_server(struct redis_handshake *handshake,
                                               const redisReply *reply) {
    char version[24] = "";
    char mode[24] = "";
    char text[REDIS_HANDSHAKE_TEXT];
    if (find_line(reply, "\nredis_mode:", mode, sizeof mode) && strcmp(mode, "cluster") == 0) {
        return fail(handshake, REDIS_GATE_REFUSED,
                    "Redis Cluster: cluster endpoint is not supported, use a Redis "
                    "outside of cluster mode");
    }
    bool known = find_line(reply, "\nredis_version:", version, sizeof version);
    if (known && strtol(version, NULL, 10) < VERSION_LEAST) {
        snprintf(text, sizeof text, "Redis %s is too old: version %d or later is needed", version,
                 VERSION_LEAST);
        return fail(handshake, REDIS_GATE_REFUSED, text);
    }
    if (known) {
        bool valkey = find_line(reply, "\nvalkey_version:", version, sizeof version);
        snprintf(handshake->version, sizeof handshake->version, "%s %s",
                 valkey ? "valkey" : "redis", version);
    }
    return REDIS_HANDSHAKE_DONE;
}

/* Says how the server throws keys away when its memory is full. */
static void take_memory(struct redis_handshake *handshake, const redisReply *reply) {
    char limit[24];
    char policy[24];
    if (find_line(reply, "\nmaxmemory:", limit, sizeof limit) && limit[0] != '0' &&
        find_line(reply, "\nmaxmemory_policy:", policy, sizeof policy) &&
        strcmp(policy, "noeviction") != 0) {
        handshake->warnings |= WARNING_EVICTION_POLICY;
    }
}

static enum redis_handshake_result take_master(struct redis_handshake *handshake,
                                               const redisReply *reply) {
    char text[REDIS_HANDSHAKE_TEXT];
    if (redis_master_read_address(reply, &handshake->master)) {
        return REDIS_HANDSHAKE_DONE;
    }
    if (reply->type == REDIS_REPLY_NIL) {
        snprintf(text, sizeof text,
                 "no master is called %.60s there: the URL must name one that it monitors",
                 handshake->setup.url->master);
        return fail(handshake, REDIS_GATE_REFUSED, text);
    }
    if (reply->type != REDIS_REPLY_ERROR) {
        return fail(handshake, REDIS_GATE_REFUSED,
                    "a strange answer to SENTINEL: this is no Sentinel");
    }
    enum redis_failure failure = redis_failure_of(reply->str);
    if (failure == REDIS_FAILURE_AUTH) {
        return fail(handshake, REDIS_GATE_AUTH,
                    handshake->auth_problem != NULL ? handshake->auth_problem : reply->str);
    }
    if (strncmp(reply->str, "ERR unknown command", strlen("ERR unknown command")) == 0) {
        return fail(handshake, REDIS_GATE_REFUSED,
                    "this is no Sentinel; for a Redis server use redis://HOST:PORT");
    }
    return fail(handshake, REDIS_GATE_REFUSED, reply->str);
}

static enum redis_handshake_result take_one(struct redis_handshake *handshake, enum command command,
                                            const redisReply *reply) {
    switch (command) {
    case COMMAND_AUTH:
        return take_auth(handshake, reply);
    case COMMAND_ROLE:
        return take_role(handshake, reply);
    case COMMAND_SELECT:
        return take_select(handshake, reply);
    case COMMAND_SERVER:
        return take_server(handshake, reply);
    case COMMAND_MEMORY:
        take_memory(handshake, reply); /* good to know, not needed */
        break;
    case COMMAND_MASTER:
        return take_master(handshake, reply);
    case COMMAND_DETAILS:
        redis_master_read_details(reply, &handshake->master);
        break;
    }
    return REDIS_HANDSHAKE_DONE;
}

enum redis_handshake_result redis_handshake_take(struct redis_handshake *handshake,
                                                 const redisReply *reply) {
    if (handshake->answered == handshake->count) {
        return fail(handshake, REDIS_GATE_UNREACHABLE, "it talks without being asked");
    }
    enum command command = (enum command)handshake->commands[handshake->answered];
    if (take_one(handshake, command, reply) == REDIS_HANDSHAKE_FAILED) {
        return REDIS_HANDSHAKE_FAILED;
    }
    handshake->answered++;
    return handshake->answered == handshake->count ? REDIS_HANDSHAKE_DONE : REDIS_HANDSHAKE_MORE;
}
